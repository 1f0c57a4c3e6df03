-- Rules P1 for promised starts.  With each() every job that starts has a promise, with silent() none.

-- P1 starts
SELECT id, promised IS NULL AS wrong, 'started without a promised start'
FROM jobs WHERE each() AND start IS NOT NULL;

-- P1 starts: a job of zero seconds may leave room at the instant of a pass, and one that waits in the queue of
-- a magnetic reservation, too, is promised a start there before its own queue has its turn
SELECT id, promised <> start AS wrong, 'was promised ' || t(promised) || ', and started when it was eligible'
FROM jobs WHERE each() AND promised IS NOT NULL AND start = eligible AND NOT each_event() AND NOT magnetic()
    AND NOT EXISTS (FROM jobs WHERE start = ended);

-- P1 promises
SELECT id, silent() OR promised < eligible AS wrong, 'was promised ' || t(promised)
    || if(silent(), ' by a policy that promises no start', ' before it was eligible')
FROM jobs WHERE promised IS NOT NULL;

-- When all jobs of the time of a promise were to end, in plain runs: the plan does not know how long an
-- overrun lasts, and a task that the limit of its array holds is planned late.  Of jobs that become eligible
-- together, any may be before the others.
CREATE TABLE ready AS
SELECT id, eligible, promised, promised + duration AS planned, coalesce(ended, 'inf'::DOUBLE) AS ended,
    coalesce(max(planned) OVER (PARTITION BY eligible
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW), eligible) AS beside
FROM jobs WHERE promised IS NOT NULL AND eligible IS NOT NULL AND each() AND plain()
    AND NOT EXISTS (FROM jobs WHERE (ran AND later(ended, start + duration)) OR contains(array_task, '%'));

