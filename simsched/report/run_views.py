"""`Run`: the tables of a run, and the views of them that a person asks for.

The other modules of this package take `RunTables`; this one is above them and calls them.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from simsched.arguments import options_named, wrong
from simsched.errors import ConfigError
from simsched.report.data.tables import RunTables
from simsched.text_table import PAGE_WIDTH, html_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

    from simsched.formats.rfc.clock import When
    from simsched.graph.cluster import Cluster
    from simsched.report.compare import Comparison
    from simsched.report.data.arrow_table import ArrowTable
    from simsched.report.metrics.metric_plugins import MetricFunction
    from simsched.report.section_plugins import ReportSection
    from simsched.report.waiting.job_answer import JobWait
    from simsched.workload.job import Workload


ARROW_TABLES = ("jobs", "timeline", "nodes", "allocations")


class Run(RunTables):
    """One run: its tables, and the answers and figures made of them."""

    def why(
        self, job: int | str, cluster: Cluster | None = None, workload: Workload | None = None
    ) -> JobWait:
        """Return why a job waited: its wait (s) by cause, period by period, and what would have helped.

        `cluster` and `workload` are the inputs of the run; without them they are read again.

        Raises
        ------
        ConfigError
            if the run has no such job, or the job never waited for resources.
        RunError
            if the run has no allocations or was not saved, or its inputs cannot be read again.
        """
        from simsched.report.waiting.job_wait import why

        if cluster is None or workload is None:
            read = self.inputs()
            cluster, workload = cluster or read[0], workload or read[1]
        return why(self, job, cluster, workload)

    def waits(self, cluster: Cluster | None = None, workload: Workload | None = None) -> pd.DataFrame:
        """Return the wait of each job by cause: one row per job, one column per cause, in seconds.

        `cluster` and `workload` are the inputs of the run; without them they are read again.  If they cannot
        be, or the run has no allocations, sums over the whole machine decide, and all other time is
        "policy or placement".
        """
        from simsched.report.waiting.wait_totals import find_causes, wait_table

        return wait_table(self, find_causes(self, cluster, workload)[0])

    @options_named
    def plot(
        self,
        kind: str = "gantt",
        *others: RunTables,
        dark: bool = False,
        paper: str | None = None,
        grey: bool = False,
        start: When | str | None = None,
        end: When | str | None = None,
        nodes: str | None = None,
        users: str | Sequence[str] = (),
        queues: str | Sequence[str] = (),
        colour: str | None = None,
        names: bool | None = None,
        waits: bool = False,
    ) -> Any:
        """Draw a kind of figure of this run, beside `others` where it compares runs; a matplotlib Figure.

        ``simsched plot list`` lists the kinds. `paper` is the width of a column: ``single``, ``double`` or
        a length. The keywords from `start` on choose the part of a Gantt chart, as the fields of
        `simsched.report.data.gantt_view.GanttView` do; times are seconds, durations or dates.

        Raises
        ------
        ConfigError
            for an unknown kind or view, or if matplotlib is not installed.
        RunError
            if the run lacks data that the figure needs.
        """
        from simsched.report.data.gantt_view import view_of
        from simsched.report.figures.figures import draw

        view = view_of(start, end, nodes=nodes, users=users, queues=queues, colour=colour, names=names,
                       waits=waits or None)  # fmt: skip
        return draw(kind, [self, *others], dark=dark, view=view, paper=paper, grey=grey)

    def plot_wait(
        self, job: int | str, *, dark: bool = False, paper: str | None = None, grey: bool = False
    ) -> Any:
        """Draw why a job waited: its causes over time, and the holders of the short resources.

        A matplotlib Figure.  See `why` and `plot`.
        """
        from simsched.report.figures.figures import draw_job

        return draw_job(self, self.why(job), dark=dark, paper=paper, grey=grey)

    def page(self, *others: RunTables, sections: Sequence[str | ReportSection] = ()) -> str:
        """Return an HTML page of this run, compared with `others` if there are any.

        `sections` of other packages follow, by name or as objects.
        """
        from simsched.report.html.page import page

        for other in others:
            if isinstance(other, str | PathLike):
                expected = f"runs to compare; Path({str(other)!r}).write_text(run.page()) writes the page"
                raise wrong("others", other, expected)
        return page([self, *others], sections)

    def compare(self, other: RunTables) -> Comparison:
        """Return how `other`, a run of the same jobs, differs from this one job by job."""
        from simsched.report.compare import compare_runs

        return compare_runs(self, other)

    def arrow(self, table: str = "jobs") -> ArrowTable:
        """Return a table (``jobs``, ``timeline``, ``nodes`` or ``allocations``) for polars and others.

        It has the Arrow PyCapsule interface, as in ``polars.DataFrame(run.arrow())``.

        ConfigError for a table that a run does not have.
        """
        from simsched.report.data.arrow_table import ArrowTable

        if table not in ARROW_TABLES:
            raise ConfigError(f"a run has no table {table!r}", expected=", ".join(ARROW_TABLES))
        return ArrowTable(table, getattr(self, table))

    def section(self, section: str | ReportSection, width: int = PAGE_WIDTH) -> str:
        """Return the text of a section of another package, given by name or as an object.

        ConfigError for an unknown name or option, PluginError if the section fails.
        """
        from simsched.report.section_plugins import section_text

        return section_text(self, section, width)

    def metric(self, metric: str | MetricFunction) -> float:
        """Return a figure: one in `summary` by name, or a metric of another package by name or as an object.

        A metric that is a function gets the frames `jobs` and `timeline` and the `totals`.

        ConfigError for an unknown name or option, PluginError if the metric fails.
        """
        from simsched.report.metrics.metric_plugins import KIND, as_metric, installed_metric

        if isinstance(metric, str):
            found = installed_metric(metric)
            if found is None and metric in self.summary:
                return self.summary[metric]
            if found is None:
                raise KIND.unknown(metric, self.summary)
            return found(self.jobs, self.timeline, self.totals)
        return as_metric(metric)(self.jobs, self.timeline, self.totals)

    def _repr_html_(self) -> str:
        """Return the figures of the run as a table, for a notebook."""
        from simsched.report.text_report import overview_rows

        return html_table(f"{self.name} on {self.cluster_name}", overview_rows(self))


def load_run(directory: str | Path, *, name: str | None = None) -> Run:
    """Open a finished run directory; `name` is its name in comparisons, by default that of the directory.

    Raises
    ------
    RunError
        if the directory is missing or is not that of a run, the run did not finish, or its format is newer
        than this version reads.
    """
    return Run.load(directory, name=name)
