"""`KernelShadow`: the shadow time of a first job that the kernel counts.

The kernel has the state at that time (`match.kernel`). It is computed when it is first asked for in a pass,
and again whenever anything but a start beside the first job has changed since. It is not kept from pass to
pass.

Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.graph_shadow import GraphShadow
from simsched.schedule.profiles.earliest import EarliestStart
from simsched.schedule.profiles.gap import NEVER
from simsched.schedule.supply import ANY, NoShadow

if TYPE_CHECKING:
    from simsched.match.kernel import Kernel
    from simsched.match.state.selection import Selection
    from simsched.schedule.supply import Limits, Shadow, Supply


class KernelShadow:
    """The shadow time of the first job, and who may run beyond it.

    Attributes
    ----------
    extra : whether other jobs may run beyond the shadow time.
    """

    def __init__(self, job: int, *, extra: bool) -> None:
        self.job = job
        self.extra = extra
        self._kernel: Kernel | None = None
        self._start = NEVER
        self._seen = self._exact_at = -1
        """The changes of the kernel up to which the time, and `_exact`, are known (`Kernel.epoch`)."""
        self._now = 0.0
        self._other: Shadow | None = None
        """Used instead where the numbers of the kernel do not decide."""
        self._exact: GraphShadow | None = None
        """The state at the shadow time, for requests that the kernel does not place."""

    def time(self, supply: Supply) -> float:
        """Return the shadow time, in seconds."""
        self._kernel = kernel = supply.kinds().kernel
        if self._seen != kernel.epoch or self._now != supply.now:
            ends, jobs = supply.plan.ends()
            ended = kernel.shadow(supply.table.kinds[self.job], supply.now, ends, jobs)
            self._other = None
            if ended == -1:
                self._other = NoShadow(self.job)
            elif ended == -2:
                self._other = supply.shadow_of_states(self.job, extra=self.extra)
            self._start = max(supply.now, ends[ended - 1]) if ended > 0 else supply.now
            self._seen, self._now = kernel.epoch, supply.now
        return self._start if self._other is None else self._other.time(supply)

    def limits(self, supply: Supply) -> Limits:
        """Return the shadow time, and the copies that may run beyond it: on a flat machine what is left."""
        time = self.time(supply)
        if self._other is not None:
            return self._other.limits(supply)
        kernel = supply.kinds().kernel
        most = kernel.spare if kernel.owned else ANY  # the first job may count other copies than the others
        return time, most if self.extra else 0

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start.

        If the match policy's first choice delays the first job, the job is matched once more, on the
        resources that the reservation leaves. Equal requests share a refusal.
        """
        self.time(supply)
        if self._other is not None:
            return self._other.fit_beside(supply, job)
        kinds, kind = supply.kinds(), supply.table.kinds[job]
        kernel = kinds.kernel
        if not self.extra or kernel.is_refused(kind):
            return None
        selection: Selection | None
        if kinds.placed[kind] and kinds.placed[supply.table.kinds[self.job]]:
            selection = kinds.selection(kind, job) if kernel.beside(kind) else None
        else:
            selection = supply.fit(job)
            if selection is not None and selection.shared:  # units that numbers do not describe
                self._other = supply.shadow_of_states(self.job, extra=self.extra)
                return self._other.fit_beside(supply, job)
            if selection is not None and not kernel.lets(selection):
                selection = self._exactly(supply).on_the_rest(supply, job)
                if selection is None:
                    kernel.refuse(kind)
                else:
                    kernel.lets(selection)
        return selection

    def note_start(self, *, started: bool = True) -> None:
        """Note that a job was started beside the first one; its claim is known at the shadow time.

        If a limit did not allow what was found, the time is computed again.
        """
        if started and self._kernel is not None:
            self._seen = self._kernel.epoch
        if self._other is not None:
            self._other.note_start(started=started)

    def _exactly(self, supply: Supply) -> GraphShadow:
        """Return the state of the cluster at the shadow time, with the claims of jobs started beside it."""
        if self._exact is None or self._exact_at != supply.kinds().kernel.epoch:
            plan = supply.plan
            state = plan.available.copy(counts_only=plan.counts_only)
            for end, job in plan.running():
                if end > self._start:
                    break
                state.release(plan.held[job])
            selection = supply.seek(self.job, state)
            assert selection is not None, "the first job fits at its shadow time"
            found = EarliestStart(self._start, state, selection)
            self._exact = GraphShadow(self.job, found, extra=self.extra, fixed=False)
            self._exact_at = supply.kinds().kernel.epoch
        return self._exact
