"""`size`: the smallest machine that meets the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.study.sizing.answer import SIZE, Answer
from simsched.study.sizing.ask import about_of, check_number, load_steps, open_bench, scan_of, wish_of
from simsched.study.sizing.evaluation import Bench, seeded
from simsched.study.sizing.growth import NODES, growth_of
from simsched.study.sizing.search import Scan, Search, smallest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simsched.graph.cluster import ClusterLike
    from simsched.study.sizing.target import Target
    from simsched.workload.job import Workload

#: how many times today's size a search goes to, unless told
REACH = 16
MAX_SIZE = 1_000_000


def size(
    cluster: ClusterLike,
    workload: Workload | str | Path,
    targets: str | Target | Iterable[str | Target],
    *,
    grow: str = NODES,
    least: int | None = None,
    most: int | None = None,
    **ask: Any,
) -> Answer:
    """Search for the smallest machine that meets the targets.

    Parameters
    ----------
    cluster, workload : values, files or bundled names.
    targets : such as ``p95_wait<=1h``; one or several (see `target`).
    grow : what is varied: ``nodes``, a group of nodes, ``gpus`` … (see `growth.growth_of`).
    least, most : the range; by default 1, and 16 times today's number.
    ask : `load` (times today's), `by` (``arrival``, ``runtime``, ``users``, ``jobs``), `seeds`, `seed`,
        `block` (of resampled traces, ``7d``), `shake` (``1m``: seeds are the trace with submissions
        moved by up to that, in place of resamples), `meet` (``every`` seed, the ``mean``,
        ``confident``), `confidence`,
        `checks` (numbers tried on each side of the answer; by default as many as noise needs),
        `warm_up` and `drain` (s), `allow_infeasible`, `transforms` (steps), `reading`
        (keywords of `load_workload`), `options` (keys of a configuration file; ``queue_policy`` and the
        like may also be said on their own), `workers`, `scheduler`, `hpc`, `executor` (see
        `open_executor`), `runs` (keeps the run directories) and `progress`.

    Returns
    -------
    Answer
        true if there is such a machine; ``.value`` is its size, ``.sentence`` says it in words.

    Raises
    ------
    SimschedError
        for a target, an option or an input that is none.
    """
    wish = wish_of(cluster, workload, targets, ask)
    with open_bench(wish) as (base, bench, seeds):
        growth = growth_of(grow, base.cluster)
        low, high = _range(least, most, growth.current)
        steps = load_steps(wish.by, wish.load)
        bench.make = lambda value, number: seeded(base, number, wish.block, steps, shake=wish.shake).changed(
            edits=growth.edits(value), settings={growth.noun: value}
        )
        search = smallest(
            lambda n: bench.trial(n).eased,
            low,
            high,
            start=growth.current,
            scan=scan_of(wish, bench),
            expect=bench.expect,
        )
        value, limit = _within(bench, search)
    below = None if value is None or value == low else value - 1
    about = about_of(base, growth={"what": growth.text, "today": growth.current}, load=wish.load, by=wish.by)
    return Answer(SIZE, growth, bench.rule, seeds, value, below, limit, search, bench.trials,
                  growth.current, about)  # fmt: skip


def _range(least: int | None, most: int | None, today: int) -> tuple[int, int]:
    for name, given in (("least", least), ("most", most)):
        check_number(name, today if given is None else given, whole=True)
    low = 1 if least is None else least
    high = max(REACH * today, low, 1) if most is None else most
    for name, value in (("--min", low), ("--max", high)):
        if not 0 <= value <= MAX_SIZE:
            raise ConfigError(f"a size of {value:,}", where=name, expected=f"0 to {MAX_SIZE:,}")
    return low, high


def _within(bench: Bench, search: Search) -> tuple[int | None, int | None]:
    """Return the smallest size tried that meets all targets, and where some target sets a largest one, that.

    Every size tried from the one to the other meets.
    """
    found = search.answer
    if found is None or all(target.eases for target in bench.rule.targets):
        return found, None
    bench.expect(None)
    if bench.trial(found).met:
        smallest(lambda n: not bench.trial(n).met, found, search.high, start=found, scan=Scan(0, 0))
    if not any(trial.met for trial in bench.trials.values()):
        return None, None
    value = min(value for value, trial in bench.trials.items() if trial.met)
    while value > search.low and bench.trial(value - 1).met:
        value -= 1
    failing = [size for size, trial in bench.trials.items() if size > value and not trial.met]
    limit = max(size for size in bench.trials if size < min(failing, default=search.high + 1))
    while limit < search.high and bench.trial(limit + 1).met:
        limit += 1
    return value, limit
