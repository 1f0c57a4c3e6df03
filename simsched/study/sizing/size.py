"""`size`: the smallest machine that meets the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.arguments import options_of
from simsched.errors import ConfigError
from simsched.simulation.options.run_rules import PolicyRules, RunRules
from simsched.study.reality import reality_of
from simsched.study.search_request import SearchOptions, check_number
from simsched.study.sizing.answer import SIZE, Answer
from simsched.study.sizing.evaluation import Evaluator, seeded
from simsched.study.sizing.search import Scan, Search, smallest
from simsched.study.sizing.size_axis import NODES, size_axis_of
from simsched.study.sizing.sizing_request import (
    SizingOptions,
    about_of,
    load_steps,
    log_use_of,
    open_search,
    read_request,
    scan_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from simsched.graph.cluster import ClusterLike
    from simsched.study.sizing.target import SizingTarget
    from simsched.study.spec.run_task import RunTask
    from simsched.workload.load import WorkloadLike

#: multiple of today's size up to which a search goes by default
REACH = 16
MAX_SIZE = 1_000_000


@options_of(SizingOptions, SearchOptions, PolicyRules, RunRules)
def size(
    cluster: ClusterLike,
    workload: WorkloadLike,
    targets: str | SizingTarget | Iterable[str | SizingTarget],
    *,
    grow: str = NODES,
    least: int | None = None,
    most: int | None = None,
    **options: Unpack[SizingOptions],
) -> Answer:
    """Search for the smallest machine that meets the targets.

    Parameters
    ----------
    cluster, workload : as for `simulate`; a site brings its queues and rules.
    targets : one or several, such as ``p95_wait<=1h`` (see `simsched.study.sizing.target`).
    grow : the number that is varied: ``nodes``, a group of nodes, ``gpus`` … (see `size_axis_of`).
    least, most : the range; by default 1, and 16 times today's number.
    options : the keywords of `SizingOptions`, and the rules of the runs, as for `simulate`.

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
    with open_search(request) as (base, seeds, evaluator_of):
        use = log_use_of(request, base)
        axis = size_axis_of(grow, base.cluster)
        low, high = _range(least, most, axis.current)

        def task_of(value: int, number: int) -> RunTask:
            task = seeded(base, number, request.block, steps, shake=request.shake)
            return task.changed(edits=axis.edits(value), settings={axis.noun: value})

        evaluator = evaluator_of(task_of)
        search = smallest(
            lambda value: evaluator.evaluate(value).eased,
            low,
            high,
            start=axis.current,
            scan=scan_of(request, evaluator),
            expect=evaluator.expect,
        )
        value, limit = _smallest_and_largest(evaluator, search)
        reality = reality_of(base, evaluator.workers)
    below = None if value is None or value == low else value - 1
    grown = {"what": axis.text, "today": axis.current}
    about = about_of(base, growth=grown, load=request.load, by=request.by, **use, **reality)
    return Answer(SIZE, axis, evaluator.rule, seeds, value, below, limit, search, evaluator.trials,
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
