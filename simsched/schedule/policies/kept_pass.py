"""`KeptPass`: the plan of the last backfill pass, with which the next one goes on while little has changed.

Reservations follow from the running jobs and from the jobs before them. If no job has ended or started since,
the jobs that were planned first keep their reservations, and a job that they kept from starting still
waits. So after a submission only the jobs from the new one on are planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.gap import Gap
    from simsched.schedule.profiles.protocols import PassProfile


class KeptPass:
    """Waiting jobs in order, their reservations, and the running jobs beside which these were planned.

    Attributes
    ----------
    profile : availability over time beside the reservations; None: no job needed it.
    jobs : the jobs that were tested and still wait.
    reserved : the number of reservations.
    until : the time in seconds from which on a job must be planned in another way.
    """

    def __init__(self, context: PassContext) -> None:
        self.profile: PassProfile | None = None
        self.jobs: list[int] = []
        self.reserved = 0
        self.until = NEVER
        self._gaps: list[tuple[Gap, float] | None] = []
        self._ends: dict[int, float] = {}
        self._lasts = context.supply.is_steady and context.limits is None

    def test(self, job: int, until: float = NEVER) -> None:
        """Note a job that was tested and has no reservation; `until` a time it would have none again."""
        self.jobs.append(job)
        self._gaps.append(None)
        self.until = min(self.until, until)

    def reserve(self, job: int, gap: Gap, end: float) -> None:
        """Reserve the targets of a gap for a job, until a time in seconds."""
        assert self.profile is not None
        self.profile.reserve_targets(job, gap, end)
        self.jobs.append(job)
        self._gaps.append((gap, end))
        self.reserved += 1
        self.until = min(self.until, gap.start)

    def close(self, context: PassContext, *, changed: bool) -> None:
        """Keep the plan for the next pass; not after a start, beside which jobs may be planned otherwise."""
        self._ends = context.plan.expected_ends().copy()
        context.supply.kept_pass = self if self._lasts and not changed else None

    def follow(self, context: PassContext, jobs: Sequence[int]) -> KeptPass:
        """Return the part of the plan that holds for a pass that tests these jobs."""
        plan, now, profile = context.plan, context.now, self.profile
        same = 0
        if now < self.until and not plan.overrun(now) and plan.expected_ends() == self._ends:
            while same < min(len(self.jobs), len(jobs)) and self.jobs[same] == jobs[same]:
                same += 1
        if same and same == len(self.jobs) and profile is not None and profile.follows:
            profile.advance(now)
            return self
        found = KeptPass(context)
        if same and profile is not None:
            found.profile = context.supply.profile()
            for job, known in zip(jobs[:same], self._gaps, strict=False):
                if known is None:
                    found.test(job, self.until)
                else:
                    found.reserve(job, *known)
        return found
