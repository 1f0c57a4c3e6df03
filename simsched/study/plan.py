"""What a sweep would do: its inputs read and checked, its runs counted, its time estimated.

The estimate measures a small prefix of a few runs in this process and scales it by the numbers
of jobs.  Runs that pile up jobs take longer than their prefix says: it is a lower bound in
spirit, and told as "about".
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError
from simsched.study.cache import INPUTS, draws
from simsched.study.run_task import options_of
from simsched.study.task import MODEL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.study.spec import Study
    from simsched.study.task import Task

#: jobs of the prefix that is measured
PREFIX = 1000
#: seconds after which no further prefix is measured
BUDGET = 8.0
#: workloads that are put together to count their jobs; of further ones the mean is taken
MAX_COUNTED = 40


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of a study, and about how long they take.

    `seconds` is of all runs one after another; None if nothing was measured.
    """

    tasks: tuple[Task, ...]
    distinct: int
    jobs: int
    seconds: float | None
    notes: tuple[str, ...] = ()

    def wall(self, workers: int) -> float | None:
        """Return about how long it takes with so many workers, their start included."""
        return None if self.seconds is None else self.seconds / max(1, min(workers, self.distinct)) + 1.5


def check(study: Study) -> int:
    """Read every input, make every edit and draw the first workload of each kind; return jobs in all.

    Raises
    ------
    SimschedError
        The first fault, with the settings of the first run that has it.
    """
    counts: dict[str, int] = {}
    seen: set[Any] = set()
    total = 0
    for task in study.tasks:
        total += _checked(study, task, seen, counts)
    return total


def _checked(study: Study, task: Task, seen: set[Any], counts: dict[str, int]) -> int:
    options = repr(sorted(task.options.items()))
    try:
        if options not in seen:
            seen.add(options)
            options_of(task)
        place = (task.cluster.sha256, task.edits)
        if place not in seen:
            seen.add(place)
            INPUTS.cluster(task.cluster, task.edits)
        name = repr((task.workload.sha256, sorted(task.workload.reading.items()), task.transforms))
        if name not in counts:
            full = len(counts) >= MAX_COUNTED
            counts[name] = sum(counts.values()) // len(counts) if full else len(INPUTS.workload(task))
        return counts[name]
    except SimschedError as error:
        told = ", ".join(f"{axis} {label}" for axis, label in task.settings.items())
        raise error.at(f"{study.where}: {told}" if told else study.where) from None


def plan(study: Study, *, measure: bool = True) -> Plan:
    """Check a study and return what it would do; `measure` runs a few prefixes for the estimate.

    Raises
    ------
    SimschedError
        As `check`.
    """
    jobs = check(study)
    tasks = study.tasks
    rate = _rate(tasks) if measure and jobs else None
    seconds = None if rate is None else rate[0] * jobs + rate[1] * len(tasks)
    distinct = len({task.key for task in tasks})
    return Plan(tasks, distinct, jobs, seconds, tuple(_notes(study, distinct)))


def _rate(tasks: Sequence[Task]) -> tuple[float, float]:
    """Return seconds a job and seconds a run, by the prefixes of a few runs across the plan."""
    few = sorted({0, len(tasks) // 3, 2 * len(tasks) // 3, len(tasks) - 1})
    began = time.perf_counter()
    _timed(tasks[0], 10)  # what is imported and compiled at first is not paid by every run
    spent, jobs, bare = 0.0, 0, 0.0
    for number in few:
        least, _ = _timed(tasks[number], 10)
        took, count = _timed(tasks[number], PREFIX)
        spent, jobs, bare = spent + max(0.0, took - least), jobs + count, max(bare, least)
        if time.perf_counter() - began > BUDGET:
            break
    return spent / max(1, jobs), bare


def _timed(task: Task, count: int) -> tuple[float, int]:
    """Return the seconds that the first so many jobs of a task take to simulate, and how many there are."""
    from simsched.study.run_task import perform
    from simsched.study.task import Measure

    short = task.changed(transforms=(*task.transforms, f"first({count})"), measure=Measure())
    INPUTS.workload(short)
    INPUTS.cluster(short.cluster, short.edits)
    start = time.perf_counter()
    row = perform(short)
    return time.perf_counter() - start, max(1, int(row.metrics["jobs"]))


def _notes(study: Study, distinct: int) -> list[str]:
    notes = []
    tasks = study.tasks
    if distinct < len(tasks):
        notes.append(f"{len(tasks) - distinct} runs are the same as others and are run once")
    if len(study.seeds) > 1 and not any(is_random(task) for task in tasks):
        notes.append("nothing in this study is drawn at random: every seed gives the same result")
    return notes


def is_random(task: Task) -> bool:
    """Whether a task's seed can make a difference."""
    return task.workload.kind == MODEL or any(map(draws, task.transforms)) or is_random_run(task.options)


def is_random_run(options: Mapping[str, Any]) -> bool:
    """Whether a run with these options draws at random even if its jobs are given."""
    said = {key.replace("_", "-"): value for key, value in options.items()}
    return (
        bool(said.get("failures"))
        or ".." in str(said.get("epilog", ""))
        or said.get("match-policy", "first") not in _SURE_POLICIES
    )


_SURE_POLICIES = frozenset(
    ("first", "low", "high", "lonode", "hinode", "lonodex", "hinodex", "firstnodex", "bestfit",
     "worstfit", "locality", "variation")
)  # fmt: skip
