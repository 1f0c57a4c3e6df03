"""`GraphShadow`: the shadow time of the first job, where the matcher decides whether later jobs delay it.

A reservation is a time, not a set of vertices: at the shadow time the first job may get any resources that
fit. So a later job's resources are claimed on the state of the shadow time, and the first job must still
fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.profiles.plan import units_in
from simsched.schedule.profiles.remainder import beside, has_free_units

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.earliest import EarliestStart
    from simsched.schedule.supply import Supply

    Bools = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]


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
        *("_left", "_refused"),
        *("available", "extra", "fixed", "job", "selection", "start", "unsettled"),
    )

    def __init__(self, job: int, found: EarliestStart, *, extra: bool, fixed: bool) -> None:
        self.job = job
        self.start = found.start
        self.available = found.available
        self.selection = found.selection
        self.extra = extra
        self.fixed = fixed
        self.unsettled = False
        self._left: Availability | None = None
        """The part of the state of now that the reservation leaves; None: not known."""
        self._refused: set[int] = set()
        """Kinds of requests that are in the first job's way."""

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return the shadow time, in seconds."""
        return self.start

    def is_past(self, now: float) -> bool:
        """Whether the shadow time has passed, because a job overruns."""
        return self.start < now

    def note_start(self) -> None:
        """Note that a job was started: refused jobs may now get other vertices that fit."""
        self.unsettled = True
        self._left = None
        self._refused.clear()

    def forget(self) -> None:
        """Forget which jobs were refused, before all jobs are considered again."""
        self.unsettled = False
        self._left = None
        self._refused.clear()

    def leaves_room(self, supply: Supply, jobs: Integers) -> Bools:
        """Return which jobs are not ruled out, by sums, beside the first job at the shadow time."""
        if not self.extra:
            return np.zeros(len(jobs), dtype=np.bool_)
        demand = supply.table.demand
        then = np.array([units_in(self.available, type_) for type_ in supply.table.types], dtype=np.int64)
        return need_at_most(demand[:, jobs], then - demand[:, self.job])

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start.

        If the match policy's first choice delays the first job, the job is matched once more, on the
        resources that the reservation leaves. Equal requests share a refusal.
        """
        kind = supply.table.kinds[job]
        if not self.extra or kind in self._refused:
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
        if self.fixed and not has_free_units(self.available, selection):
            return False
        self.available.claim(selection)
        chosen = supply.seek_at(self.job, self.available, self.start)
        if chosen is None:
            self.available.release(selection)
            return False
        self.selection = chosen
        return True


def need_at_most(demand: Integers, units: Integers) -> Bools:
    """Return for each column of demand whether it is within these units of each type."""
    within: Bools = np.logical_and.reduce(demand <= units[:, None], axis=0)
    return within
