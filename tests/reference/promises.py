"""Conservative backfilling that keeps its promises, as naively as it can be written.

Nothing is shared with simsched.  A machine is a number of processors.  What is booked is a list of
(begin, end, processors): the running jobs up to their requested ends, and the plan.  It is drawn
as a staircase from scratch whenever a job looks for its place.

* At one instant all ends come first, then all submissions, then one pass.
* A new job takes the earliest place beside all that is booked; that start is its promise.
* If a job ended before its requested end, each waiting job is taken out of the plan in turn and put
  back at its earliest place, which is its old one or an earlier one: in ``queue`` order, in the order
  of planned ``start``s, or (``none``) not at all.
* A job starts when its planned start has come.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Told(NamedTuple):
    """When a job was first promised to start, and when it did (None: the machine is too small)."""

    promised: float
    start: float


def stairs(now, booked, processors):
    """[[time, free from then on]], from now on."""
    changes = {now: 0}
    for begin, end, number in booked:
        changes[max(begin, now)] = changes.get(max(begin, now), 0) - number
        changes[end] = changes.get(end, 0) + number
    steps, free = [], processors
    for time in sorted(changes):
        free += changes[time]
        steps.append([time, free])
    return steps


def end_of(begin, seconds):
    """Zero seconds are a moment at which the processors are needed, not none."""
    return max(begin + seconds, math.nextafter(begin, math.inf))


def earliest(now, job, booked, processors):
    """The first time from which the job's processors are free for its requested time; inf: never."""
    steps = stairs(now, [b for b in booked if b[1] > now], processors)
    begin = None
    for time, free in steps:
        if begin is not None and end_of(begin, job.requested) <= time:
            return begin
        if free < job.copies:
            begin = None
        elif begin is None:
            begin = time
    return begin  # behind the last step everything is free


def booked_but(job, now, running, queue, plan):
    """What is booked: what runs, up to its requested end, and the plan of all jobs but one."""
    held = [(now, max(begin + j.requested, now), j.copies) for j, begin in running]
    return held + [
        (plan[j.id], end_of(plan[j.id], j.requested), j.copies)
        for j in queue
        if j is not job and plan.get(j.id, math.inf) < math.inf
    ]


def schedule(jobs, processors, compress):
    """Return {job id: Told}, None for a job that is larger than the machine."""
    result = {job.id: None for job in jobs if job.copies > processors}
    coming = sorted((job for job in jobs if job.id not in result), key=lambda job: job.submit)
    running, queue, plan = [], [], {}  # [(job, start)], [job], {job id: start}
    while coming or running or queue:
        ends = [start + job.actual for job, start in running]
        now = min(ends + [job.submit for job in coming[:1]] + list(plan.values()))
        assert now < math.inf
        early = any(start + job.actual <= now < start + job.requested for job, start in running)
        running = [(job, start) for job, start in running if start + job.actual > now]
        while coming and coming[0].submit <= now:
            queue.append(coming.pop(0))
        turns = list(queue)
        if compress == "start":
            turns.sort(key=lambda job: plan.get(job.id, math.inf))
        for job in turns:
            known = plan.get(job.id, math.inf)
            if known == math.inf or (known > now and early and compress != "none"):
                found = earliest(now, job, booked_but(job, now, running, queue, plan), processors)
                assert found <= known
                plan[job.id] = found
                if found < math.inf and job.id not in result:
                    result[job.id] = Told(found, math.nan)
            idle = processors - sum(j.copies for j, _ in running)
            if plan[job.id] <= now and job.copies <= idle:  # a job of zero seconds may be about to end
                running.append((job, now))
                queue.remove(job)
                del plan[job.id]
                result[job.id] = result[job.id]._replace(start=now)
    return result
