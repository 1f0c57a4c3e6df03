"""``summary.json``: the figures of a run, written with its tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.files import write_file
from simsched.report.summary import summarise
from simsched.report.tables import load_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.report.tables import Run


def summary_text(run: Run) -> str:
    """Return ``summary.json`` of a run: its figures, null for those that are no number."""
    return _text(_figures(run))


def write_summary(run_dir: str | Path) -> dict[str, float]:
    """Compute the figures of a finished run and write them to its ``summary.json`` in one step.

    Raises
    ------
    RunError : the directory is not a finished run, or cannot be written.
    """
    figures = _figures(load_run(run_dir))
    write_file(Path(run_dir) / "summary.json", _text(figures))
    return figures


def _figures(run: Run) -> dict[str, float]:
    return summarise(run.jobs, run.timeline, run.totals, warm_up=run.warm_up)


def _text(figures: Mapping[str, float]) -> str:
    plain = {name: _short(value) if math.isfinite(value) else None for name, value in figures.items()}
    return json.dumps(plain, indent=1) + "\n"


def _short(value: float) -> float | int:
    return int(value) if value.is_integer() else float(f"{value:.12g}")
