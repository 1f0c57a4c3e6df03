"""Comparison of two runs job by job, with intervals that separate a difference from chance (`intervals`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simsched import human
from simsched.report.metrics.intervals import DAY, PERIODS, Interval, bootstrap, mean_interval, periods_of
from simsched.report.metrics.metrics import bounded_slowdown, ran, turnaround, wait

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from simsched.report.data.tables import RunTables

__all__ = [
    "Comparison",
    "Interval",
    "bootstrap",
    "compare",
    "compare_runs",
    "paired",
    "same_jobs",
    "side_by_side",
]

NOISE = "within noise"
"""The verdict on a difference whose interval contains zero."""
#: figures of a run whose difference has an interval, and its name in a `Comparison`
WITH_INTERVAL = {"mean_wait": "wait", "mean_turnaround": "turnaround", "mean_bounded_slowdown": "slowdown"}
#: runs of different files are paired if this share of their common ids was submitted at the same time
SAME = 0.5


def paired(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that ran in both, by id: id, submit, wait_a, wait_b, and the differences b - a.

    Columns: wait_difference and turnaround_difference (s), bounded_slowdown_difference (ratio).
    """
    left, right = (_measures(ran(j)).drop_duplicates("id") for j in (a, b))
    both = left.merge(right, on="id", suffixes=("_a", "_b"))
    for name in ("wait", "turnaround", "bounded_slowdown"):
        both[f"{name}_difference"] = both[f"{name}_b"] - both[f"{name}_a"]
    return both.rename(columns={"submit_a": "submit"}).drop(columns="submit_b")


def _measures(jobs: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": jobs["id"],
            "submit": jobs["submit"],
            "wait": wait(jobs),
            "turnaround": turnaround(jobs),
            "bounded_slowdown": bounded_slowdown(jobs),
        }
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of one workload, job by job: b against a.

    `wait`, `turnaround` and `slowdown` are the mean differences b - a with their intervals;
    `sooner`, `same` and `later` the shares of jobs that started earlier, at the same time or later in
    b; `periods` the number of periods of time behind the intervals, and `period` their length (s).
    """

    jobs: int
    wait: Interval
    turnaround: Interval
    slowdown: Interval
    sooner: float
    same: float
    later: float
    periods: int = 0
    period: float = math.nan

    def certainty(self, show: Callable[[float], str]) -> str:
        """Return the interval of the wait in words, with the periods of time behind it."""
        if not (math.isfinite(self.wait.low) and math.isfinite(self.wait.high)):
            return "interval not known"
        ends = f"95 % between {show(self.wait.low)} and {show(self.wait.high)}"
        return f"{ends}, from {self.periods} periods of {human.seconds(self.period)}"

    def _repr_html_(self) -> str:
        """Return the comparison as a table, for a notebook."""
        from simsched import human
        from simsched.text_table import html_table

        rows = [("jobs in both", f"{self.jobs:,}"), ("verdict", f"b {self.verdict}")]
        for name, change, unit in (
            ("wait", self.wait, "s"),
            ("turnaround", self.turnaround, "s"),
            ("bounded slowdown", self.slowdown, "ratio"),
        ):
            low, high = (human.quantity(value, unit) for value in (change.low, change.high))
            rows.append(
                (f"mean change of {name}", f"{human.quantity(change.estimate, unit)} ({low} to {high})")
            )
        shares = (("sooner", self.sooner), ("same start", self.same), ("later", self.later))
        rows += [(name, human.share(value)) for name, value in shares]
        return html_table("b against a", rows)

    @property
    def verdict(self) -> str:
        """``waits less``, ``waits more``, or ``within noise``: the interval contains 0 or is unknown."""
        if not self.wait.excludes(0.0):
            return NOISE
        return "waits less" if self.wait.estimate < 0 else "waits more"


def noise_text(interval: Interval) -> str:
    """Return ``within noise`` if an interval of a difference is known and contains zero, else nothing."""
    known = math.isfinite(interval.low) and math.isfinite(interval.high)
    return NOISE if known and interval.holds(0.0) else ""


def compare(a: pd.DataFrame, b: pd.DataFrame) -> Comparison:
    """Compare two runs of the same workload job by job; the intervals are `mean_interval`."""
    both = paired(a, b)
    if both.empty:
        nothing = Interval(np.nan, np.nan, np.nan)
        return Comparison(0, nothing, nothing, nothing, np.nan, np.nan, np.nan)
    periods = periods_of(both["submit"])
    changes = [both[f"{name}_difference"] for name in ("wait", "turnaround", "bounded_slowdown")]
    wait_, turnaround_, slowdown_ = (mean_interval(change, periods) for change in changes)
    moved = np.sign(changes[0])  # waits differ exactly by the difference of the starts
    sooner, same, later = (float((moved == s).mean()) for s in (-1, 0, 1))
    days = int(periods.nunique())
    length = min(DAY, float(both["submit"].max() - both["submit"].min()) / PERIODS)
    return Comparison(len(both), wait_, turnaround_, slowdown_, sooner, same, later, days, length)


def same_jobs(a: RunTables, b: RunTables) -> bool:
    """Whether equal ids are equal jobs: one workload file, or most ids submitted at the same time.

    The jobs of a model are drawn with the seed of the run.
    Ids repeat between traces, and jobs that merely have the same id must not be paired.
    """
    files = [_workload_digest(run) for run in (a, b)]
    drawn = a.meta.get("drawn") is True and a.meta.get("seed") != b.meta.get("seed")
    if files[0] and files[0] == files[1] and not drawn:
        return True
    left, right = (run.jobs[["id", "submit"]].drop_duplicates("id") for run in (a, b))
    both = left.merge(right, on="id")
    return bool((both["submit_x"] == both["submit_y"]).mean() >= SAME) if len(both) else False


def _workload_digest(run: RunTables) -> str | None:
    given = (item.get("sha256") for item in run.meta.get("inputs", []) if item.get("role") == "workload")
    return next(given, None)


def compare_runs(a: RunTables, b: RunTables) -> Comparison:
    """Compare two runs job by job; runs of different workloads have no job in common."""
    return compare(a.jobs, b.jobs if same_jobs(a, b) else b.jobs.iloc[:0])


def pair_table(runs: Sequence[RunTables], with_first: Sequence[Comparison]) -> list[list[str]]:
    """Return the mean waits of the jobs of each run (row) less those of each other run (column), as texts.

    `with_first` are the comparisons of the further runs with the first one.  A difference whose interval
    contains zero, or is not known, is in brackets.
    """
    # each pair once: the other direction has the opposite sign
    found = {
        (a, b): with_first[a - 1] if b == 0 else compare_runs(runs[b], runs[a])
        for a in range(len(runs))
        for b in range(a)
    }
    rows = []
    for a, run in enumerate(runs):
        cells = [run.name]
        for b in range(len(runs)):
            if a == b:
                cells.append("")
                continue
            one = found[max(a, b), min(a, b)]
            text = (
                human.signed_seconds(one.wait.estimate * (1 if a > b else -1)) if one.jobs else human.MISSING
            )
            cells.append(text if one.verdict != NOISE or not one.jobs else f"({text})")
        rows.append(cells)
    return rows


PAIRS = "Mean wait of the run in the row less that of the run in the column; in brackets: within noise."
"""What `pair_table` shows."""


def side_by_side(summaries: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return one row per figure and one column per run, in the order of the first run's figures."""
    names: Sequence[str] = list(dict.fromkeys(name for s in summaries.values() for name in s))
    return pd.DataFrame(
        {run: [s.get(n, np.nan) for n in names] for run, s in summaries.items()}, index=list(names)
    )
