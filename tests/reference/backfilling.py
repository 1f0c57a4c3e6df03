"""A naive batch scheduler for variations of backfilling: plain lists, nothing shared with simsched.

It is the oracle of ``tests/simulation/test_against_backfilling.py``. The machine is a number of processors.
Everything is recomputed from scratch in each pass, as the definitions read:

* At one instant all ends come first (a predictor learns from them), then all submissions (a job is predicted
  when it is submitted), then corrections of predictions that are too short, then one pass.
* EASY with a predictor plans by the predicted ends; a job that still runs at its predicted end gets
  1 min, then 5 min, 15, 30 min, 1, 2, 5, 10, 20, 50 and 100 h more, at most up to its limit.
* EASY-SJBF tries the jobs behind the first in the order of their (predicted) durations.
* Conservative keeps the planned start of each job and moves it only earlier, when a job ended early.
  Selective plans only jobs whose expansion factor has reached a threshold; the others, in their own order,
  start if they delay no planned job. With slack, a job may start if all others, planned again in order
  behind it, start no later than their first planned start plus slack.
* Limits (a scope of jobs, a quantity, the most of it) keep a job out of the queue that the policy sees while
  its start would exceed one. They are asked again before each start of a pass. A job that becomes over a
  limit within a pass keeps its place in the plan until the end of that pass.
* Slurm has a main scheduler that starts in order, and a backfill at intervals that plans each job anew, with
  reservations that end at multiples of a resolution. A job that does not fit takes the processors of its
  partition, here all, from the jobs behind it, unless it is younger than an age (see `planning` for
  partitions and nodes).
"""

from __future__ import annotations

import math
from typing import NamedTuple

STEPS = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


class Job(NamedTuple):
    """One rigid job; `limit` seconds may be infinite."""

    id: int
    submit: float
    runtime: float
    limit: float
    size: int
    user: int = 0
    queue: int = 0
    array: int = 0
    urgency: int = 16
    deadline: float = math.inf

    @property
    def actual(self):
        return min(self.runtime, self.limit)


# --- predictors: (past run times of the user, job) -> seconds, None for the limit ---


def by_limit(_past, _job):
    return None


def last_two(past, _job):
    return math.floor((past[-1] + past[-2]) / 2) if len(past) > 1 else None


def perfect(_past, job):
    return job.actual


def nine_tenths(past, _job):
    """The ninth of the last ten, smallest first; of fewer the one that 90 % do not exceed."""
    recent = sorted(past[-10:])
    if not recent:
        return None
    return next(value for at, value in enumerate(recent, 1) if at * 10 >= 9 * len(recent))


PREDICTORS = {"limit": by_limit, "last-two": last_two, "perfect": perfect, "quantile": nine_tenths}


# --- orders: (job, seconds by which plans are made, now) -> key, the least first ---


def capped(seconds):
    return min(max(seconds, 1.0), 3.2e9)


def logged(job):
    return math.log10(max(job.submit, 1.0))


ORDERS = {
    "fifo": lambda job, seconds, now: job.submit,
    "lifo": lambda job, seconds, now: -job.submit,
    "sjf": lambda job, seconds, now: seconds,
    "ljf": lambda job, seconds, now: -seconds,
    "smallest-size": lambda job, seconds, now: job.size,
    "largest-size": lambda job, seconds, now: -job.size,
    "priority": lambda job, seconds, now: 0,
    "edf": lambda job, seconds, now: job.deadline,
    "smallest-area": lambda job, seconds, now: seconds * job.size,
    "largest-area": lambda job, seconds, now: -seconds * job.size,
    "f1": lambda job, seconds, now: math.log10(capped(seconds)) * job.size + 870 * logged(job),
    "f2": lambda job, seconds, now: math.sqrt(capped(seconds)) * job.size + 25600 * logged(job),
    "f3": lambda job, seconds, now: capped(seconds) * job.size + 6860000 * logged(job),
    "f4": lambda job, seconds, now: capped(seconds) * math.sqrt(job.size) + 530000 * logged(job),
    "lxf": lambda job, seconds, now: -((now - job.submit) / capped(seconds)),
    "wfp3": lambda job, seconds, now: -(((now - job.submit) / capped(seconds)) ** 3) * job.size,
    "unicef": lambda job, seconds, now: -(now - job.submit) / (math.log2(job.size + 1) * capped(seconds)),
}


