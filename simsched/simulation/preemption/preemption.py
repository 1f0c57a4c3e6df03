"""`Preemption`: waiting jobs take the resources of running ones.

Before a pass, each waiting job that preempts starts, or looks for running jobs whose resources it needs, in
the order of its queue.  A victim goes at once, or at the end of its grace time; it then ends, is queued
again, or is suspended.  As soon as there is room the job starts on it, before the policies start others:
otherwise a policy could give that room away.

A job that the limits do not allow the room that it would get preempts nobody: they are asked for this room,
without the victims, before anything happens.  Else a job could take its victims at each pass and never start.

Without a table ``[preemption]`` the rules are `preemption_rules.PLAIN`.
"""

from __future__ import annotations

from heapq import merge
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.rfc.duration import whole
from simsched.match.state.selection import split
from simsched.schedule.profiles.remainder import is_free
from simsched.simulation.environment import DISRUPTION, SUBMISSION
from simsched.simulation.jobs.lifecycle import JobState
from simsched.simulation.listeners import Listener, Way
from simsched.simulation.preemption.preemption_rules import (
    CANCEL,
    CHECKPOINT,
    OFF,
    PLAIN,
    QOS,
    REQUEUE,
    SUSPEND,
)
from simsched.simulation.record.recorder import CANCELED
from simsched.simulation.reservations.reservation_rules import reservation_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.arrays import Bools
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.simulation.engine import Engine
    from simsched.simulation.preemption.job_attempts import JobAttempts
    from simsched.simulation.preemption.preemption_rules import VictimRule
    from simsched.simulation.preemption.suspension import Suspension
    from simsched.simulation.queues import Queue
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation
    from simsched.workload.job import Job


class LeavingJob(NamedTuple):
    """A victim that still runs: the start of its attempt, when it goes (s), how, and why."""

    start: float
    time: float
    mode: str
    reason: str


class PromisedRoom(NamedTuple):
    """A job that waits for its victims to go: its number, the resources that it will get, and its group."""

    job: int
    room: Selection
    group: int


