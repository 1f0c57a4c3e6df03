"""The origin of a run according to its ``run.json``: enough to repeat the run.

The document is decoded into these types, so that a value of another type is an error with its
place, and later code need not check it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from simsched.formats.text.input_files import read_bytes
from simsched.formats.text.json_text import decode_json_bulk

if TYPE_CHECKING:
    from pathlib import Path


class WorkloadArguments(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments by which the workload was read; None: not specified."""

    as_: str | None = None
    map: list[str] | None = None
    procs_per_node: int | None = None
    constrain: list[str] | None = None
    limit: int | None = None
    strict: bool | None = None
    transform: list[str] | None = None
    columns: str | None = None
    delimiter: str | None = None
    on_site: dict[str, Any] | None = None
    time_zone: str | None = None
    start_date: str | None = None

    def specified(self) -> dict[str, Any]:
        """Return the arguments that are not None, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class Command(msgspec.Struct):
    """The inputs by name, the rules as a configuration document, and how the workload was read."""

    cluster: str
    workload: str
    rules: dict[str, Any]
    reading: WorkloadArguments


class InputFile(msgspec.Struct):
    """One input; `sha256` is None for a folder."""

    role: Literal["cluster", "workload"]
    sha256: str | None


class Origin(msgspec.Struct):
    """The parts of ``run.json`` from which the run can be repeated."""

    inputs: list[InputFile] = []
    command: Command | None = None


def read_origin(path: Path) -> Origin:
    """Read how a run was made.  Raises `FormatError` with the place of a value of another type."""
    return decode_json_bulk(read_bytes(path), str(path), kind=Origin)
