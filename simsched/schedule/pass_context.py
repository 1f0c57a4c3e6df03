"""`PassContext`: the queue, the supply and the time of one scheduling pass, as a queue policy sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from simsched.match.policies.policy import find_policy
from simsched.match.state.draws import with_units
from simsched.schedule.count_supply import CountSupply
from simsched.schedule.maintenance import Calendar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy as np

    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.reservations import Reservations
    from simsched.schedule.supply import Supply


Start: TypeAlias = "tuple[int, Selection, bool]"
"""A job that the pass started, its resources, and whether it passed a waiting job."""


class QueuePolicy(Protocol):
    """Decides which waiting jobs start at an instant; its attributes last from pass to pass."""

    def run_pass(self, context: PassContext) -> None:
        """Start the jobs that may start now."""


class StartLimits(Protocol):
    """Counts the use of limits.

    Attributes
    ----------
    blocks : whether a limit blocks jobs behind the one that waits for it; only then a pass is opened.
    gone : the jobs that the present pass barred.
    """

    @property
    def blocks(self) -> bool:
        """See above."""

    @property
    def gone(self) -> Collection[int]:
        """See above."""

    def open(self, queue: WaitingQueue) -> None:
        """Begin a pass over a queue."""

    def close(self) -> None:
        """End the pass."""

    def allows(self, job: int, selection: Selection, now: float) -> bool:
        """Whether the limits allow a job with this allocation; if not, bar it for a time."""

    def started(self, job: int, now: float) -> None:
        """Count a job that the pass started now (seconds), and bar waiting jobs that are over a limit now."""


class PassContext:
    """The view and the actions of a queue policy in a scheduling pass; it lasts from pass to pass.

    Attributes
    ----------
    table : the jobs of the workload, by number.
    queue : the jobs that wait, in order.
    plan : the running jobs and their expected ends.
    supply : the free resources, now and later.
    now : the time of the pass, in seconds.
    released : resources were released since the last pass, so a request that failed may fit now.
    moved : a job ended before its expected end or the machine changed since the last pass, so a
        reservation may move.
    started : the jobs that the pass has started.
    reservations : availability over time under a policy whose reservations last; None: to be rebuilt.
    promised : the jobs that were promised a start in this pass, and the starts in seconds.
    wake : when the next reservation begins: a pass is needed then, whatever else happens.
    limits : counts each job that starts, and bars those for which a limit is used up; or None.
    """

    def __init__(
        self,
        table: JobTable,
        plan: Plan,
        queue: WaitingQueue,
        match_policy: str | MatchPolicy = "first",
        rng: np.random.Generator | None = None,
        calendar: Calendar | None = None,
    ) -> None:
        self.table = table
        self.plan = plan
        self.queue = queue
        policy = find_policy(match_policy)
        root = None if rng is None or policy.is_steady else int(rng.integers(1 << 63))
        self.supply = _supply(table, plan, policy, root, calendar or Calendar())
        self.now: float = 0
        self.released = True
        self.moved = True
        self.started: list[Start] = []
        self.reservations: Reservations | None = None
        self.promised: list[tuple[int, float]] = []
        self.wake = float("inf")
        self.limits: StartLimits | None = None

    @property
    def barred(self) -> set[int]:
        """The waiting jobs that a limit keeps from starting; starts of this pass may have used it up.

        They are out of the view of the queue.  A policy that goes through a list of jobs skips them.
        """
        return self.queue.barred

    @property
    def predicts(self) -> bool:
        """Whether plans are made by predictions, which may be too short: no start can be promised."""
        return self.table.limits is not self.table.durations

    def renew(self) -> None:
        """Make the supply again, because the table got another kind of request or longer arrays."""
        old = self.supply
        self.supply = _supply(self.table, self.plan, old.policy, old.root, old.calendar)
        self.supply.now, self.supply.failed = old.now, old.failed
        self.reservations = None

    def request(self, job: int) -> Request:
        """Return the compiled request of a job that waits."""
        return self.supply.request(job)

    def could_start(self, job: int) -> bool:
        """Whether the sums of free units do not rule out that the job starts now; quicker than `fit`."""
        return self.supply.could_start(job)

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None. The next start may take them."""
        return None if job in self.queue.barred else self.supply.fit(job)

    def allows(self, job: int, selection: Selection) -> bool:
        """Whether limits allow the job with this allocation; if not, it is out of view for a time."""
        return self.limits is None or self.limits.allows(job, selection, self.now)

    def start(self, job: int, selection: Selection, backfilled: bool = False) -> bool:
        """Start a waiting job now; its expected end is now + its requested duration.

        `selection` is the result of `fit` or `Shadow.fit_beside`; `backfilled` says that the job passes a
        waiting one.  Return False if a limit does not allow the allocation, which may be more than the least
        that the request takes: the job is out of view until something is released.  TypeError without one;
        ValueError for a job that is barred or does not wait, and for resources that an earlier start took.
        """
        queue = self.queue
        if job in queue.barred:
            raise ValueError(f"start(job {job}) is over a limit (expected a job that is not in barred)")
        if job not in queue:
            raise ValueError(f"start(job {job}) got a job that does not wait (expected one of the queue)")
        if selection is None:
            raise TypeError(f"start(job {job}) got no selection (expected the result of fit, not None)")
        limits, plan = self.limits, self.plan
        if limits is not None and not limits.allows(job, selection, self.now):
            return False
        if selection.counted and plan.available.partial is not None:
            # The matcher may have chosen numbers of units only, of a state that keeps their ids.
            selection = with_units(selection, plan.available, highest=self.supply.policy.highest)
        plan.claim(job, selection, self.now + self.table.durations[job])
        queue.remove(job)
        self.started.append((job, selection, backfilled))
        if limits is not None:
            limits.started(job, self.now)
        return True

    def expect_later(self) -> None:
        """Note that a running job is expected to end later: reservations are made again.

        A reservation that moves later may let a job pass that was refused, as after a release.
        """
        self.released = self.moved = True

    def open(self, now: float) -> None:
        """Begin a pass at a time, in seconds."""
        supply, queue = self.supply, self.queue
        self.now = supply.now = now
        if self.released and supply.failed:
            supply.failed.clear()
        if not queue.static:
            queue.sort(now)
        if self.limits is not None and self.limits.blocks:
            self.limits.open(queue)

    def close(self) -> list[Start]:
        """End the pass and return the jobs that it started, in order."""
        started, queue, limits = self.started, self.queue, self.limits
        self.released = self.moved = False
        if queue.fresh:
            queue.fresh.clear()
        if queue.gone:
            queue.gone.clear()
        if limits is not None and (limits.gone or limits.blocks):
            limits.close()  # jobs that it takes out of view are gone in the next pass
        if started:
            # Where candidates are judged by their actual run times, the expected end of a job that was
            # started may be behind the reservation, which moves with it.
            self.moved = self.table.judged is not self.table.durations
            self.started = []
        return started

    def state(self) -> dict[str, Any]:
        """Return the part that a checkpoint must keep, as plain values; the rest can be rebuilt."""
        return {
            "failed": self.supply.failed,
            "released": self.released,
            "moved": self.moved,
            "wake": self.wake,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put the context into a state."""
        self.supply.failed = state["failed"]
        self.released = state["released"]
        self.moved = state["moved"]
        self.wake = state["wake"]


def _supply(table: JobTable, plan: Plan, policy: MatchPolicy, root: int | None, calendar: Calendar) -> Supply:
    """Return a supply by counts if they decide for every job of the table, and one on the graph if not."""
    requests = [request for request in table.by_kind if request is not None]
    by_id = plan.keeps_ids or policy.each_copy or any(request.names_units for request in requests)
    plan.counts_only = not by_id
    if table.single is not None:
        return CountSupply(table, plan, policy, root, calendar)
    from simsched.schedule.graph_supply import GraphSupply  # a fifth of what a run of counts would import

    return GraphSupply(table, plan, policy, root, calendar)
