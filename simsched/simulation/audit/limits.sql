-- Rules L1: the use of each scope of a limit is summed up again from the tables.

-- Jobs of one kind are those that no limit distinguishes.
CREATE TABLE job_kinds AS
SELECT w_at AS job, dense_rank() OVER (
    ORDER BY w_user, w_bank, w_queue, w_qos, w_array, w_gpu_type, w_tasks) AS kind FROM workload;
CREATE TABLE kinds AS SELECT DISTINCT ON (kind) kind, w.* FROM job_kinds JOIN workload w ON w_at = job;
CREATE TABLE names AS SELECT kind, unnest(['user', 'account', 'queue', 'qos', 'array', 'gpu-type']) AS dimension,
    unnest([w_user, w_bank, w_queue, w_qos, w_array, w_gpu_type]) AS name FROM kinds;

-- Whether each rule is about each kind of jobs (else it counts none of them), by its names alone (`meant`) and
-- by all that it counts apart, too, and the names with which it counts jobs together, as lists (`scope`) since
-- a name may contain any words, and as text
CREATE TABLE about AS
SELECT k.kind, r.*, bool_and(given IS NULL OR coalesce(list_contains(given, name), false)) AS meant,
    bool_and(dimension IS NULL OR name IS NOT NULL) AND meant AS counts,
    coalesce(string_agg(dimension || ' ' || coalesce(array_to_string(given, ', '), name), ', ' ORDER BY place),
        'all jobs') AS whose,
    coalesce(list([dimension] || coalesce(given, [name]) ORDER BY place) FILTER (dimension IS NOT NULL), [])
        AS scope,
    coalesce(list(dimension) FILTER (dimension IN ('user', 'account')), []) AS owners
FROM kinds k CROSS JOIN rules r LEFT JOIN rule_scopes USING (rule) LEFT JOIN names USING (kind, dimension)
GROUP BY ALL;

-- The limits that count each kind of jobs; of limits on single jobs those that bind them.  The rule of a lower
-- level takes the place of one for the same owner, and a rule with more names that of one of its own level.
CREATE TABLE bounds AS
WITH limits AS (SELECT * FROM about JOIN rule_limits USING (rule) WHERE counts),
instead AS (
    SELECT l.kind, l.rule, l.quantity, bool_or(o.level IS NOT DISTINCT FROM l.level) AS beside
    FROM limits l JOIN limits o USING (kind, quantity, single)
    WHERE CASE WHEN o.level <> l.level THEN o.level < l.level AND (l.single OR list_has_any(o.owners, l.owners))
        ELSE o.level IS NOT DISTINCT FROM l.level AND o.scope = l.scope AND o.named > l.named END GROUP BY ALL),
every AS (
    SELECT kind, scope, whose, quantity, level, single, most, beside IS NULL AS binds
    FROM limits LEFT JOIN instead USING (kind, rule, quantity)
    WHERE beside IS NULL OR NOT (beside OR single)
    UNION ALL SELECT kind, [['array', w_array]], 'array ' || w_array, 'running-jobs', NULL, false, w_tasks, true
    FROM kinds WHERE w_tasks IS NOT NULL AND queue_policy() IS DISTINCT FROM 'recorded'),
chosen AS (FROM every QUALIFY most < 'inf'::DOUBLE AND row_number() OVER (
    PARTITION BY kind, scope, quantity, level, single ORDER BY most, binds) = 1)
SELECT kind, dense_rank() OVER (ORDER BY scope, quantity, level, single) AS key, quantity, most, whose, binds,
    single, coalesce(unit, replace(quantity, 'running-', '')) AS unit
FROM chosen LEFT JOIN hours ON kind_of_hours = replace(quantity, 'running-', '');

-- R does not tell whether a unit is shared, so the numbers of the table count for its own attempt.
CREATE TABLE amounts AS
SELECT a.id, a."begin" AS start, a.until, row_number() OVER (ORDER BY a."begin", a.job) AS place, b.*,
    coalesce(duration, 'inf'::DOUBLE) AS seconds,
    contains(quantity, '-hours') AS hours, starts_with(quantity, 'running-') AND hours AS ahead,
    CASE unit WHEN 'nodes' THEN if(j.start = a."begin", j.nodes, s.nodes)
        WHEN 'cores' THEN if(j.start = a."begin", j.cores, s.least_cores)
        WHEN 'gpus' THEN if(j.start = a."begin", j.gpus, s.least_gpus)
        WHEN 'memory' THEN s.memory ELSE 1 END AS units
