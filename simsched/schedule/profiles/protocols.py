"""The interfaces of availability profiles: the free resources between now and the last expected end.

A profile begins from the expected ends of the running jobs. `reserve` adds a reservation, and `earliest`
finds the first time from which a job could run beside the reservations. Where counts decide, a profile is
a number per segment of time (`count_profile`); elsewhere it is the free units of each leaf pool, and the
matcher decides (`graph_profile`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.profiles.gap import Gap
    from simsched.schedule.profiles.plan import Plan


class Present(Protocol):
    """The cluster at the present instant, from which a profile begins; a `Supply` is one."""

    table: JobTable
    plan: Plan
    calendar: Calendar
    now: float

    def free_units(self) -> int:
        """Return the free units of the counted type."""

    def request(self, job: int) -> Request:
        """Return the compiled request of a job."""

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None."""

    def seek_at(self, job: int, available: Availability, time: float) -> Selection | None:
        """Match a job that would start at a time (seconds) on the state of that time."""


class AnyProfile(Protocol):
    """Availability over time, with reservations of one pass."""

    def advance(self, now: float) -> None:
        """Forget the time before now."""

    def earliest(self, job: int) -> Gap:
        """Return the first gap in which the job could run to its requested end."""

    def now(self, job: int) -> Gap:
        """Return a gap that begins now, or one that never begins."""

    def fit_now(self, job: int) -> Selection | None:
        """Return resources that are actually free, also while a job overruns, and until the requested end."""

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve a gap for the job, from its start to the requested end."""


class PassProfile(AnyProfile, Protocol):
    """Availability over time whose reservations may be longer than their jobs."""

    follows: bool
    """Whether `advance` leaves it right as long as no job starts or ends."""

    def could_now(self, job: int) -> bool:
        """Whether counts do not rule out a gap that begins now; quicker than `now`.

        A job that is ruled out stays so while reservations are only added.
        """

    def reserve_targets(self, job: int, gap: Gap, until: float) -> None:
        """Reserve the targets of a gap as a whole until a time: no other job may use them then."""
