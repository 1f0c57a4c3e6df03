"""`RunProgress`: the part of a run's state that the engine changes itself, event by event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simsched.simulation.jobs.lifecycle import JobState
    from simsched.simulation.queue_groups import QueueGroup

NEVER = float("inf")


@dataclass(slots=True)
class RunProgress:
    """How far a run has come.

    Attributes
    ----------
    states : the state of each job (RFC 21), by job number.
    ends : running job → when it will end (seconds).
    submitted : how many jobs were submitted; the number of the next one.
    done : how many jobs have ended or will never start.
    passes : how many scheduling passes there were.
    timers : how many times to come jobs wait for.
    requeues : job → how often it was requeued.
    due : the present instant, if an event for the pass at its end is entered; otherwise None.
    wake : when the next pass for the start of a reservation is entered (seconds).
    """

    states: list[JobState]
    ends: dict[int, float] = field(default_factory=dict)
    submitted: int = 0
    done: int = 0
    passes: int = 0
    timers: int = 0
    requeues: dict[int, int] = field(default_factory=dict)
    due: float | None = None
    wake: float = NEVER


class MakesRoom(Protocol):
    """Preempts running jobs before a pass."""

    def make_room(self, group: QueueGroup, now: float) -> None:
        """Requeue running jobs whose place a waiting job of the group takes."""


class Stateful(Protocol):
    """A part of a run with a state of its own: plain values, arrays and selections."""

    def state(self) -> Any:
        """Return what has changed since the part was made."""

    def restore(self, state: Any) -> None:
        """Take over the state of an equal part."""
