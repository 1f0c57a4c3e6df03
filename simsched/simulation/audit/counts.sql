-- Rules A7 for the numbers of run.json.

CREATE TABLE found AS
SELECT lower(result) AS name, count(*) AS number FROM given_jobs GROUP BY result
UNION ALL SELECT 'jobs', count(*) FROM given_jobs
UNION ALL SELECT 'run', count(*) FROM given_jobs WHERE isfinite(start)
UNION ALL SELECT 'unfinished', count(*) FROM given_jobs WHERE result IN ('PENDING', 'RUNNING');

-- A7 numbers of run.json
SELECT '(all)' AS id, coalesce(f.number, 0)::VARCHAR <> c.number AS wrong,
    'run.json counts ' || c.number || ' ' || name || ', the table has ' || coalesce(f.number, 0)
FROM counts c LEFT JOIN found f USING (name);

-- A7 numbers of run.json
SELECT '(all)' AS id, true AS wrong, 'run.json records an interrupted run, but every job has ended'
WHERE NOT complete() AND (SELECT number FROM found WHERE name = 'jobs') > 0
    AND (SELECT number FROM found WHERE name = 'unfinished') = 0;
