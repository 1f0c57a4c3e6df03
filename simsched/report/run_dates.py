"""The dates of a run, for the text page and the HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.report.metrics import metrics as m

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.plain_columns import Table


def dates_of(run: RunTables, jobs: Table) -> str:
    """Return the dates from the first submission to the last end, with their zone; empty without dates."""
    if run.clock is None or not len(jobs):
        return ""
    low, high = m.span(jobs)
    return f"{run.clock.text(low)} to {run.clock.text(high)}, {run.clock.zone_text}"
