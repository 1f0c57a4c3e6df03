"""`Desk`: what a queue policy sees and may do in one pass, and the table of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from simsched.match.policies.policy import POLICIES, find_policy
from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import select
from simsched.match.state.draws import with_units
from simsched.schedule.maintenance import Calendar

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import Book
    from simsched.schedule.policies.compression import Reservations
    from simsched.schedule.profiles.kept_plan import Outlook
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.queue import Waiting

    Integers = npt.NDArray[np.int64]


Start: TypeAlias = "tuple[int, Selection, bool]"
"""One job that the pass started, on what, and whether it passed a waiting job."""


class QueuePolicy(Protocol):
    """Decides who starts at one instant; it may keep what it knows from pass to pass."""

    def run_pass(self, desk: Desk) -> None:
        """Start what may start now."""


class Desk:
    """The queue, the plan and the clock of one cluster, as queue policies use them.

    `released` says that something was given back since the last pass, so that what failed
    may fit now; `moved` that a running job ended before its expected end or the machine
    changed, so that a reservation may move.  Both are reset by `close`.
    """

    __slots__ = (
        *("_closes", "_failed", "_policy", "_rng", "_single"),
        *("book", "calendar", "moved", "now", "outlook", "plan", "promised", "released", "reservations"),
        *("started", "waiting", "wake"),
    )

    def __init__(
        self,
        book: Book,
        plan: Plan,
        waiting: Waiting,
        match_policy: str | MatchPolicy = "first",
        rng: np.random.Generator | None = None,
        calendar: Calendar | None = None,
    ) -> None:
        self.book = book
        self.plan = plan
        self.waiting = waiting
        self.now: float = 0
        self.released = True
        self.moved = True
        self.started: list[Start] = []
        self.outlook: Outlook | None = None
        """What a policy that plans ahead knows from its last pass; it can always be made anew."""
        self.reservations: Reservations | None = None
        """What is free over time under a policy that keeps its reservations; it can always be rebuilt."""
        self.promised: list[tuple[int, float]] = []
        """The jobs that were promised a start in this pass, and the starts (seconds)."""
        self.wake = float("inf")
        """When the next reservation begins: a pass is wanted then, whatever else happens."""
        self._failed: set[int] = set()
        self._single = book.single or ""
        self.calendar = calendar or Calendar()
        self._closes = bool(self.calendar)
        self._policy = find_policy(match_policy)
        asked = {id(request): request for request in book.requests if request is not None}.values()
        plan.counts_only = not self._policy.each_copy and not any(r.names_units for r in asked)
        if book.content is not None:
            plan.count_copies(book.content)
        self._rng = rng

    def fit(self, job: int) -> Selection | None:
        """Return what the job would get if it started now, or None.

        A request that failed is not matched again until something is released.
        """
        book = self.book
        if self._single:
            return self.match(job) if book.units[job] <= self.free_units() else None
        kind = book.kinds[job]
        if kind in self._failed:
            return None
        selection = self.match(job)
        if selection is None and not self._closes:
            self._failed.add(kind)
        return selection

    def match(self, job: int) -> Selection | None:
        """Match the job on what is available now, without a look at what failed before."""
        if self._closes:
            return self.seek_at(job, self.plan.available, self.now)
        return self.seek(self.request(job), self.plan.available)

    def matched(self, job: int) -> Selection:
        """Match a job of which the counts say that it fits."""
        selection = self.match(job)
        assert selection is not None, "the counts promised more than the matcher found"
        return selection

    @property
    def is_steady(self) -> bool:
        """Whether equal requests get equal answers while nothing changes: no lots, no closures."""
        policy = self._policy
        return not self._closes and policy is POLICIES.get(policy.name) and policy.name != "random"

    def request(self, job: int) -> Request:
        """Return the compiled request of a job that waits (so it has one)."""
        request = self.book.requests[job]
        assert request is not None
        return request

    def free(self) -> Integers:
        """Return the free units of each type of the book, shape (types, 1)."""
        free = self.plan.free
        return np.array([[free(type_)] for type_ in self.book.types], dtype=np.int64).reshape(-1, 1)

    def free_units(self) -> int:
        """Return the free units of the single type of the book; the idle targets if there is none."""
        return self.plan.free(self._single) if self._single else self.plan.idle

    def could_start(self, job: int) -> bool:
        """Whether the sums of free units do not rule out that the job starts now."""
        if self._single:
            return self.book.units[job] <= self.free_units()
        free = self.plan.free
        demand = self.book.demand[:, job].tolist()
        return all(need <= free(type_) for type_, need in zip(self.book.types, demand, strict=True))

    def fits_now(self, jobs: Integers) -> npt.NDArray[np.bool_]:
        """Return which jobs the sums of free units do not rule out."""
        if self._single:
            few: npt.NDArray[np.bool_] = self.book.demand[0][jobs] <= self.free_units()
            return few
        fits: npt.NDArray[np.bool_] = np.logical_and.reduce(self.book.demand[:, jobs] <= self.free(), axis=0)
        return fits

    def seek(self, request: Request, available: Availability) -> Selection | None:
        """Match under this desk's match policy.

        Where the exact search ends without an answer, the job waits: it is asked again once
        something is released.
        """
        try:
            return select(request, available, self._policy, self._rng)
        except SearchLimitError:
            return None

    def seek_at(self, job: int, available: Availability, time: float) -> Selection | None:
        """Match a job that would start at `time` on what is available then, closures considered."""
        if self._closes:
            available = self.calendar.within(available, time, time + self.book.durations[job])
        return self.seek(self.request(job), available)

    def start(self, job: int, selection: Selection, *, backfilled: bool = False) -> None:
        """Start a waiting job now; its expected end is now + its requested duration."""
        if selection.counted:
            selection = with_units(selection, self.plan.available, highest=self._policy.highest)
        self.waiting.remove(job)
        self.plan.claim(job, selection, self.now + self.book.durations[job])
        self.started.append((job, selection, backfilled))

    def state(self) -> dict[str, Any]:
        """Return what passes to come need to know; plans that can be rebuilt are left out."""
        return {"failed": self._failed, "released": self.released, "moved": self.moved, "wake": self.wake}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of an equal context."""
        self._failed = state["failed"]
        self.released, self.moved, self.wake = state["released"], state["moved"], state["wake"]

    def open(self, now: float) -> None:
        """Begin a pass at `now`."""
        self.now = now
        if self.released and self._failed:
            self._failed.clear()
        if not self.waiting.static:
            self.waiting.sort(now)

    def close(self) -> list[Start]:
        """End the pass and return what it started, in order.

        Where candidates are judged by their actual run times, the expected ends of those that
        started may lie behind the reservation, which moves with them.
        """
        started = self.started
        self.released = False
        self.moved = bool(started) and self.book.judged is not self.book.durations
        self.waiting.fresh.clear()
        self.waiting.gone.clear()
        if started:
            self.started = []
        return started
