"""Runs compared over seeds: each is simulated again under shaken or resampled copies of its workload.

The differences of two runs are computed seed by seed (common random numbers), so a difference that small
changes of the input, or other weeks, users or sessions, would turn round is within noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from simsched import human
from simsched.declare.answers import OrNull, json_text
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
    from simsched.study.stats import PairedDifference

FIGURES = ("mean_wait", "median_wait", "p95_wait", "mean_bounded_slowdown")
MOST_SEEDS = 1000


class RunOverSeeds(TypedDict):
    """The figures of a run, one value per seed; times in seconds."""

    run: str
    mean_wait: list[OrNull]
    median_wait: list[OrNull]
    p95_wait: list[OrNull]
    mean_bounded_slowdown: list[OrNull]


class SeedDifference(TypedDict):
    """A run less the first one by one figure.

    difference : the mean and the ends of its interval.
    """

    run: str
    figure: str
    difference: list[OrNull]
    verdict: str


class SeedsAnswer(TypedDict):
    """Runs compared over seeds.

    seeds : the seeds in words.
    against : the first run.
    """

    seeds: str
    against: str
    runs: list[RunOverSeeds]
    differences: list[SeedDifference]


@dataclass(frozen=True, slots=True)
class SeedComparison:
    """The figures of runs, one value per seed; the same seed is the same demand for every run."""

    names: tuple[str, ...]
    seeds: Seeds
    values: tuple[dict[str, list[float]], ...]

    def difference(self, number: int, figure: str) -> PairedDifference:
        """Return a run against the first by one figure."""
        return paired_difference(self.values[0][figure], self.values[number][figure])

    def text(self) -> str:
        """Return the differences against the first run as a table for each further run."""
        made = [f"over {self.seeds.text}"]
        for number, name in enumerate(self.names[1:], start=1):
            head = ["", self.names[0], name, "difference", "95 % between", "verdict"]
            rows = []
            for figure in FIGURES:
                found, both = self.difference(number, figure), (self.values[0], self.values[number])
                ends = found.interval
                numbers = [interval(run[figure]).estimate for run in both]
                numbers += [ends.estimate, ends.low, ends.high]
                *values, low, high = (human.quantity(value, metric(figure).unit) for value in numbers)
                title = "mean bsld" if figure == "mean_bounded_slowdown" else figure.replace("_", " ")
                rows.append([title, *values, f"{low} and {high}", found.verdict])
            made += ["", f"{name} against {self.names[0]}", fitted_table(head, rows, PAGE_WIDTH)]
        return "\n".join(made) + "\n"

    def to_json(self) -> str:
        """Return all values and differences as JSON; times are in seconds."""
        differences: list[SeedDifference] = []
        for number, name in enumerate(self.names[1:], start=1):
            for figure in FIGURES:
                found = self.difference(number, figure)
                ends = [found.interval.estimate, found.interval.low, found.interval.high]
                differences.append(
                    {"run": name, "figure": figure, "difference": ends, "verdict": found.verdict}
                )
        runs = [{"run": name, **values} for name, values in zip(self.names, self.values, strict=True)]
        document: SeedsAnswer = {
            "seeds": self.seeds.text,
            "against": self.names[0],
            "runs": cast("list[RunOverSeeds]", runs),
            "differences": differences,
        }
        return json_text(document, 1, ensure_ascii=False) + "\n"


def compare_over_seeds(
    runs: Sequence[RunTables],
    count: int,
    *,
    block: str | None = None,
    shake: str | None = None,
    workers: int | None = None,
) -> SeedComparison:
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
    values = tuple(
        {figure: [done[task.key].row.metrics[figure] for task in row] for figure in FIGURES} for row in tasks
    )
    return SeedComparison(tuple(run.name for run in runs), seeds[0], values)


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
