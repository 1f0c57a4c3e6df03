"""RFC 14 counts: an integer, an RFC 22 idset of acceptable values, or an RFC 45 range.

One value type serves all of them: membership, the smallest number, the largest below a bound, iteration
without expanding unbounded ranges, the canonical text and the JSON form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError, SimschedError
from simsched.formats.text.diagnostics import CaretError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.rfc.idset import Idset

MAX_COUNT = 2**53
"""The largest number in a count: every reader of JSON keeps integers up to this one exactly."""

OPERATORS = ("+", "*", "^")

_NUMBER = re.compile(r"[0-9]+")
_DICT_KEYS = frozenset({"min", "max", "operator", "operand"})
_EXPECTED = "a positive integer, an idset (2,4,8) or a range (2-8, 4+, 1-16:2:*)"


@dataclass(frozen=True, slots=True)
class Count:
    """Acceptable numbers of a resource (RFC 14, `count`).

    `max` is None for an unbounded count.  `ids` is set for an idset of several ranges; the operator is then
    not used.  A count that accepts one number only is always a fixed one, so equal counts compare equal.

    >>> c = Count.parse("1-16:2:*")
    >>> 4 in c, 5 in c, c.largest_at_most(11), list(c.values(9))
    (True, False, 8, [1, 2, 4, 8, 16])
    """

    min: int
    max: int | None
    operator: str = "+"
    operand: int = 1
    ids: Idset | None = None

    @staticmethod
    def fixed(n: int) -> Count:
        """Return the count of exactly `n` >= 1.

        >>> Count.fixed(4)
        Count(4)
        """
        return _fixed(n)

    @staticmethod
    def range(
        low: int,
        high: int | None = None,
        operator: str = "+",
        operand: int = 1,
        where: str | None = None,
    ) -> Count:
        """Return the range from `low` to `high` (None: unbounded) by `operator` and `operand`.

        Raises `FormatError` where a rule of RFC 14 is broken: high >= low >= 1, operand >= 1,
        operand >= 2 for ``*`` and ``^``, low >= 2 for ``^``.
        """
        fault = _range_fault(low, high, operator, operand)
        if fault is not None:
            raise FormatError(fault[1], where=where, expected=fault[2])
        return _range(low, high, operator, operand)

    @staticmethod
    def parse(text: str, where: str | None = None) -> Count:
        """Return the count of a text: integer, idset or RFC 45 range, brackets optional.

        One range of an idset is a range and one number an integer (reading R7).  Raises
        `FormatError` with a caret under the place.

        >>> Count.parse("[4]"), Count.parse("2-4"), Count.parse("2,4"), Count.parse("2+:3")
        (Count(4), Count(2-4), Count(2,4), Count(2+:3))
        """
        try:
            return _parse(text)
        except CaretError as error:
            raise (error.at(where) if where else error) from None

    @staticmethod
    def from_json(value: Any, where: str | None = None) -> Count:
        """Return the count of a jobspec document: integer, string or dictionary (RFC 14).

        Raises `FormatError`.

        >>> Count.from_json({"min": 2}), Count.from_json("4,9"), Count.from_json(3)
        (Count(2+), Count(4,9), Count(3))
        """
        if type(value) is int:
            if not 1 <= value <= MAX_COUNT:
                raise _bad_number(value, where)
            return _fixed(value)
        if isinstance(value, str):
            return Count.parse(value, where)
        if isinstance(value, dict):
            return _from_dict(value, where)
        raise FormatError(f"{value!r} is not a count", where=where, expected=_EXPECTED)

    @property
    def is_fixed(self) -> bool:
        """Whether one number only is acceptable."""
        return self.min == self.max

    def __contains__(self, n: object) -> bool:
        return isinstance(n, int) and self.largest_at_most(n) == n

    def largest_at_most(self, n: int) -> int | None:
        """Return the largest acceptable number that is at most `n`, or None.  O(log n).

        >>> Count.parse("3-30:5").largest_at_most(20), Count.fixed(4).largest_at_most(3)
        (18, None)
        """
        if n < self.min:
            return None
        n = min(n, MAX_COUNT if self.max is None else self.max)
        if self.ids is not None:
            # n >= min, the first id, so at least the first range begins at or below n.
            return next(min(n, high) for low, high in reversed(self.ids.ranges) if low <= n)
        if self.operator == "+":
            return self.min + (n - self.min) // self.operand * self.operand
        # "*" and "^" at least double the number at each step, so this takes at most 53 of them.
        best = self.min
        while (step := self._after(best)) <= n:
            best = step
        return best

    def _after(self, n: int) -> int:
        if self.operator == "*":
            return n * self.operand
        # n >= 2 here, so an exponent above 54 exceeds every count; the power itself could be enormous.
        return int(n**self.operand) if self.operand <= MAX_COUNT.bit_length() else MAX_COUNT + 1

    def values(self, limit: int) -> Iterator[int]:
        """Yield at most `limit` acceptable numbers, smallest first; nothing is expanded.

        >>> list(Count.parse("2+").values(3)), list(Count.parse("2-4,8").values(9))
        ([2, 3, 4], [2, 3, 4, 8])
        """
        return islice(self._all(), limit)

    def _all(self) -> Iterator[int]:
        if self.ids is not None:
            yield from self.ids
            return
        n = self.min
        while n <= (MAX_COUNT if self.max is None else self.max):
            yield n
            n = n + self.operand if self.operator == "+" else self._after(n)

    def to_json(self) -> int | str | dict[str, Any]:
        """Return the form that a jobspec holds (readings R6, R7).

        An integer for one number, a string for an idset, a dictionary for a range; in the
        dictionary of a bounded range every key is written, as RFC 46's examples do.

        >>> Count.parse("3-30").to_json(), Count.parse("2+").to_json()
        ({'min': 3, 'max': 30, 'operator': '+', 'operand': 1}, {'min': 2})
        """
        if self.min == self.max:
            return self.min
        if self.ids is not None:
            return str(self.ids)
        document: dict[str, Any] = {"min": self.min}
        if self.max is not None:
            document["max"] = self.max
        if self.max is not None or self.operator != "+" or self.operand != 1:
            document |= {"operator": self.operator, "operand": self.operand}
        return document

    def __str__(self) -> str:
        if self.min == self.max:
            return str(self.min)
        if self.ids is not None:
            return str(self.ids)
        text = f"{self.min}+" if self.max is None else f"{self.min}-{self.max}"
        if self.operator != "+":
            return f"{text}:{self.operand}:{self.operator}"
        return text if self.operand == 1 else f"{text}:{self.operand}"

    def __repr__(self) -> str:
        return f"Count({self})"

    def _check(self) -> None:
        assert self.min >= 1
        assert self.max is None or self.min <= self.max
        assert self.operator in OPERATORS
        if self.ids is not None:
            assert len(self.ids.ranges) > 1
            assert (self.ids.first, self.ids.last) == (self.min, self.max)


@lru_cache(maxsize=4096)
def _fixed(n: int) -> Count:
    if not 1 <= n <= MAX_COUNT:
        raise _bad_number(n, None)
    return Count(n, n)


def _range(low: int, high: int | None, operator: str, operand: int) -> Count:
    count = Count(low, high, operator, operand)
    if high is not None and (low == high or _single(count, high)):
        return _fixed(low)
    return count


def _single(count: Count, high: int) -> bool:
    step = count.min + count.operand if count.operator == "+" else count._after(count.min)
    return step > high


def _bad_number(n: int, where: str | None) -> SimschedError:
    if n < 1:
        return FormatError(f"a count cannot be {n}", where=where, expected="at least 1")
    return LimitError("the count is too large", where=where, expected=f"at most {MAX_COUNT}")


def _range_fault(low: int, high: int | None, operator: str, operand: int) -> tuple[str, str, str] | None:
    """Return (key, message, expected) of the first RFC 14 rule that the range breaks."""
    for key, n in (("min", low), ("max", high), ("operand", operand)):
        if n is not None and n < 1:
            return key, f"{key} cannot be {n}", "at least 1"
        if n is not None and n > MAX_COUNT:
            return key, f"{key} is too large", f"at most {MAX_COUNT}"
    if high is not None and high < low:
        return "max", f"the range ends at {high}, before its start {low}", f"at least {low}"
    if operator not in OPERATORS:
        return "operator", f"unknown operator {operator!r}", "+, * or ^"
    if operator != "+" and operand < 2:
        return "operand", f"the operand of {operator} cannot be {operand}", "at least 2"
    if operator == "^" and low < 2:
        return "min", f"min cannot be {low} with the operator ^", "at least 2"
    return None


# ---------------------------------------------------------------- text

_SIMPLE = re.compile(r"\[?([1-9][0-9]{0,14})(?:(-)([1-9][0-9]{0,14})|(\+))?\]?\Z")


@lru_cache(maxsize=4096)
def _parse(text: str) -> Count:
    simple = _SIMPLE.match(text)
    if simple is not None and (text[0] == "[") == (text[-1] == "]"):
        low, _, high, endless = simple.groups()
        if not endless and high is None:
            return _fixed(int(low))
        if endless:
            return Count(int(low), None)
        if int(high) >= int(low):
            return _range(int(low), int(high), "+", 1)
    return _Scanner(text).count()


class _Scanner:
    """Reads a count character by character, so that a fault has its place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str, expected: str, at: int | None = None) -> CaretError:
        return CaretError(message, expected=expected, text=self.text, position=self.at if at is None else at)

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self, char: str) -> bool:
        if self.peek() == char:
            self.at += 1
            return True
        return False

    def number(self, what: str) -> int:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            got = repr(self.peek()) if self.peek() else "the end"
            raise self.fail(f"found {got} instead of {what}", "a positive integer")
        digits = found.group()
        if digits[0] == "0" and len(digits) > 1:
            raise self.fail(f"{what} has a leading zero", digits.lstrip("0") or "a positive integer")
        if digits == "0":
            raise self.fail(f"{what} cannot be 0", "at least 1")
        if len(digits) > 16 or int(digits) > MAX_COUNT:
            raise self.fail(f"{what} is too large", f"at most {MAX_COUNT}")
        self.at = found.end()
        return int(digits)

    def count(self) -> Count:
        """Read count : '[' value ']' | value."""
        if not self.text.strip("[]"):
            raise self.fail("the count is empty", _EXPECTED)
        bracket = self.take("[")
        value = self.value()
        if bracket and not self.take("]"):
            raise self.unexpected("']'")
        if self.at < len(self.text):
            raise self.unexpected(f"the end of the count{self.unit_hint()}")
        return value

    def unit_hint(self) -> str:
        """Return how a unit is written, if the rest of the count is one, as in ``memory=4GB``."""
        from simsched.formats.rfc.units import ALIASES, UNITS

        rest = self.text[self.at :].strip()
        unit = next(
            (ALIASES.get(name, name) for name in (rest, f"{rest}B") if name in {*UNITS, *ALIASES}), None
        )
        return f"; a unit follows in braces: {self.text[: self.at].strip()}{{unit:{unit}}}" if unit else ""

    def unexpected(self, expected: str) -> CaretError:
        got = repr(self.peek()) if self.peek() else "the end"
        return self.fail(f"found {got} in a count", expected)

    def value(self) -> Count:
        """Read value : N | N '+' steps | N '-' N steps | N or N '-' N, separated by commas (an idset)."""
        start = self.at
        low = self.number("the count")
        if self.take("+"):
            return self.steps(low, None, start)
        high = low
        if self.take("-"):
            high = self.upper(low)
            if self.peek() == ":":
                return self.steps(low, high, start)
        elif self.peek() == ":":
            raise self.fail("an operand without a range", "'-', '+' or ','")
        if self.peek() != ",":
            return _range(low, high, "+", 1)
        return self.idset(low, high)

    def upper(self, low: int) -> int:
        at = self.at
        high = self.number("the end of the range")
        if high < low:
            raise self.fail(f"the range ends at {high}, before its start {low}", f"at least {low}", at)
        return high

    def steps(self, low: int, high: int | None, start: int) -> Count:
        """Read steps : (':' operand (':' operator)?)?."""
        operand, operator, operand_at = 1, "+", self.at
        if self.take(":"):
            operand_at = self.at
            operand = self.number("the operand")
            if self.take(":"):
                operator = self.peek()
                if operator not in OPERATORS or not operator:
                    raise self.fail(f"unknown operator {operator!r}", "+, * or ^")
                self.at += 1
        fault = _range_fault(low, high, operator, operand)
        if fault is not None:
            raise self.fail(fault[1], fault[2], {"min": start}.get(fault[0], operand_at))
        return _range(low, high, operator, operand)

    def idset(self, low: int, high: int) -> Count:
        """Read idset : range (',' range)*, ascending and disjoint (RFC 22)."""
        ranges = [[low, high]]
        while self.take(","):
            at = self.at
            if self.peek().isalpha():
                expected = "a positive integer; of two resources [node=2;core=4] or node=2/core=4"
                raise self.fail(f"found {self.peek()!r} instead of an id of the set", expected)
            low = self.number("an id of the set")
            high = self.upper(low) if self.take("-") else low
            last = ranges[-1][1]
            if low <= last:
                raise self.fail(f"the set is not ascending: {low} follows {last}", f"above {last}", at)
            if low == last + 1:
                ranges[-1][1] = high
            else:
                ranges.append([low, high])
        if len(ranges) == 1:
            return _range(ranges[0][0], ranges[0][1], "+", 1)
        from simsched.formats.rfc.idset import Idset

        text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
        return Count(ranges[0][0], ranges[-1][1], ids=Idset.parse(text))


