"""First come, first served: jobs start strictly in order, and the first that does not fit blocks the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext


class Fcfs:
    """Start jobs in order; no job passes another."""

    def __init__(self) -> None:
        self._blocked: int | None = None

    def run_pass(self, context: PassContext) -> None:
        """Start jobs in order until one does not fit."""
        queue = context.queue
        if not queue.ranks:
            return
        if queue.first == self._blocked and not context.released:
            return  # the job that did not fit at the last pass does not fit now
        self._blocked = start_in_order(context)


def start_in_order(context: PassContext) -> int | None:
    """Start jobs in order until one does not fit, and return that job; None if none is left."""
    queue, supply = context.queue, context.supply
    while queue.ranks:
        job = queue.first
        selection = supply.fit(job)
        if selection is None:
            return job
        context.start(job, selection)
    return None
