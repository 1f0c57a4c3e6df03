"""Orders in which jobs that have waited too long come first: ``starving(ORDER, T)``.

Such a job is first in the queue, so that a policy with backfilling reserves for it. Sites do so to keep large
jobs from starving under an order that prefers small ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.formats.rfc.calls import parse_call
from simsched.formats.rfc.duration import parse_time
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.schedule.orders.ranking import Order

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable
    from simsched.schedule.orders.ranking import JobOrder

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

NAME = "starving"
SAYS = (
    "jobs that have waited for longer than T first, by urgency and submission; then the others in ORDER"
    " (Lelong et al. 2017)"
)


def starving_order(text: str, find: Callable[[str], JobOrder]) -> Order | None:
    """Return the order of a text ``starving(ORDER, T)``; None for any other text.

    `find` returns the order of a name. Jobs that have waited for more than the time T come first, by priority
    and submission, and the others follow in ORDER.

    Raises
    ------
    ConfigError, FormatError
        If ORDER is not an order by a key, or T is not a duration.
    """
    call = parse_call(text)
    if call is None or call.name != NAME:
        return None
    name, time = call.arguments(2)
    inner, most = find(name), parse_time(time, where=text)
    if not isinstance(inner, Order) or name == MULTIFACTOR:  # its keys are those of a run
        raise ConfigError(f"{name} is not an order by a key", where=text, expected="an order such as sjf")

    def keys(table: JobTable, jobs: Integers, now: float) -> Floats:
        found = np.asarray(inner.keys(table, jobs, now), dtype=np.float64)
        return np.where(now - table.submits[jobs] > most, -np.inf, found)

    return Order(text, keys, static=False)
