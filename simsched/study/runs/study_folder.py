"""The directory of a study: its files, its lock, and which of its runs are whole.

::

    DIR/study.json        the plan and the counts of results; "complete" once every run has one
    DIR/runs/KEY/         one directory per run, named by the key of its task
    DIR/runs.parquet      one row per run, in the order of the plan
    DIR/jobs/run=N/       the jobs.parquet of each run as a dataset that any Parquet tool reads
    DIR/failures.json     the runs without a result, and the reasons
    DIR/timings.parquet   time and worker of each run, which differ between equal sweeps
    DIR/report.html       the comparison

Every file is written under a temporary name and renamed, ``study.json`` last.  A finished study is
replaced as a whole by a new one, which is written in ``DIR.partial``.
"""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simsched._version import version
from simsched.arguments import check_path
from simsched.errors import RunError
from simsched.files import leftovers, lock, through_links, undone, write_file
from simsched.folders import PARTIAL, Layout, refuse_foreign, remove_leftover
from simsched.simulation.record.run_directory import RUN
from simsched.study.runs.dispatch import FinishedRun
from simsched.study.runs.single_run import RunRow, same_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    from simsched.study.spec.run_task import RunTask

STUDY_FORMAT = 1
RECORD, RUNS, FAILURES, PAGE, LOCK = "study.json", "runs", "failures.json", "report.html", ".lock"
#: written at the end, and removed when a study is resumed
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
    """Return the JSON document of a file; RunError if it cannot be read."""
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
        """The folder of the run directories."""
        return self.path / RUNS

    def record(self) -> dict[str, Any] | None:
        """Return the content of ``study.json``; None if there is no such file.

        Raises
        ------
        RunError
            if the file is not the record of a study, or has another format.
        """
        file = self.path / RECORD
        if not file.is_file():
            return None
        record = read_json(file)
        if not isinstance(record, dict) or "simsched" not in record:
            raise RunError(
                "this is not the record of a study", where=str(file), expected="a file that `sweep` wrote"
            )
        if record.get("format") != STUDY_FORMAT:
            fault = f"study format {record.get('format')!r} is unknown"
            raise RunError(fault, where=str(file), expected=f"format {STUDY_FORMAT}")
        return record

    def check(self, name: str, *, resume: bool) -> bool:
        """Return whether there is a finished study of this name, which a new one may replace.

        Raises
        ------
        RunError
            if the directory holds anything that would be lost: something other than a study, a file
            that does not belong to the study, another study, or an unfinished one (unless it is resumed).
        """
        if not self.path.name and str(self.path) != ".":
            raise RunError("this cannot be the directory of a study", where=str(self.path))
        record = self.record()
        if record is not None and record.get("name") != name:
            fault = f"the directory holds the study {record.get('name')!r}, and this one is {name!r}"
            raise RunError(fault, where=str(self.path), expected="another directory")
        finished = record is not None and not resume
        if finished and not _is_whole(self.path):
            fault = "the directory holds an unfinished study"
            raise RunError(fault, where=str(self.path), expected="--resume, or another directory")
        return refuse_foreign(self.path, STUDY if finished else UNFINISHED) and finished

    def replacement(self) -> StudyFolder:
        """Return the directory in which a study is written that replaces this one when it is finished."""
        path = through_links(self.path)
        if not path.name:
            raise RunError("the directory holds a study", where=str(self.path),
                           expected="--resume, or another directory")  # fmt: skip
        return StudyFolder(path.with_name(path.name + PARTIAL))

    @contextmanager
    def tidied(self) -> Iterator[None]:
        """Remove in the end the unfinished files of workers that were killed."""
        with undone(self._clear):
            try:
                yield
            finally:
                self._clear()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock the directory against other sweeps, and remove unfinished files of killed processes.

        Raises
        ------
        RunError
            if another sweep is writing, or nothing can be written there.
        """
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            lock_file = (self.path / LOCK).open("ab")
        except OSError as error:
            raise RunError(f"cannot be written: {error.strerror}", where=str(self.path)) from None
        with lock_file:
            if not lock(lock_file.fileno()):
                raise RunError("another sweep is writing to this directory", where=str(self.path))
            self._clear()
            yield

    def _clear(self) -> None:
        """Remove unfinished files of processes of this machine that are dead."""
        for place in (self.path, self.runs):
            for left in leftovers(place):
                remove_leftover(left, RUN)

    def begin(self) -> None:
        """Remove the files that are written at the end; from now on the study is unfinished."""
        for name in AT_THE_END:
            place = self.path / name
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)

    def done(self, task: RunTask) -> FinishedRun | None:
        """Return the result of a run that is whole; None if the task has to be performed."""
        place = self.runs / task.key
        try:
            record = json.loads((place / "run.json").read_bytes())
            if record.get("complete") is not True or record.get("simsched") != version():
                return None
            if not same_task(task, (place / "task.json").read_bytes()):
                return None
            row = RunRow.from_bytes((place / "row.json").read_bytes())
            seconds = float(record.get("wall_seconds", 0.0))
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, msgspec.MsgspecError):
            return None
        whole = row.key == task.key and _kept(task, place)
        return FinishedRun(task, row, seconds, 0, "there already") if whole else None


def place_of(directory: str | Path, name: str, *, resume: bool) -> tuple[StudyFolder, StudyFolder | None]:
    """Return the folder to write the study `name` to, and the finished study that it replaces, if any.

    A finished study stays as it is until the new one is finished.  The new one is written beside it, in
    ``DIR.partial``, and resumed from there.

    Raises
    ------
    RunError
        if the directory must not be written, see `StudyFolder.check`.
    """
    folder = StudyFolder(directory)
    replaces = folder.check(name, resume=resume)
    # A finished study with an unfinished successor: --resume means the successor.
    if replaces or (resume and _is_whole(folder.path)):
        beside = folder.replacement()
        if replaces or (beside.path.is_dir() and beside.record() is not None):
            beside.check(name, resume=resume)
            return beside, folder
    return folder, None


def strangers(folder: Path) -> Iterator[str] | None:
    """Yield the names of entries that do not belong to the study; None if the folder is not a study's."""
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
    """Yield the entries of ``runs/`` that do not belong to a run."""
    for place in sorted((folder / RUNS).iterdir()) if (folder / RUNS).is_dir() else ():
        inside = None if place.is_symlink() else RUN.strangers(place)
        name = f"{RUNS}/{place.name}"
        yield from [name] if inside is None else (f"{name}/{one}" for one in inside)


