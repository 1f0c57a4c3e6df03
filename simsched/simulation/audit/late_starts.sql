-- The jobs that started after their promised start, each with its first cause.
-- A cause is a time in which resources were unexpectedly unavailable.  It counts if it overlaps the wait of a
-- job, and the first one is named: planned events, then jobs beyond their requested ends, then preemptions.
CREATE TABLE late_starts AS
WITH late AS (FROM jobs WHERE start > promised AND NOT {replans}),
spans AS (
    SELECT id, start + duration AS planned, coalesce(ended, 'inf'::DOUBLE) AS ended, 0 AS kind
    FROM jobs WHERE start IS NOT NULL
    UNION ALL SELECT id, "begin" + duration, until, 1 FROM attempts JOIN jobs USING (id)),
causes AS (
    SELECT 0 AS kind, n, since, until, cause FROM planned_causes
    UNION ALL SELECT 1, kind, planned, ended + {epilog}, 'job ' || id || if(ended > planned,
        format(' ran beyond its limit at {{:g}}', planned),
        format(' was cleaned up after its end at {{:g}}', ended))
    FROM spans WHERE ended + {epilog} > planned
    UNION ALL SELECT 2, 0, submit, start, 'job ' || id || ' was ' || reason
    FROM jobs WHERE start IS NOT NULL AND contains(reason, 'preempted by'))
SELECT l.id, promised, start, arg_min(cause, (c.kind, n, since, cause)) AS cause,
    coalesce(contains(array_task, '%'), false) AS of_array
FROM late l LEFT JOIN causes c ON c.since < l.start AND l.eligible <= c.until
GROUP BY l.place, l.id, promised, start, array_task ORDER BY l.place;
