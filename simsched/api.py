"""The Python interface to whole runs: `simulate`, `load_run` and their results."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, options_of, wrong
from simsched.errors import InputWarning
from simsched.report.run_views import Run, load_run
from simsched.simulation.options.run_config import RunConfig
from simsched.simulation.options.run_rules import RunRules
from simsched.simulation.record.run_directory import finite

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from typing import BinaryIO, Unpack

    import pandas as pd
    from simpy import Environment

    from simsched.formats.rfc.clock import DateText
    from simsched.graph.cluster import Cluster, ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.engine import Engine
    from simsched.simulation.record.run_directory import RunResult
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
        from simsched.declare.answers import rounded
        from simsched.report.metrics.summary import RunFigures

        figures = self._tables.summary
        return RunFigures(
            {
                name: float(rounded(value, 12, whole=True)) if isfinite(value) else value
                for name, value in figures.items()
            }
        )

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


@options_of(RunRules, declared=RunConfig)
def simulate(
    cluster: ClusterLike,
    workload: WorkloadLike,
    queue_policy: str | QueuePolicy | None = None,
    match_policy: str | MatchPolicy | CandidateOrder | None = None,
    seed: int | None = None,
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
    stop: threading.Event | None = None,
    **options: Unpack[RunRules],
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
    options : the other rules, which are those of `RunRules`.
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
    from simsched.site.log_use import reading_on, use_sentence
    from simsched.site.site_folder import rules_on, site_given
    from simsched.workload.load import as_workload

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
    policies = {"queue_policy": queue_policy, "match_policy": match_policy, "seed": seed}
    chosen = rules_on(site, {**policies, **options})
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
    title = f"{name_of(chosen.get('queue_policy', 'easy'))} on {machine.name}"
    return SimulatedRun(result, machine, name=title)


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
