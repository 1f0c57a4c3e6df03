"""`Present`: the cluster at the instant from which a profile by the matcher begins (`graph_profile`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.maintenance import Calendar
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

    def could_start(self, job: int) -> bool:
        """Whether sums do not rule out that a job starts now."""

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None."""

    def seek_at(self, job: int, available: Availability, time: float) -> Selection | None:
        """Match a job that would start at a time (seconds) on the state of that time."""
