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


def outages_of(folder: Path | None, config: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per node and outage, ordered by start; the columns are `columns.OUTAGES`.

    `folder` is the run directory, and `config` the configuration of the run.

    Runs of versions without ``failures.parquet`` have only the planned outages.
    """
    import pandas as pd

    planned = [
        (rank, float(outage.start), float(outage.end), outage.kind)
        for outage in _planned(config)
        for rank in outage.ranks
    ]
    rows = [*planned, *((rank, start, end, FAILURE) for rank, start, end in _failures(folder))]
    frame = pd.DataFrame(rows, columns=[column.name for column in OUTAGES])
    frame = frame.astype({"rank": np.int64, "start": np.float64, "end": np.float64})
    return shaped(frame.sort_values(["start", "rank"], kind="stable", ignore_index=True), OUTAGES)


def outages_within(
    folder: Path | None, config: Mapping[str, Any], start: float, end: float
) -> tuple[Outage, ...]:
    """Return the outages, planned or by chance, that overlap with some time (seconds) of a run."""
    planned = tuple(one for one in _planned(config) if one.start <= end and one.end >= start)
    random = (
        Outage(Idset.from_ids([rank]), begin, until, FAILURE)
        for rank, begin, until in _failures(folder)
        if begin <= end and until >= start
    )
    return (*planned, *random)


def _planned(config: Mapping[str, Any]) -> tuple[Outage, ...]:
    options = from_document({"outages": config.get("outages", [])}, "run.json")
    return tuple(options.get("outages", ()))


def _failures(folder: Path | None) -> list[tuple[int, float, float]]:
    """Return the random failures: rank, start, end."""
    file = folder / FAILURES if folder else None
    if file is None or not file.is_file():
        return []
    read = read_columns(file, {column.name: column.kind for column in OUTAGES[:3]})
    return list(zip(*(column.tolist() for column in read.values()), strict=True))
