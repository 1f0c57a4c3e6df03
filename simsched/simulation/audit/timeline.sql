-- Rules A9 for timeline.parquet.

-- A9 rows of the timeline
SELECT '(all)' AS id, earlier >= time AS wrong,
    'the row at ' || t(time) || ' comes after that at ' || t(earlier)
FROM (SELECT time, lag(time) OVER () AS earlier FROM timeline) WHERE earlier IS NOT NULL;

-- The jobs with units, and the least and the most units that they hold, after each instant
CREATE TABLE use AS
WITH bounds AS (
    SELECT size, min(least_cores) AS least_core, max(most_cores) AS most_core,
        min(least_gpus) AS least_gpu, max(most_gpus) AS most_gpu FROM sizes GROUP BY size),
changes AS (SELECT time, 1 AS sign, size FROM held UNION ALL SELECT last, -1, size FROM held WHERE NOT open),
sums AS (
    SELECT time, sum(sign) AS jobs, sum(sign * least_core) AS least_core, sum(sign * most_core) AS most_core,
        sum(sign * least_gpu) AS least_gpu, sum(sign * most_gpu) AS most_gpu
    FROM changes JOIN bounds USING (size) GROUP BY time)
SELECT time, sum(columns(* EXCLUDE time)) OVER (ORDER BY time ROWS UNBOUNDED PRECEDING) FROM sums;

-- A9 starts and ends
SELECT '(all)' AS id, l.time IS NULL AS wrong,
    'has no row at ' || t(use.time) || ', when a job starts or ends'
FROM use LEFT JOIN timeline l ON l.time = use.time WHERE complete();

-- A9 rows of the timeline
SELECT '(all)' AS id, running_jobs <> coalesce(jobs, 0) AS wrong,
    running_jobs || ' jobs run at ' || t(l.time) || ', ' || coalesce(jobs, 0) || ' by their R'
FROM timeline l ASOF LEFT JOIN use ON l.time >= use.time WHERE complete();
