-- Rules A4, A7 and A8 for the table of jobs.  `audit_tables` defines the tables, and how this file is read.

-- A7 jobs: each is in the table once; one that the run itself dropped never held anything
SELECT id, n <> 1 AND (n > 0 OR NOT dropped OR w_at IN (SELECT job FROM held)) AS wrong,
    'is in the table ' || n || ' times' AS text
FROM (SELECT w.id, w.w_at, count(j.id) AS n FROM workload w LEFT JOIN jobs j USING (id) GROUP BY ALL)
JOIN (SELECT w.id, count(g.id) > 0 AS dropped FROM workload w
    LEFT JOIN given_jobs g ON g.id = w.id AND g.result = 'DROPPED' GROUP BY ALL) USING (id);

-- A7 rows
SELECT id, runtime IS NULL <> (ended - start IS NULL) OR differs(ended - start, runtime) IS TRUE AS wrong,
    'the table has a run time of ' || t(runtime) || ' s, from start to end it is ' || t(ended - start) || ' s'
FROM jobs WHERE w_at IS NOT NULL AND result <> 'DROPPED' AND has('runtime');

-- A7 rows
SELECT id, wait IS NULL <> (start - submit IS NULL) OR differs(start - submit, wait) IS TRUE AS wrong,
    'the table has a wait of ' || t(wait) || ' s, from submit to start it is ' || t(start - submit) || ' s'
FROM jobs WHERE w_at IS NOT NULL AND result <> 'DROPPED' AND has('wait');

-- A7 jobs that did not run: a job that was interrupted may wait again
SELECT id, start IS NOT NULL OR (h_k IS NOT NULL AND NOT coalesce(NOT h_open AND w_at IS NOT NULL
        AND (h_last - h_start < length OR length = 0)
        AND result NOT IN ('INFEASIBLE', 'DROPPED'), false)) AS wrong,
    'is ' || result || ' and has an allocation'
FROM jobs WHERE never;

-- A7 jobs that did not run
SELECT id, coalesce(reason, '') = '' AS wrong, 'is ' || result || ' without a reason'
FROM jobs WHERE never AND result <> 'PENDING';

-- A7 jobs that did not run
SELECT id, greatest(nodes, cores, gpus, slots) > 0 AS wrong,
    'is ' || result || ' and has ' || concat_ws(', ', if(nodes > 0, nodes || ' nodes', NULL),
        if(cores > 0, cores || ' cores', NULL), if(gpus > 0, gpus || ' gpus', NULL),
        if(slots > 0, slots || ' slots', NULL))
FROM jobs WHERE never;

-- A7 jobs that did not run
SELECT id, backfilled IS TRUE AS wrong, 'is ' || result || ' and backfilled' FROM jobs WHERE never;

-- A7 jobs that ran
SELECT id, NOT ran AS wrong, 'is ' || result || ' and has no allocation' FROM jobs WHERE NOT never;

-- A4 jobs
SELECT id, h_open AND result <> 'RUNNING' AND NOT cleans_up AS wrong, 'never released all its resources'
FROM jobs WHERE w_at IS NOT NULL AND h_k IS NOT NULL;

-- A7 jobs that ran: a job releases its resources at its end, or up to an epilog later
SELECT id, start <> h_start OR NOT coalesce(result = 'RUNNING' OR (h_open AND cleans_up) OR released_before
        OR (ended <= h_first AND h_last <= ended + epilog()), false) AS wrong,
    'the table has ' || t(start) || ' to ' || t(ended) || ', R has ' || t(h_start) || ' to ' || t(h_last)
FROM jobs WHERE ran;

-- A7 jobs that ran
SELECT id, fits IS NULL AS wrong,
    format('the table has nodes, cores, gpus ({}, {}, {}), R has ({:.0f}, {:.0f}, {:.0f})',
    j.nodes, j.cores, j.gpus, own.nodes, own.least_cores, own.least_gpus)
FROM jobs j JOIN sizes own ON own.size = h_size AND own.own = 1
LEFT JOIN (SELECT DISTINCT j.id AS fits FROM jobs j JOIN sizes s ON s.size = h_size
    AND coalesce(s.nodes = j.nodes, true) AND cores BETWEEN least_cores AND most_cores
    AND gpus BETWEEN least_gpus AND most_gpus) ON fits = id
WHERE ran AND result <> 'RUNNING';

