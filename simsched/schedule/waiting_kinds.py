"""`WaitingKinds`: the waiting jobs of a queue by their kinds of requests, and which of these kinds fit now.

In most passes no waiting job fits. Of the kinds that one count decides, the one that needs least tells: if it
does not fit, none does. The least amounts of all counts are one number, so that a pass compares them with the
counts of the machine in one subtraction, however many jobs wait.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import chain
from typing import TYPE_CHECKING

from simsched.match.search.count_columns import WORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from simsched.schedule.kind_counts import KindCounts

    Integers = npt.NDArray[np.int64]

NONE = 1 << WORD - 2
"""The least amount where no kind waits: more than any count."""


class WaitingKinds:
    """The ranks of the waiting jobs by kind; counts decide for all kinds.

    Attributes
    ----------
    kinds : the counts of the kinds.
    """

    __slots__ = (
        *("_at_place", "_changed", "_fitting", "_guard", "_jobs", "_least", "_leasts", "_of", "_ranks"),
        *("_seen", "kinds"),
    )

    def __init__(self, kinds: KindCounts, of: Sequence[int], jobs: Integers | None) -> None:
        """Begin with an empty queue; `of` has each job's kind, `jobs` each rank's job (None: the same)."""
        self.kinds = kinds
        self._of, self._jobs = of, jobs
        self._ranks: list[list[int]] = [[] for _ in kinds.numbers]
        self._changed: set[int] = set()
        """Kinds that came or left since the least amounts were last looked at."""
        self._at_place = kinds.by_place()
        """For each count the amounts and kinds that it decides, the least amounts first."""
        self._leasts = [NONE] * len(self._at_place)
        places = range(len(self._at_place))
        self._guard = sum(1 << place * WORD + WORD - 1 for place in places)
        """The highest bit of each number: it is left after the subtraction where the count suffices."""
        self._fitting: list[int] = []
        """The kinds that fit when the table of counts had followed `_seen` changes."""
        self._seen = -1
        self._least = sum(NONE << place * WORD for place in places)

    def add(self, job: int, rank: int) -> None:
        """Note that a job waits."""
        kind = self._of[job]
        ranks = self._ranks[kind]
        if not ranks:
            self._changed.add(kind)
            ranks.append(rank)
        elif rank > ranks[-1]:
            ranks.append(rank)
        else:
            insort(ranks, rank)

    def remove(self, job: int, rank: int) -> None:
        """Note that a job waits no longer."""
        kind = self._of[job]
        ranks = self._ranks[kind]
        del ranks[0 if ranks[0] == rank else bisect_left(ranks, rank)]
        if not ranks:
            self._changed.add(kind)

    def fitting(self) -> list[int]:
        """Return the kinds that wait and fit now. Callers must not change the list."""
        counts = self.kinds.counts
        if self._changed:
            self._note_changes()
        elif self._seen == counts.seen and not counts.pending:
            return self._fitting
        if counts.grew:
            counts.follow()
        guard = self._guard
        enough = (counts.packed | guard) - self._least & guard
        if enough and counts.pending:  # resources were only claimed since these counts
            counts.follow()
            enough = (counts.packed | guard) - self._least & guard
        found: list[int] = []
        while enough:
            place = (enough & -enough).bit_length() // WORD - 1
            enough &= enough - 1
            have = counts.sum_at(place)
            for amount, kind in self._at_place[place]:
                if amount > have:
                    break
                if self._ranks[kind]:
                    found.append(kind)
        self._fitting, self._seen = found, counts.seen
        return found

    def jobs_that_fit(self, most: int) -> list[int] | None:
        """Return the waiting jobs of the kinds that fit now, in order; None if they are more than `most`."""
        ranks = [self._ranks[kind] for kind in self.fitting()]
        if not ranks:
            return []
        if sum(map(len, ranks)) > most:
            return None
        found = ranks[0].copy() if len(ranks) == 1 else sorted(chain.from_iterable(ranks))
        if self._jobs is None:
            return found
        jobs: list[int] = self._jobs[found].tolist()
        return jobs

    def _note_changes(self) -> None:
        """Bring the least amounts to the kinds that wait now."""
        ranks, leasts, places = self._ranks, self._leasts, self.kinds.places
        for kind in self._changed:
            place = places[kind]
            least = NONE
            for amount, each in self._at_place[place]:
                if ranks[each]:
                    least = amount
                    break
            if least != leasts[place]:
                self._least += least - leasts[place] << place * WORD
                leasts[place] = least
        self._changed.clear()

    def check(self, waiting: Sequence[int]) -> None:
        """Assert that these ranks wait, and that the least amounts are theirs."""
        self._note_changes()
        assert sorted(chain.from_iterable(self._ranks)) == sorted(waiting)
        for place, kinds in enumerate(self._at_place):
            least = min((amount for amount, kind in kinds if self._ranks[kind]), default=NONE)
            assert self._least >> place * WORD & (1 << WORD) - 1 == least
