"""`headroom`: how much more load a machine takes before a target breaks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.study.sizing.answer import HEADROOM, Answer
from simsched.study.sizing.ask import about_of, check_number, load_steps, open_bench, scan_of, wish_of
from simsched.study.sizing.evaluation import seeded
from simsched.study.sizing.search import smallest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simsched.graph.cluster import ClusterLike
    from simsched.study.sizing.evaluation import Bench
    from simsched.study.sizing.search import Search
    from simsched.study.sizing.target import Target
    from simsched.workload.job import Workload

STEP = 0.01
LEAST, MOST = 0.1, 10.0
#: the first stride of the search, in times the load
STRIDE = 0.08


@dataclass(frozen=True, slots=True)
class Loads:
    """Loads in steps from today's: 0 stands for today's load, 1 for a step more, -1 for one less."""

    today: float
    step: float

    @property
    def noun(self) -> str:
        """What is counted."""
        return "times the load"

    def number(self, value: int) -> float:
        """Return the load, as times what the workload has.

        >>> Loads(1.0, 0.01).number(25)
        1.25
        """
        return float(f"{self.today + value * self.step:.9g}")

    def phrase(self, value: int) -> str:
        """Return the load in words.

        >>> Loads(1.0, 0.05).phrase(-2)
        '0.9 times the load'
        """
        return f"{self.number(value):g} times the load"


def headroom(
    cluster: ClusterLike,
    workload: Workload | str | Path,
    targets: str | Target | Iterable[str | Target],
    *,
    step: float = STEP,
    least: float = LEAST,
    most: float = MOST,
    **ask: Any,
) -> Answer:
    """Search for the most load under which a machine still meets the targets.

    Parameters
    ----------
    cluster, workload, targets : as for `size`.
    step : the load is found to this precision, in times today's: 0.01 is one per cent.
    least, most : the range, in times the workload's load.
    ask : as for `size`; `load` is what counts as today's, `by` says how it is scaled: by denser
        ``arrival``, longer ``runtime``, more ``users`` or more ``jobs``.

    Returns
    -------
    Answer
        true if today's load meets the targets; ``.number`` is the most load that does.

    Raises
    ------
    SimschedError
        for a target, an option or an input that is none.
    """
    wish = wish_of(cluster, workload, targets, ask)
    for name, given in (("step", step), ("least", least), ("most", most)):
        check_number(name, given)
    load_steps(wish.by, wish.load)
    axis, low, high = _axis(wish.load, step, least, most)
    with open_bench(wish) as (base, bench, seeds):
        bench.make = lambda value, number: seeded(
            base, number, wish.block, load_steps(wish.by, axis.number(value)), shake=wish.shake
        ).changed(settings={"load": axis.number(value)})
        stride = max(1, round(STRIDE / step))
        search = smallest(
            lambda n: not bench.trial(n).eased,
            low,
            high,
            start=0,
            step=stride,
            scan=scan_of(wish, bench),
            floor=1 if bench.trial(0).eased else low,
            expect=bench.expect,
        )
        value = _most(bench, search)
    beyond = None if value is None or value >= high else value + 1
    about = about_of(base, load=wish.load, by=wish.by, step=step)
    return Answer(HEADROOM, axis, bench.rule, seeds, value, beyond, None, search, bench.trials, 0, about)


def _axis(today: float, step: float, least: float, most: float) -> tuple[Loads, int, int]:
    if not 1e-4 <= step <= 1:
        raise ConfigError(f"steps of {step:g}", where="--step", expected="0.0001 to 1 times the load")
    if not 0 < least <= today <= most < 1e6:
        raise ConfigError(f"loads from {least:g} to {most:g}", where="--min --max",
                          expected=f"a range above 0 that holds today's load, {today:g}")  # fmt: skip
    room = 1e-9
    return (
        Loads(today, step),
        math.ceil((least - today) / step - room),
        math.floor((most - today) / step + room),
    )


def _most(bench: Bench, search: Search) -> int | None:
    """Return the largest load tried that meets all targets below the least one that breaks some."""
    found = search.high if search.answer is None else search.answer - 1
    met = [value for value, trial in bench.trials.items() if trial.met and value <= found]
    if not met:
        return None
    most = max(met)
    while most < found and bench.trial(most + 1).met:
        most += 1
    return most
