"""A run's result in memory, and its directory: written beside its final name, renamed when complete.

An incomplete directory never has the final name.  An earlier run of that name is replaced as a whole,
at the end.  Any other directory is refused and left unchanged, and so is a run directory with foreign
files: ``run.json`` lists the files of the run.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.folders import PARTIAL, Layout, StagedFolder
from simsched.simulation.record.file_digests import with_digests
from simsched.simulation.record.node_table import node_columns
from simsched.simulation.record.parquet import write_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import BinaryIO, Self

    from simsched.graph.index.index import Index
    from simsched.simulation.record.allocation_log import AllocationLog
    from simsched.simulation.record.event_log import EventLog
    from simsched.workload.job import Workload

RECORD = "run.json"
_OWN = frozenset(
    {RECORD, "jobs.parquet", "timeline.parquet", "nodes.parquet", "failures.parquet", "limits.parquet",
     "allocations.jsonl", "eventlog.jsonl", "summary.json", "row.json", "task.json"}
)  # fmt: skip
RUN_FORMAT = 3
READABLE = (1, 2, 3)
"""The formats of run directories that this version reads; docs/simulation.md has their differences."""
_KEYS = frozenset({"simsched", "format", "complete", "config", "counts"})


def check_format(meta: Mapping[str, Any], where: str) -> None:
    """Refuse a ``run.json`` of a format that this version does not read, such as that of a newer one.

    Raises
    ------
    RunError
        with the version that wrote the run.
    """
    layout = meta.get("format", READABLE[0])
    if layout not in READABLE:
        by = f"run format {layout!r} of simsched {meta.get('simsched')} is not known"
        expected = f"format {' or '.join(map(str, READABLE))}, or a newer simsched, which reads this one"
        raise RunError(by, where=where, expected=expected)


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run as columns in memory.

    Attributes
    ----------
    jobs : the columns of ``jobs.parquet``, NumPy arrays of one length.  Times are seconds,
        NaN where a job has no such time.
    timeline : the columns of ``timeline.parquet``.
    meta : the content of ``run.json``.
    log : the allocations, or None if the run did not record them.
    events : the events of all jobs, or None.
    workload : the jobs as they ran: in their queues, with the queues' constraints and defaults.
    index : the machine, for ``nodes.parquet``; None omits that file.
    tables : the columns of ``failures.parquet`` and ``limits.parquet``; a table without columns has no file.
    """

    jobs: Mapping[str, Any]
    timeline: Mapping[str, Any]
    meta: Mapping[str, Any]
    log: AllocationLog | None = field(default=None, repr=False)
    events: EventLog | None = field(default=None, repr=False)
    workload: Workload | None = field(default=None, repr=False)
    index: Index | None = field(default=None, repr=False)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    def save(self, directory: str | Path, *, files: Mapping[str, str] | None = None) -> Path:
        """Write the run directory and return its path; `files` are further texts by file name.

        Raises
        ------
        RunError
            If `directory` is not an earlier run, which would be replaced, or cannot be written.
        """
        with RunDirectory(directory) as target:
            return target.finish(self, files or {})


class RunDirectory:
    """One run directory that is being written; leaving the context removes an unfinished one.

    Parameters
    ----------
    directory : the final name.
    of_study : whether it is a run of a study.  These are synced to disk together when the study is
        finished.  A damaged one may be replaced, because its name is that of its task.

    Raises
    ------
    RunError
        On entry, if a directory or file that is not a run has the name already, or the directory cannot
        be written; at the end, if the disk is full.
    """

    def __init__(self, directory: str | Path, *, of_study: bool = False) -> None:
        self.path = Path(directory)
        self._staged = StagedFolder(directory, RUN_OF_STUDY if of_study else RUN, durable=not of_study)
        self._sink: BinaryIO | None = None

    def __enter__(self) -> Self:
        self._staged.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sink is not None:
            with suppress(OSError):  # the disk is full, and the lines in memory are lost anyway
                self._sink.close()
        self._staged.__exit__(kind, error, trace)

    @property
    def replaced(self) -> bool:
        """Whether `finish` replaced an earlier run."""
        return self._staged.replaced

    @property
    def recovered(self) -> bool:
        """Whether an earlier run was restored whose process was killed before the rename."""
        return self._staged.recovered

    def allocations(self) -> BinaryIO:
        """Open ``allocations.jsonl``, into which the run writes its allocations."""
        self._sink = (self._staged.work / "allocations.jsonl").open("w+b", buffering=1 << 20)
        return self._sink

    def finish(self, result: RunResult, files: Mapping[str, str], *, tables: bool = True) -> Path:
        """Write all files (the tables only if `tables`), rename the directory, and return its path.

        The name of an interrupted run ends in ``.partial``; it never replaces a finished run.
        """
        work = self._staged.work
        self._write_allocations(result)
        if tables:
            nodes = {} if result.index is None else {"nodes": node_columns(result.index)}
            more = {name: columns for name, columns in result.tables.items() if columns}
            write_tables(work, {"jobs": result.jobs, "timeline": result.timeline, **nodes, **more})
        events = {"eventlog.jsonl": result.events.text()} if result.events is not None else {}
        for name, text in {**events, **files}.items():
            (work / name).write_text(text, encoding="utf-8")
        # run.json is last: it has the digests of all other files
        meta = with_digests(finite(result.meta), work)
        text = json.dumps(meta, indent=2, ensure_ascii=False, allow_nan=False)
        (work / RECORD).write_text(text + "\n", encoding="utf-8")
        return self._staged.finish("" if result.meta["complete"] else PARTIAL)

    def _write_allocations(self, result: RunResult) -> None:
        log = result.log
        if log is None or not log.readable:
            return
        sink = self._sink or self.allocations()
        if log.sink in (None, sink):
            log.flush_to(sink)
        else:  # the program has the lines in a file of its own
            sink.writelines(log.so_far())
        sink.close()


def foreign_files(folder: Path) -> Iterator[str] | None:
    """Yield the names in a run directory that are not part of the run; None if it is not a run directory."""
    meta = _record(folder)
    return None if meta is None else _foreign_files(folder, meta.get("files"))


def _foreign_files(folder: Path, listed: Any = None) -> Iterator[str]:
    own = _OWN.union(listed) if isinstance(listed, dict) else _OWN
    return (
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in own or path.is_symlink() or not path.is_file()
    )


def _record(folder: Path) -> dict[str, Any] | None:
    """Return ``run.json`` if simsched wrote it: that of another program has other keys."""
    try:
        meta = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(meta, dict) and meta.keys() >= _KEYS and isinstance(meta["simsched"], str)
    return meta if ours else None


def _is_whole(folder: Path) -> bool:
    return (_record(folder) or {}).get("complete") is True


RUN = Layout("run", foreign_files, _is_whole)
"""The layout of a run directory, which distinguishes earlier runs from other directories."""

RUN_OF_STUDY = Layout("run", lambda folder: foreign_files(folder) or _foreign_files(folder), _is_whole)
"""The same for a run of a study, whose ``run.json`` may be damaged or missing."""


def finite(value: Any) -> Any:
    """Return a value with text for the numbers that JSON does not have."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
