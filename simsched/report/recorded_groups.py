"""The table of `report --recorded`: recorded beside simulated waits by queue, size, user, hour or day."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from simsched import human
from simsched.report.export import table_formats
from simsched.report.metrics.agreement import agreement_by
from simsched.report.metrics.classes import GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.tables import RunTables

KEYS = tuple(GROUPS)
#: words in the names of columns → words in their heads, and ends of names → unit
_WORDS = {
    "recorded": "rec.",
    "simulated": "sim.",
    "bounded": "",
    "slowdown": "bsld",
    "wait": "",
    "correlation": "corr.",
    "within": "≤",
    "ten": "10",
    "minutes": "min",
    "twofold": "2 ×",
}
_UNITS = {"_wait": "s", "_use": "share", "_minutes": "share", "_twofold": "share"}


def frame_of(runs: Sequence[RunTables], key: str) -> pd.DataFrame:
    """Return one row per run and group (`KEYS`): ``run``, the key, then the columns of `agreement_by`."""
    tables = []
    for run in runs:
        jobs = run.jobs
        capacity = run.totals.get("core") or run.totals.get("node") or math.nan
        table = agreement_by(jobs, key, run.clock)
        for name in ("recorded_use", "simulated_use"):
            table[name] = table[name] / capacity
        tables.append(table.rename_axis(key).reset_index().astype({key: "str"}).assign(run=run.name))
    whole = pd.concat(tables, ignore_index=True)
    return whole[["run", key, *(name for name in whole.columns if name not in {"run", key})]]


def _cells(runs: Sequence[RunTables], key: str) -> tuple[list[str], list[list[str]]]:
    several = len(runs) > 1
    frame = frame_of(runs, key)
    names = [str(name) for name in frame.columns[2:]]
    head = [*(["run"] if several else []), key, *map(_heading, names)]
    rows = [
        [
            *([str(row["run"])] if several else []),
            str(row[key]),
            *(human.quantity(round(float(row[name]), 6), _unit(name)) for name in names),
        ]
        for row in frame.to_dict("records")
    ]
    return head, rows


def _heading(name: str) -> str:
    return " ".join(filter(None, (_WORDS.get(word, word) for word in name.split("_"))))


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


_SPARE = [_heading(f"{side}_{figure}") for figure in ("use", "mean_bounded_slowdown", "median_wait")
          for side in ("recorded", "simulated")]  # fmt: skip
FORMATS = table_formats(frame_of, _cells, _SPARE)
"""Format → function of runs and a key that returns the table."""
