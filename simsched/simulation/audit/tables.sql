-- The tables that the rules are about: see `audit_tables`.

-- Two times differ by more than the rounding of a few additions: 1 µs, or 4 units in the last place.
CREATE MACRO differs(a, b) AS (a <> b AND NOT (isfinite(a::DOUBLE) AND isfinite(b::DOUBLE)
    AND abs(a - b) <= greatest(1e-6, 8.9e-16 * greatest(abs(a), abs(b)))));
CREATE MACRO later(a, b) AS (a > b AND differs(a, b));
CREATE MACRO t(x) AS coalesce(format('{:.12g}', x::DOUBLE), 'None');
CREATE MACRO q(x) AS coalesce('''' || x || '''', 'None');

CREATE TABLE jobs AS
WITH starts AS (SELECT job, min(time) AS first_start FROM held GROUP BY job),
gaps AS (SELECT job, attempt, sum(gap) AS gap FROM held GROUP BY job, attempt),
joined AS (
    SELECT g.*, w.* EXCLUDE id, h.first AS h_first, h.last AS h_last, h.start AS h_start, h.open AS h_open,
        h.size AS h_size, h.queue AS h_queue, h.slots AS h_slots, h.k AS h_k, first_start,
        coalesce(gaps.gap, 0) AS gap, coalesce(w_duration, 'inf'::DOUBLE) AS w_limit,
        coalesce(w_runtime, w_limit) AS w_work, w_work - saved AS work,
        result IN ('INFEASIBLE', 'DROPPED', 'PENDING')
            OR (g.start IS NULL AND result IN ('CANCELED', 'FAILED')) AS never
    FROM named_jobs g LEFT JOIN workload w USING (id) LEFT JOIN held h ON h.job = w_at AND h.newest
        LEFT JOIN starts s ON s.job = w_at LEFT JOIN gaps ON gaps.job = w_at AND gaps.attempt = h.attempt
    WHERE result <> 'DROPPED' OR w_at IS NULL),
-- A checkpointable job restarts, and writes a checkpoint between each two intervals of its work; where
-- preemption writes one, it may end with one instead of its last work.  One that is queued again waits for
-- any time.
works AS (
    SELECT *, work + greatest(0, ceil(work / w_interval) - 1) * w_cost + if(saved > 0, w_restart, 0)
        + if(writes() AND result NOT IN ('COMPLETED', 'TIMEOUT'), w_cost, 0) AS attempt_work,
        CASE WHEN start IS NULL AND interruptions > 0 THEN 'inf'::DOUBLE WHEN w_interval IS NULL THEN w_work
            WHEN w_runtime IS NULL THEN least(attempt_work, w_work) ELSE attempt_work END AS runs
    FROM joined)
SELECT * EXCLUDE (work, attempt_work),
    if((start IS NULL AND interruptions > 0) OR coalesce(overrun() = 'allow', false), runs,
        least(runs, w_limit + kill_grace())) AS length,
    NOT never AND w_at IS NOT NULL AND h_k IS NOT NULL AND start IS NOT NULL AS ran,
    -- a job had ended when the run was cut short, but may still have held its targets
    coalesce(epilog() > 0 AND ended + epilog() >= cut(), false) AS cleans_up,
    -- a job that ended while it was suspended released its resources before
    coalesce(suspends() AND h_first < ended AND NOT differs(suspended, gap + ended - h_first), false)
        AS released_before,
    -- it stands still while it is suspended, at its end or at that of the run, too
    start + CASE WHEN NOT suspends() THEN gap WHEN result IN ('CANCELED', 'FAILED') THEN suspended
        WHEN result = 'RUNNING' THEN gap + coalesce(greatest(0, cut() - h_first), 0) ELSE gap END AS began
FROM works;

CREATE TABLE attempts AS
SELECT w.id, any_value(job) AS job, any_value(attempt) AS attempt, min(time) AS "begin",
    coalesce(min(first), 'inf'::DOUBLE) AS until, arg_max(size, k) AS size, bool_or(newest) AS newest,
    max(first) AS released, sum(first - time) AS seconds, any_value(failures) AS failures
FROM (SELECT *, max(k) FILTER (WHERE kind < 2) OVER (PARTITION BY job ORDER BY k) AS begins FROM held) h
JOIN workload w ON w.w_at = h.job GROUP BY w.id, begins;
UPDATE attempts SET until = jobs.ended, seconds = seconds - greatest(0, released - jobs.ended) FROM jobs
WHERE jobs.id = attempts.id AND attempts.newest AND jobs.start = attempts."begin" AND jobs.ended IS NOT NULL;

-- The jobs that each dependency names: all tasks of an array, or the one with the same number (aftercorr); a
-- job; a task by its number.  The first of these that there is counts, and without any `other` is NULL.
CREATE TABLE dependencies AS
WITH tasks AS (FROM workload WHERE w_array IS NOT NULL),
named AS (
    SELECT g.id, n, t.id AS other, 1 AS kind FROM given_dependencies g JOIN tasks t ON t.w_array = value
        JOIN workload w ON w.id = g.id WHERE scheme <> 'aftercorr' OR t.w_index = w.w_index
    UNION ALL SELECT g.id, n, w.id, 2 FROM given_dependencies g JOIN workload w ON w.id = value
        WHERE scheme <> 'aftercorr'
    UNION ALL SELECT g.id, n, t.id, 3 FROM given_dependencies g
        JOIN tasks t ON t.w_array || '_' || t.w_index = regexp_replace(value, '_0+([0-9]+)$', '_\1')
        WHERE scheme <> 'aftercorr')
FROM given_dependencies LEFT JOIN (FROM named QUALIFY kind = min(kind) OVER (PARTITION BY id, n)) USING (id, n);