# ---------------------------------------------------------------- JSON


def dict_faults(value: dict[str, Any]) -> Iterator[tuple[str | None, str, str]]:
    """Yield (key or None, message, expected) for every fault of a range dictionary."""
    for key in value:
        if key not in _DICT_KEYS:
            yield str(key), f"unknown key {key!r}", "min, max, operator or operand"
    if "min" not in value:
        yield None, "the key 'min' is missing", "min"
    good = True
    for key in ("min", "max", "operand"):
        if key in value and type(value[key]) is not int:
            good = False
            yield key, f"{value[key]!r} is not an integer", "a positive integer"
    if "operator" in value and not isinstance(value["operator"], str):
        good = False
        yield "operator", f"{value['operator']!r} is not an operator", "+, * or ^"
    for key, other in (("operator", "operand"), ("operand", "operator")):
        if key in value and other not in value:
            good = False
            yield None, f"{key!r} comes without {other!r}", other
    if good and "min" in value:
        fault = _range_fault(*_arguments(value))
        if fault is not None:
            yield fault


def _arguments(value: dict[str, Any]) -> tuple[int, int | None, str, int]:
    return value["min"], value.get("max"), value.get("operator", "+"), value.get("operand", 1)


def _from_dict(value: dict[str, Any], where: str | None) -> Count:
    for key, message, expected in dict_faults(value):
        place = f"{where}.{key}" if where and key else where or key
        raise FormatError(message, where=place, expected=expected)
    return _range(*_arguments(value))
