"""The job orders by name: a function for each, which gives every job a key."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.arguments import wrong
from simsched.errors import ConfigError
from simsched.formats.rfc.calls import parse_call
from simsched.formats.rfc.duration import parse_time
from simsched.plugins.plugin_kind import PluginKind
from simsched.schedule.orders.fair_share import FairShare
from simsched.schedule.orders.multifactor import Multifactor
from simsched.schedule.orders.ranking import JobOrder, Order, ranked

if TYPE_CHECKING:
    from simsched.arrays import Floats, Integers
    from simsched.schedule.job_table import JobTable


KIND = PluginKind("job order", "simsched.job_orders", JobOrder)


def job_order(given: str | JobOrder) -> JobOrder:
    """Return the job order of this name, or a copy of the given one; an order that remembers starts empty.

    ``fairshare:3d`` is ``fairshare`` with a half-life of three days instead of a week. With
    ``starving(sjf, 24h)`` jobs that have waited for more than a day come first.

    Raises
    ------
    ConfigError, FormatError
        If neither simsched nor an installed package (``simsched.job_orders``) has an order of this name,
        or if the half-life is not a duration.

    >>> job_order("sjf").static
    True
    """
    if not isinstance(given, str):
        return _own(given)
    name = given
    if name in ORDERS:
        return ORDERS[name]
    if name == Multifactor.name:
        return ORDERS["fifo"]  # the order of no factors; a run makes its own of its configuration
    kind, colon, half_life = name.partition(":")
    if kind == FairShare.name:
        return FairShare(parse_time(half_life, where=f"order {name}")) if colon else FairShare()
    call = parse_call(name)
    if call is not None and call.name == "starving":
        return _starving(name, *call.arguments(2))
    found = KIND.installed(name)
    if found is not None:
        return _own(found)
    raise KIND.unknown(name, [*ORDERS, "fairshare[:HALF-LIFE]", Multifactor.name, "starving(ORDER, T)"])


def _own(value: Any) -> JobOrder:
    """Return an order for one queue, a copy if it may remember; ConfigError if it is not an order."""
    if not KIND.fits(value):
        raise wrong("order", value, "the name of a job order, or an object such as simsched.Order")
    KIND.checked(value)
    order: JobOrder = value if isinstance(value, Order) else deepcopy(value)
    return order


def _starving(text: str, name: str, time: str) -> Order:
    """Return the order in which jobs that have waited for longer than a time come first.

    They go by priority and submission, and the others follow in the order of this name. Such a job is first
    in the queue, so that a policy with backfilling reserves for it. Sites do so to keep large jobs from
    starving under an order that prefers small ones (Lelong et al. 2017).
    """
    inner, most = job_order(name), parse_time(time, where=text)
    if not isinstance(inner, Order) or name == Multifactor.name:  # its keys are those of a run
        raise ConfigError(f"{name} is not an order by a key", where=text, expected="an order such as sjf")

    def keys(table: JobTable, jobs: Integers, now: float) -> Floats:
        found = np.asarray(inner.keys(table, jobs, now), dtype=np.float64)
        return np.where(now - table.submits[jobs] > most, -np.inf, found)

    return Order(text, keys, static=False)


def candidate_order(given: str | Order | None) -> Order | None:
    """Return the order of backfill candidates of this name; None: the order of the queue.

    The order of the queue decides which job is first and gets the reservation. Another order may decide which
    of the jobs behind it is tried first: shortest first is EASY-SJBF (Tsafrir, Etsion & Feitelson 2007).

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
    if not isinstance(order, Order) or given == Multifactor.name:
        text = f"backfill-order is {given!r}, which only the queue can have"
        raise ConfigError(text, expected=f"an order by a key, such as {', '.join(ORDERS)}")
    return order


def in_order(order: Order | None, table: JobTable, jobs: list[int], now: float) -> list[int]:
    """Return some jobs in the order of candidates; in the given order without one."""
    if order is None or len(jobs) < 2:
        return jobs
    found: list[int] = ranked(order, table, np.array(jobs, dtype=np.int64), now).tolist()
    return found


def _durations(table: JobTable, jobs: Integers) -> Floats:
    return table.durations_array[jobs]


def _finite_durations(table: JobTable, jobs: Integers) -> Floats:
    """Requested seconds, at least one; unlimited counts as a hundred years."""
    # Twice as fast as `numpy.clip` for the few jobs of most queues.
    return np.minimum(np.maximum(_durations(table, jobs), 1.0), 3.2e9)


