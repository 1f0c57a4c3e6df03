"""`RunCheckpoint`: a state of an open simulation, kept in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from simsched.errors import RunError
from simsched.simulation.live.interrupts import once_over

if TYPE_CHECKING:
    from collections.abc import Callable
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

    def __init__(self, env: Environment, keep: Callable[[], _Simulation], *, at_once: bool) -> None:
        """Keep the state at once, or when the present event is over."""
        self._time: float = env.now
        self._kept: _Simulation | None = None
        self._keep = keep
        if at_once:
            self._take(None)
        else:
            once_over(env, self._take)

    def _take(self, _: Any) -> None:
        self._kept = kept = self._keep()
        self._time = kept.now

    def __repr__(self) -> str:
        return f"<RunCheckpoint at {self.time:g} s>"

    @property
    def time(self) -> float:
        """The time of the state, in seconds."""
        return self._time

    def restore(self, env: Environment | None = None) -> _Simulation:
        """Return a simulation in this state, as `Simulation.copy` does; it may be called several times.

        RunError within the callback that asked for the state: its event is not over.
        """
        if self._kept is None:
            raise RunError("the state is kept once the present event is over", expected="`restore` after it")
        return self._kept.copy(env)
