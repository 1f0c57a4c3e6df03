"""EASY with one pass an event, as two public simulators do it, written from the rules they follow.

Plain lists and a heap; nothing is shared with simsched or with those programs.  Both keep one
number, the processors, and make a pass over the queue after every single event.

* pyss: at one instant submissions come before ends, and processors count as free from the
  expected end of who holds them on.  A candidate is judged by its requested time.
* CQSim: at one instant ends come before submissions.  The shadow time follows from requested
  times; a candidate is judged by the time it will really take.
"""

from __future__ import annotations

import heapq
from collections import namedtuple

SUBMIT, END = "submit", "end"
Kind = namedtuple("Kind", "order judged due_is_free")
PYSS = Kind({SUBMIT: 0, END: 1}, lambda job: job.requested, due_is_free=True)
CQSIM = Kind({END: 0, SUBMIT: 1}, lambda job: job.actual, due_is_free=False)


def schedule(jobs, processors, kind):
    """{job id: start} of jobs that all fit, in order of submission."""
    events = [(job.submit, kind.order[SUBMIT], number, SUBMIT, job) for number, job in enumerate(jobs)]
    heapq.heapify(events)
    queue, running, starts = [], {}, {}
    while events:
        now, _, _, what, job = heapq.heappop(events)
        if what == SUBMIT:
            queue.append(job)
        else:
            del running[job.id]
        for begun in one_pass(now, queue, running, processors, kind):
            starts[begun.id] = now
            serial = len(jobs) + len(starts)
            heapq.heappush(events, (now + begun.actual, kind.order[END], serial, END, begun))
    return starts


def one_pass(now, queue, running, processors, kind):
    """Start what may start: `queue` and `running` ({id: (job, expected end)}) change."""
    begun = []

    def start(job):
        queue.remove(job)
        running[job.id] = (job, now + job.requested)
        begun.append(job)

    def free():
        held = running.values()
        return processors - sum(j.copies for j, end in held if end > now or not kind.due_is_free)

    while queue and queue[0].copies <= free():
        start(queue[0])
    if queue:
        shadow, extra = reservation(now, queue[0], free(), running, kind)
        for job in queue[1:]:
            in_time = now + kind.judged(job) <= shadow
            if job.copies <= free() and (in_time or job.copies <= extra):
                extra -= 0 if in_time else job.copies
                start(job)
    return begun


def reservation(now, head, free, running, kind):
    """When the head could start, and how many processors are then left over."""
    held = sorted((max(end, now), job.copies) for job, end in running.values())
    if kind.due_is_free:
        held = [(end, copies) for end, copies in held if end > now]
    for at, (end, copies) in enumerate(held):
        free += copies
        last_of_its_time = at + 1 == len(held) or held[at + 1][0] > end
        if free >= head.copies and last_of_its_time:
            return end, free - head.copies
    raise AssertionError("the head never fits")
