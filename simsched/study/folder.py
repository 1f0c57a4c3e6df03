"""The directory of a study: who may write it, which runs in it are whole, what it says of itself.

::

    DIR/study.json        what was planned and what came of it; "complete" once every run is there
    DIR/runs/KEY/         one run directory each, named by the task's key
    DIR/runs.parquet      one row a run, in the order of the plan
    DIR/jobs/run=N/       the same jobs.parquet as a dataset that any Parquet tool reads
    DIR/failures.json     the runs that gave no result, and why
    DIR/timings.parquet   how long runs took, and where: what differs from time to time
    DIR/report.html       the comparison

Every file is written beside its name and renamed, ``study.json`` last.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check_path
from simsched.errors import RunError
from simsched.study.run_task import same_task
from simsched.study.task import Row, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.study.task import Task

STUDY_FORMAT = 1
RECORD, RUNS, FAILURES = "study.json", "runs", "failures.json"
#: what is written at the end, and taken away when a study goes on
AT_THE_END = (
    "runs.parquet",
    "queues.parquet",
    "timings.parquet",
    FAILURES,
    "report.html",
    "jobs",
    "timeline",
)
_PARQUET = b"PAR1"


def write_beside(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all; RunError if the disk is full, or the like."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)  # noqa: PTH105 - Path.replace is the same and hides that it is atomic
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise RunError(f"cannot be written: {error.strerror}", where=str(path)) from None


def write_json(path: Path, value: Any) -> None:
    """Write JSON as a whole or not at all."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    write_beside(path, text.encode() + b"\n")


def read_json(path: Path) -> Any:
    """Return the JSON of a file; RunError if it has none."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"cannot be read: {reason}", where=str(path), expected="JSON") from None


class StudyFolder:
    """The directory of one study."""

    def __init__(self, path: str | Path) -> None:
        check_path("directory", path)
        self.path = Path(path)

    @property
    def runs(self) -> Path:
        """Where the run directories are."""
        return self.path / RUNS

    def record(self) -> dict[str, Any] | None:
        """Return what ``study.json`` says; None if there is none.

        Raises
        ------
        RunError
            If there is one that is not ours, or of another layout.
        """
        file = self.path / RECORD
        if not file.is_file():
            return None
        record = read_json(file)
        if not isinstance(record, dict) or "simsched" not in record:
            raise RunError("not the record of a study", where=str(file))
        if record.get("format") != STUDY_FORMAT:
            what = f"study format {record.get('format')!r} is not known"
            raise RunError(what, where=str(file), expected=f"format {STUDY_FORMAT}")
        return record

    def check(self, *, resume: bool) -> None:
        """Refuse a directory that holds something else, or a study that is not to be resumed."""
        if not self.path.name and str(self.path) != ".":
            raise RunError("this cannot be a study's directory", where=str(self.path))
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise RunError("this is a file", where=str(self.path), expected="a new directory")
        if self.record() is not None:
            if not resume:
                what = "there is a study here already"
                raise RunError(what, where=str(self.path), expected="--resume, or another directory")
        elif any(not item.name.startswith(".") and item.name != RUNS for item in self.path.iterdir()):
            what = "this directory holds something that is not a study"
            raise RunError(what, where=str(self.path), expected="a new directory, or an earlier study's")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other sweeps out while this one writes, and clear what died writing before.

        Raises
        ------
        RunError
            If another one is at it, or nothing can be written there.
        """
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("ab")
        except OSError as error:
            raise RunError(f"cannot be written: {error.strerror}", where=str(self.path)) from None
        with lock:
            if not _locked(lock):
                raise RunError("another sweep is writing here", where=str(self.path))
            self._clear()
            yield
            self._clear()

    def _clear(self) -> None:
        """Take away what died while it was written."""
        for place in (self.path, self.runs):
            for left in place.glob(".*.writing*"):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()

    def begin(self) -> None:
        """Take away what is written at the end: from now on the study is not finished."""
        for name in AT_THE_END:
            place = self.path / name
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)

    def done(self, task: Task) -> Row | None:
        """Return the figures of a run that is there as a whole; None if it has to be run."""
        place = self.runs / task.key
        try:
            record = json.loads((place / "run.json").read_bytes())
            if record.get("complete") is not True or record.get("simsched") != version():
                return None
            if not same_task(task, (place / "task.json").read_bytes()):
                return None
            row = Row.from_bytes(
                (place / "row.json").read_bytes(),
                settings=task.settings,
                seconds=float(record.get("wall_seconds", 0.0)),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None
        return row if row.key == task.key and _kept(task, place) else None


def _locked(lock: Any) -> bool:
    """Take the lock of an open file, which goes when its process goes."""
    try:
        import fcntl
    except ModuleNotFoundError:  # not on every system
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _kept(task: Task, place: Path) -> bool:
    """Whether the run directory holds what the task is to keep, down to the ends of its tables."""
    names = {"jobs": ("jobs.parquet", "timeline.parquet"), "allocations": ("allocations.jsonl",)}
    names["eventlog"] = ("eventlog.jsonl",)
    for name in (name for word in task.keep for name in names[word]):
        file = place / name
        if not file.is_file() or (file.suffix == ".parquet" and not _is_parquet(file)):
            return False
    return True


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as stream:
        if stream.seek(0, 2) < len(_PARQUET) * 2:
            return False
        stream.seek(-len(_PARQUET), 2)
        return stream.read() == _PARQUET
