"""`Engine`: the events of one run, from the first submission to the last end.

There is no process per job: each event calls one method.  At one instant come ends, then disruptions, then
submissions and met dependencies, then one scheduling pass.  A job of zero seconds ends at its start, after
that pass, and another pass follows.

The engine knows jobs, their resources and their queues.  Everything else is a `Listener`: it hears of the
events of jobs in the order of `listeners.ORDER`, and enters events of its own.

`EngineState`: everything that changes in a run, as one value.

Checkpoints, and forecasts from them, are made from it.  What follows from the inputs (requests,
orders, closures, columns of jobs) is not part of it: an engine of the same inputs makes it again.
Therefore a run that continues from a state gives the same bytes as one that was never interrupted.

`RunProgress`: the part of a run's state that the engine changes itself, event by event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.state.availability import Availability
from simsched.schedule.maintenance import Calendar
from simsched.schedule.policies.registry import naming_policy
from simsched.schedule.predictors.predictions import predictions_of
from simsched.schedule.profiles.plan import Plan
from simsched.simulation.environment import (
    EARLY_END,
    END,
    LAST,
    PASS,
    SUBMISSION,
    WAKE,
    FutureEvent,
    FutureEvents,
)
from simsched.simulation.jobs.lifecycle import ARRIVED, ENDED, STARTED, JobState, step
from simsched.simulation.listeners import ORDER, Heard, Listener, Way
from simsched.simulation.queue_groups import QueueGroups
from simsched.simulation.record.recorder import CANCELED, COMPLETED, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simpy import Environment

    from simsched.graph.index.index import Index
    from simsched.match.state.selection import Selection
    from simsched.schedule.maintenance import Closure
    from simsched.schedule.pass_context import Start
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.recorder import Recorder


NEVER = float("inf")
NEW = JobState.NEW
BY_ITSELF, INTERRUPTED = Way.END, Way.INTERRUPT  # Python finds the members of an `Enum` slowly


@dataclass  # without slots, which Cython refuses here
class RunProgress:
    """How far a run has come.

    Attributes
    ----------
    states : the state of each job (RFC 21), by job number.
    ends : running job → when it will end (seconds).
    submitted : how many jobs were submitted; the number of the next one.
    done : how many jobs have ended or will never start.
    passes : how many scheduling passes there were.
    timers : how many times to come jobs wait for.
    requeues : job → how often it was requeued.
    due : the present instant, if an event for the pass at its end is entered; otherwise None.
    wake : when the next pass for the start of a reservation is entered (seconds).
    """

    states: list[JobState]
    ends: dict[int, float] = field(default_factory=dict)
    submitted: int = 0
    done: int = 0
    passes: int = 0
    timers: int = 0
    requeues: dict[int, int] = field(default_factory=dict)
    due: float | None = None
    wake: float = NEVER


@dataclass(frozen=True, slots=True)
class EngineState:
    """The state of a run between two events.

    Attributes
    ----------
    now : the time of the run (seconds).
    progress : the engine's own state; states only of jobs that were submitted.
    claims : (job, expected end, selection) of each job that holds resources, in order of their starts.
    down : ordinals of the targets that are down.
    events : the events to come, in their order.
    generators : name → the state of a generator of random numbers.
    queues, recorder : the states of these parts.
    parts : name → state of each feature, such as disruption.
    """

    now: float
    progress: RunProgress
    claims: list[tuple[int, float, Selection]]
    down: list[int]
    events: list[FutureEvent]
    generators: dict[str, Any]
    queues: Any
    recorder: Any
    parts: dict[str, Any]


def capture(engine: Engine) -> EngineState:
    """Return the state of an engine; it shares its values with the engine, which must not run meanwhile."""
    progress, plan = engine.progress, engine.plan
    return EngineState(
        now=engine.now,
        progress=replace(progress, states=progress.states[: progress.submitted]),
        claims=plan.claims(),
        down=[] if plan.all_up else np.flatnonzero(~plan.available.up).tolist(),
        events=list(engine.future.pending()),
        generators={name: rng.bit_generator.state for name, rng in engine.generators.items()},
        queues=engine.queues.state(),
        recorder=engine.recorder.state(progress.submitted),
        parts={name: found for name, part in engine.parts.items() if (found := part.state()) is not None},
    )


def restore(engine: Engine, state: EngineState) -> None:
    """Put a fresh engine of the same inputs and configuration into a state.

    Raises
    ------
    LookupError, TypeError, ValueError, AttributeError
        If it is not a state of such an engine.
    """
    states = [JobState(code) for code in state.progress.states]
    later = engine.progress.states[len(states) :]
    engine.progress = replace(state.progress, states=states + later)
    for name, rng in engine.generators.items():
        rng.bit_generator.state = state.generators[name]
    for job, end, selection in state.claims:
        engine.plan.claim(job, selection, end)
    _restore_status(engine.plan, state.down)
    engine.future.restore(state.now, ())  # the parts ask for the time; their events are replaced below
    engine.queues.restore(state.queues)
    for name, part in engine.parts.items():
        part.restore(state.parts.get(name))
    engine.recorder.restore(state.recorder)
    engine.future.restore(state.now, [FutureEvent(*event) for event in state.events])


def _restore_status(plan: Plan, targets: Sequence[int]) -> None:
    """Mark which targets are down: after the claims, since a drained target may still be in use."""
    up = plan.available.up
    down = np.zeros_like(up)
    down[targets] = True
    for status, changing in ((False, down & up), (True, ~down & ~up)):
        if changing.any():
            plan.set_status(np.flatnonzero(changing), up=status)
    plan.recount()


class Engine:
    """Runs the prepared jobs to their ends; everything that happened is in the recorder.

    Attributes
    ----------
    future : the events to come, in a simpy environment; `env` is one to share.
    plan : the claims of the running jobs.
    queues : the waiting jobs.
    progress : the part of the state that the engine changes itself.
    parts : name → feature of the run; the names are those of `listeners.ORDER`.
    on : the methods of the features that hear of each event.
    suspended : job → the seconds for which its present attempt was suspended.
    generators : name → generator of random numbers, so that each kind of choice has its own.
    predictions : the predicted run times; None: plans go by the limits of jobs.
    stopped : whether the run was ended before its end.
    """

    def __init__(
        self,
        prepared: Prepared,
        index: Index,
        config: RunConfig,
        recorder: Recorder,
        *,
        closures: Sequence[Closure] = (),
        env: Environment | None = None,
    ) -> None:
        self.prepared = prepared
        self.config = config
        self.recorder = recorder
        self.future = FutureEvents(env)
        self.plan = Plan(Availability(index))
        self.generators: dict[str, np.random.Generator] = {}
        self.parts: dict[str, Listener] = {}
        self.on: Any = Heard()
        self.suspended: dict[int, float] = {}
        self.predictions = predictions_of(config.predictor, prepared.table, prepared.runtimes)
        calendar = Calendar(closures)
        self.queues: QueueGroups = QueueGroups(prepared, self.plan, config, calendar, self.predictions)
        self.progress = RunProgress([])
        self.take_place(0)
        self.stopped = False
        self._begun = False  # whether the present pass, or a preemption before it, has started jobs
        self._each_event = config.passes == "event"
        # pyss releases the due jobs, then takes submissions, then early ends; CQSim takes all ends first.
        self._early_last = self._each_event and config.candidates == "requested"
        handle = self.future.handle
        handle("submission", self.take_in)
        handle("end", self._on_end)
        handle("cancel", self._on_cancel)
        handle("wake", self._on_wake)
        handle("pass", self._on_pass)
        handle("until", self._on_until)

    def add(self, name: str, part: Listener) -> None:
        """Give the run a feature, which hears of all its jobs, and of the events from now on."""
        self.parts[name] = part
        part.joined(0, self.prepared.jobs)
        assert name in ORDER, name
        self.on.bind(self.parts[one] for one in ORDER if one in self.parts)

    def take_place(self, first: int) -> None:
        """Make place for the jobs that were prepared, from the number `first` on."""
        jobs = self.prepared.jobs[first:]
        self.recorder.extend(jobs)
        self.progress.states += [NEW] * len(jobs)
        for hear in self.on.joined:
            hear(first, jobs)

    def run(self, until: float | None = None) -> bool:
        """Run until nothing more can happen, or `end_early`; return whether it came to its end.

        With `until` the end is that time, everything that happens at it included.
        """
        with naming_policy(self.config.queue_policy):
            self.start(until)
            self.future.run()
        return not self.stopped

    def end_early(self) -> None:
        """End the run once the present event is handled."""
        self.stopped = True
        self.future.close()

    def start(self, until: float | None = None) -> None:
        """Enter the first events, for a program that runs the environment itself.

        `future.over` succeeds when the run is over; a process of the same environment may wait for it.
        """
        at, submits = self.progress.submitted, self.prepared.submits
        if at < len(submits) and not self.future.has("submission"):  # a restored run has it already
            self.future.at(submits[at], SUBMISSION, "submission")
        if until is not None:
            self.future.at(until, LAST, "until")
        self.future.start()

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
        return self.future.now

    @property
    def done(self) -> int:
        """How many jobs have ended or never will start."""
        return self.progress.done

    @property
    def queued(self) -> int:
        """How many jobs wait for resources or for a limit."""
        return self.queues.waiting + self.queues.barred

    @property
    def is_over(self) -> bool:
        """Whether no job runs, is suspended, waits for resources or for a time, or is still to come."""
        progress = self.progress
        coming = progress.submitted < len(progress.states) or progress.timers
        if coming or len(self.plan) or self.queues.waiting or self.queues.parked:
            return False
        return not any(goes_on() for goes_on in self.on.goes_on)

    def is_running(self, job: int) -> bool:
        """Whether a job is in state RUN; one that cleans up holds resources and is not."""
        return self.progress.states[job] is JobState.RUN

    def began(self, job: int) -> float:
        """Return the start of a running job (seconds), later by the time for which it was suspended."""
        return self.recorder.start[job] + self.suspended.get(job, 0)

    def ran(self, job: int, now: float) -> float:
        """Return the seconds for which the present attempt of a job has run, suspensions left out."""
        return now - self.began(job)

    def name_of(self, job: int) -> str:
        """Return the job's id, for people."""
        return str(self.recorder.ids[job])

    def waiting_reasons(self) -> dict[int, str]:
        """Return for each job that waits for a limit or for an advance reservation why it waits."""
        found: dict[int, str] = {}
        for reasons in self.on.reasons:
            found |= reasons()
        return found

    def occupy(self, job: int, end: float | None) -> None:
        """Let a job run that was claimed in the plan from outside, until `end`; None: for ever."""
        self.progress.states[job] = STARTED
        self.queues.begin([(job, None, False)], self.now)
        if end is not None:
            self.enter_end(job, end)
        for hear in self.on.occupied:
            hear(job, end)

    # -- submissions ------------------------------------------------------------------------

    def take_in(self, payload: None = None) -> None:
        """Take in the next jobs, as far as they are submitted now."""
        future, progress = self.future, self.progress
        now, submits, at = future.now, self.prepared.submits, progress.submitted
        count = len(submits)
        while at < count and submits[at] == now:
            self.submit(at, now)
            at += 1
            if self._each_event:
                self._pass(now)
                if self.stopped:
                    return
        progress.submitted = at
        if at < count:
            future.at(submits[at], SUBMISSION, "submission")
        if not self._each_event:
            self.settle()

    def submit(self, job: int, now: float) -> None:
        """Take in a job that is submitted now."""
        for hear in self.on.submitted:
            hear(job, now)
        if job in self.prepared.special:
            self._submit_special(job, now)
            return
        self.progress.states[job] = ARRIVED
        self.recorder.eligible[job] = now
        self.queues.add(job)
        for hear in self.on.eligible:
            hear(job, now)

    def _submit_special(self, job: int, now: float) -> None:
        """Take in a job that can never run, is held, will be cancelled, or may have to wait outside."""
        self.progress.states[job] = JobState.DEPEND
        rejected = self.prepared.rejected.get(job)
        if rejected is not None:
            self.give_up(job, now, *rejected)
        elif all(may_enter(job, now) for may_enter in self.on.may_enter):
            self.let_in(job, now)
        for hear in self.on.changed:
            hear(job)

    def let_in(self, job: int, now: float) -> None:
        """Let a submitted job wait for its dependencies, if it has any, and then for resources."""
        self.enter_cancel(job, now)
        if all(may_queue(job, now) for may_queue in self.on.may_queue):
            self.make_eligible(job, now)

    def enter_cancel(self, job: int, now: float) -> None:
        """Enter the time at which a job is cancelled, if there is one."""
        cancel_at = self.prepared.cancels.get(job)
        if cancel_at is not None:
            self.future.at(max(cancel_at, now), SUBMISSION, "cancel", job)

    def make_eligible(self, job: int, now: float) -> None:
        """Let a job wait for resources, unless it is held."""
        self.progress.states[job] = ARRIVED
        self.recorder.eligible[job] = now
        self.queues.eligible(job, now)
        held = self.prepared.holds.get(job)
        if held is None:
            self.queues.add(job)
        else:
            self.recorder.reasons[job] = held
        for hear in self.on.eligible:
            hear(job, now)

    # -- ends -------------------------------------------------------------------------------

    def enter_end(self, job: int, end: float) -> None:
        """Let a running job end at a time (s), and at no other."""
        self.progress.ends[job] = end
        if not self._early_last or end >= self.plan.expected_end(job):
            self.future.at(end, END, "end", job)
        if self._early_last:
            self.future.at(end, EARLY_END, "end", job)  # for its pass, if it ended when it was due

    def _on_end(self, job: int) -> None:
        now = self.future.now
        due = False
        # An event of a job that was interrupted or requeued before its end stays in the list.
        if self.progress.ends.get(job) == now:
            due = self._early_last and self.plan.until[job] <= now
            self._finish(job, now, TIMEOUT if self.prepared.timeouts[job] else COMPLETED)
        if not due:  # else its pass comes after the submissions
            self.settle()

    def _finish(self, job: int, now: float, result: int, reason: str | None = None) -> None:
        """End a running job; with a `reason` before its time.  Those that it kept waiting come last."""
        on, recorder, progress = self.on, self.recorder, self.progress
        self._release(job, now, BY_ITSELF if reason is None else INTERRUPTED)
        recorder.end[job], recorder.result[job] = now, result
        progress.done += 1
        del progress.ends[job]
        for keeps in on.keeps:
            if keeps(job, now, result):
                break
        else:
            self._free(job, now)
            progress.states[job] = ENDED
            if recorder.log is not None:
                recorder.log.release(job, now)
        for hear in on.ended:
            hear(job, now, result, reason)

    def _release(self, job: int, now: float, way: Way) -> None:
        """Tell that a job is about to lose its resources, and charge its use."""
        for hear in self.on.released:
            hear(job, now, way)
        if self.queues.shares:
            self.queues.charge(job, now - self.recorder.start[job], now)

    def _free(self, job: int, now: float) -> None:
        """Release all that a job holds; reservations may move only if it ends early."""
        early = self.plan.until[job] > now
        for _, context, _ in self.queues.groups:  # `touch`, without the call
            context.released = True
            if early:
                context.moved = True
        self.plan.release(job)

    def give_up(self, job: int, now: float, result: int, reason: str) -> None:
        """End a job that never started."""
        states = self.progress.states
        states[job] = step(step(states[job], "exception"), "clean")
        self.recorder.reject(job, result, reason)
        self.progress.done += 1
        for hear in self.on.ended:
            hear(job, now, result, reason)

    def _on_cancel(self, job: int) -> None:
        now = self.future.now
        state = self.progress.states[job]
        if state is STARTED:
            self.interrupt(job, now, CANCELED, "cancelled")
        elif state in (JobState.DEPEND, JobState.SCHED):
            self.queues.remove(job)
            self.give_up(job, now, CANCELED, "cancelled")
        self.settle()

    def interrupt(self, job: int, now: float, result: int, reason: str) -> None:
        """End a job that runs or is suspended before its time; its targets clean up unless a node failed."""
        self.recorder.reasons[job] = reason
        self._finish(job, now, result, reason)

    def requeue(self, job: int, now: float, reason: str) -> None:
        """Release the resources of a job that runs or is suspended, and queue it again."""
        progress = self.progress
        self._release(job, now, Way.REQUEUE)
        self._free(job, now)
        progress.ends.pop(job, None)
        progress.states[job] = step(progress.states[job], "requeue")
        times = progress.requeues[job] = progress.requeues.get(job, 0) + 1
        self.recorder.requeue(job, now, times, reason)
        self.queues.add(job)
        for hear in self.on.requeued:
            hear(job, now, reason)

    # -- passes -----------------------------------------------------------------------------

    def settle(self) -> None:
        """See that a pass follows once nothing else of the run happens at this instant.

        If the environment has nothing else at this instant, that is now.  Otherwise it cannot be known
        whether the rest is of this run or of a process beside it, so an event after all others of
        the run is entered for the pass.
        """
        future = self.future
        if self._each_event or future.peek() > future.here:
            self._pass(future.now)
        elif self.progress.due is None:
            self.progress.due = future.now
            future.at(future.now, PASS, "pass")

    def _on_pass(self, payload: None) -> None:
        self.progress.due = None
        self._pass(self.future.now)

    def _pass(self, now: float) -> None:
        """Let each queue policy start jobs, and note the state after it."""
        on, queues, progress = self.on, self.queues, self.progress
        self._begun = False
        for hear in on.before_pass:
            hear(now)
        for group in queues.in_turn if queues.magnets else queues.groups:
            queue, context, policy = group
            if queue:
                context.open(now)
                policy.run_pass(context)
                started = context.close()
                if started:
                    self.begin(started, now)
                if context.promised:
                    self.recorder.promise(context.promised)
                if context.reservations is not None or context.wake < NEVER:
                    self._enter_wake(context.wake)
        if self.recorder.later is None:
            self.recorder.tick(now, self.plan, queues.waiting + queues.barred, queues.queued_cores)
        for repeats in on.repeats if self._begun else ():
            if repeats():
                self._pass(now)
                break
        else:
            progress.passes += 1
        for hear in on.passed:
            hear(now)

    def begin(self, started: Sequence[Start], now: float) -> None:
        """Record the jobs that start now, and enter their ends."""
        prepared, recorder, future, on = self.prepared, self.recorder, self.future, self.on
        states, ends, queues = self.progress.states, self.progress.ends, self.queues
        self._begun = True
        if queues.shares or queues.magnets:
            queues.begin(started, now)
        for job, selection, backfilled in started:
            states[job] = STARTED
            recorder.begin(job, now, selection, backfilled)
            queues.queued_cores -= prepared.sizes[job]
            end = now + prepared.runtimes[job]
            if self._early_last:
                self.enter_end(job, end)
            else:
                ends[job] = end
                future.at(end, END, "end", job)
            for hear in on.runs:
                hear(job, now)
        for hear in on.begun:
            hear(started, now)

    def resume(self, job: int, end: float) -> None:
        """Let a suspended job, whose claim is in the plan again, run until `end`."""
        self.enter_end(job, end)
        for hear in self.on.resumed:
            hear(job, self.future.now)

    def _enter_wake(self, time: float) -> None:
        """Enter a pass for the start of a reservation, when nothing else may happen; the earliest counts."""
        if self.future.now < time < self.progress.wake:
            self.progress.wake = time
            self.future.at(time, WAKE, "wake")

    def _on_wake(self, _: None) -> None:
        """Run the pass if a reservation begins now; the one it was entered for may have moved."""
        progress, now = self.progress, self.future.now
        if progress.wake <= now:
            progress.wake = NEVER
        if progress.due is not None:
            return  # the pass of this instant is still to come
        first = min((group.context.wake for group in self.queues if group.queue), default=NEVER)
        if first <= now:
            self.settle()
        else:
            self._enter_wake(first)

    def _on_until(self, _: None) -> None:
        """End the run: the last pass of this instant, and all that it led to at once, are over."""
        self.recorder.tick(self.future.now, self.plan, self.queued, self.queues.queued_cores)
        self.future.close()
