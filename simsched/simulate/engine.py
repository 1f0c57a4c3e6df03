"""`Engine`: the event loop of one run.

One simpy dispatcher with callbacks: no process per job.  At one instant: ends, then
disruptions, then submissions and met dependencies, then one scheduling pass.  A job that
runs zero seconds ends at the instant it started, after that pass, and another pass follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from simpy.core import StopSimulation

from simsched.match.allocate import Availability
from simsched.schedule.desk import Desk
from simsched.schedule.order import job_order
from simsched.schedule.plan import Plan
from simsched.schedule.policies import queue_policy
from simsched.schedule.waiting import Waiting
from simsched.simulate.clock import END, SUBMISSION, Clock
from simsched.simulate.lifecycle import ARRIVED, ENDED, STARTED, State
from simsched.simulate.record import COMPLETED, TIMEOUT

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from simpy.events import Event

    from simsched.graph.index import Index
    from simsched.schedule.desk import Start
    from simsched.simulate.config import RunConfig
    from simsched.simulate.prepare import Prepared
    from simsched.simulate.record import Recorder

#: Passes between two reports of progress.
REPORT_EVERY = 512


class Engine:
    """Runs the prepared jobs to their ends; everything that happened is in the recorder."""

    def __init__(self, prepared: Prepared, index: Index, config: RunConfig, recorder: Recorder) -> None:
        self.prepared = prepared
        self.recorder = recorder
        self.clock = Clock()
        self.available = Availability(index)
        self.plan = Plan(self.available, whole=prepared.takes_whole_targets)
        self.waiting = Waiting(prepared.book, job_order(config.order))
        rng = np.random.default_rng(config.seed)
        self.desk = Desk(prepared.book, self.plan, self.waiting, config.match_policy, rng)
        self.policy = queue_policy(config.queue_policy, config.queue_options)
        self.state = [State.NEW] * len(prepared.submits)
        self.done = 0
        self.progress: Callable[[Engine], None] | None = None
        self.stop: threading.Event | None = None
        self._stopped = False
        self._each_event = config.passes == "event"
        self._next = 0
        self._passes = 0
        self._queued_cores = 0

    def run(self) -> bool:
        """Run until nothing more can happen, or `stop` is set; return whether it came to its end."""
        self._schedule_submission()
        self.clock.run()
        return not self._stopped

    @property
    def now(self) -> float:
        """The simulated time, in seconds."""
        return self.clock.now

    # -- what happens ---------------------------------------------------------------------

    def _schedule_submission(self) -> None:
        if self._next < len(self.prepared.submits):
            self.clock.at(self.prepared.submits[self._next], SUBMISSION, self._on_submission)

    def _on_submission(self, _: Event) -> None:
        """Take in every job that is submitted now."""
        now = self.clock._now
        submits = self.prepared.submits
        at = self._next
        while at < len(submits) and submits[at] == now:
            self._arrive(at, now)
            at += 1
            if self._each_event:
                self._pass(now)
        self._next = at
        self._schedule_submission()
        self._settle(now)

    def _arrive(self, job: int, now: float) -> None:
        rejected = self.prepared.rejected.get(job)
        if rejected is not None:
            self.recorder.reject(job, *rejected)
            self.state[job] = State.INACTIVE
            self.done += 1
            return
        self.state[job] = ARRIVED
        self.recorder.eligible[job] = now
        self.waiting.add(job)
        self._queued_cores += self.prepared.sizes[job]

    def _on_end(self, event: Event) -> None:
        now = self.clock._now
        job: int = event._value
        plan, desk = self.plan, self.desk
        desk.released = True
        if plan.expected_end(job) > now:
            desk.moved = True
        plan.release(job)
        self.state[job] = ENDED
        self.done += 1
        self.recorder.finish(job, now, TIMEOUT if self.prepared.timeouts[job] else COMPLETED)
        self._settle(now)

    def _settle(self, now: float) -> None:
        """Run the pass once nothing else happens at this instant."""
        if self._each_event or self.clock.last_of_instant():
            self._pass(now)

    def _pass(self, now: float) -> None:
        waiting = self.waiting
        if waiting.ranks:
            desk = self.desk
            desk.open(now)
            self.policy.run_pass(desk)
            started = desk.close()
            if started:
                self._start(started, now)
        self.recorder.tick(now, self.plan, len(waiting.ranks), self._queued_cores)
        self._passes += 1
        if self._passes % REPORT_EVERY == 1:
            self._report()

    def _start(self, started: list[Start], now: float) -> None:
        """Note what the pass started, and when it will end."""
        prepared, recorder, at, state = self.prepared, self.recorder, self.clock.at, self.state
        for job, selection, backfilled in started:
            state[job] = STARTED
            recorder.begin(job, now, selection, backfilled)
            self._queued_cores -= prepared.sizes[job]
            at(now + prepared.runtimes[job], END, self._on_end, job)

    def _report(self) -> None:
        """Tell how far the run is, and stop it if somebody wants it to."""
        if self.progress is not None:
            self.progress(self)
        if self.stop is not None and self.stop.is_set():
            self._stopped = True
            raise StopSimulation(None)

    def _check(self) -> None:
        self.plan._check()
        self.waiting._check()
        assert self.done + len(self.plan) + len(self.waiting) <= len(self.prepared.submits)
