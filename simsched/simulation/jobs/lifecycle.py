"""The life of a job after RFC 21, as one transition table.

``NEW → DEPEND → PRIORITY → SCHED → RUN → CLEANUP → INACTIVE``, driven by the events of the
job's eventlog (RFC 18).  Replaying an eventlog over the table gives the job's state.

>>> replay(["submit", "validate", "depend", "priority", "alloc"]).name
'RUN'
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from simsched.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterable


class JobState(IntEnum):
    """The states of RFC 21."""

    NEW = 0
    DEPEND = 1
    PRIORITY = 2
    SCHED = 3
    RUN = 4
    CLEANUP = 5
    INACTIVE = 6


#: An exception of severity 0 ends a job in any of these.
_LIVE = (JobState.NEW, JobState.DEPEND, JobState.PRIORITY, JobState.SCHED, JobState.RUN)

#: (state, event) → state.  Events that do not change the state are in the table too: an event that is
#: not in it cannot happen.  ``requeue``, ``suspend`` and ``resume`` are additions: RFC 21 has no transition
#: back from RUN, and no suspension.
TRANSITIONS: dict[tuple[JobState, str], JobState] = {
    (JobState.NEW, "submit"): JobState.NEW,
    (JobState.NEW, "validate"): JobState.DEPEND,
    (JobState.DEPEND, "dependency-add"): JobState.DEPEND,
    (JobState.DEPEND, "dependency-remove"): JobState.DEPEND,
    (JobState.DEPEND, "depend"): JobState.PRIORITY,
    (JobState.PRIORITY, "priority"): JobState.SCHED,
    (JobState.SCHED, "priority"): JobState.SCHED,
    (JobState.SCHED, "urgency"): JobState.SCHED,
    (JobState.SCHED, "alloc"): JobState.RUN,
    (JobState.RUN, "start"): JobState.RUN,
    (JobState.RUN, "finish"): JobState.CLEANUP,
    (JobState.RUN, "requeue"): JobState.SCHED,
    (JobState.RUN, "suspend"): JobState.RUN,
    (JobState.RUN, "resume"): JobState.RUN,
    (JobState.CLEANUP, "exception"): JobState.CLEANUP,
    (JobState.CLEANUP, "release"): JobState.CLEANUP,
    (JobState.CLEANUP, "free"): JobState.CLEANUP,
    (JobState.CLEANUP, "clean"): JobState.INACTIVE,
    **{(state, "exception"): JobState.CLEANUP for state in _LIVE},
}


def step(state: JobState, event: str) -> JobState:
    """Return the state after `event`.

    Raises
    ------
    RunError
        If that event cannot happen in that state.

    >>> step(JobState.INACTIVE, "finish")
    Traceback (most recent call last):
    simsched.errors.RunError: event 'finish' cannot happen in state INACTIVE (expected no more events)
    """
    after = TRANSITIONS.get((state, event))
    if after is None:
        possible = ", ".join(name for before, name in TRANSITIONS if before is state)
        raise RunError(
            f"event {event!r} cannot happen in state {state.name}", expected=possible or "no more events"
        )
    return after


def replay(events: Iterable[str], state: JobState = JobState.NEW) -> JobState:
    """Return the state after all `events`, in order.

    Raises
    ------
    RunError
        At the first event that cannot happen.
    """
    for event in events:
        state = step(state, event)
    return state


#: The state of a job without conditions once it is in the queue …
ARRIVED = replay(("submit", "validate", "depend", "priority"))
#: … once it has started …
STARTED = replay(("alloc", "start"), ARRIVED)
#: … and once it has ended.
ENDED = replay(("finish", "release", "free", "clean"), STARTED)


def mermaid() -> str:
    """Return the table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> NEW"]
    lines += [f"    {a.name} --> {b.name}: {event}" for (a, event), b in TRANSITIONS.items()]
    return "\n".join([*lines, "    INACTIVE --> [*]", ""])
