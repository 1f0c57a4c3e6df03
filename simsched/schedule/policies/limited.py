"""A queue policy that considers only the first so many waiting jobs: Flux's ``queue-depth``.

A cycle sees the first `depth` jobs of the queue as if nobody else waited.  Where it started
some and more wait, another cycle follows with those that have moved up, so that a pass ends
when the first `depth` jobs cannot start (queue-params.queue-depth of Fluxion's queue manager).
A job that holds a reservation stays in view wherever the order puts it: it was promised a start.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from simsched.schedule.policies.compression import Compressing

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext, QueuePolicy


class Limited:
    """`inner`, looking at the first `depth` waiting jobs only."""

    def __init__(self, inner: QueuePolicy, depth: int) -> None:
        self.inner = inner
        self.depth = depth
        self._seen: set[int] = set()  # ranks that the last cycle looked at

    def run_pass(self, context: PassContext) -> None:
        """Run cycles until one starts nothing, or nobody is left out."""
        while True:
            hidden = self._hidden(context)
            started = len(context.started)
            self._cycle(context, hidden)
            if not hidden or len(context.started) == started:
                return

    def _hidden(self, context: PassContext) -> list[int]:
        """Return the ranks beyond the first `depth`, but for those of jobs that hold a reservation."""
        behind = context.queue.ranks[self.depth :].tolist()
        reserved = self.inner.starts if isinstance(self.inner, Compressing) else {}
        if not reserved or not behind:
            return behind
        jobs = context.queue.listed(self.depth)
        return [rank for rank, job in zip(behind, jobs, strict=True) if job not in reserved]

    def _cycle(self, context: PassContext, hidden: list[int]) -> None:
        """Run the policy on the window; what is in it for the first time is new to the policy."""
        queue = context.queue
        if hidden:
            queue.ranks = array("q", sorted(set(queue.ranks).difference(hidden)))
        fresh = set(queue.fresh)
        queue.fresh = [rank for rank in queue.ranks if rank in fresh or rank not in self._seen]
        self._seen = set(queue.ranks)
        self.inner.run_pass(context)
        self._seen.intersection_update(queue.ranks)
        queue.fresh = []
        if hidden:
            queue.ranks = array("q", sorted([*queue.ranks, *hidden]))
