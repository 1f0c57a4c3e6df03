"""`Victims`: preemption by the rules of a configuration (``[preemption]``).

Before a pass, each waiting job that preempts starts, or looks for running jobs whose resources it needs, in
the order of its queue.  A victim goes at once, or at the end of its grace time; it then ends, is queued
again, or is suspended.  As soon as there is room the job starts on it, before the policies start others:
otherwise a policy could give that room away.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.schedule.profiles.plan import first_fit
from simsched.simulation.environment import DISRUPTION
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.listeners import Listener, Way
from simsched.simulation.preemption.preemption import RipeTimes
from simsched.simulation.preemption.preemption_rules import CANCEL, CHECKPOINT, OFF, QOS, REQUEUE, SUSPEND
from simsched.simulation.record.recorder import CANCELED
from simsched.simulation.reservations.reservation_rules import reservation_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.graph.index.types import Bools
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.simulation.engine import Engine
    from simsched.simulation.preemption.job_attempts import JobAttempts
    from simsched.simulation.preemption.preemption_rules import PreemptionRules, VictimRule
    from simsched.simulation.preemption.suspension import Suspension
    from simsched.simulation.queue_groups import QueueGroup
    from simsched.simulation.queues import Queue
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation
    from simsched.workload.job import Job


class LeavingJob(NamedTuple):
    """A victim that still runs: the start of its attempt, when it goes (s), how, and why."""

    start: float
    time: float
    mode: str
    reason: str


class Victims(Listener):
    """Finds and removes the victims of one run."""

    def __init__(
        self,
        engine: Engine,
        attempts: JobAttempts,
        rules: PreemptionRules,
        of: Sequence[Queue | None],
        suspension: Suspension | None,
    ) -> None:
        self._engine, self._attempts = engine, attempts
        self._youngest = rules.order == "youngest"
        self.suspension = suspension
        self._rules_of = rules
        self._known: dict[str | None, tuple[VictimRule, dict[str | None, int]]] = {}
        self._ranks: list[dict[str | None, int]] | None = [] if rules.by == QOS else None
        """By QoS: job → the QoS that it may preempt, with their order."""
        self._takes = bytearray()
        self._tables = {one.name: one for one in engine.config.reservations}
        self._reservations: list[AdvanceReservation | None] = []
        """Job → the advance reservation that it is in."""
        self._names: list[str | None] = []
        self._priorities: list[int] = []
        self._rules: list[VictimRule] = []
        self._exempt: list[float] = []
        self._of = of
        self._leaving: dict[int, LeavingJob] = {}
        self._cleaning: set[int] = set()  # cancelled victims whose targets still clean up
        engine.future.handle("evict", self._on_evict)
        self._ripe = RipeTimes(engine)

    def joined(self, first: int, jobs: Sequence[Job]) -> None:
        """Note the next jobs of the run, in their queues if they are in one."""
        for number, job in enumerate(jobs, first):
            self._join(job, self._of[number] if self._of else None)

    def _join(self, job: Job, queue: Queue | None) -> None:
        name = job.qos if self._ranks is not None else None if queue is None else queue.name
        if name not in self._known:
            preempts = self._rules_of.preempts.get(name or "", ())
            ranks: dict[str | None, int] = {other: at for at, other in enumerate(preempts)}
            self._known[name] = self._rules_of.rule_of(name), ranks
        rule, ranks = self._known[name]
        if self._ranks is not None:
            self._ranks.append(ranks)
            self._takes.append(bool(ranks))
        else:
            self._takes.append(queue is not None and queue.preempts)
        self._reservations.append(self._tables.get(reservation_of(job) or ""))
        self._names.append(name)
        self._priorities.append(0 if queue is None else queue.priority)
        after = job.jobspec.system.get("preemptible-after")
        self._rules.append(rule)
        self._exempt.append(rule.exempt if after is None else float(after))

    # -- before a pass --------------------------------------------------------------------------

    def before_pass(self, now: float) -> None:
        """Let jobs that preempt start, and suspended jobs go on."""
        self._forget_ended()
        for group in self._engine.queues.groups:
            if group.queue and any(map(self._takes.__getitem__, group.queue)):
                self._serve(group, now)
            if self.suspension is not None:
                self.suspension.close()
        if self.suspension is not None and self.suspension.jobs:
            self.suspension.resume(now)

    def goes_on(self) -> bool:
        """Whether jobs are suspended at present."""
        return self.suspension is not None and bool(self.suspension.jobs)

    def released(self, job: int, now: float, way: Way) -> None:
        """Treat a job as running without resources, if it is suspended."""
        if self.suspension is not None:
            self.suspension.drop(job, now)

    def hit(self, failed: Bools) -> Mapping[int, Selection]:
        """Return the suspended jobs on failed targets."""
        return {} if self.suspension is None else self.suspension.on_failed(failed)

    def border(self) -> None:
        """Keep the targets of suspended jobs anew."""
        if self.suspension is not None:
            self.suspension.reopen()

    def _forget_ended(self) -> None:
        engine = self._engine
        for job, leaving in list(self._leaving.items()):
            if not engine.is_running(job) or engine.recorder.start[job] != leaving.start:
                del self._leaving[job]
        self._cleaning = {job for job in self._cleaning if job in engine.plan.held}

    def _serve(self, group: QueueGroup, now: float) -> None:
        """Let the jobs of a group that preempt start, or look for victims for them, in order.

        By queue these are the jobs before the first that does not preempt.
        """
        limits = self._engine.queues.limits
        waiting: list[int] = []  # jobs that wait for victims
        awaited: list[Selection] = []  # the resources that these will get
        for job in list(group.queue):
            if not self._takes[job]:
                if self._ranks is None:
                    return
                continue
            if limits is not None and not limits.allows_beside(job, waiting):
                continue
            if not awaited and self._start(group, job, now):
                continue
            if not self._make_room(group, job, now, awaited):
                return
            if not awaited and self._start(group, job, now):
                continue
            found = self._place(group, job, self._soon(awaited), ())
            if found is None:
                return
            awaited.append(found)
            waiting.append(job)

    def _start(self, group: QueueGroup, job: int, now: float) -> bool:
        """Start a job that preempts, if it fits now where only such jobs may start; return whether it did."""
        context, limits = group.context, self._engine.queues.limits
        if self.suspension is not None:
            self.suspension.open_for(job, self._may_preempt)
        context.now = context.supply.now = now
        context.supply.failed.clear()
        selection = context.fit(job)
        if selection is None:
            return False
        if limits is not None:
            limits.open(group.queue)
        context.start(job, selection)
        if limits is not None:
            limits.close()
        started, context.started = context.started, []
        self._engine.begin(started, now)
        self._engine.queues.expect_later()
        if self.suspension is not None:
            self.suspension.close()
        return True

    def _make_room(self, group: QueueGroup, job: int, now: float, others: list[Selection]) -> bool:
        """Preempt for a job, unless it fits once the present victims are gone; return whether it will fit."""
        if self.suspension is not None:
            self.suspension.open_for(job, self._may_preempt)
        soon = self._soon(others)
        if self._place(group, job, soon, ()) is None:
            victims = self._victims(group, job, now, soon)
            if victims is None:
                self._ripe.expect(map(self._ripens, self._lower(job)), now)
                return False
            for victim in victims:
                self._preempt(victim, job, now)
        return True

    def _place(
        self, group: QueueGroup, job: int, state: Availability, victims: Sequence[int]
    ) -> Selection | None:
        """Return resources for a job once these victims are gone from the state, too, or None.

        They do not close before its limit: nothing is preempted on nodes of a reservation or of maintenance,
        where the job could not start.
        """
        supply = group.context.supply
        if supply.calendar:
            begin = self._gone_at(victims)
            state = supply.calendar.within(state, begin, begin + supply.table.limits[job])
        return first_fit(group.context.request(job), state)

    def _gone_at(self, victims: Sequence[int]) -> float:
        """Return the time (s) at which the victims so far and these will be gone."""
        now = self._engine.now
        times = [leaving.time for leaving in self._leaving.values()]
        return max((now, *times, *(now + self._grace(one) + self._cost(one) for one in victims)))

    def _soon(self, placed: Sequence[Selection]) -> Availability:
        """Return the free resources once the present victims are gone, beside jobs that are to start."""
        held = self._engine.plan.held
        state = self._engine.plan.available.copy()
        for job in (*self._leaving, *self._cleaning):
            if job in held:
                state.release(held[job])
        for selection in placed:
            state.claim(selection)
        return state

    # -- victims ----------------------------------------------------------------------------------

    def _victims(self, group: QueueGroup, job: int, now: float, free: Availability) -> list[int] | None:
        """Return the first running jobs in the order of victims without which the job fits, or None.

        Of these, the last ones are spared first whose going does not help.
        """
        held = self._engine.plan.held
        state, chosen = free.copy(), list[int]()
        for victim in sorted(self._candidates(job, now), key=lambda victim: self._key(job, victim)):
            state.release(held[victim])
            chosen.append(victim)
            if self._place(group, job, state, chosen) is not None:
                return self._needed(group, job, chosen, free)
        return None

    def _needed(self, group: QueueGroup, job: int, chosen: list[int], free: Availability) -> list[int]:
        needed = list(chosen)
        for spared in chosen[-2::-1]:
            state, others = free.copy(), [victim for victim in needed if victim != spared]
            for victim in others:
                state.release(self._engine.plan.held[victim])
            if self._place(group, job, state, others) is not None:
                needed = others
        return needed

    def _key(self, job: int, victim: int) -> tuple[float, ...]:
        start = self._engine.recorder.start[victim]
        return (-start, -victim) if self._youngest else (self._rank(job, victim), -start, -victim)

    def _rank(self, job: int, victim: int) -> int:
        """Return the priority of a victim: of its queue, or the place of its QoS among those that may go."""
        if self._ranks is not None:
            return self._ranks[job][self._names[victim]]
        return self._priorities[victim]

    def _may_preempt(self, job: int, victim: int) -> bool:
        """Whether a job may ever preempt another."""
        if self._rules[victim].mode == OFF or not self._takes[job] or self._is_kept(job, victim):
            return False
        if self._ranks is not None:
            return self._names[victim] in self._ranks[job]
        return self._priorities[victim] < self._priorities[job]

    def _is_kept(self, job: int, victim: int) -> bool:
        """Whether a victim is in a reservation, which keeps it from jobs that are not in it."""
        own, other = self._reservations[victim], self._reservations[job]
        if own is None or own is other or own.flex:
            return False
        return other is None or not other.overlaps

    def _lower(self, job: int) -> Iterator[int]:
        engine = self._engine
        for victim in engine.plan.held:
            if engine.is_running(victim) and victim not in self._leaving and self._may_preempt(job, victim):
                yield victim

    def _candidates(self, job: int, now: float) -> list[int]:
        return [victim for victim in self._lower(job) if self._ripens(victim) <= now]

    def _ripens(self, victim: int) -> float:
        """Return the time (s) from which a running job may be preempted."""
        engine = self._engine
        suspended = engine.suspended.get(victim, 0)
        return engine.recorder.start[victim] + suspended + self._exempt[victim]

    # -- how they go ------------------------------------------------------------------------------

    def _grace(self, victim: int) -> float:
        """Return the seconds for which a victim keeps running."""
        rule = self._rules[victim]
        return 0 if rule.mode == SUSPEND else rule.grace

    def _cost(self, victim: int) -> float:
        """Return the seconds in which a victim writes its checkpoint."""
        if self._rules[victim].mode != CHECKPOINT:
            return 0
        return self._attempts.cost_of(victim) or 0

    def _preempt(self, victim: int, job: int, now: float) -> None:
        """Let a victim go now, or at the end of its grace time and of its last checkpoint."""
        engine, rule = self._engine, self._rules[victim]
        mode, reason = rule.mode, f"preempted by {engine.name_of(job)}"
        cost = self._attempts.cost_of(victim) if mode == CHECKPOINT else None
        if mode == CHECKPOINT and cost is None:
            mode = REQUEUE
        stop, ends = now + self._grace(victim), engine.progress.ends
        if cost is not None and ends[victim] > stop:
            self._attempts.stop(victim, engine.ran(victim, stop))
            ends[victim] = inf  # it works no more, and does not end while it writes
        time = stop + (cost or 0)
        if time <= now:
            self._remove(victim, mode, reason)
            return
        self._leaving[victim] = LeavingJob(engine.recorder.start[victim], time, mode, reason)
        engine.future.at(time, DISRUPTION, "evict", victim)
        if engine.plan.expected_end(victim) > time:
            engine.plan.move_end(victim, time)
            engine.queues.expect_later()

    def _on_evict(self, victim: int) -> None:
        now = self._engine.now
        self._forget_ended()
        leaving = self._leaving.get(victim)
        if leaving is not None and leaving.time == now:
            del self._leaving[victim]
            self._remove(victim, leaving.mode, leaving.reason)
            self._engine.settle()

    def _remove(self, victim: int, mode: str, reason: str) -> None:
        engine = self._engine
        if mode == SUSPEND:
            assert self.suspension is not None
            self.suspension.suspend(victim, engine.now, reason)
        elif mode == CANCEL:
            engine.interrupt(victim, engine.now, CANCELED, reason)
            if engine.progress.states[victim] is JobState.CLEANUP:
                self._cleaning.add(victim)
        else:
            if mode == CHECKPOINT:
                self._attempts.write(victim)
                reason += ", with a checkpoint"
            engine.requeue(victim, engine.now, reason)

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the victims that still run, and the jobs that wait for them."""
        return {
            "leaving": {job: tuple(leaving) for job, leaving in self._leaving.items()},
            "cleaning": self._cleaning,
            "ripe_at": self._ripe.entered,
            "suspension": None if self.suspension is None else self.suspension.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._leaving = {job: LeavingJob(*leaving) for job, leaving in state["leaving"].items()}
        self._cleaning, self._ripe.entered = state["cleaning"], state["ripe_at"]
        if self.suspension is not None:
            self.suspension.restore(state["suspension"])
