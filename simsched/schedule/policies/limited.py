"""A queue policy that considers only the first waiting jobs: ``queue-depth`` of Flux.

In a cycle the policy sees the first `depth` jobs of the queue and no others. If the cycle started a job and
more jobs wait, another cycle follows with the jobs that have moved up. So a pass ends when none of the first
`depth` jobs can start (queue-params.queue-depth of Fluxion's queue manager). A job with a reservation is
always seen, wherever the order puts it: it was promised a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.policies.conservative import Conservative

if TYPE_CHECKING:
    from simsched.schedule.pass_context import PassContext, QueuePolicy


class Limited:
    """The policy `inner`, limited to the first `depth` waiting jobs."""

    def __init__(self, inner: QueuePolicy, depth: int) -> None:
        self.inner = inner
        self.depth = depth
        self._seen: set[int] = set()
        """Jobs that the last cycle looked at and that still wait."""

    def run_pass(self, context: PassContext) -> None:
        """Run cycles until one starts no job, or no job is hidden."""
        while True:
            hidden = self._hidden(context)
            started = len(context.started)
            self._cycle(context, hidden)
            if not hidden or len(context.started) == started:
                return

    def renew(self, *, forget: bool) -> None:
        """Let the policy continue on another supply."""
        renew = getattr(self.inner, "renew", None)
        if renew is not None:
            renew(forget=forget)

    def _hidden(self, context: PassContext) -> list[int]:
        """Return the jobs beyond the first `depth`, except for those with a reservation."""
        reserved = self.inner.starts if isinstance(self.inner, Conservative) else {}
        return [job for job in context.queue.listed(self.depth) if job not in reserved]

    def _cycle(self, context: PassContext, hidden: list[int]) -> None:
        """Run the policy without the hidden jobs; each job counts as new when the policy first sees it."""
        queue = context.queue
        queue.hide(hidden)
        fresh = set(queue.fresh)
        waiting = queue.unordered().tolist()
        queue.fresh = [job for job in waiting if job in fresh or job not in self._seen]
        self._seen = set(waiting)
        self.inner.run_pass(context)
        self._seen.intersection_update(queue)
        queue.fresh = []
        queue.show(hidden)
