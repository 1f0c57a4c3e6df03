"""The predicted start of each waiting job as of a time, as ``squeue --start`` gives it.

The run is played up to that time (`live_cluster` continues from the queue of a real cluster instead).
Then every waiting job, in queue order, gets the earliest start that the requested durations of
running jobs and of waiting jobs before it allow, if no job ends early and no job is submitted.  A
job with a reservation under a policy that keeps reservations gets the start of that reservation.

The reservations of EASY: a run is played again, and the shadow time of each first job is noted.

EASY computes a shadow time only where a job could pass the first one, and guarantees nothing, so a run does
not record it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NotRequired

from simsched.declare.answers import OrNull, extended
from simsched.errors import ConfigError
from simsched.schedule.policies.easy import Easy
from simsched.schedule.policies.limited import Limited
from simsched.schedule.profiles.gap import NEVER
from simsched.simulation.checkpoint.checkpoint import identity_of, read_checkpoint, restore_run
from simsched.simulation.features import Reports
from simsched.simulation.forecast.past_forecasts import ForecastSampler, predicted
from simsched.simulation.options.dated_times import time_of_run
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of, refuse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from simsched.formats.rfc.clock import DateText
    from simsched.graph.cluster import Cluster
    from simsched.schedule.pass_context import PassContext
    from simsched.simulation.engine import Engine
    from simsched.simulation.forecast.past_forecasts import PastForecasts
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
    engine, _ = _engine(cluster, workload, options)
    watches = []
    for group in engine.queues:
        policy = group.policy.inner if isinstance(group.policy, Limited) else group.policy
        if isinstance(policy, Easy) and policy.options.reservation != "none":
            policy.watch = _Watch(policy)
            watches.append(policy.watch)
    engine.run(until=until)
    names = [str(job.id) for job in engine.prepared.jobs]
    found = {names[job]: start for watch in watches for job, start in watch.found.items()}
    return ReservedStarts(found, dict(zip(names, engine.recorder.start, strict=True)))


NO_END = "waits for what has no known end: a job without a limit, or nodes that are down"

BEHIND = "waits behind a job that is over a limit"


@dataclass(frozen=True, slots=True)
class Forecast:
    """One waiting job: its place in the queue, and its predicted start.

    place : place in the queue, from 1; a job that starts at this very instant, or is not in it, has none.
    submit : seconds.
    duration : seconds; unlimited if infinite, which is null in JSON.
    start : seconds; unknown if infinite, which is null in JSON.
    reason : why the start is unknown.
    size : cores.
    quantiles : starts that errors of past forecasts lead to, by their levels.
    """

    id: str
    user: str | None
    queue: str | None
    place: int | None
    submit: float
    duration: OrNull
    shape: str
    start: OrNull
    reason: str | None = None
    size: float | None = None
    quantiles: tuple[float, ...] = ()


Quantiles = dict[str, float | None]
ForecastRow: Any = extended("Forecast", Forecast, size=NotRequired[float], quantiles=NotRequired[Quantiles])
Forecasts = list[ForecastRow]
"""The forecasts as JSON; sizes, and the quantiles by their levels, are there if quantiles were asked for."""


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
    at = time_of_run(at, workload, "at")
    engine, played = _engine(cluster, workload, options, progress)
    if resume is not None:
        head = read_checkpoint(resume)
        restore_run(engine, head, identity_of(cluster, engine.config, played), where=str(resume))
        at = head.time if at is None else at
        refuse_time(at, head.time, None, "a forecast")
    if at is None:
        raise ConfigError("no time was given", expected="a time, or a checkpoint")
    engine.run(until=at)
    return at, forecast_queue(engine, at)


def started_at(cluster: Cluster, workload: Workload, number: int, until: float, **options: Any) -> float:
    """Return when a run up to a time (seconds) starts one of its jobs, or NaN; arguments as `forecast`."""
    engine, _ = _engine(cluster, workload, options)
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
    at = time_of_run(at, workload, "at")
    engine, _ = _engine(cluster, workload, options, progress)
    begin, last = workload.span
    sampler = ForecastSampler(engine, begin, last if at is None else at)
    engine.run(until=at)
    past = sampler.found()
    return engine.now, forecast_queue(engine, engine.now), past


def _engine(
    cluster: Cluster,
    workload: Workload,
    options: Mapping[str, Any],
    progress: Callable[[Engine], None] | None = None,
) -> tuple[Engine, Workload]:
    """Return an engine that records no allocations, and its jobs as their queues have them."""
    config = make_config(**options).on_clock(workload.clock)
    engine, _, played = engine_of(cluster, workload, config, allocations=False)
    engine.add("reports", Reports(engine, progress))
    return engine, played


def forecast_queue(engine: Engine, at: float) -> list[Forecast]:
    """Return the forecasts of all jobs that wait for resources in an engine that came to the time `at`."""
    found, limits = [], engine.queues.limits
    for group in engine.queues:
        group.context.open(at)
        for number, place, start in predicted(group, at):
            reason = None if start != NEVER else NO_END
            found.append(forecast_of(engine, number, start, place=place, reason=reason))
        for number in sorted(group.queue.barred if limits is not None else ()):
            reason = (limits and limits.reason_of(number)) or BEHIND
            found.append(forecast_of(engine, number, NEVER, reason=reason))
    return found


def forecast_of(
    engine: Engine, number: int, start: float, *, place: int | None = None, reason: str | None = None
) -> Forecast:
    """Return the forecast of one job by its number."""
    job = engine.prepared.jobs[number]
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
