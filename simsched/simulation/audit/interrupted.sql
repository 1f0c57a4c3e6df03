-- Rules W1 for the work of jobs, and V1 for those that were preempted, in runs that record them.

-- Each job with the seconds of its attempts (`spans`), of those that were interrupted (`before`), their ends,
-- and the job that preempted it
CREATE TABLE interrupted AS
WITH works AS (SELECT id, attempt, coalesce(sum(seconds), 0) AS ran FROM attempts GROUP BY id, attempt),
lists AS (SELECT id, list(ran ORDER BY attempt) AS ran FROM works GROUP BY id),
went AS (SELECT id, list(until ORDER BY "begin") AS went FROM attempts GROUP BY id)
SELECT j.* EXCLUDE reason, coalesce(j.reason, '') AS reason, coalesce(l.ran, []) AS spans,
    if(j.start IS NULL, spans, spans[1:len(spans) - 1]) AS before, coalesce(list_sum(before), 0) AS seconds,
    coalesce(e.went, []) AS ends, o.id AS taker, o.eligible AS came, o.w_reservation AS taker_reservation
FROM jobs j LEFT JOIN lists l USING (id) LEFT JOIN went e USING (id) LEFT JOIN jobs o ON o.h_k IS NOT NULL
    AND o.id = replace(split_part(coalesce(j.reason, ''), 'preempted by ', 2), ', with a checkpoint', '')
WHERE j.w_at IS NOT NULL AND j.result <> 'DROPPED' ORDER BY j.place;

-- W1 jobs: one that was suspended in the instant of its start has the lines of R of one that started twice
SELECT id, interruptions NOT BETWEEN len(before) - if(suspends(), len([s FOR s IN before IF s = 0]), 0)
        AND len(before) AS wrong,
    'was interrupted ' || len(before) || ' times, the table has ' || interruptions FROM interrupted;

-- The work in the checkpoints that are complete after each attempt; all attempts after it read one first, and
-- where preemption writes one, all the work of an attempt may be in it
CREATE TABLE checkpoints AS
WITH RECURSIVE steps AS (
    SELECT id, 0 AS n, 0::DOUBLE AS low, 0::DOUBLE AS high FROM interrupted
    UNION ALL SELECT id, n + 1, low + kept, high + if(writes(), greatest(span, kept), kept)
    FROM (SELECT s.*, before[n + 1] AS span, w_interval + w_cost AS each,
            greatest(0, span - if(low > 0, w_restart, 0)) AS time,
            least(round((time - time % each) / each), greatest(0, ceil((w_work - low) / w_interval) - 1))
                * w_interval AS kept
        FROM steps s JOIN interrupted USING (id) WHERE w_interval IS NOT NULL AND n < len(before)))
SELECT id, max(low) AS low, max(high) AS high FROM steps GROUP BY id;

-- W1 jobs
SELECT id, later(low, saved) OR later(saved, high) AS wrong,
    'kept ' || t(saved) || ' s of work, possible are ' || t(low) || ' to ' || t(high) || ' s'
FROM (SELECT id, saved, if(saved <> 0 AND c.high > c.low, least(c.low, saved), c.low) AS low,
    least(c.high, w_work) AS high FROM interrupted JOIN checkpoints c USING (id));

-- W1 jobs
SELECT id, differs(seconds - saved, lost) AS wrong,
    'lost ' || t(lost) || ' s of work instead of ' || t(seconds - saved) || ' s' FROM interrupted;

-- W1 jobs
SELECT id, start IS NOT NULL AND differs(suspended, gap) AND NOT released_before AS wrong,
    'was suspended for ' || t(gap) || ' s, the table has ' || t(suspended) || ' s' FROM interrupted;

-- W1 jobs
SELECT id, later(low, overhead) OR later(overhead, high) AS wrong,
    'read and wrote checkpoints for ' || t(overhead) || ' s, possible are ' || t(low) || ' to ' || t(high)
        || ' s'
FROM (SELECT id, overhead, if(w_interval IS NULL OR ended IS NULL, 0, coalesce(spans[-1], 0)) AS last,
    if(result = 'COMPLETED' AND last > 0, greatest(0, last - (w_work - saved)), last) AS high,
    if(result = 'COMPLETED', high, 0) AS low FROM interrupted);

-- Each job that was preempted, with the rule for it and the seconds that its last attempt but one ran
CREATE TABLE preempted AS
SELECT i.*, v.mode AS allowed, grace, coalesce(w_after, exempt) + grace AS soonest,
    split_part(reason, 'preempted by ', 1) AS how, substr(reason, len(how) + 14) AS other,
    CASE WHEN ends_with(other, ', with a checkpoint') THEN 'checkpoint' WHEN starts_with(how, 'suspended')
        THEN 'suspend' WHEN how <> '' THEN 'requeue' ELSE 'cancel' END AS mode,
    coalesce(if(how <> '', before[-1], NULL), spans[-1], 'inf'::DOUBLE) AS last,
    coalesce(if(how <> '' AND start IS NOT NULL, ends[-2], NULL), ends[-1], 'inf'::DOUBLE) AS went
FROM interrupted i JOIN victims v ON v.name = coalesce(if(preempted_by() = 'qos', w_qos, w_queue), '')
WHERE contains(reason, 'preempted by ');

-- V1 preempted jobs
SELECT id, mode <> allowed AND NOT (allowed = 'checkpoint' AND mode = 'requeue') AS wrong,
    'was preempted with ' || mode || ', its rule is ' || allowed FROM preempted;

-- V1 preempted jobs: only a flexible reservation lets others in, or one that overlaps
SELECT id, NOT flex AND taker_reservation IS DISTINCT FROM w_reservation AND NOT EXISTS (
        FROM reservations o WHERE o.name = taker_reservation AND o.overlapping) AS wrong,
    'was preempted in its reservation ' || q(w_reservation) || ' by ' || taker || ', which is not in it'
FROM preempted JOIN reservations r ON r.name = w_reservation WHERE taker IS NOT NULL;

-- V1 preempted jobs
SELECT id, later(soonest, last) AS wrong,
    'was preempted after ' || t(last) || ' s, and may be only after ' || t(soonest) || ' s'
FROM preempted WHERE mode <> 'suspend';

-- V1 preempted jobs
SELECT id, later(came + grace, went) AS wrong,
    format('went at {:g}, without {:g} s of grace after {:g}, when {} came', went, grace, came, other)
FROM preempted WHERE mode <> 'suspend' AND came IS NOT NULL;
