"""A run, or several side by side, as a page of plain text that fits a terminal."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from simsched import human
from simsched.report import recorded_waits
from simsched.report.columns import HELD, RESULTS
from simsched.report.data.series import binned
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import size_classes
from simsched.report.metrics.plain_columns import PlainColumns, known, objects
from simsched.report.metrics.summary import METRICS, metric
from simsched.text_table import PAGE_WIDTH, clip_end, fitted_table, table_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simsched.report.compare import Comparison
    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.metrics import JobGroups
    from simsched.report.metrics.plain_columns import Table

#: characters of a line that a page has at least, however small the terminal
LEAST_WIDTH = 60
#: rows of a table on a page; a line below the table counts the others
MAX_ROWS = 12
#: width of the labels at the left of figures and curves
LABEL = 16
_BARS = "▁▂▃▄▅▆▇█"
#: the figures of a comparison on a terminal
COMPARED = ("jobs_run", "jobs_infeasible", "makespan", "throughput", "mean_wait", "median_wait", "p95_wait",
            "max_wait", "mean_bounded_slowdown", "p95_bounded_slowdown", "area_weighted_response",
            "utilisation_node", "utilisation_core", "utilisation_gpu", "goodput", "loss_of_capacity",
            "fragmentation_core", "fragmentation_gpu", "backfill_share", "mean_queue_length",
            "jain_users")  # fmt: skip


GROUP_FIGURES = {
    "jobs": ("jobs", human.number),
    "mean_wait": ("mean wait", human.seconds),
    "median_wait": ("median wait", human.seconds),
    "p95_wait": ("p95 wait", human.seconds),
    "mean_bounded_slowdown": ("mean bsld", human.number),
    "share": ("of core hours", human.share),
    m.RECORDED_KWH: ("recorded kWh", human.number),
}
"""Figure of a group → its head, and the function that writes it."""
COLUMNS = ("id", "queue", "submit", "start", "end", "nodes", "cores", "procs", "result", "reason",
           "recorded_wait", "recorded_energy")  # fmt: skip
"""The columns of jobs that a page needs."""


def page(run: RunTables, width: int = PAGE_WIDTH) -> str:
    """Return the page of one run: jobs, use, waits, queues, sizes and reasons.

    No line is longer than `width` (60 at least), and no table has more than `MAX_ROWS` rows.
    """
    width = max(width, LEAST_WIDTH)
    jobs = PlainColumns(run.job_arrays(COLUMNS))  # the import of pandas takes longer than the page
    done = m.ran(jobs)
    parts = [_head(run, jobs, width), _labelled(overview_rows(run), width)]
    if len(done):
        parts += [_curves(run, jobs, width), _waits(jobs, width), *recorded_waits.section(run, jobs, width)]
        queues = objects(jobs, "queue")
        if len(set(queues[known(queues)])) > 1:
            parts.append(_groups("queue", m.by_text(jobs, "queue"), width))
        parts.append(_groups("cores", m.groups(jobs, *size_classes(done)), width))
    if causes := m.cause_rows(jobs):
        parts.append(_reasons(causes, width))
    return "\n\n".join(parts) + "\n"


def comparison(runs: Sequence[RunTables], width: int = PAGE_WIDTH) -> str:
    """Return the page of several runs: their figures in columns, then each against the first, job by job.

    Runs that do not fit beside the others are shown below them.
    """
    from simsched.report.compare import PAIRS, compare_runs, pair_table

    rows = []
    for name in (*COMPARED, *other_figures(runs[0].summary)):
        values = [run.summary.get(name, math.nan) for run in runs]
        if any(map(math.isfinite, values)):
            unit = metric(name).unit
            rows.append([name.replace("_", " "), *(human.quantity(value, unit) for value in values)])
    parts = _in_blocks([clip_end(run.name, 24) for run in runs], rows, width)
    found = [compare_runs(runs[0], run) for run in runs[1:]]
    pairs = [_pair(runs[0], run, one) for run, one in zip(runs[1:], found, strict=True)]
    if len(runs) > 2:
        tables = _in_blocks([clip_end(run.name, 24) for run in runs], pair_table(runs, found), width)
        pairs.append("\n\n".join(["all pairs", *tables, *wrap(PAIRS, width)]))
    return "\n\n".join([*parts, *pairs, *recorded_waits.beside(runs, width)]) + "\n"


def _in_blocks(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return tables of the same rows; a table has all the next columns that fit in a line."""
    table = [["", *names], *rows]
    # widths with the gap of two blanks; the last column of a line needs none
    label, *widths = (max(map(len, column)) + 2 for column in zip(*table, strict=True))
    blocks: list[list[int]] = [[]]
    used = label
    for column, needed in enumerate(widths, start=1):
        if blocks[-1] and used + needed - 2 > width:
            blocks.append([])
            used = label
        blocks[-1].append(column)
        used += needed
    cut = [[[row[0], *(row[column] for column in block)] for row in table] for block in blocks]
    return [fitted_table(part[0], part[1:], width) for part in cut]


