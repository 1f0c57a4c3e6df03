"""The predicted start of each waiting job as of a time, as ``squeue --start`` gives it.

The run is played up to that time (`live_cluster` continues from the queue of a real cluster instead).
Then every waiting job, in queue order, gets the earliest start that the requested durations of
running jobs and of waiting jobs before it allow, if no job ends early and no job is submitted.  A
job with a reservation under a policy that keeps reservations gets the start of that reservation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.policies.limited import Limited
from simsched.schedule.policies.registry import naming_policy
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER
from simsched.simulation.checkpoint.checkpoint import identity_of, read_checkpoint, restore_run
from simsched.simulation.forecast.past_forecasts import ForecastSampler
from simsched.simulation.options.dated_times import time_of_run
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of, refuse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from simsched.formats.rfc.clock import DateText
    from simsched.graph.cluster import Cluster
    from simsched.simulation.engine import Engine
    from simsched.simulation.forecast.past_forecasts import PastForecasts
    from simsched.simulation.queue_groups import QueueGroup
    from simsched.workload.job import Workload


NO_END = "waits for what has no known end: a job without a limit, or nodes that are down"

BEHIND = "waits behind a job that is over a limit"


@dataclass(frozen=True, slots=True)
class Forecast:
    """One waiting job: its place in the queue, and its predicted start (inf if it is unknown).

    The first place is 1; a job that starts at this very instant, or is not in the queue, has None.
    `reason` is why the start is unknown.  `size` is in cores, and `quantiles` are starts that errors of
    past forecasts lead to (see `forecast_quantiles`).
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
    size: float | None = None
    quantiles: tuple[float, ...] = ()


def forecast(cluster: Cluster, workload: Workload, at: float, **options: Any) -> list[Forecast]:
    """Return the predicted start of every job that waits for resources at time `at` (seconds).

    `options` are fields of `RunConfig`, and `resume`, a checkpoint to resume from.

    Raises
    ------
    ConfigError
        For an option that does not exist, or a time before the checkpoint's.
    FormatError, RunError
        For a file that is not a checkpoint, or one of another run.
    """
    return forecast_at(cluster, workload, at, **options)[1]


def forecast_at(
    cluster: Cluster,
    workload: Workload,
    at: float | str | DateText | None,
    *,
    resume: str | Path | None = None,
    progress: Callable[[Engine], None] | None = None,
    **options: Any,
) -> tuple[float, list[Forecast]]:
    """Return the time, by default that of the checkpoint, and the forecasts then; errors as `forecast`.

    `progress` is called every few hundred passes, as by `simulate`.
    """
    config = make_config(**options).on_clock(workload.clock)
    at = time_of_run(at, workload, "at")
    engine, _, played = engine_of(cluster, workload, config, allocations=False)
    engine.on_report = progress
    if resume is not None:
        head = read_checkpoint(resume)
        restore_run(engine, head, identity_of(cluster, config, played), where=str(resume))
        at = head.time if at is None else at
        refuse_time(at, head.time, None, "a forecast")
    if at is None:
        raise ConfigError("no time was given", expected="a time, or a checkpoint")
    with naming_policy(config.queue_policy):
        engine.run(until=at)
    return at, forecast_queue(engine, played, at)


def started_at(cluster: Cluster, workload: Workload, number: int, until: float, **options: Any) -> float:
    """Return when a run up to a time (seconds) starts one of its jobs, or NaN; arguments as `forecast`."""
    config = make_config(**options).on_clock(workload.clock)
    engine, _, _ = engine_of(cluster, workload, config, allocations=False)
    with naming_policy(config.queue_policy):
        engine.run(until=until)
    return engine.recorder.start[number]


def forecast_with_past(
    cluster: Cluster,
    workload: Workload,
    at: float | str | DateText | None = None,
    *,
    progress: Callable[[Engine], None] | None = None,
    **options: Any,
) -> tuple[float, list[Forecast], PastForecasts]:
    """Return the time, the forecasts then, and forecasts of earlier times beside the real starts.

    Without a time the whole workload is played, and no job waits at the end.  Arguments and errors are
    those of `forecast_at`.
    """
    config = make_config(**options).on_clock(workload.clock)
    at = time_of_run(at, workload, "at")
    engine, _, played = engine_of(cluster, workload, config, allocations=False)
    engine.on_report = progress
    begin, last = workload.span
    sampler = ForecastSampler(engine, begin, last if at is None else at)
    with naming_policy(config.queue_policy):
        engine.run(until=at)
    past = sampler.found()
    return engine.now, forecast_queue(engine, played, engine.now), past


def forecast_queue(engine: Engine, workload: Workload, at: float) -> list[Forecast]:
    """Return the forecasts of all jobs that wait for resources in an engine that came to the time `at`."""
    return [found for group in engine.queues for found in _of_group(engine, group, workload, at)]


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
        engine.prepared.sizes[number],
    )


def _of_group(engine: Engine, group: QueueGroup, workload: Workload, at: float) -> Iterator[Forecast]:
    context = group.context
    context.open(at)
    keeps = group.policy.inner if isinstance(group.policy, Limited) else group.policy
    starts = keeps.starts if isinstance(keeps, Conservative) else {}
    profile = keeps.profile(context) if isinstance(keeps, Conservative) else context.supply.ahead()
    for place, number in enumerate(group.queue, start=1):
        start = starts.get(number)
        if start is None:
            start = profile.earliest(number)
            if start != NEVER:
                profile.reserve(number, start)
        if start <= end_of(at, 0):  # behind a job that overruns, which counts as ended
            start = at
        reason = None if start != NEVER else NO_END
        yield forecast_of(engine, workload, number, start, place=place, reason=reason)
    limits = engine.queues.limits
    if limits is not None:
        for number in sorted(group.queue.barred):
            reason = limits.reason_of(number) or BEHIND
            yield forecast_of(engine, workload, number, NEVER, reason=reason)
