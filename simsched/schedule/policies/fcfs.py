"""First come, first served: jobs start strictly in order, and the first that does not fit blocks the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext


class Fcfs:
    """In order, up to the first job that does not fit (Schwiegelshohn and Yahyapour 1998)."""

    def run_pass(self, context: PassContext) -> None:
        """Start jobs in order until one does not fit."""
        start_in_order(context)


def start_in_order(context: PassContext) -> int | None:
    """Start jobs in order until one does not fit, and return that job; None if none is left."""
    queue, supply = context.queue, context.supply
    while queue:
        job = queue.first
        selection = supply.fit(job)
        if selection is None:
            return job
        context.start(job, selection)
    return None
