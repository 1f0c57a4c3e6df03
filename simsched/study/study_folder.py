"""The directory of a study: its files, its lock, which of its runs are whole, and its results as frames.

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
from functools import cached_property
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from simsched._version import version
from simsched.arguments import check_path
from simsched.errors import ConfigError, RunError, first_line
from simsched.files import leftovers, lock, through_links, undone, write_file
from simsched.folders import PARTIAL, Layout, refuse_foreign, remove_leftover
from simsched.simulation.record.run_directory import RUN
from simsched.study.runs.dispatch import FinishedRun
from simsched.study.runs.single_run import RunRow, same_task
from simsched.study.spec.study import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    import pandas as pd

    from simsched.report.data.tables import RunTables
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
    if record is None:
        return None
    own = {RECORD, RUNS, LOCK, *AT_THE_END}
    others = (path.name for path in sorted(folder.iterdir()) if path.name not in own)
    return chain(others, _strangers_among(folder, AT_THE_END), strangers_among_runs(folder))


def strangers_among_runs(folder: Path) -> Iterator[str]:
    """Yield the entries of ``runs/`` that do not belong to a run."""
    for place in sorted((folder / RUNS).iterdir()) if (folder / RUNS).is_dir() else ():
        inside = None if place.is_symlink() else RUN.strangers(place)
        name = f"{RUNS}/{place.name}"
        yield from [name] if inside is None else (f"{name}/{one}" for one in inside)


def _strangers_among(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield entries that have the name of one of our tables or pages but were not written by us."""
    from simsched.report.html.markup import GENERATOR

    for name in names:
        place = folder / name
        is_ours = True
        if name == PAGE and place.is_file():  # its first bytes name the generator
            with place.open("rb") as stream:
                is_ours = GENERATOR.encode() in stream.read(1000)
        if place.is_symlink() or not is_ours:
            yield name
        elif place.is_dir():
            files = (path for path in sorted(place.rglob("*")) if not path.is_dir() or path.is_symlink())
            yield from (str(path.relative_to(folder)) for path in files if path.name != f"{name}.parquet")


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
        if not file.is_file():
            return False
        if file.suffix == ".parquet":
            with file.open("rb") as stream:
                size = stream.seek(0, 2)
                stream.seek(max(size - len(_PARQUET), 0))
                if size < len(_PARQUET) * 2 or stream.read() != _PARQUET:
                    return False
    return True


FIRST_RUNS = 20
"""Runs that a notebook shows."""


class StudyResult:
    """The results of a study.

    Attributes
    ----------
    path : its directory.
    record : the content of ``study.json``: name, axes, seeds, plan, counts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        record = StudyFolder(path).record()
        if record is None:
            raise RunError(
                "this is not the directory of a study: it has no study.json",
                where=str(path),
                expected="a directory that `sweep` wrote",
            )
        self.record: dict[str, Any] = record

    def __repr__(self) -> str:
        counts = self.record["counts"]
        return f"<Study {self.name}: {counts['done']} of {counts['runs']} runs>"

    def _repr_html_(self) -> str:
        """Return the figures of the first runs as a table, for a notebook."""
        shown: str = self.runs.head(FIRST_RUNS).to_html(index=False, float_format="{:,.4g}".format)
        return f"<p>{escape(repr(self)[1:-1])}</p>{shown}"

    @property
    def name(self) -> str:
        """The name of the study."""
        return str(self.record["name"])

    @property
    def complete(self) -> bool:
        """Whether every run has a result."""
        return bool(self.record["complete"])

    @property
    def axes(self) -> dict[str, list[Any]]:
        """Axis → labels, as the study file has them."""
        return dict(self.record["axes"])

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: run, key, the axes (``-`` and ``.`` as ``_``), seed, every figure."""
        return self._read("runs.parquet")

    @cached_property
    def queues(self) -> pd.DataFrame:
        """One row per run and queue, if the study measured by queue."""
        return self._read("queues.parquet")

    @cached_property
    def timings(self) -> pd.DataFrame:
        """The time (s) and the worker of each run."""
        return self._read("timings.parquet")

    @cached_property
    def failures(self) -> list[dict[str, Any]]:
        """The runs without a result: run, key, settings, reason."""
        found: list[dict[str, Any]] = read_json(self.path / FAILURES)
        return found

    def run(self, number: int, *, name: str | None = None) -> RunTables:
        """Open the run with this number in the plan.

        Raises
        ------
        RunError
            if there is no such run, or it kept no tables.
        """
        from simsched.report.run_views import load_run

        plan = self.record["plan"]
        if not 0 <= number < len(plan):
            raise RunError(
                f"there is no run {number}", where=str(self.path), expected=f"0 to {len(plan) - 1}"
            )
        row = plan[number]
        settings = ", ".join(f"{axis} {label}" for axis, label in row["settings"].items())
        return load_run(self.path / "runs" / row["key"], name=name or settings or self.name)

    def sql(self, text: str, *, outside: bool = False) -> pd.DataFrame:
        """Answer a SQL query.

        Views: ``runs`` (one row per run), ``jobs`` and ``timeline`` (the rows of all runs with the number and
        the axes of their run), ``queues`` if the study measured by queue.  The query may only read, and
        only these tables, unless `outside` allows other files (see `simsched.report.data.sql`).

        Raises
        ------
        ConfigError
            if the query is wrong; the message is DuckDB's.
        """
        import duckdb

        from simsched.files import glob_free
        from simsched.report.data.sql import answer

        with duckdb.connect() as con:
            try:
                path = self.path.resolve()  # as `answer` compares them
                for name in ("runs", "queues"):
                    if (file := path / f"{name}.parquet").is_file():
                        con.read_parquet(glob_free(file)).create_view(name)
                axes = self._axes_query()
                for name in ("jobs", "timeline"):
                    if (place := path / name).is_dir():
                        each = glob_free(place) + f"/*/{name}.parquet"
                        con.read_parquet(each, hive_partitioning=True, union_by_name=True).create_view(
                            f"{name}_of_runs"
                        )
                        con.execute(f"create view {name} as {axes.format(name=f'{name}_of_runs')}")
            except (duckdb.Error, ValueError) as error:
                raise ConfigError(first_line(error), where="SQL") from None
            return answer(con, text, within=None if outside else [self.path])

    def _axes_query(self) -> str:
        """Return the query that adds the axes as columns to a table of all runs."""
        names = [column(name) for name in self.axes]
        axes = "".join(f'r."{name}" as "axis_{name}", ' for name in names)
        return f"select t.run, r.key, {axes}r.seed, t.* exclude (run) from {{name}} t join runs r using (run)"  # noqa: S608

    def _read(self, name: str) -> pd.DataFrame:
        from simsched.report.data.column_arrays import open_parquet

        file = self.path / name
        if not file.is_file():
            raise RunError(f"{name} is missing", where=str(self.path), expected="a finished study")
        with open_parquet(file, ()) as (con, _):
            frame: pd.DataFrame = con.table("t").df()
        return frame


def load_study_result(directory: str | Path) -> StudyResult:
    """Open the directory of a study, finished or not.

    Raises
    ------
    RunError
        if it is not the directory of a study, or has another format.
    """
    check_path("directory", directory)
    return StudyResult(Path(directory))