def _head(run: RunTables, jobs: PlainColumns, width: int) -> str:
    units = human.units(run.totals)
    policies = [str(run.config[k]) for k in ("queue_policy", "match_policy") if run.config.get(k) is not None]
    inputs = [str(i.get("name")) for i in run.meta.get("inputs", []) if i.get("role") == "workload"]
    lines = [
        clip_end(" · ".join([run.name, *policies]), width),
        clip_end(f"{run.cluster_name}: {', '.join(units[:6]) or 'size not recorded'}", width),
    ]
    if inputs:
        lines.append(clip_end(f"workload {', '.join(inputs)}", width))
    if dates := dates_of(run, jobs):
        lines.append(clip_end(f"dates {dates}", width))
    lines += [line for text in beyond_the_machine(run, jobs) for line in wrap(text, width)]
    return "\n".join([*lines, "─" * min(width, max(map(len, lines)))])


def dates_of(run: RunTables, jobs: Table) -> str:
    """Return the dates from the first submission to the last end, with their zone; empty without dates."""
    if run.clock is None or not len(jobs):
        return ""
    low, high = m.span(jobs)
    return f"{run.clock.text(low)} to {run.clock.text(high)}, {run.clock.zone_text}"


def beyond_the_machine(run: RunTables, jobs: Table) -> list[str]:
    """Return what the jobs need that the machine does not have, as sentences; mostly none."""
    found = []
    never = int(run.summary.get("jobs_infeasible", 0.0))
    if never:
        which = f"{human.number(never)} of {human.number(len(jobs))} jobs"
        found.append(f"{which} need more than this machine has, and did not run.")
    load = m.demand(jobs, run.totals.get("core") or run.totals.get("node") or 0)
    if load > 1:
        found.append(
            f"The jobs that ran need {human.share(load)} of the machine between the first and the last "
            "submission, so waits grow for as long as jobs are submitted."
        )
    return found


def overview_rows(run: RunTables) -> list[tuple[str, str]]:
    """Return the first figures of a run as (label, text)."""
    s = run.summary
    counts = [(result.lower(), s.get(f"jobs_{result.lower()}", 0.0)) for result in RESULTS]
    each = " · ".join(f"{name} {human.number(n)}" for name, n in counts if n)
    used = [
        f"{name.removeprefix('utilisation_')} {human.share(value)}"
        for name, value in s.items()
        if name.startswith("utilisation_") and math.isfinite(value)
    ]
    backfilled = f"{_of(s, 'backfill_share')} of jobs; run time / requested {_of(s, 'estimate_accuracy')}"
    rows = [
        ("jobs", human.number(s.get("jobs", math.nan)) + (f": {each}" if each else "")),
        ("makespan", _with(s, "throughput", f"{_of(s, 'makespan')}, {{}}")),
        ("utilisation", " · ".join(used) or human.MISSING),
        ("goodput", _goodput(s)),
        ("loss of capacity", f"{_of(s, 'loss_of_capacity')} idle while a queued job was no larger"),
        ("backfilled", backfilled),
        ("fairness", _with(s, "jain_users", "Jain index of users {}")),
    ]
    rows += [(name.replace("_", " "), _of(s, name)) for name in other_figures(s)]
    wall = run.meta.get("wall_seconds")
    if wall:
        speed = run.meta.get("jobs_per_second", math.nan)
        rows.append(("simulated in", f"{human.seconds(float(wall))}, {human.number(float(speed))} jobs/s"))
    return [row for row in rows if not row[1].startswith(human.MISSING)]


def other_figures(summary: Mapping[str, float]) -> list[str]:
    """Return the names of the figures that are not ours: those of metrics of other packages."""
    ours = {known.name for known in METRICS}
    return [name for name in summary if name not in ours and not name.startswith(("utilisation_", "down_"))]


def _labelled(rows: Sequence[tuple[str, str]], width: int) -> str:
    return "\n".join(clip_end(line, width) for line in table_lines(rows, least=[LABEL], gap=" "))


def _goodput(summary: Mapping[str, float]) -> str:
    """Return the shares of good, bad and cut work; cut work only where there is some."""
    text = f"{_of(summary, 'goodput')}, lost to failed, cut and repeated work {_of(summary, 'badput')}"
    if summary.get("cut_share"):
        text += f", ended at the limit though complete in the trace {_of(summary, 'cut_share')}"
    return text


