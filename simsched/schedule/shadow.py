"""`Shadow`: the earliest start of the first job of a queue, and the resources that are left over then.

Mu'alem & Feitelson (2001) call them the shadow time and the extra nodes. A shadow holds for the pass that
made it. `KernelShadow` computes it in the kernel, `GraphShadow` by the matcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from simsched.schedule.profiles.gap import NEVER

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection
    from simsched.schedule.supply import Supply

ANY = 1 << 62


class Limits(NamedTuple):
    """Which jobs need not be asked: those that end after `time` (s) and have more than `most` copies."""

    time: float
    most: int


NO_LIMITS = Limits(NEVER, ANY)


class Shadow(Protocol):
    """The shadow time of the first job, `job`; the supply of the present pass is an argument."""

    job: int

    def time(self, supply: Supply) -> float:
        """Return the shadow time: the earliest start of the first job, in seconds."""

    def limits(self, supply: Supply) -> Limits:
        """Return by what the kernel may rule out later jobs."""

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that runs beyond the shadow time and leaves the first job its start."""

    def note_start(self) -> None:
        """Note that a job was started beside the first one: less is left over. Call it after each start."""


class NoShadow:
    """The shadow of a job that is not protected or has no known earliest start: every job may pass it."""

    __slots__ = ("job",)

    def __init__(self, job: int) -> None:
        self.job = job

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return infinity: every job ends by then."""
        return NEVER

    def limits(self, supply: Supply) -> Limits:  # noqa: ARG002
        """Return no limits."""
        return NO_LIMITS

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources on which the job may start now."""
        return supply.fit(job)

    def note_start(self) -> None:
        """Do nothing: nothing is reserved."""


class FixedShadow:
    """A shadow time that is kept, and the units that are left over then, where numbers of units decide.

    Units that were taken beside the first job stay taken, even after the jobs that took them have ended.
    """

    __slots__ = ("job", "left", "start")

    def __init__(self, job: int, start: float, left: int) -> None:
        self.job, self.start, self.left = job, start, left

    def time(self, supply: Supply) -> float:  # noqa: ARG002
        """Return the shadow time, in seconds."""
        return self.start

    def limits(self, supply: Supply) -> Limits:  # noqa: ARG002
        """Return the time, and the units that are left over."""
        return Limits(self.start, self.left)

    def fit_beside(self, supply: Supply, job: int) -> Selection | None:
        """Return resources for a job that needs no more units than are left over, and count them off."""
        units = supply.table.units[job]
        selection = supply.fit(job) if units <= self.left else None
        if selection is not None:
            self.left -= units
        return selection

    def note_start(self) -> None:
        """Do nothing: `left` is up to date."""