def _fifo(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """First come, first served: by submit time (Schwiegelshohn and Yahyapour 1998)."""
    return table.submits[jobs]


def _lifo(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Last come, first served: the latest submit time first (Lelong et al. 2017)."""
    return -table.submits[jobs]


def _priority(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Highest priority first (RFC 21: urgency 0 to 31)."""
    return -table.priorities[jobs].astype(np.float64)


def _sjf(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Shortest requested time first (Lelong et al. 2017)."""
    return _durations(table, jobs)


def _ljf(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Longest requested time first (Lelong et al. 2017)."""
    return -_durations(table, jobs)


def _smallest_size(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Smallest size first (Lelong et al. 2017)."""
    return table.sizes[jobs].astype(np.float64)


def _largest_size(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Largest size first (Lelong et al. 2017)."""
    return -table.sizes[jobs].astype(np.float64)


def _smallest_area(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Smallest requested time times size first (Lelong et al. 2017)."""
    return _durations(table, jobs) * table.sizes[jobs]


def _largest_area(table: JobTable, jobs: Integers, now: float) -> Floats:
    """Largest requested time times size first (Lelong et al. 2017)."""
    return -_smallest_area(table, jobs, now)


def _wfp3(table: JobTable, jobs: Integers, now: float) -> Floats:
    """WFP3 (Tang et al. 2009): (wait / requested time)³ times size, the greatest first."""
    waits = now - table.submits[jobs]
    return -((waits / _finite_durations(table, jobs)) ** 3) * table.sizes[jobs]


def _lxf(table: JobTable, jobs: Integers, now: float) -> Floats:
    """LXF (Chiang et al. 2002): (wait + requested time) / requested time, the largest first."""
    waits = now - table.submits[jobs]
    return -(waits / _finite_durations(table, jobs))


def _unicef(table: JobTable, jobs: Integers, now: float) -> Floats:
    """UNICEF (Tang et al. 2009): wait / (log2(size + 1) times requested time), the greatest first.

    The paper has log2(size), which is 0 for a job of one unit.
    """
    waits = now - table.submits[jobs]
    keys: Floats = -waits / (np.log2(table.sizes[jobs] + 1.0) * _finite_durations(table, jobs))
    return keys


def _edf(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """Earliest deadline first (Liu and Layland 1973); jobs without one come last."""
    return np.full_like(table.submits[jobs], np.inf) if table.deadlines is None else table.deadlines[jobs]


def _log_submits(table: JobTable, jobs: Integers) -> Floats:
    """Return log10 of the submit times.

    The submit time is that of the workload's clock, in seconds from its origin and at least 1: the orders F1
    to F4 depend on the origin.
    """
    return np.log10(np.maximum(table.submits[jobs], 1.0))


def _f1(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """F1 (Carastan-Santos & de Camargo 2017), the least first: log10(requested) size + 870 log10(submit)."""
    times = _finite_durations(table, jobs)
    return np.log10(times) * table.sizes[jobs] + 870.0 * _log_submits(table, jobs)


def _f2(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """F2 (as F1), the least first: sqrt(requested) size + 25600 log10(submit)."""
    times = _finite_durations(table, jobs)
    return np.sqrt(times) * table.sizes[jobs] + 25_600.0 * _log_submits(table, jobs)


def _f3(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """F3 (as F1), the least first: requested size + 6860000 log10(submit)."""
    times = _finite_durations(table, jobs)
    return times * table.sizes[jobs] + 6_860_000.0 * _log_submits(table, jobs)


def _f4(table: JobTable, jobs: Integers, _now: float) -> Floats:
    """F4 (as F1), the least first: requested sqrt(size) + 530000 log10(submit)."""
    times = _finite_durations(table, jobs)
    return times * np.sqrt(table.sizes[jobs]) + 530_000.0 * _log_submits(table, jobs)


#: Name → order.
ORDERS: dict[str, Order] = {
    order.name: order
    for order in (
        Order("fifo", _fifo),
        Order("lifo", _lifo),
        Order("priority", _priority),
        Order("sjf", _sjf),
        Order("ljf", _ljf),
        Order("smallest-size", _smallest_size),
        Order("largest-size", _largest_size),
        Order("smallest-area", _smallest_area),
        Order("largest-area", _largest_area),
        Order("wfp3", _wfp3, static=False),
        Order("lxf", _lxf, static=False),
        Order("unicef", _unicef, static=False),
        Order("f1", _f1),
        Order("f2", _f2),
        Order("f3", _f3),
        Order("f4", _f4),
        Order("edf", _edf),
    )
}
