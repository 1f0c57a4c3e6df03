"""RFC 46 shapes: the compact text of a resources list, read and written.

    resources : list
    list      : '[' vertex (';' vertex)* ']' | vertex
    vertex    : 'slot' ('=' count)? ('{' label (',' item)* '}')? '/' list
              | type ('=' count)? ('{' (item (',' item)*)? '}')? ('/' list)?
    item      : key ':' value | ('+' | '-')? key

Blanks between the parts are ignored.  Strings may be in either kind of quotes, with the escapes of JSON.
Of a value in braces, JSON is tried first, then the relaxed object, then an unquoted string (reading R8).
Beyond the grammar: `x` means `exclusive` among a vertex's own keys only, not in objects within their
values, and NaN and Infinity, which JSON does not have, must be quoted.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from simsched.formats.jobspec.vertex import DEFAULT_LABEL, ResourceVertex, walk
from simsched.formats.rfc.count import Count
from simsched.formats.text.diagnostics import CaretError, CaretLimitError, refuse_broken_text
from simsched.formats.text.immutable import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


MAX_VALUE_LEVELS = 50
"""Levels that objects and arrays in braces may nest."""

BARE = r"[^\s\[\]{}=/;:,\"'\x00-\x1f\x7f]+"
"""An unquoted string: any characters but those of the grammar."""

BARE_VALUE = r"[^\s\[\]{};,\"'\x00-\x1f\x7f]+"
"""An unquoted value, in which ``= / :`` can mean nothing else: ``unit:GB/s``."""

FAULTY_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})

_BARE = re.compile(BARE)
_BARE_VALUE = re.compile(BARE_VALUE)
_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_MAX_DIGITS = 400


class _Parser:
    """A recursive descent over one shape; the position only moves forward."""

    __slots__ = ("at", "labels", "lone", "nslots", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nslots = 0
        self.lone: int | None = None  # where the first slot without a label is
        self.labels: set[str] = set()

    def next_char(self) -> str:
        """Skip blanks and return the character there, "" at the end."""
        text = self.text
        if self.at < len(text) and text[self.at].isspace():
            found = _BLANKS.match(text, self.at)
            assert found is not None
            self.at = found.end()
        return text[self.at : self.at + 1]

    def fail(self, message: str, expected: str, at: int | None = None) -> CaretError:
        """Return the error of a fault at a position (default: here)."""
        return CaretError(message, expected=expected, text=self.text, position=self.at if at is None else at)

    def unexpected(self, expected: str) -> CaretError:
        """Return the error of a character that is not allowed here."""
        char = self.next_char()
        return self.fail(f"unexpected {char!r}" if char else "the text ends too early", expected)

    def unclosed(self, opened: int, expected: str) -> CaretError:
        """Return the error of a bracket without its closing one."""
        if self.next_char():
            return self.unexpected(expected)
        return self.fail(f"unclosed {self.text[opened]!r}", expected, opened)

    def parts(self, mark: str, closing: str, *, may_be_empty: bool = False) -> Iterator[None]:
        """Read an opening bracket, yield at each part between marks, and read the closing bracket."""
        opened = self.at
        self.at += 1
        if may_be_empty and self.next_char() == closing:
            self.at += 1
            return
        yield
        while self.next_char() == mark:
            self.at += 1
            yield
        if self.next_char() != closing:
            raise self.unclosed(opened, f"{mark!r} or {closing!r}")
        self.at += 1

    def string(self, what: str, bare: re.Pattern[str] = _BARE) -> str:
        """Read STRING : a string in either quotes, or a run of characters that the grammar does not use."""
        char = self.next_char()
        if char in {"'", '"'}:
            return self.quoted()
        found = bare.match(self.text, self.at)
        if found is None:
            got = f"found {char!r}" if char else "the text ends"
            raise self.fail(f"{got} instead of {what}", "a name, quoted if it has special characters")
        self.at = found.end()
        return found.group()

    def quoted(self) -> str:
        """Return the string in quotes; escapes are JSON's, and the quote itself."""
        opened = self.at
        quote = self.text[opened]
        at = opened + 1
        while True:
            end = self.text.find(quote, at)
            if end < 0:
                raise self.fail("unclosed quote", quote, opened)
            slashes = end
            while self.text[slashes - 1] == "\\" and slashes - 1 > opened:
                slashes -= 1
            if (end - slashes) % 2 == 0:
                break
            at = end + 1
        self.at = end + 1
        raw = self.text[opened + 1 : end]
        return self.unescape(raw, opened + 1) if "\\" in raw else raw

    def unescape(self, raw: str, start: int) -> str:
        """Return the text with its escapes resolved; lone surrogates are refused."""

        def one(found: re.Match[str]) -> str:
            code = found[1]
            if len(code) == 5:
                return chr(int(code[1:], 16))
            if code not in _ESCAPES:
                raise self.fail(f"unknown escape \\{code}", "an escape of JSON", start + found.start())
            return _ESCAPES[code]

        text = _ESCAPE.sub(one, raw)
        text = _PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise self.fail("half of a surrogate pair", "a whole character", start)
        return text

    def item(self, level: int = 0) -> tuple[str, Any]:
        """Read item : key ':' value | ('+' | '-')? key."""
        sign = self.next_char()
        if sign in {"+", "-"} and sign:
            self.at += 1
            key = self.string("a key")
            if self.next_char() == ":":
                raise self.fail(f"the key {key!r} has a sign and a value", "one of them")
            return key, sign == "+"
        key = self.string("a key")
        if self.next_char() != ":":
            return key, True
        self.at += 1
        return key, self.value(level)

    def value(self, level: int = 0) -> Any:
        """Read value : object | array | string | number | true | false | null."""
        if level > MAX_VALUE_LEVELS:
            raise CaretLimitError(
                f"values are nested deeper than {MAX_VALUE_LEVELS} levels",
                text=self.text,
                position=self.at,
            )
        char = self.next_char()
        if char == "{":
            return self.object(level)
        if char == "[":
            return self.array(level)
        if char in {"'", '"'}:
            return self.quoted()
        return self.bare_value()

    def bare_value(self) -> Any:
        """Return the value of a run of characters: a JSON number or word, else a string."""
        at = self.at
        word = self.string("a value", _BARE_VALUE)
        if word in _WORDS:
            return _WORDS[word]
        if word in FAULTY_NUMBERS:
            raise self.fail(f"{word} is not a JSON value", "quotes around it", at)
        if not _NUMBER.match(word):
            return word
        if len(word) > _MAX_DIGITS:
            raise self.fail("the number is too long", f"at most {_MAX_DIGITS} characters", at)
        number = json.loads(word)
        if math.isinf(number):
            raise self.fail("the number is too large", "a number below 1e308", at)
        return number

    def object(self, level: int) -> FrozenDict:
        """Read object : '{' (item (',' item)*)? '}', JSON's own form included."""
        items: dict[str, Any] = {}
        for _ in self.parts(",", "}", may_be_empty=True):
            self.next_char()
            at = self.at
            key, value = self.item(level + 1)
            if key in items:
                raise self.fail(f"the key {key!r} occurs twice", "each key once", at)
            items[key] = value
        return FrozenDict(items)

    def array(self, level: int) -> tuple[Any, ...]:
        """Read array : '[' (value (',' value)*)? ']'."""
        return tuple([self.value(level + 1) for _ in self.parts(",", "]", may_be_empty=True)])

    def resources(self) -> tuple[ResourceVertex, ...]:
        """Read resources : list, up to the end of the text."""
        vertices = self.list(1)
        char = self.next_char()
        if char == ";":
            raise self.fail("a list of several vertices without brackets", "'[' before the first one")
        if char:
            raise self.unexpected("'/' or the end of the shape")
        if self.lone is not None and self.nslots > 1:
            raise self.fail("a slot has no label, and there are several", "slot{NAME}", self.lone)
        if self.lone is not None and DEFAULT_LABEL in self.labels:  # which is the label of such a slot
            raise self.fail(f"the label {DEFAULT_LABEL!r} is taken", "slot{NAME}", self.lone)
        return vertices

    def list(self, level: int) -> tuple[ResourceVertex, ...]:
        """Read list : '[' vertex (';' vertex)* ']' | vertex."""
        if level > MAX_LEVELS:
            raise CaretLimitError(
                f"resources are nested deeper than {MAX_LEVELS} levels",
                text=self.text,
                position=self.at,
            )
        if self.next_char() != "[":
            return (self.vertex(level),)
        return tuple([self.vertex(level) for _ in self.parts(";", "]")])

    def vertex(self, level: int) -> ResourceVertex:
        """Read vertex : type ('=' count)? dict? ('/' list)?; keys that RFC 14 does not define are extra."""
        quoted = self.next_char() in {"'", '"'}
        start = self.at
        kind = self.string("the type of a resource")
        count = _ONE
        if self.next_char() == "=":
            self.at += 1
            count = self.count()
        is_slot = kind == "slot"
        if is_slot and quoted:
            raise self.fail("the reserved type slot is written without quotes", "slot", start)
        items = self.braces(start, is_slot)
        children: tuple[ResourceVertex, ...] = ()
        if self.next_char() == "/":
            self.at += 1
            children = self.list(level + 1)
        elif is_slot:
            raise self.unexpected("'/' and the content of the slot")
        known = {key: items.pop(key) for key in _EXPECTED_TYPES if key in items}
        return ResourceVertex(kind, count, with_=children, extra=tuple(items.items()), **known)

    def count(self) -> Count:
        """Read count : '[' value ']' | value."""
        bracket = self.next_char() == "["
        start = self.at
        found = _COUNT.match(self.text, start + bracket)
        assert found is not None
        end = found.end()
        if bracket:
            if self.text[end : end + 1] != "]":
                self.at = end
                raise self.unclosed(start, "']'") if end >= len(self.text) else self.unexpected("']'")
            end += 1
        self.at = end
        # blanks beside signs are ignored
        places = [at for at in range(start, end) if not self.text[at].isspace()]
        for before, after in pairwise(places):
            if after > before + 1 and self.text[before].isdigit() and self.text[after].isdigit():
                raise self.fail("a blank splits the number", "',' or nothing", before + 1)
        places.append(end if not places else places[-1] + 1)
        try:
            return Count.parse("".join(self.text[start:end].split()))
        except CaretError as error:
            raise error.within(self.text, places[error.position] - error.position) from None

    def braces(self, start: int, is_slot: bool) -> dict[str, Any]:
        """Read dict : '{' (item (',' item)*)? '}', where a slot's first item is its label."""
        self.nslots += is_slot
        if self.next_char() != "{":
            if not is_slot:
                return {}
            self.lone = start if self.lone is None else self.lone
            return {"label": DEFAULT_LABEL}
        opened = self.at
        self.at += 1
        items: dict[str, Any] = {}
        if is_slot:
            at = self.at
            sign, start = self.next_char(), self.at
            if sign in {"+", "-"}:
                raise self.fail("the first entry of a slot's braces is its label", "slot{LABEL,…}")
            items["label"] = self.string("the label of the slot")
            if self.next_char() == ":":
                message = "the first entry of a slot's braces is its label alone"
                raise self.fail(message, "slot{LABEL,…}", start)
            self.new_label(items["label"], at)
        elif self.next_char() == "}":
            self.at += 1
            return items
        else:
            self.vertex_item(items)
        while self.next_char() == ",":
            self.at += 1
            self.vertex_item(items)
        if self.next_char() == "=":
            raise self.unexpected("',' or '}'; a resource inside follows '/': node=1/core=4")
        if self.next_char() != "}":
            raise self.unclosed(opened, "',' or '}'")
        self.at += 1
        return items

    def vertex_item(self, items: dict[str, Any]) -> None:
        """Read item : key ':' value | ('+' | '-')? key, with `x` for `exclusive`."""
        char = self.next_char()
        at = self.at
        key, value = self.item()
        key = "exclusive" if key == "x" and char not in {"'", '"'} else key
        if key in {"type", "count", "with"}:
            raise self.fail(f"the key {key!r} has its own place in a shape", "TYPE=COUNT{…}/WITH", at)
        if key in items:
            raise self.fail(f"the key {key!r} occurs twice", "each key once", at)
        expected = _EXPECTED_TYPES.get(key)
        if expected and not isinstance(value, bool if key == "exclusive" else str):
            raise self.fail(f"the value of {key!r} has the wrong type", expected, at)
        items[key] = value
        if key == "label":
            self.new_label(value, at)

    def new_label(self, label: str, at: int) -> None:
        """Note a label; every label of a jobspec is unique (RFC 14)."""
        if label in self.labels:
            raise self.fail(f"the label {label!r} occurs twice", "unique labels", at)
        self.labels.add(label)


