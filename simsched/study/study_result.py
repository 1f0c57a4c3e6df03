"""`StudyResult`: the directory of a study as frames, and SQL over all of it."""

from __future__ import annotations

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.arguments import check_path
from simsched.errors import ConfigError, RunError, first_line
from simsched.study.runs.study_folder import FAILURES, StudyFolder, read_json
from simsched.study.spec.study import column

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.data.tables import RunTables

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
