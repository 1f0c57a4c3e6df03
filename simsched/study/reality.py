"""How near the simulation of a log on today's machine is to that log, for answers to planners.

An answer about another machine or load is no better than the simulation of today's. Where the workload is a
log with start times, one more run says so: as it is, on the machine as it is, under the rules of the search.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypedDict

from simsched import human
from simsched.declare.answers import rounded
from simsched.files import scratch_folder
from simsched.formats.rfc.calls import parse_call
from simsched.report.recorded_waits import calibration_note, rank_text
from simsched.simulation.options.run_config import CALIBRATION
from simsched.study.runs.dispatch import FinishedRun, run_tasks
from simsched.study.runs.input_cache import INPUTS
from simsched.study.spec.run_task import MODEL, Measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.study.runs.workers import Workers
    from simsched.study.spec.run_task import RunTask

#: steps that leave the waits of a log comparable with a simulation of it
HARMLESS = frozenset(("slice", "first", "shift", "rebase", "anonymise"))
#: steps by which the seeds of a study draw other demands; the log itself is without them
OF_SEEDS = frozenset(("shake", "resample", "sessions"))


class RealityAnswer(TypedDict):
    """The recorded beside the simulated waits of today's machine; null if they are not known.

    jobs : number of jobs that have both.
    recorded_mean_wait, simulated_mean_wait : seconds.
    rank_correlation : Spearman's, of the waits.
    within_ten_minutes, within_twofold : shares of jobs whose waits differ by at most that.
    error : the error of the waits.
    calibration : the table calibration of the configuration.
    """

    jobs: int
    recorded_mean_wait: float | None
    simulated_mean_wait: float | None
    rank_correlation: float | None
    within_ten_minutes: float | None
    within_twofold: float | None
    error: float | None
    calibration: dict[str, Any] | None


def reality_of(base: RunTask, workers: Workers) -> dict[str, Any]:
    """Return ``{"reality": …}``: the recorded beside the simulated waits of today's machine, as plain data.

    It is empty if the workload has no recorded waits, or steps that change its load or its jobs.
    """
    if base.workload.kind == MODEL or any(_name_of(step) not in HARMLESS for step in base.transforms):
        return {}
    if all(job.wait is None for job in INPUTS.workload(base).jobs):
        return {}
    from simsched.report.metrics.agreement import agreement
    from simsched.report.run_views import load_run

    task = base.changed(measure=Measure(), keep=("jobs",), edits=())
    with scratch_folder("simsched-reality-") as folder:
        outcomes = list(run_tasks([task], workers, folder=folder))
        failed = not all(isinstance(outcome, FinishedRun) for outcome in outcomes)
        found = None if failed else agreement(load_run(folder / task.key).jobs)
    if found is None:  # the run fails, or no job can be compared
        return {}
    figures = {
        "recorded_mean_wait": found.recorded.mean,
        "simulated_mean_wait": found.simulated.mean,
        "rank_correlation": found.rank,
        "within_ten_minutes": found.near,
        "within_twofold": found.twofold,
        "error": found.error,
    }
    return {"reality": {"jobs": found.jobs, **rounded(figures), "calibration": base.options.get(CALIBRATION)}}


def reality_of_study(tasks: Sequence[RunTask], workers: Workers) -> dict[str, Any]:
    """Return `reality_of` the first run of a study, on the machine and the log as they are."""
    first = tasks[0]
    steps = tuple(step for step in first.transforms if _name_of(step) not in OF_SEEDS)
    return reality_of(first.changed(transforms=steps), workers)


def _name_of(step: str) -> str:
    call = parse_call(step)
    return "" if call is None else call.name


def notes_of(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield remarks on how near today's simulation is to the log, and whether it is calibrated."""
    found = about.get("reality")
    if not found:
        return
    rank = found["rank_correlation"]
    real, simulated = (human.seconds(round(found[f"{side}_mean_wait"])) for side in ("recorded", "simulated"))
    yield (
        f"today's machine has a mean wait of {simulated} in the simulation and of {real} in the log "
        f"({found['jobs']:,} jobs, rank correlation {rank_text(math.nan if rank is None else rank)}, "
        f"error {found['error']:.2f})"
    )
    yield calibration_note(found["calibration"])
