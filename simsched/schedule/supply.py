"""`Supply`: the free resources of a cluster, now and later, for the jobs of one queue.

Queue policies are written once, over this interface. A supply answers three kinds of questions:

* Now: may the job start, as far as counts tell (`could_start`), and on which resources (`fit`)?
* Shadow: when could the first job of the queue start if no other job started before it (`shadow`), and
  which later jobs may start now (`candidates`) without moving that time (`Shadow.fit_beside`)?
* Over time: when could each job start beside reservations (`profile`, `reservations`, `ahead`)?

The kernel counts most kinds of requests and places them (`match.kernel`). The others are ruled out by sums of
free units, and placed by the general search. With closures ahead the answer depends on the requested time,
too, and the search is asked for each job. Where every request of the workload is a number of units of one
type, the machine is one target of the kernel (`count_supply`); elsewhere it is that of the graph
(`graph_supply`).
"""

from __future__ import annotations

from operator import le
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from simsched.match.search.exact import SearchLimitError
from simsched.match.search.select import select
from simsched.schedule.profile import Profile
from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Bools, Integers
    from simsched.match.kernel import Kernel
    from simsched.match.kernel_kinds import KernelKinds
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.job_table import JobTable
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.profiles.plan import Plan
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.reservations import Reservations


ANY = 1 << 62


Limits: TypeAlias = "tuple[float, int]"
"""A time (s) and copies: jobs that end after the time and have more copies need not be asked."""

NO_LIMITS = NEVER, ANY


