"""Facts of a log about the machine and its users: those that decide which settings are worth a try."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Job


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Facts of a log and of the machine; those of waits are of the training time alone.

    Attributes
    ----------
    targets : number of execution targets, and `ranks` their ranks in ascending order.
    largest : the share of the machine that the largest job needs, at most 1.
    queues : queue → mean recorded wait of its training jobs (s); empty unless every job has a queue.
    users : number of users.
    urgencies : number of different urgencies.
    overruns : number of jobs that ran beyond their limit.
    limits : number of jobs with a limit.
    """

    targets: int
    ranks: tuple[int, ...]
    largest: float
    queues: Mapping[str, float]
    users: int
    urgencies: int
    overruns: int
    limits: int

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
        )


def _waits_of_queues(jobs: Sequence[Job]) -> dict[str, float]:
    waits: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        if job.queue is not None:
            waits[job.queue].append(job.wait or 0)
    return {name: sum(found) / len(found) for name, found in sorted(waits.items())}