def starving(name, most):
    """Jobs that have waited for more than a time come first, by submission."""
    return lambda job, seconds, now: -math.inf if now - job.submit > most else ORDERS[name](job, seconds, now)


ORDERS["starving(sjf, 10m)"] = starving("sjf", 600)


def in_order(name, jobs, seconds, now):
    """Jobs by key, then urgency, submission and their place in the workload; `seconds` of each job."""
    key = name if callable(name) else ORDERS[name]
    return sorted(jobs, key=lambda job: (key(job, seconds(job), now), -job.urgency, job.submit, job.id))


# --- limits ---


class Limit(NamedTuple):
    """At most `most` of a quantity for the running jobs with one scope; None as a scope is not counted.

    `quantity` is ``jobs``, ``processors`` or ``ahead``: processor-seconds that running jobs may still use.
    """

    scope: object
    quantity: str
    most: float

    def amount(self, job, start, now):
        if self.quantity == "ahead":
            return job.size * max(0, start + job.limit - now)
        return job.size if self.quantity == "processors" else 1


# --- the state of a run ---


class Machine:
    """The processors, the running jobs, the waiting jobs, and what is known of their run times."""

    def __init__(self, processors, predictor="limit", limits=()):
        self.limits = limits
        self.free = processors
        self.now = 0
        self.queue = []
        self.running = {}  # job → (start, actual end, expected end)
        self.started = {}
        name, _, rule = predictor.rstrip(")").partition("(")
        self.predictor = PREDICTORS[name]
        self.rule = rule
        self.past = {}
        self.use, self.use_at = ({}, {}), 0  # decayed use by user and by bank, and the time of it
        self.planned = {}  # job → seconds by which plans are made
        self.corrected = {}
        self.changed = True  # since the policy last ran
        self.early = False  # a job ended early since the policy last ran

    def submit(self, job):
        self.changed = self.changed or self.allows(job)
        found = self.predictor(self.past.get(job.user, []), job)
        self.planned[job] = job.limit if found is None else min(max(found, 1), job.limit)
        self.queue.append(job)

    def allows(self, job):
        """Whether no limit is exceeded if a job starts now."""
        for limit in self.limits:
            scope = limit.scope(job)
            if scope is None:
                continue
            others = [(other, start) for other, (start, _, _) in self.running.items()]
            use = sum(limit.amount(o, start, self.now) for o, start in others if limit.scope(o) == scope)
            if use + limit.amount(job, self.now, self.now) > limit.most:
                return False
        return True

    @property
    def waiting(self):
        """The jobs that a policy sees."""
        return [job for job in self.queue if self.allows(job)] if self.limits else self.queue

    def start(self, job):
        assert job.size <= self.free
        assert self.allows(job)
        self.free -= job.size
        self.queue.remove(job)
        self.started[job.id] = self.now
        self.running[job] = (self.now, self.now + job.actual, self.now + self.planned[job])

    def end_jobs(self):
        for job, (start, end, expected) in list(self.running.items()):
            if end == self.now:
                self.changed = True
                self.early = self.early or end < expected
                del self.running[job]
                self.free += job.size
                self.past.setdefault(job.user, []).append(self.now - start)
                self.charge(job, self.now - start)

    def charge(self, job, seconds):
        """Use decays by half in a week; a job counts for its user, and for its bank, one of three."""
        fall = 0.5 ** ((self.now - self.use_at) / (7 * 86400))
        self.use_at = self.now
        for use, name in zip(self.use, (job.user, job.user % 3), strict=True):
            for other in use:
                use[other] *= fall
            use[name] = use.get(name, 0) + job.size * seconds

    def shares(self):
        """The order by the shares of bank and user in the use of all."""
        users, banks = self.use
        of_users, of_banks = sum(users.values()) or 1, sum(banks.values()) or 1
        return lambda job, seconds, now: (
            banks.get(job.user % 3, 0) / of_banks + users.get(job.user, 0) / of_users
        )

    def correct(self):
        for job, (start, end, expected) in self.running.items():
            if expected == self.now and self.now < end and expected < start + job.limit:
                times = self.corrected.get(job, 0)
                self.corrected[job] = times + 1
                self.changed = True
                more = STEPS[min(times, len(STEPS) - 1)]
                if self.rule:
                    more = {"doubling": expected - start, "limit": math.inf}[self.rule]
                self.running[job] = (start, end, min(expected + more, start + job.limit))

    def times(self):
        """When something happens by itself: ends and predicted ends."""
        for _, end, expected in self.running.values():
            yield end
            if self.now < expected < end:
                yield expected

    def ends(self):
        """(expected end, size) of the running jobs, the earliest first; a past one counts as now."""
        return sorted((max(expected, self.now), job.size) for job, (_, _, expected) in self.running.items())


