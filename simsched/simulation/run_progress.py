"""`RunProgress`: the part of a run's state that the engine changes itself, event by event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.simulation.jobs.lifecycle import JobState

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
