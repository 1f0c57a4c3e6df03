"""`KindCounts`: whether each kind of request fits now, for all kinds at once.

For most kinds one count decides: the copies of a slot on all targets, or the targets with room for at least
one. These counts are kept in one table (`match.search.count_table`), and a claim or a release changes it on
the few targets that it touches. So a kind that does not fit is not matched again until it does, however many
jobs of it wait and however often something else is released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from simsched.match.requests.compile import compile_request
from simsched.match.search.count_table import CountTable, counted_request

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.match.search.count_table import Counted
    from simsched.match.state.availability import Availability
    from simsched.schedule.job_table import JobTable

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


class KindCounts:
    """The kinds of requests of a workload, with the count that decides whether each fits.

    Attributes
    ----------
    of : the kind of each job, as an array.
    counts : the table of counts.
    numbers : the content of each kind, as a number in the table; -1: counts do not decide.
    amounts : the copies, or targets with any, that each kind needs.
    """

    __slots__ = ("_copies", "_fitting", "_row", "_seen", "amounts", "counts", "numbers", "of")

    def __init__(self, table: JobTable, available: Availability, policy: MatchPolicy) -> None:
        decided = _decided(table, available, policy)
        if available.table is None:  # queues that share a plan share the table of its state
            wanted = [each.content for each in decided if each is not None]
            available.table = CountTable(available, wanted)
        self.counts = cast("CountTable", available.table)
        self.of: Integers = np.array(table.kinds, dtype=np.int64)
        found = [None if each is None else self.counts.number_of(each.content) for each in decided]
        self.numbers = [-1 if number is None else number for number in found]
        self.amounts = [each.amount if each is not None else 0 for each in decided]
        self._copies = [each is not None and each.copies for each in decided]
        self._row = self._rows()
        self._fitting: Bools = np.ones(len(decided), dtype=np.bool_)
        self._seen = -1

    def _rows(self) -> tuple[Integers, Integers, Integers]:
        """Return the kinds that counts decide, where each finds its count, and the count that it needs."""
        kinds = np.array([kind for kind, number in enumerate(self.numbers) if number >= 0], dtype=np.int64)
        numbers = np.array(self.numbers, dtype=np.int64)[kinds]
        copies = np.array(self._copies, dtype=np.bool_)[kinds]
        # Sums of copies come first in the joined counts, and numbers of targets behind them.
        places = np.where(copies, numbers, numbers + len(self.counts.totals))
        return kinds, places, np.array(self.amounts, dtype=np.int64)[kinds]

    def fitting(self) -> Bools:
        """Return for each kind whether it fits now; true where counts do not decide. Read-only."""
        counts = self.counts
        counts.follow()
        if self._seen != counts.seen:
            self._seen = counts.seen
            kinds, places, amounts = self._row
            self._fitting[kinds] = np.concatenate([counts.totals, counts.some])[places] >= amounts
        return self._fitting

    def fits(self, kind: int) -> bool:
        """Return whether a kind fits now; true where counts do not decide."""
        number = self.numbers[kind]
        if number < 0:
            return True
        counts = self.counts
        counts.follow()
        have = counts.totals if self._copies[kind] else counts.some
        return bool(have[number] >= self.amounts[kind])

    def suffice(self, kind: int, copies: Integers) -> bool:
        """Return whether these copies on each target suffice for a kind that counts decide."""
        have = copies.sum() if self._copies[kind] else np.count_nonzero(copies)
        return bool(have >= self.amounts[kind])


def _decided(table: JobTable, available: Availability, policy: MatchPolicy) -> list[Counted | None]:
    """Return for each kind the count that decides whether it fits, or None."""
    requests: list[Request | None] = [None] * (max(table.kinds, default=-1) + 1)
    for kind, request in zip(table.kinds, table.requests, strict=True):
        requests[kind] = request
    found: list[Counted | None] = []
    for request in requests:
        if request is not None and policy.whole_nodes and not request.alone:
            # as in `select`
            request = compile_request(request.jobspec, available.index, request.dialect, alone=True)  # noqa: PLW2901
        found.append(None if request is None else counted_request(request))
    return found
