"""The section of a page that compares several runs."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report import palette
from simsched.report.compare import (
    PAIRS,
    WITH_INTERVAL,
    Comparison,
    changes,
    compare_runs,
    figures_of,
    noise_text,
    pair_table,
    paired,
    same_jobs,
    verdict,
)
from simsched.report.data.series import curve
from simsched.report.html import markup
from simsched.report.html.charts import Charts, bar_chart, cdf_chart
from simsched.report.metrics import metrics as m
from simsched.report.metrics.summary import metric
from simsched.report.recorded_waits import agreements, calibration_notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from simsched.report.data.tables import RunTables

LEAST_GROUPS = 2
"""A single group has the figures of the whole run."""
NOTE = "Mean waits. The interval is that of the differences job by job, in groups of ten jobs or more."


def comparison(runs: Sequence[RunTables], charts: list[dict[str, Any]], note: str = "") -> str:
    """Return the section that compares the runs, and append its charts; `note` says which runs they are."""
    colours = palette.cycle(len(runs))
    pairs = [compare_runs(runs[0], run) for run in runs[1:]]
    drawn = Charts()
    done = {name: m.measured(run.jobs) for name, run in zip(distinct(runs), runs, strict=True)}
    waits = {name: curve(frame["wait"], 1.0) for name, frame in done.items()}
    drawn.add("cmp-waits", cdf_chart(waits, "wait", colours, "time"))
    slow = {name: curve(frame["bounded_slowdown"], 1.0) for name, frame in done.items()}
    drawn.add("cmp-slow", cdf_chart(slow, "bounded slowdown", colours))
    means = [m.describe(frame["wait"])["mean"] for frame in done.values()]
    known = [0.0 if math.isnan(v) else v / 3600 for v in means]
    drawn.add("cmp-means", bar_chart(list(done), known, "mean wait (h)", colours))
    moved = _moved(runs)
    drawn.add("cmp-moved", cdf_chart(moved, "wait less the first run's (h)", colours[1:], "linear"))
    charts.append(drawn.as_json("comparison"))
    moves = "Left of 0: the job waits less than in the first run. The outermost 1 % at each end is not shown."
    key = _key(runs, colours)
    remark = f'<p class="note">{escape(note)}</p>' if note else ""
    panels = (
        markup.panel("Waits", "cmp-waits", f"Share of jobs that waited no longer. {key}"),
        markup.panel("Bounded slowdown", "cmp-slow", f"turnaround / max(run time, 10 s), at least 1. {key}"),
        markup.panel("Mean wait", "cmp-means"),
        markup.panel(
            f"Job by job against {runs[0].name}", "cmp-moved", f"{moves} {_key(runs[1:], colours[1:])}"
        ),
    )
    return (
        f'<section class="run" id="comparison"><h1>{len(runs)} runs compared</h1><p class="lead">{key}</p>'
        f"{remark}{_verdicts(runs, pairs)}{_all_pairs(runs, pairs)}{_figures(runs, pairs)}"
        f'<div class="pair">{"".join(panels)}</div>{_against_the_log(runs)}{_by_group(runs)}</section>'
    )


def _key(runs: Sequence[RunTables], colours: Sequence[str]) -> str:
    """Return the legend: the colour of each run."""
    return markup.colour_key((c, r.name) for r, c in zip(runs, colours, strict=True))


def distinct(runs: Sequence[RunTables]) -> list[str]:
    """Return the runs' names; a name that repeats an earlier one is numbered."""
    names: list[str] = []
    for run in runs:
        again = sum(r.name == run.name for r in runs[: len(names)])
        names.append(f"{run.name} ({again + 1})" if again else run.name)
    return names


def _moved(runs: Sequence[RunTables]) -> dict[str, pd.DataFrame]:
    found = {}
    for name, run in list(zip(distinct(runs), runs, strict=True))[1:]:
        jobs = run.jobs if same_jobs(runs[0], run) else run.jobs.iloc[:0]
        hours = paired(runs[0].jobs, jobs)["wait_difference"] / 3600
        # without the extremes, which would make the curve a vertical line
        low, high = (hours.quantile(0.01), hours.quantile(0.99)) if len(hours) else (0.0, 0.0)
        all_ = curve(hours, None)
        found[name] = all_[all_["value"].between(low, high)]
    return found


