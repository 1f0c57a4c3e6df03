"""Ctrl-C, SIGTERM and SIGHUP: one behaviour for all verbs.

The first of them ends the command in order: what is half-written is removed, workers are ended,
and the exit status is 128 and the signal's number (130 for Ctrl-C).  `stopping` lets a verb keep
what it has done instead.  Further signals only say how many more of them end the command at
once, so that an impatient user does not lose what is being kept.

A shell starts what it runs in the background with Ctrl-C ignored, and Python leaves it so.  A signal
that is sent on purpose has to work, so SIGINT is taken in any case.  Whoever starts a command with
``nohup`` wants it to outlive the terminal: a SIGHUP (or SIGTERM) that is ignored stays ignored.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FURTHER = 10
"""Signals after the first that it takes to end a command at once."""


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


class Stop(threading.Event):
    """Set by the first signal; `status` is then the exit status."""

    status = 128 + signal.SIGINT

    def take(self, number: int) -> None:
        """Set the event for a signal."""
        self.status = 128 + number
        self.set()


def status_of(stop: KeyboardInterrupt) -> int:
    """Return the exit status of a command that was interrupted."""
    return stop.status if isinstance(stop, Stopped) else 128 + signal.SIGINT


@contextmanager
def interruptible(*, lasting: bool) -> Iterator[None]:
    """Let the first signal raise `Stopped`; if `lasting`, signals are taken so until the process ends."""

    def end(number: int) -> None:
        raise Stopped(number)

    with _taking(end, "ending", lasting=lambda: lasting):
        yield


@contextmanager
def stopping() -> Iterator[Stop]:
    """Let the first signal set an event that a run looks at; what was done is then kept."""
    stop = Stop()

    def ask(number: int) -> None:
        tell("interrupted: the run is ending, and what was done until now is being kept")
        stop.take(number)

    with _taking(ask, "what was done until now is being kept", lasting=stop.is_set):
        yield stop


@contextmanager
def _taking(first: Callable[[int], None], doing: str, *, lasting: Callable[[], bool]) -> Iterator[None]:
    """Hand the first signal to `first`; of further ones say what is `doing`, and how many more end it."""
    taken = 0

    def take(number: int, _frame: Any) -> None:
        nonlocal taken
        taken += 1
        if taken == 1:
            first(number)
        elif taken > FURTHER:
            raise Stopped(number)
        else:
            left = FURTHER + 1 - taken
            tell(f"{doing}; {left} more interruption{'s' if left > 1 else ''} to end at once")

    before = {number: signal.signal(number, take) for number in _taken()}
    try:
        yield
    finally:
        if not lasting():
            for number, handler in before.items():
                signal.signal(number, handler)


def _taken() -> list[int]:
    """Return the signals that are ours to take: none in a thread, and but for SIGINT none that is ignored."""
    if threading.current_thread() is not threading.main_thread():
        return []
    others = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ignored = (signal.SIG_IGN, None)
    return [signal.SIGINT, *(number for number in others if signal.getsignal(number) not in ignored)]


def tell(line: str) -> None:
    """Write a line on standard error from within a signal handler, where buffers must not be touched."""
    with suppress(OSError):  # the terminal may be gone
        os.write(2, f"{line}\n".encode())
