"""`size`: the smallest machine that meets the targets; `headroom`: how much more load a machine takes."""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from simsched.arguments import options_of
from simsched.errors import ConfigError
from simsched.simulation.options.run_config import RunConfig
from simsched.simulation.options.run_rules import PolicyRules
from simsched.site.log_use import use_sentence
from simsched.site.site_folder import site_given
from simsched.study.reality import reality_of
from simsched.study.runs.input_cache import INPUTS
from simsched.study.runs.sweep_plan import is_random_run, warn_of_rules
from simsched.study.runs.worker_pools import open_workers
from simsched.study.search_values import TARGETS, SizingRequest, check_number, fields_given
from simsched.study.sizing.answer import HEADROOM, SIZE, Answer
from simsched.study.sizing.evaluation import (
    Evaluator,
    SearchSeeds,
    refuse_unshakable,
    seeded,
    wanted,
)
from simsched.study.sizing.inputs import UNITS, about_of, cluster_input, workload_input
from simsched.study.sizing.search import Scan, Search, smallest
from simsched.study.sizing.size_axis import NODES, LoadAxis, size_axis_of
from simsched.study.spec.run_task import MODEL, Measure, RunTask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.graph.cluster import ClusterLike
    from simsched.study.spec.target import SizingTarget
    from simsched.workload.job import Workload
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
    request = read_request(cluster, workload, targets, options)
    steps = load_steps(request.by, request.load)
    with open_search(request) as evaluator:
        base, use = evaluator.base, log_use_of(request, evaluator.base)
        axis = size_axis_of(grow, base.cluster)
        low, high = _range(least, most, axis.current)
        evaluator.vary = lambda value: (steps, {"edits": axis.edits(value), "settings": {axis.noun: value}})
        search = smallest(
            lambda value: evaluator.evaluate(value).eased,
            low,
            high,
            start=axis.current,
            scan=evaluator.scan,
            expect=evaluator.expect,
        )
        value, limit = _smallest_and_largest(evaluator, search)
        reality = reality_of(base, evaluator.workers)
    below = None if value is None or value == low else value - 1
    grown = {"what": axis.text, "today": axis.current}
    about = about_of(base, growth=grown, load=request.load, by=request.by, **use, **reality)
    return Answer(SIZE, axis, evaluator.rule, evaluator.seeds, value, below, limit, search, evaluator.trials,
                  axis.current, about)  # fmt: skip


def _range(least: int | None, most: int | None, today: int) -> tuple[int, int]:
    for name, given in (("least", least), ("most", most)):
        check_number(name, today if given is None else given, whole=True)
    low = 1 if least is None else least
    high = max(REACH * today, low, 1) if most is None else most
    for name, value in (("--min", low), ("--max", high)):
        if not 0 <= value <= MAX_SIZE:
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
    evaluator.expect(None)
    if evaluator.evaluate(found).met:
        smallest(
            lambda value: not evaluator.evaluate(value).met, found, search.high, start=found, scan=Scan(0, 0)
        )
    if not any(trial.met for trial in evaluator.trials.values()):
        return None, None
    value = min(value for value, trial in evaluator.trials.items() if trial.met)
    while value > search.low and evaluator.evaluate(value - 1).met:
        value -= 1
    failing = [size for size, trial in evaluator.trials.items() if size > value and not trial.met]
    limit = max(size for size in evaluator.trials if size < min(failing, default=search.high + 1))
    while limit < search.high and evaluator.evaluate(limit + 1).met:
        limit += 1
    return value, limit


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
    request = read_request(cluster, workload, targets, options)
    load_steps(request.by, request.load)
    axis, low, high = _load_axis(request.load, step, least, most)
    with open_search(request) as evaluator:
        base, use = evaluator.base, log_use_of(request, evaluator.base)

        def vary(value: int) -> tuple[tuple[str, ...], dict[str, Any]]:
            load = axis.number(value)
            return load_steps(request.by, load), {"settings": {"load": load}}

        evaluator.vary = vary
        # `smallest` looks for the least load that breaks a target; the answer is one step below it
        search = smallest(
            lambda value: not evaluator.evaluate(value).eased,
            low,
            high,
            start=0,
            step=max(1, round(STRIDE / step)),
            scan=evaluator.scan,
            floor=1 if evaluator.evaluate(0).eased else low,
            expect=evaluator.expect,
        )
        value = _highest(evaluator, search)
        reality = reality_of(base, evaluator.workers)
    beyond = None if value is None or value >= high else value + 1
    about = about_of(base, load=request.load, by=request.by, step=step, **use, **reality)
    return Answer(HEADROOM, axis, evaluator.rule, evaluator.seeds, value, beyond, None, search,
                  evaluator.trials, 0, about)  # fmt: skip


def _load_axis(today: float, step: float, least: float, most: float) -> tuple[LoadAxis, int, int]:
    for name, given in (("step", step), ("least", least), ("most", most)):
        check_number(name, given)
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
    if not met:
        return None
    highest = max(met)
    while highest < found and evaluator.evaluate(highest + 1).met:
        highest += 1
    return highest


