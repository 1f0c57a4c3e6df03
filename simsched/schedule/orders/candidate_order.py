"""The order of backfill candidates, apart from the order of the queue.

The order of the queue decides which job is first and gets the reservation. Another order may decide which of
the jobs behind it is tried first: shortest first is EASY-SJBF (Tsafrir, Etsion & Feitelson 2007).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.schedule.orders.order import ORDERS, job_order
from simsched.schedule.orders.present_order import ranked
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.schedule.orders.ranking import Order

if TYPE_CHECKING:
    from simsched.schedule.job_table import JobTable


def candidate_order(given: str | None) -> Order | None:
    """Return the order of backfill candidates of this name; None: the order of the queue.

    Raises
    ------
    ConfigError
        If no order has this name, or if the order has more than a key: only that of the queue has the factors
        of the run, and learns of the ends of jobs.

    >>> candidate_order("sjf").name
    'sjf'
    """
    if given is None:
        return None
    order = job_order(given)
    if not isinstance(order, Order) or given == MULTIFACTOR:
        text = f"backfill-order is {given!r}, which only the queue can have"
        raise ConfigError(text, expected=f"an order by a key, such as {', '.join(ORDERS)}")
    return order


def in_order(order: Order | None, table: JobTable, jobs: list[int], now: float) -> list[int]:
    """Return some jobs in the order of candidates; in the given order without one."""
    if order is None or len(jobs) < 2:
        return jobs
    found: list[int] = ranked(order, table, np.array(jobs, dtype=np.int64), now).tolist()
    return found
