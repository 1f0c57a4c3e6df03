"""The reservations of EASY: a run is played again, and the shadow time of each first job is noted.

EASY computes a shadow time only where a job could pass the first one, and guarantees nothing, so a run does
not record it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.schedule.policies.easy import Easy
from simsched.schedule.policies.limited import Limited
from simsched.schedule.policies.registry import naming_policy
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of

if TYPE_CHECKING:
    from simsched.graph.cluster import Cluster
    from simsched.schedule.pass_context import PassContext
    from simsched.workload.job import Workload


class ReservedStart(NamedTuple):
    """The first reservation of a job: when it was made, and the start that it gives (s)."""

    made: float
    start: float


class ReservedStarts(NamedTuple):
    """The reservations by the id of the job, and the starts of all jobs of the run that was played."""

    reserved: dict[str, ReservedStart]
    starts: dict[str, float]


class _Watch:
    """Notes the first reservation of each job."""

    def __init__(self, easy: Easy) -> None:
        self._extra = easy.options.extra
        self.found: dict[int, ReservedStart] = {}

    def __call__(self, job: int, context: PassContext) -> None:
        if job not in self.found:
            shadow = context.supply.shadow(job, extra=self._extra, fixed=False)
            self.found[job] = ReservedStart(context.now, shadow.time(context.supply))


def reserved_starts(
    cluster: Cluster, workload: Workload, until: float | None = None, **options: Any
) -> ReservedStarts:
    """Return the first reservation of each job that was first in a queue under EASY and did not fit.

    `options` are fields of `RunConfig`; errors are those of `simulate`.
    """
    config = make_config(**options).on_clock(workload.clock)
    engine, _, played = engine_of(cluster, workload, config, allocations=False)
    watches = []
    for group in engine.queues:
        policy = group.policy.inner if isinstance(group.policy, Limited) else group.policy
        if isinstance(policy, Easy) and policy.options.reservation != "none":
            policy.watch = _Watch(policy)
            watches.append(policy.watch)
    with naming_policy(config.queue_policy):
        engine.run(until=until)
    names = [str(job.id) for job in played.jobs]
    found = {names[job]: start for watch in watches for job, start in watch.found.items()}
    return ReservedStarts(found, dict(zip(names, engine.recorder.start, strict=True)))
