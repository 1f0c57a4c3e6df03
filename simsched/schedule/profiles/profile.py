"""Availability over time: what is free between now and the last expected end.

Two profiles with one interface.  `CountProfile` knows one number a segment of time and is
exact where every request of the workload is a number of units of one type.  `GraphProfile`
knows what is free of each pool from when to when, asks the sums first and the matcher last.
Both start from the running jobs' expected ends; `book` adds a reservation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from simsched.schedule.profiles.count_profile import CountProfile
from simsched.schedule.profiles.gap import NEVER, Gap
from simsched.schedule.profiles.graph_profile import GraphProfile

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.kept_plan import Known

__all__ = ["NEVER", "CountProfile", "Gap", "GraphProfile", "Profile", "profile_of"]


class Profile(Protocol):
    """Availability over time, with reservations."""

    def advance(self, now: float) -> None:
        """Forget what lies before now."""

    def settle(self, known: Known) -> int:
        """Reserve what is known in front of the first job that could start sooner, or now; say how many."""

    def earliest(self, job: int) -> Gap:
        """Return the first time from which the job could run to its requested end."""

    def now(self, job: int) -> Gap:
        """Return a hole that begins now, or one that never begins."""

    def real(self, job: int) -> Selection | None:
        """Return what a job with a hole now may start on in fact, while another runs on beyond its end."""

    def book(self, job: int, gap: Gap) -> None:
        """Reserve the hole for the job, from its start to its requested end."""


def profile_of(context: PassContext) -> Profile:
    """Return the profile of the running jobs at this instant."""
    return CountProfile(context) if context.table.single is not None else GraphProfile(context)
