"""The seeds of trials: which demand each of them is.

Seed 0 of a trace is the trace as it is; further seeds are resamples of it
(`simsched.workload.transforms.resample`) or shaken copies.  Each seed of a model is a draw of its own.
Seed *s* is the same demand in every trial (common random numbers): a draw never depends on the machine or
on the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched import human
from simsched.declare.answers import OrNull, Written, json_text
from simsched.errors import ConfigError, RunError
from simsched.formats.rfc.duration import parse_duration
from simsched.report.metrics.summary import metric
from simsched.study.runs.dispatch import finished_runs
from simsched.study.runs.input_cache import INPUTS
from simsched.study.search.search_request import WorkerPlaces, cluster_input, opened, workload_input
from simsched.study.spec.run_task import MODEL, RunTask
from simsched.study.stats import interval, paired_difference
from simsched.text_table import PAGE_WIDTH, fitted_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.report.data.tables import RunTables


#: what seeds resample in place of blocks of time
UNITS = ("users", "sessions")


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of trials: their number, the first, and the step by which the others change a trace.

    `block` (seconds) is None where nothing is resampled in blocks of a known length: with one seed, a model,
    a burst (all jobs are submitted at one instant, so that there is nothing to resample), or shaken copies,
    whose submissions are moved by up to `shake` seconds.  `unit` is ``users`` or ``sessions`` where these are
    resampled in place of blocks.
    """

    count: int
    first: int
    step: str = ""
    block: float | None = None
    burst: bool = False
    shake: float | None = None
    unit: str | None = None

    @classmethod
    def of(
        cls, base: RunTask, count: int, block: str | None, shake: str | None, *, random: bool = False
    ) -> Seeds:
        """Return the seeds of a run, one if nothing is `random` in it and its workload cannot be resampled.

        Raises
        ------
        ConfigError
            if no such copies of the workload can be drawn.
        """
        from simsched.workload.transforms.resample import block_of

        model = base.workload.kind == MODEL
        if shake is not None:
            if model:
                raise ConfigError("a model draws new jobs for each seed", where="--shake", expected="a trace")
            if block is not None:
                raise ConfigError(
                    "seeds are either resampled or shaken",
                    where="--block",
                    expected="--block or --shake, not both",
                )
            if count == 1:
                raise ConfigError(
                    "with one seed only the workload as it is would run",
                    where="--shake",
                    expected="--seeds of 2 or more",
                )
            seeds = cls(count, base.seed, f"shake({shake})", shake=parse_duration(shake, where="--shake"))
        elif count == 1 or model:
            return cls(count, base.seed)
        elif block in UNITS:
            seeds = cls(count, base.seed, f"resample({block})", unit=block)
        else:
            given = None if block is None else parse_duration(block, where="--block")
            length = block_of(INPUTS.workload(base)) if given is None else given
            if length is None:
                return cls(count if random else 1, base.seed, "resample", burst=True)
            seeds = cls(count, base.seed, "resample" if block is None else f"resample({block})", length)
        INPUTS.workload(seeded(base, 1, seeds.step))  # a workload that has no such copies is refused now
        return seeds

    @property
    def drawn(self) -> str:
        """The demands of the seeds in words."""
        if self.burst:
            return "all jobs are submitted at one instant: there is nothing to resample"
        others = self.count - 1
        resamples = f"the workload as it is and {others} resample{'s' * (others > 1)}"
        if self.shake is not None:
            copies = "1 copy" if others == 1 else f"{others} copies"
            moved = f"of it with submissions moved by up to {human.seconds(self.shake)}"
            return f"the workload as it is and {copies} {moved}"
        if self.unit is not None:
            return f"{resamples} of its {self.unit}"
        if self.block is not None:
            return f"{resamples} in blocks of {human.seconds(self.block)}"
        return f"{self.count} draws of the model"

    @property
    def text(self) -> str:
        """The number of the seeds, and their demands."""
        return f"{self.count} seeds: {self.drawn}"


def seeded(base: RunTask, number: int, step: str, *more: str) -> RunTask:
    """Return the task of one seed.

    The step that draws its demand comes after the steps of the task; `more` steps come last, so that draws do
    not depend on them.
    """
    drawn = (step,) if number and step else ()
    return base.changed(seed=base.seed + number, transforms=(*base.transforms, *drawn, *more))


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
