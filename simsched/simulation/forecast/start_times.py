"""When would each waiting job start, as of a time?  What ``squeue --start`` is asked for.

The run is played up to that time (`live` goes on from a picture of a real cluster instead).
Then every waiting job, in queue order, gets the earliest start that the requested durations of
what runs and what waits before it allow: nobody ends early, nobody new comes.  A job that holds a
reservation under a policy that keeps its promises gets the start of that reservation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.policies.limited import Limited
from simsched.schedule.policies.registry import naming_policy
from simsched.schedule.profiles.gap import NEVER
from simsched.simulation.checkpoint.checkpoint import read_snapshot, restore_run
from simsched.simulation.simulate import engine_of, identity_of, make_config, refuse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from simsched.graph.cluster import Cluster
    from simsched.simulation.engine import Engine, Lane
    from simsched.workload.job import Workload


NO_END = "waits for what has no known end: a job without a limit, or nodes that are down"


@dataclass(frozen=True, slots=True)
class Forecast:
    """One waiting job: its place in the queue, and its predicted start (inf: nobody knows).

    The first place is 1; a job that starts at this very instant, or is not in the queue, has none.
    `reason` says why nobody knows when it starts.
    """

    id: str
    user: str | None
    queue: str | None
    place: int | None
    submit: float
    duration: float
    shape: str
    start: float
    reason: str | None = None


def forecast(cluster: Cluster, workload: Workload, at: float, **options: Any) -> list[Forecast]:
    """Return the predicted start of every job that waits for resources at time `at` (seconds).

    `options` are fields of `RunConfig`, and `resume`, a snapshot to play from.

    Raises
    ------
    ConfigError
        For an option that does not exist, or a time before the snapshot's.
    FormatError, RunError
        For what is no snapshot, or one of another run.
    """
    return forecast_at(cluster, workload, at, **options)[1]


def forecast_at(
    cluster: Cluster,
    workload: Workload,
    at: float | None,
    *,
    resume: str | Path | None = None,
    progress: Callable[[Engine], None] | None = None,
    **options: Any,
) -> tuple[float, list[Forecast]]:
    """Return the time, by default that of the snapshot, and the forecasts then; errors as `forecast`.

    `progress` is called every few thousand passes, as by `simulate`.
    """
    config = make_config(**options)
    engine, _, played = engine_of(cluster, workload, config, allocations=False)
    engine.progress = progress
    if resume is not None:
        head = read_snapshot(resume)
        restore_run(engine, head, identity_of(cluster, played, config, ()), where=str(resume))
        at = head.time if at is None else at
        refuse_time(at, head.time, None, "a forecast")
    if at is None:
        raise ConfigError("no time was given", expected="a time, or a snapshot")
    with naming_policy(config.queue_policy):
        engine.run(until=at)
    return at, forecast_queue(engine, played, at)


def forecast_queue(engine: Engine, workload: Workload, at: float) -> list[Forecast]:
    """Return the forecasts of all that wait for resources in an engine that came to the time `at`."""
    return [found for lane in engine.lanes for found in _lane(engine, lane, workload, at)]


def forecast_of(
    engine: Engine,
    workload: Workload,
    number: int,
    start: float,
    *,
    place: int | None = None,
    reason: str | None = None,
) -> Forecast:
    """Return the forecast of one job by its number."""
    job = workload.jobs[number]
    return Forecast(
        str(job.id),
        job.user,
        job.queue,
        place,
        job.submit,
        engine.prepared.table.durations[number],
        job.jobspec.to_shape(),
        start,
        reason,
    )


def _lane(engine: Engine, lane: Lane, workload: Workload, at: float) -> Iterator[Forecast]:
    context = lane.context
    context.open(at)
    keeps = lane.policy.inner if isinstance(lane.policy, Limited) else lane.policy
    starts = keeps.starts if isinstance(keeps, Conservative) else {}
    profile = keeps.profile(context) if isinstance(keeps, Conservative) else context.supply.profile()
    for place, number in enumerate(lane.waiting, start=1):
        start = starts.get(number)
        if start is None:
            gap = profile.earliest(number)
            start = gap.start
            if start != NEVER:
                profile.reserve(number, gap)
        reason = None if start != NEVER else NO_END
        yield forecast_of(engine, workload, number, start, place=place, reason=reason)
