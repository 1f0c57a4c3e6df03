"""A run directory: written beside its final name, renamed when whole.

Nothing half-written ever has the final name.  An earlier run of that name is replaced as a whole,
at the end.  Anything else that exists is left alone and refused, and so is a run in whose
directory somebody keeps other files: ``run.json`` lists those that are the run's own.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
_OWN = frozenset({RECORD, "jobs.parquet", "timeline.parquet", "nodes.parquet", "allocations.jsonl",
                  "eventlog.jsonl", "summary.json", "row.json", "task.json"})  # fmt: skip
_KEYS = frozenset({"simsched", "format", "complete", "config", "counts"})


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run as columns in memory.

    Attributes
    ----------
    jobs : the columns of ``jobs.parquet``, NumPy arrays of one length.  Times are seconds,
        NaN where there is none.
    timeline : the columns of ``timeline.parquet``.
    meta : the content of ``run.json``.
    log : the allocations, or None if the run did not record them.
    events : the events of all jobs, or None.
    workload : the jobs as they ran: in their queues, with the queues' constraints and defaults.
    index : the machine, for ``nodes.parquet``; None omits that file.
    """

    jobs: Mapping[str, Any]
    timeline: Mapping[str, Any]
    meta: Mapping[str, Any]
    log: AllocationLog | None = field(default=None, repr=False)
    events: EventLog | None = field(default=None, repr=False)
    workload: Workload | None = field(default=None, repr=False)
    index: Index | None = field(default=None, repr=False)

    def save(self, directory: str | Path, *, files: Mapping[str, str] | None = None) -> Path:
        """Write the run directory and return its path; `files` are further texts by file name.

        Raises
        ------
        RunError
            If `directory` holds anything but an earlier run of ours, which is replaced, or cannot be written.
        """
        with RunDirectory(directory) as target:
            return target.finish(self, files or {})


class RunDirectory:
    """One run directory in the making; as a context it removes what was not finished.

    Parameters
    ----------
    directory : the final name.
    of_study : whether it is one of the runs of a study.  These are synced to disk all at once when
        the study is finished, and one that is damaged may be replaced: its name is its task's.

    Raises
    ------
    RunError
        On entry, if something that is not a run of ours has the name already, or if nothing
        can be written there; in the end, if the disk is full.
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
            with suppress(OSError):  # the disk is full, and what is still in memory is of no use any more
                self._sink.close()
        self._staged.__exit__(kind, error, trace)

    @property
    def replaced(self) -> bool:
        """Whether `finish` replaced an earlier run."""
        return self._staged.replaced

    @property
    def recovered(self) -> bool:
        """Whether an earlier run was put back whose process was killed before it had its name."""
        return self._staged.recovered

    def allocations(self) -> BinaryIO:
        """Open ``allocations.jsonl`` for the run to write into while it goes on."""
        self._sink = (self._staged.work / "allocations.jsonl").open("w+b", buffering=1 << 20)
        return self._sink

    def finish(self, result: RunResult, files: Mapping[str, str], *, tables: bool = True) -> Path:
        """Write everything (without its tables if not `tables`), name the directory, and return its path.

        A run that was interrupted gets ``.partial`` behind its name, and never replaces a
        finished one.
        """
        work = self._staged.work
        self._write_allocations(result)
        if tables:
            write_tables(work, _tables(result))
        events = {"eventlog.jsonl": result.events.text()} if result.events is not None else {}
        for name, text in {**events, **files}.items():
            (work / name).write_text(text, encoding="utf-8")
        meta = with_digests(finite(result.meta), work)
        text = json.dumps(meta, indent=2, ensure_ascii=False, allow_nan=False)
        (work / RECORD).write_text(text + "\n", encoding="utf-8")
        return self._staged.finish("" if result.meta["complete"] else PARTIAL)

    def _write_allocations(self, result: RunResult) -> None:
        log = result.log
        if log is None:
            return
        sink = self._sink or self.allocations()
        log.flush_to(sink)
        sink.close()


def strangers(folder: Path) -> Iterator[str] | None:
    """Yield the names of what is in a directory and not part of the run; None if it is not a run's."""
    meta = _record(folder)
    return None if meta is None else _strangers(folder, meta.get("files"))


def _strangers(folder: Path, listed: Any = None) -> Iterator[str]:
    own = _OWN.union(listed) if isinstance(listed, dict) else _OWN
    return (
        path.name
        for path in sorted(folder.iterdir())
        if path.name not in own or path.is_symlink() or not path.is_file()
    )


def _record(folder: Path) -> dict[str, Any] | None:
    """Return ``run.json`` if it is ours: one of another program has other keys."""
    try:
        meta = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(meta, dict) and meta.keys() >= _KEYS and isinstance(meta["simsched"], str)
    return meta if ours else None


def _is_whole(folder: Path) -> bool:
    return (_record(folder) or {}).get("complete") is True


RUN = Layout("run", strangers, _is_whole)
"""The layout of a run directory, by which earlier runs are told from anything else."""

RUN_OF_STUDY = Layout("run", lambda folder: strangers(folder) or _strangers(folder), _is_whole)
"""The same of a run in a study, whose ``run.json`` may be damaged or missing."""


def _tables(result: RunResult) -> dict[str, Mapping[str, Any]]:
    nodes = {} if result.index is None else {"nodes": node_columns(result.index)}
    return {"jobs": result.jobs, "timeline": result.timeline, **nodes}


def finite(value: Any) -> Any:
    """Replace numbers that JSON does not have by text."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
