"""Facts of a run that the text page and the HTML page share: its dates, and the waits of its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.report.metrics import metrics as m

if TYPE_CHECKING:
    import pandas as pd

    from simsched.report.data.tables import RunTables


def dates_of(run: RunTables) -> str:
    """Return the dates from the first submission to the last end, with their zone; empty without dates."""
    if run.clock is None or run.jobs.empty:
        return ""
    low, high = m.span(run.jobs)
    return f"{run.clock.text(low)} to {run.clock.text(high)}, {run.clock.zone_text}"


def recorded_waits(done: pd.DataFrame) -> tuple[int, list[tuple[str, dict[str, float]]]]:
    """Return the number of jobs whose wait the log records, and the recorded and the simulated waits.

    The waits (s) are those of `metrics.describe`; [] for a log without starts.
    """
    known = done[done["recorded_wait"].notna()]
    if known.empty:
        return 0, []
    columns = (("recorded", "recorded_wait"), ("simulated", "wait"))
    return len(known), [(label, m.describe(known[column])) for label, column in columns]
