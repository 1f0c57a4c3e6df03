"""What the plan of the last pass is still worth at this one.

A plan follows from who runs until when and from the order of the queue.  While jobs only end,
it can only change where one ended before its time: until its expected end more is free than
was foreseen.  A job in front of which nobody moved starts before then, sooner than was planned,
or stays where it is.  So the reservations in front of the first that moves need no search, and
a plan that nothing has changed is taken up where it ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from simsched.schedule.profiles.profile import profile_of

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.profiles.profile import Profile


class Known(NamedTuple):
    """The first jobs of the queue, their reserved starts, and until when more is free than was foreseen."""

    jobs: list[int]
    starts: list[float]
    until: float


class KeptPlan:
    """The plan of one pass: who ran until when at its end, and what it reserved, in order of the queue.

    `jobs` and `starts` are the reservations, which all lie in `profile`.
    """

    def __init__(self, profile: Profile, known: Known) -> None:
        self.profile = profile
        stand = profile.settle(known)
        self.jobs, self.starts = known.jobs[:stand], known.starts[:stand]
        self._ends: dict[int, float] = {}
        self._free = 0

    def close(self, context: PassContext) -> None:
        """Note the state in which the pass leaves the machine."""
        self._ends = context.plan.expected_ends().copy()
        self._free = context.free_units()

    def more_until(self, context: PassContext) -> float | None:
        """Return until when more is free than was foreseen; None if all may be different.

        It may be once a job overruns, somebody else started one, or the machine changed; or one of
        zero seconds is done, behind whose moment others were planned for this very instant.
        """
        ends, units, durations = context.plan.expected_ends(), context.table.units, context.table.durations
        if context.plan.overrun(context.now) or ends.items() - self._ends.items():
            return None
        gone = self._ends.items() - ends.items()
        if not all(durations[job] for job, _ in gone):
            return None
        if context.free_units() != self._free + sum(units[job] for job, _ in gone):
            return None
        return max([context.now, *(end for _, end in gone)])

    def known(self, jobs: list[int], until: float) -> Known:
        """Return the reservations of these jobs, as far as they stand in the same order."""
        same = 0
        for mine, job in zip(self.jobs, jobs, strict=False):
            if mine != job:
                break
            same += 1
        return Known(jobs[:same], self.starts[:same], until)


def kept_plan_on(context: PassContext, jobs: list[int]) -> KeptPlan:
    """Return the plan of this pass for the first of these jobs, as far as the last plan has it."""
    last: KeptPlan | None = context.kept_plan
    until = None if last is None or context.table.single is None else last.more_until(context)
    known = Known([], [], 0)
    if last is not None and until is not None:
        known = last.known(jobs, until)
        if until == context.now < min(last.starts, default=0) and len(known.jobs) == len(last.jobs):
            last.profile.advance(context.now)
            return last
    context.kept_plan = KeptPlan(profile_of(context), known)
    return context.kept_plan
