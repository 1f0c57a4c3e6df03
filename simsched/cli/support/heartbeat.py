"""Progress on standard error while a long verb works: a line every 30 s, or a bar."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from simsched import human

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: seconds between two lines
EVERY = 30.0
#: seconds before the first line of `run`
FIRST = 5.0


@contextmanager
def heartbeat(
    verb: str,
    state: Callable[[float], str],
    *,
    quiet: bool = False,
    first: float | None = None,
    once: bool = False,
) -> Iterator[None]:
    """Write a line to standard error every `EVERY` seconds, on a terminal or not.

    Parameters
    ----------
    state : seconds since the beginning → text of the progress, "" for no line; called in its own thread.
    quiet : write nothing.
    first : seconds before the first line, if they are fewer than `EVERY`.
    once : write only the first line.
    """
    if quiet:
        yield
        return
    began, done = time.monotonic(), threading.Event()

    def beat() -> None:
        wait = EVERY if first is None else min(first, EVERY)
        while not done.wait(wait):
            wait, spent = EVERY, time.monotonic() - began
            text = state(spent)
            with suppress(OSError, ValueError):  # standard error may be closed by now
                sys.stderr.write(f"simsched {verb}: {_seconds(spent)} so far, {text}\n" * bool(text))
                sys.stderr.flush()
            if once and text:
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def progress_bar(text: str = "", total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar on standard error; yield the function that sets its ``completed`` and ``description``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        yield partial(bar.update, bar.add_task(text, total=total))


def expected(spent: float, done: float, left: float, word: str = "about") -> str:
    """Return the expected remaining time as text, from the pace so far; empty if unknown.

    >>> expected(60.0, 2, 3), expected(60.0, 0, 3)
    (', about 1 min 30 s more', '')
    """
    return f", {word} {_seconds(spent / done * left)} more" if done > 0 and left > 0 else ""


def _seconds(value: float) -> str:
    return human.seconds(round(value))
