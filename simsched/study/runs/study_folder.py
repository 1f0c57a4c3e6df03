"""The directory of a study: who may write it, which runs in it are whole, what it says of itself.

::

    DIR/study.json        what was planned and what came of it; "complete" once every run is there
    DIR/runs/KEY/         one run directory each, named by the task's key
    DIR/runs.parquet      one row a run, in the order of the plan
    DIR/jobs/run=N/       the same jobs.parquet as a dataset that any Parquet tool reads
    DIR/failures.json     the runs that gave no result, and why
    DIR/timings.parquet   how long runs took, and where: what differs from time to time
    DIR/report.html       the comparison

Every file is written beside its name and renamed, ``study.json`` last.  A finished study is
replaced as a whole by another one that is written in ``DIR.partial``.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check_path
from simsched.errors import RunError
from simsched.files import leftovers, lock, through_links, write_file
from simsched.folders import PARTIAL, Layout, refuse_foreign, remove_leftover
from simsched.simulation.record.run_directory import RUN
from simsched.study.runs.run_task import same_task
from simsched.study.runs.task import Row, version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.study.runs.task import Task

STUDY_FORMAT = 1
RECORD, RUNS, FAILURES, PAGE, LOCK = "study.json", "runs", "failures.json", "report.html", ".lock"
#: what is written at the end, and taken away when a study goes on
AT_THE_END = (
    "runs.parquet",
    "queues.parquet",
    "timings.parquet",
    FAILURES,
    PAGE,
    "jobs",
    "timeline",
)
_PARQUET = b"PAR1"


def write_json(path: Path, value: Any) -> None:
    """Write JSON as a whole or not at all."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    write_file(path, text + "\n")


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

    def check(self, *, resume: bool) -> bool:
        """Return whether there is a finished study that a new one may replace.

        Raises
        ------
        RunError
            If the directory holds anything that would be lost: something else than a study, a
            file that is not the study's, or (unless it is to be resumed) an unfinished study.
        """
        if not self.path.name and str(self.path) != ".":
            raise RunError("this cannot be a study's directory", where=str(self.path))
        if not os.path.lexists(self.path):
            return False
        if not self.path.is_dir():
            raise RunError("this is a file", where=str(self.path), expected="a new directory")
        record = self.record()
        if record is not None and not resume:
            if record.get("complete") is not True:
                what = "there is a study here already, and it is not finished"
                raise RunError(what, where=str(self.path), expected="--resume, or another directory")
            return refuse_foreign(self.path, STUDY)
        if record is None and any(
            not item.name.startswith(".") and item.name != RUNS for item in self.path.iterdir()
        ):
            what = "this directory holds something that is not a study"
            raise RunError(what, where=str(self.path), expected="a new directory, or an earlier study's")
        for name in _strangers_among(self.path, AT_THE_END):
            what = f"{name!r} is not part of the study in this directory and would be lost"
            raise RunError(what, where=str(self.path), expected="that file elsewhere")
        return False

    def replacement(self) -> StudyFolder:
        """Return the directory of a study that replaces this one when it is finished."""
        path = through_links(self.path)
        if not path.name:
            raise RunError("there is a study here already", where=str(self.path),
                           expected="--resume, or another directory")  # fmt: skip
        return StudyFolder(path.with_name(path.name + PARTIAL))

    @contextmanager
    def tidied(self) -> Iterator[None]:
        """Clear away in the end what workers that were ended have left."""
        try:
            yield
        finally:
            self._clear()

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
            lock_file = (self.path / LOCK).open("ab")
        except OSError as error:
            raise RunError(f"cannot be written: {error.strerror}", where=str(self.path)) from None
        with lock_file:
            if not lock(lock_file.fileno()):
                raise RunError("another sweep is writing here", where=str(self.path))
            self._clear()
            yield

    def _clear(self) -> None:
        """Take away what dead processes of this machine left half-written."""
        for place in (self.path, self.runs):
            for left in leftovers(place):
                remove_leftover(left, RUN)

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


def place_of(directory: str | Path, *, resume: bool) -> tuple[StudyFolder, StudyFolder | None]:
    """Return where a study is to be written, and the finished study that it is to replace, if any.

    Such a study stays as it is until the new one is finished, which is written beside it, in
    ``DIR.partial``, and resumed from there.

    Raises
    ------
    RunError
        If the directory may not be written, see `StudyFolder.check`.
    """
    folder = StudyFolder(directory)
    replaces = folder.check(resume=resume)
    if replaces or (resume and _is_whole(folder.path)):
        beside = folder.replacement()
        if replaces or (beside.path.is_dir() and beside.record() is not None):
            beside.check(resume=resume)
            return beside, folder
    return folder, None


def strangers(folder: Path) -> Iterator[str] | None:
    """Yield the names of what is in a directory and not part of the study; None if it is not a study's."""
    try:
        record = StudyFolder(folder).record()
    except RunError:
        return None
    return None if record is None else _strangers(folder)


def _strangers(folder: Path) -> Iterator[str]:
    own = {RECORD, RUNS, LOCK, *AT_THE_END}
    yield from (path.name for path in sorted(folder.iterdir()) if path.name not in own)
    yield from _strangers_among(folder, AT_THE_END)
    yield from strangers_among_runs(folder)


def strangers_among_runs(folder: Path) -> Iterator[str]:
    """Yield what is in ``runs/`` of a folder and not part of a run."""
    for place in sorted((folder / RUNS).iterdir()) if (folder / RUNS).is_dir() else ():
        inside = None if place.is_symlink() else RUN.strangers(place)
        name = f"{RUNS}/{place.name}"
        yield from [name] if inside is None else (f"{name}/{one}" for one in inside)


def _strangers_among(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield what has one of the names of our tables and pages and is not ours."""
    for name in names:
        place = folder / name
        if place.is_symlink() or (name == PAGE and place.is_file() and not _is_page(place)):
            yield name
        elif place.is_dir():
            files = (path for path in sorted(place.rglob("*")) if not path.is_dir() or path.is_symlink())
            yield from (str(path.relative_to(folder)) for path in files if path.name != f"{name}.parquet")


def _is_page(file: Path) -> bool:
    """Whether a page is one of our reports."""
    from simsched.report.html.markup import GENERATOR

    with file.open("rb") as stream:
        return GENERATOR.encode() in stream.read(1000)


def _is_whole(folder: Path) -> bool:
    record = StudyFolder(folder).record()
    return record is not None and record.get("complete") is True


STUDY = Layout("study", strangers, _is_whole)
"""The layout of a study's directory, by which earlier studies are told from anything else."""


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
