"""The Python interface to whole runs: `simulate`, `load_run` and their results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, wrong
from simsched.errors import InputWarning
from simsched.report.run_views import Run, load_run

if TYPE_CHECKING:
    import pandas as pd

    from simsched.graph.cluster import Cluster, ClusterLike
    from simsched.match.policies.policy import CandidateOrder, MatchPolicy
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.record.run_directory import RunResult
    from simsched.workload.job import Workload

__all__ = ["Run", "SimulatedRun", "load_run", "simulate"]


class SimulatedRun(Run):
    """A run in memory: the tables of `Run`, and `save`."""

    def __init__(self, result: RunResult, cluster: Cluster, *, name: str) -> None:
        super().__init__(None, result.meta, name=name)
        self.result = result
        self._cluster = cluster

    def inputs(self) -> tuple[Cluster, Workload]:
        """Return the cluster and the workload of the run; the jobs are in their queues."""
        assert self.result.workload is not None
        return self._cluster, self.result.workload

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
        text = summary_text(Run.from_result(self.result).summary)
        self.path = self.result.save(directory, files={"summary.json": text})
        return self.path


def simulate(
    cluster: ClusterLike,
    workload: Workload | str | Path,
    queue_policy: str | QueuePolicy = "easy",
    match_policy: str | MatchPolicy | CandidateOrder = "first",
    seed: int = 0,
    **options: Any,
) -> SimulatedRun:
    """Run a workload on a cluster.

    Parameters
    ----------
    cluster, workload : values, files or bundled names.  A cluster may also be a networkx graph.
    queue_policy, match_policy : names, which ``simsched run --help`` lists, or policies as objects; the
        same holds for the option `order`.
    seed : seed of every random choice; the same seed gives the same run.
    options : other arguments of `simsched.simulation.simulate.simulate`: `allocations`, `overrun`, `order` …

    Returns
    -------
    SimulatedRun
        with `.jobs` and `.timeline` (data frames, times in seconds), `.summary` (figures by
        name) and `.save(directory)`.

    Raises
    ------
    ConfigError
        for an unknown policy or option.
    """
    from simsched.graph.cluster import as_cluster
    from simsched.plugins.plugin_errors import name_of
    from simsched.simulation.options.rule_notes import notes_on_rules
    from simsched.simulation.simulate import simulate as run_workload
    from simsched.workload.load import as_workload

    _check_options(options)
    given = cluster, workload
    cluster, workload = as_cluster(cluster), as_workload(workload)
    options["inputs"] = _files_of(*given) | dict(options.get("inputs") or {})
    result = run_workload(cluster, workload, queue_policy, match_policy, seed, **options)
    notes = tuple(notes_on_rules({"queue_policy": queue_policy, **options}, workload))
    if notes:
        warnings.warn(InputWarning("the options", notes), stacklevel=2)
    return simulated_run(result, cluster, f"{name_of(queue_policy)} on {cluster.name}")


def simulated_run(result: RunResult, cluster: Cluster, name: str) -> SimulatedRun:
    """Return records with their tables as frames."""
    tables = Run.from_result(result)
    run = SimulatedRun(result, cluster, name=name)
    run.__dict__.update(jobs=tables.jobs, timeline=tables.timeline)
    return run


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


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option of the wrong type that is not part of the configuration."""
    for name in ("inputs", "checkpoints"):
        check(name, options.get(name), Mapping | None, "a mapping")
    check_callable("progress", options.get("progress"))
    stop = options.get("stop")
    if stop is not None and not hasattr(stop, "is_set"):
        raise wrong("stop", stop, "a threading.Event")
    env = options.get("env")
    if env is not None and not hasattr(env, "schedule"):
        raise wrong("env", env, "a simpy.Environment")
