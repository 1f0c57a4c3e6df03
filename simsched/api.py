"""What Python users call, where it takes more than one room: whole runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_callable, check_path, wrong
from simsched.report.data.tables import Run, load_run

if TYPE_CHECKING:
    import pandas as pd

    from simsched.graph.cluster import ClusterLike
    from simsched.match.policies.policy import MatchPolicy
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.record.result import Result
    from simsched.workload.job import Workload

__all__ = ["Run", "SimulatedRun", "load_run", "simulate"]


class SimulatedRun(Run):
    """A run in memory: the tables of `Run`, and `save`."""

    def __init__(self, result: Result, meta: Mapping[str, Any], *, name: str) -> None:
        super().__init__(None, meta, name=name)
        self.result = result

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row an execution target of the machine; columns are `simsched.report.data.columns.NODES`."""
        from simsched.report.data.tables import nodes_frame
        from simsched.simulation.record.node_table import node_columns

        return nodes_frame(node_columns(self.result.index) if self.result.index is not None else {})

    def save(self, directory: str | Path) -> Path:
        """Write the run directory, summary included, and return its path.

        Raises
        ------
        RunError
            if `directory` holds anything but an earlier run of ours, which is replaced, or cannot be written.
        """
        from simsched.report.metrics.summary_file import summary_text

        check_path("directory", directory)
        tables = Run.from_columns(self.result.jobs, self.result.timeline, self.result.meta)
        self.path = self.result.save(directory, files={"summary.json": summary_text(tables.summary)})
        return self.path


def simulate(
    cluster: ClusterLike,
    workload: Workload | str | Path,
    queue_policy: str | QueuePolicy = "easy",
    match_policy: str | MatchPolicy = "first",
    seed: int = 0,
    **options: Any,
) -> SimulatedRun:
    """Run a workload on a cluster.

    Parameters
    ----------
    cluster, workload : as loaded, or a file, or the name of a bundled one.  A cluster may also be a
        networkx graph.
    queue_policy, match_policy : names, which ``simsched run --help`` lists, or policies as objects.
        So may `order` among the options.
    seed : of every random choice; the same seed gives the same run.
    options : what else `simsched.simulation.simulate.simulate` takes: `allocations`, `overrun`, `order` …

    Returns
    -------
    SimulatedRun
        with `.jobs` and `.timeline` (data frames, times in seconds), `.summary` (figures by
        name) and `.save(directory)`.

    Raises
    ------
    ConfigError
        for a policy or option that does not exist.
    """
    from simsched.graph.cluster import as_cluster
    from simsched.match.policies.plugins import name_of
    from simsched.simulation.simulate import simulate as run_workload
    from simsched.workload.load import as_workload

    _check_options(options)
    given = cluster, workload
    cluster, workload = as_cluster(cluster), as_workload(workload)
    options["inputs"] = _files_of(*given) | dict(options.get("inputs") or {})
    result = run_workload(cluster, workload, queue_policy, match_policy, seed, **options)
    tables = Run.from_columns(result.jobs, result.timeline, result.meta)
    run = SimulatedRun(result, result.meta, name=f"{name_of(queue_policy)} on {cluster.name}")
    run.__dict__.update(jobs=tables.jobs, timeline=tables.timeline)
    return run


def _files_of(cluster: object, workload: object) -> dict[str, Path]:
    """Return the files of the inputs that were given by path or name; standard input is none."""
    from simsched.bundled import resolve
    from simsched.workload.load import resolve_workload

    found = {}
    if isinstance(cluster, str | PathLike) and str(cluster) != "-":
        found["cluster"] = resolve("clusters", Path(cluster))
    if isinstance(workload, str | PathLike) and str(workload) != "-":
        found["workload"] = resolve_workload(Path(workload))
    return found


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options of the wrong type, of those that are no part of the configuration."""
    for name in ("inputs", "checkpoints"):
        check(name, options.get(name), Mapping | None, "a mapping")
    check_callable("progress", options.get("progress"))
    stop = options.get("stop")
    if stop is not None and not hasattr(stop, "is_set"):
        raise wrong("stop", stop, "a threading.Event")
    env = options.get("env")
    if env is not None and not hasattr(env, "schedule"):
        raise wrong("env", env, "a simpy.Environment")
