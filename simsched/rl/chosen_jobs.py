"""`ChosenJobs`: a queue policy that starts the jobs that an agent has chosen.

A pass cannot wait for an agent.  So a pass in which the agent has a choice notes it (`choice`) and ends, and
the answer is carried out in a further pass at the same instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from simsched.schedule.policies.easy import let_pass
from simsched.schedule.policies.fcfs import start_in_order

if TYPE_CHECKING:
    from simsched.arrays import Bools, Integers
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.supply import Shadow


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
        elif not self._holds_picked(context) and context.queue:
            self._offer(context)
        self.started += [(job, context.now) for job, _, _ in context.started]

    def _start_picked(self, context: PassContext) -> None:
        job = self._picked.pop(context, None)
        if job is None:
            return
        shadow, self._shadow = self._shadow, None
        end = context.now + context.table.judged[job]  # as expected, if it starts now
        if shadow is None or end <= shadow.time(context.supply):
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
            selection = context.fit(job)
            if selection is None:
                if self._kind == NEXT_EASY:
                    jobs = context.queue.jobs()
                    let_pass(context, context.supply.shadow(job), jobs[jobs != job])
                return True
            context.start(job, selection, backfilled=job != context.queue.first)
        del self._picked[context]
        return False

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


def _beside_first(context: PassContext, jobs: Integers, fits: Bools) -> tuple[Bools, Shadow | None]:
    """Return for each job whether it could start now without a delay of the first, and the shadow of that."""
    allowed = fits.copy()
    allowed[0] = False  # it does not fit; a random match policy may have found otherwise just now
    if not allowed.any():
        return allowed, None
    supply = context.supply
    shadow = supply.shadow(int(jobs[0]))
    late = context.now + context.table.judged_array[jobs] > shadow.time(supply)
    late &= allowed
    if context.table.single is not None:
        allowed &= ~late | (
            context.table.demand[0][context.table.kinds_array[jobs]] <= shadow.limits(supply)[1]
        )
    elif late.any():  # counts only rule jobs out
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
                shadow = supply.shadow(first)
            known[key] = shadow.fit_beside(supply, job) is not None
            if known[key]:
                shadow = None
        allowed[at] = known[key]
