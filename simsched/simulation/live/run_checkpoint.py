"""`RunCheckpoint`: a state of an open simulation, kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from typing import Self

    from simpy import Environment


class Copied(Protocol):
    """A simulation that can be copied."""

    @property
    def now(self) -> float:
        """The time of the run, in seconds."""

    def copy(self, env: Environment | None = None) -> Self:
        """Return a simulation in the same state."""


_Simulation = TypeVar("_Simulation", bound=Copied)


class RunCheckpoint(Generic[_Simulation]):
    """A state of an open simulation; `restore` returns a simulation that continues from it."""

    def __init__(self, kept: _Simulation) -> None:
        self._kept = kept

    def __repr__(self) -> str:
        return f"<RunCheckpoint at {self.time:g} s>"

    @property
    def time(self) -> float:
        """The time of the state, in seconds."""
        return self._kept.now

    def restore(self, env: Environment | None = None) -> _Simulation:
        """Return a simulation in this state, as `Simulation.copy` does; it may be called several times."""
        return self._kept.copy(env)
