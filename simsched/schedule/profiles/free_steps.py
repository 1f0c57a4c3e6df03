"""`FreeSteps`: the free units of one type as a step function of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from simsched.schedule.profile import end_of


class FreeSteps:
    """`free[i]` units are free from `times[i]` to `times[i + 1]` seconds; the last step has no end.

    >>> steps = FreeSteps([0.0, 10.0, 20.0], [2, 3, 8])
    >>> steps.find(3, 15.0), steps.find(9, 1.0)
    (1, None)
    >>> steps.take(1, 3, 15.0)
    >>> steps.times, steps.free
    ([0.0, 10.0, 20.0, 25.0], [2, 0, 5, 8])
    """

    __slots__ = ("free", "times")

    def __init__(self, times: list[float], free: list[int]) -> None:
        self.times = times
        self.free = free

    def advance(self, now: float) -> None:
        """Forget the time before now."""
        past = bisect_right(self.times, now) - 1
        del self.times[:past], self.free[:past]
        self.times[0] = now

    def find(
        self, units: int, duration: float, begin: int = 0, last: int | None = None, until: int | None = None
    ) -> int | None:
        """Return the first step from `begin` to `last` from which `units` are free for `duration` seconds.

        From the step `until` on, any number of units counts as free. O(steps).
        """
        times, free = self.times, self.free
        steps = len(free) if until is None else until
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
            # No start up to the step that is too low can work: its window would contain that step.
            begin = at + 1
        return None

    def take(self, begin: int, units: int, duration: float) -> None:
        """Take `units` from step `begin` on, for `duration` seconds."""
        times, free = self.times, self.free
        end = end_of(times[begin], duration)
        stop = bisect_left(times, end)
        if stop == len(times) or times[stop] != end:
            times.insert(stop, end)
            free.insert(stop, free[stop - 1])
        for at in range(begin, stop):
            free[at] -= units

    def step_at(self, time: float) -> int:
        """Return the step that begins at a time; insert it if it does not exist."""
        times, free = self.times, self.free
        at = bisect_left(times, time)
        if at == len(times) or times[at] != time:
            times.insert(at, time)
            free.insert(at, free[at - 1])
        return at

    def check(self) -> None:
        """Assert that the steps are in order."""
        assert self.times == sorted(set(self.times))
        assert len(self.times) == len(self.free)
