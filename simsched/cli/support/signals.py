"""Ctrl-C, SIGTERM and SIGHUP: one behaviour for all verbs.

The first signal ends the command in order: unfinished files are removed, workers are ended, one line is
written, and the exit status is 128 plus the number of the signal (130 for Ctrl-C).  `stopping` lets a verb
keep its results instead.  Further signals only print how many more of them end the command at once, so that
an impatient user does not lose the results that are being written.

No signal raises an exception in a process of ours: it would come out anywhere, in an import, a destructor
or a callback of a library, which may swallow it, take it for an error of its own, or abort.  The handler
itself undoes what is unfinished (`files.undo_all`) and ends the process.  Only in a program that calls
`main` as a function, whose process is not ours to end, it raises `Stopped`.

A shell starts background commands with Ctrl-C ignored, and Python leaves it ignored.  A signal that is
sent on purpose has to work, so SIGINT is handled in any case.  A command that was started with ``nohup``
has to outlive the terminal: a SIGHUP (or SIGTERM) that is ignored stays ignored.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FURTHER = 10
"""Number of signals after the first that end a command at once."""
PATIENCE = 10.0
"""Seconds after which a command ends although something is not undone."""


class Stopped(KeyboardInterrupt):
    """A signal ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


class Stop:
    """Whether a signal came, and what it ends; `status` is the exit status for it."""

    def __init__(self) -> None:
        self.status = 128 + signal.SIGINT
        self.is_set = False
        self._end: Callable[[], None] | None = None

    def take(self, number: int) -> None:
        """Note a signal, and end the run."""
        self.status, self.is_set = 128 + number, True
        if self._end is not None:
            self._end()

    def ends(self, end: Callable[[], None]) -> None:
        """Let the first signal call a function, at once if it has come."""
        self._end = end
        if self.is_set:
            end()


_own = False
"""Whether the process is ours to end."""
_lines = ["interrupted"]
"""What is written when a signal ends the command; the last one counts."""


def status_of(stop: BaseException) -> int:
    """Write that the command was interrupted, and return its exit status."""
    _write(_lines[-1])
    return stop.status if isinstance(stop, Stopped) else 128 + signal.SIGINT


@contextmanager
def interruptible(*, lasting: bool) -> Iterator[None]:
    """Let the first signal end the command; `lasting`: the process is ours, and handlers stay to its end."""
    global _own  # noqa: PLW0603 - handlers are those of the process, too
    _own = lasting
    with _taking(_end, "ending", lasting=lambda: lasting):
        yield


def end_undisturbed() -> None:
    """Ignore signals from now on: all is written, and a process that Python takes down has no handlers."""
    for number in _taken():
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def ending_with(line: str) -> Iterator[None]:
    """Let a signal write this line when it ends the command."""
    _lines.append(line)
    try:
        yield
    finally:
        _lines.remove(line)


def _end(number: int) -> None:
    """End the process, or raise `Stopped` where it is not ours."""
    if not _own:
        raise Stopped(number)
    _write(_lines[-1])
    done: list[bool] = []

    def undo() -> None:
        undo_all = getattr(sys.modules.get("simsched.files"), "undo_all", None)
        if undo_all is not None:  # what was never imported, or is being imported, has nothing to undo
            undo_all()
        done.append(True)

    # In a thread, since the main one may hold a lock; begun by hand, since `Thread.start` waits for one.
    _thread.start_new_thread(undo, ())
    deadline = time.monotonic() + PATIENCE
    while not done and time.monotonic() < deadline:
        time.sleep(0.005)
    os._exit(128 + number)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Let the first signal end a run, so that its results so far are kept."""
    stop = Stop()

    def end(number: int) -> None:
        _write("interrupted: the run is ending and its results so far are being written")
        stop.take(number)

    with _taking(end, "the results so far are being written", lasting=lambda: stop.is_set):
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
            _end(number)
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
