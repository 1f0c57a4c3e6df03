"""The outages of the nodes of a run: planned ones of ``run.json``, random ones of their file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched.formats.rfc.idset import Idset
from simsched.report.columns import OUTAGES
from simsched.report.data.frames import read_frame, shaped
from simsched.simulation.options.run_config import from_document
from simsched.simulation.outages.outages import FAILURE, Outage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FAILURES = "failures.parquet"


def outages_of(folder: Path | None, config: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per node and outage, ordered by start; the columns are `columns.OUTAGES`.

    `folder` is the run directory, and `config` the configuration of the run.

    Runs of versions without ``failures.parquet`` have only the planned outages.
    """
    planned = [
        (rank, float(outage.start), float(outage.end), outage.kind)
        for outage in _planned(config)
        for rank in outage.ranks
    ]
    rows = [*planned, *_failures(folder).itertuples(index=False, name=None)]
    frame = pd.DataFrame(rows, columns=[column.name for column in OUTAGES])
    frame = frame.astype({"rank": np.int64, "start": np.float64, "end": np.float64})
    return shaped(frame.sort_values(["start", "rank"], kind="stable", ignore_index=True), OUTAGES)


def outages_within(
    folder: Path | None, config: Mapping[str, Any], start: float, end: float
) -> tuple[Outage, ...]:
    """Return the outages, planned or by chance, that overlap with some time (seconds) of a run."""
    drawn = _failures(folder)
    drawn = drawn[(drawn["start"] <= end) & (drawn["end"] >= start)]
    planned = tuple(one for one in _planned(config) if one.start <= end and one.end >= start)
    rows = drawn.itertuples(index=False, name=None)
    random = (Outage(Idset.from_ids([rank]), begin, until, kind) for rank, begin, until, kind in rows)
    return (*planned, *random)


def _planned(config: Mapping[str, Any]) -> tuple[Outage, ...]:
    options = from_document({"outages": config.get("outages", [])}, "run.json")
    return tuple(options.get("outages", ()))


def _failures(folder: Path | None) -> pd.DataFrame:
    """Return the random failures: rank, start, end, kind."""
    file = folder / FAILURES if folder else None
    if file is None or not file.is_file():
        return pd.DataFrame({"rank": [], "start": [], "end": [], "kind": []})
    return read_frame(file, OUTAGES[:3], frozenset({"rank", "start", "end"})).assign(kind=FAILURE)
