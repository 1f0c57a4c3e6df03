"""`simulate`: a cluster and a workload in, a `RunResult` out."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched._version import version
from simsched.errors import ConfigError
from simsched.garbage import collector_paused
from simsched.match.policies.policy import CandidateOrder, MatchPolicy, find_policy
from simsched.plugins.plugin_errors import name_of
from simsched.simulation.admission import admission_to
from simsched.simulation.engine import Engine
from simsched.simulation.environment import FIRST
from simsched.simulation.features import Reports, add_features
from simsched.simulation.jobs.prepare import Prepared, refuse_odd_jobs
from simsched.simulation.licences.licence_pools import with_licences
from simsched.simulation.options.dated_times import span_of, time_of_run
from simsched.simulation.options.run_config import make_config
from simsched.simulation.outages.disruption import closures_of
from simsched.simulation.queue_hours import stops_until
from simsched.simulation.record.allocation_log import AllocationLog
from simsched.simulation.record.event_log import EventLog
from simsched.simulation.record.file_digests import digest_of
from simsched.simulation.record.job_columns import counts_of, job_columns
from simsched.simulation.record.later_timeline import forget_units
from simsched.simulation.record.recorder import Recorder
from simsched.simulation.record.run_directory import RUN_FORMAT, RunResult

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from simpy import Environment

    from simsched.formats.rfc.clock import DateText
    from simsched.graph.cluster import Cluster
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.options.run_config import RunConfig
    from simsched.workload.job import Workload


def simulate(
    cluster: Cluster,
    workload: Workload,
    queue_policy: str | QueuePolicy = "easy",
    match_policy: str | MatchPolicy | CandidateOrder = "first",
    seed: int = 0,
    *,
    allocations: bool = True,
    eventlog: bool = False,
    sink: BinaryIO | None = None,
    inputs: Mapping[str, str | Path] | None = None,
    until: float | str | DateText | None = None,
    measure_from: float | str | DateText | None = None,
    checkpoints: Mapping[Any, str | Path] | None = None,
    resume: str | Path | None = None,
    env: Environment | None = None,
    progress: Callable[[Engine], None] | None = None,
    begun: Callable[[Engine], None] | None = None,
    stop: threading.Event | None = None,
    **options: Any,
) -> RunResult:
    """Run a workload on a cluster and return its records.

    Parameters
    ----------
    queue_policy, match_policy : names, or policies as objects; `options` are further fields of `RunConfig`.
    seed : of every random choice; the same seed gives the same result, to the byte.
    allocations, eventlog : whether to record R documents (slower) and events (RFC 18 and 21).
    sink : a binary file that takes the allocations during the run; None keeps them in memory.
    inputs : the files of the ``cluster`` and the ``workload``, to be recorded with their digests.
    until : end the run at this time (s, or a date); running jobs are then RUNNING, waiting jobs PENDING.
    measure_from : the figures are those of jobs submitted from this time (s, or a date) on; all are played.
    checkpoints : time (s, or a date) → file for the state at the start of that instant.
    resume : a checkpoint of this very run; the run continues from it as if never interrupted.
    env : a simpy environment to share, at second 0 of the workload; it runs until this run is over.
    progress : called every few hundred passes with the engine.
    begun : called with the engine before the first event; it may be read from another thread.
    stop : once set, the run ends after the current pass; ``meta["complete"]`` is then false.

    Raises
    ------
    ConfigError, FormatError, RunError
        For an option that does not exist, a time outside of the run, or a checkpoint that cannot be used.
    """
    options.update(queue_policy=queue_policy, match_policy=match_policy, seed=seed)
    config = make_config(**options).on_clock(workload.clock).on_machine(cluster.index)
    until, measure_from = (
        time_of_run(until, workload, "until"),
        time_of_run(measure_from, workload, "from"),
    )
    states = {time_of_run(at, workload, "checkpoint"): file for at, file in (checkpoints or {}).items()}
    with collector_paused():  # nearly all objects that a run makes live to its end
        session = RunSession(cluster, config)
        session.prepare(workload, allocations=allocations, eventlog=eventlog, sink=sink, env=env)
        engine, workload = session.engine, session.workload
        if not states and resume is None:
            forget_units(engine, watched=progress is not None)
        _refuse_times(workload, until, measure_from)
        if progress is not None or stop is not None:
            engine.add("reports", Reports(engine, progress, stop))
        files = session.describe_inputs(inputs)
        if states or resume is not None:
            _enter(engine, (cluster, config, workload, files), states, resume, until)
        if begun is not None:
            begun(engine)
        return session.records({"complete": engine.run(until), "until": until, "from": measure_from})


class RunSession:
    """A run on a cluster under a configuration, from its preparation to its records.

    Attributes
    ----------
    engine : plays the jobs.
    prepared : the jobs as columns.
    workload : the jobs as they run, in their queues.
    files : the inputs, for ``run.json``.
    """

    def __init__(self, cluster: Cluster, config: RunConfig) -> None:
        self.cluster, self.config = with_licences(cluster, config.licenses), config
        self.engine: Engine
        self.prepared: Prepared
        self.workload: Workload
        self.files: list[Mapping[str, Any]] = []
        self._began = time.perf_counter()

    def prepare(self, workload: Workload, **options: Any) -> None:
        """Make the engine for jobs that are all known; `options` are those of `engine_of`."""
        made = engine_of(self.cluster, workload, self.config, **options)
        self.engine, self.prepared, self.workload = made

    def describe_inputs(self, inputs: Mapping[str, str | Path] | None) -> list[Mapping[str, Any]]:
        """Note and return what identifies the inputs, for ``run.json``."""
        self.files = [_input("cluster", self.cluster, inputs), _input("workload", self.workload, inputs)]
        return self.files

    def records(self, times: Mapping[str, Any]) -> RunResult:
        """Return the records of the run as columns; `times` are when it began and ended, for ``run.json``."""
        result = self._records(self.engine.recorder, self.workload, times, self.config)
        self.engine.future.dismiss()
        return result

    def _records(
        self,
        recorder: Recorder,
        workload: Workload,
        times: Mapping[str, Any],
        config: RunConfig,
    ) -> RunResult:
        on = self.engine.on
        recorder.reasons.update(self.engine.waiting_reasons())
        totals = totals_of(self.cluster)
        # takes most memory for a moment: before there are other columns
        timeline = recorder.timeline(totals, self.engine.progress.submitted)
        jobs = job_columns(workload, recorder)
        for columns in on.columns:
            jobs.update(columns(jobs))
        queues = {} if config.queues is None else config.queues.queues
        clock, end = workload.clock, self.engine.now
        now, seconds = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter() - self._began
        meta = {
            "simsched": version(),
            "format": RUN_FORMAT,
            "created": now,
            **times,
            "seed": config.seed,
            "config": config.to_dict(),
            "whole_nodes": find_policy(config.match_policy).whole_nodes,
            "inputs": list(self.files),
            "cluster": {"name": self.cluster.name, "targets": len(self.cluster.index), "totals": totals},
            "workload": {"name": workload.name, "skipped": dict(workload.skipped_counts)},
            "queue_stops": {name: stops_until(queue, end) for name, queue in queues.items() if queue.closed},
            **({} if clock is None else {"clock": clock.to_dict()}),
            "counts": counts_of(jobs),
            "wall_seconds": round(seconds, 3),
            "jobs_per_second": round(self.engine.done / max(seconds, 1e-9), 1),
        }
        for facts in on.described:
            meta.update(facts())
        recorded = self.prepared.recorded
        if recorded is not None:
            from simsched.simulation.record.log_replay import replay_figures

            elsewhere = self.engine.queues.elsewhere
            meta["replay"] = replay_figures(recorded, self.prepared, jobs, totals, elsewhere)
        index, tables = self.engine.plan.index, {"failures": recorder.failure_columns()}
        for made in on.tables:
            tables |= made()
        return RunResult(jobs, timeline, meta, recorder.log, recorder.events, workload, index, tables)


def engine_of(
    cluster: Cluster,
    workload: Workload,
    config: RunConfig,
    *,
    allocations: bool = True,
    eventlog: bool = False,
    sink: BinaryIO | None = None,
    counted: bool = True,
    env: Environment | None = None,
    open_: bool = False,
) -> tuple[Engine, Prepared, Workload]:
    """Prepare the jobs, and return an engine with all the parts that this configuration needs.

    Unless `counted`, the matcher decides each match, even where counts alone could.  To an `open_` run jobs
    are added as they arrive.
    """
    config.refuse_contradictions()
    cluster = with_licences(cluster, config.licenses)
    index = cluster.index
    config = config.on_clock(workload.clock).on_machine(index)
    refuse_odd_jobs(workload.jobs)
    prepared = Prepared(index, config, admission_to(config, index), counts_decide=counted)
    prepared.extend(workload.jobs)
    if config.queues is not None:
        workload = replace(workload, jobs=tuple(prepared.jobs))
    ids: list[int | str] = []
    policies = {"policy": name_of(config.match_policy), "queue_policy": name_of(config.queue_policy)}
    log = AllocationLog(ids, prepared.table.durations, index, policies, sink) if allocations else None
    recorder = Recorder(ids, pools_of(cluster), log, EventLog(ids) if eventlog else None)
    closures = closures_of(config.outages, index)
    engine = Engine(prepared, index, config, recorder, closures=closures, env=env)
    add_features(engine, closures, open_=open_)
    return engine, prepared, workload


def _enter(
    engine: Engine,
    origin: tuple[Any, ...],
    checkpoints: Mapping[float, str | Path],
    resume: str | Path | None,
    until: float | None,
) -> None:
    """Let the engine continue from a checkpoint, and write checkpoints when their times come."""
    from simsched.simulation.checkpoint.checkpoint import (
        identity_of,
        read_checkpoint,
        restore_run,
        write_checkpoint,
    )

    begin, identity = 0.0, identity_of(*origin)
    if resume is not None:
        head = read_checkpoint(resume)
        restore_run(engine, head, identity, where=str(resume))
        begin = head.time
    engine.future.handle("checkpoint", lambda path: write_checkpoint(engine, path, identity))
    for at, path in checkpoints.items():
        refuse_time(at, begin, until, "a checkpoint")
        engine.future.at(at, FIRST, "checkpoint", path)
    if until is not None:
        refuse_time(until, begin, None, "the end of the run")


def _refuse_times(workload: Workload, until: float | None, measure_from: float | None) -> None:
    if until is not None:
        refuse_time(until, 0, None, "the end of the run")
    if measure_from is not None:
        refuse_time(measure_from, 0, None, "measured")
        if not any(job.submit >= measure_from for job in workload.jobs[-1:]):
            clock, span = workload.clock, span_of(workload)
            since = f"{measure_from:g} s" if clock is None else f"{clock.text(measure_from)}"
            raise ConfigError(f"no job is submitted at {since} or later{span and f': {span}'}", where="from")


def refuse_time(time: float, begin: float, end: float | None, what: str) -> None:
    """Raise a `ConfigError` for a value that is not a time, or a time outside of the run."""
    if not isinstance(time, int | float) or not 0 <= time < float("inf"):
        raise ConfigError(f"{what} at {time!r}", expected="0 seconds or more")
    if time < begin:
        raise ConfigError(f"{what} at {time:g} s", expected=f"a time of {begin:g} s or later")
    if end is not None and time > end:
        raise ConfigError(f"{what} at {time:g} s", expected=f"a time until the end of the run, {end:g} s")


def pools_of(cluster: Cluster) -> tuple[str, ...]:
    """Return the pool types in the timeline, besides the execution targets as ``node``."""
    return tuple(name for name in cluster.index.pool_types if name != "node")


def totals_of(cluster: Cluster) -> dict[str, int]:
    """Return the units of each type of the whole cluster that are up; ``node`` are its execution targets."""
    index = cluster.index
    totals = {"node": len(index)}
    totals.update((name, index.pool_types[name].total) for name in pools_of(cluster))
    return totals


def _input(role: str, value: Cluster | Workload, files: Mapping[str, str | Path] | None) -> Mapping[str, Any]:
    """Return what identifies an input: its name, and the digest of its file if it came from one."""
    given = (files or {}).get(role) or value.source
    source = Path(given) if given else None
    digest = digest_of(source) if source is not None and source.is_file() else None
    return {"role": role, "name": str(source or value.name), "sha256": digest}
