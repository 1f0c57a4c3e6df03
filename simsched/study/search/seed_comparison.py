"""Runs compared over seeds: each is simulated again under shaken or resampled copies of its workload.

The differences of two runs are computed seed by seed (common random numbers), so a difference that small
changes of the input, or other weeks, users or sessions, would turn round is within noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched import human
from simsched.declare.answers import OrNull, Written, json_text
from simsched.errors import ConfigError, RunError
from simsched.report.metrics.summary import metric
from simsched.study.runs.dispatch import finished_runs
from simsched.study.search.search_request import WorkerPlaces, cluster_input, opened, workload_input
from simsched.study.search.seeds import Seeds, seeded
from simsched.study.spec.run_task import RunTask
from simsched.study.stats import interval, paired_difference
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.tables import RunTables

MOST_SEEDS = 1000


class RunOverSeeds(Written, frozen=True):
    """The figures of a run, one value per seed; times in seconds."""

    run: str
    mean_wait: list[OrNull]
    median_wait: list[OrNull]
    p95_wait: list[OrNull]
    mean_bounded_slowdown: list[OrNull]


FIGURES = RunOverSeeds.__struct_fields__[1:]


class SeedDifference(Written, frozen=True):
    """A run less the first one by one figure.

    difference : the mean and the ends of its interval.
    """

    run: str
    figure: str
    difference: list[OrNull]
    verdict: str

    @classmethod
    def of(cls, run: RunOverSeeds, figure: str, first: RunOverSeeds) -> SeedDifference:
        """Return a run against the first by one figure."""
        found = paired_difference(getattr(first, figure), getattr(run, figure))
        ends = found.interval
        return cls(run.run, figure, [ends.estimate, ends.low, ends.high], found.verdict)


class SeedsAnswer(Written, frozen=True):
    """Runs compared over seeds; the same seed is the same demand for every run.

    seeds : the seeds in words.
    against : the first run.
    """

    seeds: str
    against: str
    runs: list[RunOverSeeds]
    differences: list[SeedDifference]

    def text(self) -> str:
        """Return the differences against the first run as a table for each further run."""
        made = [f"over {self.seeds}"]
        first, *others = self.runs
        for run in others:
            head = ["", self.against, run.run, "difference", "95 % between", "verdict"]
            rows = []
            for found in self.differences:
                if found.run != run.run:
                    continue
                means = [interval(getattr(one, found.figure)).estimate for one in (first, run)]
                unit = metric(found.figure).unit
                *values, low, high = (human.quantity(value, unit) for value in (*means, *found.difference))
                title = found.figure.replace("_", " ").replace("bounded slowdown", "bsld")
                rows.append([title, *values, f"{low} and {high}", found.verdict])
            made += ["", f"{run.run} against {self.against}", fitted_table(head, rows, PAGE_WIDTH)]
        return "\n".join(made) + "\n"

    def to_json(self) -> str:
        """Return all values and differences as JSON; times are in seconds."""
        return json_text(self, 1, ensure_ascii=False) + "\n"


def compare_over_seeds(
    runs: Sequence[RunTables],
    count: int,
    *,
    block: str | None = None,
    shake: str | None = None,
    workers: int | None = None,
) -> SeedsAnswer:
    """Simulate runs again under `count` seeds, which are those of `Seeds.of`, and return their figures.

    Raises
    ------
    ConfigError
        For fewer than two runs or seeds, or a workload of which no copies can be drawn.
    RunError
        If a run does not record its command, an input has changed, or a run fails.
    """
    if len(runs) < 2:
        raise ConfigError(
            "a single run has nothing to compare with", where="--seeds", expected="two or more runs"
        )
    if not 2 <= count <= MOST_SEEDS:
        raise ConfigError(f"{count} seeds are out of range", where="--seeds", expected=f"2 to {MOST_SEEDS:,}")
    bases = [_task_of(run) for run in runs]
    seeds = [Seeds.of(base, count, block, shake, random=True) for base in bases]
    tasks = [
        [seeded(base, number, of_run.step) for number in range(count)]
        for base, of_run in zip(bases, seeds, strict=True)
    ]
    with opened(WorkerPlaces(workers=workers), *bases) as places:
        done = finished_runs((task for row in tasks for task in row), places)
    rows = [[done[task.key].row.metrics for task in row] for row in tasks]
    first, *others = found = [
        RunOverSeeds(run.name, *([metrics[figure] for metrics in row] for figure in FIGURES))
        for run, row in zip(runs, rows, strict=True)
    ]
    texts: dict[str, list[str]] = {}  # the seeds in words → the runs that they are of
    for run, of_run in zip(runs, seeds, strict=True):
        texts.setdefault(of_run.text, []).append(run.name)
    words = [text if len(texts) < 2 else f"{text} ({', '.join(names)})" for text, names in texts.items()]
    differences = [SeedDifference.of(run, figure, first) for run in others for figure in FIGURES]
    return SeedsAnswer("; ".join(words), first.run, found, differences)


def _task_of(run: RunTables) -> RunTask:
    """Return the task that repeats a run; every run has the same seeds."""
    from simsched.simulation.record.file_digests import changed_inputs
    from simsched.simulation.record.run_origin import read_origin

    if run.path is None or run.meta.get("command") is None:
        raise RunError(
            "the run does not record its command, so it cannot be simulated again",
            where=run.name,
            expected="a run of `simsched run`",
        )
    for changed, fault in changed_inputs(run.meta):
        if changed:
            raise RunError(fault, where=run.name, expected="the inputs of the run")
    command = read_origin(run.path / "run.json").command
    assert command is not None
    reading = command.specified()
    steps = tuple(reading.pop("transform", ()))
    options = {name: value for name, value in command.rules.items() if name != "seed"}
    inputs = cluster_input(command.cluster), workload_input(command.workload, reading)
    return RunTask(*inputs, transforms=steps, options=options, seed=0)
