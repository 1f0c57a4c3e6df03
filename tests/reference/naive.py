"""A deliberately naive batch scheduler: plain lists, no clock, nothing shared with simsched.

It is the oracle of ``tests/simulation/test_against_naive.py``.  Everything is written as the
definition reads, and recomputed from scratch each time; slow is fine, clever is not.

A machine is a list of nodes, each a pair (cores, gpus).  A job asks for `copies` slots of
`cores` cores and `gpus` gpus; a slot lies within one node and slots may share one.  The flat
machine of the archive's traces is one node with all the processors.

The rules:

* At one instant all ends come first, then all submissions, then one pass over the queue.
* A job whose run time exceeds its duration is ended at its duration, unless it `overruns`;
  an expected end that has passed counts as now.
* FCFS starts jobs in order and stops at the first that does not fit.
* EASY does the same, then lets a later job start if it fits now and leaves the head's earliest
  start, computed from requested durations, where it is.
* Conservative gives every queued job, in order, the earliest start that moves no earlier job's.
"""

from __future__ import annotations

import gzip
import math
from typing import NamedTuple


class Job(NamedTuple):
    """One rigid job; `requested` seconds may be infinite."""

    id: int
    submit: float
    runtime: float
    requested: float
    copies: int
    cores: int = 1
    gpus: int = 0
    overruns: bool = False  # runs on beyond its duration

    @property
    def actual(self):
        return self.runtime if self.overruns else min(self.runtime, self.requested)


class Running(NamedTuple):
    job: Job
    start: float
    claim: list

    @property
    def end(self):
        return self.start + self.job.actual

    def expected_end(self, now):
        return max(now, self.start + self.job.requested)


def read_swf(path, limit=None):
    """Read a trace: (jobs, number of records that never ran).  18 columns, -1 is absent, ';' is header."""
    jobs, dropped = [], 0
    with gzip.open(path, "rt", encoding="latin-1") as lines:
        for line in lines:
            fields = line.split(";")[0].split()
            if not fields:
                continue
            number, submit, _wait, runtime, allocated, _cpu, _mem, processors, requested = fields[:9]
            status = int(fields[10])
            copies = int(processors) if int(processors) > 0 else int(allocated)
            never_started = status == 5 and int(runtime) <= 0
            if copies <= 0 or int(runtime) < 0 or never_started or status in (2, 3, 4):
                dropped += 1
                continue
            duration = int(requested) if int(requested) > 0 else math.inf
            jobs.append(Job(int(number), int(submit), int(runtime), duration, copies))
            if len(jobs) == limit:
                break
    return jobs, dropped


# --- the machine ---------------------------------------------------------------------------------


def place(free, job):
    """First fit in node order: a list of (node, cores, gpus), or None.  `free` is not changed."""
    claim, left = [], job.copies
    for number, (cores, gpus) in enumerate(free):
        here = 0
        while here < left and (here + 1) * job.cores <= cores and (here + 1) * job.gpus <= gpus:
            here += 1
        if here:
            claim.append((number, here * job.cores, here * job.gpus))
            left -= here
        if left == 0:
            return claim
    return None


def take(free, claim):
    """What is free after `claim` is taken."""
    free = list(free)
    for number, cores, gpus in claim:
        free[number] = (free[number][0] - cores, free[number][1] - gpus)
        assert min(free[number]) >= 0, "the naive scheduler booked twice"
    return free


def give(free, claim):
    """What is free after `claim` is given back."""
    return take(free, [(number, -cores, -gpus) for number, cores, gpus in claim])


# --- policies: (now, queue, running, free) -> [(job, claim)] to start now, in order --------------------


def fcfs(now, queue, running, free):
    starts = []
    for job in queue:
        claim = place(free, job)
        if claim is None:
            break
        starts.append((job, claim))
        free = take(free, claim)
    return starts


def earliest_start(now, job, running, free):
    """When `job` would start if nothing else came and running jobs ended as requested; what is left then."""
    for time in sorted({now} | {r.expected_end(now) for r in running}):
        then = free
        for r in running:
            if r.expected_end(now) <= time:
                then = give(then, r.claim)
        claim = place(then, job)
        if claim is not None:
            return time, take(then, claim)
    raise AssertionError("an infeasible job was queued")


def easy(now, queue, running, free):
    """EASY by its definition: try each candidate and look whether the head's earliest start moved."""
    starts = fcfs(now, queue, running, free)
    running = list(running)
    for job, claim in starts:
        running.append(Running(job, now, claim))
        free = take(free, claim)
    blocked = queue[len(starts) :]
    if not blocked:
        return starts
    head = blocked[0]
    shadow, beside = earliest_start(now, head, running, free)
    for job in blocked[1:]:
        for claim in (place(free, job), place(both(free, beside), job)):
            if claim is None:
                continue
            then, left = [*running, Running(job, now, claim)], take(free, claim)
            if earliest_start(now, head, then, left)[0] <= shadow:
                starts.append((job, claim))
                running, free = then, left
                shadow, beside = earliest_start(now, head, running, free)
                break
    return starts


