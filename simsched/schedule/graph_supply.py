"""The supply where requests are for several types of resources, or for particular places."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from simsched.match.counted_kinds import CountedKinds
from simsched.schedule.graph_shadow import GraphShadow
from simsched.schedule.kernel_shadow import KernelShadow
from simsched.schedule.profile import Profile, end_of
from simsched.schedule.profile_shadow import ProfileShadow
from simsched.schedule.profiles.earliest import earliest_by_bisection, earliest_in_turn
from simsched.schedule.profiles.gap import NEVER
from simsched.schedule.profiles.general_reservations import GeneralReservations
from simsched.schedule.reservations import CountedReservations
from simsched.schedule.supply import NoShadow, Supply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Integers
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.reservations import Reservations
    from simsched.schedule.supply import Shadow


class GraphSupply(Supply):
    """The resources of the graph, with closures of the calendar."""

    def _made_kinds(self) -> CountedKinds:
        return CountedKinds(self.table.by_kind, self.plan.available, self.policy)

    # -- now ------------------------------------------------------------------------------------

    def _matched(self, job: int, kind: int) -> Selection | None:
        if not self._counts_beside_closures():
            return Supply._matched(self, job, kind)
        present = self.present()
        fits = present.earliest(job, end_of(self.now, 0)) <= self.now
        return present.begin(job) if fits else None

    def candidates(self, jobs: Integers, shadow: Shadow) -> Iterator[int]:
        """Yield those of some jobs that fit when it is their turn."""
        if self._counts_beside_closures():
            return self._beside_closures(jobs)
        return Supply.candidates(self, jobs, shadow)

    def _beside_closures(self, jobs: Integers) -> Iterator[int]:
        kinds, seconds = self.table.kinds_array, self.table.durations_array
        at = self._present().next_now(jobs, 0, kinds, seconds)
        while at < len(jobs):
            yield int(jobs[at])
            at = self._present().next_now(jobs, at + 1, kinds, seconds)

    def present(self) -> CountedReservations:
        """Return the running jobs over time beside the closures, on which reservations are tried."""
        return CountedReservations(self, self._present())

    # -- the first job of the queue -----------------------------------------------------------------

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it."""
        if not fixed and self._counts_decide(job):
            return KernelShadow(job, extra=extra)
        if not fixed and self._counts_beside_closures() and self.table.judged is self.table.durations:
            start = self.present().earliest(job)
            return ProfileShadow(job, start, extra=extra) if start < NEVER else NoShadow(job)
        return self.shadow_of_states(job, extra=extra, fixed=fixed)

    def shadow_of_states(self, job: int, *, extra: bool, fixed: bool = False) -> Shadow:
        """Return the same by the general search on the states of later times."""
        found = self.earliest(job)
        return NoShadow(job) if found is None else GraphShadow(job, found, extra=extra, fixed=fixed)

    def _counts_decide(self, job: int) -> bool:
        """Whether counts decide the shadow time of a job, whatever the match policy chooses."""
        # Where a candidate is judged by its actual run time, its claim may outlast the shadow time that it
        # was started before; then the state at that time is looked at as a whole.
        if not self.is_steady or self.table.judged is not self.table.durations:
            return False
        return self.kinds().counted[self.table.kinds[job]]

    def earliest(self, job: int) -> EarliestStart | None:
        """Return the earliest start of a job, and the state of the cluster then; None if it never fits."""
        if not self.closes:
            return earliest_by_bisection(self.plan, self.request(job), self.now, partial(self.seek, job))

        def seek(state: Availability, time: float) -> Selection | None:
            return self.seek_at(job, state, time)

        return earliest_in_turn(self.plan, self.calendar, self.now, seek)

    # -- over time ------------------------------------------------------------------------------

    def reservations(self) -> Reservations:
        """Return the running jobs over time, for reservations that last."""
        return CountedReservations(self) if self._counts_all() else GeneralReservations(self)

    def ahead(self) -> Reservations:
        """Return the running jobs over time, for the plan of one pass."""
        return CountedReservations(self, self._ahead()) if self._counts_all() else GeneralReservations(self)

    def components(self, jobs: Integers) -> Integers:
        """Return a number for each job; jobs with different ones share no targets, even through others."""
        kinds: Any = self.kinds()
        if not self.is_steady or not kinds.all_counted:
            return super().components(jobs)
        found: Integers = kinds.components[self.table.kinds_array[jobs]]
        return found

    def _counts_all(self) -> bool:
        """Whether the kernel counts all requests, has all claims, and closures are of whole targets."""
        kinds, calendar, table = self.kinds(), self.calendar, self.table
        # Of a kind that it counts and does not place, the matcher chooses numbers of units.
        decides = kinds.all_placed or (kinds.all_counted and self.plan.counts_only)
        if not self.policy.is_steady or not decides or kinds.kernel.shared:
            return False
        # By its limit, and not by a prediction, a job has to end before its targets close.
        return not calendar or (calendar.of_targets and table.durations is table.limits)

    def _counts_beside_closures(self) -> bool:
        """Whether there are closures, and counts decide nevertheless."""
        return self.closes and self._counts_all()

    def _profile(self) -> Profile:
        """Return a profile without closures and running jobs, with targets that are down and will be up."""
        kinds: Any = self.kinds()
        plan = self.plan
        back = self.calendar.back(plan.available, self.now, NEVER, plan.outages)
        return Profile(kinds.kernel, kinds.may(back), kinds.units(back))
