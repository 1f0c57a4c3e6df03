"""JSON text: strict readers whose errors name line and column, and writers for readable files."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, TypeVar, overload

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.text.diagnostics import walk_json
from simsched.formats.text.excerpts import MAX_DIGITS, line_and_column, place

MAX_DEPTH = 200
"""The deepest nesting of a JSON or YAML document."""

T = TypeVar("T")

_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PIECE = 1 << 24
_NOT_BRACKETS = re.compile(r"[^\[\]{}]+")


# -- reading -------------------------------------------------------------------------


class _Duplicate(Exception):  # noqa: N818 - carried from the hook to load_json, never seen outside
    """A key that occurs twice in one object."""


def load_json(text: str, where: str | None = None) -> Any:
    """Read one strict JSON document.

    Duplicate keys, NaN, Infinity, numbers beyond double precision's range, whole numbers of more
    than `MAX_DIGITS`, nesting deeper than `MAX_DEPTH` and anything after the document are errors
    with line and column.

    >>> load_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    """
    text = text.removeprefix("\ufeff")
    try:
        value = (_SHORT if len(text) <= MAX_DIGITS else _DECODER).decode(text)
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
    """Read one line of JSON Lines; an error has the number of the line and the column in it.

    >>> load_json_line("[1,", "jobs.jsonl", 7)
    Traceback (most recent call last):
    simsched.errors.FormatError: jobs.jsonl:7:4: not JSON: found the end (expected value)
    """
    try:
        return counted_json(text.encode())[0]
    except ValueError:  # also half of a surrogate pair, which is not UTF-8
        return load_json("\n" * (number - 1) + text.removeprefix("\ufeff"), where)


_QUOTE_OR_COLON = re.compile(r"\\u00(22|3[aA])")


def counted_json(text: bytes, depth: int = MAX_DEPTH) -> tuple[Any, int]:
    """Return the value of a text that `load_json` reads without doubt, several times faster, and its keys.

    It may doubt a correct text, which costs time only.  Of a duplicate key msgspec keeps the last, so its
    output has fewer ``":`` than the text.  `depth` is the deepest nesting.

    Raises
    ------
    ValueError
        if `load_json` has to decide.
    """
    import msgspec

    text = text.rstrip(b" \t\r\n")
    keys = number_of_keys(text.decode())
    if len(text) > MAX_DIGITS and _LONG in text.translate(_DIGITS):
        raise ValueError
    if text.count(b"[") + text.count(b"{") > depth and _too_deep(text.decode(), depth):
        raise ValueError
    try:
        value = msgspec.json.decode(text)
        if msgspec.json.encode(value).count(b'":') == keys:
            return value, keys
    except (msgspec.MsgspecError, RecursionError):
        pass
    raise ValueError


def number_of_keys(text: str) -> int:
    """Return how often ``":`` occurs in a text of JSON: once for each key, and in strings.

    Raises
    ------
    ValueError
        for blanks before a colon, and an escaped quote or colon, which msgspec writes with other bytes.
    """
    escaped = "\\" in text and _QUOTE_OR_COLON.search(text)
    if escaped or " :" in text or "\t" in text or "\n" in text or "\r" in text:
        raise ValueError
    return text.count('":')


def _check_surrogates(text: str, value: Any, where: str | None) -> None:
    """Refuse half of a surrogate pair, which no output can contain."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        found = re.search(r"\\u[dD][89a-fA-F]..|[\ud800-\udfff]", text)
        spot = _at(text, found.start() if found else 0, where)
        message = f"half of a surrogate pair, {error.object[error.start]!a}"
        raise FormatError(message, where=spot, expected="Unicode text") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members; raise `_Duplicate` if a key occurs twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Duplicate
    return members


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(digits)
    return value


def _whole(digits: str) -> int:
    """A whole number that every later step can hold."""
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(digits)
    return int(digits)


def _constant(name: str) -> NoReturn:
    """NaN, Infinity and -Infinity are not JSON."""
    raise ValueError(name)


_SHORT = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_constant)
"""For texts too short for a number of too many digits: lines are read a fifth faster."""

_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=_finite, parse_int=_whole, parse_constant=_constant
)


def _json_fault(text: str, error: json.JSONDecodeError, where: str | None) -> FormatError:
    """Return the fault that the JSON decoder found, in our wording."""
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


def _at(text: str, offset: int, where: str | None) -> str:
    return place(where, *line_and_column(text, offset))


def _duplicate_fault(text: str, where: str | None) -> FormatError:
    """Find the first key that occurs twice in one object."""
    seen: set[tuple[str | int, ...]] = set()
    for path, offset, is_key in walk_json(text):
        if is_key and path in seen:
            message = f"key {clip(str(path[-1]))!r} occurs twice in one object"
            return FormatError(message, where=_at(text, offset, where))
        if is_key:
            seen.add(path)
    return FormatError("a key occurs twice in one object", where=where)


