"""The Python interface to whole runs: `simulate`, `load_run` and their results."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, options_named, wrong
from simsched.errors import InputWarning
from simsched.report.run_views import Run, load_run
from simsched.simulation.record.run_directory import finite

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable
    from typing import BinaryIO, Literal

    import pandas as pd
    from simpy import Environment

    from simsched.formats.rfc.clock import DateText
    from simsched.graph.cluster import Cluster, ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.orders.priority_rules import PriorityRules
    from simsched.schedule.orders.ranking import JobOrder
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.schedule.predictors.predictor import RunTimePredictor
    from simsched.simulation.engine import Engine
    from simsched.simulation.licences.licence_pools import Licences
    from simsched.simulation.limits.limit_rules import LimitRule
    from simsched.simulation.outages.outages import Failures, Outage
    from simsched.simulation.preemption.checkpoint_rules import CheckpointRules
    from simsched.simulation.preemption.preemption_rules import PreemptionRules
    from simsched.simulation.queues import Queues
    from simsched.simulation.record.run_directory import RunResult
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation
    from simsched.workload.job import Workload
    from simsched.workload.load import WorkloadLike

__all__ = ["Run", "SimulatedRun", "load_run", "simulate"]


class _Temporary:
    """A folder that lasts as long as this value, which the copies of a run share."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="simsched-"))
        weakref.finalize(self, rmtree, self.path, ignore_errors=True)