def _verdicts(runs: Sequence[RunTables], pairs: Sequence[Comparison]) -> str:
    lines = []
    for run, found in zip(runs[1:], pairs, strict=True):
        if not found.jobs:
            lines.append(f"<li>{escape(run.name)} has no job in common with {escape(runs[0].name)}.</li>")
            continue
        lines.append(
            f"<li><strong>{escape(run.name)}</strong> against {escape(runs[0].name)}: {found.verdict}."
            f" Over {found.jobs:,} jobs the mean wait differs by {human.seconds(found.wait.estimate)}"
            f" ({found.certainty(human.seconds)}); {human.share(found.sooner)} of the jobs"
            f" start sooner, {human.share(found.later)} later.</li>"
        )
    return f'<section class="panel"><h2>In words</h2><ul class="verdicts">{"".join(lines)}</ul></section>'


def _all_pairs(runs: Sequence[RunTables], pairs: Sequence[Comparison]) -> str:
    """Return the table of the differences of each pair of three and more runs."""
    if len(runs) < 3:
        return ""
    head = [("run", "text"), *((name, "text") for name in distinct(runs))]
    return markup.table("cmp-pairs", "All pairs of runs", head, pair_table(runs, pairs), PAIRS)


def _figures(runs: Sequence[RunTables], pairs: Sequence[Comparison]) -> str:
    """Return the table of all figures, one column per run, better and worse ones in colour."""
    rows = []
    for name, values in figures_of(runs):
        if any(math.isfinite(v) and v for v in values):
            known, interval = metric(name), WITH_INTERVAL.get(name)
            noise = [noise_text(getattr(one, interval)) if interval and one.jobs else "" for one in pairs]
            title, label = escape(known.meaning), escape(name.replace("_", " "))
            figures = (
                _figure(value, values[0], known.unit, known.better, noise=text)
                for value, text in zip(values, ["", *noise], strict=True)
            )
            rows.append([f'<td class="text" title="{title}">{label}</td>', *figures])
    head = [(name, "cell") for name in ("figure", *(run.name for run in runs))]
    note = (
        f"Per cent: change against {runs[0].name}, in colour if better or worse."
        " Within noise: the interval of the difference contains zero."
    )
    return markup.table("cmp-figures", "All figures", head, rows, note)


def _against_the_log(runs: Sequence[RunTables]) -> str:
    """Return how near each run is to the recorded waits, as a table; empty for logs without starts."""
    known = agreements(runs)
    if not known:
        return ""
    head = (
        ("run", "text"),
        ("recorded mean wait", "s"),
        ("simulated", "s"),
        ("rank correlation", ""),
        ("within 10 min", "share"),
        ("within a factor of two", "share"),
        ("error", ""),
    )
    rows = [
        [run.name, one.recorded.mean, one.simulated.mean, one.rank, one.near, one.twofold, one.error]
        for run, one in known
    ]
    note = ". ".join(calibration_notes([run for run, _ in known]))
    return markup.table("cmp-log", "Against the log", head, rows, f"{note}." if note else "")


def _by_group(runs: Sequence[RunTables]) -> str:
    """Return the waits of each further run against the first, by queue, user and class of jobs."""
    made = []
    base = runs[0]
    for number, run in enumerate(runs[1:], start=1):
        for key, title in (("queue", "queue"), ("user", "user"), ("size", "cores"), ("runtime", "run time")):
            table = changes(base, run, key)
            if len(table) < LEAST_GROUPS:
                continue
            order = table["difference"].abs().sort_values(ascending=False, kind="stable").index
            table = table.loc[order] if key in ("queue", "user") else table
            head = ((title, "text"), (f"jobs, {base.name}", ""), (f"jobs, {run.name}", ""),
                    (f"mean wait, {base.name}", "s"), (f"mean wait, {run.name}", "s"),
                    ("difference", "s"), ("95 % from", "s"), ("95 % to", "s"),
                    ("verdict", "text"))  # fmt: skip
            table = table.assign(verdict=[verdict(row) for row in table.to_dict("records")])
            heading = f"Waits by {title}: {run.name} against {base.name}"
            made.append(markup.table(f"cmp-{key}-{number}", heading, head, markup.group_rows(table), NOTE))
    return "".join(made)


def _figure(value: float, base: float, unit: str, better: int, *, noise: str = "") -> str:
    shown = escape(human.quantity(value, unit))
    change = ""
    if math.isfinite(value) and math.isfinite(base) and base and value != base:
        moved = value / base - 1
        kind = "" if noise or not better else "better" if moved * better > 0 else "worse"
        said = f"{'+' if moved > 0 else '-'}{human.share(abs(moved))}{', ' * bool(noise)}{noise}"
        change = f' <small class="{kind}">{said}</small>'
    plain = f"{value:.10g}" if math.isfinite(value) else ""
    return f'<td data-v="{plain}">{shown}{change}</td>'
