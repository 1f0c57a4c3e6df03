"""From files to values: reading text, strict JSON, strict YAML, and places in both.

Everything that a user's file can do wrong ends in one `FormatError` (or `LimitError`) with
the line and column.  Values are what JSON knows: dict with string keys, list, str, int,
finite float, bool, None; nothing is deeper than `MAX_DEPTH`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, overload

from simsched.arguments import check
from simsched.errors import FormatError, LimitError
from simsched.formats.lexical import clip, format_path, line_and_column, parse_path, place
from simsched.formats.positions import Positions, locate, walk_json
from simsched.formats.xml_encoding import decode_xml
from simsched.formats.yaml_text import load_yaml, load_yaml_all, yaml_hint

if TYPE_CHECKING:
    import os
    from typing import BinaryIO

__all__ = [
    "MAX_DEPTH",
    "MAX_TEXT",
    "Kind",
    "Positions",
    "clip",
    "decode_json_bulk",
    "detect_kind",
    "format_path",
    "line_and_column",
    "load_document",
    "load_json",
    "load_json_line",
    "load_yaml",
    "load_yaml_all",
    "locate",
    "parse_path",
    "place",
    "read_bytes",
    "read_text",
    "yaml_hint",
]

MAX_TEXT = 4 * 2**30
"""The most bytes a file may have, once decompressed."""

MAX_PACKING = 400
"""How many bytes a byte of gzip may stand for once the text has more than `PACKED_FREELY` bytes."""

PACKED_FREELY = 256 * 2**20

MAX_DEPTH = 200
"""The deepest nesting of a JSON or YAML document."""

Kind: TypeAlias = Literal["json", "jsonl", "yaml", "xml", "text"]
T = TypeVar("T")

_CHUNK = 1 << 24
_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_BRACKETS = re.compile(r"[^\[\]{}]+")
_YAML_START = re.compile(
    r"---|%YAML|- |-\Z|\? |(?:[^\s:;#{}\[\],&*!|>'\"%@`-][^:#]*|\"[^\"]*\"|'[^']*'):(?:\s|\Z)"
)
_COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip"}


# -- files ---------------------------------------------------------------------------


def read_bytes(path: str | os.PathLike[str], *, limit: int = MAX_TEXT) -> bytes:
    """Read a file whole; ``-`` is standard input, gzip is recognised by its first bytes.

    Raises
    ------
    FormatError
        No such file, a directory, not readable, damaged or truncated gzip, another compression.
    LimitError
        More than `limit` bytes, counted after decompression.
    """
    check("path", path, str | PathLike, "the path of a file")
    name = str(path)
    try:
        if name == "-":
            return _unpacked(sys.stdin.buffer, "standard input", limit)
        with FilePath(path).open("rb") as file:
            return _unpacked(file, name, limit)
    except FileNotFoundError:
        raise FormatError("no such file", where=name) from None
    except IsADirectoryError:
        raise FormatError("this is a directory", where=name, expected="a file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"cannot be read: {reason}", where=clip(name, 200)) from None


def read_text(path: str | os.PathLike[str], *, limit: int = MAX_TEXT, lenient: bool = False) -> str:
    """Read a text file whole, as `read_bytes` does, and decode it as UTF-8.

    `lenient` takes a file that is not UTF-8 as Latin-1 (old traces name people in their
    headers).  A byte order mark is dropped.  XML is decoded as it declares (see `decode_xml`).
    """
    data = read_bytes(path, limit=limit)
    where = "standard input" if str(path) == "-" else str(path)
    xml = decode_xml(data, where)
    if xml is not None:
        return xml
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the text is UTF-16", where=where, expected="UTF-8")
    if b"\0" in data:
        raise FormatError("this is a binary file", where=where, expected="text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if lenient:
            return data.decode("latin-1")
        line = data.count(b"\n", 0, error.start) + 1
        bad = data[error.start]
        raise FormatError(
            f"byte 0x{bad:02x} is not UTF-8", where=f"{where}:{line}", expected="text"
        ) from None


def _unpacked(file: BinaryIO, where: str, limit: int) -> bytes:
    """The contents of an open file, decompressed if they are gzip."""
    import io
    import zlib

    data = file.read(_CHUNK)
    if data[:2] != b"\x1f\x8b":
        for magic, name in _COMPRESSED.items():
            if data.startswith(magic):
                raise FormatError(
                    f"this is {name} data", where=where, expected="plain text or gzip: unpack it first"
                )
        _refuse_binary(data, where)
        return _capped(file, where, limit, data)
    import gzip

    try:
        packed = io.BytesIO(_capped(file, where, limit, data))
        size = packed.getbuffer().nbytes
        with gzip.GzipFile(fileobj=packed) as stream:
            head = stream.read(_CHUNK)
            _refuse_binary(head, where)
            return _capped(stream, where, min(limit, max(PACKED_FREELY, MAX_PACKING * size)), head)
    except EOFError:
        raise FormatError("the gzip data is truncated", where=where) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"the gzip data is damaged: {error}", where=where) from None


def _refuse_binary(head: bytes, where: str) -> None:
    """Refuse by its beginning what is no text, before the rest of it is read."""
    if b"\0" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("this is a binary file", where=where, expected="text")


def _capped(stream: Any, where: str, limit: int, head: bytes = b"") -> bytes:
    """Read a stream to its end, `head` before it; LimitError beyond `limit` bytes."""
    chunks = [head] if head else []
    total = len(head)
    while total <= limit and (chunk := stream.read(_CHUNK)):
        total += len(chunk)
        chunks.append(chunk)
    if total > limit:
        raise LimitError(f"the text has more than {limit} bytes", where=where)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


# -- JSON ----------------------------------------------------------------------------


class _Duplicate(Exception):  # noqa: N818 - carried from the hook to load_json, never seen outside
    """A key that occurs twice in one object."""


def load_json(text: str, where: str | None = None) -> Any:
    """Read one strict JSON document.

    Duplicate keys, NaN, Infinity, numbers beyond double precision's range, nesting deeper
    than `MAX_DEPTH` and anything after the document are errors with line and column.

    >>> load_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    text = text.removeprefix("\ufeff")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _json_fault(text, error, where) from None
    except _Duplicate:
        raise _duplicate_fault(text, where) from None
    except RecursionError:
        raise _depth_fault(text, where) from None
    except ValueError as error:
        raise _number_fault(text, str(error), where) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _too_deep(text):
        raise _depth_fault(text, where)
    if not text.isascii() or "\\ud" in text or "\\uD" in text:
        _check_surrogates(text, value, where)
    return value