def both(free, beside):
    """What of each node is free now and left beside the head's reservation."""
    return [(min(a, c), min(b, d)) for (a, b), (c, d) in zip(free, beside, strict=True)]


def textbook_easy(now, queue, running, free):
    """EASY as the textbook counts it, on a machine of one node: shadow time and extra processors."""
    ((idle, _),) = free
    starts, queue, held = [], list(queue), [(r.expected_end(now), r.job.copies) for r in running]

    def start(job):
        nonlocal idle
        idle -= job.copies
        held.append((now + job.requested, job.copies))
        starts.append((job, [(0, job.copies, 0)]))

    while queue and queue[0].copies <= idle:
        start(queue.pop(0))
    if not queue:
        return starts
    head, available = queue.pop(0), idle
    for end, copies in sorted(held):
        available += copies
        if available >= head.copies:
            shadow = end
            break
    extra = idle + sum(copies for end, copies in held if end <= shadow) - head.copies
    for job in queue:
        ends_in_time = now + job.requested <= shadow
        if job.copies <= idle and (ends_in_time or job.copies <= extra):
            start(job)
            if not ends_in_time:
                extra -= job.copies
    return starts


def conservative(now, queue, running, free):
    """Conservative, on a machine of one node: every job in order takes the earliest hole."""
    ((idle, _),) = free
    capacity = idle + sum(r.job.copies for r in running)
    booked = [(now, r.expected_end(now), r.job.copies) for r in running]
    starts = []
    for job in queue:
        for time in sorted({now} | {end for _, end, _ in booked}):
            if fits_in_hole(booked, capacity - job.copies, time, time + job.requested):
                break
        booked.append((time, until(time, job.requested), job.copies))
        # Overrunning jobs are expected to end now and hold their processors all the same.
        if time == now and job.copies <= idle:
            idle -= job.copies
            starts.append((job, [(0, job.copies, 0)]))
    return starts


def until(begin, seconds):
    """Zero seconds are a moment at which the processors are needed, not none."""
    return max(begin + seconds, math.nextafter(begin, math.inf))


def fits_in_hole(booked, most, begin, end):
    """Whether at most `most` processors are booked at every moment of [begin, end)."""
    moments = {begin} | {b for b, _, _ in booked if begin < b < end}
    return all(sum(n for b, e, n in booked if b <= moment < e) <= most for moment in moments)


def textbook_conservative(now, queue, running, free):
    """Conservative as the textbook draws it: each job takes its part of a staircase."""
    ((idle, _),) = free
    stairs = [[now, idle]]
    for end, copies in sorted((r.expected_end(now), r.job.copies) for r in running):
        if end > stairs[-1][0]:
            stairs.append([end, stairs[-1][1]])
        stairs[-1][1] += copies
    starts = []
    for job in queue:
        first = next(at for at in range(len(stairs)) if stays_free(stairs, at, job))
        begin, end = stairs[first][0], until(stairs[first][0], job.requested)
        last = first
        while last < len(stairs) and stairs[last][0] < end:
            last += 1
        if last == len(stairs) or stairs[last][0] > end:
            stairs.insert(last, [end, stairs[last - 1][1]])
        for step in stairs[first:last]:
            step[1] -= job.copies
        # Overrunning jobs are expected to end now and hold their processors all the same.
        if begin == now and job.copies <= idle:
            idle -= job.copies
            starts.append((job, [(0, job.copies, 0)]))
    return starts


def stays_free(stairs, at, job):
    """Whether the job's processors are free for its time from a step on."""
    end = until(stairs[at][0], job.requested)
    while at < len(stairs) and stairs[at][0] < end:
        if stairs[at][1] < job.copies:
            return False
        at += 1
    return True


POLICIES = {
    "fcfs": fcfs,
    "easy": easy,
    "textbook-easy": textbook_easy,
    "conservative": conservative,
    "textbook-conservative": textbook_conservative,
}


# --- the loop ----------------------------------------------------------------------------------------


def schedule(jobs, nodes, policy):
    """Return {job id: (start, end)}, with None for a job that the idle machine could not hold."""
    decide = POLICIES[policy]
    free, queue, running, result = list(nodes), [], [], {}
    coming = sorted(jobs, key=lambda job: job.submit)
    coming.reverse()
    while coming or running:
        now = min([r.end for r in running] + [job.submit for job in coming[-1:]])
        for r in [r for r in running if r.end <= now]:
            running.remove(r)
            free = give(free, r.claim)
        while coming and coming[-1].submit <= now:
            job = coming.pop()
            if place(nodes, job) is None:
                result[job.id] = None
            else:
                queue.append(job)
        for job, claim in decide(now, queue, running, free):
            queue.remove(job)
            free = take(free, claim)
            running.append(Running(job, now, claim))
            result[job.id] = (now, running[-1].end)
    assert not queue, "jobs were left in the queue of an idle machine"
    return result
