"""The inputs of a run, read again as its ``run.json`` says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import RunError
from simsched.simulation.record.file_digests import changed_inputs
from simsched.simulation.record.run_origin import Command, WorkloadArguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Workload

ROLES = ("cluster", "workload")


def unchanged_inputs(meta: Mapping[str, Any], where: str) -> tuple[Cluster, Workload]:
    """Read the cluster and the workload of a run; its jobs are in their queues.

    `meta` is the content of its ``run.json``, and `where` names the run in messages.

    Raises
    ------
    RunError
        if an input has changed since the run, or ``run.json`` does not say how it was read.
    """
    for changed, fault in changed_inputs(meta):
        if changed:
            raise RunError(fault, where=where, expected="the inputs of the run")
    command = meta.get("command")
    return recorded_inputs(command if command is not None else _command_of_files(meta, where))


def recorded_inputs(command: Mapping[str, Any]) -> tuple[Cluster, Workload]:
    """Read the cluster and the workload of the command of a run; its jobs are in their queues.

    Raises
    ------
    RunError
        if the command is not one that `simsched run` writes.
    SimschedError
        if an input cannot be read.
    """
    import numpy as np

    from simsched.formats.sss import Names
    from simsched.graph.cluster import load_cluster
    from simsched.simulation.admission import admit
    from simsched.simulation.options.run_config import from_document
    from simsched.workload.load import load_workload
    from simsched.workload.transforms.steps import apply_steps

    try:
        known = msgspec.convert(command, Command)
    except msgspec.ValidationError as error:
        raise RunError(str(error), where="run.json: command") from None
    options = from_document(known.rules, "run.json")
    cluster = load_cluster(known.cluster)
    reading = known.reading.specified()
    steps = reading.pop("transform", [])
    workload = load_workload(
        known.workload,
        names=lambda: Names(tuple(cluster.index.hosts), tuple(cluster.index.property_rows)),
        **reading,
    )
    if steps:
        workload = apply_steps(workload, steps, np.random.default_rng(options.get("seed", 0)))
    if options.get("queues") is not None:
        workload = replace(workload, jobs=admit(workload.jobs, options["queues"], cluster.index).jobs)
    return cluster, workload


def _command_of_files(meta: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the command of a run that a Python program made from files without a queue configuration."""
    files = {one.get("role"): one.get("name") for one in meta.get("inputs", [])}
    if not all(Path(str(files.get(role))).exists() for role in ROLES) or meta.get("config", {}).get("queues"):
        fault = "run.json does not say how the inputs of the run were read"
        raise RunError(fault, where=where, expected="a run that `simsched run` made, or both inputs")
    reading = msgspec.to_builtins(WorkloadArguments())
    return {**{role: files[role] for role in ROLES}, "rules": {}, "reading": reading}
