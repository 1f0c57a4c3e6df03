"""Comparison of two runs job by job and by group, with intervals that separate a difference from chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched import human
from simsched.report.metrics.classes import GROUPS, group_of
from simsched.report.metrics.intervals import DAY, PERIODS, Interval, mean_interval, periods_of
from simsched.report.metrics.metrics import measured, ran, wait
from simsched.text_table import PAGE_WIDTH, fitted_table, html_table, markdown_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simsched.report.data.tables import RunTables

LEAST_JOBS = 10
"""Jobs of a group from which the interval of its difference is computed."""
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
    columns = ["id", "submit", "wait", "turnaround", "bounded_slowdown"]
    left, right = (measured(jobs)[columns].drop_duplicates("id") for jobs in (a, b))
    both: pd.DataFrame = left.merge(right, on="id", suffixes=("_a", "_b"))
    for name in ("wait", "turnaround", "bounded_slowdown"):
        both[f"{name}_difference"] = both[f"{name}_b"] - both[f"{name}_a"]
    return both.rename(columns={"submit_a": "submit"}).drop(columns="submit_b")


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
        rows = [("jobs in both", f"{self.jobs:,}"), ("verdict", f"b {self.verdict}")]
        changes = {"wait": self.wait, "turnaround": self.turnaround, "bounded slowdown": self.slowdown}
        for name, change in changes.items():
            unit, ends = "ratio" if name == "bounded slowdown" else "s", (change.low, change.high)
            mean, low, high = (human.quantity(value, unit) for value in (change.estimate, *ends))
            rows.append((f"mean change of {name}", f"{mean} ({low} to {high})"))
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
    inputs = (run.meta.get("inputs", []) for run in (a, b))
    files = [next((i.get("sha256") for i in given if i.get("role") == "workload"), None) for given in inputs]
    drawn = a.meta.get("drawn") is True and a.meta.get("seed") != b.meta.get("seed")
    if files[0] and files[0] == files[1] and not drawn:
        return True
    left, right = (run.jobs[["id", "submit"]].drop_duplicates("id") for run in (a, b))
    both = left.merge(right, on="id")
    return bool((both["submit_x"] == both["submit_y"]).mean() >= SAME) if len(both) else False


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
            one = found.get((max(a, b), min(a, b)))
            if one is None:
                text = ""
            elif not one.jobs:
                text = human.MISSING
            else:
                text = human.signed_seconds(one.wait.estimate * (1 if a > b else -1))
                text = f"({text})" if one.verdict == NOISE else text
            cells.append(text)
        rows.append(cells)
    return rows


PAIRS = "Mean wait of the run in the row less that of the run in the column; in brackets: within noise."
"""What `pair_table` shows."""


def figures_of(runs: Sequence[RunTables]) -> Iterator[tuple[str, list[float]]]:
    """Yield each figure with its value in each run or NaN, in the order of the first run's figures."""
    for name in dict.fromkeys(name for run in runs for name in run.summary):
        yield name, [run.summary.get(name, math.nan) for run in runs]


# --- by group -------------------------------------------------------------------------


def changes(first: RunTables, second: RunTables, key: str) -> pd.DataFrame:
    """Return one row per group of jobs: the mean waits (s) in two runs, and their difference.

    Columns: jobs_first, jobs_second (that ran), wait_first, wait_second, difference (second less first),
    and low and high, the 95 % interval of the difference job by job. A job is in the group that it has in
    its run. The interval is NaN for runs of different jobs and for groups of fewer than ten.
    """
    sides = [_by_group(run, key) for run in (first, second)]
    paired = same_jobs(first, second)
    names = list(dict.fromkeys(name for side in sides for name in side))
    rows = []
    for name in names:
        a, b = (side.get(name, first.jobs.iloc[:0]) for side in sides)
        low = high = math.nan
        if paired and min(len(a), len(b)) >= LEAST_JOBS:
            interval = compare(a, b).wait
            low, high = interval.low, interval.high
        means = [float(wait(jobs).mean()) if len(jobs) else math.nan for jobs in (a, b)]
        rows.append([len(a), len(b), *means, means[1] - means[0], low, high])
    columns = ["jobs_first", "jobs_second", "wait_first", "wait_second", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(names, name=key))


def _by_group(run: RunTables, key: str) -> dict[str, pd.DataFrame]:
    jobs = ran(run.jobs)
    return {str(name): rows for name, rows in jobs.groupby(group_of(jobs, key, run.clock), observed=True)}


def change_texts(runs: Sequence[RunTables], key: str, *, markdown: bool = False) -> str:
    """Return a table of each further run against the first; empty for one run or parts of the machine."""
    if key not in GROUPS:
        return ""
    base, *others = runs
    made = []
    for run in others:
        head = [key, f"jobs, {base.name}", f"jobs, {run.name}", f"wait, {base.name}", f"wait, {run.name}"]
        head += ["difference", "95 % between", "verdict"]
        rows = [
            [name, f"{int(row['jobs_first']):,}", f"{int(row['jobs_second']):,}",
             human.seconds(row["wait_first"]), human.seconds(row["wait_second"]),
             human.signed_seconds(row["difference"]), between(row["low"], row["high"]), verdict(row)]
            for name, row in changes(base, run, key).iterrows()
        ]  # fmt: skip
        body = [[str(cell) for cell in row] for row in rows]
        table = markdown_table(head, body) if markdown else fitted_table(head, body, PAGE_WIDTH)
        gap = "\n" if markdown else ""  # Markdown has an empty line before a table
        made.append(f"\n{run.name} against {base.name}: mean waits\n{gap}{table}\n")
    return "".join(made)


def verdict(row: Any) -> str:
    """Return ``within noise`` for a row of `changes` whose interval contains zero."""
    return noise_text(Interval(row["difference"], row["low"], row["high"]))


def between(low: float, high: float) -> str:
    """Return the ends of an interval of times; a dash if it is unknown."""
    known = math.isfinite(low) and math.isfinite(high)
    return f"{human.signed_seconds(low)} and {human.signed_seconds(high)}" if known else human.MISSING
