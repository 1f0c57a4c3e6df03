"""A run, or several side by side, as a page of plain text that fits a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simsched.report import human
from simsched.report.data.columns import RESULTS
from simsched.report.data.series import binned
from simsched.report.metrics import metrics as m
from simsched.report.metrics.classes import size_class
from simsched.report.metrics.compare import Comparison, compare_runs
from simsched.report.metrics.summary import metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from simsched.report.data.tables import Run

WIDTH = 96
#: columns and lines that a page has at least, however small the terminal
LEAST = (60, 40)
#: rows of a table on a page; the rest is counted
MAX_ROWS = 12
#: the figures of a comparison on a terminal
COMPARED = ("jobs_run", "jobs_infeasible", "makespan", "throughput", "mean_wait", "median_wait", "p95_wait",
            "max_wait", "mean_bounded_slowdown", "p95_bounded_slowdown", "area_weighted_response",
            "utilisation_node", "utilisation_core", "utilisation_gpu", "goodput", "loss_of_capacity",
            "fragmentation_core", "fragmentation_gpu", "backfill_share", "mean_queue_length",
            "jain_users")  # fmt: skip


def page(run: Run, width: int = WIDTH, height: int | None = None) -> str:
    """Return the page of one run: jobs, use, waits, queues, sizes and reasons.

    No line is longer than `width` (60 at least); with a `height` (40 at least) tables are cut to what fits.
    """
    width = max(width, LEAST[0])
    parts = [_head(run, width), _overview(run, width)]
    tables: list[tuple[Callable[..., str], str, pd.DataFrame]] = []
    if len(m.ran(run.jobs)):
        parts += [_curves(run, width), _waits(run, width)]
        if run.jobs["queue"].nunique() > 1:
            tables.append((_groups, "queue", run.queues))
        tables.append((_groups, "cores", m.by(run.jobs, size_class(run.jobs))))
    if len(run.reasons):
        tables.append((_reasons, "why", run.reasons))
    rows = _rows_each([len(frame) for _, _, frame in tables], "\n\n".join(parts).count("\n") + 1, height)
    parts += [make(label, frame, width, n) for (make, label, frame), n in zip(tables, rows, strict=True)]
    return "\n\n".join(parts) + "\n"


def _rows_each(lengths: Sequence[int], above: int, height: int | None) -> list[int]:
    """Return how many rows of each table are shown: what `height` leaves below `above` lines, shared out.

    Each table has a blank line, a head, and a line that counts what is not shown; short ones leave their
    share to the next.
    """
    if height is None:
        return [MAX_ROWS] * len(lengths)
    rows, spare = [], max(height, LEAST[1]) - above - 3 * len(lengths)
    for at, length in enumerate(lengths):
        rows.append(max(min(spare // (len(lengths) - at), MAX_ROWS), 2))
        spare -= min(rows[-1], length)
    return rows


def comparison(runs: Sequence[Run], width: int = WIDTH) -> str:
    """Return the page of several runs: their figures in columns, then each against the first, job by job.

    More runs than fit beside one another are told of below one another.
    """
    rows = []
    for name in COMPARED:
        values = [r.summary.get(name, math.nan) for r in runs]
        if any(math.isfinite(v) for v in values):
            known = metric(name)
            rows.append([name.replace("_", " "), *(human.quantity(v, known.unit) for v in values)])
    parts = _in_blocks([_clip(r.name, 24) for r in runs], rows, width)
    pairs = [_pair(runs[0], run, compare_runs(runs[0], run)) for run in runs[1:]]
    return "\n\n".join([*parts, *pairs]) + "\n"


def _in_blocks(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return tables of the same rows, each with as many of the named columns as fit in a line."""
    label = max((len(row[0]) for row in rows), default=0)
    widths = [max(len(line[i]) for line in [["", *names], *rows]) for i in range(1, len(names) + 1)]
    blocks: list[list[int]] = [[]]
    for at in range(len(names)):
        used = sum(widths[i] + 2 for i in blocks[-1])
        if blocks[-1] and label + used + widths[at] + 2 > width:
            blocks.append([])
        blocks[-1].append(at)
    return [
        table(["", *(names[i] for i in b)], [[row[0], *(row[i + 1] for i in b)] for row in rows], width)
        for b in blocks
    ]


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], width: int = WIDTH, spare: Sequence[str] = ()
) -> str:
    """Return rows under a head, the first column to the left, the others to the right.

    Where they are too wide, the columns whose heads are in `spare` are left out, one after another.

    >>> print(table(["", "easy", "fcfs"], [["mean wait", "2 h", "3 h 20 min"]]))
               easy        fcfs
    mean wait   2 h  3 h 20 min
    """
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    over = sum(widths) + 2 * (len(widths) - 1) - width
    if over > 0 and spare:
        kept = [i for i, title in enumerate(head) if title != spare[0]]
        fewer = [[line[i] for i in kept] for line in lines]
        return table(fewer[0], fewer[1:], width, spare[1:])
    if over > 0:
        widths[0] = max(widths[0] - over, 12)
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = _clip(cells[0], widths[0]).ljust(widths[0])
    return "  ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]).rstrip()


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def _head(run: Run, width: int) -> str:
    units = human.units(run.totals)
    config = run.config
    policies = [str(config[k]) for k in ("queue_policy", "match_policy") if config.get(k) is not None]
    inputs = [str(i.get("name")) for i in run.meta.get("inputs", []) if i.get("role") == "workload"]
    lines = [
        _clip(" · ".join([run.name, *policies]), width),
        _clip(f"{run.cluster_name}: {', '.join(units[:6]) or 'nothing known of its size'}", width),
    ]
    if inputs:
        lines.append(_clip(f"workload {', '.join(inputs)}", width))
    return "\n".join([*lines, "─" * min(width, max(map(len, lines)))])