# ---------------------------------------------------------------- writing

_BARE_WHOLE = re.compile(rf"(?![+-]){BARE}\Z")
_BARE_VALUE_WHOLE = re.compile(rf"{BARE_VALUE}\Z")


def format_string(text: str) -> str:
    """Return the string as a shape writes it where only a string is possible."""
    if _BARE_WHOLE.match(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def format_value(value: Any) -> str:
    """Return the shortest text of a value: unquoted where that reads back as the same.

    >>> format_value("GB"), format_value("4"), format_value((1, None)), format_value({"a": True})
    ('GB', '"4"', '[1,null]', '{a}')
    """
    if isinstance(value, str):
        other = value in _WORDS or value in FAULTY_NUMBERS or _NUMBER.match(value)
        bare = not other and _BARE_VALUE_WHOLE.match(value)
        return value if bare else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ",".join(_format_item(key, item) for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(format_value, value)) + "]"
    return json.dumps(value).replace("e+", "e")


def _format_item(key: str, value: Any, name: str = "") -> str:
    name = name or format_string(key)
    if value is True:
        return name
    return f"-{name}" if value is False else f"{name}:{format_value(value)}"


MAX_LENGTH = 1_000_000
"""Characters that a shape may have."""

MAX_LEVELS = 100
"""Levels of resources that a shape may nest."""

_CACHED_LENGTH = 2000
_ONE = Count.fixed(1)

_COUNT = re.compile(r"[^/;{}\[\]]*")
_STRING = "a string, in quotes if it looks like another value"
_EXPECTED_TYPES = {"unit": _STRING, "exclusive": "true or false", "label": _STRING, "id": _STRING}


def parse_shape(text: str, where: str | None = None) -> tuple[ResourceVertex, ...]:
    """Return the resources list of an RFC 46 shape.

    Raises `FormatError` with a caret under the fault.

    >>> [child.type for child in parse_shape("slot=10/[core=2;gpu]")[0].with_]
    ['core', 'gpu']
    >>> parse_shape("node=2/core=0")
    Traceback (most recent call last):
        ...
    simsched.formats.text.diagnostics.CaretError: the count cannot be 0 (expected at least 1)
      node=2/core=0
                  ^
    """
    try:
        return _cached(text) if len(text) <= _CACHED_LENGTH else _parse(text)
    except CaretError as error:
        raise (error.at(where) if where else error) from None


def _parse(text: str) -> tuple[ResourceVertex, ...]:
    if len(text) > MAX_LENGTH:
        raise CaretLimitError(f"the shape has {len(text)} characters", expected=f"at most {MAX_LENGTH}")
    refuse_broken_text(text)
    return _Parser(text).resources()


_cached = lru_cache(maxsize=4096)(_parse)


# ---------------------------------------------------------------- writing


def format_shape(resources: Iterable[ResourceVertex]) -> str:
    """Return the shortest shape that `parse_shape` expands to the same resources.

    >>> format_shape(parse_shape("[ slot=[4]{default} / [ node=1{} / core=[2-8] ] ]"))
    'slot=4/node/core=2-8'
    """
    vertices = tuple(resources)
    nslots = sum(vertex.is_slot for vertex in walk(vertices))
    return _list(vertices, nslots == 1)


def _list(vertices: tuple[ResourceVertex, ...], lone: bool) -> str:
    if len(vertices) == 1:
        return _vertex(vertices[0], lone)
    return "[" + ";".join([_vertex(vertex, lone) for vertex in vertices]) + "]"


def _vertex(vertex: ResourceVertex, lone: bool) -> str:
    count = "" if vertex.count.min == 1 == vertex.count.max else f"={vertex.count}"
    items = list(_items(vertex))
    if vertex.is_slot and (items or not lone or vertex.label != DEFAULT_LABEL):
        items.insert(0, format_string(DEFAULT_LABEL if vertex.label is None else vertex.label))
    braces = "{" + ",".join(items) + "}" if items else ""
    below = "/" + _list(vertex.with_, lone) if vertex.with_ else ""
    return f"{format_string(vertex.type)}{count}{braces}{below}"


def _items(vertex: ResourceVertex) -> Iterable[str]:
    if vertex.unit is not None:
        yield f"unit:{format_value(vertex.unit)}"
    if vertex.exclusive is not None:
        yield "x" if vertex.exclusive else "-x"
    if vertex.label is not None and not vertex.is_slot:
        yield f"label:{format_value(vertex.label)}"
    if vertex.id is not None:
        yield f"id:{format_value(vertex.id)}"
    for key, value in vertex.extra:
        yield _format_item(key, value, '"x"' if key == "x" else "")  # x alone is exclusive
