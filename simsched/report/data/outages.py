"""The outages of the nodes of a run as a frame: planned ones of ``run.json``, random ones of their file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simsched.report.columns import OUTAGES
from simsched.report.data.frames import read_frame, shaped
from simsched.simulation.options.run_config import from_document

if TYPE_CHECKING:
    from simsched.report.data.tables import RunTables

FAILURES = "failures.parquet"


def outages_of(run: RunTables) -> pd.DataFrame:
    """Return one row per node and outage, ordered by start; the columns are `columns.OUTAGES`.

    Runs of versions without ``failures.parquet`` have only the planned outages.
    """
    options = from_document({"outages": run.config.get("outages", [])}, "run.json")
    planned = [
        (rank, float(outage.start), float(outage.end), outage.kind)
        for outage in options.get("outages", ())
        for rank in outage.ranks
    ]
    frame = pd.DataFrame(planned, columns=[column.name for column in OUTAGES])
    file = run.path / FAILURES if run.path else None
    if file is not None and file.is_file():
        drawn = read_frame(file, OUTAGES[:3], frozenset({"rank", "start", "end"})).assign(kind="failure")
        frame = pd.concat([frame, drawn], ignore_index=True) if len(frame) else drawn
    frame = frame.astype({"rank": np.int64, "start": np.float64, "end": np.float64})
    return shaped(frame.sort_values(["start", "rank"], kind="stable", ignore_index=True), OUTAGES)
