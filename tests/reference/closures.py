"""EASY and Slurm's two schedulers around maintenance and drains, on partitions that may overlap.

As `naive`, it is written from the rules alone, shares nothing with simsched, and computes everything from
scratch: a machine is a list of nodes (cores, gpus), a job asks for copies of a slot.

* Maintenance is announced with its end: no job runs into it, and its nodes are back at its end, also once it
  has begun. The end of a drain is not known: while it lasts, its nodes are never back.
* Slurm's main scheduler: in order (priority of the partition, then arrival). A job that does not fit blocks
  its partition and takes the nodes of it from all jobs behind it, unless it is younger than `min_age`; but at
  any age if its partition has fewer nodes left than the job needs at least.
* Slurm's backfill: at most once per interval and after a change, in order, with whole-node reservations whose
  ends are rounded up. The counters are those of the pass, over all partitions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tests.reference.naive import both, give, place, take


class Running(NamedTuple):
    """A running job; its nodes take `clean` seconds behind its end, which no plan knows beforehand."""

    job: object
    start: float
    claim: list
    clean: float

    @property
    def end(self):
        return self.start + self.job.actual + self.clean

    def expected_end(self, now):
        end = self.start + self.job.requested
        return end if end > now else math.nextafter(now, math.inf)


class Outage(NamedTuple):
    nodes: frozenset
    start: float
    end: float
    announced: bool


class Options(NamedTuple):
    interval: float = 30
    window: float = 86_400
    resolution: float = 60
    max_job_test: float = math.inf
    max_job_start: float = math.inf
    max_job_user: float = math.inf
    max_job_part: float = math.inf
    min_age: float = 0


class Submitted(NamedTuple):
    """A job of `naive` with its user, the nodes of its partition, and the priority of that."""

    job: object
    user: int = 0
    partition: int = 0


class Machine(NamedTuple):
    nodes: list
    outages: tuple = ()
    partitions: tuple = ()  # (priority, nodes)
    options: Options = Options()
    clean: float = 0  # seconds that nodes clean up behind each job

    def closed(self, now, begin, end):
        """The nodes that a job from `begin` to `end` may not use, as it is known now."""
        found = set()
        for outage in self.outages:
            if outage.announced:
                if outage.start < end and begin < outage.end:
                    found |= outage.nodes
            elif outage.start <= now < outage.end:
                found |= outage.nodes
        return found

    def down(self, now):
        return {node for outage in self.outages if outage.start <= now < outage.end for node in outage.nodes}

    def own(self, one):
        return set(self.partitions[one.partition][1]) if self.partitions else set(range(len(self.nodes)))


def only(free, nodes):
    return [each if number in nodes else (0, 0) for number, each in enumerate(free)]


def at_time(free, running, now, time):
    for r in running:
        if r.expected_end(now) <= time:
            free = give(free, r.claim)
    return free


def fit(machine, now, one, free, nodes, begin=None):
    """A claim on some of the nodes from a time on, or None."""
    begin = now if begin is None else begin
    closed = machine.closed(now, begin, begin + one.job.requested)
    return place(only(free, nodes - closed), one.job)


def earliest(machine, now, one, running, free, booked=()):
    """The earliest start beside running jobs, closures and whole-node reservations, with a claim."""
    own = machine.own(one)
    times = {now, *(r.expected_end(now) for r in running), *(end for _, end, _ in booked)}
    times |= {outage.end for outage in machine.outages if outage.announced and outage.end > now}
    for time in sorted(times):
        end = time + one.job.requested
        taken = {node for begin, until, nodes in booked if begin < end and time < until for node in nodes}
        then = at_time(free, running, now, time)
        claim = fit(machine, now, one, then, own - taken, time)
        if claim is not None:
            return time, claim, take(then, claim)
    return math.inf, None, None


def easy(machine, now, queue, running, free):
    starts, running, queue = [], list(running), list(queue)

    def start(one, claim):
        nonlocal free
        starts.append((one, claim))
        running.append(Running(one.job, now, claim, machine.clean))
        free = take(free, claim)

    while queue and (claim := fit(machine, now, queue[0], free, machine.own(queue[0]))) is not None:
        start(queue.pop(0), claim)
    if not queue:
        return starts
    head = queue.pop(0)
    shadow, _, beside = earliest(machine, now, head, running, free)
    for one in queue:
        own = machine.own(one)
        tries = [free] if beside is None else [free, both(free, beside)]
        for units in tries:
            claim = fit(machine, now, one, units, own)
            if claim is None:
                continue
            then = [*running, Running(one.job, now, claim, machine.clean)]
            if earliest(machine, now, head, then, take(free, claim))[0] <= shadow:
                start(one, claim)
                beside = earliest(machine, now, head, running, free)[2]
                break
    return starts


class Slurm:
    def __init__(self, machine):
        self.machine, self.last, self.due = machine, -math.inf, False
        self.since = {}

    def __call__(self, now, queue, running, free, changed):
        machine, options = self.machine, self.machine.options
        for one in queue:
            self.since.setdefault(one.job.id, now)
        order = sorted(
            queue, key=lambda one: -machine.partitions[one.partition][0] if machine.partitions else 0
        )
        starts, running = [], list(running)
        self.due = self.due or changed
        if changed:
            blocked, gone = set(), set()
            for one in order:
                if one.partition in blocked:
                    continue
                left = machine.own(one) - gone
                claim = fit(machine, now, one, free, left)
                if claim is not None:
                    starts.append((one, claim))
                    running.append(Running(one.job, now, claim, machine.clean))
                    free = take(free, claim)
                    continue
                short = not left - machine.down(now)
                if now - self.since[one.job.id] >= options.min_age or short:
                    blocked.add(one.partition)
                    gone |= machine.own(one)
        if self.due and now >= self.last + options.interval:
            self.last, number = now, 0
            tested, users, parts, booked = 0, {}, {}, []
            done = [one for one, _ in starts]
            for one in [each for each in order if each not in done]:
                if tested >= options.max_job_test:
                    break
                if users.get(one.user, 0) >= options.max_job_user:
                    continue
                if parts.get(one.partition, 0) >= options.max_job_part:
                    continue
                users[one.user] = users.get(one.user, 0) + 1
                parts[one.partition] = parts.get(one.partition, 0) + 1
                tested += 1
                time, claim, _ = earliest(machine, now, one, running, free, booked)
                if time == now:
                    starts.append((one, claim))
                    running.append(Running(one.job, now, claim, machine.clean))
                    free = take(free, claim)
                    number += 1
                    if number == options.max_job_start:
                        break
                elif time <= now + options.window and now - self.since[one.job.id] >= options.min_age:
                    end = math.ceil((time + one.job.requested) / options.resolution) * options.resolution
                    booked.append((time, end, {node for node, _, _ in claim}))
            self.due = number > 0
        return starts, self.last + options.interval if self.due else math.inf


def schedule(jobs, machine, policy):
    """Return {job id: start}, with None for jobs that never start; jobs in the order of their submits."""
    free, queue, running, result = list(machine.nodes), [], [], {one.job.id: None for one in jobs}
    slurm, wake = Slurm(machine), math.inf
    coming = list(jobs)
    borders = sorted({time for outage in machine.outages for time in (outage.start, outage.end)})
    while True:
        times = [r.end for r in running] + [one.job.submit for one in coming[:1]] + borders[:1] + [wake]
        now = min(times)
        if now == math.inf:
            return result
        changed = False
        for r in [r for r in running if r.end <= now]:
            running.remove(r)
            free, changed = give(free, r.claim), True
        while borders and borders[0] <= now:
            borders.pop(0)
            changed = True
        while coming and coming[0].job.submit <= now:
            queue.append(coming.pop(0))
            changed = True
        if not queue:  # nothing is looked at without waiting jobs, so the interval does not begin
            wake = math.inf
            continue
        if policy == "slurm":
            starts, wake = slurm(now, queue, running, free, changed)
        else:
            starts, wake = easy(machine, now, queue, running, free), math.inf
        for one, claim in starts:
            queue.remove(one)
            free = take(free, claim)
            running.append(Running(one.job, now, claim, machine.clean))
            result[one.job.id] = now
