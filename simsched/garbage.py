"""Pauses of the garbage collector, so that it does not walk long-lived objects."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector while millions of long-lived objects are made.

    The new objects count as old afterwards, so that the next collection does not walk them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the garbage collector run seldom while much stays and some goes: it walks what stays each time."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