FROM attempts a JOIN jobs j USING (id) JOIN sizes s ON s.size = a.size AND s.own = 1
JOIN job_kinds k ON k.job = a.job JOIN bounds b ON b.kind = k.kind
WHERE quantity <> 'submitted-jobs' AND (NOT single OR binds);

-- L1 starts under a limit per job
SELECT id, asked > most + if(unit IN ('nodes', 'cores', 'gpus', 'memory') AND NOT hours, 0, 1e-3) AS wrong,
    format('takes {:g}, and {} of a job of {} is at most {:g}', asked, quantity, whose, most)
FROM (SELECT *, CASE WHEN quantity = 'duration' THEN seconds WHEN NOT hours THEN units
    WHEN units = 0 THEN 0 ELSE units * seconds / 3600 END AS asked FROM amounts WHERE single);

-- L1 starts under a limit: what running jobs may still use is the sum of their units until their requested
-- ends, less the present time for each of their units; `endless` jobs have no requested end
SELECT id, used > most + if(hours, 1e-3 + 1e-9 * most, 0) AS wrong,
    format('starts at {:g}, and {} of {} is {:g}, of {:g} allowed', time, quantity, whose, used, most)
FROM (
    WITH counted AS (
        SELECT *, hours AND isinf(seconds) AND units > 0 AS endless,
            if(ahead, least(until, start + seconds), until) AS leaves,
            CASE WHEN endless THEN 0 WHEN ahead THEN units * (start + seconds) WHEN hours THEN units * seconds
                ELSE units END AS asked
        FROM amounts WHERE NOT single AND until > start),
    events AS (
        SELECT *, start AS time, 1 AS sign, asked AS amount FROM counted
        UNION ALL SELECT *, leaves, -1, if(hours AND NOT ahead, asked - units * (until - start), asked)
        FROM counted WHERE NOT isinf(leaves)),
    sums AS (
        SELECT *, sum(sign * amount) OVER w AS total, sum(sign * units) OVER w AS rate,
            sum(sign * endless::INTEGER) OVER w AS without_end
        FROM events WINDOW w AS (PARTITION BY key ORDER BY time, sign, place ROWS UNBOUNDED PRECEDING))
    SELECT *, CASE WHEN without_end > 0 THEN 'inf'::DOUBLE WHEN ahead THEN (total - time * rate) / 3600
        WHEN hours THEN total / 3600 ELSE total END AS used
    FROM sums WHERE sign = 1 AND binds);

-- L1 submissions under a limit: under a limit that holds jobs, they count from when they are eligible.  A job
-- that failed before it ran, as its dependencies can never be met, has left at a time that no table tells.
SELECT id, number > most AS wrong,
    format('is job {} of {}, of {:g} that may be submitted', number::BIGINT, whose, most)
FROM (
    WITH present AS (
        SELECT b.*, j.id, if(w_at IN (SELECT job FROM about JOIN job_kinds USING (kind) WHERE holds AND meant),
            eligible, submit) AS begun, CASE WHEN ended IS NOT NULL THEN ended
            WHEN result IN ('PENDING', 'RUNNING') THEN 'inf'::DOUBLE
            WHEN result = 'CANCELED' THEN w_cancel_at END AS gone
        FROM jobs j JOIN job_kinds k ON k.job = w_at JOIN bounds b ON b.kind = k.kind
        WHERE quantity = 'submitted-jobs' AND result NOT IN ('INFEASIBLE', 'DROPPED')
            AND NOT starts_with(coalesce(reason, ''), 'rejected')
            AND gone > begun AND begun <= coalesce(cut(), 'inf'::DOUBLE)),
    events AS (SELECT *, begun AS time, 1 AS sign FROM present UNION ALL SELECT *, gone, -1 FROM present)
    SELECT *, sum(sign) OVER (PARTITION BY key ORDER BY time, sign, id ROWS UNBOUNDED PRECEDING) AS number
    FROM events)
WHERE sign = 1 AND binds AND time < 'inf'::DOUBLE;
