"""A naive batch scheduler for variations of backfilling: plain lists, nothing shared with simsched.

It is the oracle of ``tests/simulation/test_against_backfilling.py``. The machine is a number of processors.
Everything is recomputed from scratch in each pass, as the definitions read:

* At one instant all ends come first (a predictor learns from them), then all submissions (a job is predicted
  when it is submitted), then corrections of predictions that are too short, then one pass.
* EASY with a predictor plans by the predicted ends; a job that still runs at its predicted end gets
  1 min, then 5 min, 15, 30 min, 1, 2, 5, 10, 20, 50 and 100 h more, at most up to its limit.
* EASY-SJBF tries the jobs behind the first in the order of their (predicted) durations.
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
    "sjf": lambda job, seconds, now: seconds,
    "ljf": lambda job, seconds, now: -seconds,
    "smallest-area": lambda job, seconds, now: seconds * job.size,
    "f1": lambda job, seconds, now: math.log10(capped(seconds)) * job.size + 870 * logged(job),
    "f2": lambda job, seconds, now: math.sqrt(capped(seconds)) * job.size + 25600 * logged(job),
    "f3": lambda job, seconds, now: capped(seconds) * job.size + 6860000 * logged(job),
    "f4": lambda job, seconds, now: capped(seconds) * math.sqrt(job.size) + 530000 * logged(job),
    "lxf": lambda job, seconds, now: -((now - job.submit) / capped(seconds)),
    "wfp3": lambda job, seconds, now: -(((now - job.submit) / capped(seconds)) ** 3) * job.size,
    "unicef": lambda job, seconds, now: -(now - job.submit) / (math.log2(job.size + 1) * capped(seconds)),
}


def in_order(name, jobs, seconds, now):
    """Jobs by key, then submission, then their place in the workload; `seconds` of each job."""
    key = ORDERS[name]
    return sorted(jobs, key=lambda job: (key(job, seconds(job), now), job.submit, job.id))


# --- the state of a run ---


class Machine:
    """The processors, the running jobs, the waiting jobs, and what is known of their run times."""

    def __init__(self, processors, predictor="limit"):
        self.free = processors
        self.now = 0
        self.queue = []
        self.running = {}  # job → (start, actual end, expected end)
        self.started = {}
        self.predictor = PREDICTORS[predictor]
        self.past = {}
        self.planned = {}  # job → seconds by which plans are made
        self.corrected = {}

    def submit(self, job):
        found = self.predictor(self.past.get(job.user, []), job)
        self.planned[job] = job.limit if found is None else min(max(found, 1), job.limit)
        self.queue.append(job)

    def start(self, job):
        assert job.size <= self.free
        self.free -= job.size
        self.queue.remove(job)
        self.started[job.id] = self.now
        self.running[job] = (self.now, self.now + job.actual, self.now + self.planned[job])

    def end_jobs(self):
        for job, (start, end, _) in list(self.running.items()):
            if end == self.now:
                del self.running[job]
                self.free += job.size
                self.past.setdefault(job.user, []).append(self.now - start)

    def correct(self):
        for job, (start, end, expected) in self.running.items():
            if expected == self.now and self.now < end and expected < start + job.limit:
                times = self.corrected.get(job, 0)
                self.corrected[job] = times + 1
                more = STEPS[min(times, len(STEPS) - 1)]
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
        queue = in_order(self.order, machine.queue, lambda job: job.limit, machine.now)
        while queue and queue[0].size <= machine.free:
            machine.start(queue.pop(0))
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
            if job.size <= machine.free and (ends_in_time or job.size <= extra):
                machine.start(job)
                extra -= 0 if ends_in_time else job.size


# --- the loop ---


def schedule(jobs, processors, policy, predictor="limit"):
    """Return {job id: start} of the jobs that fit on the machine."""
    machine = Machine(processors, predictor)
    coming = sorted(jobs, key=lambda job: job.submit)
    coming.reverse()
    while True:
        wake = getattr(policy, "wake", math.inf)
        times = [*machine.times(), *(job.submit for job in coming[-1:])]
        if wake < math.inf and machine.queue:
            times.append(max(wake, machine.now))
        if not times:
            break
        machine.now = min(times)
        machine.end_jobs()
        while coming and coming[-1].submit == machine.now:
            job = coming.pop()
            if job.size <= processors:
                machine.submit(job)
        machine.correct()
        policy.run(machine)
    assert not machine.queue, "jobs were left in the queue of an idle machine"
    return machine.started
