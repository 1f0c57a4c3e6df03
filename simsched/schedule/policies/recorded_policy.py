"""The recorded schedule as a policy: each job starts when the log says, on the nodes that the log names.

A log may use more than the machine has: its clocks are coarse, nodes are shared, the machine changed. A job
that does not fit when the log starts it starts as soon as its resources are free, before jobs that the log
starts later if both fit. It does not block them, because they started in the log, too. Time counts more than
place: if the named nodes are not free and others are, the job starts on those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.pass_context import PassContext


class Recorded:
    """Each job starts when the log says: the recorded schedule (simsched).

    elsewhere : the jobs that started on other nodes than the log names.
    """

    def __init__(self) -> None:
        self.elsewhere: list[int] = []

    def run_pass(self, context: PassContext) -> None:
        """Start each job whose recorded start has come and whose resources are free."""
        queue, starts, now = context.queue, context.table.starts, context.now
        if not queue or not (context.released or queue.fresh or context.wake <= now):
            return
        assert starts is not None, "only a run that plays a log has this policy"
        jobs = queue.jobs()
        times = starts[jobs]
        due = times <= now
        for job in jobs[due][np.argsort(times[due], kind="stable")].tolist():
            if job in context.barred:  # a job that started in this pass used up a limit
                continue
            selection = self._fit(context, job)
            if selection is not None:
                context.start(job, selection)
        wake = float(times[~due].min(initial=np.inf))
        context.wake = int(wake) if wake.is_integer() else wake

    def _fit(self, context: PassContext, job: int) -> Selection | None:
        """Return free resources for a job: on the nodes that the log names, else on any."""
        named = context.table.places.get(job)
        if named is None or not context.could_start(job):
            return context.fit(job)
        selection = context.supply.fit_on(job, named)
        if selection is None:
            selection = context.fit(job)
            if selection is not None:
                self.elsewhere.append(job)
        return selection