class Supply:
    """The free resources of a cluster for the jobs of one queue.

    Attributes
    ----------
    table : the jobs.
    plan : the running jobs; several queues may share one plan.
    calendar : closures that are known in advance.
    closes : whether there are any.
    now : the time of the present pass, in seconds.
    policy : the match policy of the run.
    root : the number that random choices follow from; None: there are none.
    failed : kinds of requests that did not fit since the last release; they are not matched again.
    """

    def __init__(
        self,
        table: JobTable,
        plan: Plan,
        policy: MatchPolicy,
        root: int | None,
        calendar: Calendar,
    ) -> None:
        self.table = table
        self.plan = plan
        self._calendar, self.closes = calendar, bool(calendar)
        self.now: float = 0
        self.failed: set[int] = set()
        self.policy = policy
        self.root = root
        self._running: Profile | None = None
        """The running jobs over time; None, or one that no longer follows them, until it is asked for."""
        self._trial: Profile | None = None

    def _made_kinds(self) -> KernelKinds:
        """Return the kinds of requests in a kernel that counts them."""
        raise NotImplementedError

    def kinds(self) -> KernelKinds:
        """Return the kinds of requests in a kernel, which is made when it is first asked for."""
        found = self.plan.kinds
        if found is None:
            found = self._made_kinds()
            self.plan.count(found)
        return found

    @property
    def calendar(self) -> Calendar:
        """See above."""
        return self._calendar

    @calendar.setter
    def calendar(self, calendar: Calendar) -> None:
        self._calendar, self.closes = calendar, bool(calendar)
        self.plan.profiles.clear()  # they have the closures of before

    # -- now ------------------------------------------------------------------------------------

    def could_start(self, job: int) -> bool:
        """Whether counts and sums of free units do not rule out that the job starts now."""
        kinds, kind = self.kinds(), self.table.kinds[job]
        if kinds.counted[kind]:
            return kinds.kernel.fits(kind)
        return all(map(le, self.table.demand[:, kind].tolist(), map(self.plan.free, self.table.types)))

    def could_start_each(self, jobs: Integers) -> Bools:
        """Return for each job the answer of `could_start`."""
        kinds = self.kinds()
        could: Bools = kinds.fitting()[self.table.kinds_array[jobs]]
        if not kinds.all_counted:
            some = could.nonzero()[0]
            could[some] = self._within_sums(jobs[some])
        return could

    def _within_sums(self, jobs: Integers) -> Bools:
        """Return which jobs the sums of free units do not rule out."""
        free = np.array([self.plan.free(type_) for type_ in self.table.types], dtype=np.int64)
        return need_at_most(self.table.demand[:, self.table.kinds_array[jobs]], free)

    def fit(self, job: int) -> Selection | None:
        """Return free resources on which the job may start now, or None.

        A request that failed is not matched again until something is released. With closures it is
        matched again each time, because the answer also depends on the job's requested time.
        """
        kind, kinds = self.table.kinds[job], self.kinds()
        if kinds.placed[kind] and not self.closes:
            return kinds.selection(kind, job) if kinds.kernel.place(kind) else None
        return self._matched(job, kind)

    def _matched(self, job: int, kind: int) -> Selection | None:
        """Return the same by the general search."""
        if kind in self.failed or not self.could_start(job):
            return None
        selection = self.seek_at(job, self.plan.available, self.now)
        if selection is None and not self.closes:
            self.failed.add(kind)
        return selection

    def fit_on(self, job: int, targets: Integers) -> Selection | None:
        """Return free resources on some targets only (ordinals) on which the job may start now, or None."""
        available = self.plan.available
        left = available.copy(counts_only=available.partial is None)
        others = np.ones(len(available.use), dtype=np.bool_)
        others[targets] = False
        left.set_status(others.nonzero()[0], up=False)
        return self.seek_at(job, left, self.now)

    # -- the first job of the queue -----------------------------------------------------------------

    def shadow(self, job: int, *, extra: bool = True, fixed: bool = False) -> Shadow:
        """Return the earliest start of a job if no other job starts before it.

        Parameters
        ----------
        extra : whether other jobs may use resources that are left over at that time.
        fixed : whether the shadow is kept for later passes. Then resources that other jobs took beside the
            first one stay taken, even after these jobs have ended.
        """
        raise NotImplementedError

    def shadow_of_states(self, job: int, *, extra: bool, fixed: bool = False) -> Shadow:
        """Return the shadow by the general search on the states of later times."""
        raise NotImplementedError

    def next_fitting(self, queue: WaitingQueue, at: int) -> int:
        """Return the place of the first job of the queue by rank, from a place on, that may fit now."""
        table, kernel = self.table, self.kinds().kernel
        return queue.next(kernel, at, table.kinds_array, table.judged_array, self.now, NEVER, ANY)

    def behind(self, queue: WaitingQueue, first: int) -> Integers:
        """Return in order the jobs of the queue behind the first, with those that may fit now among them."""
        if queue.static:
            return queue.jobs(self.next_fitting(queue, 1))
        # An order that changes with time is worked out only for the jobs that could start.
        table, kinds = self.table, self.kinds()
        kind_of, judged = table.kinds_array, table.judged_array
        jobs = queue.behind(first, kinds.kernel, kind_of, judged, self.now, NEVER, ANY)
        return jobs if kinds.all_counted else jobs[self.could_start_each(jobs)]

    def candidates(self, jobs: Integers, shadow: Shadow) -> Iterator[int]:
        """Yield those of some jobs, in order, that the kernel does not rule out when it is their turn."""
        return Passers(self, self.kinds().kernel, jobs, shadow)

    # -- over time ------------------------------------------------------------------------------

    def reservations(self) -> Reservations:
        """Return the running jobs over time, for reservations that last."""
        raise NotImplementedError

    def components(self, jobs: Integers) -> Integers:
        """Return a number for each job; jobs with different ones share no targets, even through others."""
        return np.zeros(len(jobs), dtype=np.int64)

    def ahead(self) -> Reservations:
        """Return the running jobs over time, for a plan of one pass. The next one takes its place."""
        raise NotImplementedError

    def _profile(self) -> Profile:
        """Return a profile of the targets of the kernel without closures and running jobs."""
        return Profile(self.kinds().kernel)

    def follow(self) -> Profile:
        """Return the running jobs over time beside the closures, from now on."""
        profile = self._profile()
        self.plan.follow(profile, self.now)
        for closure in self.calendar.lasting(self.now):
            profile.shut(closure.targets, closure.start, closure.end)
        profile.short = False  # jobs may run where a closure has begun
        return profile

    def _present(self) -> Profile:
        """Return the running jobs over time, brought to the present."""
        running = self._running
        if running is None or running not in self.plan.profiles:
            running, self._trial = self.follow(), None
            self._running = running
        running.advance(self.now)
        return running

    def _ahead(self) -> Profile:
        """Return a copy of the running jobs over time."""
        running = self._present()
        trial = self._trial = self._trial or self._profile()
        trial.become(running)
        return trial

    # -- the matcher ------------------------------------------------------------------------------

    def draws(self, job: int) -> np.random.Generator | None:
        """Return the generator of the random choices for a job.

        They are the same whenever and however often it is tried, so that starts do not depend on which plans
        were made.
        """
        return None if self.root is None else np.random.default_rng([self.root, job])

    @property
    def is_steady(self) -> bool:
        """Whether equal requests get equal answers while nothing changes: no random choice, no closures."""
        return not self.closes and self.policy.is_steady

    def request(self, job: int) -> Request:
        """Return the compiled request of a job that waits (so it has one)."""
        request = self.table.requests[job]
        assert request is not None
        return request

    def seek(self, job: int, available: Availability) -> Selection | None:
        """Match the request of a job under the match policy of the run.

        If the exact search gives up, the job waits: it is matched again after the next release.
        """
        try:
            return select(self.request(job), available, self.policy, self.draws(job))
        except SearchLimitError:
            return None

    def seek_at(self, job: int, available: Availability, time: float) -> Selection | None:
        """Match a job that would start at a time (seconds) on the state of that time, beside closures."""
        if self.closes:
            # The limit and not a prediction: no job may still run when its target closes.
            available = self.calendar.within(available, time, time + self.table.limits[job])
        return self.seek(job, available)


