"""Preemption: jobs of a queue that preempts take the resources of preemptible running jobs.

A running job may be preempted once it has run for the seconds in its jobspec
(``attributes.system.preemptible-after``, RFC 14), by a waiting job whose queue `preempts` and
has a higher priority than its own.  Jobs that started last are preempted first, and only until the
waiting job fits; they are queued again and start over.  If a job waits until others have run for
these seconds, a pass is entered for that instant.

`RipeTimes`: the passes at which running jobs may be preempted that could not before.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from simsched.schedule.profiles.plan import first_fit
from simsched.simulation.environment import SUBMISSION
from simsched.simulation.listeners import Listener

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from simsched.match.state.availability import Availability
    from simsched.simulation.engine import Engine
    from simsched.simulation.queue_groups import QueueGroup
    from simsched.simulation.queues import Queue
    from simsched.workload.job import Job


class RipeTimes:
    """Enters a pass for the next time from which a running job may be preempted.

    Attributes
    ----------
    entered : the times (s) at which a pass is entered already; a part of the state of a run.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.entered: set[float] = set()
        engine.future.handle("ripe", self._on_ripe)

    def expect(self, times: Iterable[float], now: float) -> None:
        """Enter a pass for the first of some times (s) that are still to come, if there is one."""
        ripe = min((time for time in times if now < time < inf), default=now)
        if ripe > now and ripe not in self.entered:
            self.entered.add(ripe)
            self._engine.future.at(ripe, SUBMISSION, "ripe")

    def _on_ripe(self, _: None) -> None:
        self.entered.discard(self._engine.now)
        self._engine.settle()


def _whole(seconds: float) -> float:
    """Return a whole number as an int, so that times keep the spelling of the workload."""
    return int(seconds) if seconds.is_integer() else seconds


class Preemption(Listener):
    """Looks, before a pass, for a waiting job that may preempt others."""

    def __init__(self, engine: Engine, of: Sequence[Queue | None]) -> None:
        self._engine = engine
        self._of = of
        self._after: dict[int, float] = {}
        self._ripe = RipeTimes(engine)

    def joined(self, first: int, jobs: Sequence[Job]) -> None:
        """Note which jobs may be preempted, and from when on."""
        for number, job in enumerate(jobs, first):
            after = job.jobspec.system.get("preemptible-after")
            if after is not None:
                self._after[number] = _whole(float(after))

    def state(self) -> dict[str, Any]:
        """Return the times at which passes are entered."""
        return {"ripe_at": self._ripe.entered}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal part."""
        self._ripe.entered = state["ripe_at"]

    def turn(self, group: QueueGroup, now: float) -> None:
        """Preempt for each of the first jobs of the group that preempt, one after the other."""
        if not self._after:
            return
        engine = self._engine
        limits, served = engine.queues.limits, list[int]()
        free = engine.plan.available.copy()
        for job in list(group.queue):
            queue = self._of[job]
            if queue is None or not queue.preempts:
                return  # jobs of queues of higher priority come first
            if limits is not None and not limits.allows_beside(job, served):
                continue
            request = group.context.request(job)
            open_ = self._open_to(group, job, now, free)
            selection = first_fit(request, open_)
            if selection is None:
                victims = self._victims(job, now, open_)
                if victims is None:
                    self._ripe.expect(map(self._ripens, self._lower(job)), now)
                    return
                for victim in victims:
                    free.release(engine.plan.held[victim])
                    engine.requeue(victim, now, f"preempted by {engine.name_of(job)}")
                selection = first_fit(request, self._open_to(group, job, now, free))
            if selection is None:
                return
            free.claim(selection)
            served.append(job)

    def _open_to(self, group: QueueGroup, job: int, now: float, state: Availability) -> Availability:
        """Return a state without the targets that close before the limit of a job that starts now."""
        supply = group.context.supply
        if not supply.calendar:
            return state
        return supply.calendar.within(state, now, now + supply.table.limits[job])

    def _ripens(self, job: int) -> float:
        """Return the time (seconds) from which a running job may be preempted."""
        return self._engine.recorder.start[job] + self._after[job]

    def _victims(self, job: int, now: float, free: Availability) -> list[int] | None:
        """Return the fewest running jobs, the latest first, without which the job fits, or None."""
        engine = self._engine
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
                return self._needed(job, chosen, free)
        return None

    def _needed(self, job: int, chosen: list[int], free: Availability) -> list[int]:
        """Return the chosen jobs without those whose preemption does not help."""
        engine = self._engine
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
        """Yield the running jobs of queues of lower priority that may be preempted at some time."""
        engine, mine = self._engine, self._of[job]
        assert mine is not None
        for victim in engine.plan.held:
            if victim in self._after and engine.is_running(victim):
                queue = self._of[victim]
                if (0 if queue is None else queue.priority) < mine.priority:
                    yield victim
