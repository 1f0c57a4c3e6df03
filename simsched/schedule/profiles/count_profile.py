"""The availability profile where every request is a number of units of one type."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from simsched.schedule.profiles.free_steps import FreeSteps
from simsched.schedule.profiles.gap import NEVER, Bounds, Gap

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.protocols import Present


class CountProfile(FreeSteps):
    """The free units of one type over time, beside the running jobs and the reservations of a pass.

    It is exact, because all units of the type are interchangeable.
    """

    __slots__ = ("_bounds", "_durations", "_present", "_units")

    follows = True

    def __init__(self, present: Present) -> None:
        table, now = present.table, present.now
        self._present, self._units, self._durations = present, table.units, table.durations
        ends, jobs = present.plan.ends()
        sums = list(accumulate(map(self._units.__getitem__, jobs), initial=present.free_units()))
        past = bisect_right(ends, now)  # an expected end that has passed counts as now
        steps = {now: sums[past], **dict(zip(ends[past:], sums[past + 1 :], strict=True))}
        super().__init__(list(steps), list(steps.values()))
        self._bounds = Bounds()

    def earliest(self, job: int) -> Gap:
        """Return the first time from which the job's units are free for its requested time."""
        units, duration = self._units[job], self._durations[job]
        begin = bisect_left(self.times, self._bounds.of(units, duration))
        at = self.find(units, duration, begin)
        start = NEVER if at is None else self.times[at]
        self._bounds.note(units, duration, start)
        return Gap(start, None)

    def now(self, job: int) -> Gap:
        """Return now if the job's units are free from now for its requested time."""
        return Gap(self.times[0] if self.could_now(job) else NEVER, None)

    def could_now(self, job: int) -> bool:
        """Whether the job's units are free from now for its requested time."""
        return self.find(self._units[job], self._durations[job], last=0) is not None

    def fit_now(self, job: int) -> Selection | None:
        """Return resources that are free now, wherever they are."""
        return self._present.fit(job)

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve the job's units from the start of the gap to its requested end."""
        if gap.start != NEVER:
            self.take(bisect_left(self.times, gap.start), self._units[job], self._durations[job])

    def reserve_targets(self, job: int, gap: Gap, until: float) -> None:
        """Reserve the job's units: where counts decide for `slurm`, a target has one unit at most."""
        if gap.start != NEVER:
            self.take(bisect_left(self.times, gap.start), self._units[job], until - gap.start)
