"""`between_events`: Ctrl-C ends a run between two of its events, so that the simulation stays whole."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from simsched.simulation.environment import ScheduledCall, is_within_a_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simpy import Environment

FIRST = -1
"""The priority of an event before all others of its instant; it may be any number."""


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
        event = ScheduledCall()
        event.callbacks = [_raise]
        env.schedule(event, FIRST)  # type: ignore[arg-type]

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _raise(_: Any) -> NoReturn:
    raise KeyboardInterrupt
