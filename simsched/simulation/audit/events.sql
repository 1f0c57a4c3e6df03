-- Rules A9 for eventlog.jsonl: the transitions of RFC 21 by the events of RFC 18, and the times in the table.

-- Event → the state after it, and the states in which it may come; requeue, suspend, resume are additions.
CREATE TABLE transitions AS FROM (VALUES
    ('submit', 'NEW', ['NEW']), ('validate', 'DEPEND', ['NEW']),
    ('dependency-add', 'DEPEND', ['DEPEND']), ('dependency-remove', 'DEPEND', ['DEPEND']),
    ('depend', 'PRIORITY', ['DEPEND']), ('priority', 'SCHED', ['PRIORITY', 'SCHED']),
    ('urgency', 'SCHED', ['SCHED']), ('alloc', 'RUN', ['SCHED']), ('start', 'RUN', ['RUN']),
    ('suspend', 'RUN', ['RUN']), ('resume', 'RUN', ['RUN']), ('requeue', 'SCHED', ['RUN']),
    ('finish', 'CLEANUP', ['RUN']), ('release', 'CLEANUP', ['CLEANUP']), ('free', 'CLEANUP', ['CLEANUP']),
    ('exception', 'CLEANUP', ['NEW', 'DEPEND', 'PRIORITY', 'SCHED', 'RUN', 'CLEANUP']),
    ('clean', 'INACTIVE', ['CLEANUP'])) AS rows(name, state, states);

-- A9 events
SELECT coalesce(id, '(line ' || line || ')') AS id,
    id IS NULL OR time IS NULL OR NOT coalesce(list_contains(states, earlier), false) AS wrong,
    'the eventlog cannot be followed: event ' || q(name) || ' cannot happen in state ' || earlier
FROM (SELECT e.*, states, coalesce(lag(state) OVER (PARTITION BY id ORDER BY line), 'NEW') AS earlier
    FROM events e LEFT JOIN transitions USING (name));

-- A9 events
SELECT id, time < earlier AS wrong,
    'line ' || line || ' of the eventlog goes back in time, from ' || t(earlier) || ' to ' || t(time)
FROM (SELECT *, lag(time) OVER () AS earlier FROM events) WHERE earlier IS NOT NULL;

CREATE TABLE logs AS
SELECT j.id, result, submit, start, l.* EXCLUDE id FROM jobs j LEFT JOIN (
    SELECT id, arg_max(state, line) AS state, arg_max(time, line) FILTER (WHERE name = 'submit') AS submitted,
        arg_max(time, line) FILTER (WHERE name = 'start') AS started
    FROM events JOIN transitions USING (name) GROUP BY id) l USING (id);

-- A9 jobs in the eventlog
SELECT id, result NOT IN ('PENDING', 'DROPPED') AS wrong, 'is ' || result || ' and has no events'
FROM logs WHERE state IS NULL;

-- A9 jobs in the eventlog: where a run was cut short, they may still clean up
SELECT id, CASE result WHEN 'PENDING' THEN state NOT IN ('NEW', 'DEPEND', 'PRIORITY', 'SCHED')
        WHEN 'RUNNING' THEN state <> 'RUN'
        ELSE state <> 'INACTIVE' AND NOT (state = 'CLEANUP' AND cut() IS NOT NULL) END AS wrong,
    'is ' || result || ', but its events end in ' || state
FROM logs WHERE state IS NOT NULL;

-- A9 jobs in the eventlog
SELECT id, submit IS DISTINCT FROM submitted AS wrong,
    'the table has submit ' || t(submit) || ', the eventlog ' || t(submitted)
FROM logs WHERE state IS NOT NULL AND submit IS NOT NULL;

-- A9 jobs in the eventlog
SELECT id, start IS DISTINCT FROM started AS wrong,
    'the table has start ' || t(start) || ', the eventlog ' || t(started)
FROM logs WHERE state IS NOT NULL AND start IS NOT NULL;