# --- the request of `size` and `headroom`: its fields, their checks, and the evaluator that it leads to


#: way to scale load → the step of a workload
BY = {"arrival": "load", "runtime": "runtime", "users": "users", "jobs": "copies"}
#: ways to scale load that are random
DRAWN = ("users", "jobs")


def read_request(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    keywords: Mapping[str, Any],
) -> SizingRequest:
    """Return the request of a call with these keywords.

    Raises
    ------
    ConfigError
        for a keyword that does not exist, or a value of the wrong type.
    """
    site = site_given(cluster)
    given = fields_given(SizingRequest, keywords, site)
    if site is not None:
        cluster = site.cluster_file or site.cluster
        given.setdefault("log_use", partial(use_sentence, site))
    return SizingRequest(cluster=cluster, workload=workload, targets=TARGETS.read(targets, ""), **given)


@contextmanager
def open_search(request: SizingRequest) -> Iterator[Evaluator]:
    """Check a request, open the workers, and yield the evaluator of its values."""
    base = RunTask(
        cluster_input(request.cluster),
        workload_input(request.workload, request.reading),
        transforms=tuple(request.transforms),
        options=dict(request.options),
        seed=request.seed,
        measure=Measure(request.warm_up, request.drain, figures=wanted(request.targets)),
    )
    seeds = _seeds(request, base)
    warn_of_rules([base])
    with open_workers(**request.places) as workers:
        workers.send([base.cluster, base.workload])
        yield Evaluator(request, base, seeds, workers)


def _seeds(request: SizingRequest, base: RunTask) -> SearchSeeds:
    """Return the seeds: one if nothing is random; ConfigError if blocks do not fit the workload."""
    from simsched.formats.rfc.duration import parse_duration
    from simsched.workload.transforms.resample import block_of

    model = base.workload.kind == MODEL
    workload = INPUTS.workload(base)
    if not len(workload):
        raise ConfigError("the workload has no jobs", where=base.workload.name, expected="at least one job")
    if not model and "queues" not in base.options:
        _check_queries(request, workload)
    if request.by in DRAWN:  # jobs without users are refused before the first run
        INPUTS.workload(seeded(base, 0, None, load_steps(request.by, 1.5)))
    if request.shake is not None:
        return _shaken(request, base)
    if request.seeds == 1 or model:
        return SearchSeeds(request.seeds, request.seed)
    if request.block in UNITS:
        INPUTS.workload(seeded(base, 1, request.block))  # refuses jobs without users before the first run
        return SearchSeeds(request.seeds, request.seed, unit=request.block)
    block = block_of(workload) if request.block is None else parse_duration(request.block, where="--block")
    if block is None:
        some = is_random_run(base.options) or request.by in DRAWN
        return SearchSeeds(request.seeds if some else 1, request.seed, burst=True)
    INPUTS.workload(seeded(base, 1, request.block))  # as is a block that does not fit
    return SearchSeeds(request.seeds, request.seed, block)


def _shaken(request: SizingRequest, base: RunTask) -> SearchSeeds:
    """Return the seeds of shaken copies of a trace; ConfigError where copies cannot be shaken."""
    from simsched.formats.rfc.duration import parse_duration

    refuse_unshakable(base, request.block)
    if request.seeds == 1:
        raise ConfigError(
            "with one seed only the workload as it is would run",
            where="--shake",
            expected="--seeds of 2 or more",
        )
    by = parse_duration(request.shake, where="--shake")
    INPUTS.workload(seeded(base, 1, None, shake=request.shake))  # as is a time that is not valid
    return SearchSeeds(request.seeds, request.seed, shake=by)


def _check_queries(request: SizingRequest, workload: Workload) -> None:
    """Raise ConfigError for a target whose query no job of the workload matches."""
    from simsched.workload.transforms.query import parse_query

    for target in request.targets:
        if target.figure.query and not any(map(parse_query(target.figure.query), workload.jobs)):
            raise ConfigError(
                "no job of the workload matches the query",
                where=str(target),
                expected="a query that some jobs match",
            )


def load_steps(by: str, load: float) -> tuple[str, ...]:
    """Return the steps that multiply the load of a workload; ConfigError for a load that is not valid."""
    if not 0 < load < 1e6:
        raise ConfigError(f"a load of {load:g} is not valid", where="--load", expected="a number above 0")
    return () if load == 1 else (f"{BY[by]}({load:.12g})",)


def log_use_of(request: SizingRequest, base: RunTask) -> dict[str, str]:
    """Return ``{"log_use": sentence}``; {} where nothing asks for it, and for a model, which is not a log."""
    if request.log_use is None or base.workload.kind == MODEL:
        return {}
    sentence = request.log_use(INPUTS.workload(base.changed(transforms=())))
    return {"log_use": sentence} if sentence else {}
