"""The inputs of searches: clusters and workloads in any form, and what an answer says about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.study.spec.run_task import MODEL, RunTask, TaskInput, canonical_json
from simsched.study.spec.study_tables import model_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.cluster import ClusterLike
    from simsched.workload.load import WorkloadLike

UNITS = ("users", "sessions")
"""What seeds resample in place of blocks of time."""


def about_of(base: RunTask, **more: Any) -> Any:
    """Return an `AboutSearch` with `more`: the names and digests of inputs, and how they were run."""
    return {
        **more,
        "inputs": [
            {"role": role, "name": source.name, "sha256": source.sha256, "reading": dict(source.reading)}
            for role, source in (("cluster", base.cluster), ("workload", base.workload))
        ],
        "transforms": list(base.transforms),
        "options": dict(base.options),
        "measure": {"warm_up": base.measure.warm_up, "drain": base.measure.drain},
    }


def cluster_input(cluster: ClusterLike) -> TaskInput:
    """Return a cluster (a file, a bundled name, ``-`` or a value) as the input of a task."""
    from simsched.graph.cluster import as_cluster

    if isinstance(cluster, str | Path):
        return _input("clusters", str(cluster), {})
    cluster = as_cluster(cluster)
    return TaskInput.of_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")), f"{cluster.name}.json")


def workload_input(workload: WorkloadLike, reading: Mapping[str, Any]) -> TaskInput:
    """Return a workload (a file, a model, a bundled name, ``-`` or a value) as the input of a task."""
    if not isinstance(workload, str | Path):
        from simsched.workload.load import as_workload
        from simsched.workload.save import lines_of

        workload = as_workload(workload)
        return TaskInput.of_text("\n".join(lines_of(workload, "jsonl")) + "\n", f"{workload.name}.jsonl")
    model = model_in(Path(workload))
    if model is not None:
        return TaskInput.of_text(canonical_json(model).decode(), str(workload), kind=MODEL)
    return _input("workloads", str(workload), reading)


def _input(room: str, name: str, reading: Mapping[str, Any]) -> TaskInput:
    if name == "-":
        from simsched.formats.text.documents import read_text

        return TaskInput.of_text(read_text("-"), "stdin", reading=reading)
    return TaskInput.find(room, name, {key: value for key, value in reading.items() if value})
