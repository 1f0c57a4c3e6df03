"""The origin of a run according to its ``run.json``: enough to repeat the run, and its inputs read again.

The document is decoded into these types, so that a value of another type is an error with its
place, and later code need not check it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from simsched.declare.table import types_of
from simsched.errors import RunError
from simsched.formats.text.documents import read_bytes
from simsched.formats.text.json_text import decode_json_bulk, told
from simsched.simulation.record.file_digests import changed_inputs
from simsched.simulation.record.run_directory import check_format
from simsched.workload.mapping import ReadingOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Workload

ROLES = ("cluster", "workload")


WorkloadArguments = msgspec.defstruct(
    "WorkloadArguments",
    [(name, hint | None, None) for name, hint in types_of(ReadingOptions).items()],
    forbid_unknown_fields=True,
    omit_defaults=True,
)
"""The arguments by which the workload was read; None: not specified."""


class Command(msgspec.Struct):
    """The inputs by name, the rules as a configuration document, and how the workload was read."""

    cluster: str
    workload: str
    rules: dict[str, Any]
    reading: WorkloadArguments  # type: ignore[valid-type]

    def specified(self) -> dict[str, Any]:
        """Return the arguments of reading that are not None, by name."""
        found: dict[str, Any] = msgspec.to_builtins(self.reading)
        return found


class InputFile(msgspec.Struct):
    """One input; `sha256` is None for a folder."""

    role: Literal["cluster", "workload"]
    sha256: str | None


class Origin(msgspec.Struct):
    """The parts of ``run.json`` from which the run can be repeated."""

    inputs: list[InputFile] = []
    command: Command | None = None
    format: int = 1
    simsched: str | None = None
    files: dict[str, str] = {}


Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class _Input(msgspec.Struct):
    role: str | None = None
    name: str | None = None
    sha256: str | None = None


class _Machine(msgspec.Struct):
    name: str | None = None
    targets: Count = 0
    totals: dict[str, Count] = {}


class _Meta(msgspec.Struct, rename={"since": "from"}):
    """The types of the parts of ``run.json``; parts may be missing."""

    cluster: _Machine = msgspec.field(default_factory=_Machine)
    config: dict[str, Any] = {}
    counts: dict[str, Count] = {}
    inputs: list[_Input] = []
    files: dict[str, str] = {}
    wall_seconds: float | None = None
    jobs_per_second: float | None = None
    until: float | None = None
    since: float | None = None
    seed: int | None = None
    whole_nodes: bool = False
    queue_stops: dict[str, list[tuple[float, float | None]]] = {}
    reservations: list[dict[str, Any]] = []
    clock: dict[str, Any] = {}
    replay: dict[str, Any] = {}


def check_parts(meta: Mapping[str, Any], where: str) -> None:
    """Raise RunError for a part of ``run.json`` of another type than reports expect, with its place."""
    try:
        msgspec.convert(meta, _Meta)
    except msgspec.ValidationError as error:
        raise RunError(told(error), where=where, expected="a file that `simsched run` wrote") from None


def read_origin(path: Path) -> Origin:
    """Read how a run was made.

    Raises
    ------
    FormatError, RunError
        for a value of another type, with its place, and for a format of runs that is not known.
    """
    found = decode_json_bulk(read_bytes(path), str(path), kind=Origin)
    check_format({"format": found.format, "simsched": found.simsched}, str(path))
    return found


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

    from simsched.formats.sss.expressions import Names
    from simsched.graph.cluster import load_cluster
    from simsched.simulation.admission import Admission
    from simsched.simulation.options.run_config import from_document
    from simsched.workload.load import load_workload
    from simsched.workload.transforms.steps import apply_steps

    try:
        known = msgspec.convert(command, Command)
    except msgspec.ValidationError as error:
        raise RunError(str(error), where="run.json: command") from None
    options = from_document(known.rules, "run.json")
    cluster = load_cluster(known.cluster)
    reading = known.specified()
    steps = reading.pop("transform", [])
    workload = load_workload(
        known.workload,
        names=lambda: Names(tuple(cluster.index.hosts), tuple(cluster.index.property_rows)),
        seed=options.get("seed", 0),
        **reading,
    )
    if steps:
        workload = apply_steps(workload, steps, np.random.default_rng(options.get("seed", 0)))
    if options.get("queues") is not None:
        workload = replace(
            workload, jobs=tuple(Admission(options["queues"], cluster.index).extend(workload.jobs))
        )
    return cluster, workload


def _command_of_files(meta: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the command of a run that a Python program made from files without a queue configuration."""
    files = {one.get("role"): one.get("name") for one in meta.get("inputs", [])}
    if not all(Path(str(files.get(role))).exists() for role in ROLES) or meta.get("config", {}).get("queues"):
        fault = "run.json does not say how the inputs of the run were read"
        raise RunError(fault, where=where, expected="a run that `simsched run` made, or both inputs")
    reading = msgspec.to_builtins(WorkloadArguments())
    return {**{role: files[role] for role in ROLES}, "rules": {}, "reading": reading}
