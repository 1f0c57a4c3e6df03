"""`EngineState`: everything that changes in a run, as one value.

Checkpoints, and forecasts from them, are made from it.  What follows from the inputs (requests,
orders, closures, columns of jobs) is not part of it: an engine of the same inputs makes it again.
Therefore a run that continues from a state gives the same bytes as one that was never interrupted.

`RunProgress`: the part of a run's state that the engine changes itself, event by event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.simulation.environment import FutureEvent
from simsched.simulation.jobs.lifecycle import JobState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.match.state.selection import Selection
    from simsched.schedule.profiles.plan import Plan
    from simsched.simulation.engine import Engine


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


@dataclass(frozen=True, slots=True)
class EngineState:
    """The state of a run between two events.

    Attributes
    ----------
    now : the time of the run (seconds).
    progress : the engine's own state; states only of jobs that were submitted.
    claims : (job, expected end, selection) of each job that holds resources, in order of their starts.
    down : ordinals of the targets that are down.
    events : the events to come, in their order.
    generators : name → the state of a generator of random numbers.
    queues, recorder : the states of these parts.
    conditions : the state of the dependencies; None where no job has any.
    parts : name → state of further parts, such as disruption.
    """

    now: float
    progress: RunProgress
    claims: list[tuple[int, float, Selection]]
    down: list[int]
    events: list[FutureEvent]
    generators: dict[str, Any]
    queues: Any
    conditions: Any
    recorder: Any
    parts: dict[str, Any]


def capture(engine: Engine) -> EngineState:
    """Return the state of an engine; it shares its values with the engine, which must not run meanwhile."""
    progress, plan = engine.progress, engine.plan
    parts = {name: found for name, part in engine.parts.items() if (found := part.state()) is not None}
    return EngineState(
        now=engine.now,
        progress=replace(progress, states=progress.states[: progress.submitted]),
        claims=plan.claims(),
        down=[] if plan.all_up else np.flatnonzero(~plan.available.up).tolist(),
        events=list(engine.future.pending()),
        generators={name: rng.bit_generator.state for name, rng in engine.generators.items()},
        queues=engine.queues.state(),
        conditions=parts.pop("dependencies", None),
        recorder=engine.recorder.state(progress.submitted),
        parts=parts,
    )


def restore(engine: Engine, state: EngineState) -> None:
    """Put a fresh engine of the same inputs and configuration into a state.

    Raises
    ------
    LookupError, TypeError, ValueError, AttributeError
        If it is not a state of such an engine.
    """
    states = [JobState(code) for code in state.progress.states]
    later = engine.progress.states[len(states) :]
    engine.progress = replace(state.progress, states=states + later)
    # Pass contexts share the generators with the engine, so only the generators' states change.
    for name, rng in engine.generators.items():
        rng.bit_generator.state = state.generators[name]
    for job, end, selection in state.claims:
        engine.plan.claim(job, selection, end)
    _restore_status(engine.plan, state.down)
    engine.queues.restore(state.queues)
    states_of = {**state.parts, "dependencies": state.conditions}
    for name, part in engine.parts.items():
        part.restore(states_of.get(name))
    engine.recorder.restore(state.recorder)
    engine.future.restore(state.now, [FutureEvent(*event) for event in state.events])


def _restore_status(plan: Plan, targets: Sequence[int]) -> None:
    """Mark which targets are down: after the claims, since a drained target may still be in use."""
    up = plan.available.up
    down = np.zeros_like(up)
    down[targets] = True
    for status, changing in ((False, down & up), (True, ~down & ~up)):
        if changing.any():
            plan.set_status(np.flatnonzero(changing), up=status)
    plan.recount()
