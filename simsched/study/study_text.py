"""A study as text: the table of its runs and a summary of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.metrics.summary import metric
from simsched.study.spec.study import SEED, column
from simsched.study.stats import interval
from simsched.text_table import table_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.study.spec.study import Study
    from simsched.study.study_result import StudyResult

#: figures of the summary on a terminal
SHOWN = ("mean_wait", "p95_wait", "mean_bounded_slowdown", "utilisation_core")
MAX_GROUPS = 40


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts with aligned columns: numbers to the right, words to the left.

    >>> print(aligned(["policy", "wait"], [["easy", "7"], ["fcfs", "12"]]), end="")
    policy  wait
    easy       7
    fcfs      12
    """
    columns = zip(*rows, strict=True)
    right = [at for at, cells in enumerate(columns) if all(map(_is_number, cells))]
    return "".join(f"{line}\n" for line in table_lines([head, *rows], right))


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "-+±–" or not text


def plan_table(study: Study, limit: int) -> str:
    """Return the runs of a study, one per line; above `limit` the runs in the middle are omitted."""
    names = study.axis_names
    tasks = study.tasks
    numbers = list(range(len(tasks)))
    shown = numbers if len(numbers) <= limit else numbers[: limit - 10] + numbers[-10:]
    rows = [[str(n), tasks[n].key, *(str(tasks[n].settings.get(name, "")) for name in names)] for n in shown]
    text = aligned(["run", "key", *names], rows)
    if len(shown) == len(numbers):
        return text
    lines = text.splitlines(keepends=True)
    gap = f"… {len(numbers) - len(shown):,} more runs …\n"
    return "".join([*lines[: limit - 9], gap, *lines[limit - 9 :]])


def _mean(values: Any, unit: str) -> str:
    """Return the mean of a figure over the seeds, with half its 95 % interval if there are several."""
    found = interval(values)
    half = (found.high - found.low) / 2
    mean = human.quantity(found.estimate, unit)
    return f"{mean} ± {human.quantity(half, unit)}" if half > 0 else mean


def summary(result: StudyResult) -> str:
    """Return the means of a few figures over the seeds, one line per combination of the axes."""
    frame = result.runs
    counts = result.record["counts"]
    if frame.empty:
        return f"{result.name}: none of {counts['runs']} runs has a result\n"
    axes = [column(name) for name in result.axes]
    shown = [name for name in SHOWN if name in frame]
    rows: list[list[str]] = []
    groups: Any = frame.groupby(axes, sort=False) if axes else [((), frame)]
    for key, group in groups:
        labels = list(key) if isinstance(key, tuple) else [key]
        figures = [_mean(group[name].to_numpy(dtype=float), metric(name).unit) for name in shown]
        rows.append([*map(str, labels), *figures])
    more = len(rows) - MAX_GROUPS
    head = [*result.axes, *(name.replace("_", " ") for name in shown)]
    text = aligned(head, rows[:MAX_GROUPS])
    text += f"… {more} more combinations are in the report\n" if more > 0 else ""
    seeds = len(result.record["seeds"])
    over = f", means of {seeds} seeds (± half the 95 % interval)" if seeds > 1 and SEED in frame else ""
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    text += "".join(f"{line}\n" for line in _shaken(result))
    text += "".join(f"{line}\n" for line in reality_notes(result.record))
    return f"{text}{result.name}: {len(frame):,} of {counts['runs']:,} runs{failed}{over}\n"


def reality_notes(record: Mapping[str, Any]) -> list[str]:
    """Return how near the first setting is to the log of a study, and whether its rules are calibrated."""
    from simsched.study.reality import notes_of

    return [line[0].upper() + line[1:] + "." for line in notes_of(record)]


def _shaken(result: StudyResult) -> list[str]:
    """Compare each setting of shaken runs with the first one."""
    if not result.record.get("shaken") or len(result.record["seeds"]) < 2:
        return []
    from simsched.study.grid import Grid

    return [
        f"{one.label} against {one.base}: the mean wait is {one.counted}"
        for one in Grid(result).verdicts("mean_wait")
    ]
