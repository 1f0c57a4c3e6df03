"""The state of an engine at the start of an instant as JSON values, and an engine put into it.

What follows from the inputs (requests, orders, closures, the table of jobs to come) is not
written: it is made again.  What is written are the facts that the run has brought about: who
holds what, who waits, what is down, what is still to happen, what was noted, and what the
policies, generators and fair shares remember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.schedule.orders.order import job_order
from simsched.schedule.orders.ranking import Order
from simsched.schedule.policies.limited import Limited
from simsched.schedule.policies.registry import queue_policy
from simsched.simulation.checkpoint.codec import Codec, fields_of
from simsched.simulation.environment import FIRST, LAST
from simsched.simulation.jobs.conditions import Link
from simsched.simulation.jobs.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.schedule.pass_context import QueuePolicy
    from simsched.simulation.engine import Engine, Lane
    from simsched.simulation.jobs.conditions import Conditions
    from simsched.simulation.record.recorder import Recorder

#: Attributes of the engine that are written as they are.
ENGINE = ("done", "requeues", "_parked", "_next", "_passes", "_timers", "_queued_cores", "_rng", "_epilogs")
#: Attributes of the recorder that are given or written apart.
GIVEN = frozenset({"ids", "log", "events", "_pools", "_width"})
CONDITIONS = ("_started", "_ended", "_open", "timers")


def codec_of(engine: Engine) -> Codec:
    """Return what writes and reads the values of this run."""
    table = engine.prepared.table
    requests: list[Any] = [None] * (max(table.kinds, default=-1) + 1)
    for kind, request in zip(table.kinds, table.requests, strict=True):
        requests[kind] = request
    return Codec(engine.plan.available.index, requests)


def callbacks_of(engine: Engine) -> dict[str, Callable[[Any], None]]:
    """Return what may happen to this engine, by the name that a snapshot has for it."""
    known: dict[str, Callable[[Any], None]] = {
        "submission": engine._on_submission,
        "end": engine._on_end,
        "cancel": engine._on_cancel,
        "timer": engine._on_timer,
        "started": engine._on_started,
        "clean": engine._on_clean,
        "wake": engine.wakes.on_wake,
    }
    if (disruption := engine.disruption) is not None:
        known["failure"], known["repair"] = disruption._on_failure, disruption._on_repair
        known["down"], known["up"] = disruption._on_down, disruption._on_up
    if (preemption := engine.preemption) is not None:
        known["ripe"] = preemption._on_ripe
    if (hours := engine.hours) is not None:
        known["queue-stop"], known["queue-start"] = hours._on_stop, hours._on_start
    return known


# -- out --------------------------------------------------------------------------------------


def state_of(engine: Engine) -> dict[str, Any]:
    """Return the engine's state as JSON values.

    Raises
    ------
    RunError
        If an installed policy or order remembers something that cannot be written.
    """
    plain = codec_of(engine).plain
    plan, submitted = engine.plan, engine._next
    return {
        "engine": {name: plain(getattr(engine, name)) for name in ENGINE},
        "wake": plain(engine.wakes.time),
        "states": [int(state) for state in engine.state[:submitted]],
        "held": [
            {
                "job": job,
                "until": plain(plan.expected_end(job)),
                "end": plain(engine._ends[job]),
                "selection": plain(selection),
            }
            for job, selection in plan.held.items()
        ],
        "down": np.flatnonzero(~plan.available.up).tolist(),
        "lanes": [_lane_state(engine, lane, plain) for lane in engine.lanes],
        "events": list(_events(engine, plain)),
        "conditions": None if engine.conditions is None else _conditions_state(engine.conditions, plain),
        "disruption": None
        if engine.disruption is None
        else {name: plain(getattr(engine.disruption, name)) for name in ("_rng", "_out")},
        "recorder": dict(_recorder_state(engine.recorder, submitted, plain)),
        "texts": None if engine.recorder.log is None else plain(engine.recorder.log._texts),
    }


def _events(engine: Engine, plain: Callable[[Any], Any]) -> Iterator[dict[str, Any]]:
    """Yield what is still to happen, in the order in which it will."""
    names = {callback: name for name, callback in callbacks_of(engine).items()}
    for time, order, _, event in sorted(engine.clock._queue, key=lambda entry: entry[:3]):
        if order in (FIRST, LAST):
            continue  # further snapshots and the end of the run are the next run's own
        (callback,) = event.callbacks
        yield {
            "time": plain(time),
            "class": int(order),
            "what": names[callback],
            "value": plain(event._value),
        }


def _lane_state(engine: Engine, lane: Lane, plain: Callable[[Any], Any]) -> dict[str, Any]:
    config, waiting = engine.config, lane.waiting
    fresh = queue_policy(config.queue_policy, config.queue_options)
    return {
        "waiting": {name: plain(item) for name, item in waiting.state().items()},
        "desk": {name: plain(item) for name, item in lane.context.state().items()},
        "policy": _memory(lane.policy, fresh, plain),
        "inner": _memory(_inner(lane.policy), _inner(fresh), plain),
        "order": {} if waiting.static else _memory(waiting.order, job_order(config.order), plain),
    }


def _inner(policy: QueuePolicy) -> QueuePolicy | None:
    """Return the policy that another one limits."""
    return policy.inner if isinstance(policy, Limited) else None


def _memory(value: Any, fresh: Any, plain: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the attributes in which a policy or an order differs from a fresh one."""
    if isinstance(value, Order):
        return {}
    found = {}
    for name, item in fields_of(value):
        same = getattr(fresh, name, None)
        if (
            isinstance(item, Order)
            or name == "inner"
            or (not isinstance(item, np.ndarray) and type(same) is type(item) and same == item)
        ):
            continue
        try:
            found[name] = plain(item)
        except RunError as error:
            raise RunError(f"{type(value).__qualname__}.{name}: {error.message}", where="snapshot") from None
    return found


