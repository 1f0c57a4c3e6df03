"""`CountingSupply`: the supply of a pass, as far as a shadow by counts needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.match.requests.request import Request
    from simsched.match.search.placements import Change
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.kind_counts import KindCounts
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.profiles.plan import Plan


class CountingSupply(Protocol):
    """The supply of a pass, as far as a shadow by counts needs it (see `graph_supply`)."""

    table: JobTable
    plan: Plan
    now: float
    failed: set[int]
    kinds: KindCounts

    def request(self, job: int) -> Request:
        """Return the compiled request of a job."""

    def fit(self, job: int) -> Selection | None:
        """Return resources on which a job may start now, or None."""

    def seek(self, request: Request, available: Availability) -> Selection | None:
        """Match a request in a state."""

    def change_of(self, job: int, selection: Selection) -> Change | None:
        """Return the difference that the release of a job's claim makes to rows; None if units are shared."""

    def changes_of(self, jobs: Iterable[int]) -> list[Change | None]:
        """Return `change_of` for some running jobs."""

    def note_change(self, job: int, selection: Selection, change: Change) -> None:
        """Note the difference that the release of a job's claim makes to rows."""

    def earliest(self, job: int) -> EarliestStart | None:
        """Return the earliest start of a job, and the state of the cluster then; None if it never fits."""
