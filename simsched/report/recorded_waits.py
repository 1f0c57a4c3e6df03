"""The recorded beside the simulated schedule as text: how near a run is to the log that it plays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.report.metrics.agreement import agreement
from simsched.simulation.options.run_config import CALIBRATION, RECORDED
from simsched.text_table import fitted_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.rfc.clock import Clock
    from simsched.report.data.tables import RunTables
    from simsched.report.metrics.agreement import Agreement
    from simsched.report.metrics.plain_columns import Table


def section(run: RunTables, jobs: Table, width: int) -> list[str]:
    """Return the recorded beside the simulated waits of the same jobs; [] for a log without starts."""
    found = agreement(jobs)
    replay = run.meta.get("replay")
    parts = [] if found is None else [_table(run, found, width) + "\n" + "\n".join(sentences(found))]
    return parts if not replay else [*parts, "\n".join(replay_sentences(replay, run.clock))]


def _table(run: RunTables, found: Agreement, width: int) -> str:
    capacity = run.totals.get("core") or run.totals.get("node")
    rows = []
    for label, side in (("recorded", found.recorded), ("simulated", found.simulated)):
        waits = (human.seconds(round(value, 6)) for value in (side.mean, side.median, side.p95))
        use = human.share(side.work_rate / capacity) if capacity else human.MISSING
        rows.append([f"{label} wait", *waits, human.number(side.slowdown), use])
    head = [f"waits of {found.jobs:,} jobs", "mean", "median", "p95", "mean bsld", "in use"]
    return fitted_table(head, rows, width, ["in use", "mean bsld", "median"])


def sentences(found: Agreement) -> Iterator[str]:
    """Yield how near the simulated waits are to the recorded ones."""
    less = found.difference
    between = ""
    if math.isfinite(less.low):
        between = f" (95 % between {human.seconds(less.low)} and {human.seconds(less.high)})"
    yield f"simulated less recorded mean wait: {human.seconds(less.estimate)}{between}"
    yield (
        f"rank correlation of waits {rank_text(found.rank)}; {human.share(found.near)} of the jobs differ by "
        f"at most 10 min, {human.share(found.twofold)} by at most a factor of two"
    )
    if found.days > 1:
        yield (
            f"means of {found.days:,} days differ by {human.seconds(found.day_difference)}, with a rank "
            f"correlation of {rank_text(found.day_rank)}"
        )


def rank_text(value: float) -> str:
    """Return a correlation with two digits."""
    return f"{value:.2f}" if math.isfinite(value) else human.MISSING


def replay_sentences(replay: Mapping[str, Any], clock: Clock | None = None) -> Iterator[str]:
    """Yield the differences between a run that plays a log (``replay`` of run.json) and the log.

    The time of the peak is a date if the clock of the run is given.
    """
    jobs, late, unit = replay["jobs"], replay["late"], human.plural(replay["unit"])
    text = f"the run plays the recorded starts of {jobs:,} jobs"
    if late:
        delay, most = (human.seconds(replay[name]) for name in ("mean_delay", "max_delay"))
        text += (
            f"; {late:,} of them ({human.share(late / jobs)}) start later, because their resources are in "
            f"use, by {delay} on average and {most} at most (job {replay['latest']})"
        )
    yield text
    peak, capacity = replay["peak"], replay["capacity"]
    beyond = f", and more than the machine has for {human.seconds(replay['over'])}" * (peak > capacity)
    time = replay["peak_time"]
    at = "" if time is None else f" at {human.moment(time) if clock is None else clock.text(time)}"
    yield f"the log uses at most {peak:,} of {capacity:,} {unit}{at}{beyond}"
    if replay["named"]:
        other = replay["elsewhere"]
        run = "runs" if other == 1 else "run"
        yield f"the log names the nodes of {replay['named']:,} jobs; {other:,} of them {run} on others"
    names = replay["missing_nodes"]
    if names:
        shown = ", ".join(f"{name} ({number:,})" for name, number in list(names.items())[:5])
        more = replay["missing_node_count"] - min(len(names), 5)
        rest = f" and {more:,} more" if more else ""
        yield f"the machine does not have these nodes of the log (jobs): {shown}{rest}"
    if number := replay["without_start"]:
        left, them = ("job is", "it") if number == 1 else ("jobs are", "them")
        yield f"{number:,} {left} left out: the log has no start of {them}"
    if number := replay["before_submission"]:
        moved, them = ("job starts at its", "it") if number == 1 else ("jobs start at their", "them")
        yield f"{number:,} {moved} submission: the log starts {them} earlier"


def beside(runs: Sequence[RunTables], width: int) -> list[str]:
    """Return how near each of several runs is to the recorded waits; [] for logs without starts."""
    known = agreements(runs)
    if not known:
        return []
    rows = []
    for run, one in known:
        means = (human.seconds(round(side.mean, 6)) for side in (one.recorded, one.simulated))
        shares = (human.share(one.near), human.share(one.twofold))
        rows.append([run.name, *means, rank_text(one.rank), *shares, f"{one.error:.2f}"])
    head = ["against the log", "recorded mean wait", "simulated", "rank corr.", "≤ 10 min", "≤ 2 ×", "error"]
    table = fitted_table(head, rows, width, ["≤ 2 ×", "≤ 10 min"])
    return [table + "".join(f"\n{line}" for line in calibration_notes([run for run, _ in known]))]


def agreements(runs: Sequence[RunTables]) -> list[tuple[RunTables, Agreement]]:
    """Return the runs whose log has start times, each with how near it is to them."""
    found = [(run, agreement(run.jobs)) for run in runs]
    return [(run, one) for run, one in found if one is not None]


def calibration_notes(runs: Sequence[RunTables]) -> Iterator[str]:
    """Yield which of several runs are calibrated to a log, and how good that was."""
    simulated = [run for run in runs if run.config.get("queue_policy") != RECORDED]
    lacking = [run.name for run in simulated if not _calibration(run)]
    if lacking:
        yield f"{', '.join(lacking)}: {calibration_note(None)}"
    yield from (
        f"{run.name}: {calibration_note(_calibration(run))}" for run in simulated if _calibration(run)
    )


def _calibration(run: RunTables) -> Mapping[str, Any] | None:
    rules = (run.meta.get("command") or {}).get("rules") or {}
    found: Mapping[str, Any] | None = rules.get(CALIBRATION)
    return found


def calibration_note(calibration: Mapping[str, Any] | None) -> str:
    """Return whether the rules of a simulation come from a calibration, and how good that was."""
    if not calibration:
        return "not calibrated to the log; `simsched calibrate` looks for settings that come nearer to it"
    before, after = (calibration.get(name) for name in ("error_before", "error"))
    shown = [f"{value:.2f}" if isinstance(value, int | float) else "?" for value in (after, before)]
    # configurations of earlier versions do not say whether they help
    chance = ", which is within chance" if calibration.get("helps") is False and before != after else ""
    return (
        f"calibrated on {calibration.get('log', 'a log')}: error {shown[0]} on "
        f"{calibration.get('held_out', 'data')} that were held out, {shown[1]} before{chance}"
    )
