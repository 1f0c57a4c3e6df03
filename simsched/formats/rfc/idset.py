"""Idsets (RFC 22): sets of non-negative integers in text form, such as ``0-3,7``.

An `Idset` holds ranges as ranges, so that ``0-99999999999`` costs as much as ``7``; only
`Idset.expand` and `Idset.to_mask` build a value of the size of the set, and both refuse more than a
stated limit.

Every operation relies on one invariant and keeps it: ranges ascend, are disjoint and not adjacent.  The
form of a set is then unique, so equality of sets is equality of tuples, and a pair of sets is swept from
low to high once, in time linear in the ranges.  An intersection or a difference cannot make
adjacent ranges: the id after each of its ranges is missing from an operand or was removed.  A union can
make them, so it merges.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from simsched.errors import FormatError, LimitError, clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_IDS = 10_000_000
"""The most ids that `Idset.expand` makes, and the bound of the ids of `Idset.to_mask`, by default."""

MAX_ID = 2**62
"""The highest id; `len` of any idset then fits a machine word."""

Range: TypeAlias = tuple[int, int]

_FORM = "ids and ranges in ascending order, such as 0-3,7"
_ONES = re.compile("1+")


@dataclass(frozen=True, slots=True)
class Idset:
    """A set of non-negative integers, held as ranges.

    Parameters
    ----------
    ranges : inclusive (low, high) pairs, ascending, disjoint and not adjacent.  The
        constructor trusts them; `parse`, `from_ids` and `from_range` make them.

    >>> ids = Idset.parse("[0-3,7]")
    >>> len(ids), 2 in ids, str(ids | Idset.from_range(4, 5))
    (5, True, '0-5,7')
    """

    ranges: tuple[Range, ...] = ()

    # -- making one ------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str, *, where: str | None = None) -> Idset:
        """Read an RFC 22 string; surrounding brackets are optional, ``""`` is the empty set.

        Raises
        ------
        FormatError
            Not ascending, repeated, a leading zero, or not an idset at all; the message
            names the element and its character position.
        LimitError
            An id above `MAX_ID`.

        >>> str(Idset.parse("1,2,3,5-6"))
        '1-3,5-6'
        """
        if not isinstance(text, str):
            raise FormatError(f"an idset is a string, not {type(text).__name__}", where=where, expected=_FORM)
        body = text
        if text[:1] == "[" and text[-1:] == "]" and len(text) > 1:
            body = text[1:-1]
        if not body:
            return EMPTY
        ranges: list[Range] = []
        last = -2
        ascii_only = body.isascii()
        for part in body.split(","):
            low_text, dash, high_text = part.partition("-")
            if not (ascii_only and _is_id(low_text) and (not dash or _is_id(high_text))):
                raise _fault(text, body, where)
            low = int(low_text)
            high = int(high_text) if dash else low
            if low <= last or high < low or high > MAX_ID:
                raise _fault(text, body, where)
            if low == last + 1:
                ranges[-1] = (ranges[-1][0], high)
            else:
                ranges.append((low, high))
            last = high
        return cls(tuple(ranges))

    @classmethod
    def from_ids(cls, ids: Iterable[int]) -> Idset:
        """The set of `ids`, in any order, repeats allowed; ValueError for a negative one.

        >>> str(Idset.from_ids([5, 1, 2, 1]))
        '1-2,5'
        """
        ordered = sorted(ids)
        if ordered and ordered[0] < 0:
            raise ValueError(f"an idset cannot contain negative ids: {ordered[0]}")
        return cls(_merged((i, i) for i in ordered))

    @classmethod
    def from_range(cls, low: int, high: int) -> Idset:
        """The ids from `low` to `high`, both included; empty if `high` is less than `low`.

        >>> str(Idset.from_range(0, 47))
        '0-47'
        """
        if low < 0:
            raise ValueError(f"an idset cannot contain negative ids: {low}")
        return cls(((int(low), int(high)),)) if low <= high else EMPTY

    @classmethod
    def from_ranges(cls, ranges: Iterable[Range]) -> Idset:
        """The union of inclusive (low, high) pairs, in any order; they may overlap.

        >>> str(Idset.from_ranges([(4, 6), (0, 3), (5, 8)]))
        '0-8'
        """
        return cls(_merged(sorted(ranges)))

    @classmethod
    def from_mask(cls, mask: int) -> Idset:
        """The positions of the bits that are set in `mask`.

        >>> str(Idset.from_mask(0b1011))
        '0-1,3'
        """
        if mask < 0:
            raise ValueError("a mask must not be negative")
        low_first = bin(mask)[:1:-1]
        return cls(tuple((run.start(), run.end() - 1) for run in _ONES.finditer(low_first)))

    # -- as a set --------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[int]:
        for low, high in self.ranges:
            yield from range(low, high + 1)

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, SupportsIndex):  # NumPy integers are no subclass of int
            return False
        item = item.__index__()
        at = bisect_right(self.ranges, item, key=_low) - 1
        return at >= 0 and item <= self.ranges[at][1]

    def __or__(self, other: Idset) -> Idset:
        if not other.ranges:
            return self
        return Idset(_merged(sorted(self.ranges + other.ranges))) if self.ranges else other

    def __and__(self, other: Idset) -> Idset:
        if self.ranges == other.ranges:
            return self
        return Idset(tuple(_overlaps(self.ranges, other.ranges)))

    def __sub__(self, other: Idset) -> Idset:
        if not self.ranges or not other.ranges:
            return self
        return Idset(tuple(_remains(self.ranges, other.ranges)))

    def __xor__(self, other: Idset) -> Idset:
        return (self - other) | (other - self)

    def __le__(self, other: Idset) -> bool:
        return not (self - other).ranges

    def isdisjoint(self, other: Idset) -> bool:
        """Whether the two sets have no id in common.

        >>> Idset.parse("0-3").isdisjoint(Idset.parse("4"))
        True
        """
        return next(_overlaps(self.ranges, other.ranges), None) is None

    # -- as an ordered sequence ------------------------------------------------------

    @property
    def first(self) -> int:
        """The lowest id; IndexError if the set is empty."""
        return self.ranges[0][0]

    @property
    def last(self) -> int:
        """The highest id; IndexError if the set is empty."""
        return self.ranges[-1][1]

    def __getitem__(self, position: int) -> int:
        """The id at `position` in ascending order; IndexError outside.

        >>> Idset.parse("3-5,9")[3]
        9
        """
        left = position if position >= 0 else position + len(self)
        if left >= 0:
            for low, high in self.ranges:
                if left <= high - low:
                    return low + left
                left -= high - low + 1
        raise IndexError(position)

    def index(self, item: int) -> int:
        """The position of `item` among the ids in ascending order; ValueError if it is not in the set.

        >>> Idset.parse("3-5,9").index(9)
        3
        """
        before = 0
        for low, high in self.ranges:
            if item <= high:
                if item < low:
                    break
                return before + item - low
            before += high - low + 1
        raise ValueError(f"{item} is not in {clip(str(self))}")

    def take(self, count: int) -> Idset:
        """The `count` lowest ids (all of them if there are fewer).

        >>> str(Idset.parse("0-3,8-9").take(5))
        '0-3,8'
        """
        taken: list[Range] = []
        for low, high in self.ranges:
            if count <= 0:
                break
            taken.append((low, min(high, low + count - 1)))
            count -= high - low + 1
        return Idset(tuple(taken))

    # -- out -------------------------------------------------------------------------

    def expand(self, limit: int = MAX_IDS) -> list[int]:
        """All ids, ascending; LimitError if there are more than `limit`.

        >>> Idset.parse("0-2,5").expand()
        [0, 1, 2, 5]
        """
        if len(self) > limit:
            raise LimitError(f"the idset {clip(str(self))} has {len(self)} ids", expected=f"at most {limit}")
        return list(self)

    def to_mask(self, limit: int = MAX_IDS) -> int:
        """The integer whose set bits are the ids; LimitError if an id is `limit` or more.

        >>> bin(Idset.parse("0-1,3").to_mask())
        '0b1011'
        """
        if not self.ranges:
            return 0
        if self.last >= limit:
            raise LimitError(f"id {self.last} is too high for a bit mask", expected=f"less than {limit}")
        if len(self.ranges) == 1:
            low, high = self.ranges[0]
            return ((1 << (high - low + 1)) - 1) << low
        bits: list[str] = []
        above = self.last + 1
        for low, high in reversed(self.ranges):
            bits += "0" * (above - high - 1), "1" * (high - low + 1)
            above = low
        bits.append("0" * above)
        return int("".join(bits), 2)

    def __str__(self) -> str:
        return ",".join([f"{low}-{high}" if low != high else str(low) for low, high in self.ranges])

    def __repr__(self) -> str:
        return f"Idset({clip(str(self))!r})"

    def _check(self) -> None:
        """Assert that the ranges are ascending, disjoint, not adjacent and not negative."""
        end = -2
        for low, high in self.ranges:
            assert end + 1 < low <= high, self.ranges
            end = high


EMPTY = Idset()
"""The empty set."""


def encode_ids(sorted_ids: Sequence[int]) -> str:
    """Write strictly ascending integers as an idset; a list, tuple, range or NumPy array.

    The end of a run of consecutive ids is found by doubling steps where runs are long, so the cost follows
    the number of runs and the logarithm of their lengths, not the number of ids.

    >>> encode_ids([0, 1, 2, 3, 7, 9, 10])
    '0-3,7,9-10'
    """
    ids: Sequence[int] = sorted_ids.tolist() if hasattr(sorted_ids, "tolist") else sorted_ids
    count = len(ids)
    if not count:
        return ""
    first, last = ids[0], ids[-1]
    if last - first == count - 1:  # strictly ascending, so nothing is missing between them
        return f"{first}-{last}" if count > 1 else str(first)
    if count > _DENSE * (last - first + 1 - count):
        return ",".join(_long_runs(ids))
    return ",".join(_short_runs(ids))


_DENSE = 8  # ids per gap from which crossing runs by doubling beats walking them


def _short_runs(ids: Sequence[int]) -> list[str]:
    parts: list[str] = []
    low = high = ids[0]
    for i in ids:
        if i > high + 1:
            parts.append(f"{low}-{high}" if low != high else str(low))
            low = i
        high = i
    parts.append(f"{low}-{high}" if low != high else str(low))
    return parts


def _long_runs(ids: Sequence[int]) -> list[str]:
    """Find the end of each run of consecutive `ids` by doubling, then halving, steps.

    The ids ascend strictly, so ``ids[end] - end`` never decreases and equals that of the start exactly within
    the run: the test holds up to the end of the run and fails after it, as a binary search needs.
    """
    parts: list[str] = []
    at, count = 0, len(ids)
    while at < count:
        low, end, step = ids[at], at, 1
        offset = low - at
        while end + step < count and ids[end + step] - end - step == offset:
            end += step
            step *= 2
        while step:
            if end + step < count and ids[end + step] - end - step == offset:
                end += step
            step >>= 1
        parts.append(f"{low}-{ids[end]}" if end > at else str(low))
        at = end + 1
    return parts


def _low(pair: Range) -> int:
    return pair[0]


def _is_id(text: str) -> bool:
    """Whether ASCII `text` is digits without a leading zero, and few enough to convert."""
    return text.isdigit() and len(text) <= 20 and (text[0] != "0" or len(text) == 1)


def _merged(pairs: Iterable[Range]) -> tuple[Range, ...]:
    """Join ascending `pairs` that overlap or touch."""
    merged: list[Range] = []
    start, end = -1, -2
    for low, high in pairs:
        if low <= end + 1:
            end = max(end, high)
        else:
            if start >= 0:
                merged.append((start, end))
            start, end = low, high
    if start >= 0:
        merged.append((start, end))
    return tuple(merged)


def _overlaps(left: Sequence[Range], right: Sequence[Range]) -> Iterator[Range]:
    """The ranges that two ascending sequences of ranges share."""
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if low <= high:
            yield low, high
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1


def _remains(left: Sequence[Range], right: Sequence[Range]) -> Iterator[Range]:
    """The parts of `left` that are not in `right`, both ascending.

    `j` passes ranges of `right` that end before the current range of `left` and so before all later ones; the
    inner loop uses an index of its own, because a range of `right` may cut several ranges of `left`.
    """
    j = 0
    for low, high in left:
        while j < len(right) and right[j][1] < low:
            j += 1
        start, k = low, j
        while k < len(right) and right[k][0] <= high:
            if right[k][0] > start:
                yield start, right[k][0] - 1
            start = right[k][1] + 1
            k += 1
        if start <= high:
            yield start, high


def _fault(text: str, body: str, where: str | None) -> FormatError:
    """Return the fault of the first bad element of `body`; only called when there is one."""
    place = 2 if body is not text else 1
    last = -1
    for part in body.split(","):
        reason, limit = _blame(part, last)
        if reason:
            kind = LimitError if limit else FormatError
            return kind(f"{reason} at character {place} of idset {clip(text)!r}", where=where, expected=_FORM)
        last = int(part.rpartition("-")[2])
        place += len(part) + 1
    raise AssertionError(text)  # pragma: no cover


def _blame(part: str, last: int) -> tuple[str, bool]:
    """Why `part` may not follow `last`: (reason, whether a limit was exceeded), or ("", False)."""
    if not part:
        return "an empty element", False
    low_text, dash, high_text = part.partition("-")
    for number in (low_text, high_text) if dash else (low_text,):
        reason, limit = _blame_id(number, part)
        if reason:
            return reason, limit
    low, high = int(low_text), int(high_text or low_text)
    if high < low:
        return f"the range {part!r} descends", False
    return (f"{part!r} does not come after {last}" if low <= last else ""), False


def _blame_id(number: str, part: str) -> tuple[str, bool]:
    """Why `number`, an end of `part`, is not an id: (reason, limit exceeded), or ("", False)."""
    if not (number.isascii() and number.isdigit()):
        return f"{clip(part)!r} is neither an id nor a range", False
    if len(number) > 1 and number[0] == "0":
        return f"a leading zero in {clip(part)!r}", False
    if len(number) > 20 or int(number) > MAX_ID:
        return f"{clip(part)!r} goes beyond the highest id {MAX_ID}", True
    return "", False