class Passers:
    """Those of some jobs, in order, that the kernel does not rule out when it is their turn."""

    def __init__(self, supply: Supply, kernel: Kernel, jobs: Integers, shadow: Shadow) -> None:
        self._supply, self._kernel, self._shadow = supply, kernel, shadow
        self._jobs = np.asarray(jobs, dtype=np.int64)
        # If no job fits, the shadow need not be computed.
        self._at = self._next(0, NEVER, ANY)

    def _next(self, at: int, time: float, most: int) -> int:
        table, now = self._supply.table, self._supply.now
        return self._kernel.next(self._jobs, at, table.kinds_array, table.judged_array, now, time, most)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self._at < len(self._jobs):
            time, most = self._shadow.limits(self._supply)
            at = self._next(self._at, time, most)
            self._at = at + 1
            if at < len(self._jobs):
                return int(self._jobs[at])
        raise StopIteration


def need_at_most(demand: Integers, units: Integers) -> Bools:
    """Return for each column of demand whether it is within these units of each type."""
    within: Bools = np.logical_and.reduce(demand <= units[:, None], axis=0)
    return within


class Shadow(Protocol):
    """The earliest start of the first job, `job`, and the resources that are left over then.

    Mu'alem & Feitelson (2001) call them the shadow time and the extra nodes. A shadow holds for the pass that
    made it; the supply of the present pass is an argument.
    """

    job: int

    def time(self, supply: Supply) -> float:
        """Return the shadow time: the earliest start of the first job, in seconds."""

    def limits(self, supply: Supply) -> Limits:
        """Return by what the kernel may rule out later jobs."""

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start."""

    def note_start(self, *, started: bool = True) -> None:
        """Note after each job that was let pass that less is left over; the shadow time stays.

        started : False if the shadow is to be computed again: a limit did not allow the job, or its start
            delays the first one.
        """


class NoShadow:
    """The shadow of a job that is not protected or has no known earliest start: every job may pass it."""

    __slots__ = ("job",)

    def __init__(self, job: int) -> None:
        self.job = job

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return infinity: every job ends by then."""
        return NEVER

    def limits(self, supply: Supply) -> Limits:  # noqa: ARG002
        """Return no limits."""
        return NO_LIMITS

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources on which the job may start now."""
        return supply.fit(job)

    def note_start(self, *, started: bool = True) -> None:
        """Do nothing: nothing is reserved."""


class FixedShadow:
    """A shadow time that is kept, and the units that are left over then, where numbers of units decide.

    Units that were taken beside the first job stay taken, even after the jobs that took them have ended.
    """

    __slots__ = ("_counted", "job", "left", "start")

    def __init__(self, job: int, start: float, left: int) -> None:
        self.job, self.start, self.left = job, start, left
        self._counted = 0
        """The units of the last job that was let pass."""

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return the shadow time, in seconds."""
        return self.start

    def limits(self, supply: Supply) -> Limits:  # noqa: ARG002
        """Return the time, and the units that are left over."""
        return self.start, self.left

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that needs no more units than are left over, and count them off."""
        units = supply.table.units[job]
        selection = supply.fit(job) if units <= self.left else None
        if selection is not None:
            self._counted = units
            self.left -= units
        return selection

    def note_start(self, *, started: bool = True) -> None:
        """See `Shadow`."""
        if not started:
            self.left += self._counted
        self._counted = 0
