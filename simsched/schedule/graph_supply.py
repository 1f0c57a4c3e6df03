"""The supply where the matcher decides: counts and sums rule jobs out, and the graph is searched last.

For most kinds of requests one count decides whether they fit, and these counts are kept for all kinds at once
(`kind_counts`). So the matcher is asked only for a job that starts or that would run beyond the shadow time.
With closures ahead the answer depends on the requested time, too, and the matcher is asked for each job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from simsched.schedule.counted_shadow import CountedShadow
from simsched.schedule.graph_shadow import GraphShadow, need_at_most
from simsched.schedule.kind_counts import KindCounts
from simsched.schedule.lasting.footprint import Columns
from simsched.schedule.lasting.gauges import Gauges
from simsched.schedule.lasting.lasting_reservations import LastingReservations
from simsched.schedule.profiles.earliest import earliest_by_bisection, earliest_in_turn
from simsched.schedule.profiles.graph_profile import GraphProfile
from simsched.schedule.profiles.graph_reservations import GraphReservations
from simsched.schedule.profiles.kept_plan import KeptPlan
from simsched.schedule.profiles.profile import Known
from simsched.schedule.supply import NoShadow, Supply

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from simsched.match.search.placements import Change
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.lasting.pass_room import PassRoom
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.supply import Shadow

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


FEW = 12
"""Up to this many candidates are judged one by one."""
SOME = 128
"""Candidates that are more than this are ruled out as one vector."""


class GraphSupply(Supply):
    """The resources of the graph, with closures of the calendar."""

    __slots__ = ("_changes", "_gauges", "_running", "_shadow", "kinds")
    kinds: KindCounts
    """Whether each kind of request fits now, made when it is first asked for."""

    def _prepare(self) -> None:
        self._gauges: tuple[Gauges, Columns] | None = None
        self._running: LastingReservations | None = None
        """The running jobs over time, without reservations, as of the last profile."""
        self._shadow: CountedShadow | None = None
        self._changes: dict[int, tuple[Selection, Change | None]] = {}
        """Running job → its claim, and the difference that its release makes to rows."""

    if not TYPE_CHECKING:  # else any name would be an attribute for the type checker

        def __getattr__(self, name: str) -> KindCounts:
            """Make `kinds`; from then on it is an attribute like others, which is faster than a property."""
            if name != "kinds":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.kinds = KindCounts(self.table, self.plan.available, self._policy)
            return self.kinds

    # -- now ------------------------------------------------------------------------------------

    def free_units(self) -> int:
        """Return the idle execution targets."""
        return self.plan.idle

    def could_start(self, job: int) -> bool:
        """Whether counts and sums of free units do not rule out that the job starts now."""
        if not self.calendar:
            kinds, kind = self.kinds, self.table.kinds[job]
            if kinds.numbers[kind] >= 0:
                return kinds.fits(kind)
        free = self.plan.free
        demand = self.table.demand[:, job].tolist()
        return all(need <= free(type_) for type_, need in zip(self.table.types, demand, strict=True))

    def could_start_each(self, jobs: Integers) -> Bools:
        """Return for each job the answer of `could_start`."""
        if not self.calendar:
            kinds = self.kinds
            could: Bools = kinds.fitting()[kinds.of[jobs]]
            if kinds.all_decided or not len(jobs):
                return could
            some = could.nonzero()[0]
            could[some] = self._within_sums(jobs[some])
            return could
        return self._within_sums(jobs)

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
        if self.calendar:
            return None if kind in self.failed else self.seek_at(job, self.plan.available, self.now)
        if kind in self.failed or not self.kinds.fits(kind):
            return None
        selection = self.seek(self.request(job), self.plan.available)
        if selection is None:
            self.failed.add(kind)
        return selection

    # -- the first job of the queue -----------------------------------------------------------------

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it."""
        kept = self._shadow
        again = kept is not None and kept.job == job and kept.extra == extra
        # Whether counts suffice for a job depends on the calendar and on facts that are fixed during a run.
        if not fixed and (not self.calendar if again else self._counts_decide(job)):
            if kept is None or not again:
                kept = self._shadow = CountedShadow(job, extra=extra)
            kept.expire()
            return cast("Shadow", kept)
        found = self.earliest(job)
        return NoShadow(job) if found is None else GraphShadow(job, found, extra=extra, fixed=fixed)

    def trial_shadow(self, job: int) -> Shadow:
        """Return the shadow of a job, and not the one that is kept from pass to pass."""
        if not self._counts_decide(job):
            return super().trial_shadow(job)
        found = cast("Shadow", CountedShadow(job, extra=True))
        found.time(self)
        return found

    def _counts_decide(self, job: int) -> bool:
        """Whether counts decide the shadow time of a job, whatever the match policy chooses."""
        # Where a candidate is judged by its actual run time, its claim may outlast the shadow time that it
        # was started before; then the state at that time is looked at as a whole.
        if not self.is_steady or self.table.judged is not self.table.durations:
            return False
        return self.kinds.numbers[self.table.kinds[job]] >= 0

    def candidates(self, jobs: Sequence[int]) -> list[int]:
        """Return those of a few jobs that counts and sums of free units do not rule out."""
        if self.calendar:
            return [job for job in jobs if self.could_start(job)]
        kinds = self.kinds
        found = kinds.that_fit(jobs, self.table.kinds)
        return found if kinds.all_decided else [job for job in found if self.could_start(job)]

    def candidates_behind_first(self, queue: WaitingQueue, shadow: Shadow) -> Iterable[int]:
        """Return the jobs behind the first that nothing rules out, now and beside a shadow, in order.

        Of many, a job is left out if it is ruled out by the time of its turn.
        """
        if self.calendar or queue.sorts_parts:
            return super().candidates_behind_first(queue, shadow)
        shadow.forget()
        jobs: list[int] | None
        if len(queue.ranks) <= FEW:
            jobs = self.candidates(queue.listed(1))
        elif self._groups(queue):
            jobs = queue.group(self.kinds).jobs_that_fit(SOME)
            if jobs and jobs[0] == queue.first:
                del jobs[0]
        else:
            jobs = None
        if jobs is None:
            behind = queue.jobs(1)
            behind = behind[self.could_start_each(behind).nonzero()[0]]
            if len(behind) > SOME:
                return self._many_beside(behind, shadow)
            jobs = behind.tolist()
        if not jobs:
            return ()
        return self._beside(jobs, shadow) if len(jobs) <= FEW else self._some_beside(jobs, shadow)

    def may_start_any(self, queue: WaitingQueue) -> bool:
        """Whether counts do not rule out every waiting job; true where they do not decide."""
        if len(queue.ranks) <= FEW or not self._groups(queue):
            return True
        return bool(queue.group(self.kinds).fitting())

    def _groups(self, queue: WaitingQueue) -> bool:
        """Whether the queue keeps its jobs by kind: counts decide for all, and each keeps its place."""
        return queue.static and not self.calendar and self.kinds.all_decided

    def _beside(self, jobs: list[int], shadow: Shadow) -> list[int]:
        """Return those of a few jobs that end by the shadow time or that sums do not rule out then."""
        latest, judged = shadow.time(self) - self.now, self.table.judged
        lets_all_pass = getattr(shadow, "lets_all_pass", None)
        if lets_all_pass is not None and lets_all_pass(self):
            return jobs
        late = [job for job in jobs if judged[job] > latest]
        if not late:
            return jobs  # what is left over at that time need not be known
        room = shadow.leaves_room(self, np.array(late, dtype=np.int64)).tolist()
        if all(room):
            return jobs
        out = {job for job, within in zip(late, room, strict=True) if not within}
        return [job for job in jobs if job not in out]

    def _some_beside(self, jobs: list[int], shadow: Shadow) -> Iterator[int]:
        """Yield those of some jobs that are not ruled out beside a shadow, nor by the time of their turn."""
        jobs = self._beside(jobs, shadow)
        latest, judged = shadow.time(self) - self.now, self.table.judged
        of, kinds = self.table.kinds, self.kinds
        gone: set[int] = set()
        for job in jobs:
            kind = of[job]
            if kind in gone:
                continue
            refused: Bools | None = getattr(shadow, "refused", None)
            if refused is not None and refused[kind] and judged[job] > latest:
                continue
            if not kinds.fits(kind):
                gone.add(kind)
                continue
            yield job

    def _many_beside(self, jobs: Integers, shadow: Shadow) -> Iterator[int]:
        """Yield the same of many jobs; arrays are quicker then."""
        soon = self.table.judged_array[jobs] <= shadow.time(self) - self.now
        if not soon.all():
            some = (soon | shadow.leaves_room(self, jobs)).nonzero()[0]
            jobs, soon = jobs[some], soon[some]
        of = self.kinds.of[jobs]
        at = 0
        while at < len(jobs):
            alive = self.kinds.fitting()[of[at:]]
            refused: Bools | None = getattr(shadow, "refused", None)
            if refused is not None:
                alive &= soon[at:] | ~refused[of[at:]]
            ahead = int(alive.argmax())
            if not alive[ahead]:
                return
            at += ahead + 1
            yield jobs.item(at - 1)

    def earliest(self, job: int) -> EarliestStart | None:
        """Return the earliest start of a job, and the state of the cluster then; None if it never fits."""
        if not self.calendar:
            return earliest_by_bisection(self.plan, self.request(job), self.now, self.seek)

        def seek(state: Availability, time: float) -> Selection | None:
            return self.seek_at(job, state, time)

        return earliest_in_turn(self.plan, self.calendar, self.now, seek)

    def change_of(self, job: int, selection: Selection) -> Change | None:
        """Return the difference that the release of a job's claim makes to rows; None if units are shared."""
        known = self._changes.get(job)
        if known is not None and known[0] is selection:
            return known[1]
        change = self.kinds.counts.change(selection)
        self.note_change(job, selection, change)
        return change

    def changes_of(self, jobs: Iterable[int]) -> list[Change | None]:
        """Return `change_of` for some running jobs."""
        known, held = self._changes, self.plan.held
        found: list[Change | None] = []
        for job in jobs:
            selection, pair = held[job], known.get(job)
            if pair is not None and pair[0] is selection:
                found.append(pair[1])
            else:
                found.append(self.change_of(job, selection))
        return found

    def note_change(self, job: int, selection: Selection, change: Change | None) -> None:
        """Note the difference that the release of a job's claim makes to rows."""
        if len(self._changes) > 2 * len(self.plan.held) + 64:
            held = self.plan.held
            self._changes = {each: pair for each, pair in self._changes.items() if each in held}
        self._changes[job] = (selection, change)

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
        kinds = self.kinds
        return kinds.all_decided and all(
            each.content.flat or each.content.exclusive for each in kinds.decided if each is not None
        )

    def reservations(self) -> LastingReservations | GraphReservations:
        """Return the free units of each leaf pool over time, for reservations that last."""
        plan = self.plan
        if not self.is_steady or not plan.counts_only:
            return GraphReservations(self)
        if self._gauges is None:
            index, kinds = plan.available.index, self.table.requests_by_kind()
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
