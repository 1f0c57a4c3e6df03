"""The outages of the nodes of a run: planned ones of ``run.json``, random ones of their file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.rfc.idset import Idset
from simsched.report.columns import OUTAGES
from simsched.report.data.column_arrays import read_columns, shaped
from simsched.simulation.options.run_config import from_document
from simsched.simulation.outages.outages import FAILURE, Outage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

FAILURES = "failures.parquet"


def outages_in(folder: Path | None, config: Mapping[str, Any]) -> tuple[Outage, ...]:
    """Return the outages of a run, the planned ones first.

    `folder` is the run directory, and `config` the configuration of the run.  Runs of versions without
    ``failures.parquet`` have only the planned outages.
    """
    planned = from_document({"outages": config.get("outages", [])}, "run.json").get("outages", ())
    file = folder / FAILURES if folder else None
    if file is None or not file.is_file():
        return tuple(planned)
    read = read_columns(file, {column.name: column.kind for column in OUTAGES[:3]})
    rows = zip(*(column.tolist() for column in read.values()), strict=True)
    return (*planned, *(Outage(Idset.from_ids([rank]), start, end, FAILURE) for rank, start, end in rows))


def outages_of(folder: Path | None, config: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per node and outage, ordered by start; the columns are `columns.OUTAGES`."""
    import pandas as pd

    rows = [(rank, one.start, one.end, one.kind) for one in outages_in(folder, config) for rank in one.ranks]
    frame = pd.DataFrame(rows, columns=[column.name for column in OUTAGES])
    frame = frame.astype({"rank": np.int64, "start": np.float64, "end": np.float64})
    return shaped(frame.sort_values(["start", "rank"], kind="stable", ignore_index=True), OUTAGES)
