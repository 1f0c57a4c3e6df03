"""First come, first served: stop at the first job that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.policies.easy import start_in_order

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext


class Fcfs:
    """Jobs start strictly in order; nobody passes."""

    def __init__(self) -> None:
        self._blocked: int | None = None

    def run_pass(self, context: PassContext) -> None:
        """Start in order until one does not fit."""
        if not context.queue.ranks:
            return
        if context.queue.first == self._blocked and not context.released:
            return
        self._blocked = context.queue.first if start_in_order(context) else None
