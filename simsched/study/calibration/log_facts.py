"""Facts of a log about the machine and its users: those that decide which settings are worth a try."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

LEAST_SHOWN = 600.0
"""Seconds of wait from which a job that fits shows that idle cores were not available."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Facts of a log and of the machine; those of waits are of the training time alone.

    Attributes
    ----------
    targets : number of execution targets, `ranks` their ranks in ascending order, and `cores` their cores.
    largest : the share of the machine that the largest job needs, at most 1.
    queues : queue → mean recorded wait of its training jobs (s); empty unless every job has a queue.
    users : number of users.
    urgencies : number of different urgencies.
    overruns : number of jobs that ran beyond their limit.
    limits : number of jobs with a limit.
    user_jobs, user_cores : jobs and cores of a user in use after each start of a training job, sorted.
    idle : the share of the machine that stayed idle although a waiting job fitted it, in the training time.
    begin, end : the first and the last submission (s).
    """

    targets: int
    ranks: tuple[int, ...]
    largest: float
    queues: Mapping[str, float]
    users: int
    urgencies: int
    overruns: int
    limits: int
    cores: int
    user_jobs: Sequence[int]
    user_cores: Sequence[int]
    idle: float
    begin: float
    end: float

    @classmethod
    def of(cls, cluster: Cluster, jobs: Sequence[Job], training: Sequence[Job]) -> LogFacts:
        """Return the facts of a log on a machine."""
        index = cluster.index
        cores = index.totals.get("core") or len(index)
        limited = [job for job in jobs if job.duration is not None]
        return cls(
            len(index),
            tuple(sorted(index.ordinal_of_rank)),
            min(1.0, max((job.procs or 0 for job in jobs), default=0) / cores),
            _waits_of_queues(training) if all(job.queue for job in jobs) else {},
            len({job.user for job in jobs if job.user is not None}),
            len({job.urgency for job in jobs}),
            sum((job.runtime or 0) > (job.duration or 0) for job in limited),
            len(limited),
            cores,
            *_use_by_user(training),
            _idle_share(training, cores),
            min((job.submit for job in jobs), default=0.0),
            max((job.submit for job in jobs), default=0.0),
        )


def _waits_of_queues(jobs: Sequence[Job]) -> dict[str, float]:
    waits: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        if job.queue is not None:
            waits[job.queue].append(job.wait or 0)
    return {name: sum(found) / len(found) for name, found in sorted(waits.items())}


def _use_by_user(jobs: Sequence[Job]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the running jobs of its user after each recorded start, and their cores, both sorted."""
    events: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for job in jobs:
        if job.user is not None and job.wait is not None and job.runtime:
            start, cores = job.submit + job.wait, job.procs or 0
            events[job.user] += [(start, 1, cores), (start + job.runtime, -1, -cores)]
    numbers, units = [], []
    for changes in events.values():
        number = used = 0
        for _, change, cores in sorted(changes):  # at one instant ends come before starts
            number, used = number + change, used + cores
            if change > 0:
                numbers.append(number)
                units.append(used)
    return sorted(numbers), sorted(units)


def _idle_share(jobs: Sequence[Job], cores: int) -> float:
    """Return the median share of the cores that were idle while a job that fitted them waited; 0 if rare.

    It is taken over the hours of the training time.  A job of n cores that waits while m of them are idle
    shows that at least m - n + 1 were not available.  Waits of less than ten minutes show nothing.
    """
    known = [job for job in jobs if job.wait is not None and job.procs]
    if not known:
        return 0.0
    hours = _hours(min(job.submit for job in known), max(job.submit for job in known))
    starts = np.array([job.submit + (job.wait or 0) for job in known])
    ends = starts + np.array([job.runtime or 0 for job in known])
    procs = np.array([job.procs or 0 for job in known], dtype=np.int64)
    begun, ended = np.argsort(starts), np.argsort(ends)
    used = _sum_until(starts[begun], procs[begun], hours) - _sum_until(ends[ended], procs[ended], hours)
    least = np.full(len(hours), cores + 1, dtype=np.int64)
    for job in known:
        wait = job.wait or 0
        if wait > LEAST_SHOWN:
            first, last = np.searchsorted(hours, [job.submit + LEAST_SHOWN, job.submit + wait])
            least[first:last] = np.minimum(least[first:last], job.procs or 0)
    missing = np.maximum(cores - used - least + 1, 0)[least <= cores]
    return float(np.median(missing)) / cores if len(missing) else 0.0


def _hours(begin: float, end: float) -> Floats:
    return np.arange(begin, end, 3600.0)


def _sum_until(times: Floats, values: Integers, at: Floats) -> Integers:
    """Return the sum of the values up to each time; `times` are sorted."""
    sums = np.concatenate([[0], np.cumsum(values)])
    found: Integers = sums[np.searchsorted(times, at, side="right")]
    return found
