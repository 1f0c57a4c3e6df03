"""Reservations that last from pass to pass, where every request is a number of units of one type."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from simsched.schedule.profiles.count_profile import CountProfile
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext


class CountReservations(CountProfile):
    """What is free over time beside the running jobs and all reservations, kept up to date.

    A job that starts at its reserved start or ends at its expected end changes nothing here.

    Attributes
    ----------
    gained : until when (seconds) more may be free than when the waiting jobs were last tried: a
        job can move only to a start before then.
    """

    def __init__(self, context: PassContext) -> None:
        super().__init__(context)
        self.gained = NEVER
        self._later = 0.0  # the same, but for what came free while this round of compression went on
        self._most: int | None = None  # the most units that are free at any time before `gained`
        self._ends: dict[int, float] = {}  # running job -> expected end, at the end of the last pass

    # -- from pass to pass --------------------------------------------------------------------

    def follow(self, context: PassContext, due: Iterable[int]) -> bool:
        """Come to the present; return False if something happened that no early end explains.

        The reservations of the jobs that are `due` begin now.
        """
        if context.plan.overrun(context.now):
            return False
        self.advance(context.now)
        if context.moved:
            running = context.plan.expected_ends()
            for job in self._ends.keys() - running:
                if self._ends[job] > context.now:
                    self._give(context.now, self._ends[job], self._units[job])
        self._later = 0.0
        return self.free[0] + sum(map(self._units.__getitem__, due)) == context.free_units()

    def close(self, context: PassContext) -> None:
        """Note which jobs run at the end of a pass."""
        if context.started or context.moved:
            self._ends = context.plan.expected_ends().copy()

    def compressed(self) -> None:
        """Note that each waiting job was tried; the first of them did not see what the last gave back."""
        self.gained, self._later, self._most = self._later, 0.0, None

    # -- one job --------------------------------------------------------------------------------

    def earlier(self, job: int, gap: Gap) -> Gap | None:
        """Take a job's reservation away if it can start earlier, and return where; else None.

        Its own units are free for it from its present start on.  O(steps before that).
        """
        if self._most is None:
            stop = bisect_left(self.times, self.gained)
            self._most = max(self.free[:stop], default=0)
        if self._units[job] > self._most:
            return None
        found = self._find_before(self._units[job], self._durations[job], gap.start)
        if found is None:
            return None
        self.withdraw(job, gap)
        return Gap(found, None)

    def _find_before(self, units: int, duration: float, start: float) -> float | None:
        """Return the first time before `start` from which `units` are free up to there, or for `duration`."""
        times, free = self.times, self.free
        limit = bisect_left(times, start)
        last = min(limit, bisect_left(times, self.gained))
        begin = 0
        while begin < last:
            if free[begin] < units:
                begin += 1
                continue
            end = times[begin] + duration
            at = begin + 1
            while at < limit and times[at] < end and free[at] >= units:
                at += 1
            if at == limit or times[at] >= end:
                return times[begin]
            begin = at + 1
        return None

    def due(self, job: int, gap: Gap, *, fresh: bool) -> Selection | None:  # noqa: ARG002
        """Return what a job whose reservation begins now starts on, or None if it is not free in fact."""
        return self._fit(job)

    def fits(self, job: int, gap: Gap) -> bool:
        """Whether a reservation still holds."""
        units, times = self._units[job], self.times
        at = bisect_right(times, gap.start) - 1
        end = end_of(gap.start, self._durations[job])
        return min(self.free[at : bisect_left(times, end)]) >= units

    def lay(self, job: int, gap: Gap) -> None:
        """Book a reservation that begins at any time."""
        self._step(gap.start)
        self.book(job, gap)

    def withdraw(self, job: int, gap: Gap) -> None:
        """Take back a reservation."""
        self._give(gap.start, end_of(gap.start, self._durations[job]), self._units[job])

    def book(self, job: int, gap: Gap) -> None:
        """Reserve the job's units from the hole's start to its requested end."""
        super().book(job, gap)
        self._most = None

    # -- steps ------------------------------------------------------------------------------------

    def _give(self, begin: float, end: float, units: int) -> None:
        """Free units from now or `begin` on until `end`, and join steps that are equal now."""
        times, free = self.times, self.free
        if end <= times[0]:
            return
        first, stop = self._step(max(begin, times[0])), self._step(end)
        for at in range(first, stop):
            free[at] += units
        for at in (stop, first):
            if 0 < at < len(times) and free[at] == free[at - 1]:
                del times[at], free[at]
        self.gained, self._later = max(self.gained, end), max(self._later, end)
        self._most, self._bounds = None, Bounds()

    def _step(self, time: float) -> int:
        """Return the step that begins at a time, made if there is none."""
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self.free.insert(at, self.free[at - 1])
        return at
