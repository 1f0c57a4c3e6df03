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
    from simsched.schedule.pass_context import Desk
    from simsched.schedule.profiles.profile import Profile


class Known(NamedTuple):
    """The first jobs of the queue, their reserved starts, and until when more is free than was foreseen."""

    jobs: list[int]
    starts: list[float]
    until: float


class Outlook:
    """The plan of one pass: who ran until when at its end, and what it reserved, in order of the queue.

    `jobs` and `starts` are the reservations, which all lie in `profile`.
    """

    def __init__(self, profile: Profile, known: Known) -> None:
        self.profile = profile
        stand = profile.settle(known)
        self.jobs, self.starts = known.jobs[:stand], known.starts[:stand]
        self._ends: dict[int, float] = {}
        self._free = 0

    def close(self, desk: Desk) -> None:
        """Note the state in which the pass leaves the machine."""
        self._ends = desk.plan.expected_ends().copy()
        self._free = desk.free_units()

    def more_until(self, desk: Desk) -> float | None:
        """Return until when more is free than was foreseen; None if all may be different.

        It may be once a job overruns, somebody else started one, or the machine changed; or one of
        zero seconds is done, behind whose moment others were planned for this very instant.
        """
        ends, units, durations = desk.plan.expected_ends(), desk.book.units, desk.book.durations
        if desk.plan.overrun(desk.now) or ends.items() - self._ends.items():
            return None
        gone = self._ends.items() - ends.items()
        if not all(durations[job] for job, _ in gone):
            return None
        if desk.free_units() != self._free + sum(units[job] for job, _ in gone):
            return None
        return max([desk.now, *(end for _, end in gone)])

    def known(self, jobs: list[int], until: float) -> Known:
        """Return the reservations of these jobs, as far as they stand in the same order."""
        same = 0
        for mine, job in zip(self.jobs, jobs, strict=False):
            if mine != job:
                break
            same += 1
        return Known(jobs[:same], self.starts[:same], until)


def outlook_on(desk: Desk, jobs: list[int]) -> Outlook:
    """Return the plan of this pass for the first of these jobs, as far as the last plan has it."""
    last: Outlook | None = desk.outlook
    until = None if last is None or desk.book.single is None else last.more_until(desk)
    known = Known([], [], 0)
    if last is not None and until is not None:
        known = last.known(jobs, until)
        if until == desk.now < min(last.starts, default=0) and len(known.jobs) == len(last.jobs):
            last.profile.advance(desk.now)
            return last
    desk.outlook = Outlook(profile_of(desk), known)
    return desk.outlook
