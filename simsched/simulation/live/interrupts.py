"""How a run ends before its end: `run_until` an event, or by Ctrl-C `between_events`."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

from simsched.errors import RunError
from simsched.simulation.environment import ScheduledCall, is_within_a_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simpy import Environment, Event


FIRST = -1
"""The priority of an event before all others of its instant; it may be any number."""


def run_until(env: Environment, until: Event | None) -> Any:
    """Run an environment until an event, and return its value; None: until nothing is left.

    RunError if the event belongs to another environment, or nothing is left to happen before it.
    """
    if until is not None and until.env is not env:
        raise RunError("the event belongs to another environment", expected="one of `Simulation.env`")
    try:
        return env.run(until=until)
    except RuntimeError:
        if until is None or until.triggered or env.peek() != inf:
            raise
        text = f"at {env.now:g} s nothing is left to happen, and the event has not taken place"
        raise RunError(text, expected="an event that happens, or `until` a time") from None


@contextmanager
def between_events(env: Environment) -> Iterator[None]:
    """Raise KeyboardInterrupt once the present event of the run is over; a second Ctrl-C ends it at once.

    Only in the main thread, and only if the program has no handler of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    asked = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal asked
        if asked or not is_within_a_run(frame):
            signal.default_int_handler(number, frame)
        asked = True
        once_over(env, _raise)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def once_over(env: Environment, action: Callable[[Any], Any]) -> None:
    """Call a function, with an event, when the present event of the environment is over."""
    event = ScheduledCall()
    event.callbacks = [action]
    env.schedule(event, FIRST)  # type: ignore[arg-type]


def _raise(_: Any) -> NoReturn:
    raise KeyboardInterrupt
