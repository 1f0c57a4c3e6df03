"""Availability over time as one number a segment of time.

Exact where every request of the workload is a number of units of one type.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from simsched.schedule.profiles.gap import NEVER, Bounds, Gap, end_of

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.kept_plan import Known


class CountProfile:
    """Free units of one type as a step function: `free[i]` from `times[i]` to `times[i + 1]`.

    >>> profile = CountProfile.of([0, 10, 20], [2, 3, 8])
    >>> profile.find(3, 15), profile.find(9, 1)
    (1, None)
    >>> profile.reserve(1, 3, 15)
    >>> profile.times, profile.free
    ([0, 10, 20, 25], [2, 0, 5, 8])
    """

    __slots__ = ("_bounds", "_durations", "_fit", "_units", "free", "times")

    def __init__(self, context: PassContext) -> None:
        plan, table = context.plan, context.table
        self._units, self._durations, self._fit = table.units, table.durations, context.fit
        ends, jobs = plan.ends()
        sums = list(accumulate(map(self._units.__getitem__, jobs), initial=context.free_units()))
        past = bisect_right(ends, context.now)  # an expected end that has passed counts as now
        steps = {context.now: sums[past], **dict(zip(ends[past:], sums[past + 1 :], strict=True))}
        self.times: list[float] = list(steps)
        self.free: list[int] = list(steps.values())
        self._bounds = Bounds()

    @classmethod
    def of(cls, times: list[float], free: list[int]) -> CountProfile:
        """Return a profile of these steps, for no jobs in particular."""
        profile = cls.__new__(cls)
        profile.times, profile.free = times, free
        return profile

    def advance(self, now: float) -> None:
        """Forget what lies before now."""
        past = bisect_right(self.times, now) - 1
        del self.times[:past], self.free[:past]
        self.times[0] = now

    def settle(self, known: Known) -> int:
        """Reserve what is known in front of the first job that could start sooner, or now; say how many."""
        times, until, stand = self.times, known.until, 0
        now = times[0]
        for job, start in zip(known.jobs, known.starts, strict=True):
            units, duration = self._units[job], self._durations[job]
            last = bisect_left(times, min(start, until)) - 1
            if start <= now or self.find(units, duration, last=last) is not None:
                break
            if start != NEVER:
                self.reserve(bisect_left(times, start), units, duration)
            stand += 1
        for job, start in zip(known.jobs[:stand], known.starts, strict=False):
            self._bounds.note(self._units[job], self._durations[job], start)
        return stand

    def earliest(self, job: int) -> Gap:
        """Return the first time from which the job's units are free for its requested time.

        It is no sooner than that of a job before it that needs as many for no longer.
        """
        units, duration = self._units[job], self._durations[job]
        begin = bisect_left(self.times, self._bounds.of(units, duration))
        at = self.find(units, duration, begin)
        start = NEVER if at is None else self.times[at]
        self._bounds.note(units, duration, start)
        return Gap(start, None)

    def now(self, job: int) -> Gap:
        """Return now if the job's units are free from now for its requested time."""
        at = self.find(self._units[job], self._durations[job], last=0)
        return Gap(NEVER if at is None else self.times[0], None)

    def real(self, job: int) -> Selection | None:
        """Return what is free now, wherever it is."""
        return self._fit(job)

    def book(self, job: int, gap: Gap) -> None:
        """Reserve the job's units from the hole's start to its requested end."""
        if gap.start == NEVER:
            return
        at = bisect_left(self.times, gap.start)
        self.reserve(at, self._units[job], self._durations[job])

    def find(self, units: int, duration: float, begin: int = 0, last: int | None = None) -> int | None:
        """Return the first step from `begin` to `last` from which `units` are free for `duration` seconds.

        O(steps).
        """
        times, free = self.times, self.free
        steps = len(free)
        stop = steps - 1 if last is None else last
        while begin <= stop:
            if free[begin] < units:
                begin += 1
                continue
            end = times[begin] + duration
            at = begin + 1
            while at < steps and times[at] < end and free[at] >= units:
                at += 1
            if at == steps or times[at] >= end:
                return begin
            begin = at + 1
        return None

    def reserve(self, begin: int, units: int, duration: float) -> None:
        """Take `units` from step `begin` on, for `duration` seconds."""
        times, free = self.times, self.free
        end = end_of(times[begin], duration)
        stop = bisect_left(times, end)
        if stop == len(times) or times[stop] != end:
            times.insert(stop, end)
            free.insert(stop, free[stop - 1])
        for at in range(begin, stop):
            free[at] -= units

    def _check(self) -> None:
        assert self.times == sorted(set(self.times))
        assert len(self.times) == len(self.free)
