"""The supply where the matcher decides: sums of free units rule jobs out, and the graph is searched last.

A reservation is a time, not a set of vertices: at the shadow time the first job may get any resources that
fit. So the matcher decides whether a later job delays it: the later job's resources are claimed on the state
of the shadow time, and the first job must still fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.schedule.lasting.footprint import Columns
from simsched.schedule.lasting.gauges import Gauges
from simsched.schedule.lasting.lasting_reservations import LastingReservations
from simsched.schedule.profiles.earliest import earliest_by_bisection, earliest_in_turn
from simsched.schedule.profiles.graph_profile import GraphProfile
from simsched.schedule.profiles.graph_reservations import GraphReservations
from simsched.schedule.profiles.kept_plan import KeptPlan
from simsched.schedule.profiles.plan import units_in
from simsched.schedule.profiles.profile import Known
from simsched.schedule.profiles.remainder import beside, has_free_units
from simsched.schedule.supply import NoShadow, Supply

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.supply import Shadow

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


class GraphSupply(Supply):
    """The resources of the graph, with closures of the calendar."""

    __slots__ = ("_gauges",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._gauges: tuple[Gauges, Columns] | None = None

    def free_units(self) -> int:
        """Return the idle execution targets."""
        return self.plan.idle

    def could_start(self, job: int) -> bool:
        """Whether the sums of free units do not rule out that the job starts now."""
        free = self.plan.free
        demand = self.table.demand[:, job].tolist()
        return all(need <= free(type_) for type_, need in zip(self.table.types, demand, strict=True))

    def could_start_each(self, jobs: Integers) -> Bools:
        """Return for each job the answer of `could_start`."""
        free = np.array([self.plan.free(type_) for type_ in self.table.types], dtype=np.int64)
        return _need_at_most(self.table.demand[:, jobs], free)

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None.

        A request that failed is not matched again until something is released. With closures it is
        matched again each time, because the answer also depends on the job's requested time.
        """
        kind = self.table.kinds[job]
        if kind in self.failed:
            return None
        selection = self.seek_at(job, self.plan.available, self.now)
        if selection is None and not self.calendar:
            self.failed.add(kind)
        return selection

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it."""
        found = self._earliest(job)
        return NoShadow(job) if found is None else GraphShadow(job, found, extra=extra, fixed=fixed)

    def _earliest(self, job: int) -> EarliestStart | None:
        if not self.calendar:
            return earliest_by_bisection(self.plan, self.request(job), self.now, self.seek)

        def seek(state: Availability, time: float) -> Selection | None:
            return self.seek_at(job, state, time)

        return earliest_in_turn(self.plan, self.now, self.calendar.reopenings(self.now), seek)

    def profile(self) -> GraphProfile:
        """Return the free units of each leaf pool over time beside the running jobs."""
        return GraphProfile(self)

    def reservations(self) -> LastingReservations | GraphReservations:
        """Return the free units of each leaf pool over time, for reservations that last."""
        plan = self.plan
        if not self.is_steady or not plan.counts_only or plan.overrun(self.now):
            return GraphReservations(self)
        if self._gauges is None:
            index, kinds = plan.available.index, self.table.kinds
            requests = {kind: r for kind, r in zip(kinds, self.table.requests, strict=True) if r is not None}
            gauges = Gauges(requests, index, max(kinds, default=-1) + 1)
            self._gauges = gauges, Columns(index, gauges, self.table.types)
        gauges, columns = self._gauges
        # A claim on a vertex above targets that are down takes units that show once they are up again.
        if gauges.reaches_above and not plan.all_up:
            return GraphReservations(self)
        return LastingReservations(self, gauges, columns)

    def plan_ahead(self, jobs: list[int]) -> KeptPlan:  # noqa: ARG002
        """Return an empty plan: the changes since the last pass are not known by leaf pool."""
        return KeptPlan(GraphProfile(self), Known([], [], 0))


class GraphShadow:
    """The shadow time of the first job, and the state of the cluster then.

    Attributes
    ----------
    start : the shadow time in seconds.
    available : the state at the shadow time, with the claims of jobs that were started beside it.
    selection : resources on which the first job fits in that state.
    extra : whether other jobs may run beyond the shadow time.
    fixed : whether the time is kept from pass to pass. Then claims of other jobs in it stay, even after
        these jobs have ended, and a selection must be free in it.
    """

    __slots__ = (
        *("_left", "_refused"),
        *("available", "extra", "fixed", "job", "selection", "start", "unsettled"),
    )

    def __init__(self, job: int, found: EarliestStart, *, extra: bool, fixed: bool) -> None:
        self.job = job
        self.start = found.start
        self.available = found.available
        self.selection = found.selection
        self.extra = extra
        self.fixed = fixed
        self.unsettled = False
        self._left: Availability | None = None
        """The part of the state of now that the reservation leaves; None: not known."""
        self._refused: set[int] = set()
        """Kinds of requests that are in the first job's way."""

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return the shadow time, in seconds."""
        return self.start

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed, because a job overruns."""
        return self.start < now

    def note_start(self) -> None:
        """Note that a job was started: refused jobs may now get other vertices that fit."""
        self.unsettled = True
        self._left = None
        self._refused.clear()

    def forget(self) -> None:
        """Forget which jobs were refused, before all jobs are considered again."""
        self.unsettled = False
        self._left = None
        self._refused.clear()

    def leaves_room(self, supply: Supply, jobs: Integers) -> Bools:
        """Return which jobs are not ruled out, by sums, beside the first job at the shadow time."""
        if not self.extra:
            return np.zeros(len(jobs), dtype=np.bool_)
        demand = supply.table.demand
        then = np.array([units_in(self.available, type_) for type_ in supply.table.types], dtype=np.int64)
        return _need_at_most(demand[:, jobs], then - demand[:, self.job])

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start.

        If the match policy's first choice delays the first job, the job is matched once more, on the
        resources that the reservation leaves. Equal requests share a refusal.
        """
        kind = supply.table.kinds[job]
        if not self.extra or kind in self._refused:
            return None
        selection = supply.fit(job)
        if selection is None or self._leaves_start(supply, selection):
            return selection
        if self._left is None or supply.calendar:
            self._left = beside(supply.plan.available, self.available, self.selection)
        second = supply.seek_at(job, self._left, supply.now)
        if second is not None and self._leaves_start(supply, second):
            return second
        if supply.is_steady:
            self._refused.add(kind)
        return None

    def _leaves_start(self, supply: Supply, selection: Selection) -> bool:
        """Claim a selection at the shadow time if the first job still fits then; return whether it does."""
        # A fixed state keeps claims of jobs that have ended since, so it may lack units that are free now.
        if self.fixed and not has_free_units(self.available, selection):
            return False
        self.available.claim(selection)
        chosen = supply.seek_at(self.job, self.available, self.start)
        if chosen is None:
            self.available.release(selection)
            return False
        self.selection = chosen
        return True


def _need_at_most(demand: Integers, units: Integers) -> Bools:
    """Return for each column of demand whether it is within these units of each type."""
    within: Bools = np.logical_and.reduce(demand <= units[:, None], axis=0)
    return within
