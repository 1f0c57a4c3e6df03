"""The supply where requests are for several types of resources, or for particular places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.match.counted_kinds import CountedKinds
from simsched.schedule.graph_shadow import GraphShadow
from simsched.schedule.kernel_shadow import KernelShadow
from simsched.schedule.lasting.footprint import Columns
from simsched.schedule.lasting.gauges import Gauges
from simsched.schedule.lasting.lasting_reservations import LastingReservations
from simsched.schedule.profiles.earliest import earliest_by_bisection, earliest_in_turn
from simsched.schedule.profiles.graph_profile import GraphProfile
from simsched.schedule.profiles.graph_reservations import GraphReservations
from simsched.schedule.profiles.kept_plan import KeptPlan
from simsched.schedule.profiles.profile import Known
from simsched.schedule.shadow import NoShadow
from simsched.schedule.supply import Supply

if TYPE_CHECKING:
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.lasting.pass_room import PassRoom
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.shadow import Shadow


class GraphSupply(Supply):
    """The resources of the graph, with closures of the calendar."""

    __slots__ = ("_gauges", "_running")
    kinds: CountedKinds

    def __init__(self, *facts: Any) -> None:
        super().__init__(*facts)
        self._gauges: tuple[Gauges, Columns] | None = None
        self._running: LastingReservations | None = None
        """The running jobs over time, without reservations, as of the last profile."""

    def _count(self) -> CountedKinds:
        plan, requests = self.plan, self.table.by_kind
        return plan.count(lambda: CountedKinds(requests, plan.available, self._policy))

    def free_units(self) -> int:
        """Return the idle execution targets."""
        return self.plan.idle

    # -- the first job of the queue -----------------------------------------------------------------

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it."""
        if not fixed and self._counts_decide(job):
            return KernelShadow(job, extra=extra)
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
        return self.kinds.counted[self.table.kinds[job]]

    def earliest(self, job: int) -> EarliestStart | None:
        """Return the earliest start of a job, and the state of the cluster then; None if it never fits."""
        if not self.calendar:
            return earliest_by_bisection(self.plan, self.request(job), self.now, self.seek)

        def seek(state: Availability, time: float) -> Selection | None:
            return self.seek_at(job, state, time)

        return earliest_in_turn(self.plan, self.calendar, self.now, seek)

    # -- over time ------------------------------------------------------------------------------

    def profile(self) -> GraphProfile | PassRoom:
        """Return the free units of each leaf pool over time beside the running jobs.

        Where counts decide, the running jobs are followed from pass to pass.
        """
        plan, kept = self.plan, self._running
        if not self.is_steady or not plan.counts_only or plan.overrun(self.now) or not self._counts_suffice():
            self._running = None
            return GraphProfile(self)
        if kept is None or not kept.follow((), moved=True) or not kept.knows_ends():
            made = self.reservations()
            self._running = kept = made if isinstance(made, LastingReservations) else None
        if kept is None:
            return GraphProfile(self)
        kept.close(changed=True)
        return kept.ahead()

    def _counts_suffice(self) -> bool:
        """Whether counts decide for each kind, and none claims a target shared without any of its units."""
        return self.kinds.all_counted and self.kinds.all_take_units

    def reservations(self) -> LastingReservations | GraphReservations:
        """Return the free units of each leaf pool over time, for reservations that last."""
        plan = self.plan
        if not self.is_steady or not plan.counts_only:
            return GraphReservations(self)
        if self._gauges is None:
            index, kinds = plan.available.index, self.table.by_kind
            gauges = Gauges({kind: r for kind, r in enumerate(kinds) if r is not None}, index, len(kinds))
            self._gauges = gauges, Columns(index, gauges, self.table.types)
        gauges, columns = self._gauges
        # A claim on a vertex above targets that are down takes units that show once they are up again.
        if gauges.reaches_above and not plan.all_up:
            return GraphReservations(self)
        return LastingReservations(self, gauges, columns)

    def plan_ahead(self, jobs: list[int]) -> KeptPlan:  # noqa: ARG002
        """Return an empty plan: the changes since the last pass are not known by leaf pool."""
        return KeptPlan(self.profile(), Known([], [], 0))
