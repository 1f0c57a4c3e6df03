"""`OwnedTimes`: the times at which claims and reservations begin or end."""

from __future__ import annotations


class OwnedTimes:
    """How many claims and reservations begin or end at each time (seconds)."""

    def __init__(self) -> None:
        self._owners: dict[float, int] = {}
        self._loose: set[float] = set()
        self._given: dict[float, float] = {}
        """Times as they were given: records keep whole seconds as integers."""

    def own(self, *times: float) -> None:
        """Note that a claim or reservation begins or ends at some times."""
        for time in times:
            self._given.setdefault(time, time)
            self._owners[time] = self._owners.get(time, 0) + 1

    def disown(self, *times: float) -> None:
        """Take back `own`."""
        for time in times:
            self._owners[time] -= 1
            if not self._owners[time]:
                del self._owners[time]
                self._loose.add(time)

    def drop(self) -> set[float]:
        """Forget the times that lost their last owners since the last call, and return them."""
        dropped = self._loose - self._owners.keys()
        for time in dropped:
            del self._given[time]
        self._loose.clear()
        return dropped

    def as_given(self, time: float) -> float:
        """Return a time as it was given first."""
        return self._given.get(time, time)
