"""`size`: the smallest machine that meets the targets; `headroom`: how much more load a machine takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from simsched.arguments import options_of
from simsched.errors import ConfigError
from simsched.simulation.options.run_config import RunConfig
from simsched.simulation.options.run_rules import PolicyRules
from simsched.study.reality import reality_of
from simsched.study.runs import single_run
from simsched.study.runs.dispatch import finished_runs
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.sweep_plan import is_random_run, warn_of_rules
from simsched.study.search.answer import HEADROOM, SIZE, Answer
from simsched.study.search.evaluation import AcceptanceRule, Evaluation
from simsched.study.search.search_answer import about_of
from simsched.study.search.search_request import TARGETS, LoadRequest, SizeRequest, opened
from simsched.study.search.seeds import Seeds, seeded
from simsched.study.search.size_axis import LoadAxis, size_axis_of
from simsched.study.search.threshold import Scan, smallest
from simsched.study.spec.run_task import MODEL, Measure
from simsched.study.spec.target import Figure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.graph.cluster import ClusterLike
    from simsched.study.runs.workers import Workers
    from simsched.study.search.search_request import SizingRequest
    from simsched.study.search.threshold import Search
    from simsched.study.spec.run_task import RunTask
    from simsched.study.spec.target import SizingTarget
    from simsched.workload.load import WorkloadLike

Vary = Callable[[int], tuple[tuple[str, ...], dict[str, Any]]]
#: multiple of today's size up to which a search goes by default
REACH = 16
MAX_SIZE = 1_000_000
#: the first stride of the search, as a multiple of the load
STRIDE = 0.08


@options_of(SizeRequest, PolicyRules, declared=RunConfig)
def size(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    **options: Any,
) -> Answer:
    """Search for the smallest machine that meets the targets.

    Parameters
    ----------
    cluster, workload : as for `simulate`; a site brings its queues and rules.
    targets : one or several, such as ``p95_wait<=1h`` (see `simsched.study.spec.target`).
    options : the fields of `SizeRequest`, and the rules of the runs, as for `simulate`.

    Returns
    -------
    Answer
        true if there is such a machine; ``.value`` is its size, ``.sentence`` states it in words.

    Raises
    ------
    SimschedError
        for a target, an option or an input that is not valid.
    """
    request = SizeRequest.of(cluster, workload, options, targets=TARGETS.read(targets, ""))
    steps = load_steps(request.by, request.load)

    def vary(value: int) -> tuple[tuple[str, ...], dict[str, Any]]:
        return steps, {"edits": axis.edits(value), "settings": {axis.noun: value}}

    with open_search(request, vary) as evaluator:
        axis = size_axis_of(request.grow, evaluator.base.cluster)
        low, high = _range(request, axis.current)
        search = evaluator.smallest(lambda trial: trial.eased, low, high, start=axis.current)
        value, limit = _smallest_and_largest(evaluator, search)
        facts = {"growth": {"what": axis.text, "today": axis.current}, **evaluator.facts()}
    below = None if value is None or value == low else value - 1
    return Answer(SIZE, axis, evaluator.rule, evaluator.seeds, value, below, limit, search, evaluator.trials,
                  axis.current, about_of(evaluator.base, **facts))  # fmt: skip


def _range(request: SizeRequest, today: int) -> tuple[int, int]:
    low = 1 if request.least is None else request.least
    high = max(REACH * today, low, 1) if request.most is None else request.most
    for name, value in (("--min", low), ("--max", high)):
        if value > MAX_SIZE:
            raise ConfigError(
                f"a size of {value:,} is out of range", where=name, expected=f"0 to {MAX_SIZE:,}"
            )
    return low, high


def _smallest_and_largest(evaluator: Evaluator, search: Search) -> tuple[int | None, int | None]:
    """Return the smallest size that meets all targets, and the largest if some target sets one.

    Every size tried between the two meets all targets.
    """
    found = search.answer
    if found is None or all(target.eases for target in evaluator.rule.targets):
        return found, None
    # Some target, such as a use of at least 80 %, gets harder as the machine grows: the search so far
    # has left it out, so the size that it found need not meet it.
    evaluator.left = None
    if evaluator.evaluate(found).met:
        evaluator.smallest(
            lambda trial: not trial.met, found, search.high, start=found, scan=Scan(0, 0), expect=None
        )
    if not any(trial.met for trial in evaluator.trials.values()):
        return None, None
    least = min(value for value, trial in evaluator.trials.items() if trial.met)
    value = _last_met(evaluator, least, search.low)
    failing = [size for size, trial in evaluator.trials.items() if size > value and not trial.met]
    largest = max(size for size in evaluator.trials if size < min(failing, default=search.high + 1))
    return value, _last_met(evaluator, largest, search.high)


def _last_met(evaluator: Evaluator, value: int, end: int) -> int:
    """Return the last value from one that meets all targets towards an end before one that misses some."""
    step = 1 if end > value else -1
    while value != end and evaluator.evaluate(value + step).met:
        value += step
    return value


@options_of(LoadRequest, PolicyRules, declared=RunConfig)
def headroom(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    **options: Any,
) -> Answer:
    """Search for the highest load under which a machine still meets the targets.

    Parameters
    ----------
    cluster, workload, targets : as for `size`.
    options : the fields of `LoadRequest`, and the rules of the runs; `load` is today's load.

    Returns
    -------
    Answer
        true if today's load meets the targets; ``.number`` is the highest load that does.

    Raises
    ------
    SimschedError
        for a target, an option or an input that is not valid.
    """
    request = LoadRequest.of(cluster, workload, options, targets=TARGETS.read(targets, ""))
    load_steps(request.by, request.load)
    axis, low, high = _load_axis(request)

    def vary(value: int) -> tuple[tuple[str, ...], dict[str, Any]]:
        load = axis.number(value)
        return load_steps(request.by, load), {"settings": {"load": load}}

    with open_search(request, vary) as evaluator:
        # It looks for the least load that breaks a target; the answer is one step below it.
        search = evaluator.smallest(
            lambda trial: not trial.eased,
            low,
            high,
            start=0,
            step=max(1, round(STRIDE / axis.step)),
            floor=1 if evaluator.evaluate(0).eased else low,
        )
        found = high if search.answer is None else search.answer - 1
        met = [value for value, trial in evaluator.trials.items() if trial.met and value <= found]
        value = _last_met(evaluator, max(met), found) if met else None
        facts = evaluator.facts(step=axis.step)
    beyond = None if value is None or value >= high else value + 1
    return Answer(HEADROOM, axis, evaluator.rule, evaluator.seeds, value, beyond, None, search,
                  evaluator.trials, 0, about_of(evaluator.base, **facts))  # fmt: skip


def _load_axis(request: LoadRequest) -> tuple[LoadAxis, int, int]:
    today, step, least, most = request.load, request.step, request.least, request.most
    if not 1e-4 <= step <= 1:
        raise ConfigError(
            f"a step of {step:g} is out of range", where="--step", expected="0.0001 to 1 times the load"
        )
    if not 0 < least <= today <= most < 1e6:
        raise ConfigError(f"loads from {least:g} to {most:g} are not a valid range", where="--min --max",
                          expected=f"a range above 0 that contains today's load, {today:g}")  # fmt: skip
    room = 1e-9  # the ends of the range belong to it in spite of rounding
    return (
        LoadAxis(today, step),
        math.ceil((least - today) / step - room),
        math.floor((most - today) / step + room),
    )


# --- what both searches share: the checks of a request, the load, and the evaluator of its values


#: way to scale load → the step of a workload
BY = {"arrival": "load", "runtime": "runtime", "users": "users", "jobs": "copies"}
#: ways to scale load that are random
DRAWN = ("users", "jobs")


def load_steps(by: str, load: float) -> tuple[str, ...]:
    """Return the steps that multiply the load of a workload; ConfigError for a load that is not valid."""
    if not 0 < load < 1e6:
        raise ConfigError(f"a load of {load:g} is not valid", where="--load", expected="a number above 0")
    return () if load == 1 else (f"{BY[by]}({load:.12g})",)


@contextmanager
def open_search(request: SizingRequest, vary: Vary) -> Iterator[Evaluator]:
    """Check a request, open the workers, and yield the evaluator of its values."""
    from simsched.workload.transforms.query import parse_query

    base = request.base(Measure(request.warm_up, request.drain, figures=wanted(request.targets)))
    workload, model = INPUTS.workload(base), base.workload.kind == MODEL
    if not len(workload):
        raise ConfigError("the workload has no jobs", where=base.workload.name, expected="at least one job")
    for target in () if model or "queues" in base.options else request.targets:
        if target.figure.query and not any(map(parse_query(target.figure.query), workload.jobs)):
            raise ConfigError(
                "no job of the workload matches the query",
                where=str(target),
                expected="a query that some jobs match",
            )
    if request.by in DRAWN:  # jobs without users are refused before the first run
        INPUTS.workload(seeded(base, 0, "", *load_steps(request.by, 1.5)))
    random = is_random_run(base.options) or request.by in DRAWN
    seeds = Seeds.of(base, request.seeds, request.block, request.shake, random=random)
    warn_of_rules([base])
    with opened(request, base) as workers:
        yield Evaluator(request, base, seeds, workers, vary)


class Evaluator:
    """Evaluates the values of a request: makes their tasks and performs them on workers, each value once.

    Parameters
    ----------
    base : the task of today's machine and load.
    seeds : the seeds with which each value is simulated.
    vary : value → the last steps of the workload, and changes of the task.

    Attributes
    ----------
    trials : value → its evaluation, in the order in which they were made.
    left : number of evaluations that the search expects after the next one; None if unknown.
    """

    def __init__(
        self, request: SizingRequest, base: RunTask, seeds: Seeds, workers: Workers, vary: Vary
    ) -> None:
        self.request, self.base, self.seeds, self.workers, self.vary = request, base, seeds, workers, vary
        self.rule = AcceptanceRule(request.targets, request.meet, request.confidence)
        self.trials: dict[int, Evaluation] = {}
        self.left: int | None = None
        self.log_use = request.use_of(base)

    def facts(self, **more: float) -> dict[str, Any]:
        """Return how the load and the log are used, and how near today's simulation is to the log."""
        return {
            "load": self.request.load, "by": self.request.by, **more, **self.log_use,
            **reality_of(self.base, self.workers),
        }  # fmt: skip

    def smallest(self, condition: Callable[[Evaluation], bool], low: int, high: int, **more: Any) -> Search:
        """Search for the smallest value whose evaluation meets a condition, as `threshold.smallest`.

        Its neighbourhood is tried as far as the request says, or as the noise requires.
        """

        def expect(left: int | None) -> None:
            self.left = left

        scan = Scan.of(self.request.checks, lambda value: self.rule.clear(self.evaluate(value)))
        given = {"scan": scan, "expect": expect, **more}
        return smallest(lambda value: condition(self.evaluate(value)), low, high, **given)

    def evaluate(self, value: int) -> Evaluation:
        """Return the evaluation of a value; it is made at the first call.

        Raises
        ------
        SimschedError
            for an error of a run: an edit that is not possible, an option that does not exist …
        """
        if value not in self.trials:
            self.trials[value] = replace(self._tried(value), left=self.left)
            if self.request.progress:
                self.request.progress(self.trials[value])
        return self.trials[value]

    def _tried(self, value: int) -> Evaluation:
        steps, changes = self.vary(value)
        tasks = [
            seeded(self.base, seed, self.seeds.step, *steps).changed(**changes)
            for seed in range(self.seeds.count)
        ]
        # Jobs that can never run are found without a simulation, so look for them first.
        count, example, offered = feasibility_of(tasks[0])
        if count and not self.request.allow_infeasible:
            return Evaluation(value, {}, (), count, example, refused=True, offered=offered)
        done = finished_runs(tasks, self.workers, self.request.runs)
        unfit = next((task for task in tasks[1:] if done[task.key].row.counts["infeasible"]), None)
        if unfit is not None and not self.request.allow_infeasible:  # each draw of a model has other jobs
            count, example, offered = feasibility_of(unfit)
            return Evaluation(value, {}, (), count, example, refused=True, offered=offered)
        metrics = [done[task.key].row.metrics for task in tasks]
        figures = {
            target: tuple(_value(target, of_run) for of_run in metrics) for target in self.rule.targets
        }
        fails = tuple(target for target, values in figures.items() if not self.rule.met(target, values))
        seconds = sum(run.seconds for run in done.values())
        keys = tuple(task.key for task in tasks)
        return Evaluation(value, figures, fails, count, example, offered=offered, keys=keys, seconds=seconds)


