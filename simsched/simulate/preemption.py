"""Preemption: jobs of a queue that preempts take the place of running jobs that may be.

A running job may be preempted once it has run the seconds that its jobspec says
(``attributes.system.preemptible-after``, RFC 14), by a waiting job whose queue `preempts` and
has a higher priority than its own.  Those that started last go first, no more of them than
are needed, and only those that help; they are queued again and start over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.plan import first_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.match.allocate import Availability
    from simsched.simulate.engine import Engine, Lane
    from simsched.simulate.queues import Queue
    from simsched.workload.job import Job


class Preemption:
    """Looks, before a pass, for a waiting job that may drive others out."""

    def __init__(self, jobs: Sequence[Job], of: Sequence[Queue | None]) -> None:
        self._of = of
        self._after = {
            number: float(after)
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
            request = lane.desk.request(job)
            selection = first_fit(request, free)
            if selection is None:
                victims = self._victims(engine, job, now, free)
                if victims is None:
                    return
                for victim in victims:
                    free.release(engine.plan.held[victim])
                    engine.requeue(victim, now, f"preempted by {engine.name_of(job)}")
                selection = first_fit(request, free)
            if selection is None:
                return
            free.claim(selection)

    def _victims(self, engine: Engine, job: int, now: float, free: Availability) -> list[int] | None:
        """Return the fewest running jobs, the latest first, without which the job fits; None: never."""
        request = engine.prepared.book.requests[job]
        assert request is not None
        starts = engine.recorder.start
        ranked = sorted(self._candidates(engine, job, now), key=lambda victim: (-starts[victim], -victim))
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
        request = engine.prepared.book.requests[job]
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

    def _candidates(self, engine: Engine, job: int, now: float) -> list[int]:
        mine = self._of[job]
        assert mine is not None
        found = []
        for victim in engine.plan.held:
            after = self._after.get(victim)
            if after is None or not engine.is_running(victim) or now - engine.recorder.start[victim] < after:
                continue
            queue = self._of[victim]
            if (0 if queue is None else queue.priority) < mine.priority:
                found.append(victim)
        return found
