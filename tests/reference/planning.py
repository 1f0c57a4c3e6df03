"""Backfilling and Slurm's two schedulers on a machine of nodes, from the definitions alone.

Nothing is shared with simsched, and everything is computed from scratch in each pass.

* A machine is the units of each type on each node. One unit more stands for "this node is used": a copy of a
  job takes one of many, and a copy that takes its node as a whole takes them all.
* A job asks for copies of a demand, on some nodes, at most `most` on one node.
* Free at a time: the capacity, less the running jobs until their expected ends, less the reservations. Less
  than nothing counts as nothing. A job of zero seconds needs its units for a moment.
* A job fits at s if the sum over its nodes of the least copies within [s, s + requested) suffices. It takes
  the first nodes with copies. Its earliest start is the first such s: now, or when units come free.
* Announced maintenance takes all of some nodes from its start until its end, also once it has begun.
  Reservations may move at both. The end of a drain is not known: while it lasts, its nodes are never back.
* Behind the end of a job its nodes may clean up for some seconds, which no plan knows beforehand.
* At one instant all ends come first, then all submissions, then one pass.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from typing import NamedTuple

import numpy as np

ALL = 1 << 20
"""The units of the last type: a copy takes one of a node, a whole node takes all."""


class Job(NamedTuple):
    """One job; `nodes` are the numbers of the nodes on which it may run."""

    id: int
    submit: float
    runtime: float
    requested: float
    copies: int
    need: tuple
    nodes: tuple
    most: int = ALL
    user: int = 0
    partition: int = 0

    @property
    def actual(self):
        return min(self.runtime, self.requested)


class Place(NamedTuple):
    """A start, and the copies on each node."""

    start: float
    copies: tuple


class Told(NamedTuple):
    """The start that a job was promised first, its start, and its copies on each node."""

    promised: float
    start: float
    copies: tuple


def demand(units, types, *, whole=False):
    """The need of a copy: `units` by type, or a whole node."""
    return (*(0 if whole else units.get(name, 0) for name in types), ALL if whole else 1)


def capacity(nodes):
    """The capacity of nodes, each given as its units."""
    return np.array([[*units, ALL] for units in nodes], dtype=np.int64)


def moment_after(time):
    return math.nextafter(time, math.inf)


def end_of(begin, seconds):
    return max(begin + seconds, moment_after(begin))


class Machine(NamedTuple):
    """The units of nodes, maintenance and drains as (nodes, start, end), and the seconds of cleaning up."""

    units: np.ndarray
    closed: tuple = ()
    drains: tuple = ()
    clean: float = 0

    def known(self, now):
        """The machine as it is known now: drains that last have no end."""
        last = tuple((nodes, start, math.inf) for nodes, start, end in self.drains if start <= now < end)
        return self._replace(closed=(*self.closed, *last), drains=())


class Free:
    """The free units of each node from each time on."""

    def __init__(self, machine, now, running):
        """`running` are (job, expected end, copies); an end that has passed is a moment after now."""
        self.times, self.rows = [now], [machine.units.copy()]
        for nodes, start, end in machine.closed:
            self.shut([node in nodes for node in range(len(machine.units))], start, end)
        for job, end, copies in running:
            self.take(job, now, max(end, moment_after(now)), copies)

    def step(self, time):
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self.rows.insert(at, self.rows[at - 1].copy())
        return at

    def take(self, job, begin, end, copies, sign=-1):
        begin = max(begin, self.times[0])
        if end <= begin:
            return
        first, behind = self.step(begin), self.step(end) if end < math.inf else len(self.rows)
        units = sign * np.outer(copies, job.need)
        for at in range(first, behind):
            self.rows[at] += units

    def shut(self, nodes, begin, end):
        """Take all of some nodes, given as a truth value for each node."""
        whole = Job(None, 0, 0, 0, 1, (0,) * (self.rows[0].shape[1] - 1) + (ALL,), ())
        self.take(whole, begin, end, np.array(nodes, dtype=np.int64))

    def reserve(self, job, place, sign=-1):
        self.take(job, place.start, end_of(place.start, job.requested), place.copies, sign)

    def copies(self, job, first, behind):
        """How many copies each node hosts within some steps."""
        least = np.minimum.reduce(self.rows[first:behind])
        need = np.array(job.need)
        some = need > 0
        hosts = np.clip((least[:, some] // need[some]).min(axis=1), 0, job.most)
        mine = np.zeros_like(hosts)
        mine[list(job.nodes)] = hosts[list(job.nodes)]
        return mine

    def earliest(self, job, before=math.inf):
        """The first place that begins before a time, or None."""
        for first, start in enumerate(self.times):
            if start >= before:
                return None
            behind = bisect_left(self.times, end_of(start, job.requested))
            upto = np.cumsum(self.copies(job, first, behind))
            if upto[-1] >= job.copies:
                taken = np.diff(np.minimum(upto, job.copies), prepend=0)
                return Place(start, tuple(taken.tolist()))
        return None

    def now(self, job):
        """The place that begins now, or None."""
        return self.earliest(job, moment_after(self.times[0]))


class Conservative:
    """Reservations that only move earlier (Mu'alem & Feitelson 2001); with a `depth`, of that many jobs.

    `compress` is the order in which waiting jobs are tried again after an early end.
    """

    def __init__(self, compress="queue", depth=math.inf):
        self.compress, self.depth = compress, depth
        self.plan = {}

    @property
    def wake(self):
        return min((place.start for place in self.plan.values()), default=math.inf)

    def selects(self, job, now):
        """Whether a job without a reservation may get one."""
        return len(self.plan) < self.depth

    def turns(self, waiting, now):
        if self.compress == "start":
            return sorted(waiting, key=lambda job: self.plan[job].start if job in self.plan else math.inf)
        return waiting

    def __call__(self, nodes, now, waiting, running, *, early, changed):
        """Return [(job, place)] to start now, and {job: start} of the promises of this pass."""
        free = Free(nodes, now, running)
        for job, place in self.plan.items():
            free.reserve(job, place)
        starts, promises = [], {}
        for job in self.turns(waiting, now):
            mine = self.plan.get(job)
            if mine is None:
                found = free.earliest(job) if self.selects(job, now) else free.now(job)
                if found is None:
                    continue
                if self.selects(job, now):
                    promises[job] = found.start
                self.plan[job] = found
                free.reserve(job, found)
            elif mine.start > now and early and self.compress != "none":
                free.reserve(job, mine, 1)
                self.plan[job] = free.earliest(job, before=mine.start) or mine
                free.reserve(job, self.plan[job])
            if self.plan[job].start <= now:
                starts.append(self.begin(free, job))
        # Behind a job of zero seconds, a moment after now is due once that job has ended.
        for job in [job for job, place in self.plan.items() if place.start <= moment_after(now)]:
            mine = self.begin(free, job)
            if mine is not None:
                starts.append(mine)
        return starts, promises

    def begin(self, free, job):
        """Place a job that is due again, since more may be free than was expected, and start it."""
        mine = self.plan[job]
        free.reserve(job, mine, 1)
        found = free.now(job)
        if found is None:
            assert mine.start > free.times[0], "a promise is broken"
            free.reserve(job, mine)
            return None
        free.reserve(job, found)
        del self.plan[job]
        return job, found


class Selective(Conservative):
    """Reservations for jobs whose expansion factor has reached a threshold (Srinivasan et al. 2002)."""

    def __init__(self, threshold, compress="queue"):
        super().__init__(compress)
        self.threshold = threshold

    def selects(self, job, now):
        seconds = max(job.requested, 1)
        factor = 1 if seconds == math.inf else (now - job.submit + seconds) / seconds
        return factor >= self.threshold

    def turns(self, waiting, now):
        jobs = super().turns(waiting, now)
        return sorted(jobs, key=lambda job: job not in self.plan and not self.selects(job, now))


class Slack(Conservative):
    """A job may start if the others, planned again in order, begin by their latest starts (Talby 1999)."""

    def __init__(self, factor, compress="queue"):
        super().__init__(compress)
        self.factor, self.latest = factor, {}

    def __call__(self, nodes, now, waiting, running, *, early, changed):
        starts, planned = super().__call__(nodes, now, waiting, running, early=early, changed=changed)
        promises = {}
        for job, start in planned.items():
            if job not in self.latest:
                slack = self.factor * job.requested if self.factor else 0
                self.latest[job] = start + slack
                if start + slack < math.inf:
                    promises[job] = start + slack
        running = running + [(job, end_of(now, job.requested), place.copies) for job, place in starts]
        for job in waiting if changed else ():
            if job in self.plan and self.plan[job].start > now:
                trial, place = Free(nodes, now, running), None
                place = trial.now(job)
                plan = None if place is None else self.behind(trial, waiting, job, place)
                if plan is not None:
                    self.plan = plan
                    due = [job] + [
                        other for other, place in plan.items() if place.start <= now and other != job
                    ]
                    for other in due:
                        starts.append((other, plan.pop(other)))
                        running.append((other, end_of(now, other.requested), starts[-1][1].copies))
        return starts, promises

    def behind(self, free, waiting, job, place):
        """The plan with a job first and the others in order; None if one begins after its latest start."""
        plan = {job: place}
        free.reserve(job, place)
        for other in waiting:
            if other != job and other in self.plan:
                found = free.earliest(other)
                if found is None or found.start > self.latest[other]:
                    return None
                plan[other] = found
                free.reserve(other, found)
        return plan


class Easy:
    """A later job may start if the first keeps its earliest start (Lifka 1995)."""

    wake = math.inf

    def __init__(self):
        self.closed = ()

    def __call__(self, nodes, now, waiting, running, *, early, changed):
        starts, running, waiting = [], list(running), list(waiting)
        self.closed = nodes.closed

        def start(job, place):
            starts.append((job, place))
            running.append((job, end_of(now, job.requested), place.copies))

        while waiting:
            place = Free(nodes, now, running).now(waiting[0])
            if place is None:
                break
            start(waiting.pop(0), place)
        if not waiting:
            return starts, {}
        first = waiting.pop(0)
        free = Free(nodes, now, running)
        shadow = free.earliest(first)  # None: nothing is known to end in time, and every job may pass
        for job in waiting:
            for place in (free.now(job), shadow and self.beside(free, first, shadow, job)):
                if place is None:
                    continue
                trial = Free(nodes, now, [*running, (job, end_of(now, job.requested), place.copies)])
                again = trial.earliest(first)
                if shadow is None or (again is not None and again.start <= shadow.start):
                    start(job, place)
                    free, shadow = trial, again
                    break
        return starts, {}

    def beside(self, free, first, shadow, job):
        """Where a job fits now on the units that the first job leaves free at its shadow time."""
        then = free.rows[bisect_left(free.times, shadow.start)] - np.outer(shadow.copies, first.need)
        left = Free(Machine(np.minimum(free.rows[0], then), self.closed), free.times[0], [])
        return left.now(job)


class Options(NamedTuple):
    """The options of Slurm's schedulers, as its manual names them; times in seconds."""

    interval: float = 30
    window: float = 86_400
    resolution: float = 60
    max_job_test: float = math.inf
    max_job_start: float = math.inf
    max_job_user: float = math.inf
    max_job_part: float = math.inf
    min_age: float = 0


class Slurm:
    """The main scheduler after a change, and backfill after a change and at most once per interval.

    Both go through the jobs by the priority of their partitions, and then as these wait.

    * Main: a job that does not fit blocks its partition and takes the nodes of it from all jobs behind it,
      unless it is younger than `min_age`; but at any age if its partition has fewer nodes left than the job
      needs at least.
    * Backfill: each tested job starts if its earliest start is now. Else, if that is within the window, its
      nodes are reserved as a whole until its end, rounded up. The counters are over all partitions.

    `partitions` are (priority, nodes); without any, all jobs are in one of all nodes. If a reservation is not
    `whole`, a unit is a node: it takes the units of the job.
    """

    def __init__(self, options=None, partitions=(), *, whole=True):
        self.options, self.partitions, self.whole = options or Options(), partitions, whole
        self.last, self.due, self.since = -math.inf, False, {}

    @property
    def wake(self):
        return self.last + self.options.interval if self.due else math.inf

    def __call__(self, nodes, now, waiting, running, *, early, changed):
        if not waiting:  # nothing is looked at, so the interval does not begin
            self.due = False
            return [], {}
        free, starts = Free(nodes, now, running), []
        for job in waiting:
            self.since.setdefault(job, now)
        if self.partitions:
            waiting = sorted(waiting, key=lambda job: -self.partitions[job.partition][0])

        def start(job, place):
            starts.append((job, place))
            free.reserve(job, place)

        if changed:
            self.due = True
            self.main(nodes, now, waiting, free, start)
        if self.due and now >= self.last + self.options.interval:
            self.last, before = now, len(starts)
            done = {job for job, _ in starts}
            self.backfill(now, [job for job in waiting if job not in done], free, start)
            self.due = len(starts) > before
        return starts, {}

    def young(self, job, now):
        return now - self.since[job] < self.options.min_age

    def main(self, nodes, now, waiting, free, start):
        down = {node for some, begin, end in nodes.closed if begin <= now < end for node in some}
        blocked, gone = set(), set()
        for job in waiting:
            if job.partition in blocked:
                continue
            place = free.now(job._replace(nodes=tuple(set(job.nodes) - gone)))
            if place is not None:
                start(job, place)
                continue
            own = set(self.partitions[job.partition][1] if self.partitions else range(len(nodes.units)))
            least = job.copies if job.most == 1 else 1
            if not self.young(job, now) or len(own - gone - down) < least:
                blocked.add(job.partition)
                gone |= own

    def backfill(self, now, waiting, free, start):
        options, tested, users, parts, started = self.options, 0, Counter(), Counter(), 0
        for job in waiting:
            if tested == options.max_job_test or started == options.max_job_start:
                break
            if users[job.user] >= options.max_job_user or parts[job.partition] >= options.max_job_part:
                continue
            users[job.user] += 1
            parts[job.partition] += 1
            tested += 1
            latest = now if self.young(job, now) else now + options.window
            place = free.earliest(job, moment_after(latest))
            if place is None:
                continue
            if place.start == now:
                start(job, place)
                started += 1
            elif not self.young(job, now):
                end = end_of(place.start, job.requested)
                if end < math.inf:
                    end = math.ceil(end / options.resolution) * options.resolution
                if self.whole:
                    free.shut(np.array(place.copies) > 0, place.start, end)
                else:
                    free.take(job, place.start, end, place.copies)


def schedule(jobs, nodes, policy):
    """Return {job id: Told}, None for a job that the idle machine cannot host."""
    idle = Machine(nodes.units)
    borders = sorted({time for _, *both in (*nodes.closed, *nodes.drains) for time in both})
    result, promised = {}, {}
    coming = sorted(jobs, key=lambda job: job.submit)
    waiting, running, ends = [], [], {}
    while coming or running or waiting:
        now = min([policy.wake, *ends.values(), *(job.submit for job in coming[:1]), *borders[:1]])
        if now == math.inf:  # what still waits never starts
            return result | dict.fromkeys((job.id for job in waiting), None)
        ended = [one for one in running if ends[one[0]] <= now]
        running = [one for one in running if ends[one[0]] > now]
        border = borders[:1] == [now]
        early = border or any(end > now for _, end, _ in ended)
        changed = border or bool(ended)
        del borders[:border]
        for job, _, _ in ended:
            del ends[job]
        while coming and coming[0].submit <= now:
            job = coming.pop(0)
            if Free(idle, now, []).now(job) is None:
                result[job.id] = None
            else:
                waiting.append(job)
                changed = True
        known = nodes.known(now)
        starts, promises = policy(known, now, waiting, running, early=early, changed=changed)
        for job, start in promises.items():
            promised.setdefault(job, start)
        for job, place in starts:
            waiting.remove(job)
            running.append((job, now + job.requested, place.copies))
            ends[job] = now + job.actual + nodes.clean
            result[job.id] = Told(promised.get(job, math.nan), now, place.copies)
    return result