def load_json_line(text: str, where: str | None, number: int) -> Any:
    """Read one line of JSON Lines; an error tells the number of the line and the column in it.

    >>> load_json_line("[1,", "jobs.jsonl", 7)
    Traceback (most recent call last):
    simsched.errors.FormatError: jobs.jsonl:7:4: not JSON: found the end (expected value)
    """
    try:
        return load_json(text)
    except FormatError:
        return load_json("\n" * (number - 1) + text.removeprefix("\ufeff"), where)


def _check_surrogates(text: str, value: Any, where: str | None) -> None:
    """Refuse half characters, which no output could be written with."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        found = re.search(r"\\u[dD][89a-fA-F]..|[\ud800-\udfff]", text)
        line, column = line_and_column(text, found.start() if found else 0)
        half = error.object[error.start]
        raise FormatError(
            f"half a character, {half!a}", where=place(where, line, column), expected="Unicode text"
        ) from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members, none of them twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Duplicate
    return members


def _finite(digits: str) -> float:
    """A float that is not infinite."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError(digits)
    return value


def _constant(name: str) -> NoReturn:
    """NaN, Infinity and -Infinity are no JSON."""
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_constant)


def _json_fault(text: str, error: json.JSONDecodeError, where: str | None) -> FormatError:
    """What the JSON decoder found, in our words."""
    if not text.strip():
        return FormatError("the document is empty", where=where, expected="JSON")
    at = min(error.pos, len(text))
    found = repr(clip(text[at:].split("\n", 1)[0], 20)) if text[at:].strip() else "the end"
    spot = place(where, error.lineno, error.colno)
    if error.msg == "Extra data":
        return FormatError(f"{found} follows the JSON document", where=spot, expected="nothing more")
    if "“" in text[at : at + 1] or "”" in text[at : at + 1]:
        return FormatError("a typographic quotation mark", where=spot, expected='the plain one, "')
    wanted = error.msg.removeprefix("Expecting ") if error.msg.startswith("Expecting ") else None
    if wanted:
        return FormatError(f"not JSON: found {found}", where=spot, expected=wanted)
    reason = f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at")
    return FormatError(f"not JSON: {reason}", where=spot)


def _duplicate_fault(text: str, where: str | None) -> FormatError:
    """Find the first key that occurs twice in one object."""
    seen: set[tuple[str | int, ...]] = set()
    for path, offset, is_key in walk_json(text):
        if is_key:
            if path in seen:
                line, column = line_and_column(text, offset)
                key = clip(str(path[-1]))
                return FormatError(
                    f"key {key!r} occurs twice in one object", where=place(where, line, column)
                )
            seen.add(path)
    return FormatError("a key occurs twice in one object", where=where)


