"""The supply where the matcher decides.

The kernel counts most kinds of requests, places them, and computes the shadow time of the first job
(`match.kernel`). Sums of free units rule out others, and the general search decides (`search.select`,
`graph_shadow`). With closures ahead the answer depends on the requested time, too, and the search is asked
for each job.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

import numpy as np

from simsched.schedule.graph_shadow import GraphShadow, need_at_most
from simsched.schedule.kernel_shadow import KernelShadow
from simsched.schedule.lasting.footprint import Columns
from simsched.schedule.lasting.gauges import Gauges
from simsched.schedule.lasting.lasting_reservations import LastingReservations
from simsched.schedule.profiles.earliest import earliest_by_bisection, earliest_in_turn
from simsched.schedule.profiles.gap import NEVER
from simsched.schedule.profiles.graph_profile import GraphProfile
from simsched.schedule.profiles.graph_reservations import GraphReservations
from simsched.schedule.profiles.kept_plan import KeptPlan
from simsched.schedule.profiles.profile import Known
from simsched.schedule.supply import NoShadow, Supply

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from simsched.match.counted_kinds import CountedKinds
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.lasting.pass_room import PassRoom
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.supply import Shadow

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


class GraphSupply(Supply):
    """The resources of the graph, with closures of the calendar."""

    __slots__ = ("_gauges", "_running", "kinds")
    kinds: CountedKinds
    """The kinds of requests that the kernel counts, made when they are first asked for."""

    def _prepare(self) -> None:
        self._gauges: tuple[Gauges, Columns] | None = None
        self._running: LastingReservations | None = None
        """The running jobs over time, without reservations, as of the last profile."""

    if not TYPE_CHECKING:  # else any name would be an attribute for the type checker

        def __getattr__(self, name: str) -> CountedKinds:
            """Make `kinds`; from then on it is an attribute like others, which is faster than a property."""
            if name != "kinds":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.kinds = self.plan.count(self.table.by_kind, self._policy)
            return self.kinds

    # -- now ------------------------------------------------------------------------------------

    def free_units(self) -> int:
        """Return the idle execution targets."""
        return self.plan.idle

    def could_start(self, job: int) -> bool:
        """Whether counts and sums of free units do not rule out that the job starts now."""
        kinds, kind = self.kinds, self.table.kinds[job]
        if kinds.counted[kind] and not self.calendar:
            return kinds.kernel.fits(kind)
        free = self.plan.free
        demand = self.table.demand[:, job].tolist()
        return all(need <= free(type_) for type_, need in zip(self.table.types, demand, strict=True))

    def could_start_each(self, jobs: Integers) -> Bools:
        """Return for each job the answer of `could_start`."""
        if self.calendar:
            return self._within_sums(jobs)
        could: Bools = self.kinds.fitting()[self.table.kinds_array[jobs]]
        if not self.kinds.all_counted:
            some = could.nonzero()[0]
            could[some] = self._within_sums(jobs[some])
        return could

    def _within_sums(self, jobs: Integers) -> Bools:
        """Return which jobs the sums of free units do not rule out."""
        free = np.array([self.plan.free(type_) for type_ in self.table.types], dtype=np.int64)
        return need_at_most(self.table.demand[:, jobs], free)

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None.

        A request that failed is not matched again until something is released. With closures it is
        matched again each time, because the answer also depends on the job's requested time.
        """
        kind = self.table.kinds[job]
        if kind in self.failed:
            return None
        if self.calendar:
            return self.seek_at(job, self.plan.available, self.now)
        kinds = self.kinds
        if kinds.placed[kind]:
            return kinds.selection(kind) if kinds.kernel.place(kind) else None
        if kinds.counted[kind] and not kinds.kernel.fits(kind):
            return None
        selection = self.seek(self.request(job), self.plan.available)
        if selection is None:
            self.failed.add(kind)
        return selection

    # -- the first job of the queue -----------------------------------------------------------------

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it."""
        if not fixed and self._counts_decide(job):
            return cast("Shadow", KernelShadow(job, extra=extra))
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

    def candidates_behind_first(self, queue: WaitingQueue, shadow: Shadow) -> Iterable[int]:
        """Return the jobs behind the first that nothing rules out, now and beside a shadow, in order.

        A job is left out if it is ruled out by the time of its turn.
        """
        beside: object = shadow
        if self.calendar or not isinstance(beside, KernelShadow):
            return super().candidates_behind_first(queue, shadow)
        if not queue.sorts_parts:
            return self._in_order(queue.jobs(1), beside)
        parts = self.parts_behind_first(queue, shadow)
        return chain.from_iterable(self._in_order(np.array(part, np.int64), beside) for part in parts)

    def _in_order(self, jobs: Integers, shadow: KernelShadow) -> Iterator[int]:
        """Yield those of some jobs that may start when it is their turn."""
        kernel, now, many = self.kinds.kernel, self.now, len(jobs)
        kinds, judged = self.table.kinds_array, self.table.judged_array
        at = kernel.next(jobs, 0, kinds, judged, now, NEVER)
        if at < many:  # the shadow time need not be known before a job could start
            time = shadow.time(self)
            while (at := kernel.next(jobs, at, kinds, judged, now, time)) < many:
                yield jobs.item(at)
                at += 1

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
