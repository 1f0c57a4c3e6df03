"""Answers on standard output or in a file, also in encodings other than UTF-8.

Text for people falls back to plain characters (``≤`` becomes ``<=``).  Documents that programs
read keep their meaning: JSON and XML have escapes, and anything else is written in UTF-8.
"""

from __future__ import annotations

import codecs
import sys
from typing import TYPE_CHECKING, Any, Literal

from simsched.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import TextIO

Form = Literal["text", "json", "xml", "other"]

_FALLBACK = "simsched.plain"
_PLAIN = {
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u00d7": "x", "\u00b1": "+-", "\u2212": "-",
    "\u2013": "-", "\u2014": "-", "\u2026": "...", "\u00b7": ".", "\u2022": "*", "\u2192": "->",
    "\u2190": "<-", "\u221e": "inf", "\u2248": "~", "\u00b5": "u", "\u00a0": " ", "\u202f": " ",
    "\u2009": " ", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"',
    "\u2500": "-", "\u2501": "-", "\u2502": "|", "\u251c": "+", "\u2514": "`", "\u250c": "+", "\u2510": "+",
    "\u2588": "#", "\u2589": "#", "\u258a": "#", "\u258b": "#", "\u258c": "|", "\u258d": "|", "\u258e": "|",
    "\u258f": "|", "\u2591": ".", "\u2592": ":", "\u2593": "#",
    "\u2581": "_", "\u2582": ".", "\u2583": "-", "\u2584": "=", "\u2585": "+", "\u2586": "*", "\u2587": "%",
}  # fmt: skip
"""Sign of our texts, tables and bars → its substitute in ASCII."""


def adapt(*streams: TextIO) -> None:
    """Let streams fall back to plain characters that their encoding has.

    Even UTF-8 cannot encode everything: the name of a file may be in another encoding.
    """
    codecs.register_error(_FALLBACK, _plainer)
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_FALLBACK)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Return plain characters for those that cannot be encoded (an error handler of `codecs`)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    odd = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character) or _escaped(character) for character in odd), error.end


def _escaped(text: str) -> str:
    r"""Return characters as JSON escapes them: ``ü`` is ``\u00fc``."""
    import json

    return json.dumps(text)[1:-1]


class Visible:
    """Standard output that shows control characters in names instead of obeying them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_lines(lines: Iterable[str], form: Form = "other") -> None:
    """Write the lines of an answer."""
    for line in lines:
        write(f"{line}\n", form)


def list_bundled(room: str) -> Callable[[object], int]:
    """Return the function of a verb that lists the bundled inputs of a room, with a line on each."""

    def run(_: object) -> int:
        from simsched.bundled import summaries
        from simsched.text_table import table_lines

        print_lines(table_lines(summaries(room).items()), "text")
        return 0

    return run


def write(text: str, form: Form = "text") -> None:
    """Write an answer to standard output."""
    stream = sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if form != "text" and not text.isascii() and not _holds(encoding, text):
        if form == "json":
            text = "".join(part if part.isascii() else _escaped(part) for part in text)
        elif form == "xml":
            text = text.encode(encoding, "xmlcharrefreplace").decode(encoding)
        else:
            write_bytes(text.encode(errors="surrogateescape"))
            return
    stream.write(text)


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def put(
    data: str | bytes, output: str | Path | None, form: Form = "other", *, announced: bool = False
) -> None:
    """Write an answer to a file, as a whole or not at all, or to standard output (also ``-``).

    `announced` : whether standard error names the file.

    Raises
    ------
    RunError
        if the file cannot be written.
    """
    if output is None or str(output) == "-":
        write_bytes(data) if isinstance(data, bytes) else write(data, form)
        return
    from simsched.files import write_file

    write_file(output, data)
    if announced:
        sys.stderr.write(f"written: {output}\n")


def answer(
    form: str,
    document: Callable[[], Any],
    lines: Callable[[], Iterable[object]],
    output: str | None = None,
    *,
    indent: int | None = 2,
    ensure_ascii: bool = False,
) -> None:
    """Write an answer in the form that ``--format`` names: a document as JSON, or lines of text."""
    if form == "json":
        from simsched.declare.answers import json_text

        put(json_text(document(), indent, ensure_ascii=ensure_ascii) + "\n", output, "json")
    else:
        put("".join(f"{line}\n" for line in lines()), output, "text")


def _holds(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def terminal_width() -> int:
    """Return the number of characters per line: that of the terminal, or a fixed one in a pipe."""
    import shutil

    from simsched.text_table import PAGE_WIDTH

    return min(shutil.get_terminal_size().columns, 120) if sys.stdout.isatty() else PAGE_WIDTH
