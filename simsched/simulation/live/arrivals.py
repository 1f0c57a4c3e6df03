"""`Arrivals`: the jobs that were handed in and whose submit time is still to come."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from simsched.simulation.environment import SUBMISSION
from simsched.simulation.listeners import Listener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.simulation.engine import Engine
    from simsched.simulation.live.growth import Growth
    from simsched.simulation.outages.disruption import Disruption
    from simsched.workload.job import Job

NEVER = float("inf")


class Arrivals(Listener):
    """Jobs by submit time; jobs of one time come in the order in which they were handed in.

    Attributes
    ----------
    ids : the ids of the jobs that are to come, and of the arrays that they are tasks of, each so often.
    endless : whether more jobs may be handed in for all that is known, so that failures go on.
    """

    def __init__(self, engine: Engine, growth: Growth, disruption: Disruption) -> None:
        self._engine, self._growth, self._disruption = engine, growth, disruption
        self._heap: list[tuple[float, int, Job]] = []
        self._counted = 0
        self._withdrawn: set[int] = set()
        self.ids: Counter[str] = Counter()
        self.endless = False
        self._coming = NEVER
        """The earliest time for which an event for submissions is entered."""
        growth.prepared.conditions.coming = self.ids
        engine.future.handle("submission", self._on_submission)

    def goes_on(self) -> bool:
        """Whether more jobs come, or may come."""
        return self.endless or len(self) > 0

    def hand_in(self, job: Job) -> int:
        """Let a job arrive at its submit time, and return its ticket."""
        ticket = self.add(job)
        self.expect()
        return ticket

    def expect(self) -> None:
        """Enter an event for the next arrival, unless one is entered."""
        time = self.next_time
        if time < self._coming:
            self._coming = time
            self._engine.future.at(time, SUBMISSION, "submission")

    def _on_submission(self, _: None) -> None:
        """Take in every job that arrives now."""
        engine, growth, now = self._engine, self._growth, self._engine.now
        if self._coming <= now:
            self._coming = NEVER
        self._disruption.wake(now)
        taken = [*self.take(now)]
        if taken:  # else the jobs of this instant were taken in or withdrawn
            first = growth.extend([one for _, one in taken])
            for number, (ticket, _) in enumerate(taken, first):
                for hear in engine.on.numbered:
                    hear(ticket, number)
            engine.take_in()
        self.expect()

    def __len__(self) -> int:
        return len(self._heap) - len(self._withdrawn)

    def __iter__(self) -> Iterator[Job]:
        """Yield the jobs in the order in which they will come."""
        return (job for _, at, job in sorted(self._heap, key=_when) if at not in self._withdrawn)

    @property
    def next_time(self) -> float:
        """When the next job comes, in seconds; inf without one."""
        while self._heap and self._heap[0][1] in self._withdrawn:
            self._withdrawn.discard(heappop(self._heap)[1])
        return self._heap[0][0] if self._heap else NEVER

    def add(self, job: Job) -> int:
        """Add a job and return its ticket, by which it can be withdrawn."""
        self._counted += 1
        heappush(self._heap, (job.submit, self._counted, job))
        self.ids.update(names_of(job))
        return self._counted

    def take(self, now: float) -> Iterator[tuple[int, Job]]:
        """Take out and yield (ticket, job) for each job whose time has come."""
        heap, withdrawn = self._heap, self._withdrawn
        while heap and heap[0][0] <= now:
            _, ticket, job = heappop(heap)
            if ticket in withdrawn:
                withdrawn.discard(ticket)
            else:
                self._forget(job)
                yield ticket, job

    def withdraw(self, ticket: int, job: Job) -> None:
        """Take out a job whose time has not come."""
        self._withdrawn.add(ticket)
        self._forget(job)

    def _forget(self, job: Job) -> None:
        self.ids.subtract(names_of(job))
        for name in names_of(job):
            if not self.ids[name]:
                del self.ids[name]

    def exchange(self, ticket: int, job: Job) -> None:
        """Put another job of the same time in the place of one whose time has not come."""
        self._heap = [(time, at, job if at == ticket else old) for time, at, old in self._heap]

    def plain(self, plain: Callable[[Job], Any]) -> dict[str, Any]:
        """Return the jobs and tickets as plain values; `plain` turns a job into one."""
        coming = [[ticket, plain(job)] for _, ticket, job in sorted(self._heap, key=_when)]
        return {"coming": coming, "tickets": self._counted, "withdrawn": sorted(self._withdrawn)}

    def put_back(self, state: Mapping[str, Any], read: Callable[[Any], Job]) -> None:
        """Take over the jobs and tickets; `read` is the inverse of `plain`."""
        jobs = [(ticket, read(document)) for ticket, document in state["coming"]]
        self._heap = [(job.submit, ticket, job) for ticket, job in jobs]  # in order, hence a heap
        self._counted, self._withdrawn = state["tickets"], set(state["withdrawn"])
        for ticket, job in jobs:
            if ticket not in self._withdrawn:
                self.ids.update(names_of(job))

    @property
    def tickets(self) -> Iterator[tuple[int, Job]]:
        """(Ticket, job) of the jobs that are to come."""
        return ((ticket, job) for _, ticket, job in self._heap if ticket not in self._withdrawn)

    def take_over(self, other: Arrivals) -> None:
        """Hold the same jobs as another value; tickets stay valid."""
        self._heap, self._counted = list(other._heap), other._counted
        self._withdrawn = set(other._withdrawn)
        self.ids.update(other.ids)


def names_of(job: Job) -> list[str]:
    """Return the ids by which dependencies name a job: its own, and that of its array."""
    return [str(job.id), *([] if job.array_task is None else [job.array_task.array])]


def _when(entry: tuple[float, int, Job]) -> tuple[float, int]:
    return entry[:2]
