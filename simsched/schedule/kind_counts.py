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
from simsched.match.search.count_columns import MASK, WORD
from simsched.match.search.count_table import CountTable, counted_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.search.count_table import Counted
    from simsched.match.search.placements import RowDemand, RowPlacement
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
    all_decided : whether counts decide for each kind that can run at all.
    decided : the count that each kind needs; None: counts do not decide.
    places : where each kind finds its count among the `CountTable.joined` ones; -1: counts do not decide.
    least : the least units of each type that each kind needs, shape (types, kinds).
    """

    __slots__ = (
        *("_amounts", "_fitting", "_row", "_seen", "_spots"),
        *("all_decided", "counts", "decided", "least", "numbers", "of", "places"),
    )

    def __init__(self, table: JobTable, available: Availability, policy: MatchPolicy) -> None:
        self.decided = _decided(table, available, policy)
        if available.table is None:  # queues that share a plan share the table of its state
            available.table = CountTable(
                available, [each.content for each in self.decided if each is not None]
            )
        self.counts = cast("CountTable", available.table)
        self.of: Integers = table.kinds_array
        kinds, first = np.unique(self.of, return_index=True)
        self.least: Integers = np.zeros((len(table.types), len(self.decided)), dtype=np.int64)
        self.least[:, kinds] = table.demand[:, first]
        found = [None if each is None else self.counts.number_of(each.content) for each in self.decided]
        self.numbers = [-1 if number is None else number for number in found]
        requests = enumerate(table.requests_by_kind())
        self.all_decided = all(self.numbers[kind] >= 0 for kind, request in requests if request is not None)
        self._row = self._rows()
        self.places, self._amounts = [-1] * len(self.decided), [0] * len(self.decided)
        for kind, place, amount in zip(*(part.tolist() for part in self._row), strict=True):
            self.places[kind], self._amounts[kind] = place, amount
        self._spots = [
            None if each is None or number < 0 else self.counts.spot(each, policy)
            for number, each in zip(self.numbers, self.decided, strict=True)
        ]
        self._fitting: Bools = np.ones(len(self.decided), dtype=np.bool_)
        self._seen = -1

    def _rows(self) -> tuple[Integers, Integers, Integers]:
        """Return the kinds that counts decide, where each finds its count, and the count that it needs."""
        rows = [
            # Sums of copies come first in the joined counts, and numbers of targets behind them.
            (kind, number if each.copies else number + len(self.counts.fits), each.amount)
            for kind, (number, each) in enumerate(zip(self.numbers, self.decided, strict=True))
            if each is not None and number >= 0
        ]
        kinds, places, amounts = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
        return kinds, places, amounts

    def by_place(self) -> list[list[tuple[int, int]]]:
        """Return for each of the `CountTable.joined` counts the amounts and kinds it decides, in order."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(2 * len(self.counts.fits))]
        for kind, (place, amount) in enumerate(zip(self.places, self._amounts, strict=True)):
            if place >= 0:
                found[place].append((amount, kind))
        return [sorted(kinds) for kinds in found]

    def fitting(self) -> Bools:
        """Return for each kind whether it fits now; true where counts do not decide. Read-only."""
        counts = self.counts
        if counts.pending:
            counts.follow()
        if self._seen != counts.seen:
            self._seen = counts.seen
            kinds, places, amounts = self._row
            self._fitting[kinds] = counts.joined()[places] >= amounts
        return self._fitting

    def fits(self, kind: int) -> bool:
        """Return whether a kind fits now; true where counts do not decide."""
        place = self.places[kind]
        if place < 0:
            return True
        counts = self.counts
        amount = self._amounts[kind]
        if counts.pending:
            if not counts.grew and counts.packed >> place * WORD & MASK < amount:
                return False  # as before: since then, resources were only claimed
            counts.follow()
        return counts.packed >> place * WORD & MASK >= amount  # `sum_at`, without the call

    def that_fit(self, jobs: Sequence[int], kinds: Sequence[int]) -> list[int]:
        """Return those of some jobs whose kinds fit now, or where counts do not decide."""
        counts, places, amounts = self.counts, self.places, self._amounts
        found = list(jobs)
        while True:
            if counts.grew:
                counts.follow()
            sums = counts.packed
            found = [
                job
                for job in found
                if (place := places[kind := kinds[job]]) < 0 or sums >> place * WORD & MASK >= amounts[kind]
            ]
            if not found or not counts.pending:
                return found
            counts.follow()  # resources were only claimed since these counts, so the others do not fit either

    def copies(self, kind: int, rows: Integers) -> Integers:
        """Return the copies of a kind that counts decide on each target, in a state of these rows."""
        return self.counts.copies_in(self.numbers[kind], rows)

    def copies_now(self, kind: int) -> Integers:
        """Return the copies of a kind that counts decide on each target now. Read-only."""
        counts = self.counts
        if counts.pending:
            counts.follow()
        copies: Integers = counts.fits[self.numbers[kind]]
        return copies

    def suffice(self, kind: int, copies: Integers) -> bool:
        """Return whether these copies on each target suffice for a kind that counts decide."""
        return self.spare(kind, copies) >= 0

    def demand(self, kind: int) -> RowDemand:
        """Return the demand of one copy of a kind that counts decide."""
        return self.counts.demands[self.numbers[kind]]

    def counts_copies(self, kind: int) -> bool:
        """Return whether a kind that counts decide needs a number of copies, and not of targets."""
        each = self.decided[kind]
        assert each is not None
        return each.copies

    def amount(self, kind: int) -> int:
        """Return the count that a kind that counts decide needs."""
        return self._amounts[kind]

    def count(self, kind: int, copies: Integers) -> int:
        """Return the count that decides a kind, of these copies on each target."""
        return int(np.add.reduce(copies)) if self.counts_copies(kind) else int(np.count_nonzero(copies))

    def spare(self, kind: int, copies: Integers) -> int:
        """Return by how much these copies on each target exceed the count that a kind needs."""
        return self.count(kind, copies) - self._amounts[kind]

    def spare_now(self, kind: int) -> int:
        """Return by how much the copies on all targets exceed the count that a kind needs, now."""
        counts = self.counts
        if counts.pending:
            counts.follow()
        return counts.sum_at(self.places[kind]) - self._amounts[kind]

    def most_on_a_target(self, kind: int) -> int:
        """Return by how much one target can add to the count that a kind needs, at most."""
        return self.counts.most_on_a_target[self.numbers[kind]] if self.counts_copies(kind) else 1

    def placed_now(self, kind: int) -> RowPlacement | None:
        """Return where a kind that fits now would be placed; None if the matcher alone knows that."""
        spot = self._spots[kind]
        return None if spot is None else self.counts.placed_now(spot)

    def placed(self, kind: int, copies: Integers) -> RowPlacement | None:
        """Return where a kind would be placed in a state in which targets host these copies of it.

        None if the matcher alone knows the targets that the policy takes.
        """
        spot = self._spots[kind]
        return None if spot is None else self.counts.placed(spot, copies)


def _decided(table: JobTable, available: Availability, policy: MatchPolicy) -> list[Counted | None]:
    """Return for each kind the count that decides whether it fits, or None."""
    found: list[Counted | None] = []
    for request in table.requests_by_kind():
        if request is not None and policy.whole_nodes and not request.alone:
            # as in `select`
            request = compile_request(request.jobspec, available.index, request.dialect, alone=True)  # noqa: PLW2901
        found.append(None if request is None else counted_request(request))
    return found
