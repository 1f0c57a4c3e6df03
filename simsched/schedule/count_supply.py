"""The supply where every request of a workload is a number of units of one type: numbers decide.

Units are nodes, cores, or copies of a slot that all jobs have in common (`JobTable.single`). Whether a job
fits does not depend on where its units are. So EASY needs two numbers, as in the papers: the shadow time,
and the "extra nodes" that are left over then (Mu'alem & Feitelson 2001).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from simsched.match.policies.policy import fixed_order
from simsched.match.search.select import select
from simsched.match.state.free_runs import UnitKind
from simsched.match.state.masks import WORD
from simsched.schedule.profiles.count_profile import CountProfile
from simsched.schedule.profiles.count_reservations import CountReservations
from simsched.schedule.profiles.earliest import earliest_by_counts
from simsched.schedule.profiles.kept_plan import KeptPlan
from simsched.schedule.profiles.profile import Known
from simsched.schedule.supply import Supply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.supply import Shadow

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]

LONG = 48
"""A queue of at least this many jobs is looked at as one vector; a shorter one is faster in a loop."""


class CountSupply(Supply):
    """Free units of one type; there are no closures, since those are in particular places.

    Attributes
    ----------
    kept_plan : the plan of the last pass of a policy that plans again at each pass. It can be rebuilt.
    """

    __slots__ = ("_free", "_requests", "_units", "kept_plan")

    def _prepare(self) -> None:
        table, plan = self.table, self.plan
        single, total = table.single, plan.total
        assert single is not None
        kind = _unit_kind(table, plan, self._policy)
        if kind is not None:
            plan.keep_runs(kind)
        else:
            plan.spell_out()
        # Asked several times in each pass: the sums of a pool type are looked up without a call in Python.
        self._free: Callable[[], int]
        if single == plan.index.target_type and single not in total:
            self._free = partial(getattr, plan, "idle")
        else:
            self._free = partial(total.__getitem__ if single in total else plan.free, single)
        self._units = table.units
        self._requests = cast("Sequence[Request]", table.requests)  # every job that waits has one
        self.kept_plan: KeptPlan | None = None

    def free_units(self) -> int:
        """Return the free units of the counted type."""
        return self._free()

    def could_start(self, job: int) -> bool:
        """Whether the job's units are free."""
        return self._units[job] <= self._free()

    def could_start_each(self, jobs: Integers) -> Bools:
        """Return for each job whether its units are free."""
        could: Bools = self.table.demand[0][jobs] <= self._free()
        return could

    def rules_out_all(self, queue: WaitingQueue) -> bool:
        """Whether each waiting job needs more units than are free."""
        free, units = self._free(), self._units
        jobs = queue.ranks  # under such an order ranks are job numbers
        if not free or len(jobs) < LONG:
            return not free or min(map(units.__getitem__, jobs)) > free
        return super().rules_out_all(queue)

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None."""
        units = self._units[job]
        if units > self._free():
            return None
        selection: Selection | None
        runs: Any = self.plan.runs
        if runs is not None:
            selection = runs.lowest(self._requests[job], units)
            return selection
        # Not `seek`: these requests need no exact search, which could give up.
        selection = select(self._requests[job], self.plan.available, self._policy, self._rng)
        assert selection is not None, "the counts promised more than the matcher found"
        return selection

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> CountShadow:
        """Return the earliest start of a job if no other job starts before it."""
        shadow = CountShadow(job, extra=extra)
        if fixed:
            shadow.time(self)
        return shadow

    def candidates(self, jobs: Sequence[int]) -> Iterable[int]:
        """Return those of a few jobs whose units are free when their turn comes."""
        free = self._free()
        if not free:
            return ()
        if len(jobs) == 1:  # most passes: one job came
            return jobs if self._units[jobs[0]] <= free else ()
        return self._fitting(jobs)

    def _fitting(self, jobs: Iterable[int]) -> Iterator[int]:
        free, units = self._free(), self._units
        for job in jobs:
            if units[job] <= free:
                yield job
                free = self._free()  # the job may have started

    def _beside(self, jobs: Iterable[int], shadow: CountShadow) -> Iterator[int]:
        """Yield the jobs whose units are free when their turn comes and that a shadow does not rule out."""
        free, units, judged, now = self._free(), self._units, self.table.judged, self.now
        time = None
        for job in jobs:
            need = units[job]
            if need > free:
                continue
            if time is None:  # not before a job could start: the search for it is the most expensive step
                time = shadow.time(self)
            if now + judged[job] <= time or need <= shadow.left:
                yield job
                free = self._free()  # the job may have started

    def candidates_behind_first(self, queue: WaitingQueue, shadow: Shadow) -> Iterable[int]:
        """Return the jobs behind the first whose units are free; of a long queue fewer (see `Supply`)."""
        if len(queue.ranks) == 1 or not self._free():
            return ()
        if len(queue.ranks) < LONG and (queue.static or (queue.sorts_parts and queue.stands)):
            jobs = queue.listed(1)
            return self._beside(jobs, shadow) if isinstance(shadow, CountShadow) else self.candidates(jobs)
        if len(queue.ranks) < LONG and queue.sorts_parts:
            return self._fitting(queue.behind_first(self.could_start_each).tolist())
        return self._fitting(super().candidates_behind_first(queue, shadow))

    def profile(self) -> CountProfile:
        """Return the free units over time beside the running jobs."""
        return CountProfile(self)

    def reservations(self) -> CountReservations:
        """Return the free units over time beside the running jobs, for reservations that last."""
        return CountReservations(self)

    def plan_ahead(self, jobs: list[int]) -> KeptPlan:
        """Return a plan for a pass over these jobs, with the old reservations that still hold."""
        last, now = self.kept_plan, self.now
        known = Known([], [], 0)
        if last is not None:
            until = last.more_until(self.plan, self.table, self.free_units(), now)
            if until is not None:
                known = last.known(jobs, until)
                if last.continues(known, now):
                    last.profile.advance(now)
                    return last
        self.kept_plan = KeptPlan(CountProfile(self), known)
        return self.kept_plan


def _unit_kind(table: JobTable, plan: Plan, policy: MatchPolicy) -> UnitKind | None:
    """Return what one unit is if the first units of the machine in graph order make up every allocation."""
    index, single = plan.index, table.single
    requests = [request for request in table.by_kind if request is not None]
    if not policy.static or policy.whole_nodes or policy.highest or single is None:
        return None
    if policy.order is not None and fixed_order(policy, index.target_type, plan.available) is not None:
        return None
    if not all(is_of_units(request, single, index) for request in requests):
        return None
    if single == index.target_type:
        whole = index.on_each_target
        return None if whole is None else UnitKind(single, 1, whole, whole=True)
    pool = index.pool_types[single]
    if not pool.aligned or not pool.uniform or pool.uniform > WORD or not pool.named:
        return None
    return UnitKind(single, pool.uniform, {single: 1}, whole=False)


def is_of_units(request: Request, single: str, index: Index) -> bool:
    """Whether the first free units of a type in graph order serve a request: whole targets, or any units."""
    if single == index.target_type:
        return bool(request.whole and request.every)
    return request.plain is not None and request.plain.unit == single


class CountShadow:
    """The shadow time of the classical rule, and how many units are left over then.

    Attributes
    ----------
    extra : whether other jobs may use units that are left over; without it none are.
    start : the shadow time in seconds; None until it is needed. On a full machine no job needs it.
    left : units that are left over at the shadow time beside the first job (the "extra nodes").
    """

    __slots__ = ("extra", "job", "left", "start", "unsettled")

    def __init__(self, job: int, *, extra: bool) -> None:
        self.job = job
        self.extra = extra
        self.start: float | None = None
        self.left = 0
        # A start takes units, so a job that was refused before it is refused after it.
        self.unsettled = False

    def time(self, supply: Supply) -> float:
        """Return the shadow time, in seconds."""
        if self.start is None:
            units = supply.table.units
            self.start, left = earliest_by_counts(
                supply.plan, units, supply.free_units(), units[self.job], supply.now
            )
            self.left = left if self.extra else 0
        return self.start

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed, because a job overruns."""
        return self.start is not None and self.start < now

    def leaves_room(self, supply: Supply, jobs: Integers) -> Bools:
        """Return which jobs need no more units than are left over."""
        small: Bools = supply.table.demand[0][jobs] <= self.left
        return small

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that needs no more units than are left over, and count them off."""
        need = supply.table.units[job]
        if need > self.left:
            return None
        selection = supply.fit(job)
        if selection is not None:
            self.left -= need
        return selection

    def note_start(self) -> None:
        """Do nothing: `left` is up to date."""

    def forget(self) -> None:
        """Do nothing: a refusal is not kept."""
