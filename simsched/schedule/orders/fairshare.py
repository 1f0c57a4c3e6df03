"""Fair share: jobs of the banks and users with the least recent usage go first.

When a job ends, its size × seconds are charged to its user and to its bank, and a charge decays with a
half-life. The key of a waiting job is the share of its bank in all usage plus the share of its user; the
smallest goes first. All charges decay by the same factor and only ratios matter. So the old
charges stay as they are, and a new charge is multiplied by the inverse of that factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.schedule.orders.ranking import Order

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.schedule.job_table import JobTable

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

WEEK = 7 * 86400.0
MOST = 500.0
"""After this many halvings the magnified sums are scaled down again, well before they overflow."""


class FairShare:
    """The job order ``fairshare``; it remembers usage, so every queue has an order of its own."""

    name = "fairshare"
    static = False

    def __init__(self, half_life: float = WEEK) -> None:
        if not half_life > 0:
            text = f"a half-life of {half_life} s"
            raise ConfigError(text, where="order fairshare", expected="a positive number of seconds")
        self.half_life = half_life
        self._origin = 0.0
        self._users = np.zeros(0)
        self._banks = np.zeros(0)
        self._order = Order(self.name, self.keys, static=False)

    def ranked(self, table: JobTable, jobs: Integers, now: float) -> Integers:
        """Return the jobs by (share used, priority, submit time, workload order)."""
        return self._order.ranked(table, jobs, now)

    def charge(self, table: JobTable, job: int, seconds: float, now: float) -> None:
        """Charge a job that ended at `now` after a run of `seconds`."""
        self._grow(table)
        halvings = (now - self._origin) / self.half_life
        if halvings > MOST:
            self._users *= 0.5**halvings
            self._banks *= 0.5**halvings
            self._origin, halvings = now, 0.0
        amount = float(table.sizes[job]) * seconds * 2.0**halvings
        self._users[table.users[job]] += amount
        self._banks[table.banks[job]] += amount

    def keys(self, table: JobTable, jobs: Integers, now: float) -> Floats:  # noqa: ARG002
        """Return the share of each job's bank plus that of its user."""
        self._grow(table)
        keys: Floats = _shares(self._banks)[table.banks[jobs]] + _shares(self._users)[table.users[jobs]]
        return keys

    def _grow(self, table: JobTable) -> None:
        """Make an account for every user and bank of the table, the first time."""
        if not len(self._users) and len(table):
            self._users = np.zeros(int(table.users.max()) + 1)
            self._banks = np.zeros(int(table.banks.max()) + 1)

    def enlarge(self, table: JobTable) -> None:
        """Make accounts for the users and banks that a growing table got since."""
        if len(self._users):
            self._users = _longer(self._users, int(table.users.max()) + 1)
            self._banks = _longer(self._banks, int(table.banks.max()) + 1)


def _longer(used: Floats, length: int) -> Floats:
    return np.concatenate([used, np.zeros(max(0, length - len(used)))])


def _shares(used: Floats) -> Floats:
    total = used.sum()
    shares: Floats = used / total if total else used
    return shares