-- A7 jobs that ran
SELECT id, coalesce(nullif(queue, ''), 'default') IS DISTINCT FROM h_queue AS wrong,
    'the table has queue ' || q(queue) || ', R has ' || q(h_queue)
FROM jobs WHERE ran AND has('queue') AND (match_policy() IS NOT NULL OR h_queue IS NOT NULL);

-- A7 jobs that ran
SELECT id, slots NOT IN (h_slots, 0) AS wrong, 'the table has ' || slots || ' slots, R has ' || h_slots
FROM jobs WHERE ran AND has('slots') AND h_slots >= 0;

-- A8 epilogs
SELECT id, later(ended + epilog_least(), h_first) AND NOT released_before AS wrong,
    'releases its nodes at ' || t(h_first) || ', before its epilog of at least ' || t(epilog_least())
        || ' s is over'
FROM jobs WHERE ran AND epilog_least() > 0 AND nodes > 0 AND h_first IS NOT NULL
    AND result IN ('COMPLETED', 'TIMEOUT', 'CANCELED');

-- A8 starts
SELECT id, later(w_submit, start) AS wrong, 'starts at ' || t(start) || ', submitted at ' || t(w_submit)
FROM jobs WHERE ran;

-- A8 starts
SELECT id, later(w_submit, eligible) OR later(eligible, start) AS wrong,
    'starts at ' || t(start) || ', eligible at ' || t(eligible) || ', submitted at ' || t(w_submit)
FROM jobs WHERE ran AND eligible IS NOT NULL;

-- A8 starts
SELECT id, w_held AS wrong, 'starts at ' || t(start) || ' and is held' FROM jobs WHERE ran;

-- A8 starts of the log: a run that plays the log starts no job before the log does
SELECT id, w_wait IS NULL OR later(w_submit + w_wait, start) AS wrong, 'starts at ' || t(start)
    || coalesce(', before the log starts it at ' || t(w_submit + w_wait), ', and the log has no start of it')
FROM jobs WHERE ran AND queue_policy() = 'recorded';

-- A8 starts beside closed queues: a running job that a program changed does not start again
SELECT id, later("begin", closes) AND later(opens, "begin") AS wrong,
    'starts at ' || t("begin") || ', and queue ' || queue || ' is closed from ' || t(closes)
        || ' until ' || t(opens)
FROM jobs JOIN attempts USING (id) JOIN stops USING (queue) WHERE ran AND NOT renewed();

CREATE TABLE waits AS
SELECT d.*, o.id IS NOT NULL AS known, o.result AS other_result, o.ended AS other_end,
    o.first_start + delay AS begun,
    CASE scheme WHEN 'begin-time' THEN time WHEN 'after' THEN begun ELSE other_end END AS met,
    known OR scheme = 'begin-time' AS told
FROM dependencies d LEFT JOIN jobs o ON o.id = d.other;

-- A8 dependencies
SELECT id, later(time, start) AS wrong, 'starts at ' || t(start) || ', before ' || text
FROM jobs JOIN waits USING (id) WHERE ran AND scheme = 'begin-time';

-- A8 dependencies
SELECT id, bool_or(begun IS NULL OR later(begun, start)) AS wrong,
    'starts at ' || t(start) || ', before ' || text || ' is met'
FROM jobs JOIN waits USING (id) WHERE ran AND known AND scheme = 'after' GROUP BY id, start, n, text;

CREATE TABLE antecedents AS
SELECT id, n, start, text, scheme, bool_and(other_result = 'COMPLETED') AS fine,
    bool_or(other_result IN ('PENDING', 'RUNNING') OR coalesce(later(other_end, start), false)) AS too_soon
FROM jobs JOIN waits USING (id)
WHERE ran AND known AND scheme IN ('afterany', 'afterok', 'afternotok', 'aftercorr') GROUP BY ALL;

-- A8 dependencies
SELECT id, too_soon AS wrong, 'starts at ' || t(start) || ', before ' || text || ' is met' FROM antecedents;

-- A8 dependencies
SELECT id, fine = (scheme = 'afternotok') AS wrong,
    'starts at ' || t(start) || ', and ' || text || ' was never met'
FROM antecedents WHERE NOT too_soon AND scheme <> 'afterany';

-- A8 eligible times: that at which all conditions of a job are met, where all of them are in the table
SELECT id, differs(met, eligible) AS wrong,
    'is eligible at ' || t(eligible) || ', and its conditions are met at ' || t(met)
