"""A simple batch scheduler with limits, written from their definition: nothing shared with simsched.

The machine is a number of processors.  A limit is a function of a job to a scope (None: not counted), a
quantity (``jobs``, ``procs``, ``run-seconds``, ``spent-seconds``) and the most of it.  The use by running
jobs is summed up again for each question.

At an instant all ends come first, then all submissions, then one pass over the queue in the order of
submission.  A job that is over a limit when its turn comes is passed over.  FCFS stops at the first other
job that does not fit; EASY reserves for it and lets later jobs start that do not delay it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple


class Job(NamedTuple):
    """One rigid job with its user, account and QoS."""

    id: int
    submit: float
    runtime: float
    requested: float
    procs: int
    user: str
    account: str = ""
    qos: str = ""
    array: str = ""

    @property
    def actual(self):
        return min(self.runtime, self.requested)


class Limit(NamedTuple):
    """At most `most` of a quantity for the jobs that have one scope; it holds those that it `binds`."""

    scope: object
    quantity: str
    most: float
    binds: object = lambda job: True


def amount(limit, job, now, start):
    """What a running job uses of a limit; one that would start now has start == now."""
    if limit.quantity == "jobs":
        return 1
    if limit.quantity == "procs":
        return job.procs
    if limit.quantity == "spent-seconds":
        return job.procs * job.requested
    assert limit.quantity == "run-seconds"
    return job.procs * max(0, start + job.requested - now)


class Machine:
    def __init__(self, processors, limits):
        self.processors = processors
        self.limits = limits
        self.running = []  # (job, start)
        self.spent = {}  # (place of a limit, scope) -> processor-seconds of jobs that ended

    @property
    def idle(self):
        return self.processors - sum(job.procs for job, _ in self.running)

    def allowed(self, job, now):
        for at, limit in enumerate(self.limits):
            scope = limit.scope(job)
            if scope is None or not limit.binds(job):
                continue
            mine = [entry for entry in self.running if limit.scope(entry[0]) == scope]
            use = sum(amount(limit, other, now, start) for other, start in mine)
            if limit.quantity == "spent-seconds":
                use += self.spent.get((at, scope), 0)
            if use + amount(limit, job, now, now) > limit.most:
                return False
        return True

    def end(self, job, start, now):
        self.running.remove((job, start))
        for at, limit in enumerate(self.limits):
            place = at, limit.scope(job)
            self.spent[place] = self.spent.get(place, 0) + job.procs * (now - start)


def one_pass(machine, queue, now, policy):
    """Start jobs; return those that started."""
    started, at = [], 0

    def start(job):
        machine.running.append((job, now))
        started.append(job)

    while at < len(queue):
        job = queue[at]
        if machine.allowed(job, now):
            if job.procs > machine.idle:
                break
            start(job)
        at += 1
    if policy == "fcfs" or at == len(queue):
        return started
    head = queue[at]
    ends = sorted((max(now, begin + job.requested), job.procs) for job, begin in machine.running)
    idle, shadow = machine.idle, math.inf
    for end, procs in ends:
        idle += procs
        if idle >= head.procs:
            shadow = end
            break
    extra = machine.idle + sum(procs for end, procs in ends if end <= shadow) - head.procs
    for job in queue[at + 1 :]:
        in_time = now + job.requested <= shadow
        if job.procs <= machine.idle and (in_time or job.procs <= extra) and machine.allowed(job, now):
            start(job)
            if not in_time:
                extra -= job.procs
    return started


def next_instant(machine, queue, now, event):
    """The next event, or the first whole second before it at which a job is no longer over a limit."""
    last = math.ceil(event)
    if any(limit.quantity == "run-seconds" for limit in machine.limits):
        for job in [job for job in queue if not machine.allowed(job, now)]:
            seconds = range(math.floor(now) + 1, last)  # until the event the use only falls
            last = seconds.start + bisect_left(seconds, True, key=lambda time: machine.allowed(job, time))
    return event if last == math.ceil(event) else last


def schedule(jobs, processors, limits, policy, submitted=None):
    """Return {job id: start}; None for a job that is rejected at its submission or never starts.

    `submitted` is a `Limit` of ``jobs`` that may wait or run; a job beyond it is rejected.
    """
    machine, queue, result, now = Machine(processors, limits), [], {}, 0
    coming = sorted(jobs, key=lambda job: job.submit)[::-1]
    while coming or machine.running:
        ends = [start + job.actual for job, start in machine.running]
        now = next_instant(machine, queue, now, min(ends + [job.submit for job in coming[-1:]]))
        for job, start in [entry for entry in machine.running if entry[1] + entry[0].actual <= now]:
            machine.end(job, start, now)
        while coming and coming[-1].submit <= now:
            job = coming.pop()
            present = [*queue, *(other for other, _ in machine.running)]
            if submitted is not None:
                mine = submitted.scope(job)
                if mine is not None and sum(submitted.scope(o) == mine for o in present) >= submitted.most:
                    result[job.id] = None
                    continue
            queue.append(job)
        for job in one_pass(machine, queue, now, policy):
            queue.remove(job)
            result[job.id] = now
    result.update({job.id: None for job in queue})
    return result
