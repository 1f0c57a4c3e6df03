"""The supply where every request of a workload is a number of units of one type: numbers decide.

Units are nodes, cores, or copies of a slot that all jobs have in common (`JobTable.single`). Whether a job
fits does not depend on where its units are. So the machine is one target of the kernel (`FlatKinds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.match.flat_kinds import FlatKinds
from simsched.match.policies.policy import fixed_order
from simsched.match.search.counts import capacity
from simsched.match.search.select import select
from simsched.match.state.masks import WORD
from simsched.match.state.run_selection import RunSelection, UnitKind
from simsched.schedule.kernel_shadow import KernelShadow
from simsched.schedule.reservations import CountedReservations
from simsched.schedule.supply import FixedShadow, Supply

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Request
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.reservations import Reservations
    from simsched.schedule.supply import Shadow


class CountSupply(Supply):
    """Free units of one type; there are no closures, since those are in particular places."""

    def __init__(self, *facts: Any) -> None:
        super().__init__(*facts)
        kind = _unit_kind(self.table, self.plan, self.policy)
        if kind is not None:
            self.plan.keep_runs(kind)
        else:
            assert self.plan.available

    def _made_kinds(self) -> FlatKinds:
        table, plan = self.table, self.plan
        single, content = table.single, table.content
        assert single is not None
        requests, policy = table.by_kind, self.policy
        units = [0 if request is None else _units(request, content) for request in requests]

        def free() -> int:
            return plan.free(single) if content is None else capacity(content, plan.available).total

        def selection(kind: int, job: int) -> Any:  # a `RunSelection` has what policies look at
            request, runs = requests[kind], plan.runs
            assert request is not None
            if runs is not None:
                made: Any = RunSelection(runs.kind, request, runs.lowest(units[kind]), units[kind])
            else:
                # Not `seek`: these requests need no exact search, which could give up.
                made = select(request, plan.available, policy, self.draws(job))
                assert made is not None, "the counts promised more than the matcher found"
            return made

        return FlatKinds(single, plan.index.target_type, units, free, selection)

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it."""
        shadow = KernelShadow(job, extra=extra)
        return FixedShadow(job, *shadow.limits(self)) if fixed else shadow

    def shadow_of_states(self, job: int, *, extra: bool, fixed: bool = False) -> Shadow:
        """Return the same: numbers decide."""
        return self.shadow(job, extra=extra, fixed=fixed)

    def reservations(self) -> Reservations:
        """Return the running jobs over time, for reservations that last."""
        return CountedReservations(self)

    def ahead(self) -> Reservations:
        """Return the running jobs over time, for the plan of one pass."""
        return CountedReservations(self, self._ahead())


def _units(request: Request, content: Content | None) -> int:
    """Return the units of a request: copies of the common slot, or what its slots have of the type."""
    slot = request.needs[0]
    return slot.amount if content is not None else slot.amount * slot.children[0].amount


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
