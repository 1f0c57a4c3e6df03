"""Reservations that last from pass to pass, where every request is a number of units of one type."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from simsched.schedule.profiles.count_profile import CountProfile
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.protocols import Present


class CountReservations(CountProfile):
    """The free units of one type over time, beside the running jobs and all reservations.

    It is kept up to date: a job that starts at its reserved start or ends at its expected end
    changes nothing, since its units were taken for the same time.

    Attributes
    ----------
    gained : a time in seconds; more units than at the last compression can be free only before it, so
        that a job can move only to a start before it.
    """

    __slots__ = ("_ends", "_later", "_most", "gained")

    def __init__(self, present: Present) -> None:
        super().__init__(present)
        self.gained = NEVER
        self._later = 0.0
        """`gained`, but only for units that came free while this round of compression went on."""
        self._most: int | None = None
        """The greatest number of units that are free at any time before `gained`; None: not known."""
        self._ends: dict[int, float] = {}
        """Running job → expected end, at the end of the last pass."""

    # -- from pass to pass --------------------------------------------------------------------

    def follow(self, due: Iterable[int], *, moved: bool) -> bool:
        """Advance to the present; return False if anything but early ends changed the free units."""
        present = self._present
        plan, now = present.plan, present.now
        if plan.overrun(now):
            return False
        self.advance(now)
        if moved:
            running = plan.expected_ends()
            for job in self._ends.keys() - running:
                if self._ends[job] > now:
                    self._give(now, self._ends[job], self._units[job])
        self._later = 0.0
        # Whatever else happened (a failure, a start by another policy) shows in the sum of free units.
        return self.free[0] + sum(map(self._units.__getitem__, due)) == present.free_units()

    def postpone(self, jobs: Iterable[int]) -> bool:  # noqa: ARG002
        """Return False: it is quickly built again."""
        return False

    def close(self, *, changed: bool) -> None:
        """Note the running jobs at the end of a pass, if they have changed."""
        if changed:
            self._ends = self._present.plan.expected_ends().copy()

    def compressed(self) -> None:
        """Note that each waiting job was tried; gains from jobs behind it count at the next compression."""
        self.gained, self._later, self._most = self._later, 0.0, None

    def turns(self, jobs: Sequence[int], starts: Mapping[int, float]) -> Iterable[int]:  # noqa: ARG002
        """Return all jobs: trying one is cheap beside choosing which to try."""
        return jobs

    # -- one job --------------------------------------------------------------------------------

    def move(self, job: int, gap: Gap) -> Gap | None:
        """Move a job's reservation to an earlier gap and return that; without one, change nothing.

        O(steps before the present start): from that start on the job's own units are free for it.
        """
        times = self.times
        if self._most is None:
            self._most = max(self.free[: bisect_left(times, self.gained)], default=0)
        if self._units[job] > self._most:
            return None
        limit = bisect_left(times, gap.start)
        last = min(limit, bisect_left(times, self.gained)) - 1
        at = self.find(self._units[job], self._durations[job], last=last, until=limit)
        if at is None:
            return None
        found = Gap(times[at], None)
        self.withdraw(job, gap)
        self.reserve(job, found)
        return found

    def due(self, job: int, gap: Gap, *, fresh: bool) -> Selection | None:  # noqa: ARG002
        """Return resources for a job whose reservation begins now; None if they are not actually free."""
        return self._present.fit(job)

    def fits(self, job: int, gap: Gap) -> bool:
        """Whether the units of an old reservation are free over all its time."""
        at = bisect_right(self.times, gap.start) - 1
        end = end_of(gap.start, self._durations[job])
        return min(self.free[at : bisect_left(self.times, end)]) >= self._units[job]

    def restore(self, job: int, gap: Gap) -> None:
        """Reserve again a gap that need not begin at a step."""
        self.step_at(gap.start)
        self.reserve(job, gap)

    def withdraw(self, job: int, gap: Gap) -> None:
        """Take back a reservation."""
        self._give(gap.start, end_of(gap.start, self._durations[job]), self._units[job])

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve the job's units from the start of the gap to its requested end."""
        super().reserve(job, gap)
        self._most = None

    def _give(self, begin: float, end: float, units: int) -> None:
        """Free units from `begin`, or now, until `end`, and join neighbouring steps that are equal then."""
        times, free = self.times, self.free
        if end <= times[0]:
            return
        first, stop = self.step_at(max(begin, times[0])), self.step_at(end)
        for at in range(first, stop):
            free[at] += units
        for at in (stop, first):
            if 0 < at < len(times) and free[at] == free[at - 1]:
                del times[at], free[at]
        self.gained, self._later = max(self.gained, end), max(self._later, end)
        self._most, self._bounds = None, Bounds()