class SimulatedRun(Run):
    """A run in memory: all of `Run`, and `save`.

    What is read from files of a saved run (`allocations`, `why` …) needs a file here, too: they are written
    into a temporary folder when they are first asked for, which lasts as long as the run.
    """

    def __init__(self, result: RunResult, cluster: Cluster, *, name: str) -> None:
        super().__init__(None, finite(result.meta), name=name)
        self.result = result
        self._cluster = cluster

    @property
    def folder(self) -> Path | None:
        """The run directory once the run is saved, and a temporary one until then."""
        saved = self.path is not None and (self.path / "run.json").is_file()  # it may have been removed
        return self.path if saved else self._temporary.path / "run"

    @cached_property
    def _temporary(self) -> _Temporary:
        folder = _Temporary()
        self.result.save(folder.path / "run")
        return folder

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_temporary"}

    @property
    def has_allocations(self) -> bool:
        """Whether the run has its allocations."""
        return self.result.log is not None and self.result.log.readable

    def inputs(self) -> tuple[Cluster, Workload]:
        """Return the cluster and the workload of the run; the jobs are in their queues."""
        assert self.result.workload is not None
        return self._cluster, self.result.workload

    @cached_property
    def _tables(self) -> Run:
        return Run.from_result(self.result)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job; columns, units and dtypes are `simsched.report.columns.JOBS`."""
        return self._tables.jobs

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row per instant at which something changed; each row holds until the next one."""
        return self._tables.timeline

    @cached_property
    def summary(self) -> dict[str, float]:
        """Figures by name, rounded as in ``summary.json``."""
        from simsched.report.metrics.summary import RunFigures, rounded

        return RunFigures({name: float(rounded(value)) for name, value in self._tables.summary.items()})

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per execution target of the machine; columns are `simsched.report.columns.NODES`."""
        from simsched.report.data.tables import nodes_frame
        from simsched.simulation.record.node_table import node_columns

        return nodes_frame(node_columns(self.result.index) if self.result.index is not None else {})

    def save(self, directory: str | Path) -> Path:
        """Write the run directory, summary included, and return its path.

        Raises
        ------
        RunError
            if `directory` cannot be written, or holds anything but an earlier run, which is replaced.
        """
        from simsched.report.metrics.summary import summary_text

        check_path("directory", directory)
        text = summary_text(self.summary)
        self.path = self.result.save(directory, files={"summary.json": text})
        return self.path


@options_named
def simulate(
    cluster: ClusterLike,
    workload: WorkloadLike,
    queue_policy: str | QueuePolicy | None = None,
    match_policy: str | MatchPolicy | CandidateOrder | None = None,
    seed: int | None = None,
    *,
    order: str | JobOrder | None = None,
    queue_options: Mapping[str, Any] | None = None,
    predictor: str | RunTimePredictor | None = None,
    priority: PriorityRules | Mapping[str, Any] | None = None,
    queues: Queues | Mapping[str, Any] | None = None,
    limits: Iterable[LimitRule | Mapping[str, Any]] | None = None,
    preemption: PreemptionRules | Mapping[str, Any] | None = None,
    reservations: Iterable[AdvanceReservation | Mapping[str, Any]] | None = None,
    licenses: Licences | Mapping[str, Any] | str | None = None,
    outages: Iterable[Outage | Mapping[str, Any]] | None = None,
    failures: Failures | str | None = None,
    on_failure: Literal["requeue", "fail"] | None = None,
    job_checkpoints: CheckpointRules | Mapping[str, Any] | None = None,
    overrun: Literal["timeout", "allow"] | None = None,
    kill_grace: float | str | None = None,
    epilog: float | str | tuple[float, float] | None = None,
    no_limit: Literal["queue", "reject"] | None = None,
    think_times: Literal["ignore", "honour"] | None = None,
    passes: Literal["instant", "event"] | None = None,
    candidates: Literal["requested", "actual"] | None = None,
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
    stop: threading.Event | None = None,
) -> SimulatedRun:
    """Run a workload on a cluster.

    An option that is None is that of the site, if `cluster` is one, and otherwise the default named here.
    Rules have the form of a configuration file, as plain data or as values.

    Parameters
    ----------
    cluster : a cluster, a networkx graph, a file or bundled name, or a site: an `ss.Site`, or the folder that
        ``simsched site import`` wrote.  A site brings its queues and rules.
    workload : a workload, a file or bundled name, a data frame, or several jobs: `ss.Job` or mappings with
        the keys of jobs.yaml.
    queue_policy, match_policy : names, which ``simsched run --help`` lists, or policies as objects; ``easy``
        and ``first``.
    seed : seed of every random choice; the same seed gives the same run; 0.
    order : the job order, by name or as an object; ``fifo``, or ``multifactor`` with a `priority`.
    queue_options : options of the queue policy; those of a site belong to the queue policy of the site.
    predictor : the run times by which plans are made, by name or as an object; ``limit``, those requested.
    priority : the factors of the order ``multifactor``.
    queues : named queues with their limits and constraints (RFC 33); one queue for all.
    limits : limits of users, accounts, queues, QoS and all jobs; none.
    preemption : which jobs preempt others, and what becomes of the victims; none but ``preemptible-after``.
    reservations : nodes that are kept at a time for the jobs that name them; none.
    licenses : counted resources that are not on nodes; none.
    outages : times at which targets fail, are drained or are kept free for maintenance; none.
    failures : how targets fail by chance, such as ``mtbf=30d,mttr=4h``; not at all.
    on_failure : whether a job on a target that fails is queued again (``requeue``) or ends there (``fail``).
    job_checkpoints : the checkpoints from which jobs go on that were preempted or whose nodes failed; none.
    overrun : ``timeout`` ends a job at its requested duration, ``allow`` lets it run on; ``timeout``, and
        ``allow`` under the queue policy ``recorded``.
    kill_grace : time for which a job may run on before ``timeout`` ends it; 0.
    epilog : time that a target needs to clean up after a job, or the least and the most; 0.
    no_limit : whether a job without a duration gets the limit of its ``queue``, or a ``reject``; ``queue``.
    think_times : ``honour`` lets a job become eligible its think time after the job that precedes it ends
        (SWF columns 17 and 18); ``ignore``.
    passes : one scheduling pass after all events of an ``instant``, or after each ``event``; ``instant``, and
        ``event`` if candidates are judged by their actual durations.
    candidates : whether backfill candidates are judged by the ``requested`` durations or by the ``actual``
        ones, which no scheduler can know; ``requested``.
    allocations, eventlog : whether to record the allocations, as R, and the events (RFC 18 and 21).
    sink : a binary file that takes the allocations during the run; None keeps them in memory.
    inputs : the files of the ``cluster`` and the ``workload``, to be recorded with their digests.
    until : end the run at this time (s, or a date); running jobs are then RUNNING, waiting jobs PENDING.
    measure_from : the figures are those of jobs submitted from this time (s, or a date) on.
    checkpoints : time (s, or a date) → file for the state at the start of that instant.
    resume : a checkpoint of this very run, from which it continues as if never interrupted.
    env : a simpy environment to share, at second 0 of the workload; it runs until this run is over.
    progress : called every few hundred passes with the engine.
    stop : once set, the run ends after the current pass; ``meta["complete"]`` is then false.

    Returns
    -------
    SimulatedRun
        with `.jobs` and `.timeline` (data frames, times in seconds), `.summary` (figures by
        name) and `.save(directory)`.

    Raises
    ------
    ConfigError, FormatError, WorkloadError, RunError
        for an option, a value or an input that is not valid; the message names the nearest right thing.
    """
    from simsched.graph.cluster import as_cluster
    from simsched.plugins.plugin_errors import name_of
    from simsched.simulation.options.rule_notes import notes_on_rules
    from simsched.simulation.simulate import simulate as run_workload
    from simsched.site.given_site import rules_on, site_given
    from simsched.site.log_use import reading_on, use_sentence
    from simsched.workload.load import as_workload

    rules = {
        "queue_policy": queue_policy, "match_policy": match_policy, "seed": seed, "order": order,
        "queue_options": queue_options, "predictor": predictor, "priority": priority, "queues": queues,
        "limits": limits, "preemption": preemption, "reservations": reservations, "licenses": licenses,
        "outages": outages, "failures": failures, "on_failure": on_failure,
        "job_checkpoints": job_checkpoints, "overrun": overrun, "kill_grace": kill_grace,
        "epilog": epilog, "no_limit": no_limit, "think_times": think_times, "passes": passes,
        "candidates": candidates,
    }  # fmt: skip
    for name, given in (("inputs", inputs), ("checkpoints", checkpoints)):
        check(name, given, Mapping | None, "a mapping")
    for name, flag in (("allocations", allocations), ("eventlog", eventlog)):
        check(name, flag, bool, "True or False")
    check_callable("progress", progress)
    if stop is not None and not hasattr(stop, "is_set"):
        raise wrong("stop", stop, "a threading.Event")
    if env is not None and not hasattr(env, "schedule"):
        raise wrong("env", env, "a simpy.Environment")
    site = site_given(cluster)
    chosen = rules_on(site, rules)
    machine = as_cluster(cluster if site is None else site)
    jobs = as_workload(workload, None if site is None else reading_on(site))
    files = _files_of(cluster if site is None else site.cluster_file, workload) | dict(inputs or {})
    result = run_workload(
        machine, jobs, allocations=allocations, eventlog=eventlog, sink=sink, inputs=files, until=until,
        measure_from=measure_from, checkpoints=checkpoints, resume=resume, env=env, progress=progress,
        stop=stop, **chosen,
    )  # fmt: skip
    use = "" if site is None else use_sentence(site, jobs, mapped=False)
    notes = (*((use,) if use else ()), *notes_on_rules(chosen, jobs))
    if notes:
        warnings.warn(InputWarning("the options", notes), stacklevel=3)
    return simulated_run(result, machine, f"{name_of(chosen.get('queue_policy', 'easy'))} on {machine.name}")


def simulated_run(result: RunResult, cluster: Cluster, name: str) -> SimulatedRun:
    """Return records with their tables as frames."""
    return SimulatedRun(result, cluster, name=name)


def _files_of(cluster: object, workload: object) -> dict[str, Path]:
    """Return the files of inputs that are paths or names, without standard input."""
    from simsched.bundled import resolve
    from simsched.workload.load import resolve_workload

    found = {}
    if isinstance(cluster, str | PathLike) and str(cluster) != "-":
        found["cluster"] = resolve("clusters", Path(cluster))
    if isinstance(workload, str | PathLike) and str(workload) != "-":
        found["workload"] = resolve_workload(Path(workload))
    return found