FROM (SELECT j.id, j.eligible, greatest(any_value(w_submit), max(met)) AS met,
        count(scheme) = count(*) FILTER (WHERE told AND w.met IS NOT NULL) AS told
    FROM jobs j LEFT JOIN waits w USING (id)
    WHERE ran AND eligible IS NOT NULL AND NOT w_follows AND eligible_by_rule() GROUP BY j.id, j.eligible)
WHERE told;

-- A8 ends
SELECT id, cut() IS NULL AS wrong, 'is RUNNING, and the run was not cut short' FROM jobs
WHERE ran AND result = 'RUNNING';

-- A8 ends
SELECT id, began + length <= cut() AS wrong, 'is RUNNING at ' || t(cut()) || ', and should have ended'
FROM jobs WHERE ran AND result = 'RUNNING' AND cut() IS NOT NULL;

-- A8 ends
SELECT id, ended IS NULL AS wrong, 'is ' || result || ' and has no end'
FROM jobs WHERE ran AND result <> 'RUNNING';

-- A8 ends
SELECT id, differs(began + length, ended) AS wrong,
    result || ' after ' || t(ended - began) || ' s instead of ' || t(length) || ' s'
FROM jobs WHERE ran AND result IN ('COMPLETED', 'TIMEOUT') AND ended IS NOT NULL AND overrun() IS NOT NULL;

-- A8 ends
SELECT id, (result = 'TIMEOUT') <> coalesce(overrun() = 'timeout' AND w_runtime IS NOT NULL
        AND runs > w_duration + kill_grace(), false) AS wrong,
    'is ' || result || ': its limit is ' || t(w_duration) || ' s, its run time ' || t(runs) || ' s'
FROM jobs WHERE ran AND result IN ('COMPLETED', 'TIMEOUT') AND ended IS NOT NULL AND overrun() IS NOT NULL;

-- A8 ends
SELECT id, later(ended, began + length) AS wrong,
    result || ' after ' || t(ended - began) || ' s, though it would have ended after ' || t(length) || ' s'
FROM jobs WHERE ran AND result IN ('CANCELED', 'FAILED') AND ended IS NOT NULL AND overrun() IS NOT NULL;

CREATE TABLE tries AS  -- in runs in which nothing but failures of nodes interrupts jobs
SELECT id, result, a.until, count(*) OVER (PARTITION BY id) AS number,
    row_number() OVER (PARTITION BY id ORDER BY a.attempt DESC) = 1 AS latest,
    len([f FOR f IN coalesce(failures, []) IF NOT differs(f, until)]) > 0 AS fails
FROM attempts a JOIN jobs USING (id) WHERE ran AND only_failures() AND NOT preemptible();

-- A8 attempts
SELECT id, on_failure() = 'fail' OR NOT fails AS wrong, 'was queued again at ' || t(until)
    || if(on_failure() = 'fail', ', though a failure fails a job', ', and none of its nodes failed then')
FROM tries WHERE NOT latest;

-- A8 attempts: one that is queued again fails after 100 attempts
SELECT id, NOT fails OR (number <= 100 AND on_failure() = 'requeue') AS wrong, 'failed at ' || t(until)
    || if(number <= 100 AND on_failure() = 'requeue', ', though a failure queues a job again',
        ', and none of its nodes failed then')
FROM tries WHERE latest AND result = 'FAILED';

-- From when until when jobs wait; the order of a queue: submission, urgency, place in the workload
CREATE TABLE waiting AS
SELECT id, eligible, coalesce(start, w_cancel_at, 'inf'::DOUBLE) AS until, w_held, backfilled,
    start IS NOT NULL AS started, least(until, first_start) AS first_until,
    row_number() OVER (ORDER BY w_submit, w_urgency DESC, w_at) AS place
FROM jobs WHERE w_at IS NOT NULL AND has('backfilled') AND has('eligible');

-- A7 backfilled jobs: of those that came before its start and did not leave, one is the job itself
SELECT id, there < 2 AS wrong, 'is backfilled, but no other job waited at ' || t(until)
FROM (SELECT w.id, w.until, came.n - coalesce(gone.n, 0) AS there
    FROM (FROM waiting WHERE started AND backfilled) w
    ASOF JOIN (SELECT eligible AS at_, count(*) OVER (ORDER BY eligible) AS n FROM waiting
        WHERE eligible <= until) came ON w.until >= came.at_
    ASOF LEFT JOIN (SELECT until AS at_, count(*) OVER (ORDER BY until) AS n FROM waiting
        WHERE eligible <= until) gone ON w.until > gone.at_);
