"""Selective reservations: a job gets a promised start once its expansion factor exceeds a threshold.

Srinivasan, Kettimuthu, Subramani & Sadayappan 2002. The expansion factor of a waiting job is (wait +
requested time) / requested time. A job below the threshold starts if it delays no job with a reservation.
With threshold 1 this is conservative backfilling.

In a pass, the jobs that have or get reservations come first, and the others follow in an order of their own.
So the policy ``hybrid`` with an order of backfill candidates is this one, too: there the depth alone selects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.orders.order import candidate_order, in_order
from simsched.schedule.policies.conservative import Conservative

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext


class Selective(Conservative):
    """Keep reservations for some of the waiting jobs; the others start if they delay none of these.

    Attributes
    ----------
    threshold : the expansion factor from which on a job gets a reservation.
    """

    def __init__(
        self,
        threshold: float = 1.0,
        compress: str = "queue",
        depth: int | None = None,
        backfill_order: str | None = None,
    ) -> None:
        super().__init__(compress, depth)
        self.threshold = threshold
        self._order = candidate_order(backfill_order)

    def _may_reserve(self, context: PassContext, job: int) -> bool:
        if not super()._may_reserve(context, job):
            return False
        table = context.table
        seconds = max(table.durations[job], 1)
        wait = context.now - table.submits[job]
        # Without a limit the factor stays 1.
        return (1.0 if seconds == float("inf") else (wait + seconds) / seconds) >= self.threshold

    def _arranged(self, context: PassContext, jobs: list[int]) -> list[int]:
        """Return the jobs that have or may get reservations, and then the others in their own order."""
        most = len(jobs) if self.depth is None else self.depth - len(self.starts)
        selected, others = [], []
        for job in jobs:
            if job in self.starts:
                selected.append(job)
            elif most > 0 and self._may_reserve(context, job):
                most -= 1
                selected.append(job)
            else:
                others.append(job)
        return [*selected, *in_order(self._order, context.table, others, context.now)]
