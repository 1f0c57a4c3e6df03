"""`Arrivals`: the jobs that were handed in and whose submit time is still to come."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.workload.job import Job

NEVER = float("inf")


class Arrivals:
    """Jobs by submit time; jobs of one time come in the order in which they were handed in."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Job]] = []
        self._counted = 0
        self._withdrawn: set[int] = set()
        self.ids: set[str] = set()
        """The ids of the jobs that are to come, as text."""

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
        self.ids.add(str(job.id))
        return self._counted

    def take(self, now: float) -> Iterator[tuple[int, Job]]:
        """Take out and yield (ticket, job) for each job whose time has come."""
        heap, withdrawn = self._heap, self._withdrawn
        while heap and heap[0][0] <= now:
            _, ticket, job = heappop(heap)
            if ticket in withdrawn:
                withdrawn.discard(ticket)
            else:
                self.ids.discard(str(job.id))
                yield ticket, job

    def withdraw(self, ticket: int, id_: int | str) -> None:
        """Take out a job whose time has not come."""
        self._withdrawn.add(ticket)
        self.ids.discard(str(id_))

    def exchange(self, ticket: int, job: Job) -> None:
        """Put another job of the same time in the place of one whose time has not come."""
        self._heap = [(time, at, job if at == ticket else old) for time, at, old in self._heap]

    def state(self, plain: Callable[[Job], Any]) -> dict[str, Any]:
        """Return the jobs and tickets as plain values; `plain` turns a job into one."""
        coming = [[ticket, plain(job)] for _, ticket, job in sorted(self._heap, key=_when)]
        return {"coming": coming, "tickets": self._counted, "withdrawn": sorted(self._withdrawn)}

    def restore(self, state: Mapping[str, Any], read: Callable[[Any], Job]) -> None:
        """Take over the state of an equal value; `read` is the inverse of `plain`."""
        jobs = [(ticket, read(document)) for ticket, document in state["coming"]]
        self._heap = [(job.submit, ticket, job) for ticket, job in jobs]  # in order, hence a heap
        self._counted, self._withdrawn = state["tickets"], set(state["withdrawn"])
        self.ids.update(str(job.id) for ticket, job in jobs if ticket not in self._withdrawn)

    @property
    def tickets(self) -> Iterator[tuple[int, Job]]:
        """(Ticket, job) of the jobs that are to come."""
        return ((ticket, job) for _, ticket, job in self._heap if ticket not in self._withdrawn)

    def take_over(self, other: Arrivals) -> None:
        """Hold the same jobs as another value; tickets stay valid."""
        self._heap, self._counted = list(other._heap), other._counted
        self._withdrawn = set(other._withdrawn)
        self.ids.update(other.ids)


def _when(entry: tuple[float, int, Job]) -> tuple[float, int]:
    return entry[:2]