def _number_fault(text: str, found: str, where: str | None) -> FormatError:
    """Find the number that cannot be held."""
    for match in re.finditer(rf"{_STRINGS.pattern}|({re.escape(found)})", text, re.DOTALL):
        if match.group(1):
            spot = _at(text, match.start(), where)
            if found.lstrip("-").isdigit():
                return _too_long(spot)
            message = f"{clip(found, 30)} is not a number in JSON"
            return FormatError(message, where=spot, expected="a finite number")
    return FormatError(f"the number {clip(found)} cannot be read", where=where)


def _too_long(spot: str) -> LimitError:
    return LimitError("the number has too many digits", where=spot, expected=f"at most {MAX_DIGITS}")


def _too_deep(text: str, depth: int = MAX_DEPTH) -> bool:
    """Whether a well-formed document nests deeper than `depth`: peel off one level at a time."""
    brackets = _NOT_BRACKETS.sub("", _STRINGS.sub("", text)).replace("{", "[").replace("}", "]")
    for _ in range(depth):
        if not brackets:
            return False
        brackets = brackets.replace("[]", "")
    return bool(brackets)


def _depth_fault(text: str, where: str | None) -> FormatError:
    """Find the first bracket that is too deep."""
    depth, spot = 0, where
    for match in re.finditer(rf"{_STRINGS.pattern}|([\[{{])|([\]}}])", text, re.DOTALL):
        depth += 1 if match.group(1) else -1 if match.group(2) else 0
        if depth > MAX_DEPTH:
            spot = _at(text, match.start(), where)
            break
    return LimitError(f"nested deeper than {MAX_DEPTH} levels", where=spot)


@overload
def decode_json_bulk(data: str | bytes, where: str | None = None) -> Any: ...
@overload
def decode_json_bulk(data: str | bytes, where: str | None = None, *, kind: type[T]) -> T: ...
def decode_json_bulk(data: str | bytes, where: str | None = None, *, kind: Any = Any) -> Any:
    """Read a large JSON document with msgspec, several times faster than `load_json`.

    `kind` is a type to decode into, such as a msgspec Struct.  NaN, deep nesting and numbers of more than
    `MAX_DIGITS` are errors as in `load_json`; of a duplicate key the last one counts.

    >>> decode_json_bulk(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    import msgspec

    raw = data.encode() if isinstance(data, str) else data
    _refuse_long_numbers(raw, where)
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise FormatError(told(error), where=where) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            text = raw.decode()
        except UnicodeDecodeError as broken:
            message = f"byte 0x{raw[broken.start]:02x} is not UTF-8"
            line, column = raw.count(b"\n", 0, broken.start), broken.start - raw.rfind(b"\n", 0, broken.start)
            spot = place(where, line + 1, column)
            raise FormatError(message, where=spot, expected="UTF-8 text") from None
        load_json(text, where)  # finds the fault and its place
        raise FormatError(f"not JSON: {error}", where=where) from None


def told(error: Exception) -> str:
    """Return the text of a `ValidationError` of msgspec: ``expected `int`, got `str` at $.seed``."""
    reason, _, spot = str(error).partition(" - at `")
    message = f"{reason[:1].lower()}{reason[1:]}"
    return f"{message} at {spot.rstrip('`')}" if spot else message


_DIGITS = bytes(48 if 48 <= byte < 58 else 32 for byte in range(256))
_LONG = b"0" * (MAX_DIGITS + 1)


def _refuse_long_numbers(raw: bytes, where: str | None) -> None:
    """Raise `LimitError` for a whole number of more than `MAX_DIGITS`, which msgspec reads up to 4,300."""
    for begin in range(0, len(raw) - MAX_DIGITS, _PIECE):  # a piece at a time: the copy stays small
        if _LONG in raw[begin : begin + _PIECE + MAX_DIGITS].translate(_DIGITS):
            break
    else:
        return
    text = raw.decode("utf-8", "replace")
    for match in re.finditer(
        rf"{_STRINGS.pattern}|(?<![\d.])(-?\d{{{MAX_DIGITS + 1},}})(?![.eE\d])", text, re.DOTALL
    ):
        if match[1]:
            raise _too_long(_at(text, match.start(), where))


# -- writing -------------------------------------------------------------------------


def encode_json(document: Any, *, indent: int = 2) -> bytes:
    r"""Return a document as indented JSON that ends with a newline.

    >>> encode_json({"a": [1]}, indent=0)
    b'{"a":[1]}\n'
    """
    import msgspec

    text = msgspec.json.encode(document)
    return (msgspec.json.format(text, indent=indent) if indent else text) + b"\n"


def json_text(value: Any) -> str:
    """Return a value as one line of JSON; values that JSON does not have become their text.

    >>> json_text({"a": [1, None]})
    '{"a":[1,null]}'
    """
    import msgspec

    return msgspec.json.encode(value, enc_hook=str).decode()


def is_unicode(document: Any) -> bool:
    r"""Return whether all texts of a JSON value can be written: an escape can be half a surrogate pair.

    >>> is_unicode({"a": ["\u00e9"]}), is_unicode({"a": ["\ud800"]})
    (True, False)
    """
    import msgspec

    try:
        msgspec.json.encode(document)
    except UnicodeEncodeError:
        return False
    return True
