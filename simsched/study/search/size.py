"""`size`: the smallest machine that meets the targets; `headroom`: how much more load a machine takes."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simsched.arguments import check, check_whole, options_of
from simsched.errors import ConfigError
from simsched.simulation.options.run_config import RunConfig
from simsched.simulation.options.run_rules import PolicyRules
from simsched.study.reality import reality_of
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.sweep_plan import is_random_run, warn_of_rules
from simsched.study.search.answer import HEADROOM, SIZE, Answer
from simsched.study.search.evaluation import Evaluator, wanted
from simsched.study.search.search_answer import about_of
from simsched.study.search.search_request import TARGETS, SizingRequest, opened
from simsched.study.search.seeds import Seeds, seeded
from simsched.study.search.size_axis import NODES, LoadAxis, size_axis_of
from simsched.study.search.threshold import Scan
from simsched.study.spec.run_task import MODEL, Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.graph.cluster import ClusterLike
    from simsched.study.search.evaluation import Vary
    from simsched.study.search.threshold import Search
    from simsched.study.spec.target import SizingTarget
    from simsched.workload.load import WorkloadLike

#: multiple of today's size up to which a search goes by default
REACH = 16
MAX_SIZE = 1_000_000
STEP = 0.01
LEAST_LOAD, MOST_LOAD = 0.1, 10.0
#: the first stride of the search, as a multiple of the load
STRIDE = 0.08


@options_of(SizingRequest, PolicyRules, declared=RunConfig)
def size(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    *,
    grow: str = NODES,
    least: int | None = None,
    most: int | None = None,
    **options: Any,
) -> Answer:
    """Search for the smallest machine that meets the targets.

    Parameters
    ----------
    cluster, workload : as for `simulate`; a site brings its queues and rules.
    targets : one or several, such as ``p95_wait<=1h`` (see `simsched.study.spec.target`).
    grow : the number that is varied: ``nodes``, a group of nodes, ``gpus`` … (see `size_axis_of`).
    least, most : the range; by default 1, and 16 times today's number.
    options : the fields of `SizingRequest`, and the rules of the runs, as for `simulate`.

    Returns
    -------
    Answer
        true if there is such a machine; ``.value`` is its size, ``.sentence`` states it in words.

    Raises
    ------
    SimschedError
        for a target, an option or an input that is not valid.
    """
    request = SizingRequest.of(cluster, workload, options, targets=TARGETS.read(targets, ""))
    steps = load_steps(request.by, request.load)

    def vary(value: int) -> tuple[tuple[str, ...], dict[str, Any]]:
        return steps, {"edits": axis.edits(value), "settings": {axis.noun: value}}

    with open_search(request, vary) as (evaluator, facts):
        axis = size_axis_of(grow, evaluator.base.cluster)
        low, high = _range(least, most, axis.current)
        search = evaluator.smallest(lambda trial: trial.eased, low, high, start=axis.current)
        value, limit = _smallest_and_largest(evaluator, search)
        facts.update(reality_of(evaluator.base, evaluator.workers))
    below = None if value is None or value == low else value - 1
    grown = {"what": axis.text, "today": axis.current}
    about = about_of(evaluator.base, growth=grown, **facts)
    return Answer(SIZE, axis, evaluator.rule, evaluator.seeds, value, below, limit, search, evaluator.trials,
                  axis.current, about)  # fmt: skip


def _range(least: int | None, most: int | None, today: int) -> tuple[int, int]:
    for name, given in (("least", least), ("most", most)):
        check_whole(name, today if given is None else given)
    low = 1 if least is None else least
    high = max(REACH * today, low, 1) if most is None else most
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


@options_of(SizingRequest, PolicyRules, declared=RunConfig)
def headroom(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    *,
    step: float = STEP,
    least: float = LEAST_LOAD,
    most: float = MOST_LOAD,
    **options: Any,
) -> Answer:
    """Search for the highest load under which a machine still meets the targets.

    Parameters
    ----------
    cluster, workload, targets : as for `size`.
    step : precision of the load, as a multiple of today's: 0.01 is one per cent.
    least, most : the range, as multiples of the workload's load.
    options : as for `size`; `load` is today's load.

    Returns
    -------
    Answer
        true if today's load meets the targets; ``.number`` is the highest load that does.

    Raises
    ------
    SimschedError
        for a target, an option or an input that is not valid.
    """
    request = SizingRequest.of(cluster, workload, options, targets=TARGETS.read(targets, ""))
    load_steps(request.by, request.load)
    axis, low, high = _load_axis(request.load, step, least, most)

    def vary(value: int) -> tuple[tuple[str, ...], dict[str, Any]]:
        load = axis.number(value)
        return load_steps(request.by, load), {"settings": {"load": load}}

    with open_search(request, vary, step=step) as (evaluator, facts):
        # It looks for the least load that breaks a target; the answer is one step below it.
        search = evaluator.smallest(
            lambda trial: not trial.eased,
            low,
            high,
            start=0,
            step=max(1, round(STRIDE / step)),
            floor=1 if evaluator.evaluate(0).eased else low,
        )
        value = _highest(evaluator, search)
        facts.update(reality_of(evaluator.base, evaluator.workers))
    beyond = None if value is None or value >= high else value + 1
    about = about_of(evaluator.base, **facts)
    return Answer(HEADROOM, axis, evaluator.rule, evaluator.seeds, value, beyond, None, search,
                  evaluator.trials, 0, about)  # fmt: skip


def _load_axis(today: float, step: float, least: float, most: float) -> tuple[LoadAxis, int, int]:
    for name, given in (("step", step), ("least", least), ("most", most)):
        check(name, given, float | int, "a number")
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


def _highest(evaluator: Evaluator, search: Search) -> int | None:
    """Return the highest load tried that meets all targets, below the least one that breaks some."""
    found = search.high if search.answer is None else search.answer - 1
    met = [value for value, trial in evaluator.trials.items() if trial.met and value <= found]
    return _last_met(evaluator, max(met), found) if met else None


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
def open_search(
    request: SizingRequest, vary: Vary, **facts: Any
) -> Iterator[tuple[Evaluator, dict[str, Any]]]:
    """Check a request, open the workers, and yield the evaluator of its values and facts for the answer."""
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
        if request.log_use is not None and not model:  # a model is not a log
            sentence = request.log_use(INPUTS.workload(base.changed(transforms=())))
            facts |= {"log_use": sentence} if sentence else {}
        yield (
            Evaluator(request, base, seeds, workers, vary),
            {"load": request.load, "by": request.by, **facts},
        )
