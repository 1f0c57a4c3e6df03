"""The values in the braces of an RFC 46 shape: JSON, relaxed objects and unquoted strings.

Reading R8: a JSON value is tried first, then the relaxed object, then an unquoted string.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from simsched.formats.text.diagnostics import CaretError, CaretLimitError
from simsched.formats.text.immutable import FrozenDict

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


class ValueReader:
    """Reads strings, items and values from a text; its position only moves forward."""

    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

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
        opened = self.at
        self.at += 1
        items: dict[str, Any] = {}
        if self.next_char() == "}":
            self.at += 1
            return FrozenDict()
        while True:
            self.next_char()
            at = self.at
            key, value = self.item(level + 1)
            if key in items:
                raise self.fail(f"the key {key!r} occurs twice", "each key once", at)
            items[key] = value
            if self.next_char() != ",":
                break
            self.at += 1
        if self.next_char() != "}":
            raise self.unclosed(opened, "',' or '}'")
        self.at += 1
        return FrozenDict(items)

    def array(self, level: int) -> tuple[Any, ...]:
        """Read array : '[' (value (',' value)*)? ']'."""
        opened = self.at
        self.at += 1
        if self.next_char() == "]":
            self.at += 1
            return ()
        values = [self.value(level + 1)]
        while self.next_char() == ",":
            self.at += 1
            values.append(self.value(level + 1))
        if self.next_char() != "]":
            raise self.unclosed(opened, "',' or ']'")
        self.at += 1
        return tuple(values)


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


def _format_item(key: str, value: Any) -> str:
    name = format_string(key)
    if value is True:
        return name
    return f"-{name}" if value is False else f"{name}:{format_value(value)}"
