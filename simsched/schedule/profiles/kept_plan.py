"""`KeptPlan`: the plan of the last pass, and how much of it is still right at this one.

A plan follows from the expected ends of the running jobs and from the order of the queue. While jobs only
end, it can change only where a job ended early: until its expected end more is free than the plan
assumed. If no job before it has moved, a job either starts before that time, earlier than planned, or keeps
its start. So the reservations before the first job that moves need no search, and a plan that nothing has
changed is continued at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.protocols import Known

if TYPE_CHECKING:
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.profiles.protocols import PassProfile


class KeptPlan:
    """The reservations of one pass in the order of the queue, and the running jobs at its end.

    Attributes
    ----------
    profile : availability over time beside the reservations.
    jobs, starts : the jobs with reservations, and their starts in seconds.
    """

    def __init__(self, profile: PassProfile, known: Known) -> None:
        self.profile = profile
        settled = profile.settle(known)
        self.jobs, self.starts = known.jobs[:settled], known.starts[:settled]
        self._ends: dict[int, float] = {}
        self._free = 0

    def close(self, plan: Plan, free: int) -> None:
        """Note the running jobs and the free units at the end of the pass."""
        self._ends = plan.expected_ends().copy()
        self._free = free

    def more_until(self, plan: Plan, table: JobTable, free: int, now: float) -> float | None:
        """Return the time until which more is free than was planned; None if all may be different.

        All may be different if a job overruns, another policy started a job, or the machine changed. The
        same holds after a job of zero seconds: other jobs were planned right after it, at this instant.
        """
        ends, units, durations = plan.expected_ends(), table.units, table.durations
        if plan.overrun(now) or ends.items() - self._ends.items():
            return None
        gone = self._ends.items() - ends.items()
        if not all(durations[job] for job, _ in gone):
            return None
        if free != self._free + sum(units[job] for job, _ in gone):
            return None
        return max([now, *(end for _, end in gone)])

    def known(self, jobs: list[int], until: float) -> Known:
        """Return the reservations of these jobs, up to the first that was at another place of the queue."""
        same = 0
        for mine, job in zip(self.jobs, jobs, strict=False):
            if mine != job:
                break
            same += 1
        return Known(jobs[:same], self.starts[:same], until)

    def continues(self, known: Known, now: float) -> bool:
        """Whether nothing has changed: all reservations are known, none begins, and nothing ended early."""
        return known.until == now < min(self.starts, default=0) and len(known.jobs) == len(self.jobs)