def _strangers_among(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield entries that have the name of one of our tables or pages but were not written by us."""
    for name in names:
        place = folder / name
        if place.is_symlink() or (name == PAGE and place.is_file() and not _is_page(place)):
            yield name
        elif place.is_dir():
            files = (path for path in sorted(place.rglob("*")) if not path.is_dir() or path.is_symlink())
            yield from (str(path.relative_to(folder)) for path in files if path.name != f"{name}.parquet")


def _is_page(file: Path) -> bool:
    """Whether a page is one of our reports; its first bytes name the generator."""
    from simsched.report.html.markup import GENERATOR

    with file.open("rb") as stream:
        return GENERATOR.encode() in stream.read(1000)


def _is_whole(folder: Path) -> bool:
    record = StudyFolder(folder).record()
    return record is not None and record.get("complete") is True


STUDY = Layout("study", strangers, _is_whole)
"""The layout of a study's directory, by which an earlier study is recognized."""


def _strangers_to_unfinished(folder: Path) -> Iterator[str] | None:
    """Yield the files that the rest of a study would overwrite; None for other files without a record."""
    others = (path for path in folder.iterdir() if not path.name.startswith(".") and path.name != RUNS)
    if StudyFolder(folder).record() is None and any(others):
        return None
    return _strangers_among(folder, AT_THE_END)


UNFINISHED = Layout("study", _strangers_to_unfinished, lambda _: False)
"""The layout of the directory of a study that is begun or resumed."""


def search_layout(noun: str, files: Sequence[str], keys: Set[str]) -> Layout:
    """Return the layout of the results of a search: its files, and perhaps ``runs/``.

    The last file is the record, which is written last: a JSON object with at least these keys.
    """

    def is_whole(folder: Path) -> bool:
        try:
            found = json.loads((folder / files[-1]).read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.keys() >= keys

    def inside(folder: Path) -> Iterator[str]:
        for path in sorted(folder.iterdir()):
            if path.name != RUNS and (path.name not in files or path.is_symlink() or not path.is_file()):
                yield path.name
        yield from strangers_among_runs(folder)

    return Layout(noun, lambda folder: inside(folder) if is_whole(folder) else None, is_whole)


def _kept(task: RunTask, place: Path) -> bool:
    """Whether a run directory has all files that the task keeps, and its tables are not truncated."""
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