def _number_fault(text: str, found: str, where: str | None) -> FormatError:
    """Find the number that cannot be held."""
    long = re.search(r"(?<![\w\".])-?\d{4000,}", text) if "digits" in found or "Exceeds" in found else None
    if long:
        line, column = line_and_column(text, long.start())
        spot = place(where, line, column)
        return LimitError("a number of too many digits", where=spot, expected="at most 4000")
    for match in re.finditer(rf"{_STRINGS.pattern}|({re.escape(found)})", text, re.DOTALL):
        if match.group(1):
            line, column = line_and_column(text, match.start())
            return FormatError(
                f"{clip(found, 30)} is not a number in JSON",
                where=place(where, line, column),
                expected="a finite number",
            )
    return FormatError(f"a number that cannot be read: {clip(found)}", where=where)


def _too_deep(text: str) -> bool:
    """Whether a well-formed document nests deeper than `MAX_DEPTH`: peel off one level at a time."""
    brackets = _NOT_BRACKETS.sub("", _STRINGS.sub("", text)).replace("{", "[").replace("}", "]")
    for _ in range(MAX_DEPTH):
        if not brackets:
            return False
        brackets = brackets.replace("[]", "")
    return bool(brackets)


def _depth_fault(text: str, where: str | None) -> FormatError:
    """Find the first bracket that is too deep."""
    depth = 0
    for match in re.finditer(rf"{_STRINGS.pattern}|([\[{{])|([\]}}])", text, re.DOTALL):
        depth += 1 if match.group(1) else -1 if match.group(2) else 0
        if depth > MAX_DEPTH:
            line, column = line_and_column(text, match.start())
            return LimitError(f"nested deeper than {MAX_DEPTH} levels", where=place(where, line, column))
    return LimitError(f"nested deeper than {MAX_DEPTH} levels", where=where)


@overload
def decode_json_bulk(data: str | bytes, where: str | None = None) -> Any: ...
@overload
def decode_json_bulk(data: str | bytes, where: str | None = None, *, kind: type[T]) -> T: ...
def decode_json_bulk(data: str | bytes, where: str | None = None, *, kind: Any = None) -> Any:
    """Read a large JSON document with msgspec, several times faster than `load_json`.

    `kind` is a type to decode into, such as a msgspec Struct.  NaN and deep nesting are
    errors as in `load_json`; of a duplicate key the last one counts.

    >>> decode_json_bulk(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    import msgspec

    raw = data.encode() if isinstance(data, str) else data
    try:
        return msgspec.json.decode(raw) if kind is None else msgspec.json.decode(raw, type=kind)
    except RecursionError:
        raise _depth_fault(raw.decode("utf-8", "replace"), where) from None
    except msgspec.ValidationError as error:
        reason, _, spot = str(error).partition(" - at `")
        message = f"{reason[:1].lower()}{reason[1:]}"
        raise FormatError(f"{message} at {spot.rstrip('`')}" if spot else message, where=where) from None
    except msgspec.DecodeError as error:
        found = re.search(r"\(byte (\d+)\)", str(error))
        offset = int(found.group(1)) if found else len(raw)
        line = raw.count(b"\n", 0, offset) + 1
        column = offset - raw.rfind(b"\n", 0, offset)
        reason = re.sub(r"^JSON is malformed: | \(byte \d+\)$", "", str(error))
        reason = f"{reason[:1].lower()}{reason[1:]}"
        raise FormatError(f"not JSON: {reason}", where=place(where, line, column)) from None


# -- either --------------------------------------------------------------------------


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


def detect_kind(text: str) -> Kind:
    r"""Tell by its beginning what a text is.

    ``json`` is one document, ``jsonl`` several objects on a line each, ``text`` anything
    else (an SWF trace, a shape, a table).

    >>> detect_kind('{"a": 1}\n{"a": 2}'), detect_kind("a: 1"), detect_kind("; Version: 2.2\n1 0 3")
    ('jsonl', 'yaml', 'text')
    """
    head = text[:65536].lstrip("\ufeff \t\r\n")
    if head[:1] == "<":
        return "xml"
    if head[:1] in ("{", "["):
        first, _, rest = head.partition("\n")
        several = rest.lstrip()[:1] == "{" and first.rstrip()[-1:] == "}" and head[0] == "{"
        return "jsonl" if several else "json"
    for line in head.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            return "yaml" if _YAML_START.match(line.strip()) else "text"
    return "text"