class Preemption(Listener):
    """Finds and removes the victims of one run."""

    def __init__(
        self,
        engine: Engine,
        attempts: JobAttempts | None,
        of: Sequence[Queue | None],
        suspension: Suspension | None,
    ) -> None:
        self._engine, self._attempts, self._of = engine, attempts, of
        self._by_rules = engine.config.preemption or PLAIN
        self._by_qos = self._by_rules.by == QOS
        queues = engine.config.queues
        self._victims = self._by_rules.victims_of({} if queues is None else queues.queues)
        self.suspension = suspension
        self._tables = {one.name: one for one in engine.config.reservations}
        self._known: dict[str | None, tuple[VictimRule, dict[str | None, int]]] = {}
        self._names: list[str | None] = []
        """Job → its queue or QoS."""
        self._rules: list[VictimRule] = []
        self._ranks: list[dict[str | None, int]] = []
        """Job → the queues or QoS whose jobs it may preempt, with their places in the order of victims."""
        self._exempt: list[float] = []
        self._reservations: list[AdvanceReservation | None] = []
        """Job → the advance reservation that it is in."""
        self._takers, self._targets = set[str | None](), set[str | None]()
        """The queues or QoS that submitted jobs may preempt, and those of jobs that may be preempted."""
        self._leaving: dict[int, LeavingJob] = {}
        self._cleaning: set[int] = set()  # cancelled victims whose targets still clean up
        self._ousted: dict[int, int] = {}  # victim → the job that waits for its room
        self._again = False  # whether a victim has left at once
        self._ripe_at: set[float] = set()
        """The times at which a pass is entered: from then on there are more victims, or limits allow more."""
        self._falls = inf  # when the use that keeps a job from starting has fallen, at the earliest
        self._refused = False  # whether limits refuse that job room that there is, or will be
        engine.future.handle("evict", self._on_evict)
        engine.future.handle("ripe", self._on_ripe)

    def joined(self, first: int, jobs: Sequence[Job]) -> None:
        """Note the next jobs of the run, in their queues if they are in one."""
        for number, job in enumerate(jobs, first):
            queue = self._of[number] if self._of else None
            name = job.qos if self._by_qos else None if queue is None else queue.name
            if name not in self._known:
                self._known[name] = self._by_rules.rule_of(name), self._victims.get(name or "", {})
            rule, ranks = self._known[name]
            after = job.jobspec.system.get("preemptible-after")
            exempt = rule.exempt if after is None else whole(after)
            self._names.append(name)
            self._rules.append(rule)
            self._ranks.append(ranks)
            self._exempt.append(exempt)
            self._reservations.append(self._tables.get(reservation_of(job) or ""))

    def submitted(self, job: int, now: float) -> None:
        """Note what a job may preempt, and whether it may be preempted; of jobs to come nothing is known."""
        self._takers.update(self._ranks[job])
        if self._rules[job].mode != OFF and self._exempt[job] < inf:
            self._targets.add(self._names[job])

    # -- before a pass --------------------------------------------------------------------------

    def before_pass(self, now: float) -> None:
        """Let jobs that preempt start, and suspended jobs go on."""
        if self._takers.isdisjoint(self._targets):
            return  # no job can be preempted so far, and the policies alone decide
        self._forget_ended()
        waiting, served, self._again = list[PromisedRoom](), set[int](), True
        stopped = set[int]()  # groups in which a job finds no victims: those behind it wait, too
        while self._again:
            self._again = False
            for group, job in self._ousters_first([*self._in_turn(now)]):
                if group in stopped or job in served:
                    continue
                served.add(job)
                if not self._serve(group, job, now, waiting):
                    stopped.add(group)
                if self.suspension is not None:
                    self.suspension.close()
                if self._again:  # the victim, or a job that its use kept out of view, may be next in order
                    break
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
        waiting, states = JobState.SCHED, engine.progress.states
        self._ousted = {
            victim: by
            for victim, by in self._ousted.items()
            if states[by] is waiting and (states[victim] is waiting or victim in self._leaving)
        }

    def _ousters_first(self, turns: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the turns with a job that still waits for the room of a victim before this victim.

        A victim that preempts itself may be queued before it, and would take its room back again and again.
        """
        groups = {job: group for group, job in turns}
        for _, job in turns:
            chain = [job]
            while (by := self._ousted.get(chain[-1])) in groups and by not in chain:
                chain.append(by)
            yield from ((groups[one], one) for one in reversed(chain))

    def _in_turn(self, now: float) -> Iterator[tuple[int, int]]:
        """Yield the waiting jobs that preempt with the numbers of their groups, in order.

        By queue these are the jobs of a group before the first that does not preempt.  Groups may share
        targets (a reservation has a group of its own), so that among them the priority of the queue decides.
        """
        found = []
        for number, (queue, _, _) in enumerate(self._engine.queues.groups):
            jobs: Iterable[int] = ()
            if queue:
                if not queue.static:
                    queue.sort(now)
                if self._by_qos:
                    jobs = filter(self._ranks.__getitem__, queue)
                elif self._ranks[queue.first]:
                    jobs = takewhile(self._ranks.__getitem__, queue)
            if turns := [(number, job) for job in jobs]:
                found.append(turns)
        if len(found) < 2:
            return iter(found[0] if found else ())
        return merge(*found, key=lambda turn: -self._priority(turn[1]))

    def _priority(self, job: int) -> int:
        queue = self._of[job] if self._of else None
        return 0 if queue is None else queue.priority

    def _serve(self, group: int, job: int, now: float, waiting: list[PromisedRoom]) -> bool:
        """Start a job that preempts, or see that it will have room, in which case it joins those `waiting`.

        Return whether the jobs behind it may do so, too: always, unless there is no room whoever goes.
        """
        limits, barred = self._engine.queues.limits, self._engine.queues.groups[group].queue.barred
        if job in barred or (limits is not None and limits.is_blocked(job)):
            return True
        if self.suspension is not None:
            self.suspension.open_for(job, self._may_preempt)
        self._falls = inf
        if self._start(group, job, now, waiting):
            return True
        self._refused = False
        found = self._room(group, job, now, waiting)
        if found is None:
            self._expect(now, self._falls, *map(self._ripens, self._lower(job)))
            return self._refused
        room, victims = found
        for victim in victims:
            self._preempt(victim, job, now)
        if not (victims and self._start(group, job, now, waiting)):
            waiting.append(PromisedRoom(job, room, group))
        return True

    def _start(self, group: int, job: int, now: float, waiting: Sequence[PromisedRoom]) -> bool:
        """Start a job that preempts, if it fits now where only such jobs may start; return whether it did.

        It does not if a job before it in its group waits for victims, or one in another group for its room.
        """
        queue, context, _ = self._engine.queues.groups[group]
        limits = self._engine.queues.limits
        if any(one.group == group for one in waiting):
            return False
        context.now = context.supply.now = now
        context.supply.failed.clear()
        selection = context.fit(job)
        if selection is None or self._is_over(job, selection, now, (), waiting):
            return False
        if waiting and not is_free(self._soon(waiting), selection):
            return False
        if limits is not None:
            limits.open(queue)
        context.start(job, selection)
        if limits is not None:
            limits.close()
        started, context.started = context.started, []
        self._engine.begin(started, now)
        self._engine.queues.expect_later()
        return True

    def _is_over(
        self, job: int, room: Selection, time: float, gone: Sequence[int], waiting: Sequence[PromisedRoom]
    ) -> bool:
        """Whether limits refuse a job this room at a time (s) when jobs are gone, and those waiting run."""
        limits = self._engine.queues.limits
        if limits is None:
            return False
        leave = [one for one in gone if self._rules[one].mode != SUSPEND]  # a suspended job counts as running
        falls = limits.over_until(job, room, time, leave, [one[:2] for one in waiting])
        if falls is None:
            return False
        self._falls = min(self._falls, falls - (time - self._engine.now))
        return True

    def _soon(self, waiting: Sequence[PromisedRoom]) -> Availability:
        """Return the free resources once the present victims are gone, beside jobs that wait for theirs."""
        held = self._engine.plan.held
        state = self._engine.plan.available.copy()
        for job in (*self._leaving, *self._cleaning):
            if job in held:
                state.release(held[job])
        for one in waiting:
            # Targets that are kept for a suspended job are down again, and no other job may have them.
            down = one.room.targets[~state.up[one.room.targets]]
            room = split(one.room, down, state.index).kept if len(down) else one.room
            if room is not None:
                state.claim(room)
        return state

    # -- victims ----------------------------------------------------------------------------------

    def _room(
        self, group: int, job: int, now: float, waiting: Sequence[PromisedRoom]
    ) -> tuple[Selection, list[int]] | None:
        """Return room for a job once the present victims are gone and, if need be, the first of others.

        Of these, the last ones are spared first whose going does not help.  None: there is no room, or the
        limits refuse it.
        """
        held, free = self._engine.plan.held, self._soon(waiting)
        room, victims, state = self._place(group, job, free, (), waiting), list[int](), free.copy()
        alone = self._falls
        candidates = () if room is not None else self._candidates(job, now)
        for victim in sorted(candidates, key=lambda victim: self._key(job, victim)):
            state.release(held[victim])
            victims.append(victim)
            room = self._place(group, job, state, victims, waiting)
            if room is not None:
                break
        for spared in victims[-2::-1] if room is not None else ():
            state, others = free.copy(), [victim for victim in victims if victim != spared]
            for victim in others:
                state.release(held[victim])
            found = self._place(group, job, state, others, waiting)
            if found is not None:
                room, victims = found, others
        if victims and alone <= self._gone_at(victims):
            self._refused = True  # by then the job could start without any victim
            return None
        return None if room is None else (room, victims)

    def _place(
        self,
        group: int,
        job: int,
        state: Availability,
        victims: Sequence[int],
        waiting: Sequence[PromisedRoom],
    ) -> Selection | None:
        """Return resources in a state without victims, which do not close before the limit of the job."""
        begin = self._gone_at(victims)
        found = self._engine.queues.groups[group].context.supply.seek_at(job, state, begin)
        if found is None or not self._is_over(job, found, begin, (*self._leaving, *victims), waiting):
            return found
        self._refused = True
        return None

    def _gone_at(self, victims: Sequence[int]) -> float:
        """Return the time (s) at which the victims so far and these will be gone."""
        now = self._engine.now
        times = [leaving.time for leaving in self._leaving.values()]
        return max((now, *times, *(now + self._grace(one) + (self._cost(one) or 0) for one in victims)))

    def _key(self, job: int, victim: int) -> tuple[float, ...]:
        rank, start = self._ranks[job][self._names[victim]], self._engine.recorder.start[victim]
        return (-start, -victim) if self._by_rules.order == "youngest" else (rank, -start, -victim)

    def _may_preempt(self, job: int, victim: int) -> bool:
        """Whether a job may ever preempt another."""
        if self._rules[victim].mode == OFF or self._names[victim] not in self._ranks[job]:
            return False
        own, other = self._reservations[victim], self._reservations[job]
        if own is None or own is other or own.flex:
            return True
        return other is not None and other.overlaps  # else its reservation keeps it from jobs outside

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

    def _expect(self, now: float, *times: float) -> None:
        """Enter a pass for the first of some times (s) that are still to come, if there is one."""
        first = min((time for time in times if now < time < inf), default=now)
        if first > now and first not in self._ripe_at:
            self._ripe_at.add(first)
            self._engine.future.at(first, SUBMISSION, "ripe")

    def _on_ripe(self, _: None) -> None:
        self._ripe_at.discard(self._engine.now)
        self._engine.settle()

    # -- how they go ------------------------------------------------------------------------------

    def _grace(self, victim: int) -> float:
        """Return the seconds for which a victim keeps running."""
        rule = self._rules[victim]
        return 0 if rule.mode == SUSPEND else rule.grace

    def _cost(self, victim: int) -> float | None:
        """Return the seconds in which a victim writes a checkpoint before it goes; None if it writes none."""
        if self._attempts is None or self._rules[victim].mode != CHECKPOINT:
            return None
        return self._attempts.cost_of(victim)

    def _preempt(self, victim: int, job: int, now: float) -> None:
        """Let a victim go now, or at the end of its grace time and of its last checkpoint."""
        engine, rule = self._engine, self._rules[victim]
        mode, reason = rule.mode, f"preempted by {engine.name_of(job)}"
        self._ousted[victim] = job
        cost = self._cost(victim)
        if mode == CHECKPOINT and cost is None:
            mode = REQUEUE
        stop, ends = now + self._grace(victim), engine.progress.ends
        if cost is not None and ends[victim] > stop:
            assert self._attempts is not None
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
        engine, self._again = self._engine, True
        if mode == SUSPEND:
            assert self.suspension is not None
            self.suspension.suspend(victim, engine.now, reason)
        elif mode == CANCEL:
            engine.interrupt(victim, engine.now, CANCELED, reason)
            if engine.progress.states[victim] is JobState.CLEANUP:
                self._cleaning.add(victim)
        else:
            if mode == CHECKPOINT:
                assert self._attempts is not None
                self._attempts.write(victim)
                reason += ", with a checkpoint"
            engine.requeue(victim, engine.now, reason)

    # -- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the victims that still run, and the jobs that wait for them."""
        return {
            "leaving": {job: tuple(leaving) for job, leaving in self._leaving.items()},
            "cleaning": self._cleaning,
            "ousted": self._ousted,
            "ripe_at": self._ripe_at,
            "suspension": None if self.suspension is None else self.suspension.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._leaving = {job: LeavingJob(*leaving) for job, leaving in state["leaving"].items()}
        self._cleaning, self._ousted, self._ripe_at = state["cleaning"], state["ousted"], state["ripe_at"]
        for job in range(self._engine.progress.submitted):
            self.submitted(job, self._engine.now)
        if self.suspension is not None:
            self.suspension.restore(state["suspension"])
