"""Errors, warnings and notes on standard error."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from simsched.errors import InputWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TextIO

QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)
"""Whether notes on inputs are left out, as ``--quiet`` wants it.  Notes on results are always printed."""

MOST_NOTES = 20
"""The most notes on one input that are printed."""


def note(text: str, *, of_input: bool = False) -> None:
    """Write a note: a line that a user may want to know; `of_input`: how an input was read."""
    if not (of_input and QUIET.get()):
        sys.stderr.write(f"note: {text}\n")


def warn(text: object) -> None:
    """Write a warning: the input is accepted, but probably wrong."""
    sys.stderr.write(f"simsched: warning: {text}\n")


@contextmanager
def notes_of_inputs() -> Iterator[None]:
    """Write each `InputWarning` as notes on standard error, once, whatever the filters of warnings are."""
    seen: set[str] = set()
    with warnings.catch_warnings():
        otherwise = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not isinstance(message, InputWarning):
                otherwise(message, category, *place, **more)
                return
            new = [line for line in message.lines if line not in seen]
            seen.update(new)
            for line in new[:MOST_NOTES]:
                note(printable(line, sys.stderr), of_input=not message.of_result)
            if len(new) > MOST_NOTES:
                note(f"{len(new) - MOST_NOTES:,} more notes on this file", of_input=True)

        warnings.showwarning = show
        warnings.simplefilter("always", InputWarning)
        yield


def warn_of(notes: Sequence[object], source: str) -> None:
    """Warn of the notes on an input, as `load_cluster` does."""
    if notes:
        warnings.warn(InputWarning(source, map(str, notes)), stacklevel=2)


def text_of(error: Exception) -> str:
    """Return the text of an error without its type."""
    if isinstance(error, MemoryError):
        return "out of memory: the input describes more than the memory of this machine holds"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {reason}" if isinstance(error.filename, str | bytes) else reason


def others_of(error: Exception) -> str:
    """Return the further faults of an error, one per line after a line end; nothing for a single fault.

    An expectation that was stated before is left out.
    """
    told = {getattr(error, "expected", None)}
    lines = []
    for fault in getattr(error, "others", ()):
        lines.append(f"\n  {fault.where}: {fault.message}" if fault.expected in told else f"\n  {fault}")
        told.add(fault.expected)
    return "".join(lines)


def trace_of(error: Exception) -> str:
    """Return the traceback of a plug-in in an error, indented, after a line end; nothing for other errors."""
    trace = getattr(error, "trace", "")
    return "".join(f"\n  {line}" for line in trace.splitlines())


def encoding_text(error: UnicodeEncodeError) -> str:
    """Return the text for a character that cannot be written: half of one, from a damaged input."""
    return f"the character {error.object[error.start]!a} cannot be written in {error.encoding}"


def printable(message: str, stream: TextIO) -> str:
    """Escape characters that the stream cannot encode, and control characters but newline and tab."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    text = message.encode(encoding, "backslashreplace").decode(encoding)
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
