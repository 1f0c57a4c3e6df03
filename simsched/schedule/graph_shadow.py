"""`GraphShadow`: the shadow time of the first job, where the matcher decides whether later jobs delay it.

A reservation is a time, not a set of vertices: at the shadow time the first job may get any resources that
fit. So a later job's resources are claimed on the state of the shadow time, and the first job must still
fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.schedule.profiles.plan import units_in
from simsched.schedule.profiles.remainder import beside, is_free
from simsched.schedule.supply import NO_LIMITS

if TYPE_CHECKING:
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.supply import Limits, Supply


class GraphShadow:
    """The shadow time of the first job, and the state of the cluster then.

    Attributes
    ----------
    start : the shadow time in seconds.
    available : the state at the shadow time, with the claims of jobs that were started beside it.
    selection : resources on which the first job fits in that state.
    extra : whether other jobs may run beyond the shadow time.
    fixed : whether the time is kept from pass to pass. Then claims of other jobs in it stay, even after
        these jobs have ended, and a selection must be free in it.
    """

    __slots__ = (
        *("_left", "_refused", "_tried"),
        *("available", "extra", "fixed", "job", "selection", "start"),
    )

    def __init__(self, job: int, found: EarliestStart, *, extra: bool, fixed: bool) -> None:
        self.job = job
        self.start = found.start
        self.available = found.available
        self.selection = found.selection
        self.extra = extra
        self.fixed = fixed
        self._left: Availability | None = None
        """The part of the state of now that the reservation leaves; None: not known."""
        self._refused: set[int] = set()
        """Kinds of requests that are in the first job's way."""
        self._tried: tuple[Selection, Selection] | None = None
        """What was claimed for the last job that was let pass, and what the first job had before."""

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return the shadow time, in seconds."""
        return self.start

    def limits(self, supply: Supply) -> Limits:  # noqa: ARG002
        """Return no limits: the kernel does not have the state at the shadow time."""
        return NO_LIMITS

    def note_start(self, *, started: bool = True) -> None:
        """Note a start, after which refused jobs may get other vertices that fit, or that there was none."""
        if self._tried is not None and not started:
            claimed, self.selection = self._tried
            self.available.release(claimed)
        self._tried = self._left = None
        self._refused.clear()

    def _leaves_room(self, supply: Supply, job: int) -> bool:
        """Whether sums do not rule out a job beside the first one at the shadow time."""
        table, state = supply.table, self.available
        demand = table.demand[:, [table.kinds[job], table.kinds[self.job]]].sum(axis=1).tolist()
        return all(need <= units_in(state, type_) for type_, need in zip(table.types, demand, strict=True))

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start.

        If the match policy's first choice delays the first job, the job is matched once more, on the
        resources that the reservation leaves. Equal requests share a refusal.
        """
        kind = supply.table.kinds[job]
        if not self.extra or kind in self._refused or not self._leaves_room(supply, job):
            return None
        selection = supply.fit(job)
        if selection is None or self.leaves_start(supply, selection):
            return selection
        second = self.on_the_rest(supply, job)
        if second is None and supply.is_steady:
            self._refused.add(kind)
        return second

    def on_the_rest(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job among those that the reservation leaves, if the first job still fits."""
        if self._left is None or supply.calendar:
            self._left = beside(supply.plan.available, self.available, self.selection)
        second = supply.seek_at(job, self._left, supply.now)
        return second if second is not None and self.leaves_start(supply, second) else None

    def leaves_start(self, supply: Supply, selection: Selection) -> bool:
        """Claim a selection at the shadow time if the first job still fits then; return whether it does."""
        # A fixed state keeps claims of jobs that have ended since, so it may lack units that are free now.
        if self.fixed and not is_free(self.available, selection):
            return False
        self.available.claim(selection)
        chosen = supply.seek_at(self.job, self.available, self.start)
        if chosen is None:
            self.available.release(selection)
            return False
        self._tried, self.selection = (selection, self.selection), chosen
        return True
