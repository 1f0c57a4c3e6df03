"""`ChosenJobs`: a queue policy that starts the jobs that an agent has chosen.

A pass cannot wait for an agent.  So a pass in which the agent has a choice notes it (`choice`) and ends, and
the answer is carried out in a further pass at the same instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from simsched.schedule.policies.fcfs import start_in_order

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.supply import Shadow

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]

BACKFILL, START, NEXT, NEXT_EASY = "backfill", "start", "next", "next-easy"
KINDS = {
    BACKFILL: "jobs start in order; the agent chooses which job passes the first that does not fit",
    START: "the agent starts any job that fits, or waits",
    NEXT: "the agent chooses the next job; no job passes it",
    NEXT_EASY: "the agent chooses the next job; others pass it if they do not delay it",
}
"""Kind of actions → a sentence."""
WITH_WAITING = frozenset({BACKFILL, START})
"""The kinds whose last action is to wait for the next event."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of the agent.

    Attributes
    ----------
    context : the queue, the supply and the time of the pass.
    jobs : the first waiting jobs, by number.
    fits : for each whether it could start now.
    allowed : for each whether it may be chosen.
    shadow : the reservation of the first job, which the chosen one must not delay; or None.
    """

    context: PassContext
    jobs: Integers
    fits: Bools
    allowed: Bools
    shadow: Shadow | None = None


class ChosenJobs:
    """The policy; it is shared by all queues of a run, and a run uses the object itself.

    Parameters
    ----------
    kind : one of `KINDS`.
    visible : how many waiting jobs the agent sees.

    Attributes
    ----------
    choice : the choice that the agent has now, or None.
    started : (job, time) of each start since the last `take_started`.
    """

    name = "chosen-jobs"

    def __init__(self, kind: str, visible: int) -> None:
        self.choice: Choice | None = None
        self.started: list[tuple[int, float]] = []
        self._kind, self._visible = kind, visible
        self._picked: dict[PassContext, int] = {}
        self._shadow: Shadow | None = None
        self._declined: set[PassContext] = set()
        self._reserved: dict[PassContext, Shadow] = {}
        """The reservations of the jobs that are to be next, from the last passes."""

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def pick(self, job: int) -> None:
        """Answer the present choice with a job."""
        assert self.choice is not None
        self._picked[self.choice.context] = job
        self._shadow = self.choice.shadow
        self.choice = None

    def decline(self) -> None:
        """Answer the present choice with none; its queue has no other choice until `reconsider`."""
        assert self.choice is not None
        self._declined.add(self.choice.context)
        self.choice = None

    def reconsider(self) -> None:
        """Let every queue have a choice again."""
        self._declined.clear()

    def take_started(self) -> list[tuple[int, float]]:
        """Return the starts since the last call."""
        found, self.started = self.started, []
        return found

    def run_pass(self, context: PassContext) -> None:
        """Carry out the last answer, and note the next choice."""
        if self.choice is not None or context in self._declined:
            return
        if self._kind in WITH_WAITING:
            self._start_picked(context)
            if self._kind == START or start_in_order(context) is not None:
                self._offer(context)
        elif not self._holds_picked(context) and context.queue.ranks:
            self._offer(context)
        self.started += [(job, context.now) for job, _, _ in context.started]

    def _start_picked(self, context: PassContext) -> None:
        job = self._picked.pop(context, None)
        if job is None:
            return
        shadow, self._shadow = self._shadow, None
        if shadow is None or _ends_in_time(context, job, shadow):
            selection = context.fit(job)
        else:
            selection = shadow.fit_beside(context.supply, job)
        if selection is not None:
            context.start(job, selection, backfilled=job != context.queue.first)

    def _holds_picked(self, context: PassContext) -> bool:
        """Start the job that is to be next; return whether it still waits."""
        job = self._picked.get(context)
        if job is None:
            return False
        if job in context.queue:
            shadow = self._reserved.get(context)
            if shadow is not None and shadow.job == job and _only_new_may_start(context, shadow):
                new = list(context.supply.candidates(context.queue.new_jobs()))
                if new:
                    _pass_by(context, shadow, np.array(new, dtype=np.int64))
                return True
            selection = context.fit(job)
            if selection is None:
                if self._kind == NEXT_EASY:
                    self._let_pass(context, job)
                return True
            context.start(job, selection, backfilled=job != context.queue.first)
        self._reserved.pop(context, None)
        del self._picked[context]
        return False

    def _let_pass(self, context: PassContext, first: int) -> None:
        """Start each job that fits now and does not delay `first`, in the order of the queue."""
        shadow = self._reserved.get(context)
        if shadow is None or shadow.job != first or context.moved or shadow.is_past(context.now):
            shadow = self._reserved[context] = context.supply.shadow(first)
        shadow.forget()
        if not _is_full(context):
            _pass_by(context, shadow, _may_pass(context, shadow, context.queue.jobs()))

    def _offer(self, context: PassContext) -> None:
        """Note the choice of this pass, if there is one."""
        jobs = context.queue.jobs()[: self._visible]
        fits = startable(context, jobs)
        if self._kind in WITH_WAITING:
            shadow = None
            allowed = fits
            if self._kind == BACKFILL:
                allowed, shadow = _beside_first(context, jobs, fits)
            if not allowed.any():
                return
        else:
            allowed, shadow = np.ones(len(jobs), dtype=np.bool_), None
        self.choice = Choice(context, jobs, fits, allowed, shadow)


def startable(context: PassContext, jobs: Integers) -> Bools:
    """Return for each job whether it could start now; equal requests are matched once."""
    supply, kinds = context.supply, context.table.kinds
    fits = supply.could_start_each(jobs)
    if context.table.single is not None:
        return fits
    steady, known = supply.is_steady, dict[int, bool]()
    for at in fits.nonzero()[0]:
        job = int(jobs[at])
        key = kinds[job] if steady else job
        if key not in known:
            known[key] = supply.fit(job) is not None
        fits[at] = known[key]
    return fits


def _ends_in_time(context: PassContext, job: int, shadow: Shadow) -> bool:
    """Whether a job that starts now is expected to end by the shadow time."""
    return context.now + context.table.judged[job] <= shadow.time(context.supply)


def _beside_first(context: PassContext, jobs: Integers, fits: Bools) -> tuple[Bools, Shadow | None]:
    """Return for each job whether it could start now without a delay of the first, and the shadow of that."""
    allowed = fits.copy()
    allowed[0] = False  # it does not fit; a random match policy may have found otherwise just now
    if not allowed.any():
        return allowed, None
    supply = context.supply
    shadow = supply.shadow(int(jobs[0]))
    shadow.forget()
    late = context.now + context.table.judged_array[jobs] > shadow.time(supply)
    allowed &= ~late | shadow.leaves_room(supply, jobs)
    late &= allowed
    if context.table.single is None and late.any():  # the sums only rule jobs out
        _try_each(context, jobs, late, allowed)
    return allowed, shadow


def _try_each(context: PassContext, jobs: Integers, late: Bools, allowed: Bools) -> None:
    """Disallow each late job that delays the first; equal requests are tried once.

    A shadow counts a job that it lets pass as started, so each trial that succeeds uses one up.
    """
    supply, kinds, known = context.supply, context.table.kinds, dict[int, bool]()
    first, steady = int(jobs[0]), supply.is_steady
    shadow: Shadow | None = None
    for at in late.nonzero()[0]:
        job = int(jobs[at])
        key = kinds[job] if steady else job
        if key not in known:
            if shadow is None:
                shadow = supply.trial_shadow(first)
            known[key] = shadow.fit_beside(supply, job) is not None
            if known[key]:
                shadow = None
        allowed[at] = known[key]


def _only_new_may_start(context: PassContext, shadow: Shadow) -> bool:
    """Whether the jobs that did not start in the last pass cannot start now either, as in `Easy`."""
    if context.released or context.moved or shadow.unsettled or not context.queue.static:
        return False
    return not shadow.is_past(context.now)


def _is_full(context: PassContext) -> bool:
    """Whether no unit is free, where units of one type are all that jobs need."""
    return context.table.single is not None and not context.supply.free_units()


def _may_pass(context: PassContext, shadow: Shadow, jobs: Integers) -> Integers:
    """Return the jobs that sums do not keep from starting now without a delay of the reservation."""
    supply = context.supply
    jobs = jobs[supply.could_start_each(jobs)]
    if len(jobs):
        soon = context.now + context.table.judged_array[jobs] <= shadow.time(supply)
        jobs = jobs[soon | shadow.leaves_room(supply, jobs)]
    return jobs


def _pass_by(context: PassContext, shadow: Shadow, jobs: Integers) -> None:
    """Start each job that fits now and does not delay that of a reservation, in this order."""
    supply, now, judged = context.supply, context.now, context.table.judged
    while len(jobs):
        time = shadow.time(supply)
        for at, job in enumerate(jobs.tolist()):
            if job == shadow.job or job in context.barred:
                continue
            selection = supply.fit(job) if now + judged[job] <= time else shadow.fit_beside(supply, job)
            if selection is not None:
                context.start(job, selection, backfilled=True)
                shadow.note_start()
                if _is_full(context):
                    return
                jobs = _may_pass(context, shadow, jobs[at + 1 :])  # sums rule out most of the others now
                break
        else:
            return
