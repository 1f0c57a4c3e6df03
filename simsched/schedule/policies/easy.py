"""EASY backfilling: the first job that does not fit gets a reservation, and later jobs may pass it.

Lifka 1995; Mu'alem & Feitelson 2001. A pass has three steps:

1. Start jobs in order until one does not fit.
2. Compute the earliest start of that job from the expected ends of the running jobs: its shadow time.
3. Start each later job that fits now and does not move the shadow time. Either it ends by then, or it uses
   only resources that are left over then beside the first job (the "extra nodes" of the papers).

The first job starts at the shadow time or earlier, if jobs end early. The other jobs have no guarantee.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from simsched.declare.kinds import HIDDEN
from simsched.declare.table import Declared
from simsched.errors import ConfigError
from simsched.formats.rfc.declared import seconds
from simsched.plugins.plugin_kind import NAMED
from simsched.schedule.orders.order import candidate_order
from simsched.schedule.orders.ranking import ranked
from simsched.schedule.policies.fcfs import start_in_order
from simsched.schedule.supply import NoShadow

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.arrays import Integers
    from simsched.schedule.pass_context import PassContext
    from simsched.schedule.supply import Shadow


class EasyOptions(Declared, frozen=True, kw_only=True):
    """In order; then later jobs that do not delay the first that does not fit (Lifka 1995).

    extra : whether a job that ends after the shadow time may use resources that are left over then (Lifka
        1995).
    refresh : when the shadow time is computed: ``always`` in each pass, or once, ``when-blocked``, and kept
        until the job starts (simsched).
    reservation : ``hard`` binds; ``none`` lets every job start that fits (simsched).
    backfill_order : the order of the jobs behind the first, by name; sjf is EASY-SJBF (Tsafrir et al. 2007).
    starvation : no job passes the first once that has waited longer (PBS, max_starve).
    """

    extra: bool = True
    refresh: Literal["always", "when-blocked"] = "always"
    reservation: Literal["hard", "none"] = "hard"
    backfill_order: Annotated[Any | None, NAMED] = None
    starvation: Annotated[float | None, seconds()] = None

    def checked(self, where: str) -> Self:
        """Refuse an age from which the first job has its reservation, if there are no reservations."""
        if self.reservation == "none" and self.starvation is not None:
            expected = "a reservation that binds"
            raise ConfigError("starvation with reservation=none", where=where, expected=expected)
        return self

    def policy(self) -> Easy:
        """Return the policy."""
        return Easy(self)


class EasyPlus(EasyOptions, frozen=True, kw_only=True):
    """EASY on predictions that are corrected (Tsafrir, Etsion & Feitelson 2007)."""

    reservation: Annotated[Literal["hard", "none"], HIDDEN] = "hard"


class EasyPlusPlus(EasyPlus, frozen=True, kw_only=True):
    """EASY on predictions, with the shortest candidates first (Tsafrir, Etsion & Feitelson 2007)."""

    backfill_order: Annotated[Any | None, NAMED] = "sjf"


class Easy:
    """The policy.

    `watch` is called with each first job that does not fit and the context of the pass; None: nothing is.
    """

    def __init__(self, options: EasyOptions | None = None) -> None:
        self.options = options or EasyOptions()
        self._order = candidate_order(self.options.backfill_order)
        self._keeps = self.options.refresh == "when-blocked"
        """Whether a shadow is kept until its job starts."""
        self._kept: Shadow | None = None
        """That shadow."""
        self.watch: Callable[[int, PassContext], None] | None = None

    def run_pass(self, context: PassContext) -> None:
        """Start jobs in order, reserve for the first that does not fit, and backfill."""
        queue = context.queue
        lasts = self._keeps or self.watch is not None
        if not lasts and context.supply.next_fitting(queue, 0) == len(queue):
            return  # the reservation would end with the pass
        first = start_in_order(context)
        if first is None:
            self._kept = None
            return
        if self.watch is not None:
            self.watch(first, context)
        shadow = self._reserve(context, first)
        if len(queue) > 1 and not self._starves(context, first):
            self._backfill(context, shadow)

    def _reserve(self, context: PassContext, job: int) -> Shadow:
        """Return the shadow of the first job."""
        if self.options.reservation == "none":
            return NoShadow(job)
        if not self._keeps:
            return context.supply.shadow(job, extra=self.options.extra)
        if self._kept is None or self._kept.job != job:
            self._kept = context.supply.shadow(job, extra=self.options.extra, fixed=True)
        self._kept.note_start()  # jobs that were refused at an earlier pass may get other resources now
        return self._kept

    def _starves(self, context: PassContext, job: int) -> bool:
        """Whether a job has waited longer than the threshold, so that no other may pass it."""
        most = self.options.starvation
        return most is not None and context.now - context.table.submits[job] > most

    def _backfill(self, context: PassContext, shadow: Shadow) -> None:
        """Let the jobs behind the first pass, in the order in which they are tried."""
        supply, queue = context.supply, context.queue
        if self._order is None:
            jobs = supply.behind(queue, shadow.job)
        else:
            jobs = queue.jobs(1)
            jobs = ranked(self._order, context.table, jobs[supply.could_start_each(jobs)], context.now)
        let_pass(context, shadow, jobs)

    def renew(self, *, forget: bool) -> None:
        """Reserve again on another supply; a shadow that is kept on purpose stays, unless `forget`."""
        if forget:
            self._kept = None


def let_pass(context: PassContext, shadow: Shadow, jobs: Integers) -> None:
    """Start each of some jobs that fits now and does not delay the first job."""
    supply, now, judged, barred = context.supply, context.now, context.table.judged, context.barred
    for job in supply.candidates(jobs, shadow):
        if job in barred:  # a job that started in this pass used up a limit
            continue
        ends_in_time = now + judged[job] <= shadow.time(supply)
        selection = supply.fit(job) if ends_in_time else shadow.fit_beside(supply, job)
        if selection is not None:
            shadow.note_start(started=context.start(job, selection, backfilled=True))