def _overview(run: Run, width: int) -> str:
    s = run.summary
    counts = [(r.lower(), s.get(f"jobs_{r.lower()}", 0.0)) for r in RESULTS]
    told = " · ".join(f"{name} {human.number(n)}" for name, n in counts if n)
    used = [
        f"{k.removeprefix('utilisation_')} {human.share(v)}"
        for k, v in s.items()
        if k.startswith("utilisation_") and math.isfinite(v)
    ]
    wall = run.meta.get("wall_seconds")
    rows = [
        ("jobs", f"{human.number(s.get('jobs', math.nan))}: {told}"),
        ("makespan", f"{_of(s, 'makespan')}, {_of(s, 'throughput')}"),
        ("utilisation", " · ".join(used) or human.MISSING),
        ("goodput", _goodput(s)),
        ("loss of capacity", f"{_of(s, 'loss_of_capacity')} idle while a queued job was no larger"),
        (
            "backfilled",
            f"{_of(s, 'backfill_share')} of jobs; run time / requested {_of(s, 'estimate_accuracy')}",
        ),
        ("fairness", f"Jain index of users {_of(s, 'jain_users')}"),
    ]
    if wall:
        speed = run.meta.get("jobs_per_second", math.nan)
        rows.append(("simulated in", f"{human.seconds(float(wall))}, {human.number(float(speed))} jobs/s"))
    return "\n".join(
        _clip(f"{label:<17}{text}", width) for label, text in rows if not text.startswith(human.MISSING)
    )


def _goodput(summary: Mapping[str, float]) -> str:
    """Return the shares of good, bad and cut work; cut work only where there is some."""
    told = f"{_of(summary, 'goodput')}, lost to failed, cut and repeated work {_of(summary, 'badput')}"
    if summary.get("cut_share"):
        told += f", ended at the limit though complete in the trace {_of(summary, 'cut_share')}"
    return told


def _of(summary: Mapping[str, float], name: str) -> str:
    return human.quantity(summary.get(name, math.nan), metric(name).unit)


def _curves(run: Run, width: int) -> str:
    """Utilisation and queue over time as sparklines."""
    window, bins = m.span(run.jobs), width - 34
    lines = []
    for kind in m.types(run.timeline):
        total = run.totals.get(kind)
        if total and kind in ("node", "core", "gpu"):
            _, used = binned(run.timeline, f"used_{kind}", bins, window)
            lines.append(
                f"{human.plural(kind) + ' in use':<17}{human.sparkline(used / total, 1.0)} of {total:,}"
            )
    if len(run.timeline):
        _, queue = binned(run.timeline, "queued_jobs", bins, window)
        top = f"max {human.number(run.summary.get('max_queue_length', math.nan))}"
        lines.append(f"{'queued jobs':<17}{human.sparkline(queue)} {top}")
    return "\n".join(lines)


def _waits(run: Run, width: int) -> str:
    done = m.measured(run.jobs)
    rows = []
    for label, column, unit in (
        ("wait", "wait", "s"),
        ("turnaround", "turnaround", "s"),
        ("bounded slowdown", "bounded_slowdown", "ratio"),
    ):
        d = m.describe(done[column])
        rows.append(
            [label, *(human.quantity(d[k], unit) for k in ("mean", "p50", "p90", "p95", "p99", "max"))]
        )
    return table(["", "mean", "median", "p90", "p95", "p99", "max"], rows, width, ["p99", "p90", "median"])


def _groups(label: str, frame: pd.DataFrame, width: int, most: int) -> str:
    """The groups of the largest shares, in their order."""
    largest = frame["share"].rank(ascending=False, method="first") <= most
    rows = [
        [
            str(key),
            human.number(float(row["jobs"])),
            human.seconds(float(row["mean_wait"])),
            human.seconds(float(row["median_wait"])),
            human.seconds(float(row["p95_wait"])),
            human.number(float(row["mean_bounded_slowdown"])),
            human.share(float(row["share"])),
        ]
        for key, row in frame[largest].iterrows()
    ]
    head = [f"by {label}", "jobs", "mean wait", "median wait", "p95 wait", "mean bsld", "of core hours"]
    told = table(head, rows, width, ["median wait", "mean bsld"])
    return told + (f"\n… and {len(frame) - most:,} smaller ones" if len(frame) > most else "")


def _reasons(label: str, frame: pd.DataFrame, width: int, most: int) -> str:
    rows = [
        [_clip(f"{str(result).lower()}: {reason}", width - 30), f"{jobs:,}", _clip(str(example), 14)]
        for result, reason, jobs, example in frame.head(most).to_numpy()
    ]
    told = table([label, "jobs", "e.g. job"], rows, width)
    return told + (f"\n… and {len(frame) - most:,} more reasons" if len(frame) > most else "")


def _pair(first: Run, run: Run, found: Comparison) -> str:
    if not found.jobs:
        return f"{run.name} and {first.name} have no job in common"
    sooner, same, later = map(human.share, (found.sooner, found.same, found.later))
    lines = [
        f"{run.name} against {first.name}, {found.jobs:,} jobs paired: {found.verdict}",
        f"  mean wait {_signed(found.wait.estimate)} ({found.certainty(_signed)})",
        f"  {sooner} of the jobs start sooner, {same} at the same time, {later} later",
    ]
    return "\n".join(lines)


def _signed(value: float) -> str:
    return human.seconds(value) if value < 0 else f"+{human.seconds(value)}"
