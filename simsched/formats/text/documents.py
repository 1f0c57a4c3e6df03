"""Files as text and as values: standard input, encodings, limits, strict JSON and strict YAML.

Every fault of a file is one `FormatError` (or `LimitError`) with line and column.  The values are those of
JSON: dict with string keys, list, str, int, finite float, bool, None; at most `MAX_DEPTH` levels deep.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.arguments import check
from simsched.errors import FormatError, LimitError, clip
from simsched.formats.text.decompression import name_of as name_of  # noqa: PLC0414 (others import it here)
from simsched.formats.text.decompression import opened, whole
from simsched.formats.text.excerpts import MAX_DIGITS, format_path
from simsched.formats.text.json_text import load_json
from simsched.formats.text.yaml_text import load_yaml, load_yaml_all

if TYPE_CHECKING:
    import os


def load_document(text: str, where: str | None = None) -> Any:
    """Read one JSON or YAML document, whichever it is.

    >>> load_document("a: [1, 2]") == load_document('{"a": [1, 2]}')
    True
    """
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "[", '"'):
        return load_yaml(text, where)
    try:
        return load_json(text, where)
    except LimitError:
        raise
    except FormatError as error:
        if re.match(r'\s*(?:\{\s*"|\[\s*[\["{])', text):
            raise
        try:
            return load_yaml(text, where)  # a YAML flow mapping such as {a: 1}
        except FormatError:
            raise error from None


def load_documents(text: str, where: str | None = None) -> list[Any]:
    r"""Read a text of one JSON document, or of any number of YAML documents.

    >>> load_documents("[1]"), load_documents("a: 1\n---\nb: 2\n")
    ([[1]], [{'a': 1}, {'b': 2}])
    """
    is_json = text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["}
    return [load_document(text, where)] if is_json else load_yaml_all(text, where)


def refuse_foreign(value: Any, where: str | None = None, path: tuple[str | int, ...] = ()) -> None:
    """Refuse the values that TOML has and JSON has not.

    Raises FormatError for numbers that are not finite and for dates, `LimitError` for whole numbers of
    more than `MAX_DIGITS`, each with its path.

    >>> refuse_foreign({"a": [1, float("inf")]}, "c.toml")
    Traceback (most recent call last):
    simsched.errors.FormatError: c.toml: a[1]: inf is not a finite number (expected a finite number)
    """
    at = ": ".join(part for part in (where, format_path(path)) if part)
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            refuse_foreign(item, where, (*path, step))
    elif isinstance(value, float) and not math.isfinite(value):
        raise FormatError(f"{value} is not a finite number", where=at, expected="a finite number")
    elif isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise LimitError("the number has too many digits", where=at, expected=f"at most {MAX_DIGITS}")
    elif not isinstance(value, str | int | float | None):
        raise FormatError(f"{value} is a date or time", where=at, expected="a text, a number, true or false")


OpenFile: TypeAlias = Callable[[str], str]
"""Returns the text of another file that a file names, relative to that file; errors as `read_text`."""

ENCODINGS = {"utf-8": "utf-8-sig", "us-ascii": "ascii", "iso-8859-1": "latin-1", "utf-16": "utf-16"}
"""The supported encodings, those that expat knows: XML's name in lower case → Python's."""

_BYTE_ORDER = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DECLARED = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml\s[^<>]*?\sencoding\s*=\s*["']([^"'<>]*)["']""")
_HEAD = 1024


def read_bytes(path: str | os.PathLike[str], *, limit: int | None = None) -> bytes:
    """Read a whole file; ``-`` is standard input, compression is recognised by content (see `opened`).

    Raises
    ------
    FormatError
        for a missing file, a directory, an unreadable file, binary data, damaged or unknown compression.
    LimitError
        for more than `limit` bytes (default: `MAX_TEXT`), counted after decompression.
    """
    check("path", path, str | PathLike, "the path of a file")
    with opened(path, limit=limit) as stream:
        return whole(stream)


