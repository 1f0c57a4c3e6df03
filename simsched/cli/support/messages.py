"""Errors in the words that a user sees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO


def text_of(error: Exception) -> str:
    """Return what an error says, without its type."""
    if isinstance(error, MemoryError):
        return "out of memory: the input stands for more than this machine can hold"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    return _os_error_text(error) if isinstance(error, OSError) else str(error)


def _os_error_text(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {reason}" if isinstance(error.filename, str | bytes) else reason


def encoding_text(error: UnicodeEncodeError) -> str:
    """Return what is said where a file cannot hold a character: half of one, from a damaged input."""
    return f"the character {error.object[error.start]!a} cannot be written in {error.encoding}"


def printable(message: str, stream: TextIO) -> str:
    """Replace what the stream cannot encode, and control characters other than newline and tab."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    text = message.encode(encoding, "backslashreplace").decode(encoding)
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
