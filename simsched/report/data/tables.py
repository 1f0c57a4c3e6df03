"""Run directories as frames: jobs, timeline, allocations, nodes, queues, users, reasons.

A run directory is the public contract between the simulation and every other program; only its files
are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from simsched.arguments import check, check_path, check_real, wrong
from simsched.errors import FormatError, RunError, SimschedError, did_you_mean
from simsched.formats.rfc.clock import Clock, clock_of
from simsched.formats.text.json_text import load_json
from simsched.report.columns import JOBS, LIMITS, NODES, REQUIRED_JOBS, TIMELINE, Column
from simsched.report.data.column_arrays import job_rules, read_columns, read_frame, shaped, timeline_rules
from simsched.simulation.record.run_directory import check_format
from simsched.simulation.record.run_origin import check_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt
    import pandas as pd

    from simsched.graph.cluster import Cluster
    from simsched.report.data.column_arrays import Arrays
    from simsched.simulation.record.run_directory import RunResult
    from simsched.workload.job import Workload


ENERGY = Column("recorded_energy", "float", "J", "energy in the trace; a run without energies lacks it")
GROUP = Column("limit_group", "float", "", "the group of `columns.LIMITS`; a run without such waits lacks it")


class RunTables:
    """One run: its record and its tables.  Frames are read when they are first used.

    Attributes
    ----------
    path : the run directory, or None for a run that was never saved.
    meta : the content of ``run.json``.
    name : its name in comparisons; by default that of its directory.
    """

    def __init__(self, path: Path | None, meta: Mapping[str, Any], *, name: str | None = None) -> None:
        self.path = path
        self.meta: dict[str, Any] = dict(meta)
        self.name = name or (path.name if path else "run")

    @classmethod
    def load(cls, directory: str | Path, *, name: str | None = None) -> Self:
        """Open a finished run directory.

        Raises
        ------
        RunError : the directory is missing or is not that of a run, the run did not finish, or its
            format is newer than this version reads.
        """
        if not isinstance(directory, str | Path):
            raise RunError(f"{directory!r} is not a path", expected="a run directory")
        check_path("directory", directory)
        path = Path(directory)
        if not path.exists():
            raise _missing(path)
        if not path.is_dir():
            raise RunError("this is a file", where=str(path), expected="a run directory")
        if (path / "study.json").is_file():
            fault = "this is a study, not a run; its page is report.html in it"
            raise RunError(fault, where=str(path), expected="a run directory")
        if not (path / "run.json").is_file():
            raise RunError("this is not a run directory: it has no run.json", where=str(path))
        meta = read_record(path / "run.json")
        _check_meta(meta, path)
        return cls(path, meta, name=name or path.resolve().name)

    @classmethod
    def from_columns(
        cls,
        jobs: Mapping[str, Sequence[Any]] | pd.DataFrame,
        timeline: Mapping[str, Sequence[Any]] | pd.DataFrame,
        meta: Mapping[str, Any],
        *,
        name: str | None = None,
    ) -> Self:
        """Make a run from columns in memory; missing columns are empty."""
        check("meta", meta, Mapping, "a mapping, the content of run.json")
        run = cls(None, meta, name=name)
        run.__dict__["jobs"] = shaped(_frame("jobs", jobs), JOBS)
        run.__dict__["timeline"] = shaped(_frame("timeline", timeline), TIMELINE)
        return run

    @classmethod
    def from_result(cls, result: RunResult) -> Self:
        """Return the tables of a run that is still in memory."""
        return cls.from_columns(result.jobs, result.timeline, result.meta)

    @property
    def folder(self) -> Path | None:
        """The directory with the files of the run; None for tables that were made without one."""
        return self.path

    def __repr__(self) -> str:
        return f"<Run {self.name}: {len(self.jobs):,} jobs on {self.cluster_name}>"

    @property
    def cluster_name(self) -> str:
        """The cluster's name, or ``?`` if it is not recorded."""
        return str(self.meta.get("cluster", {}).get("name") or "?")

    @property
    def totals(self) -> dict[str, int]:
        """Units of each resource type of the whole cluster, ``{"node": 240, "core": 240}``."""
        return {str(t): int(n) for t, n in self.meta.get("cluster", {}).get("totals", {}).items()}

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the run: policies, seed, options."""
        return dict(self.meta.get("config", {}))

    def inputs(self) -> tuple[Cluster, Workload]:
        """Read the cluster and the workload of the run again; the jobs are in their queues.

        Raises
        ------
        RunError
            if an input has changed since the run, or ``run.json`` does not say how it was read.
        """
        from simsched.simulation.record.run_origin import unchanged_inputs

        try:
            return unchanged_inputs(self.meta, self.name)
        except RunError:
            raise
        except SimschedError:  # an input cannot be read
            names = [str(one.get("name")) for one in self.meta.get("inputs", [])]
            missing = next((name for name in names if not Path(name).exists()), None)
            if missing is None:
                raise
            fault = f"the input {missing} of the run is not here"
            raise RunError(
                fault, where=self.name, expected="the directory in which the run was made, and its inputs"
            ) from None

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job; columns, units and dtypes are `columns.JOBS`."""
        frame = read_frame(self._file("jobs.parquet"), JOBS, REQUIRED_JOBS, job_rules)
        if frame["wait"].isna().all():  # format 1 has no such column
            frame["wait"] = frame["start"] - frame["submit"]
        return frame

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """One row per instant at which something changed; each row holds until the next one."""
        return read_frame(self._file("timeline.parquet"), TIMELINE, frozenset({"time"}), timeline_rules)

    def job_arrays(self, names: Collection[str]) -> Arrays:
        """Return columns of the jobs, ``result`` among them, as arrays; a missing text is None.

        They are read without the frame of jobs, unless that has been read or cut.  The recorded energies and
        the groups under limits are NaN in a run without them.  RunError as for `jobs`.
        """
        kinds = {column.name: column.kind for column in (*JOBS, ENERGY, GROUP) if column.name in names}
        if "jobs" in self.__dict__ or self.path is None:
            blank = np.full(len(self.jobs), np.nan)
            return {name: _array(self.jobs[name]) if name in self.jobs else blank for name in kinds}
        return read_columns(self.path / "jobs.parquet", kinds, REQUIRED_JOBS, job_rules)

    def timeline_arrays(self) -> Arrays:
        """Return the numbers of the timeline as arrays, without its frame; RunError as for `timeline`."""
        if "timeline" in self.__dict__ or self.path is None:
            return {str(name): _array(column) for name, column in self.timeline.items()}
        return read_columns(self.path / "timeline.parquet", None, {"time"}, timeline_rules)

    @cached_property
    def summary(self) -> dict[str, float]:
        """Figures by name (`summary.METRICS`): from ``summary.json``, or computed if it is missing."""
        from simsched.report.metrics.summary import RunFigures, summarise

        stored = self.path / "summary.json" if self.path else None
        if stored and stored.is_file():
            return RunFigures({k: _number(v) for k, v in read_record(stored).items() if _is_number(v)})
        return RunFigures(summarise(self.jobs, self.timeline, self.totals, warm_up=self.warm_up))

    @cached_property
    def clock(self) -> Clock | None:
        """The dates of the run's seconds; None if its log had none."""
        clock = Clock.from_dict(self.meta.get("clock"))
        if clock is not None:
            return clock
        submits = self.job_arrays(("submit", "result"))["submit"]  # of a version whose times are dates
        return clock_of({}, float(np.fmin.reduce(submits))) if len(submits) else None

    @property
    def warm_up(self) -> float:
        """Seconds of submissions that ``run --from`` keeps out of the figures, though they are simulated."""
        begin = self.meta.get("from")
        submits = self.jobs["submit"]
        return 0.0 if begin is None or submits.empty else max(0.0, float(begin) - float(submits.min()))

    def steady(self, warm_up: float = 0.0, drain: float = 0.0) -> Self:
        """Return the run without its first `warm_up` and last `drain` seconds of submissions.

        Jobs submitted in them are not among its `jobs`; its timeline ends where they begin, and
        its figures are those of the time between [Feitelson01 in `metrics`].

        Raises
        ------
        RunError : no job was submitted between them.
        """
        from simsched.report.metrics.metrics import trim
        from simsched.report.metrics.summary import summarise

        check_real("warm_up", warm_up)
        check_real("drain", drain)
        kept = trim(self.jobs, warm_up, drain)
        if kept.empty:
            raise RunError("no job was submitted between warm-up and drain", where=self.name)
        low, high = self.jobs["submit"].min() + warm_up, self.jobs["submit"].max() - drain
        run = self._with_jobs(kept)
        run.__dict__["window"] = (float(low), float(high))
        run.__dict__["timeline"] = self.timeline[self.timeline["time"].between(low, high)]
        run.__dict__["summary"] = summarise(
            self.jobs, self.timeline, self.totals, warm_up=warm_up, drain=drain
        )
        return run

    def _with_jobs(self, jobs: pd.DataFrame) -> Self:
        """Return the run with other jobs, without what is made of them."""
        run = copy(self)
        for name in ("queues", "users", "reasons"):
            run.__dict__.pop(name, None)
        run.__dict__["jobs"] = jobs.reset_index(drop=True)
        return run

    #: ids of the jobs whose allocations are read; None: all
    _only: Sequence[str] | None = None

    def of_jobs(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the run with the jobs in some rows of `jobs` alone, and with their allocations."""
        run = self._with_jobs(self.jobs.iloc[rows])
        for name in ("shards", "allocations"):
            run.__dict__.pop(name, None)
        run.__dict__["summary"] = self.summary
        run._only = run.jobs["id"].astype(str).tolist()
        return run

    @cached_property
    def allocations(self) -> pd.DataFrame:
        """One row per job and pool (or node) that it held; columns are `columns.ALLOCATIONS`.

        Empty, with the same columns, for a run without its allocations.
        """
        from simsched.report.data.allocations import held_pools

        return held_pools(self.shards)

    @cached_property
    def shards(self) -> pd.DataFrame:
        """The alloc and release records of ``allocations.jsonl``, one row per record and R_lite entry."""
        from simsched.report.data.allocations import no_shards, read_shards

        file = self.folder / "allocations.jsonl" if self.has_allocations and self.folder else None
        return read_shards(file, self._only) if file and file.is_file() else no_shards()

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per execution target of the machine; columns are `columns.NODES`.

        Empty, with the same columns, for a run of an earlier version.
        """
        file = self.path / "nodes.parquet" if self.path else None
        if not file or not file.is_file():
            return nodes_frame({})
        frame = read_frame(file, NODES, frozenset({"rank"}))
        if frame["rank"].duplicated().any():
            raise RunError("two nodes have the same rank", where=str(file))
        return frame

    @cached_property
    def limits(self) -> pd.DataFrame:
        """One row per time in which a limit kept jobs waiting; columns are `columns.LIMITS`.

        Empty, with the same columns, for a run without such waits or of an earlier version.
        """
        import pandas as pd

        file = self.folder / "limits.parquet" if self.folder else None
        if not file or not file.is_file():
            return shaped(pd.DataFrame(), LIMITS)
        return read_frame(file, LIMITS, frozenset({"limit"}))

    @cached_property
    def outages(self) -> pd.DataFrame:
        """One row per node and outage, planned or by chance; columns are `columns.OUTAGES`."""
        from simsched.report.data.run_outages import outages_of

        return outages_of(self.folder, self.config)

    @cached_property
    def window(self) -> tuple[float, float]:
        """The times (s) between which use is averaged: the makespan, or from warm-up to drain."""
        from simsched.report.metrics.metrics import span

        return span(self.jobs)

    @property
    def has_allocations(self) -> bool:
        """Whether the run has its allocations."""
        return self.path is not None and (self.path / "allocations.jsonl").is_file()

    @cached_property
    def queues(self) -> pd.DataFrame:
        """One row per queue: jobs, waits, slowdowns, use (see `metrics.by`)."""
        from simsched.report.metrics.metrics import by

        return by(self.jobs, "queue")

    @cached_property
    def users(self) -> pd.DataFrame:
        """One row per user: jobs, waits, slowdowns, use (see `metrics.by`)."""
        from simsched.report.metrics.metrics import by

        return by(self.jobs, "user").sort_values("core_hours", ascending=False)

    @cached_property
    def reasons(self) -> pd.DataFrame:
        """One row per reason why jobs did not run or end well: result, reason, jobs, an example's id."""
        from simsched.report.metrics.metrics import reasons

        return reasons(self.jobs)

    def _file(self, name: str) -> Path:
        if self.path is None:
            raise RunError(f"this run was never saved and has no {name}")
        return self.path / name


def _array(column: Any) -> npt.NDArray[Any]:
    """Return a column of a frame; a missing text is None."""
    if column.dtype.kind in "ifb":
        return np.asarray(column)
    return np.array(column.astype(object).where(column.notna(), None), dtype=object)


def nodes_frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Return columns of nodes in memory as a frame like `RunTables.nodes`."""
    import pandas as pd

    frame = shaped(pd.DataFrame(dict(columns)), NODES)
    places = [name for name in frame.columns if name.startswith("in_")]
    return frame.astype(dict.fromkeys(places, "category"))


def _frame(name: str, columns: Mapping[str, Sequence[Any]] | pd.DataFrame) -> pd.DataFrame:
    """Return columns as a frame; ConfigError for any other value."""
    import pandas as pd

    expected = "columns of one length by name, or a DataFrame"
    check(name, columns, Mapping | pd.DataFrame, expected)
    try:
        return pd.DataFrame(columns)
    except ValueError:
        raise wrong(name, columns, expected) from None


def _missing(path: Path) -> RunError:
    """Return the error of a run directory that is missing, with the run directories beside it."""
    try:
        beside = sorted(str(record.parent) for record in path.parent.glob("*/run.json"))
    except OSError:
        beside = []
    fault = f"there is no such run directory{did_you_mean(str(path), beside)}"
    listed = f"one of the run directories there: {', '.join(beside)}" if beside else ""
    return RunError(fault, where=str(path), expected=listed or "a directory that `simsched run` wrote")


def _check_meta(meta: dict[str, Any], path: Path) -> None:
    where = str(path / "run.json")
    if "simsched" not in meta:
        raise RunError("not written by simsched", where=where, expected="a key 'simsched'")
    check_format(meta, where)
    if meta.get("complete") is not True:
        raise RunError("the run did not finish", where=str(path), expected="a complete run")
    check_parts(meta, where)
    for file in ("jobs.parquet", "timeline.parquet"):
        if not (path / file).is_file():
            raise RunError(f"{file} is missing", where=str(path), expected="a complete run")


def read_record(file: Path) -> dict[str, Any]:
    """Read a JSON object of the run directory; RunError for any other file."""
    try:
        value = load_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, FormatError) as error:
        raise RunError(f"cannot be read: {error}", where=str(file), expected="a JSON object") from None
    if not isinstance(value, dict):
        raise RunError("is not a JSON object", where=str(file), expected="a JSON object")
    return value


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
