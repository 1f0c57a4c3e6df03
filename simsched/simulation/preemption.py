"""Preemption: jobs of a queue that preempts take the place of running jobs that may be.

A running job may be preempted once it has run the seconds that its jobspec says
(``attributes.system.preemptible-after``, RFC 14), by a waiting job whose queue `preempts` and
has a higher priority than its own.  Those that started last go first, no more of them than
are needed, and only those that help; they are queued again and start over.  Where a job waits for
others to have run that long, the pass at that instant is made for it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from simsched.schedule.profiles.plan import first_fit
from simsched.simulation.environment import SUBMISSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simpy.events import Event

    from simsched.match.state.availability import Availability
    from simsched.simulation.engine import Engine, Lane
    from simsched.simulation.queues import Queue
    from simsched.workload.job import Job


def _whole(seconds: float) -> float:
    """Return whole numbers as such, so that times stay those of the workload."""
    return int(seconds) if seconds.is_integer() else seconds


class Preemption:
    """Looks, before a pass, for a waiting job that may drive others out."""

    def __init__(self, engine: Engine, jobs: Sequence[Job], of: Sequence[Queue | None]) -> None:
        self._engine = engine
        self._of = of
        self._ripe_at: set[float] | None = None  # times at which a pass is entered; None: not looked at
        self._after = {
            number: _whole(float(after))
            for number, job in enumerate(jobs)
            if (after := job.jobspec.system.get("preemptible-after")) is not None
        }

    def __bool__(self) -> bool:
        return bool(self._after) and any(queue is not None and queue.preempts for queue in self._of)

    def make_room(self, engine: Engine, lane: Lane, now: float) -> None:
        """Preempt what it takes for the first jobs of the queue that preempt, one after the other."""
        free = engine.plan.available.copy()
        for job in list(lane.waiting):
            queue = self._of[job]
            if queue is None or not queue.preempts:
                return  # queues of higher priority stand before it
            request = lane.context.request(job)
            selection = first_fit(request, free)
            if selection is None:
                victims = self._victims(engine, job, now, free)
                if victims is None:
                    self._come_back(job, now)
                    return
                for victim in victims:
                    free.release(engine.plan.held[victim])
                    engine.requeue(victim, now, f"preempted by {engine.name_of(job)}")
                selection = first_fit(request, free)
            if selection is None:
                return
            free.claim(selection)

    def _come_back(self, job: int, now: float) -> None:
        """Enter a pass for the instant at which the next running job may be preempted by this one."""
        clock, running = self._engine.clock, self._lower(job)
        if self._ripe_at is None:  # a run that goes on from a snapshot has some already
            self._ripe_at = {time for time, *_, call in clock._queue if call.callbacks == [self._on_ripe]}
        ripe = min((time for time in map(self._ripens, running) if now < time < inf), default=now)
        if ripe > now and ripe not in self._ripe_at:
            self._ripe_at.add(ripe)
            clock.at(ripe, SUBMISSION, self._on_ripe)

    def _on_ripe(self, _: Event) -> None:
        if self._ripe_at is not None:
            self._ripe_at.discard(self._engine.now)
        self._engine.settle()

    def _ripens(self, job: int) -> float:
        """Return from when on a running job may be preempted."""
        return self._engine.recorder.start[job] + self._after[job]

    def _victims(self, engine: Engine, job: int, now: float, free: Availability) -> list[int] | None:
        """Return the fewest running jobs, the latest first, without which the job fits; None: never."""
        request = engine.prepared.table.requests[job]
        assert request is not None
        starts = engine.recorder.start
        ranked = sorted(self._candidates(job, now), key=lambda victim: (-starts[victim], -victim))
        state = free.copy()
        chosen: list[int] = []
        for victim in ranked:
            state.release(engine.plan.held[victim])
            chosen.append(victim)
            if first_fit(request, state) is not None:
                return self._needed(engine, job, chosen, free)
        return None

    def _needed(self, engine: Engine, job: int, chosen: list[int], free: Availability) -> list[int]:
        """Drop those of the chosen whose going does not help."""
        request = engine.prepared.table.requests[job]
        assert request is not None
        needed = list(chosen)
        for spared in chosen[:-1]:
            state = free.copy()
            for victim in needed:
                if victim != spared:
                    state.release(engine.plan.held[victim])
            if first_fit(request, state) is not None:
                needed.remove(spared)
        return needed

    def _candidates(self, job: int, now: float) -> list[int]:
        return [victim for victim in self._lower(job) if self._ripens(victim) <= now]

    def _lower(self, job: int) -> Iterator[int]:
        """Yield the running jobs of lower queues that may be preempted at some time."""
        engine, mine = self._engine, self._of[job]
        assert mine is not None
        for victim in engine.plan.held:
            if victim in self._after and engine.is_running(victim):
                queue = self._of[victim]
                if (0 if queue is None else queue.priority) < mine.priority:
                    yield victim
