"""The forecast of a live cluster: the predicted start of each waiting job of a queue snapshot.

The running jobs of the snapshot are claimed as they are, and its waiting jobs put into the queue.
From there the schedule is played as any other, and each job runs to its requested end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError, WorkloadError
from simsched.match.policies.policy import find_policy
from simsched.match.state.selection import changed
from simsched.schedule.policies.registry import naming_policy
from simsched.simulation.environment import FIRST
from simsched.simulation.forecast.live_claims import (
    as_counted,
    common_request,
    guessed_request,
    held_by,
    units_of,
    usable,
)
from simsched.simulation.forecast.start_times import forecast_of, forecast_queue
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of, refuse_time
from simsched.workload.job import Workload, in_submit_order
from simsched.workload.queue_snapshot.load_snapshot import load_queue_snapshot
from simsched.workload.queue_snapshot.snapshot import QueueSnapshot, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.cluster import Cluster
    from simsched.simulation.forecast.start_times import Forecast
    from simsched.simulation.options.run_config import RunConfig
    from simsched.workload.job import Job
    from simsched.workload.queue_snapshot.snapshot import RunningJob, WaitingJob

NEVER = float("inf")
MOST_PRIORITY = 2**32 - 1
"""The greatest priority in Flux."""
FOR_EVER = 2.0**53
"""How long (seconds) a job without a limit runs when a schedule is played."""


def forecast_live(
    cluster: Cluster, picture: QueueSnapshot | str | Path, at: float | None = None, **options: Any
) -> list[Forecast]:
    """Return the predicted start of every job that waits at time `at`, by default that of the snapshot.

    From the snapshot to a later time the schedule is played under `options` (fields of `RunConfig`),
    each job up to its requested end.  Jobs that start before that time are left out.  Jobs that are
    held, can never run, or wait for an event without a known time come last, with the reason.  A
    queue printed by Flux is ordered by the priorities of Flux unless `options` name another order.

    Raises
    ------
    ConfigError
        For an option that does not exist, random failures, or a time before the snapshot's.
    FormatError, WorkloadError, ClusterError
        For a file that is not a queue snapshot, or not of this cluster: a rank, host or unit that it lacks, a
        unit that two jobs hold.
    """
    return live_at(cluster, picture_of(picture), at, **options)[1]


def picture_of(picture: QueueSnapshot | str | Path) -> QueueSnapshot:
    """Return a queue snapshot as it is, or the one in a file; errors as `forecast_live`."""
    if isinstance(picture, QueueSnapshot):
        return picture
    found = load_queue_snapshot(picture)
    if found is None:
        raise WorkloadError("not a queue snapshot", where=str(picture))
    return found


def live_at(
    cluster: Cluster, picture: QueueSnapshot, at: float | None, **options: Any
) -> tuple[float, list[Forecast]]:
    """Return the time and the forecasts then; arguments and errors as `forecast_live`."""
    if picture.epoch:
        options = {"order": "priority", **options}
    config = make_config(**options)
    if config.failures is not None:
        raise ConfigError("random failures cannot be forecast", where="failures", expected="outages")
    at = picture.time if at is None else at
    refuse_time(at, picture.time, None, "a forecast")
    stage = _Stage(cluster, picture, config)
    stage.enter(at)
    with naming_policy(config.queue_policy):
        stage.engine.run(until=at)
    return at, list(stage.forecasts(at))


class _Stage:
    """An engine in the state of a queue snapshot."""

    def __init__(self, cluster: Cluster, picture: QueueSnapshot, config: RunConfig) -> None:
        self._picture = picture
        index = cluster.index
        whole = find_policy(config.match_policy).whole_nodes
        found = held_by(picture.running, index, whole=whole)
        common = common_request([waits.job.jobspec for waits in picture.waiting], index, whole=whole)
        runs = list(zip(picture.running, found, strict=True))
        jobs = [
            *(_as_running(run, run.job.jobspec if run.has_request else guessed_request(held, index, common))
              for run, held in runs),
            *map(_as_waiting, picture.waiting),
        ]  # fmt: skip
        header = {} if picture.zone is None else {"TimeZoneString": picture.zone}
        workload = Workload(in_submit_order(jobs), name="picture", source=picture.source, header=header)
        self._number = {str(job.id): number for number, job in enumerate(workload.jobs)}
        self._runs = {self._number[str(run.job.id)]: run for run in picture.running}
        self._held = {self._number[str(run.job.id)]: usable(selection, index) for run, selection in runs}
        engine, prepared, played = engine_of(cluster, workload, config, allocations=False)
        table = prepared.table
        if table.single is not None:
            if as_counted(self._held, table, index, alone=prepared.takes_whole_targets):
                self._held = {
                    number: changed(selection, slots=units_of(selection, table, index))
                    for number, selection in self._held.items()
                }
            else:
                engine, _, played = engine_of(cluster, workload, config, allocations=False, counted=False)
        self.engine, self._workload = engine, played

    # --- into the snapshot -----------------------------------------------------------------------

    def enter(self, at: float) -> None:
        """Let the engine, which is to be played up to `at`, take over the queue at its time.

        It does so as the first event of that instant: nodes and queues that went down or stopped
        before are then down and stopped.
        """
        engine = self.engine
        engine.progress.submitted = len(engine.progress.states)  # the jobs below are all there are
        self._use_all_of_their_time()
        engine.future.handle("take over", self._take_over)
        engine.future.at(self._picture.time, FIRST, "take over", at)

    def _take_over(self, at: float) -> None:
        engine, time = self.engine, self._picture.time
        self._claim()
        for number, run in self._runs.items():
            # A job beyond its end still runs at this instant, and ends at the next one.
            end = max(run.end, time) if run.end >= time or at > time else NEVER
            engine.occupy(number, None if end == NEVER else end)
        for number in sorted(self._number[str(waits.job.id)] for waits in self._picture.waiting):
            if number in engine.prepared.rejected:
                continue  # it stays in the queue, and so do the jobs that depend on it
            engine.submit(number, time)
        engine.settle()

    def _use_all_of_their_time(self) -> None:
        """Let jobs complete at their requested ends, be these their own or their queue's."""
        prepared = self.engine.prepared
        prepared.timeouts[:] = bytes(len(prepared.timeouts))
        for number, duration in enumerate(prepared.table.durations):
            if duration != NEVER:
                prepared.runtimes[number] = duration

    def _claim(self) -> None:
        """Claim the held resources, also on nodes that are down: their jobs still hold them."""
        engine, plan = self.engine, self.engine.plan
        touched = [selection.targets for selection in self._held.values()]
        down = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *touched]))
        down = down[~plan.available.up[down]]
        if len(down):
            plan.set_status(down, up=True)
        for number, selection in self._held.items():
            run = self._runs[number]
            plan.claim(number, selection, run.end)
            engine.recorder.begin(number, run.start, selection, backfilled=False)
        if len(down):
            plan.set_status(down, up=False)

    # --- out of it -------------------------------------------------------------------------------

    def forecasts(self, at: float) -> Iterator[Forecast]:
        """Yield the forecasts: jobs that start now, waiting jobs in order, jobs of unknown start."""
        engine, workload = self.engine, self._workload
        jobs = [(self._number[str(waits.job.id)], waits) for waits in self._picture.waiting]
        for number, _ in jobs:
            if engine.recorder.start[number] == at:
                yield forecast_of(engine, workload, number, at)
        listed = set()
        for found in forecast_queue(engine, workload, at):  # with those that a limit holds
            listed.add(found.id)
            yield found
        for number, waits in jobs:
            has_run = engine.recorder.start[number] == engine.recorder.start[number]
            if not has_run and str(waits.job.id) not in listed:
                reason = waits.reason or self._why(number)
                yield forecast_of(engine, workload, number, NEVER, reason=reason)

    def _why(self, number: int) -> str:
        """Return why a job is not in the queue."""
        engine = self.engine
        if number in engine.prepared.rejected:
            return engine.prepared.rejected[number][1]
        known = engine.recorder.reasons.get(number)
        if known is not None:
            return known
        job = self._workload.jobs[number]
        if engine.progress.states[number] is JobState.DEPEND:
            return "waits for " + ", ".join(map(str, job.dependencies))
        return f"queue {job.queue} is closed"


def _as_running(run: RunningJob, jobspec: Jobspec) -> Job:
    """Return a running job as the engine takes it: it lasts from its start to its expected end."""
    lasts = run.end - run.start
    limit, runtime = (None, FOR_EVER) if lasts == NEVER else (lasts, lasts)
    return with_fields(run.job, jobspec=jobspec, duration=limit, runtime=runtime)


def _as_waiting(waits: WaitingJob) -> Job:
    """Return a waiting job as the engine takes it: by the priority that it was given, and held if so.

    The queue of Flux is ordered by priority (RFC 21), which is the urgency unless a plugin
    made another of it, and like it holds a job where it is 0.
    """
    job = waits.job
    return with_fields(
        job,
        urgency=job.urgency if job.priority is None else min(job.priority, MOST_PRIORITY),
        hold=job.hold or job.urgency == 0 or waits.reason is not None,
        runtime=FOR_EVER if job.duration is None else job.duration,
    )
