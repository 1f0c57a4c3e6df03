"""Whether a frame or an error is of the handling of an event, by the frame of `fire`.

This module is never compiled: compiled functions have no frames.
"""

from __future__ import annotations

from typing import Any


def fire(call: Any) -> None:
    """Handle an event of a run that is due."""
    call.handle(call)


def is_within_a_run(frame: Any) -> bool:
    """Whether a frame is part of the handling of an event of a run."""
    while frame is not None:
        if frame.f_code is fire.__code__:
            return True
        frame = frame.f_back
    return False


def came_through_a_run(error: BaseException) -> bool:
    """Whether an error was raised while an event of a run was handled, so that half of it is done."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is fire.__code__:
            return True
        trace = trace.tb_next
    return False
