"""Reservations that last where no count decides: on leaf pools, by the matcher.

They answer the questions of `schedule.reservations` for requests within sockets and above targets, for
ranges, licences and shared claims, under match policies whose order changes with each placement, and beside
closures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.match.state.selection import LazySelection, Selection, with_arrays
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER, Gap
from simsched.schedule.profiles.graph_profile import GraphProfile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.schedule.profiles.graph_profile import Present
    from simsched.schedule.reservations import Reservations


class GeneralReservations:
    """Reservations as units of leaf pools, on a profile that is made anew at each pass."""

    def __init__(self, supply: Present) -> None:
        self._supply = supply
        self._gaps: dict[int, Gap] = {}
        """Job → its reservation."""
        self._found = Gap(NEVER, None)
        self._profile = GraphProfile(supply)

    def open(self, now: float) -> bool:  # noqa: ARG002
        """Begin from the present; the reservations have to be made again."""
        self._profile = GraphProfile(self._supply)
        return False

    def restore(self, starts: dict[int, float]) -> dict[int, float]:
        """Keep the reservations of which the resources are still free over all their time."""
        before, self._gaps, now = self._gaps, {}, self._supply.now
        for job, start in starts.items():
            if job not in before:
                continue
            gap = Gap(max(start, now), before[job].selection)
            if self._profile.fits(job, gap):
                self._profile.restore(job, gap)
                self._gaps[job] = gap
        return {job: gap.start for job, gap in self._gaps.items()}

    def earliest(self, job: int, before: float = NEVER) -> float:
        """Return the first start before a time, or `NEVER`."""
        if before <= end_of(self._supply.now, 0):
            could = self._supply.could_start(job)
            self._found = self._profile.now(job) if could else Gap(NEVER, None)
        else:
            self._found = self._profile.earliest(job, before)
        return self._found.start

    def reserve(self, job: int, start: float) -> None:
        """Reserve the resources that were found last."""
        gap = self._gaps[job] = Gap(start, self._found.selection)
        self._profile.reserve(job, gap)

    def reserve_targets(self, job: int, start: float, until: float) -> None:
        """Reserve the targets that were found last as a whole."""
        self._profile.reserve_targets(job, Gap(start, self._found.selection), until)

    def withdraw(self, job: int) -> None:
        """Take back a reservation."""
        self._profile.withdraw(job, self._gaps.pop(job))

    def compress(self, jobs: list[int], barred: set[int]) -> Iterator[int]:
        """Move reservations, in turn; yield jobs that have moved, are due, or have none."""
        for job in jobs:
            if job in barred:
                continue
            gap = self._gaps.get(job)
            if gap is not None and gap.start > self._supply.now:
                found = self._profile.move(job, gap)
                if found is None:
                    continue
                self._gaps[job] = found
            yield job

    def start_of(self, job: int) -> float:
        """Return the start of a reservation."""
        return self._gaps[job].start

    def could_now(self, job: int) -> bool:
        """Whether counts, sums, and room on targets do not rule out that a job starts now."""
        return self._supply.could_start(job) and self._profile.could_now(job)

    def begin(self, job: int) -> Selection | None:
        """Match again if there was a reservation, or if a job overruns; else take what was reserved."""
        own = self._gaps.get(job)
        if own is None:
            self.reserve(job, self._supply.now)
        gap = self._gaps[job]
        found = self._profile.due(job, gap, fresh=own is None)
        if found is not None:
            self._gaps[job] = Gap(self._supply.now, found)
        elif gap.start > self._supply.now:
            return None
        self.withdraw(job)
        if found is not None:  # else the job may still reserve what was found
            self._found = Gap(self._supply.now, found)
        return found

    def started(self, job: int) -> None:
        """Take the resources until the pass is over; then the running jobs are looked at anew."""
        self._profile.reserve(job, self._found)

    def places(self) -> dict[int, Any]:
        """Return job → the selection that is reserved."""
        return {job: gap.selection for job, gap in self._gaps.items()}

    def put(self, job: int, start: float, place: Any) -> bool:
        """Reserve a selection, which may not be free any more."""
        if not isinstance(place, Selection | LazySelection):
            return False
        self._gaps[job] = Gap(start, with_arrays(place))
        self._profile.restore(job, self._gaps[job])
        return True

    def adopt(self, plan: Reservations) -> None:
        """Go on with a plan."""
        assert isinstance(plan, GeneralReservations)
        self._profile, self._gaps = plan._profile, plan._gaps
