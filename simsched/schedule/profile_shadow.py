"""`ProfileShadow`: the shadow time of a first job beside closures, where counts decide.

Closures make the answer depend on how long a job runs. So both questions are those of a profile: when the
first job could start, and whether it still could if a later job started now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.schedule.profile import end_of
from simsched.schedule.supply import ANY

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.supply import Limits, Supply


class ProfileShadow:
    """The shadow time of the first job in one pass, and who may run beyond it.

    Attributes
    ----------
    start : the shadow time in seconds.
    extra : whether other jobs may run beyond the shadow time.
    """

    __slots__ = ("extra", "job", "start")

    def __init__(self, job: int, start: float, *, extra: bool) -> None:
        self.job, self.start, self.extra = job, start, extra

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return the shadow time, in seconds."""
        return self.start

    def limits(self, supply: Supply) -> Limits:  # noqa: ARG002
        """Return the time, and that any number of copies may be left over."""
        return self.start, ANY

    def fit_beside(self, supply: Any, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start.

        If its first choice is in the first job's way, it is placed beside a reservation of that job.
        """
        now, moment = supply.now, end_of(supply.now, 0)
        if not self.extra:
            return None
        present = supply.present()
        if present.earliest(job, moment) > now:
            return None
        present.reserve(job, now)
        keeps = present.earliest(self.job) <= self.start
        present.withdraw(job)
        if not keeps:
            present.earliest(self.job)
            present.reserve(self.job, self.start)
        fits = present.earliest(job, moment) <= now
        found = present.begin(job) if fits else None
        if not keeps:
            present.withdraw(self.job)
        return found

    def note_start(self, *, started: bool = True) -> None:
        """Do nothing: the profile follows the start."""
