"""The interfaces of availability profiles: the free resources between now and the last expected end.

A profile begins from the expected ends of the running jobs. `reserve` adds a reservation, and `earliest`
finds the first time from which a job could run beside the reservations. Where counts decide, a profile is
copies on targets (`pass_plan`), or a number per segment of time (`count_profile`); elsewhere it is the free
units of each leaf pool, and the matcher decides (`graph_profile`). Profiles whose reservations last from pass
to pass are `Reservations` (`count_reservations`, `graph_reservations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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

    def earliest(self, job: int, before: float = ...) -> Gap:
        """Return the first gap before a time in which the job could run to its requested end."""

    def now(self, job: int) -> Gap:
        """Return a gap that begins now, or one that never begins."""

    def fit_now(self, job: int) -> Selection | None:
        """Return resources that are actually free, also while a job overruns, and until the requested end."""

    def reserve(self, job: int, gap: Gap) -> None:
        """Reserve a gap for the job, from its start to the requested end."""


class Reservations(AnyProfile, Protocol):
    """Availability over time beside reservations that last from pass to pass."""

    def follow(self, due: Iterable[int], *, moved: bool) -> bool:
        """Advance to the present; return False if anything but early ends changed the free resources.

        The reservations of the jobs that are `due` begin now. `moved` is whether an early end or a change of
        the machine may have moved reservations.
        """

    def postpone(self, jobs: Iterable[int]) -> bool:
        """Let missed reservations begin now instead; return False if it must be built again for that."""

    def close(self, *, changed: bool) -> None:
        """Note the running jobs at the end of a pass, if they have changed."""

    def compressed(self) -> None:
        """Note that each waiting job was tried at an earlier start."""

    def turns(self, jobs: Sequence[int], starts: Mapping[int, float]) -> Iterable[int]:
        """Return in turn the jobs to look at in a compression, without those that surely cannot move.

        `starts` are the starts of the reservations in seconds; jobs without one are always returned.
        """

    def move(self, job: int, gap: Gap) -> Gap | None:
        """Move a job's reservation to an earlier gap and return that; without one, change nothing."""

    def due(self, job: int, gap: Gap, *, fresh: bool) -> Selection | None:
        """Return resources for a job whose reservation begins now; None if they are not actually free.

        `fresh` is whether the reservation was made in this pass.
        """

    def fits(self, job: int, gap: Gap) -> bool:
        """Whether the resources of an old reservation are free over all its time."""

    def restore(self, job: int, gap: Gap) -> None:
        """Reserve again a gap that need not begin at a step of the profile."""

    def withdraw(self, job: int, gap: Gap) -> None:
        """Take back a reservation."""
