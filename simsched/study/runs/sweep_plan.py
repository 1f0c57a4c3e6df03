"""The plan of a sweep: its inputs are read and checked, its runs counted, its time estimated.

The estimate simulates the first jobs of a few runs in this process and takes the seconds per job to hold
for all jobs.  A queue that grows later makes its runs slower than that.
"""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import InputWarning, SimschedError
from simsched.formats.rfc.calls import parse_call
from simsched.formats.text.json_text import load_json
from simsched.match.policies.policy import POLICIES
from simsched.simulation.options.run_config import POLICY, POLICY_OPTIONS, options_note
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.single_run import options_of, perform
from simsched.study.spec.run_task import MODEL, Measure, RunTask, TaskInput, canonical_json
from simsched.study.spec.study_tables import MODELS
from simsched.workload.job import MAX_JOBS
from simsched.workload.transforms.steps import draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from simsched.study.spec.study import Study

#: number of jobs at the beginning of a run that are timed
PREFIX = 2000
#: number of runs that are timed at most
MAX_SAMPLES = 24
#: seconds after which no further run is timed
BUDGET = 8.0
#: seconds that worker processes take to start
WORKER_START = 1.5
#: workloads that are read in full to count their jobs; for further ones the mean is taken
MAX_COUNTED = 40
#: jobs that a model draws at most to be counted and timed; above that its own number of jobs is believed
MAX_DRAWN = 100_000


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The runs of a study and about how long they take.

    Attributes
    ----------
    distinct : number of runs that differ from all others.
    jobs : jobs of all runs together.
    seconds : time of the distinct runs one after another, estimated from `samples` of them; None if no
        run was timed.
    log_use : sentences on the use of the logs on the site of the study.
    """

    tasks: tuple[RunTask, ...]
    distinct: int
    jobs: int
    seconds: float | None
    notes: tuple[str, ...] = ()
    samples: int = 0
    log_use: tuple[str, ...] = ()

    def wall(self, workers: int) -> float | None:
        """Return about how many seconds the sweep takes with this number of workers, their start included."""
        if self.seconds is None:
            return None
        return self.seconds / max(1, min(workers, self.distinct)) + WORKER_START


def plan(study: Study, *, measure: bool = True) -> SweepPlan:
    """Check a study and return its plan; `measure` times the first jobs of a few runs.

    Every input is read, every edit is made, and the first workload of each kind is drawn.

    Raises
    ------
    SimschedError
        for the first fault, with the settings of the first run that has it.
    """
    tasks = study.tasks
    known: dict[str, int] = {}
    seen: set[Any] = set()
    counts = [_checked(study, task, seen, known) for task in tasks]
    jobs_of = {task.key: count for task, count in zip(tasks, counts, strict=True)}
    seconds, samples = _estimate(tasks, jobs_of) if measure and any(counts) else (None, 0)
    notes = tuple(_notes(study, len(jobs_of)))
    return SweepPlan(tasks, len(jobs_of), sum(counts), seconds, notes, samples, log_uses(study))


def log_uses(study: Study) -> tuple[str, ...]:
    """Return a sentence on the use of each log of a study on its site; () without a site."""
    if study.site is None:
        return ()
    from simsched.site.log_use import use_sentence

    found: dict[str, None] = {}
    for task in _by_log(study.tasks, lambda _: ()):
        source = task.workload
        workload = INPUTS.workload(task.changed(transforms=()))
        sentence = use_sentence(study.site, workload, mapped=bool(source.reading.get("map")))
        if sentence:
            found[f"{source.name}: {sentence}"] = None
    return tuple(found)


def _by_log(tasks: Iterable[RunTask], more: Callable[[RunTask], object]) -> list[RunTask]:
    """Return the first task of each log, way to read it and value of `more`; the first `MAX_COUNTED`."""
    found: dict[str, RunTask] = {}
    for task in tasks:
        if task.workload.kind != MODEL:
            reading = sorted(task.workload.reading.items())
            found.setdefault(repr((task.workload.sha256, reading, more(task))), task)
    return list(found.values())[:MAX_COUNTED]


def warn_of_rules(tasks: Iterable[RunTask]) -> None:
    """Warn of rules and requests of some runs that are probably wrong, as `simulate` does; once each."""
    from simsched.simulation.options.rule_notes import notes_on_rules

    found: dict[str, None] = {}
    for task in _by_log(tasks, lambda task: task.options):
        with suppress(SimschedError):  # the run says what is wrong
            workload = INPUTS.workload(task.changed(transforms=()))
            found |= dict.fromkeys(notes_on_rules(options_of(task), workload))
    if found:
        warnings.warn(InputWarning("the options", tuple(found)), stacklevel=4)


def _checked(study: Study, task: RunTask, seen: set[Any], counts: dict[str, int]) -> int:
    try:
        options = _options_key(task)
        if options not in seen:
            seen.add(options)
            options_of(task)
        machine = (task.cluster.sha256, task.edits)
        if machine not in seen:
            seen.add(machine)
            INPUTS.cluster(task.cluster, task.edits)
        name = repr((task.workload.sha256, sorted(task.workload.reading.items()), task.transforms))
        if name not in counts:
            full = len(counts) >= MAX_COUNTED
            counts[name] = sum(counts.values()) // len(counts) if full else _jobs_of(task)
        return counts[name]
    except SimschedError as error:
        settings = ", ".join(f"{axis} {label}" for axis, label in task.settings.items())
        raise error.at(f"{study.where}: {settings}" if settings else study.where) from None


def _options_key(task: RunTask) -> str:
    return repr(sorted(task.options.items()))


def _jobs_of(task: RunTask) -> int:
    small, times = _small(task)
    return round(len(INPUTS.workload(small)) * times)


def _small(task: RunTask) -> tuple[RunTask, float]:
    """Return the task with a model of at most `MAX_DRAWN` jobs, and the factor to its own number of jobs."""
    if task.workload.kind != MODEL:
        return task, 1
    document: dict[str, Any] = load_json(task.workload.text or "{}", task.workload.name)
    name = next(name for name in MODELS if name in document)
    jobs = document[name].get("jobs")
    if not isinstance(jobs, int) or jobs <= MAX_DRAWN or jobs > MAX_JOBS:
        return task, 1
    text = canonical_json({**document, name: {**document[name], "jobs": MAX_DRAWN}}).decode()
    source = TaskInput.of_text(text, task.workload.name, kind=MODEL)
    return task.changed(workload=source), jobs / MAX_DRAWN


# --- the estimate


def _estimate(tasks: Sequence[RunTask], jobs_of: Mapping[str, int]) -> tuple[float, int]:
    """Return the seconds of all distinct tasks and the number of tasks that were timed.

    A task costs its jobs times the seconds per job that were measured with its options; with options
    that were not sampled, times the mean of all samples.
    """
    distinct = {task.key: task for task in tasks}
    _seconds_per_job(tasks[0], 10)  # imports and compilation are paid once and not by every run
    began = time.perf_counter()
    rates: dict[str, float] = {}
    every: list[float] = []
    for options, ends in _samples(list(distinct.values())):
        if every and time.perf_counter() - began > BUDGET:
            break
        found = [_seconds_per_job(task, PREFIX) for task in ends]
        rates[options] = sum(found) / len(found)
        every += found
    mean = sum(every) / len(every)
    total = sum(jobs_of[key] * rates.get(_options_key(task), mean) for key, task in distinct.items())
    return total, len(every)


def _samples(tasks: Sequence[RunTask]) -> list[tuple[str, list[RunTask]]]:
    """Return the first and the last task of each set of options; with many sets, only of some."""
    ends: dict[str, list[RunTask]] = {}
    for task in tasks:
        ends.setdefault(_options_key(task), []).append(task)
    step = -(-2 * len(ends) // MAX_SAMPLES)
    return [(options, list({t.key: t for t in (same[0], same[-1])}.values()))
            for options, same in list(ends.items())[::step]]  # fmt: skip


def _seconds_per_job(task: RunTask, count: int) -> float:
    """Return the seconds per job of the first `count` jobs of a task, without the reading of its inputs."""
    small, _ = _small(task)
    prefix = small.changed(transforms=(*small.transforms, f"first({count})"), measure=Measure())
    INPUTS.workload(prefix)
    INPUTS.cluster(prefix.cluster, prefix.edits)
    seconds, jobs = _timed(prefix)
    return seconds / max(1, jobs)


def _timed(task: RunTask) -> tuple[float, int]:
    """Return the seconds that a task takes to simulate and the number of its jobs."""
    start = time.perf_counter()
    row = perform(task)
    return time.perf_counter() - start, int(row.metrics["jobs"])


# --- notes


def _notes(study: Study, distinct: int) -> list[str]:
    notes = []
    tasks = study.tasks
    if distinct < len(tasks):
        notes.append(f"{len(tasks) - distinct} runs are equal to others and are performed once")
    if len(study.seeds) > 1 and not any(is_random(task) for task in tasks):
        notes.append("nothing in this study is random: every seed gives the same result")
    found = (options_note(task.options.get(POLICY), task.options.get(POLICY_OPTIONS, {})) for task in tasks)
    return [*notes, *dict.fromkeys(text for text in found if text is not None)]


def is_random(task: RunTask) -> bool:
    """Whether a task's seed can make a difference."""
    return task.workload.kind == MODEL or any(map(draws, task.transforms)) or is_random_run(task.options)


def is_shaken(tasks: Sequence[RunTask]) -> bool:
    """Whether a seed only moves submissions a little (`shake`), in every task."""
    return all(
        task.workload.kind != MODEL
        and {call and call.name for call in map(parse_call, filter(draws, task.transforms))} == {"shake"}
        and not is_random_run(task.options)
        for task in tasks
    )


def is_random_run(options: Mapping[str, Any]) -> bool:
    """Whether a run with these options is random even for fixed jobs."""
    spelt = {key.replace("_", "-"): value for key, value in options.items()}
    policy = POLICIES.get(spelt.get("match-policy", "first"))
    drawn = policy is None or policy.random  # a policy of another package may draw lots
    return drawn or bool(spelt.get("failures")) or ".." in str(spelt.get("epilog", ""))