def _conditions_state(conditions: Conditions, plain: Callable[[Any], Any]) -> dict[str, Any]:
    found = {name: plain(getattr(conditions, name)) for name in CONDITIONS}
    found["links"] = [
        [antecedent, [list(link) for link in links]] for antecedent, links in conditions._links.items()
    ]
    return found


def _recorder_state(
    recorder: Recorder, submitted: int, plain: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    """Yield what the recorder noted; columns of jobs as far as jobs were submitted."""
    jobs = len(recorder.ids)
    for name, value in fields_of(recorder, GIVEN):
        column = isinstance(value, list | bytearray) and len(value) == jobs and name != "down"
        yield name, plain(value[:submitted] if column else value)


# -- in ---------------------------------------------------------------------------------------


def restore(engine: Engine, state: dict[str, Any], time: float) -> None:
    """Put a fresh engine of the same inputs and configuration into a state.

    Raises
    ------
    KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError
        If that is no state of such an engine.
    """
    codec = codec_of(engine)
    value = codec.value
    for name in ENGINE:
        if name in ("_rng", "_epilogs"):  # shared with the contexts: the state goes into the generator
            getattr(engine, name).bit_generator.state = value(state["engine"][name]).bit_generator.state
        else:
            setattr(engine, name, value(state["engine"][name]))
    engine.wakes.time = value(state["wake"])
    engine.state[: len(state["states"])] = [State(code) for code in state["states"]]
    _hold(engine, state, codec)
    for lane, saved in zip(engine.lanes, state["lanes"], strict=True):
        _restore_lane(lane, saved, value)
    if engine.conditions is not None:
        _restore_conditions(engine.conditions, state["conditions"], value)
    if engine.disruption is not None:
        for name, saved in state["disruption"].items():
            setattr(engine.disruption, name, value(saved))
    _restore_recorder(engine.recorder, state["recorder"], value)
    if engine.recorder.log is not None:
        engine.recorder.log._texts = value(state["texts"])
    _restore_events(engine, state["events"], time, value)
    engine.resumed = True


def _hold(engine: Engine, state: dict[str, Any], codec: Codec) -> None:
    """Claim what is held, then mark what is down."""
    plan = engine.plan
    for held in state["held"]:
        job = held["job"]
        plan.claim(job, codec.value(held["selection"]), codec.value(held["until"]))
        engine._ends[job] = codec.value(held["end"])
    down = np.zeros_like(plan.available.up)
    down[state["down"]] = True
    for up, changing in ((False, down & plan.available.up), (True, ~down & ~plan.available.up)):
        if changing.any():
            plan.set_status(np.flatnonzero(changing), up=up)
    plan.recount()


def _restore_lane(lane: Lane, saved: dict[str, Any], value: Callable[[Any], Any]) -> None:
    waiting, policy = lane.waiting, lane.policy
    waiting.restore({name: value(item) for name, item in saved["waiting"].items()})
    lane.context.restore({name: value(item) for name, item in saved["desk"].items()})
    places = {"policy": policy, "order": waiting.order, "inner": _inner(policy)}
    for place, target in places.items():
        for name, item in saved[place].items():
            setattr(target, name, value(item))


def _restore_conditions(conditions: Conditions, saved: dict[str, Any], value: Callable[[Any], Any]) -> None:
    for name in CONDITIONS:
        setattr(conditions, name, value(saved[name]))
    conditions._links = {antecedent: [Link(*link) for link in links] for antecedent, links in saved["links"]}


def _restore_recorder(recorder: Recorder, saved: dict[str, Any], value: Callable[[Any], Any]) -> None:
    for name, item in saved.items():
        found, now = value(item), getattr(recorder, name)
        if isinstance(now, list | bytearray) and len(found) < len(now):
            now[: len(found)] = found
        else:
            setattr(recorder, name, found)


def _restore_events(
    engine: Engine, events: list[dict[str, Any]], time: float, value: Callable[[Any], Any]
) -> None:
    clock, callbacks = engine.clock, callbacks_of(engine)
    clock._queue.clear()
    clock._now = time
    for event in events:
        clock.at(value(event["time"]), event["class"], callbacks[event["what"]], value(event["value"]))
