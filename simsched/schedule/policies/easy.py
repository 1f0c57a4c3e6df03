"""EASY backfilling: the first job that does not fit gets a reservation, and later jobs may pass it.

Lifka 1995; Mu'alem & Feitelson 2001. A pass has three steps:

1. Start jobs in order until one does not fit.
2. Compute the earliest start of that job from the expected ends of the running jobs: its shadow time.
3. Start each later job that fits now and does not move the shadow time. Either it ends by then, or it uses
   only resources that are left over then beside the first job (the "extra nodes" of the papers).

The first job starts at the shadow time or earlier, if jobs end early. The other jobs have no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from simsched.schedule.orders.candidate_order import CandidateQueue, candidate_order, in_order
from simsched.schedule.policies.fcfs import start_in_order
from simsched.schedule.supply import NoShadow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.queue import WaitingQueue
    from simsched.schedule.supply import Shadow

REFRESH = ("always", "when-blocked")
RESERVATION = ("hard", "none")


@dataclass(frozen=True, slots=True)
class EasyOptions:
    """The known variations of EASY.

    Attributes
    ----------
    extra : whether a job that ends after the shadow time may use resources that are left over then.
    refresh : when the shadow time is computed: ``always`` when it could have moved, or once,
        ``when-blocked``, and kept until the job starts.
    reservation : ``hard`` binds; ``none`` lets every job start that fits.
    backfill_order : the order in which later jobs are tried, by name; None: the order of the queue. With
        ``sjf`` the policy is EASY-SJBF (Tsafrir, Etsion & Feitelson 2007).
    starvation : once the first job has waited longer than this time (seconds), no other job passes it;
        None: never.
    """

    extra: bool = True
    refresh: str = "always"
    reservation: str = "hard"
    backfill_order: str | None = None
    starvation: float | None = None


class Easy:
    """The policy. It keeps the shadow of the first job from pass to pass until something may move it.

    `watch` is called with each first job that does not fit and the context of the pass; None: nothing is.
    """

    def __init__(self, options: EasyOptions | None = None) -> None:
        self.options = options or EasyOptions()
        self._order = candidate_order(self.options.backfill_order)
        self._shadow: Shadow | None = None
        self.watch: Callable[[int, PassContext], None] | None = None

    def run_pass(self, context: PassContext) -> None:
        """Start jobs in order, reserve for the first that does not fit, and backfill."""
        queue, shadow = context.queue, self._shadow
        if not queue.ranks:
            return
        blocked = False
        if shadow is not None and not context.released and (queue.static or queue.stands):
            blocked = self._still_blocked(context, shadow)
        if not (blocked or queue.static) and queue.sorts_parts:
            # If the first job is known, the check above costs less than a look at all jobs.
            if self._is_pointless(context):
                self._shadow = None if context.moved else shadow
                return
            blocked = shadow is not None and self._still_blocked(context, shadow)
        if blocked and shadow is not None:
            if self.options.starvation is None or not self._starves(context, shadow.job):
                new = queue.new_jobs()
                if self._order is not None:
                    new = in_order(self._order, context.table, new, context.now)
                _backfill(context, shadow, context.supply.candidates(new))
        elif (first := start_in_order(context)) is not None:
            if self.watch is not None:
                self.watch(first, context)
            shadow = self._shadow = self._reserve(context, first)
            if self.options.starvation is None or not self._starves(context, first):
                _backfill(context, shadow, self._candidates(context, shadow))
        else:
            self._shadow = None

    def _is_pointless(self, context: PassContext) -> bool:
        """Whether no waiting job can start, so that even the first one need not be known."""
        supply = context.supply
        steady = self.options.refresh == "always" and supply.is_steady
        return steady and supply.rules_out_all(context.queue)

    def _starves(self, context: PassContext, job: int) -> bool:
        """Whether a job has waited longer than the threshold, so that no other may pass it."""
        most = self.options.starvation
        return most is not None and context.now - context.table.submits[job] > most

    def _candidates(self, context: PassContext, shadow: Shadow) -> Iterable[int]:
        """Return the jobs behind the first that may start, in the order of candidates."""
        queue = context.queue
        if self._order is not None:
            queue = cast("WaitingQueue", CandidateQueue(queue, self._order, context.table, context.now))
        return context.supply.candidates_behind_first(queue, shadow)

    def renew(self, *, forget: bool) -> None:
        """Compute the shadow again on another supply; one that is kept on purpose stays, unless `forget`."""
        if forget or not getattr(self._shadow, "fixed", False):
            self._shadow = None

    def _still_blocked(self, context: PassContext, shadow: Shadow) -> bool:
        """Whether the first job is that of the last pass, and only new jobs can start.

        Nothing was released, so a job that did not fit then does not fit now; and a job that would have
        ended too late then ends too late now. Only a start may change which resources a refused job
        gets, so after one all jobs are considered again (`unsettled`).  Under an order that changes with time
        the same holds while the first job is the same.
        """
        queue = context.queue
        if context.released or context.moved or shadow.unsettled:
            return False
        if not queue.static and not (queue.sorts_parts and context.supply.is_steady):
            return False
        if queue.first != shadow.job:
            return False
        return self.options.refresh != "always" or not shadow.is_past(context.now)

    def _reserve(self, context: PassContext, job: int) -> Shadow:
        """Return the shadow of the first job; it is computed only if it could have moved."""
        options, shadow = self.options, self._shadow
        fixed = options.refresh == "when-blocked"
        if shadow is not None and shadow.job == job:
            # Jobs that this pass has started came after the last pass and are before this job in the order.
            moved = context.moved or context.started or shadow.is_past(context.now)
            if fixed or not moved:
                return shadow
        if options.reservation == "none":
            return NoShadow(job)
        return context.supply.shadow(job, extra=options.extra, fixed=fixed)


def _backfill(context: PassContext, shadow: Shadow, jobs: Iterable[int]) -> None:
    """Start each job, in order, that fits now and does not delay the first job."""
    if not jobs:
        return
    supply, now, judged = context.supply, context.now, context.table.judged
    barred = context.queue.barred
    time = None
    for job in jobs:
        if job in barred:  # a job that started in this pass used up a limit
            continue
        if time is None:  # not before a job could start: the search for it is the most expensive step
            time = shadow.time(supply)
        ends_in_time = now + judged[job] <= time
        selection = supply.fit(job) if ends_in_time else shadow.fit_beside(supply, job)
        if selection is not None and context.start(job, selection, backfilled=True):
            shadow.note_start()