# --- EASY ---


class Easy:
    """Shadow time and extra processors, with an order of the queue and one of the candidates."""

    def __init__(self, order="fifo", candidates=None, starvation=math.inf):
        self.order, self.candidates, self.starvation = order, candidates, starvation

    def run(self, machine):
        queue = in_order(self.order, machine.waiting, lambda job: job.limit, machine.now)
        while queue and (queue[0].size <= machine.free or not machine.allows(queue[0])):
            job = queue.pop(0)
            if machine.allows(job):
                machine.start(job)
        if not queue:
            return
        first, rest = queue[0], queue[1:]
        if machine.now - first.submit > self.starvation:
            return
        free, shadow = machine.free, None
        for end, size in machine.ends():
            if shadow is not None and end > shadow:
                break
            free += size
            if shadow is None and free >= first.size:
                shadow = end
        extra = free - first.size if shadow is not None else math.inf
        shadow = math.inf if shadow is None else shadow
        if self.candidates is not None:
            rest = in_order(self.candidates, rest, machine.planned.__getitem__, machine.now)
        for job in rest:
            ends_in_time = machine.now + machine.planned[job] <= shadow
            if job.size <= machine.free and (ends_in_time or job.size <= extra) and machine.allows(job):
                machine.start(job)
                extra -= 0 if ends_in_time else job.size


class FairShare(Easy):
    """EASY in the order of past use."""

    def run(self, machine):
        self.order = machine.shares()
        super().run(machine)


# --- plans ---


def until(begin, seconds):
    """Zero seconds are a moment at which the processors are needed."""
    return max(begin + seconds, math.nextafter(begin, math.inf))


def staircase(machine, planned):
    """[[time, free from then on]] beside the running jobs and the planned (begin, end, size)."""
    changes = {machine.now: machine.free}
    for end, size in machine.ends():
        changes[end] = changes.get(end, 0) + size
    for begin, end, size in planned:
        changes[max(begin, machine.now)] = changes.get(max(begin, machine.now), 0) - size
        changes[end] = changes.get(end, 0) + size
    steps, free = [], 0
    for time in sorted(changes):
        free += changes[time]
        steps.append([time, free])
    return steps


def earliest(steps, size, seconds):
    """The first time from which the processors are free for some seconds; inf: never."""
    begin = None
    for time, free in steps:
        if begin is not None and until(begin, seconds) <= time:
            return begin
        if free < size:
            begin = None
        elif begin is None:
            begin = time
    return math.inf if begin is None else begin


