"""Slurm's two schedulers: starts in priority order at events, and backfill at intervals.

After slurm.conf(5), SchedulerParameters, the Scheduling Configuration Guide of Slurm, and its source
(job_scheduler.c, backfill.c):

1. The main scheduler runs when something has changed. Jobs start in order. A job that does not fit keeps the
   jobs behind it in its partition from starting, and takes the nodes of its partition from the jobs of other
   partitions behind it. A job younger than `min_age_reserve` does neither, unless its partition has too few
   nodes left.
2. The backfill scheduler runs at most once per `interval`, and only after a change. It plans anew: in order,
   each job that it tests gets the earliest start beside the running jobs and the reservations before it.
   Jobs whose start is now are started. A reservation is for whole nodes and lasts for one pass.

All partitions are one queue, also those that share no nodes. A pass takes no time, so there is no difference
between a plan that is continued after an interruption and one that is not (``bf_continue``).
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import TYPE_CHECKING, Annotated

import numpy as np

from simsched.declare.kinds import whole
from simsched.declare.table import Declared
from simsched.formats.rfc.declared import seconds
from simsched.schedule.policies.fcfs import start_in_order
from simsched.schedule.policies.replanning import Reach, Replanning
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.arrays import Bools, Integers
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.reservations import Reservations


Finite = Annotated[float, seconds("seconds, or a finite duration")]
Least1 = Annotated[int | None, whole(1, expected="a whole number of 1 or more, or none")]


class SlurmOptions(Declared, frozen=True, kw_only=True):
    """Slurm's main scheduler in priority order at events, and its backfill at intervals (slurm.conf).

    interval : the least time between two backfill passes (Slurm, bf_interval).
    sched_interval : the least time between two passes in order; 0: after each event (Slurm, sched_interval).
    window : how far ahead reservations begin at most (Slurm, bf_window).
    resolution : the ends of reservations are rounded up to multiples of it (Slurm, bf_resolution).
    max_job_test : the most jobs that a backfill pass tests (Slurm, bf_max_job_test).
    max_job_start : the most jobs that a backfill pass starts (Slurm, bf_max_job_start).
    max_job_user : the most jobs per user that a backfill pass tests (Slurm, bf_max_job_user).
    max_job_part : the most jobs per partition that a backfill pass tests (Slurm, bf_max_job_part).
    min_age_reserve : a job that has waited for less has no reservation and blocks no other job (Slurm,
        bf_min_age_reserve).
    reservation_depth : the most reservations of a backfill pass (Slurm).
    """

    interval: Finite = 30
    sched_interval: Finite = 0
    window: Annotated[float, seconds()] = 86_400
    resolution: Finite = 60
    max_job_test: Least1 = 500
    max_job_start: Least1 = None
    max_job_user: Least1 = None
    max_job_part: Least1 = None
    min_age_reserve: Finite = 0
    reservation_depth: Annotated[int | None, whole(expected="a whole number of 0 or more, or none")] = None

    def policy(self) -> Slurm:
        """Return the policy."""
        return Slurm(self)


class Slurm:
    """The main scheduler and the backfill scheduler; each runs after a change and its interval."""

    def __init__(self, options: SlurmOptions | None = None) -> None:
        self.options = options or SlurmOptions()
        self._last_main = self._last_backfill = -NEVER
        self._main_due = self._backfill_due = False
        """Whether something has changed since the last pass of each scheduler."""
        self._hidden: set[int] = set()
        """Jobs that a limit which blocks keeps out of view in each pass: only the first time is a change."""
        self._since: dict[int, float] = {}
        """Waiting job → the time (s) since which it waits for resources; kept for `min_age_reserve` only."""

    def run_pass(self, context: PassContext) -> None:
        """Run the schedulers that are due, and ask for a pass when the next one is."""
        now, options = context.now, self.options
        queue = context.queue
        gone = set(queue.gone)
        if context.released or context.moved or not gone <= self._hidden or queue.fresh:
            self._main_due = self._backfill_due = True
        self._hidden = gone & queue.barred
        if options.min_age_reserve:
            # A limit may have kept a job out of view since its submission.
            submits = None if context.limits is None else context.table.submits
            for job in (*queue.new_jobs(), *queue.barred):
                self._since.setdefault(job, now if submits is None else float(submits[job]))
        if self._main_due and now >= self._last_main + options.sched_interval:
            self._last_main, self._main_due = now, False
            self._start_in_order(context)
        if self._backfill_due and now >= self._last_backfill + options.interval:
            before = len(context.started)
            self._last_backfill = now
            Backfill(options, self._since).run_pass(context)
            # Starts are changes, too: the next pass tests jobs that this one did not reach.
            self._backfill_due = len(context.started) > before
        context.wake = min(
            self._last_main + options.sched_interval if self._main_due else NEVER,
            self._last_backfill + options.interval if self._backfill_due else NEVER,
        )
        for job, _, _ in context.started if self._since else ():
            self._since.pop(job, None)  # if it is queued again, it waits anew

    def _start_in_order(self, context: PassContext) -> None:
        """Start jobs in order; a job that does not fit blocks its partition and takes the nodes of it."""
        table, now, least = context.table, context.now, self.options.min_age_reserve
        if table.partitions is None and not least:
            start_in_order(context)
            return
        jobs = context.queue.jobs()
        of = np.zeros(len(jobs), dtype=np.int64) if table.partitions is None else table.partitions[jobs]
        left, waits = set(of.tolist()), False
        taken: Bools | None = None
        for job, partition in zip(jobs.tolist(), of.tolist(), strict=True):
            if partition not in left or job in context.barred:
                continue
            nodes = None if taken is None else table.partition_targets[partition] & ~taken
            selection = _fit(context, job, partition, nodes)
            if selection is not None:
                context.start(job, selection, backfilled=waits)
                continue
            waits = True
            if now - self._since.get(job, now) < least and not _lacks_nodes(context, job, partition, nodes):
                continue
            left.discard(partition)
            if not left:
                return
            if table.partitions is not None:
                mine = table.partition_targets[partition]
                taken = mine if taken is None else taken | mine


class Backfill(Replanning):
    """One backfill pass."""

    def __init__(self, options: SlurmOptions, since: Mapping[int, float]) -> None:
        super().__init__(options.reservation_depth)
        self.options = options
        self._since = since

    def run_pass(self, context: PassContext) -> None:
        """Plan in order, up to the last job that could start now, and start the jobs that may."""
        options, now, seconds = self.options, context.now, context.table.durations
        jobs = self._tested(context)
        reach = Reach(context, jobs, apart=self.depth is None)
        plan: Reservations | None = None
        started, reserved, passes = 0, 0, False
        for at, job in enumerate(jobs[: len(reach)].tolist()):
            if started == options.max_job_start:
                break
            if job in context.barred:  # a job that started in this pass used up a limit
                continue
            age = now - self._since.get(job, now)
            plans = reserved != self.depth and age >= options.min_age_reserve
            if not reach.includes(at, plan) or not (plans or context.supply.could_start(job)):
                passes = True
                continue
            plan = plan or context.supply.ahead()
            start = plan.earliest(job, end_of(now + options.window if plans else now, 0))
            backfilled = passes or context.queue.first != job
            if start <= now and self._start(context, plan, job, backfilled=backfilled):
                started += 1
            elif job not in context.barred:  # else a limit does not allow the allocation
                passes = True
                if plans and start < NEVER:
                    reserved += 1
                    plan.reserve_targets(job, start, self._rounded(end_of(start, seconds[job])))

    def _rounded(self, end: float) -> float:
        """Return the end of a reservation in the resolution of time."""
        step = self.options.resolution
        return end if not step or end == NEVER else max(ceil(end / step) * step, end)

    def _tested(self, context: PassContext) -> Integers:
        """Return the jobs that the pass tests, in order."""
        options, table = self.options, context.table
        jobs, most = context.queue.jobs(), options.max_job_test
        bounds = (table.users, options.max_job_user), (table.partitions, options.max_job_part)
        counts = [(column, most, Counter[int]()) for column, most in bounds if most is not None]
        if not counts:
            return jobs[:most]
        tested: list[int] = []
        for job in jobs.tolist():
            if len(tested) == most:
                break
            keys = [0 if column is None else int(column[job]) for column, _, _ in counts]
            if all(seen[key] < each for key, (_, each, seen) in zip(keys, counts, strict=True)):
                tested.append(job)
                for key, (_, _, seen) in zip(keys, counts, strict=True):
                    seen[key] += 1
        return np.array(tested, dtype=np.int64)


def _fit(context: PassContext, job: int, partition: int, nodes: Bools | None) -> Selection | None:
    """Return resources for a job on the nodes that are left of its partition; None for `nodes`: all are."""
    if nodes is None or np.array_equal(nodes, context.table.partition_targets[partition]):
        return context.supply.fit(job)
    if not nodes.any() or not context.supply.could_start(job):
        return None
    return context.supply.fit_on(job, nodes.nonzero()[0])


def _lacks_nodes(context: PassContext, job: int, partition: int, nodes: Bools | None) -> bool:
    """Whether fewer nodes of a partition are up and left than a job needs: then it blocks at any age."""
    if nodes is None and context.plan.all_up:
        return False
    if nodes is None:
        found = context.table.partition_targets
        nodes = found[partition] if found else np.ones_like(context.plan.available.up)
    request = context.request(job)
    needs = request.nodes
    if request.simple is not None:
        content, copies = request.simple[0].content, request.simple[1]
        if content is not None and content.node and content.exclusive:
            needs = copies
    return bool(np.count_nonzero(nodes & context.plan.available.up) < needs)
