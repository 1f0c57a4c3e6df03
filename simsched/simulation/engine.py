"""`Engine`: the events of one run, from the first submission to the last end.

There is no process per job: each event calls one method.  At one instant come ends, then disruptions, then
submissions and met dependencies, then one scheduling pass.  A job of zero seconds ends at its start, after
that pass, and another pass follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.match.state.availability import Availability
from simsched.schedule.maintenance import Calendar
from simsched.schedule.profiles.plan import Plan
from simsched.simulation.environment import EARLY_END, END, LAST, PASS, SUBMISSION, WAKE, FutureEvents
from simsched.simulation.jobs.epilogs import draw_epilogs
from simsched.simulation.jobs.expected_ends import expected_ends
from simsched.simulation.jobs.lifecycle import ARRIVED, ENDED, STARTED, JobState, step
from simsched.simulation.queue_groups import QueueGroups
from simsched.simulation.record.recorder import CANCELED, COMPLETED, FAILED, TIMEOUT
from simsched.simulation.run_progress import NEVER, RunProgress

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence

    from simpy import Environment

    from simsched.graph.index.index import Index
    from simsched.schedule.maintenance import Closure
    from simsched.schedule.pass_context import Start
    from simsched.simulation.admission import Admission
    from simsched.simulation.jobs.conditions import Conditions, Met
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.record.recorder import Recorder
    from simsched.simulation.run_progress import MakesRoom, Stateful

#: Passes between two reports of progress.
REPORT_EVERY = 512
HELD = "held: its urgency is 0 or it was submitted on hold"


class Engine:
    """Runs the prepared jobs to their ends; everything that happened is in the recorder.

    Attributes
    ----------
    future : the events to come, in a simpy environment; `env` is one to share.
    plan : the claims of the running jobs.
    queues : the waiting jobs.
    progress : the part of the state that the engine changes itself.
    conditions : the dependencies of jobs; None where no job has any.
    parts : name → further parts that have a state, such as disruption.
    generators : name → generator of random numbers, so that each kind of choice has its own.
    expected : predicted ends and their corrections; None: plans go by the limits of jobs.
    preemption : what preempts jobs before a pass, or None.
    on_report : called with the engine every few hundred passes.
    stop : once set, the run ends after the current pass; `stopped` is then true.
    """

    may_wake = False  # no jobs come after all is over

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
        env: Environment | None = None,
    ) -> None:
        self.prepared = prepared
        self.config = config
        self.recorder = recorder
        self.conditions = conditions
        self.future = FutureEvents(env)
        self.plan = Plan(Availability(index), whole=prepared.takes_whole_targets)
        self._epilogs = np.random.default_rng([config.seed, 2])
        self.generators = {"match": np.random.default_rng(config.seed), "epilogs": self._epilogs}
        self.expected = expected_ends(self)
        predictions = None if self.expected is None else self.expected.predictions
        calendar, rng = Calendar(closures), self.generators["match"]
        self.queues = QueueGroups(prepared, self.plan, config, calendar, rng, admission, predictions)
        self.progress = RunProgress([JobState.NEW] * len(prepared.submits))
        self.parts: dict[str, Stateful] = {} if self.expected is None else {"expected": self.expected}
        self.preemption: MakesRoom | None = None
        self.on_report: Callable[[Engine], None] | None = None
        self.stop: threading.Event | None = None
        self.stopped = False
        self._most_epilog = config.epilog[1]
        self._each_event = config.passes == "event"
        # pyss releases the due jobs, then takes submissions, then early ends; CQSim takes all ends first.
        self._early_last = self._each_event and config.candidates == "requested"
        handle = self.future.handle
        handle("submission", self._on_submission)
        handle("end", self._on_end)
        handle("cancel", self._on_cancel)
        handle("timer", self._on_timer)
        handle("started", self._on_started)
        handle("clean", self._on_clean)
        handle("wake", self._on_wake)
        handle("pass", self._on_pass)
        handle("until", self._on_until)

    def run(self, until: float | None = None) -> bool:
        """Run until nothing more can happen, or `stop` is set; return whether it came to its end.

        With `until` the end is that time, everything that happens at it included.
        """
        self.start(until)
        self.future.run()
        return not self.stopped

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
        """Whether no job runs, waits for resources, waits for a time, or is still to come."""
        progress = self.progress
        coming = progress.submitted < len(progress.states) or progress.timers
        return not (coming or len(self.plan) or self.queues.waiting or self.queues.parked)

    def is_running(self, job: int) -> bool:
        """Whether a job is in state RUN; one that cleans up holds resources and is not."""
        return self.progress.states[job] is JobState.RUN

    def began(self, job: int) -> float:
        """Return the start of a running job (seconds), later by the time for which it was suspended."""
        return self.recorder.start[job]

    def name_of(self, job: int) -> str:
        """Return the job's id, for people."""
        return str(self.recorder.ids[job])

    def occupy(self, job: int, end: float | None) -> None:
        """Let a job run that was claimed in the plan from outside, until `end`; None: for ever."""
        self.progress.states[job] = STARTED
        self.queues.begin([(job, None, False)], self.now)
        if self.conditions is not None:
            self.conditions.start(job, self.now)
        if end is not None:
            self._enter_end(job, end)

    # -- submissions ------------------------------------------------------------------------

    def _on_submission(self, _: None) -> None:
        """Take in every job that is submitted now."""
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
        if job in self.prepared.special:
            self._submit_special(job, now)
            return
        self.progress.states[job] = ARRIVED
        recorder = self.recorder
        recorder.eligible[job] = now
        if recorder.events is not None:
            recorder.events.note(job, now, "submit", "validate", "depend", "priority")
        self.queues.add(job)

    def _submit_special(self, job: int, now: float) -> None:
        """Take in a job that can never run, is held, will be cancelled, or has dependencies."""
        self.progress.states[job] = JobState.DEPEND
        if self.recorder.events is not None:
            self.recorder.events.note(job, now, "submit", "validate")
        rejected = self.prepared.rejected.get(job)
        if rejected is not None:
            self._give_up(job, now, *rejected)
        else:
            self._admit(job, now)

    def _admit(self, job: int, now: float) -> None:
        """Let a submitted job wait for its dependencies, if it has any."""
        cancel_at = self.prepared.cancels.get(job)
        if cancel_at is not None:
            self.future.at(max(cancel_at, now), SUBMISSION, "cancel", job)
        if self.conditions is not None:
            met = self.conditions.arrive(job, now)
            self._schedule_timers()
            if met is not None:
                self._meet((met,), now)
        else:
            self._become_eligible(job, now)

    def _become_eligible(self, job: int, now: float) -> None:
        self.progress.states[job] = ARRIVED
        self.recorder.eligible[job] = now
        self.queues.eligible(job, now)
        if self.recorder.events is not None:
            self.recorder.events.note(job, now, "depend", "priority")
        if job in self.prepared.holds:
            self.recorder.reasons[job] = HELD
        else:
            self.queues.add(job)

    # -- dependencies -----------------------------------------------------------------------

    def _meet(self, met: Iterable[Met], now: float) -> None:
        """Queue jobs whose dependencies are met, and end those whose dependencies never will be."""
        for job, reason in met:
            if self.progress.states[job] is not JobState.DEPEND:
                continue
            if reason is None:
                self._become_eligible(job, now)
            else:
                self._give_up(job, now, FAILED, reason)

    def _schedule_timers(self) -> None:
        assert self.conditions is not None
        for time, job in self.conditions.take_timers():
            self.progress.timers += 1
            self.future.at(time, SUBMISSION, "timer", job)

    def _on_timer(self, job: int) -> None:
        assert self.conditions is not None
        self.progress.timers -= 1
        self._meet(self.conditions.elapsed(job), self.future.now)
        self.settle()

    def _on_started(self, job: int) -> None:
        """Release the jobs that waited for a start: an event, as they do not start in the pass of it."""
        assert self.conditions is not None
        self._meet(self.conditions.started(job, self.future.now), self.future.now)
        self._schedule_timers()
        self.settle()

    def _note_end(self, job: int, now: float, result: int) -> None:
        """Tell the conditions that a job ended."""
        if self.conditions is not None:
            self._meet(self.conditions.ended(job, now, result), now)
            self._schedule_timers()

    # -- ends -------------------------------------------------------------------------------

    def _enter_end(self, job: int, end: float) -> None:
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
        """End a running job; with a `reason` before its time.  Its dependents are released last."""
        recorder, events, progress = self.recorder, self.recorder.events, self.progress
        recorder.finish(job, now, result)
        progress.done += 1
        del progress.ends[job]
        if self.queues.shares:
            self.queues.charge(job, now - recorder.start[job], now)
        if events is not None:
            if reason is None:
                events.note(job, now, "finish")
            else:
                events.tell(job, now, "exception", {"type": "fatal", "severity": 0, "note": reason})
        if self._most_epilog and result != FAILED and len(self.plan.held[job].listed):
            self._clean_up(job, now)
        else:
            self._free(job, now)
            progress.states[job] = ENDED
            if recorder.log is not None:
                recorder.log.release(job, now)
            if events is not None:
                events.note(job, now, "release", "free", "clean")
        if self.expected is not None:
            self.expected.learn(job, now, ended=reason is None)
        if self.conditions is not None:
            self._note_end(job, now, result)

    def _free(self, job: int, now: float) -> None:
        """Release all that a job holds; reservations may move only if it ends early."""
        early = self.plan.until[job] > now
        for _, context, _ in self.queues.groups:  # `touch`, without the call
            context.released = True
            if early:
                context.moved = True
        self.plan.release(job)

    # -- epilogs ----------------------------------------------------------------------------

    def _clean_up(self, job: int, now: float) -> None:
        """Let each target of a job that ended clean up; the job keeps the others until they are done."""
        states = self.progress.states
        states[job] = step(states[job], "finish")
        targets = np.sort(self.plan.held[job].listed)
        seconds = draw_epilogs(self._epilogs, self.config.epilog, len(targets))
        for wait in np.unique(seconds).tolist():
            self.future.at(now + wait, END, "clean", (job, targets[seconds == wait]))

    def _on_clean(self, done: tuple[int, Any]) -> None:
        """Release the shard of the targets that are done."""
        now = self.future.now
        job, targets = done
        plan, recorder = self.plan, self.recorder
        shard = plan.release_part(job, targets)
        self.queues.touch(released=True)
        last = job not in plan.held
        recorder.shard(job, now, shard, last=last)
        if recorder.events is not None:
            recorder.events.note(job, now, "release", *(("free", "clean") if last else ()))
        if last:
            self.progress.states[job] = ENDED
        self.settle()

    def _give_up(self, job: int, now: float, result: int, reason: str) -> None:
        """End a job that never started."""
        states = self.progress.states
        states[job] = step(step(states[job], "exception"), "clean")
        self.recorder.reject(job, result, reason)
        self.progress.done += 1
        if self.recorder.events is not None:
            self.recorder.events.tell(job, now, "exception", {"type": "fatal", "severity": 0, "note": reason})
            self.recorder.events.note(job, now, "clean")
        self._note_end(job, now, result)

    def _on_cancel(self, job: int) -> None:
        now = self.future.now
        state = self.progress.states[job]
        if state is STARTED:
            self.interrupt(job, now, CANCELED, "cancelled")
        elif state in (JobState.DEPEND, JobState.SCHED):
            self.queues.remove(job)
            if self.conditions is not None:
                self.conditions.forget(job)
            self._give_up(job, now, CANCELED, "cancelled")
        self.settle()

    def interrupt(self, job: int, now: float, result: int, reason: str) -> None:
        """End a running job before its time; unless its node failed, its targets clean up."""
        self.recorder.reasons[job] = reason
        self._finish(job, now, result, reason)

    def requeue(self, job: int, now: float, reason: str) -> None:
        """Release the resources of a running job and queue it again, to run from its start."""
        progress = self.progress
        if self.queues.shares:
            self.queues.charge(job, now - self.recorder.start[job], now)
        self._free(job, now)
        progress.ends.pop(job, None)
        if self.expected is not None:
            self.expected.learn(job, now, ended=False)
        progress.states[job] = step(progress.states[job], "requeue")
        times = progress.requeues[job] = progress.requeues.get(job, 0) + 1
        self.recorder.requeue(job, now, times, reason)
        if self.recorder.events is not None:
            self.recorder.events.tell(job, now, "requeue", {"note": reason})
        self.queues.add(job)

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

    def _on_pass(self, _: None) -> None:
        self.progress.due = None
        self._pass(self.future.now)

    def _pass(self, now: float) -> None:
        """Let each queue policy start jobs, and note the state after it."""
        queues, progress = self.queues, self.progress
        if queues.limits is not None and queues.limits.refused:
            queues.limits.reconsider()
        begun = False
        for group in queues.in_turn if queues.magnets else queues.groups:
            queue, context, policy = group
            if queue.waiting:
                if self.preemption is not None:
                    self.preemption.make_room(group, now)
                context.open(now)
                policy.run_pass(context)
                started = context.close()
                if started:
                    self._start(started, now)
                    begun = True
                if context.promised:
                    self.recorder.promise(context.promised)
                if context.reservations is not None or context.wake < NEVER:
                    self._enter_wake(context.wake)
        if self.recorder.later is None:
            self.recorder.tick(now, self.plan, queues.waiting + queues.barred, queues.queued_cores)
        if begun and queues.limits is not None and queues.limits.refused:
            self._pass(now)  # the starts leave other resources to jobs whose allocation was too large
            return
        progress.passes = passes = progress.passes + 1
        if passes % REPORT_EVERY == 1 or (self.stop is not None and self.stop.is_set()):
            self._report()

    def _start(self, started: list[Start], now: float) -> None:
        """Record the jobs that the pass started, and enter their ends."""
        prepared, recorder, at = self.prepared, self.recorder, self.future.at
        states, ends, queues = self.progress.states, self.progress.ends, self.queues
        if queues.shares or queues.magnets:
            queues.begin(started, now)
        for job, selection, backfilled in started:
            states[job] = STARTED
            recorder.begin(job, now, selection, backfilled)
            queues.queued_cores -= prepared.sizes[job]
            end = now + prepared.runtimes[job]
            if self._early_last:
                self._enter_end(job, end)
            else:
                ends[job] = end
                at(end, END, "end", job)
            if self.expected is not None:
                self.expected.enter(job)
            if recorder.events is not None:
                recorder.events.note(job, now, "alloc", "start")
            if self.conditions is not None and self.conditions.start(job, now):
                at(now, SUBMISSION, "started", job)

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
        first = min((group.context.wake for group in self.queues if group.queue.waiting), default=NEVER)
        if first <= now:
            self.settle()
        else:
            self._enter_wake(first)

    def _on_until(self, _: None) -> None:
        """End the run: the last pass of this instant, and all that it led to at once, are over."""
        self.recorder.tick(self.future.now, self.plan, self.queued, self.queues.queued_cores)
        self.future.close()

    def _report(self) -> None:
        """Report progress, and end the run if it is to stop."""
        if self.on_report is not None:
            self.on_report(self)
        if self.stop is not None and self.stop.is_set():
            self.stopped = True
            self.future.close()
