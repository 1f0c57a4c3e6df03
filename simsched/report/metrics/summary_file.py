"""``summary.json``: the figures of a run, written with its tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.files import write_file
from simsched.report.data.tables import load_run
from simsched.report.metrics.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping


def write_summary(run_dir: str | Path) -> dict[str, float]:
    """Compute the figures of a finished run and write them to its ``summary.json`` in one step.

    Raises
    ------
    RunError : the directory is not a finished run, or cannot be written.
    """
    run = load_run(run_dir)
    figures = summarise(run.jobs, run.timeline, run.totals, warm_up=run.warm_up)
    write_file(Path(run_dir) / "summary.json", summary_text(figures))
    return figures


def summary_text(figures: Mapping[str, float]) -> str:
    """Return the text of ``summary.json``; a figure that is not finite is null."""
    plain = {name: _short(value) if math.isfinite(value) else None for name, value in figures.items()}
    return json.dumps(plain, indent=1) + "\n"


def _short(value: float) -> float | int:
    return int(value) if value.is_integer() else float(f"{value:.12g}")
