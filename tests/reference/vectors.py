"""A simple batch scheduler for jobs that need several kinds of units at once, from the definition alone.

The machine and each job are vectors of counts.  At an instant all ends come first, then all submissions,
then one pass in the order of submission.  FCFS stops at the first job of which some kind is short; EASY
reserves for it at the first expected end at which all kinds suffice, and lets a later job start that fits
now and either ends by then or leaves enough of every kind.
"""

from __future__ import annotations

from typing import NamedTuple


class Job(NamedTuple):
    """One job; it runs at most the seconds that it requests."""

    id: int
    submit: int
    runtime: int
    requested: int
    needs: tuple

    @property
    def actual(self):
        return min(self.runtime, self.requested)


def minus(left, needs):
    return tuple(a - b for a, b in zip(left, needs, strict=True))


def plus(left, needs):
    return tuple(a + b for a, b in zip(left, needs, strict=True))


def enough(left, needs):
    return all(a >= b for a, b in zip(left, needs, strict=True))


def schedule(jobs, machine, policy):
    """Return {id: start}."""
    starts, running, queue, to_come = {}, [], [], sorted(jobs, key=lambda job: job.submit)
    while to_come or running:
        ends = [start + job.actual for start, job in running]
        now = min(ends + [job.submit for job in to_come[:1]])
        running = [(start, job) for start, job in running if start + job.actual > now]
        while to_come and to_come[0].submit == now:
            queue.append(to_come.pop(0))
        one_pass(queue, running, machine, now, policy, starts)
    return starts


def left_of(machine, running):
    for _, job in running:
        machine = minus(machine, job.needs)
    return machine


def one_pass(queue, running, machine, now, policy, starts):
    def start(job):
        queue.remove(job)
        running.append((now, job))
        starts[job.id] = now

    while queue and enough(left_of(machine, running), queue[0].needs):
        start(queue[0])
    if policy == "fcfs" or not queue:
        return
    head = queue[0]
    for job in queue[1:]:
        left = left_of(machine, running)
        shadow, there = now, left
        for when, ended in sorted((begun + other.requested, other.needs) for begun, other in running):
            if enough(there, head.needs):
                break
            shadow, there = max(now, when), plus(there, ended)
        there = left  # at the shadow time: every end at that instant counts
        for begun, other in running:
            if begun + other.requested <= shadow:
                there = plus(there, other.needs)
        harmless = now + job.requested <= shadow or enough(minus(there, head.needs), job.needs)
        if enough(left, job.needs) and harmless:
            start(job)
