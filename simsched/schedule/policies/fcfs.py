"""First come, first served: stop at the first job that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.policies.easy import start_in_order

if TYPE_CHECKING:
    from simsched.schedule.pass_context import Desk


class Fcfs:
    """Jobs start strictly in order; nobody passes."""

    def __init__(self) -> None:
        self._blocked: int | None = None

    def run_pass(self, desk: Desk) -> None:
        """Start in order until one does not fit."""
        if not desk.waiting.ranks:
            return
        if desk.waiting.first == self._blocked and not desk.released:
            return
        self._blocked = desk.waiting.first if start_in_order(desk) else None
