"""Ctrl-C, SIGTERM and SIGHUP: one behaviour for all verbs.

The first signal ends the command in order: unfinished files are removed, workers are ended, and the exit
status is 128 plus the number of the signal (130 for Ctrl-C).  `stopping` lets a verb keep its results
instead.  Further signals only print how many more of them end the command at once, so that an impatient
user does not lose the results that are being written.

A shell starts background commands with Ctrl-C ignored, and Python leaves it ignored.  A signal that is
sent on purpose has to work, so SIGINT is handled in any case.  A command that was started with ``nohup``
has to outlive the terminal: a SIGHUP (or SIGTERM) that is ignored stays ignored.
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
"""Number of signals after the first that end a command at once."""


class Stopped(KeyboardInterrupt):
    """A signal ends the command."""

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
    """Let the first signal raise `Stopped`; if `lasting`, until the process ends."""

    def end(number: int) -> None:
        raise Stopped(number)

    with _taking(end, "ending", lasting=lambda: lasting):
        yield


@contextmanager
def stopping() -> Iterator[Stop]:
    """Let the first signal set an event that a run checks, so that its results so far are kept."""
    stop = Stop()

    def end(number: int) -> None:
        _write("interrupted: the run is ending and its results so far are being written")
        stop.take(number)

    with _taking(end, "the results so far are being written", lasting=stop.is_set):
        yield stop


@contextmanager
def _taking(first: Callable[[int], None], doing: str, *, lasting: Callable[[], bool]) -> Iterator[None]:
    """Pass the first signal to `first`; at further ones print `doing` and how many more end the command."""
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
            _write(f"{doing}; {left} more interruption{'s' if left > 1 else ''} to end at once")

    before = {number: signal.signal(number, take) for number in _taken()}
    try:
        yield
    finally:
        if not lasting():
            for number, handler in before.items():
                signal.signal(number, handler)


def _taken() -> list[int]:
    """Return the signals to handle: none in a thread, and no ignored one but SIGINT."""
    if threading.current_thread() is not threading.main_thread():
        return []
    others = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    ignored = (signal.SIG_IGN, None)
    return [signal.SIGINT, *(number for number in others if signal.getsignal(number) not in ignored)]


def _write(line: str) -> None:
    """Write a line to standard error in a signal handler, where buffers must not be used."""
    with suppress(OSError):  # the terminal may be gone
        os.write(2, f"{line}\n".encode())