def _value(target: SizingTarget, metrics: Mapping[str, float]) -> float:
    """Return the figure of a target; if no job matches its query, the infinity that meets any bound."""
    value = metrics[str(target.figure)]
    if target.figure.query and math.isnan(value) and not metrics[str(count_of(target))]:
        return -math.inf if target.relation[0] == "<" else math.inf
    return value


def count_of(target: SizingTarget) -> Figure:
    """Return the figure that counts the jobs that match a target's query."""
    return Figure("jobs", "jobs", target.figure.query)


def wanted(targets: tuple[SizingTarget, ...]) -> tuple[str, ...]:
    """Return the names of the figures that a run has to measure for these targets."""
    found = [str(target.figure) for target in targets]
    found += [str(count_of(target)) for target in targets if target.figure.query]
    return tuple(dict.fromkeys(found))


def feasibility_of(task: RunTask) -> tuple[int, str, float]:
    """Return the number of jobs that can never run, one of them with the reason, and the offered load.

    The offered load is the processor-seconds of the jobs that can run over those of the machine
    while jobs are submitted; NaN if all jobs are submitted at once.

    Raises
    ------
    SimschedError
        for inputs that cannot be simulated.
    """
    from simsched.simulation.options.run_config import make_config
    from simsched.simulation.record.recorder import INFEASIBLE
    from simsched.simulation.simulate import engine_of, totals_of
    from simsched.workload.transforms.transforms import offered_work

    config = make_config(**single_run.options_of(task))
    with INPUTS.lock:
        cluster, workload = INPUTS.cluster(task.cluster, task.edits), INPUTS.workload(task)
        if not len(workload):
            raise ConfigError(
                "the workload has no jobs", where=task.workload.name, expected="at least one job"
            )
        _, prepared, workload = engine_of(cluster, workload, config, allocations=False)
    found = {job: why for job, (result, why) in prepared.rejected.items() if result == INFEASIBLE}
    totals = totals_of(cluster)
    room = (totals.get("core") or totals["node"]) * (workload.span[1] - workload.span[0])
    work = offered_work(job for number, job in enumerate(workload.jobs) if number not in found)
    offered = work / room if room else math.nan
    if not found:
        return 0, "", offered
    first = min(found)
    return len(found), f"job {workload.jobs[first].id}: {found[first]}", offered