def read_text(path: str | os.PathLike[str], *, limit: int | None = None, lenient: bool = False) -> str:
    """Read a whole text file, as `read_bytes` does, and decode it as `text_of_bytes` does."""
    return text_of_bytes(read_bytes(path, limit=limit), name_of(path), lenient=lenient)


def opener(path: str | Path) -> OpenFile | None:
    """Return the function that opens the files which a file names; None for standard input."""
    if str(path) == "-":
        return None
    folder = Path(path).parent

    def open_file(name: str) -> str:
        return read_text(named(folder / name), lenient=True)  # an absolute name stays as it is

    return open_file


def named(path: Path) -> Path:
    """Return the path of a file that another file names; FormatError for a pipe or a device.

    Nobody may ever write to a pipe that a file names.  (On the command line, pipes are welcome.)
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FormatError("this is a pipe or a device", where=str(path), expected="a file")
    return path


def text_of_bytes(data: bytes, where: str | None, *, lenient: bool = False) -> str:
    """Decode the content of a file as UTF-8.

    `lenient` takes a file that is not UTF-8 as Latin-1 (the headers of old traces name people).
    A byte order mark is dropped.  XML is decoded by its declaration (see `decode_xml`).

    Raises
    ------
    FormatError
        for other encodings and binary data, with the line of the first wrong byte.
    """
    xml = decode_xml(data, where)
    if xml is not None:
        return xml
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the text is UTF-16", where=where, expected="UTF-8")
    if b"\0" in data and not lenient:
        raise FormatError("this is a binary file", where=where, expected="text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if lenient:
            return data.decode("latin-1")
        raise _undecodable(error, where, "UTF-8") from None


def _undecodable(error: UnicodeDecodeError, where: str | None, encoding: str) -> FormatError:
    """Return the fault of a byte that is not text, with its line if the encoding has lines of bytes."""
    line = error.object.count(b"\n", 0, error.start) + 1
    spot = f"{where}:{line}" if where and not encoding.startswith("UTF-16") else where
    return FormatError(
        f"byte 0x{error.object[error.start]:02x} is not {encoding}", where=spot, expected="text"
    )


# -- encodings of XML (XML 1.0, 4.3.3 and appendix F) ---------------------------------


def decode_xml(data: bytes, where: str | None = None) -> str | None:
    r"""Return the text of an XML file; None for other files, and for XML without a declared encoding.

    UTF-16 is recognised by its byte order mark, which XML demands, any other encoding by the declaration.

    Raises
    ------
    FormatError
        for an encoding that is not in `ENCODINGS`, and for bytes that are not text of the encoding.

    >>> decode_xml('<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'.encode("latin-1"))[-5:]
    'é</a>'
    >>> decode_xml(b"<a/>"), decode_xml(b"resources: []")
    (None, None)
    """
    name = encoding_of(data)
    if name is None:
        return None
    if name not in ENCODINGS or (name == "utf-16" and data[:2] not in _BYTE_ORDER):
        expected = "UTF-8, US-ASCII, ISO-8859-1, or UTF-16 with a byte order mark"
        raise FormatError(
            f"the XML declares the encoding {clip(name.upper(), 40)}", where=where, expected=expected
        )
    try:
        return data.decode(ENCODINGS[name])
    except UnicodeDecodeError as error:
        raise _undecodable(error, where, f"{name.upper()}, which the XML declares") from None


def encoding_of(data: bytes) -> str | None:
    """Return the encoding, in lower case, that the beginning of an XML file shows; None if it shows none."""
    if data[:2] in _BYTE_ORDER:
        return "utf-16" if data[:_HEAD].decode("utf-16", "replace").lstrip()[:1] == "<" else None
    found = _DECLARED.match(data[:_HEAD])
    return found[1].decode("latin-1").lower() if found else None
