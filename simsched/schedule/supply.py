"""`Supply`: the free resources of a cluster, now and later, for the jobs of one queue.

Queue policies are written once, over this interface. A supply answers three kinds of questions:

* Now: may the job start, as far as sums tell (`could_start`), and on which resources (`fit`)?
* Shadow: when could the first job of the queue start if no other job started before it (`shadow`), and
  which later jobs may start now without moving that time (`Shadow.fit_beside`)?
* Over time: when could each job start beside reservations (`profile`, `reservations`, `plan_ahead`)?

Where every request of the workload is a number of units of one type, numbers alone decide
(`count_supply`). Elsewhere the sums of free units only rule jobs out, and the matcher decides on the graph
(`graph_supply`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simsched.match.policies.policy import POLICIES
from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import select
from simsched.match.state.draws import with_units
from simsched.schedule.orders.present_order import FIRST_SORTED
from simsched.schedule.profile import Profile
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.profiles.protocols import PassProfile
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.reservations import Reservations

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


class Supply(ABC):
    """The free resources of a cluster for the jobs of one queue.

    Attributes
    ----------
    table : the jobs.
    plan : the running jobs; several queues may share one plan.
    calendar : closures that are known in advance.
    now : the time of the present pass, in seconds.
    failed : kinds of requests that did not fit since the last release; they are not matched again.
    kept_pass : the plan of the last backfill pass of a policy that keeps one. It can be rebuilt.
    """

    __slots__ = ("_policy", "_rng", "_running", "_trial", "calendar", "failed", "kept_pass", "now", "plan", "table")

    def __init__(
        self,
        table: JobTable,
        plan: Plan,
        policy: MatchPolicy,
        rng: np.random.Generator | None,
        calendar: Calendar,
    ) -> None:
        self.table = table
        self.plan = plan
        self.calendar = calendar
        self.now: float = 0
        self.failed: set[int] = set()
        self.kept_pass: Any = None
        self._policy = policy
        self._rng = rng
        self._running: Profile | None = None
        """The running jobs over time; None, or one that no longer follows them, until it is asked for."""
        self._trial: Profile | None = None
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Make the facts that this kind of supply keeps."""

    # -- now ------------------------------------------------------------------------------------

    @abstractmethod
    def free_units(self) -> int:
        """Return the free units of the counted type; without one, the idle execution targets."""

    @abstractmethod
    def could_start(self, job: int) -> bool:
        """Whether the sums of free units do not rule out that the job starts now."""

    @abstractmethod
    def could_start_each(self, jobs: Integers) -> Bools:
        """Return for each job the answer of `could_start`."""

    @abstractmethod
    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None."""

    def fit_on(self, job: int, targets: Integers) -> Selection | None:
        """Return free resources on some targets only (ordinals) on which the job may start now, or None."""
        available = self.plan.available
        left = available.copy(counts_only=available.partial is None)
        others = np.ones(len(available.use), dtype=np.bool_)
        others[targets] = False
        left.set_status(others.nonzero()[0], up=False)
        return self.seek_at(job, left, self.now)

    def claim(self, job: int, selection: Selection) -> Selection:
        """Claim resources for a job that starts now; its expected end is its requested one.

        Return the selection with the ids of its units, unless these are not kept at all: the matcher may have
        chosen numbers of units only.
        """
        if selection.counted and self.plan.available.partial is not None:
            selection = with_units(selection, self.plan.available, highest=self._policy.highest)
        self.plan.claim(job, selection, self.now + self.table.durations[job])
        return selection

    # -- the first job of the queue -----------------------------------------------------------------

    @abstractmethod
    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it.

        Parameters
        ----------
        extra : whether other jobs may use resources that are left over at that time.
        fixed : whether the time is kept, even if it could be recomputed. Then resources that other jobs
            took beside it stay taken, even after these jobs have ended.
        """

    def trial_shadow(self, job: int) -> Shadow:
        """Return the shadow of a job as it is before any other job is let pass, to try one job beside it."""
        found = self.shadow(job)
        found.time(self)  # nothing is placed beside it before its time is known
        return found

    def candidates(self, jobs: Sequence[int]) -> Iterable[int]:
        """Return those of a few jobs that the sums of free units do not rule out."""
        return [job for job in jobs if self.could_start(job)]

    def rules_out_all(self, queue: WaitingQueue) -> bool:
        """Whether sums rule out every job of a queue whose order changes with time, without sorting any."""
        return not self.could_start_each(np.array(queue.ranks, dtype=np.int64)).any()

    def candidates_behind_first(self, queue: WaitingQueue, shadow: Shadow) -> Iterable[int]:
        """Return the jobs behind the first that sums do not rule out, now and beside a shadow, in order."""
        shadow.forget()
        if queue.sorts_parts:
            return chain.from_iterable(self.parts_behind_first(queue, shadow))
        jobs = queue.behind_first(self.could_start_each)
        if not len(jobs):
            return ()
        soon = self.table.judged_array[jobs] <= shadow.time(self) - self.now
        chosen: list[int] = jobs[soon | shadow.leaves_room(self, jobs)].tolist()
        return chosen

    def parts_behind_first(self, queue: WaitingQueue, shadow: Shadow) -> Iterator[list[int]]:
        """Yield the same in parts: the queue is sorted as far as is asked for.

        Less is free after each start, so the jobs that are not sorted yet are ruled out again first.
        """
        jobs, size = queue.behind_first_by_number(), FIRST_SORTED
        jobs = jobs[self.could_start_each(jobs)]
        if not len(jobs):
            return
        soon = self.table.judged_array[jobs] <= shadow.time(self) - self.now
        while len(jobs):
            some = soon | shadow.leaves_room(self, jobs)
            jobs, soon = jobs[some], soon[some]
            part, others = queue.first_of(jobs, size)
            yield part
            jobs, soon, size = jobs[others], soon[others], 4 * size
            some = self.could_start_each(jobs)
            jobs, soon = jobs[some], soon[some]

    # -- over time ------------------------------------------------------------------------------

    @abstractmethod
    def profile(self) -> PassProfile:
        """Return the availability over time beside the running jobs."""

    @abstractmethod
    def reservations(self) -> Reservations:
        """Return the running jobs over time, for reservations that last."""

    @abstractmethod
    def ahead(self) -> Reservations:
        """Return the running jobs over time, for a plan of one pass; it holds until the next one is asked for."""

    def _ahead(self) -> Profile:
        """Return a copy of the profile that follows the running jobs."""
        kernel = self.kinds.kernel
        if self._running not in self.plan.profiles:
            self._running, self._trial = self.plan.follow(kernel, self.now), Profile(kernel)
        self._running.advance(self.now)
        self._trial.become(self._running)
        return self._trial

    # -- the matcher ------------------------------------------------------------------------------

    @property
    def policy(self) -> MatchPolicy:
        """The match policy of the run."""
        return self._policy

    @property
    def rng(self) -> np.random.Generator | None:
        """The generator of the match policy's random choices."""
        return self._rng

    @property
    def is_steady(self) -> bool:
        """Whether equal requests get equal answers while nothing changes: no random choice, no closures."""
        policy = self._policy
        return not self.calendar and policy is POLICIES.get(policy.name) and not policy.random

    def request(self, job: int) -> Request:
        """Return the compiled request of a job that waits (so it has one)."""
        request = self.table.requests[job]
        assert request is not None
        return request

    def seek(self, request: Request, available: Availability) -> Selection | None:
        """Match a request under the match policy of the run.

        If the exact search gives up, the job waits: it is matched again after the next release.
        """
        try:
            return select(request, available, self._policy, self._rng)
        except SearchLimitError:
            return None

    def seek_at(self, job: int, available: Availability, time: float) -> Selection | None:
        """Match a job that would start at a time (seconds) on the state of that time, beside closures."""
        if self.calendar:
            # The limit and not a prediction: no job may still run when its target closes.
            available = self.calendar.within(available, time, time + self.table.limits[job])
        return self.seek(self.request(job), available)


