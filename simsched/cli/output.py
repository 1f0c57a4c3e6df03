"""Answers on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simsched.errors import SimschedError

if TYPE_CHECKING:
    from collections.abc import Iterable


def print_lines(lines: Iterable[str]) -> None:
    """Write lines of an answer."""
    for line in lines:
        write(f"{line}\n")


def write(text: str) -> None:
    """Write an answer; `SimschedError` where the terminal's encoding has no such characters."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise SimschedError(
            f"the character {bad!a} cannot be written in {error.encoding}", expected="UTF-8 text"
        ) from None
