"""What a sweep would do: its inputs read and checked, its runs counted, its time estimated.

The estimate performs the first jobs of a few runs in this process, of each set of rules that the study
has: twice, so many and four times as many, which also says how the time grows with the number of jobs.
Runs whose queue begins to grow only later take longer than that, so it is told as "about".
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError
from simsched.formats.text.documents import load_json
from simsched.study.runs.cache import INPUTS, draws
from simsched.study.runs.run_task import options_of
from simsched.study.runs.task import MODEL, Input, canonical
from simsched.study.spec.finder import MODELS
from simsched.workload.job import MAX_JOBS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.study.runs.task import Task
    from simsched.study.spec.study import Study

#: jobs of the first prefix that is measured
PREFIX = 500
#: by how much a prefix is longer than the one before
STEP = 4
#: seconds in all that measuring should take
BUDGET = 8.0
#: runs that are sampled at most
MAX_SAMPLES = 24
#: a run takes time as its jobs to this power at most: each pass over a queue of all of them
MAX_POWER = 2.0
#: workloads that are put together to count their jobs; of further ones the mean is taken
MAX_COUNTED = 40
#: jobs that a model draws at most to be counted and measured; of more the number is what it says
MAX_DRAWN = 100_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of a study, and about how long they take.

    `seconds` is of all runs one after another, by samples of so many of them; None if nothing was measured.
    """

    tasks: tuple[Task, ...]
    distinct: int
    jobs: int
    seconds: float | None
    notes: tuple[str, ...] = ()
    samples: int = 0

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
    return sum(_counts(study))


def _counts(study: Study) -> list[int]:
    """Return the jobs of each task; errors as `check`."""
    counts: dict[str, int] = {}
    seen: set[Any] = set()
    return [_checked(study, task, seen, counts) for task in study.tasks]


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
            counts[name] = sum(counts.values()) // len(counts) if full else _number_of_jobs(task)
        return counts[name]
    except SimschedError as error:
        told = ", ".join(f"{axis} {label}" for axis, label in task.settings.items())
        raise error.at(f"{study.where}: {told}" if told else study.where) from None


def _number_of_jobs(task: Task) -> int:
    small, times = _small(task)
    return round(len(INPUTS.workload(small)) * times)


def _small(task: Task) -> tuple[Task, float]:
    """Return the task with a model of at most `MAX_DRAWN` jobs, and the factor to the jobs that it has."""
    if task.workload.kind != MODEL:
        return task, 1
    document: dict[str, Any] = load_json(task.workload.text or "{}", task.workload.name)
    name = next(name for name in MODELS if name in document)
    jobs = document[name].get("jobs")
    if not isinstance(jobs, int) or jobs <= MAX_DRAWN or jobs > MAX_JOBS:
        return task, 1
    text = canonical({**document, name: {**document[name], "jobs": MAX_DRAWN}}).decode()
    source = Input.of_text(text, task.workload.name, kind=MODEL)
    return task.changed(workload=source), jobs / MAX_DRAWN


def plan(study: Study, *, measure: bool = True) -> Plan:
    """Check a study and return what it would do; `measure` runs a few prefixes for the estimate.

    Raises
    ------
    SimschedError
        As `check`.
    """
    counts = _counts(study)
    tasks = study.tasks
    samples = _samples(tasks) if measure and any(counts) else {}
    found = _estimate([_small(task)[0] for task in tasks], counts, samples) if samples else None
    distinct = len({task.key for task in tasks})
    notes = tuple(_notes(study, distinct))
    return Plan(tasks, distinct, sum(counts), found, notes, sum(map(len, samples.values())))


def _rules(task: Task) -> str:
    return repr(sorted(task.options.items()))


def _samples(tasks: Sequence[Task]) -> dict[str, list[int]]:
    """Return for each set of rules which tasks are measured: its first, and its last (of the most load)."""
    ends: dict[str, list[int]] = {}
    for number, task in enumerate(tasks):
        ends.setdefault(_rules(task), []).append(number)
    few = list(ends)[:: -(-2 * len(ends) // MAX_SAMPLES)]
    return {rules: sorted({ends[rules][0], ends[rules][-1]}) for rules in few}


def _estimate(tasks: Sequence[Task], counts: Sequence[int], samples: Mapping[str, list[int]]) -> float:
    """Return the seconds of all tasks: of each as of the mean of the samples of its rules."""
    _timed(tasks[0], 10)  # what is imported and compiled at first is not paid by every run
    share = BUDGET / sum(map(len, samples.values()))
    laws = {
        rules: [_law(tasks[number], counts[number], share) for number in numbers]
        for rules, numbers in samples.items()
    }
    every = [law for found in laws.values() for law in found]
    total = 0.0
    for task, count in zip(tasks, counts, strict=True):
        known = laws.get(_rules(task), every)
        total += sum(law.seconds(count) for law in known) / len(known)
    return total


@dataclass(frozen=True, slots=True)
class _Law:
    """What was measured: `bare` seconds without jobs, `took` more with `jobs`, and how that grows."""

    bare: float
    took: float
    jobs: int
    power: float

    def seconds(self, jobs: int) -> float:
        return self.bare + self.took * math.pow(jobs / self.jobs, self.power)


def _law(task: Task, jobs: int, share: float) -> _Law:
    """Measure longer and longer prefixes of a task until its share of the time is spent, or it is done."""
    bare, _ = _timed(task, 10)
    before, size = (0.0, 0), PREFIX
    began = time.perf_counter()
    while True:
        took, count = _timed(task, size)
        took = max(took - bare, 1e-6)
        power = 1.0
        if before[0] > 0 and count > before[1]:
            power = min(max(math.log(took / before[0]) / math.log(count / before[1]), 1.0), MAX_POWER)
        spent = time.perf_counter() - began
        if size >= jobs or (before[1] and spent + STEP * took > share):
            return _Law(bare, took, count, power)
        before, size = (took, count), size * STEP


def _timed(task: Task, count: int) -> tuple[float, int]:
    """Return the seconds that the first so many jobs of a task take to simulate, and how many there are."""
    from simsched.study.runs.run_task import perform
    from simsched.study.runs.task import Measure

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


def is_shaken(tasks: Sequence[Task]) -> bool:
    """Whether all that a seed changes is that submissions are moved a little, in every task (`shake`)."""
    return all(
        task.workload.kind != MODEL
        and {step.strip().partition("(")[0].strip() for step in task.transforms if draws(step)} == {"shake"}
        and not is_random_run(task.options)
        for task in tasks
    )


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
