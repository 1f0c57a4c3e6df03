"""Figures of waits by cause: of one job from its submission to its start, and of a whole run over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from simsched import human
from simsched.errors import RunError
from simsched.report import palette
from simsched.report.figures.date_axis import mark_dates
from simsched.report.figures.over_time import legend_above, time_axis
from simsched.report.waiting.job_answer import SHORT
from simsched.report.waiting.noted_limits import LIMIT
from simsched.report.waiting.wait_totals import waits_over_time
from simsched.text_table import clip_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.tables import RunTables
    from simsched.report.waiting.job_answer import JobWait

Figure = Any
BINS = 120
"""Parts of the time of a run in the figure of its waits."""


def waits(figure: Figure, runs: Sequence[RunTables]) -> None:
    """Draw the number of jobs that wait over time, by the cause of the wait."""
    run = runs[0]
    low, high = run.window
    if not high > low:
        raise RunError("no job ran, so there is nothing to draw", where=run.name)
    edges = np.linspace(low, high, BINS + 1)
    table = waits_over_time(run, edges)
    # a limit may have a cause for each user
    table = (
        table.T.groupby(lambda cause: LIMIT if cause.startswith(f"{LIMIT} ") else cause, sort=False).sum().T
    )
    table = table.loc[:, table.sum() > 0]
    axes = figure.add_subplot()
    seconds = time_axis(axes, runs[:1], 0.0, high - low)
    if table.empty:
        axes.text(0.5, 0.5, "No job waited.", ha="center", va="center", transform=axes.transAxes)
    else:
        below = np.zeros(BINS)
        hours = (high - low) / BINS / 3600
        for cause in table:
            above = below + table[cause].to_numpy() / hours
            label = f"{cause}: {round(table[cause].sum(), 6):,.1f} h"
            axes.stairs(above, (edges - low) / seconds, baseline=below, fill=True,
                        color=palette.of_cause(str(cause)), label=label)  # fmt: skip
            below = above
        legend_above(axes)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("waiting jobs (mean)")
    axes.yaxis.set_major_formatter("{x:,.4g}")
    total = float(table.to_numpy().sum())
    axes.set_title(f"{run.name}: {total:,.1f} hours waited, by cause")


def job_wait(figure: Figure, run: RunTables, answer: JobWait) -> None:
    """Draw the wait of one job: one row per cause, and one per job that held the short resources.

    Raises
    ------
    RunError
        if the job did not wait.
    """
    if not answer.wait > 0:
        raise RunError(f"job {answer.id} did not wait, so there is nothing to draw", where=run.name)
    axes = figure.add_subplot()
    seconds, unit = human.time_unit(answer.wait)
    causes = list(dict.fromkeys(period.cause for period in answer.periods))
    for row, cause in enumerate(causes):
        bars = [
            ((period.start - answer.submit) / seconds, period.length / seconds)
            for period in answer.periods
            if period.cause == cause
        ]
        axes.broken_barh(bars, (row - 0.38, 0.76), facecolors=_colour_of_job(cause, causes), linewidth=0)
    spent = answer.by_cause()
    labels = [f"{clip_end(cause, 34)}  {human.seconds(spent[cause])}" for cause in causes]
    starts = dict(zip(run.jobs["id"].astype(str), run.jobs["start"], strict=True))
    for row, holder in enumerate(answer.holders, start=len(causes)):
        begin = max(float(starts[holder.id]), answer.submit)
        end = min(holder.until, answer.submit + answer.wait)
        bar = ((begin - answer.submit) / seconds, (end - begin) / seconds)
        axes.broken_barh([bar], (row - 0.2, 0.4), facecolors=palette.GREY, linewidth=0)
        user = f" ({clip_end(holder.user, 14)})" if holder.user else ""
        labels.append(f"held: {holder.units:,} by job {clip_end(holder.id, 14)}{user}")
    if answer.holders:
        axes.axhline(len(causes) - 0.5, color=palette.GREY, linewidth=0.6, linestyle="--")
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, answer.wait / seconds)
    if answer.clock is None:
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.set_xlabel(f"time since the submission ({unit})")
    else:
        mark_dates(axes, answer.clock, answer.submit, (0.0, answer.wait), seconds)
    fate = "never started, waited" if answer.start is None else "waited"
    axes.set_title(f"{run.name}: job {answer.id} {fate} {human.seconds(answer.wait)}")


def _colour_of_job(cause: str, causes: Sequence[str]) -> str:
    """Return the colour of a cause in the figure of a job: shortages by type, others in their order."""
    if cause.startswith(SHORT):
        return palette.of_cause(cause)
    others = [one for one in causes if not one.startswith(SHORT)]
    left = (palette.PURPLE, palette.GREEN, palette.VERMILION)
    return left[others.index(cause) % len(left)]