class Promises:
    """Conservative backfilling: planned starts that only move earlier."""

    def __init__(self, threshold=1.0, candidates=None, depth=math.inf):
        self.threshold, self.candidates, self.depth = threshold, candidates, depth
        self.plan = {}

    @property
    def wake(self):
        return min(self.plan.values(), default=math.inf)

    def planned(self, machine, but=None):
        return [
            (start, until(start, machine.planned[job]), job.size)
            for job, start in self.plan.items()
            if job is not but
        ]

    def selects(self, machine, job):
        seconds = max(machine.planned[job], 1)
        factor = 1 if seconds == math.inf else (machine.now - job.submit + seconds) / seconds
        return len(self.plan) < self.depth and factor >= self.threshold

    def turns(self, machine):
        queue, left = (
            in_order("fifo", machine.waiting, lambda job: 0, machine.now),
            self.depth - len(self.plan),
        )
        first, rest = [], []
        for job in queue:
            if job in self.plan:
                first.append(job)
            elif left > 0 and self.selects(machine, job):
                left -= 1
                first.append(job)
            else:
                rest.append(job)
        if self.candidates is not None:
            rest = in_order(self.candidates, rest, machine.planned.__getitem__, machine.now)
        return first + rest if self.candidates is not None or self.threshold > 1 else queue

    def begin(self, machine, job):
        if job.size <= machine.free and machine.allows(job):
            del self.plan[job]
            machine.start(job)

    def run(self, machine):
        early, machine.early = machine.early, False
        for job in self.turns(machine):
            if not machine.allows(job):
                continue
            known = self.plan.get(job, math.inf)
            if known == math.inf or (known > machine.now and early):
                steps = staircase(machine, self.planned(machine, but=job))
                start = earliest(steps, job.size, machine.planned[job])
                assert start <= known
                if job in self.plan or self.selects(machine, job):
                    if start < math.inf:
                        self.plan[job] = start
                        self.first_planned(machine, job, start)
                elif start == machine.now:
                    self.plan[job] = start
            if self.plan.get(job, math.inf) <= machine.now:
                self.begin(machine, job)
        for job in [job for job, start in self.plan.items() if start <= until(machine.now, 0)]:
            self.begin(machine, job)

    def first_planned(self, machine, job, start):
        pass


class Slack(Promises):
    """A job may be delayed up to its first planned start plus a factor times its duration."""

    def __init__(self, factor):
        super().__init__()
        self.factor, self.latest = factor, {}

    def first_planned(self, machine, job, start):
        if job not in self.latest:
            self.latest[job] = start + (self.factor * machine.planned[job] if self.factor else 0)

    def run(self, machine):
        super().run(machine)
        changed, machine.changed = machine.changed, False
        if not changed:
            return
        for job in in_order("fifo", machine.waiting, lambda job: 0, machine.now):
            if job in machine.waiting and self.plan.get(job, 0) > machine.now and job.size <= machine.free:
                self.first(machine, job)

    def first(self, machine, job):
        plan = {job: machine.now}
        taken = [(machine.now, until(machine.now, machine.planned[job]), job.size)]
        for other in in_order("fifo", self.plan, lambda job: 0, machine.now):
            if other is job:
                continue
            start = earliest(staircase(machine, taken), other.size, machine.planned[other])
            if start > self.latest[other]:
                return
            plan[other] = start
            taken.append((start, until(start, machine.planned[other]), other.size))
        self.plan = plan
        self.begin(machine, job)
        for other in [other for other, start in self.plan.items() if start <= machine.now]:
            self.begin(machine, other)


# --- Slurm ---


