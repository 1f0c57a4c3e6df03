-- Each job with the seconds of its attempts (`spans`), their ends, and the job that preempted it (W1, V1).
CREATE TABLE interrupted AS
WITH works AS (SELECT id, attempt, coalesce(sum(seconds), 0) AS ran FROM attempts GROUP BY id, attempt),
lists AS (SELECT id, list(ran ORDER BY attempt) AS spans FROM works GROUP BY id),
ends AS (SELECT id, list(until ORDER BY "begin") AS ends FROM attempts GROUP BY id)
SELECT j.id, j.w_at, j.w_work, j.start, j.ended, j.result, coalesce(j.reason, '') AS reason, j.saved, j.lost,
    j.suspended, j.overhead, j.interruptions, j.gap, j.released_before, coalesce(spans, []) AS spans,
    coalesce(ends, []) AS ends, o.w_at AS taker, o.eligible AS came
FROM jobs j LEFT JOIN lists USING (id) LEFT JOIN ends USING (id) LEFT JOIN jobs o ON o.h_k IS NOT NULL
    AND o.id = replace(split_part(coalesce(j.reason, ''), 'preempted by ', 2), ', with a checkpoint', '')
WHERE j.w_at IS NOT NULL AND j.result <> 'DROPPED' AND has('saved') ORDER BY j.place;
