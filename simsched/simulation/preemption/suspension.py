"""`Suspension`: jobs that were suspended for others, and when they go on.

A suspended job gives its resources to the jobs that preempt it, and goes on, on the same ones, before a
pass that finds all of them free until its limit.  Its time limit and its run time stand still meanwhile.
Execution targets that it holds as a whole stay out of service for all jobs but those that may preempt it, and
those of a reservation whose window has begun.  Of targets that it shares with other jobs, any job may take
the units.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.match.state.selection import Selection, changed
from simsched.schedule.profiles.remainder import is_free
from simsched.simulation.outages.outages import DRAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.arrays import Bools, Integers
    from simsched.match.state.availability import Availability
    from simsched.simulation.engine import Engine
    from simsched.simulation.outages.disruption import Disruption
    from simsched.simulation.reservations.reservation_book import ReservationBook

_NONE = np.empty(0, dtype=np.int64)


class SuspendedJob(NamedTuple):
    """Resources of a suspended job, the targets kept for it, and seconds.

    `rest` is the seconds until its end, `expected` those until its limit, `since` the time of its suspension.
    """

    selection: Selection
    kept: Integers
    rest: float
    expected: float
    since: float


class Suspension:
    """The suspended jobs of one run, in the order of their suspension."""

    def __init__(self, engine: Engine, disruption: Disruption, book: ReservationBook | None) -> None:
        self._engine = engine
        self._disruption = disruption
        self._book = book
        self.jobs: dict[int, SuspendedJob] = {}
        self._closed: dict[int, Integers] = {}  # suspended job → its kept targets that are out of service
        self.times: dict[int, int] = {}
        """Job → how often it was suspended."""

    def suspend(self, job: int, now: float, reason: str) -> None:
        """Suspend a running job; `close` then keeps its targets."""
        engine = self._engine
        plan, progress = engine.plan, engine.progress
        selection = plan.held[job]
        kept = whole_targets(selection, plan.available)
        rest, expected = progress.ends[job] - now, plan.expected_end(job) - now
        self.jobs[job] = SuspendedJob(selection, kept, rest, max(expected, 0), now)
        progress.ends[job] = inf
        plan.release(job)
        engine.queues.expect_later()
        times = self.times[job] = self.times.get(job, 0) + 1
        engine.recorder.suspend(job, now, times, reason)
        for hear in engine.on.suspended:
            hear(job, now, reason)

    def resume(self, now: float) -> None:
        """Let the suspended jobs go on whose resources are all free, in the order of their suspension."""
        engine, passed = self._engine, list[int]()
        if any(map(len, self._closed.values())):  # they are given back and taken again in each pass
            engine.queues.touch(released=True)
        for job, found in list(self.jobs.items()):
            passed.append(job)
            if _has_units(found.selection, engine.plan.available):  # of most jobs others have the units
                self._open(passed)
                passed.clear()
                if is_free(engine.plan.available, found.selection) and not self._closes(job, found, now):
                    self._go_on(job, found, now)
        self.close()

    def _closes(self, job: int, found: SuspendedJob, now: float) -> bool:
        """Whether maintenance or a reservation of others begins on its targets before its limit.

        Its own reservation may end meanwhile: otherwise it would keep its targets for ever.
        """
        engine = self._engine
        around = None if self._book is None else self._book.calendar_around(job)
        calendar = engine.queues.group_of(job).context.supply.calendar if around is None else around
        if not calendar:
            return False
        rest = engine.prepared.table.limits[job] - engine.ran(job, found.since)
        free = engine.plan.available.free
        return calendar.closes(found.selection, now, now + max(rest, 0), free)

    def _go_on(self, job: int, found: SuspendedJob, now: float) -> None:
        engine = self._engine
        del self.jobs[job]
        engine.plan.claim(job, found.selection, now + found.expected)
        engine.plan.recount()
        self._count(job, found, now)
        engine.resume(job, now + found.rest)
        engine.recorder.resume(job, now, found.selection, engine.suspended[job])
        engine.queues.expect_later()

    def _count(self, job: int, found: SuspendedJob, now: float) -> None:
        """Count the seconds of a suspension, for which users are not charged."""
        engine, seconds = self._engine, now - found.since
        engine.suspended[job] = engine.suspended.get(job, 0) + seconds
        if engine.queues.shares:
            engine.queues.charge(job, -seconds, now)

    def drop(self, job: int, now: float) -> None:
        """Treat a job that ends or is queued again as running without resources, if it is suspended."""
        found = self.jobs.get(job)
        if found is not None:
            self._open([job])
            del self.jobs[job]
            self._count(job, found, now)
            self._engine.plan.claim(job, _nothing_of(found.selection), inf)

    def open_for(self, job: int, may: Callable[[int, int], bool]) -> None:
        """Put the kept targets into service that a job may take."""
        self._open([other for other in self.jobs if may(job, other)])

    def reopen(self) -> None:
        """Keep targets anew, because a window of a reservation begins or ends."""
        self._open(self.jobs)
        self.close()

    def close(self) -> None:
        """Take the kept targets of all suspended jobs out of service."""
        down = [_NONE]
        for job, found in self.jobs.items():
            if job not in self._closed:
                kept = found.kept
                if self._book is not None and len(kept):
                    kept = np.setdiff1d(kept, self._book.begun_for(job))
                self._closed[job] = kept
                down.append(kept)
        if len(targets := np.concatenate(down)):
            self._disruption.take_down(DRAIN, targets, "")

    def _open(self, jobs: Iterable[int]) -> None:
        """Put the kept targets of some jobs into service, all at once: each change is one of the machine."""
        up = [_NONE, *(self._closed.pop(job, _NONE) for job in jobs)]
        if len(targets := np.concatenate(up)):
            self._disruption.bring_up(targets)

    def on_failed(self, failed: Bools) -> dict[int, Selection]:
        """Return the suspended jobs that have resources on failed targets, with all their resources."""
        of = {job: found.selection for job, found in self.jobs.items()}
        return {job: selection for job, selection in of.items() if failed[selection.targets].any()}

    def state(self) -> dict[str, Any]:
        """Return the suspended jobs."""
        jobs = [(job, *found) for job, found in self.jobs.items()]
        return {"jobs": jobs, "closed": self._closed, "times": self.times}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part; targets out of service are restored with the machine."""
        self.jobs = {job: SuspendedJob(*found) for job, *found in state["jobs"]}
        self._closed, self.times = state["closed"], state["times"]