class Shadow(Protocol):
    """The shadow time of the first job of a queue, and the resources that are left over then.

    It is a value that lasts from pass to pass; the supply of the present pass is an argument.
    """

    job: int
    unsettled: bool
    """Whether a job that was refused before may be admitted now, although nothing was released."""

    def time(self, supply: Supply) -> float:
        """Return the shadow time: the earliest start of the first job, in seconds."""

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed, because a job overruns."""

    def leaves_room(self, supply: Supply, jobs: Integers) -> Bools:
        """Return which jobs are not ruled out, by sums, beside the first job at the shadow time."""

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start."""

    def note_start(self) -> None:
        """Note that a job was started beside the shadow: less is left over.  Call it after each start."""

    def forget(self) -> None:
        """Forget which jobs were refused, before all jobs are considered again."""


class NoShadow:
    """The shadow of a job that is not protected or has no known earliest start: every job may pass it."""

    __slots__ = ("job", "unsettled")

    def __init__(self, job: int) -> None:
        self.job = job
        self.unsettled = False

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return infinity: every job ends by then."""
        return NEVER

    def is_past(self, now: float) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def leaves_room(self, supply: Supply, jobs: Integers) -> Bools:  # noqa: ARG002
        """Return true for each job."""
        return np.ones(len(jobs), dtype=np.bool_)

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources on which the job may start now."""
        return supply.fit(job)

    def note_start(self) -> None:
        """Do nothing: nothing is reserved."""

    def forget(self) -> None:
        """Do nothing: no job was refused."""