class Slurm:
    """The main scheduler after each change, and backfill at most once per interval."""

    def __init__(self, interval=30, pause=0, window=86400, resolution=60, **bounds):
        self.interval, self.pause, self.window, self.resolution = interval, pause, window, resolution
        self.bounds = bounds
        self.main = self.fill = -math.inf
        self.main_due = self.fill_due = False

    @property
    def wake(self):
        return min(
            self.main + self.pause if self.main_due else math.inf,
            self.fill + self.interval if self.fill_due else math.inf,
        )

    def run(self, machine):
        if not machine.waiting:
            return
        if machine.changed:
            self.main_due = self.fill_due = True
        machine.changed = False
        if self.main_due and machine.now >= self.main + self.pause:
            self.main, self.main_due = machine.now, False
            self.start_in_order(machine)
        if self.fill_due and machine.now >= self.fill + self.interval:
            self.fill, self.fill_due = machine.now, self.backfill(machine) > 0

    def start_in_order(self, machine):
        for job in in_order("fifo", machine.waiting, lambda job: 0, machine.now):
            if not machine.allows(job):
                continue
            if job.size <= machine.free:
                machine.start(job)
            elif machine.now - job.submit >= self.bounds.get("age", 0):
                break

    def tested(self, machine):
        users, queues, found = {}, {}, []
        for job in in_order("fifo", machine.waiting, lambda job: 0, machine.now):
            if users.get(job.user, 0) >= self.bounds.get("user", math.inf):
                continue
            if queues.get(job.queue, 0) >= self.bounds.get("part", math.inf):
                continue
            users[job.user] = users.get(job.user, 0) + 1
            queues[job.queue] = queues.get(job.queue, 0) + 1
            found.append(job)
        return found[: self.bounds.get("test", len(found))]

    def backfill(self, machine):
        planned, started = [], 0
        for job in self.tested(machine):
            if started >= self.bounds.get("start", math.inf):
                break
            if not machine.allows(job):
                continue
            steps = staircase(machine, planned)
            start = earliest(steps, job.size, machine.planned[job])
            if start == machine.now and job.size <= machine.free:
                machine.start(job)
                started += 1
                continue
            old = machine.now - job.submit >= self.bounds.get("age", 0)
            if (
                old
                and len(planned) < self.bounds.get("depth", math.inf)
                and start <= machine.now + self.window
            ):
                end = until(start, machine.planned[job])
                if self.resolution and end < math.inf:
                    end = max(math.ceil(end / self.resolution) * self.resolution, end)
                planned.append((start, end, job.size))
        return started


# --- the loop ---


def falls(machine, event):
    """The first whole second before an event at which a job is no longer over a limit, or the event."""
    if any(limit.quantity == "ahead" for limit in machine.limits):
        over, now = [job for job in machine.queue if not machine.allows(job)], machine.now
        for machine.now in range(math.floor(now) + 1, math.ceil(event)):
            if any(map(machine.allows, over)):
                machine.changed = True
                return machine.now
        machine.now = now
    return event


def schedule(jobs, processors, policy, predictor="limit", limits=()):
    """Return {job id: start} of the jobs that fit on the machine."""
    machine = Machine(processors, predictor, limits)
    coming = sorted(jobs, key=lambda job: job.submit)
    coming.reverse()
    while True:
        wake = getattr(policy, "wake", math.inf)
        times = [*machine.times(), *(job.submit for job in coming[-1:])]
        if wake < math.inf and machine.waiting:
            times.append(max(wake, machine.now))
        if not times:
            break
        machine.now = falls(machine, min(times))
        machine.end_jobs()
        while coming and coming[-1].submit == machine.now:
            job = coming.pop()
            if job.size <= processors:
                machine.submit(job)
        machine.correct()
        seen = set(machine.waiting)
        policy.run(machine)
        if {job for job in seen if job in machine.queue} - set(machine.waiting):
            machine.changed = True
        if hasattr(policy, "plan"):
            policy.plan = {job: start for job, start in policy.plan.items() if machine.allows(job)}
        if hasattr(policy, "latest"):
            policy.latest = {job: time for job, time in policy.latest.items() if job in machine.waiting}
    assert not machine.queue, "jobs were left in the queue of an idle machine"
    return machine.started
