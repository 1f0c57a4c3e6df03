"""`Engine`: the event loop of one run.

One simpy dispatcher with callbacks: no process per job.  At one instant: ends, then
disruptions, then submissions and met dependencies, then one scheduling pass.  A job that
runs zero seconds ends at the instant it started, after that pass, and another pass follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from simpy.core import StopSimulation

from simsched.match.state.availability import Availability
from simsched.schedule.maintenance import Calendar
from simsched.schedule.orders.fairshare import FairShare
from simsched.schedule.orders.order import job_order
from simsched.schedule.pass_context import PassContext
from simsched.schedule.policies.registry import queue_policy
from simsched.schedule.profiles.plan import Plan
from simsched.schedule.queue import WaitingQueue
from simsched.simulation.environment import EARLY_END, END, LAST, SUBMISSION, Clock
from simsched.simulation.jobs.epilogs import draw_epilogs
from simsched.simulation.jobs.lifecycle import ARRIVED, ENDED, STARTED, State, step
from simsched.simulation.record.recorder import CANCELED, COMPLETED, FAILED, TIMEOUT
from simsched.simulation.wakes import Wakes

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from simpy.events import Event

    from simsched.graph.index.index import Index
    from simsched.schedule.maintenance import Closure
    from simsched.schedule.pass_context import QueuePolicy, Start
    from simsched.simulation.jobs.conditions import Conditions, Met
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.outages.disruption import Disruption, QueueHours
    from simsched.simulation.preemption import Preemption
    from simsched.simulation.queues import Admission
    from simsched.simulation.record.recorder import Recorder

#: Passes between two reports of progress.
REPORT_EVERY = 512
HELD = "held: its urgency is 0 or it was submitted on hold"


class Lane(NamedTuple):
    """Queues that share targets: who waits, the context of their passes, and their policy."""

    waiting: WaitingQueue
    context: PassContext
    policy: QueuePolicy


class Engine:
    """Runs the prepared jobs to their ends; everything that happened is in the recorder.

    `conditions` knows what jobs wait for before they may be scheduled, or is None when none
    does; `admission` says which queue each job is in, if there are queues; `closures` are the
    targets that are known to be closed at some time.
    """

    def __init__(
        self,
        prepared: Prepared,
        index: Index,
        config: RunConfig,
        recorder: Recorder,
        *,
        conditions: Conditions | None = None,
        admission: Admission | None = None,
        closures: Sequence[Closure] = (),
    ) -> None:
        self.prepared = prepared
        self.config = config
        self.recorder = recorder
        self.conditions = conditions
        self.clock = Clock()
        self.plan = Plan(Availability(index), whole=prepared.takes_whole_targets)
        self._rng = np.random.default_rng(config.seed)
        self._calendar = Calendar(closures)
        self.lanes = [self._lane() for _ in range(admission.lane_count if admission else 1)]
        self._admission = admission if admission is not None and admission.lane_count else None
        orders = [lane.waiting.order for lane in self.lanes]
        self._charged = [order for order in orders if isinstance(order, FairShare)]
        self._parked: dict[str, list[int]] = {}
        self.state = [State.NEW] * len(prepared.submits)
        self.preemption: Preemption | None = None
        self.disruption: Disruption | None = None
        self.hours: QueueHours | None = None
        self.resumed = False
        self.done = 0
        self.requeues: dict[int, int] = {}
        self.progress: Callable[[Engine], None] | None = None
        self.stop: threading.Event | None = None
        self._stopped = False
        self.due: float | None = None
        """The present instant, if something happened at it and its pass is still to come."""
        self._most_epilog = config.epilog[1]
        self._epilogs = np.random.default_rng([config.seed, 2])
        self._each_event = config.passes == "event"
        # One pass an event is what pyss and CQSim do, who disagree on the order within an instant:
        # pyss takes what is due as given back, then submissions, then early ends; CQSim all ends first.
        self._early_last = self._each_event and config.candidates == "requested"
        self._ends: list[float] = [-1.0] * len(prepared.submits)
        self._next = 0
        self._passes = 0
        self._timers = 0
        self._queued_cores = 0
        self.wakes = Wakes(self)

    def _lane(self) -> Lane:
        table, config = self.prepared.table, self.config
        waiting = WaitingQueue(table, job_order(config.order))
        context = PassContext(table, self.plan, waiting, config.match_policy, self._rng, self._calendar)
        return Lane(waiting, context, queue_policy(config.queue_policy, config.queue_options))

    def run(self, until: float | None = None) -> bool:
        """Run until nothing more can happen, or `stop` is set; return whether it came to its end.

        With `until` the end is that time, everything that happens at it included.
        """
        if not self.resumed:
            self._schedule_submission()
        if until is not None:
            self.clock.at(until, LAST, self._on_until)
        self.clock.run()
        return not self._stopped

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
        return self.clock.now

    @property
    def is_over(self) -> bool:
        """Whether no job runs, waits for resources, waits for a time, or is still to come."""
        coming = self._next < len(self.state) or self._timers
        return not (coming or self.plan.held or self.queued or self._parked)

    def is_running(self, job: int) -> bool:
        """Whether a job is in state RUN; one that cleans up holds resources and is not."""
        return self.state[job] is State.RUN

    def name_of(self, job: int) -> str:
        """Return the job's id, for people."""
        return str(self.recorder.ids[job])

    @property
    def queued(self) -> int:
        """How many jobs wait for resources."""
        return sum(len(lane.waiting.ranks) for lane in self.lanes)

    def touch(self, *, released: bool) -> None:
        """Say that the machine changed: reservations may move and, if `released`, more may fit."""
        for lane in self.lanes:
            lane.context.moved = True
            lane.context.released |= released

    # -- submissions ------------------------------------------------------------------------

    def _schedule_submission(self) -> None:
        if self._next < len(self.prepared.submits):
            self.clock.at(self.prepared.submits[self._next], SUBMISSION, self._on_submission)

    def _on_submission(self, _: Event) -> None:
        """Take in every job that is submitted now."""
        now = self.clock._now
        submits, special = self.prepared.submits, self.prepared.special
        at = self._next
        while at < len(submits) and submits[at] == now:
            if at in special:
                self._arrive_specially(at, now)
            else:
                self._arrive(at, now)
            at += 1
            if self._each_event:
                self._pass(now)
        self._next = at
        self._schedule_submission()
        if not self._each_event:
            self._settle(now)

    def _arrive(self, job: int, now: float) -> None:
        """Put a job into the queue."""
        self.state[job] = ARRIVED
        recorder = self.recorder
        recorder.eligible[job] = now
        if recorder.events is not None:
            recorder.events.note(job, now, "submit", "validate", "depend", "priority")
        self._enqueue(job)

    def _enqueue(self, job: int) -> None:
        lane = self.lanes[0]
        if self._admission is not None:
            queue = self._admission.of[job]
            if queue is not None and queue.name in self._parked:
                self._parked[queue.name].append(job)
                return
            lane = self.lanes[self._admission.lanes[job]]
        lane.waiting.add(job)
        self._queued_cores += self.prepared.sizes[job]

    def _lane_of(self, job: int) -> Lane:
        return self.lanes[0 if self._admission is None else self._admission.lanes[job]]

    # -- queues that stop and start -----------------------------------------------------------

    def close_queue(self, name: str) -> None:
        """Let nothing more of a queue start; its jobs keep their places for later."""
        assert self._admission is not None
        of = self._admission.of
        parked = self._parked.setdefault(name, [])
        for lane in self.lanes:
            for job in list(lane.waiting):
                queue = of[job]
                if queue is not None and queue.name == name:
                    lane.waiting.remove(job)
                    self._queued_cores -= self.prepared.sizes[job]
                    parked.append(job)
        self.touch(released=True)

    def open_queue(self, name: str) -> None:
        """Let a queue's jobs start again."""
        for job in self._parked.pop(name, []):
            self._enqueue(job)
        self.touch(released=True)

    def _arrive_specially(self, job: int, now: float) -> None:
        """Take in a job that can never run, is held, will be cancelled, or waits for something."""
        self.state[job] = State.DEPEND
        if self.recorder.events is not None:
            self.recorder.events.note(job, now, "submit", "validate")
        rejected = self.prepared.rejected.get(job)
        if rejected is not None:
            self._give_up(job, now, *rejected)
            return
        cancel_at = self.prepared.cancels.get(job)
        if cancel_at is not None:
            self.clock.at(max(cancel_at, now), SUBMISSION, self._on_cancel, job)
        if self.conditions is not None:
            met = self.conditions.arrive(job, now)
            self._schedule_timers()
            if met is not None:
                self._meet((met,), now)
        else:
            self._become_eligible(job, now)

    def _become_eligible(self, job: int, now: float) -> None:
        self.state[job] = ARRIVED
        self.recorder.eligible[job] = now
        if self.recorder.events is not None:
            self.recorder.events.note(job, now, "depend", "priority")
        if job in self.prepared.holds:
            self.recorder.reasons[job] = HELD
        else:
            self._enqueue(job)

    # -- dependencies -----------------------------------------------------------------------

    def _meet(self, met: Iterable[Met], now: float) -> None:
        """Let jobs whose dependencies are met into the queue, and end those that wait in vain."""
        for job, reason in met:
            if self.state[job] is not State.DEPEND:
                continue
            if reason is None:
                self._become_eligible(job, now)
            else:
                self._give_up(job, now, FAILED, reason)

    def _schedule_timers(self) -> None:
        assert self.conditions is not None
        timers, self.conditions.timers = self.conditions.timers, []
        for time, job in timers:
            self._timers += 1
            self.clock.at(time, SUBMISSION, self._on_timer, job)

    def _on_timer(self, event: Event) -> None:
        assert self.conditions is not None
        now = self.clock._now
        self._timers -= 1
        self._meet(self.conditions.elapsed(event._value), now)
        self._settle(now)

    def _on_started(self, event: Event) -> None:
        """Let go the jobs that waited for another to start: the pass that started it is over."""
        assert self.conditions is not None
        now = self.clock._now
        self._meet(self.conditions.started(event._value), now)
        self._settle(now)

    def _tell_conditions(self, job: int, now: float, result: int) -> None:
        if self.conditions is not None:
            self._meet(self.conditions.ended(job, now, result), now)
            self._schedule_timers()

    # -- ends -------------------------------------------------------------------------------

    def _on_end(self, event: Event) -> None:
        now = self.clock._now
        job: int = event._value
        due = False
        if self._ends[job] == now and job in self.plan.held:  # else it ended or was interrupted before
            due = self._early_last and self.plan.expected_end(job) <= now
            self._finish(job, now, TIMEOUT if self.prepared.timeouts[job] else COMPLETED)
        if not due:  # else its pass comes after the submissions
            self._settle(now)

    def _finish(self, job: int, now: float, result: int, reason: str | None = None) -> None:
        """End a running job; with a `reason` before its time.  Who waits for that is told last."""
        recorder, events = self.recorder, self.recorder.events
        recorder.finish(job, now, result)
        self.done += 1
        if self._charged:
            self._charge(job, now)
        if events is not None:
            if reason is None:
                events.note(job, now, "finish")
            else:
                events.tell(job, now, "exception", {"type": "fatal", "severity": 0, "note": reason})
        if self._most_epilog and result != FAILED and len(self.plan.held[job].listed):
            self._clean_up(job, now)
        else:
            self._free(job, now)
            self.state[job] = ENDED
            recorder.free(job, now)
            if events is not None:
                events.note(job, now, "release", "free", "clean")
        if self.conditions is not None:
            self._tell_conditions(job, now, result)

    def _charge(self, job: int, now: float) -> None:
        """Charge what a job used to those who share, whichever queue it was in."""
        seconds = now - self.recorder.start[job]
        for order in self._charged:
            order.charge(self.prepared.table, job, seconds, now)

    def _free(self, job: int, now: float) -> None:
        """Give back what a job holds."""
        plan = self.plan
        early = plan.expected_end(job) > now
        for lane in self.lanes:
            context = lane.context
            context.released = True
            if early:
                context.moved = True
        plan.release(job)

    # -- epilogs ----------------------------------------------------------------------------

    def _clean_up(self, job: int, now: float) -> None:
        """Let each target of a job that ended clean up; the job keeps the rest until they are done."""
        self._ends[job] = -1.0
        self.state[job] = step(self.state[job], "finish")
        targets = np.sort(self.plan.held[job].listed)
        seconds = draw_epilogs(self._epilogs, self.config.epilog, len(targets))
        for wait in np.unique(seconds).tolist():
            self.clock.at(now + wait, END, self._on_clean, (job, targets[seconds == wait]))

    def _on_clean(self, event: Event) -> None:
        """Take back the shard of the targets that are done."""
        now = self.clock._now
        job, targets = event._value
        plan, recorder = self.plan, self.recorder
        shard = plan.release_part(job, targets)
        self.touch(released=True)
        gone = job not in plan.held
        recorder.shard(job, now, shard, last=gone)
        if recorder.events is not None:
            recorder.events.note(job, now, "release", *(("free", "clean") if gone else ()))
        if gone:
            self.state[job] = ENDED
        self._settle(now)

    def _give_up(self, job: int, now: float, result: int, reason: str) -> None:
        """End a job that never started."""
        self.state[job] = step(step(self.state[job], "exception"), "clean")
        self.recorder.reject(job, result, reason)
        self.done += 1
        if self.recorder.events is not None:
            self.recorder.events.tell(job, now, "exception", {"type": "fatal", "severity": 0, "note": reason})
            self.recorder.events.note(job, now, "clean")
        self._tell_conditions(job, now, result)

    def _on_cancel(self, event: Event) -> None:
        now = self.clock._now
        job: int = event._value
        reason = "cancelled"
        if self.state[job] is STARTED:
            self.interrupt(job, now, CANCELED, reason)
        elif self.state[job] in (State.DEPEND, State.SCHED):
            waiting = self._lane_of(job).waiting
            if job in waiting:
                waiting.remove(job)
                self._queued_cores -= self.prepared.sizes[job]
                self.touch(released=True)  # who was behind it may be first now
            for parked in self._parked.values():
                if job in parked:
                    parked.remove(job)
            if self.conditions is not None:
                self.conditions.forget(job)
            self._give_up(job, now, CANCELED, reason)
        self._settle(now)

    def interrupt(self, job: int, now: float, result: int, reason: str) -> None:
        """End a running job before its time; unless its node failed, its targets clean up."""
        self.recorder.reasons[job] = reason
        self._finish(job, now, result, reason)

    def requeue(self, job: int, now: float, reason: str) -> None:
        """Take a running job off its resources and put it back into the queue, to run from its start."""
        if self._charged:
            self._charge(job, now)
        self._free(job, now)
        self.state[job] = step(self.state[job], "requeue")
        times = self.requeues[job] = self.requeues.get(job, 0) + 1
        self.recorder.requeue(job, now, f"queued again {times} times: {reason}")
        if self.recorder.events is not None:
            self.recorder.events.tell(job, now, "requeue", {"note": reason})
        self._enqueue(job)

    # -- passes -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Run the pass once nothing else happens at this instant; for what else may happen."""
        self._settle(self.clock._now)

    def _settle(self, now: float) -> None:
        if self._each_event or self.clock.last_of_instant():
            self._pass(now)
        else:
            self.due = now

    def _pass(self, now: float) -> None:
        self.due = None
        queued = 0
        for waiting, context, policy in self.lanes:
            if waiting.ranks:
                if self.preemption is not None:
                    self.preemption.make_room(self, Lane(waiting, context, policy), now)
                context.open(now)
                policy.run_pass(context)
                started = context.close()
                if started:
                    self._start(started, now)
                if context.reservations is not None:
                    self.recorder.promise(context.promised)
                    self.wakes.enter(context.wake)
                queued += len(waiting.ranks)
        self.recorder.tick(now, self.plan, queued, self._queued_cores)
        self._passes += 1
        if self._passes % REPORT_EVERY == 1 or (self.stop is not None and self.stop.is_set()):
            self._report()

    def _start(self, started: list[Start], now: float) -> None:
        """Note what the pass started, and when it will end."""
        prepared, recorder, at = self.prepared, self.recorder, self.clock.at
        state, ends = self.state, self._ends
        for job, selection, backfilled in started:
            state[job] = STARTED
            recorder.begin(job, now, selection, backfilled)
            self._queued_cores -= prepared.sizes[job]
            end = ends[job] = now + prepared.runtimes[job]
            if not self._early_last or end >= self.plan.expected_end(job):
                at(end, END, self._on_end, job)
            if self._early_last:
                at(end, EARLY_END, self._on_end, job)  # for its pass, if it ended when it was due
            if recorder.events is not None:
                recorder.events.note(job, now, "alloc", "start")
            if self.conditions is not None and self.conditions.start(job):
                at(now, SUBMISSION, self._on_started, job)

    def _on_until(self, _: Event) -> None:
        """End the run with the last pass of this instant; what a pass brings about at once belongs to it."""
        now = self.clock._now
        if self.due is not None:
            self._pass(self.due)
        if self.clock.last_of_instant():
            self.recorder.tick(now, self.plan, self.queued, self._queued_cores)
            raise StopSimulation(None)
        self.clock.at(now, LAST, self._on_until)

    def _report(self) -> None:
        """Tell how far the run is, and stop it if somebody wants it to."""
        if self.progress is not None:
            self.progress(self)
        if self.stop is not None and self.stop.is_set():
            self._stopped = True
            raise StopSimulation(None)

    def _check(self) -> None:
        self.plan.check()
        for lane in self.lanes:
            lane.waiting.check()
        assert self.done + len(self.plan) + self.queued <= len(self.prepared.submits)
