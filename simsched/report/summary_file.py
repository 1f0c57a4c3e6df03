"""``summary.json``: the figures of a finished run, written beside its tables."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

from simsched.report.summary import summarise
from simsched.report.tables import load_run


def write_summary(run_dir: str | Path) -> dict[str, float]:
    """Compute the figures of a finished run and write them to its ``summary.json`` in one step.

    Raises
    ------
    RunError : the directory is not a finished run.
    """
    run = load_run(run_dir)
    figures = summarise(run.jobs, run.timeline, run.totals, warm_up=run.warm_up)
    plain = {name: None if math.isnan(v) or math.isinf(v) else _short(v) for name, v in figures.items()}
    target = Path(run_dir) / "summary.json"
    beside = target.with_suffix(".json.part")
    beside.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, target)  # noqa: PTH105 - Path.replace is the same and hides that it is atomic
    return figures


def _short(value: float) -> float | int:
    return int(value) if value.is_integer() else float(f"{value:.12g}")
