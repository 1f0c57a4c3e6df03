"""The forecast of a live cluster: the predicted start of each waiting job of a queue snapshot.

The running jobs of the snapshot are claimed as they are, and its waiting jobs put into the queue.
From there the schedule is played as any other, and each job runs to its requested end.

Claims of the running jobs of a queue snapshot, and their counts where counts alone decide.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError, SimschedError, WorkloadError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.count import Count
from simsched.match.claims_from_r import ClaimsFromR
from simsched.match.policies.policy import find_policy
from simsched.match.requests.compile import compile_request
from simsched.match.state.masks import listed
from simsched.match.state.selection import changed
from simsched.simulation.environment import FIRST
from simsched.simulation.forecast.start_times import forecast_of, forecast_queue
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.jobs.sizes import plain_units
from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of, refuse_time
from simsched.workload.job import Workload, change, in_submit_order
from simsched.workload.queue_snapshot import QueueSnapshot, load_queue_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from simsched.graph.cluster import Cluster
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Content
    from simsched.match.state.selection import Draw, Selection
    from simsched.schedule.job_table import JobTable
    from simsched.simulation.forecast.start_times import Forecast
    from simsched.simulation.options.run_config import RunConfig
    from simsched.workload.job import Job
    from simsched.workload.queue_snapshot import RunningJob, WaitingJob


def held_by(running: Sequence[RunningJob], index: Index, *, whole: bool = False) -> list[Selection]:
    """Return the resources that each running job holds.

    Jobs whose R is known come first, then jobs on whole nodes, then jobs on parts of nodes, those on
    the fewest nodes first.  Jobs that clean up come last and get the rest.  `whole` is whether jobs get
    whole targets.  Errors as `forecast_live`, with the job's place.
    """
    grants = ClaimsFromR(index)
    found: dict[int, Selection] = {}
    for at in sorted(range(len(running)), key=lambda at: _rank(running[at], grants)):
        with _at_place_of(running[at]):
            found[at] = _held(running[at], grants, index, whole=whole)
    return [found[at] for at in range(len(running))]


@contextmanager
def _at_place_of(job: RunningJob) -> Iterator[None]:
    """Give errors the place of a job in the snapshot."""
    try:
        yield
    except SimschedError as error:
        raise error.at(f"{job.where} (job {job.job.id})") from None


def _rank(job: RunningJob, grants: ClaimsFromR) -> tuple[bool, bool, int]:
    """Return the sort key of `held_by`: whether it cleans up, whether R is unknown, the nodes in doubt."""
    if isinstance(job.holds, ResourceSet):
        return job.cleaning, False, 0
    with _at_place_of(job):
        targets = grants.targets_of(job.holds.ranks, job.holds.hosts)
    whole = job.holds.cores in (None, grants.cores_on(targets))
    return job.cleaning, True, 0 if whole else len(targets)


def _held(job: RunningJob, grants: ClaimsFromR, index: Index, *, whole: bool) -> Selection:
    """Return the claim of one job: after its R, whole nodes, or a number of cores on some nodes."""
    name = str(job.job.id)
    if isinstance(job.holds, ResourceSet):
        request = compile_request(job.job.jobspec, index, alone=whole) if job.has_request else None
        return grants.exact(name, job.holds, request, rest=job.cleaning)
    targets = grants.targets_of(job.holds.ranks, job.holds.hosts)
    there, cores = grants.cores_on(targets), job.holds.cores
    if cores is None or cores == there:
        return grants.whole(name, targets, rest=job.cleaning)
    if cores > there:
        raise WorkloadError(f"holds {cores} cores on nodes that have {there}")
    return grants.some(name, targets, cores, job.holds.more, rest=job.cleaning)


# --- requests that are not known ----------------------------------------------------------------


def common_request(jobspecs: Sequence[Jobspec], index: Index, *, whole: bool) -> Jobspec | None:
    """Return one of the jobspecs if all request numbers of the same: units, targets, copies of a slot.

    `whole` is whether jobs get whole targets.
    """
    kinds: dict[object, Jobspec] = {}
    for jobspec in {id(jobspec): jobspec for jobspec in jobspecs}.values():
        try:
            request = compile_request(jobspec, index)
        except SimschedError:  # it can never run, which is reported later
            continue
        units = plain_units(request, whole=whole)
        kinds[units[0] if units else request.plain] = jobspec
    return next(iter(kinds.values())) if len(kinds) == 1 and None not in kinds else None


def guessed_request(selection: Selection, index: Index, common: Jobspec | None) -> Jobspec:
    """Return a request for the resources that a job holds, for a job whose own request is not known.

    It is as large as the share of the `common` request that the job's end frees, so that counts can
    decide.  The job would request it again if it were interrupted.
    """
    counts, targets = selection.counts, max(len(selection.targets), 1)
    if common is not None:
        request = compile_request(common, index)
        units = plain_units(request)
        if units is not None:
            type_, number = units[0], targets if units[0] == index.target_type else counts.get(units[0], 0)
            if number:
                return Jobspec.from_shape(f"slot={number}/{type_}")
        elif request.plain is not None and (number := copies_of(selection, request.plain)):
            return replace(common, resources=(replace(common.resources[0], count=Count.fixed(number)),))
    plain = {type_: units for type_, units in counts.items() if type_ in ("core", "gpu")}
    if not plain:
        return Jobspec.from_shape(f"slot={targets}/{index.target_type}")
    if all(units % targets == 0 for units in plain.values()):
        each = ";".join(f"{type_}={units // targets}" for type_, units in plain.items())
        return Jobspec.from_shape(f"slot={targets}/[{each}]")
    type_, number = next(iter(plain.items()))
    return Jobspec.from_shape(f"slot={number}/{type_}")


# --- counts ---------------------------------------------------------------------------------------


def as_counted(held: Mapping[int, Selection], table: JobTable, index: Index, *, alone: bool) -> bool:
    """Whether counts alone can decide: each job releases exactly the counted units that it holds.

    `held` is job number → its resources; `alone` promises that jobs have their targets for themselves.
    """
    users = np.zeros(len(index), dtype=np.int64)
    for number, selection in held.items():
        asked, units = table.units[number], units_of(selection, table, index)
        if asked != units or not index.up[selection.targets].all() or (table.content and not units):
            return False
        users[selection.targets] += 1
    return not (alone or table.single == index.target_type) or bool((users <= 1).all())


def units_of(selection: Selection, table: JobTable, index: Index) -> int:
    """Return how many units of the one type that counts go by a selection holds."""
    if table.content is not None:
        return copies_of(selection, table.content)
    if table.single == index.target_type:
        return len(selection.targets)
    return selection.counts.get(table.single or "", 0)


def copies_of(selection: Selection, content: Content) -> int:
    """Return how many copies of a slot of plain units a selection is; 0 if it is none."""
    each = dict(content.flat or ())
    if {draw.type for draw in selection.held} != each.keys() or selection.shared:
        return 0
    rows = []
    for draw in selection.held:
        order = np.argsort(draw.pools)
        units = np.broadcast_to(draw.units, len(draw.pools))[order]
        if (units % each[draw.type]).any():
            return 0
        rows.append((draw.pools[order], units // each[draw.type]))
    banks, copies = rows[0]
    same = all(np.array_equal(banks, b) and np.array_equal(copies, c) for b, c in rows[1:])
    return int(copies.sum()) if same else 0


# --- units that are down ----------------------------------------------------------------------------


def usable(selection: Selection, index: Index) -> Selection:
    """Return a selection without units that are down on nodes that are up: no job can reuse them."""

    def sound(draws: tuple[Draw, ...]) -> bool:
        return all(index.pool_types[draw.type].sound[draw.pools].all() for draw in draws)

    if sound(selection.held) and sound(selection.shared):
        return selection
    held = tuple(chain.from_iterable(_sound(draw, index) for draw in selection.held))
    shared = tuple(chain.from_iterable(_sound(draw, index) for draw in selection.shared))
    return changed(selection, held=held, named=held, shared=shared)


def _sound(draw: Draw, index: Index) -> Iterator[Draw]:
    row = index.pool_types[draw.type].sound[draw.pools]
    if row.any():
        units = np.broadcast_to(draw.units, len(draw.pools))[row]
        masks = None if draw.masks is None else list(compress(listed(draw.masks), row.tolist()))
        yield changed(draw, pools=draw.pools[row], units=units, amount=int(units.sum()), masks=masks)


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
        engine, prepared, _ = engine_of(cluster, workload, config, allocations=False)
        table = prepared.table
        if table.single is not None:
            if as_counted(self._held, table, index, alone=prepared.takes_whole_targets):
                self._held = {
                    number: changed(selection, slots=units_of(selection, table, index))
                    for number, selection in self._held.items()
                }
            else:
                engine, _, _ = engine_of(cluster, workload, config, allocations=False, counted=False)
        self.engine = engine

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
        engine = self.engine
        jobs = [(self._number[str(waits.job.id)], waits) for waits in self._picture.waiting]
        for number, _ in jobs:
            if engine.recorder.start[number] == at:
                yield forecast_of(engine, number, at)
        listed = set()
        for found in forecast_queue(engine, at):  # with those that a limit holds
            listed.add(found.id)
            yield found
        for number, waits in jobs:
            has_run = engine.recorder.start[number] == engine.recorder.start[number]
            if not has_run and str(waits.job.id) not in listed:
                reason = waits.reason or self._why(number)
                yield forecast_of(engine, number, NEVER, reason=reason)

    def _why(self, number: int) -> str:
        """Return why a job is not in the queue."""
        engine = self.engine
        if number in engine.prepared.rejected:
            return engine.prepared.rejected[number][1]
        known = engine.recorder.reasons.get(number)
        if known is not None:
            return known
        job = engine.prepared.jobs[number]
        if engine.progress.states[number] is JobState.DEPEND:
            return "waits for " + ", ".join(map(str, job.dependencies))
        return f"queue {job.queue} is closed"


def _as_running(run: RunningJob, jobspec: Jobspec) -> Job:
    """Return a running job as the engine takes it: it lasts from its start to its expected end."""
    lasts = run.end - run.start
    limit, runtime = (None, FOR_EVER) if lasts == NEVER else (lasts, lasts)
    return change(run.job, jobspec=jobspec, duration=limit, runtime=runtime)


def _as_waiting(waits: WaitingJob) -> Job:
    """Return a waiting job as the engine takes it: by the priority that it was given, and held if so.

    The queue of Flux is ordered by priority (RFC 21), which is the urgency unless a plugin
    made another of it, and like it holds a job where it is 0.
    """
    job = waits.job
    return change(
        job,
        urgency=job.urgency if job.priority is None else min(job.priority, MOST_PRIORITY),
        hold=job.hold or job.urgency == 0 or waits.reason is not None,
        runtime=FOR_EVER if job.duration is None else job.duration,
    )
