"""`CountedPlan`: the reservations of one pass on a `Profile`, where counts decide for every request.

A policy that plans again at each pass reserves on a copy of the profile that follows the running jobs. A
reservation is so many copies on each target; units are chosen when a job starts. Requests that no count
decides have a `GraphProfile`, with the same questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from simsched.schedule.profiles.gap import NEVER, Gap, end_of

if TYPE_CHECKING:
    from simsched.match.counted_kinds import CountedKinds
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.profile import Profile


class CountingSupply(Protocol):
    """The supply of a pass, as far as it is needed here (see `graph_supply`)."""

    table: JobTable
    now: float
    kinds: CountedKinds

    def request(self, job: int) -> Request:
        """Return the compiled request of a job."""

    def seek(self, request: Request, available: Availability) -> Selection | None:
        """Match a request in a state."""


class CountedPlan:
    """Copies that are free over time, beside the running jobs and the reservations of a pass."""

    def __init__(self, supply: CountingSupply, profile: Profile) -> None:
        self._supply, self._profile, self._kinds = supply, profile, supply.kinds
        self._kind, self._seconds = supply.table.kinds, supply.table.durations

    def earliest(self, job: int, before: float = NEVER) -> Gap:
        """Return the first gap before a time in which the job could run to its requested end."""
        now = self._supply.now
        return Gap(self._profile.earliest(self._kind[job], self._seconds[job], now, before), None)

    def now(self, job: int) -> Gap:
        """Return a gap that begins now, or one that never begins."""
        return self.earliest(job, end_of(self._supply.now, 0))

    def could_now(self, job: int) -> bool:
        """Whether totals do not rule out a gap that begins now."""
        return self._profile.may_now(self._kind[job], self._seconds[job])

    def fit_now(self, job: int) -> Selection | None:
        """Return resources for the job of which the last gap was found; it begins now."""
        kinds, kind = self._kinds, self._kind[job]
        if kinds.placed[kind]:
            placed = kinds.kernel.place_on(kind, *self._profile.placement())
            return kinds.selection(kind) if placed else None
        now = self._supply.now
        least = self._profile.least(now, end_of(now, self._seconds[job]))
        return self._supply.seek(self._supply.request(job), kinds.less(least))

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve the gap that was found last to the job's requested end; with a selection the job runs."""
        end = end_of(gap.start, self._seconds[job])
        if gap.selection is not None:
            self._profile.start(job, end)
        elif gap.start < NEVER:
            self._profile.take(self._kind[job], gap.start, end)

    def reserve_targets(self, job: int, gap: Gap, until: float) -> None:  # noqa: ARG002
        """Reserve the targets of the gap that was found last as a whole until a time."""
        self._profile.take_targets(gap.start, until)