def _with(summary: Mapping[str, float], name: str, text: str) -> str:
    """Return a text with a figure, if there is one: not where no job ran."""
    figure = _of(summary, name)
    return human.MISSING if figure == human.MISSING else text.format(figure)


def _of(summary: Mapping[str, float], name: str) -> str:
    return human.quantity(summary.get(name, math.nan), metric(name).unit)


def _curves(run: RunTables, jobs: PlainColumns, width: int) -> str:
    """Return utilisation and queue over time as sparklines."""
    timeline = PlainColumns(run.timeline_arrays())
    window, bins = m.span(jobs), width - 2 * LABEL - 2
    rows = []
    for kind in m.types(timeline):
        total = run.totals.get(kind)
        if total and kind in HELD:
            _, used = binned(timeline, f"used_{kind}", bins, window)
            rows.append((f"{human.plural(kind)} in use", f"{sparkline(used / total, 1.0)} of {total:,}"))
    if len(timeline):
        _, queue = binned(timeline, "queued_jobs", bins, window)
        top = f"max {human.number(run.summary.get('max_queue_length', math.nan))}"
        rows.append(("queued jobs", f"{sparkline(queue)} {top}"))
    return "\n".join(table_lines(rows, least=[LABEL], gap=" "))


def sparkline(values: Sequence[float] | npt.NDArray[np.float64], top: float | None = None) -> str:
    """Return values as one line of bars from 0 to `top` (by default their maximum); NaN is a blank.

    >>> sparkline([0, 1, 2, 3, 4])
    '▁▂▄▆█'
    """
    x = np.asarray(values, dtype=np.float64)
    high = top if top is not None else float(np.nanmax(x)) if np.isfinite(x).any() else 0.0
    if high <= 0:
        return "".join(" " if not np.isfinite(v) else _BARS[0] for v in x)
    steps = np.clip(np.nan_to_num(x) / high * (len(_BARS) - 1), 0, len(_BARS) - 1)
    return "".join(_BARS[int(s)] if np.isfinite(v) else " " for s, v in zip(steps, x, strict=True))


def _waits(jobs: PlainColumns, width: int) -> str:
    done = m.measured(jobs)
    rows = []
    for name, unit in (("wait", "s"), ("turnaround", "s"), ("bounded_slowdown", "ratio")):
        d = m.describe(done[name])
        shown = (human.quantity(d[k], unit) for k in ("mean", "p50", "p90", "p95", "p99", "max"))
        rows.append([name.replace("_", " "), *shown])
    head = ["", "mean", "median", "p90", "p95", "p99", "max"]
    return fitted_table(head, rows, width, ["p99", "p90", "median"])


def _groups(label: str, groups: JobGroups, width: int) -> str:
    """Return the groups with the largest shares of the core hours, in their order."""
    units = {name: unit for name, unit in GROUP_FIGURES.items() if name in groups.figures}
    largest = np.sort(np.argsort(-groups.figures["share"], kind="stable")[:MAX_ROWS]).tolist()
    figures = [(groups.figures[name], show) for name, (_, show) in units.items()]
    rows = [
        [str(groups.labels[at]), *(show(float(values[at])) for values, show in figures)] for at in largest
    ]
    head = [f"by {label}", *(title for title, _ in units.values())]
    text = fitted_table(head, rows, width, ["median wait", "mean bsld"])
    return text + _others(len(groups.labels), "smaller ones")


def _reasons(causes: Sequence[tuple[str, str, int, object]], width: int) -> str:
    rows = [
        [clip_end(f"{result.lower()}: {reason}", width - 30), f"{jobs:,}", clip_end(str(example), 14)]
        for result, reason, jobs, example in causes[:MAX_ROWS]
    ]
    return fitted_table(["why", "jobs", "e.g. job"], rows, width) + _others(len(causes), "more reasons")


def _others(rows: int, noun: str) -> str:
    return f"\n… and {rows - MAX_ROWS:,} {noun}" if rows > MAX_ROWS else ""


def _pair(first: RunTables, run: RunTables, found: Comparison) -> str:
    if not found.jobs:
        return f"{run.name} and {first.name} have no job in common"
    sooner, same, later = map(human.share, (found.sooner, found.same, found.later))
    return (
        f"{run.name} against {first.name}, {found.jobs:,} jobs paired: {found.verdict}\n"
        f"  mean wait {human.signed_seconds(found.wait.estimate)} ({found.certainty(human.signed_seconds)})\n"
        f"  {sooner} of the jobs start sooner, {same} at the same time, {later} later"
    )