def _nothing_of(selection: Selection) -> Selection:
    return changed(selection, targets=_NONE, held=(), named=(), holds=(), shared=(), slots=0, unlisted=None)


def whole_targets(selection: Selection, available: Availability) -> Integers:
    """Return the targets of a claimed selection on which no other job can run beside it."""
    index, targets = available.index, selection.targets
    taken = np.zeros(len(index), dtype=np.bool_)
    for hold in selection.holds:
        if hold.exclusive and hold.type == index.target_type:
            taken[hold.ordinals] = True
    if selection.held:
        first = selection.held[0].type  # a target without free units of this type can run no equal job
        pool = index.pool_types[first]
        mine = np.zeros(len(index), dtype=np.bool_)
        mine[targets] = True
        inside = pool.target >= 0
        busy = np.zeros(len(index), dtype=np.int64)
        np.add.at(busy, pool.target[inside], available.free[first][inside])
        taken |= mine & (busy == 0)
    alone = available.use[targets] == 1
    found: Integers = targets[taken[targets] & alone & available.up[targets]]
    return found


def _has_units(selection: Selection, available: Availability) -> bool:
    """Whether no other job has the units of a selection, be its targets in service or not."""
    for draw in selection.held:
        hidden = available.hidden.get(draw.type)
        there = available.free[draw.type][draw.pools] + (0 if hidden is None else hidden[draw.pools])
        if (there < draw.units).any():
            return False
    return True
