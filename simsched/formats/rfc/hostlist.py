"""Hostlists (RFC 29): ordered lists of host names that may repeat, such as ``node[01-16,20]``.

Names are split and joined to ranges.  A `Hostlist` holds ranges as ranges, so that a list of 10**9 names is
as small as its text; only `Hostlist.expand` and the methods that use it make the names, up to a stated limit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, NamedTuple, overload

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.rfc.names import MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


FORM = "host names and prefix[ids]suffix expressions, such as node[01-16,20]"
"""The form of a hostlist, for messages."""
_DIGITS = 18  # longer digit strings in a name are text, not a number
_ELEMENT = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]\s]*)\]([^\[\],\s]*))?(,+|\Z)")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?\Z")
_LAST_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*\Z)")
_NOT_DIGITS = re.compile(r"[^0-9.]")


class HostRange(NamedTuple):
    """The names ``prefix + number + suffix`` for the numbers from `low` to `high`.

    `width` is the least number of digits, 0 if there are no leading zeroes; a name without
    a number has `width` -1 and is all prefix.
    """

    prefix: str
    suffix: str
    width: int
    low: int
    high: int

    def name(self, position: int) -> str:
        """The name at `position`, from 0."""
        if self.width < 0:
            return self.prefix
        return f"{self.prefix}{self.low + position:0{self.width}d}{self.suffix}"

    def names(self) -> Iterator[str]:
        """All names, in order."""
        if self.width < 0:
            return iter((self.prefix,))
        form = f"{self.prefix.replace('%', '%%')}%0{self.width}d{self.suffix.replace('%', '%%')}"
        return map(form.__mod__, range(self.low, self.high + 1))

    def position(self, host: str) -> int:
        """The position of `host` in this range, or -1."""
        if self.width < 0:
            return 0 if host == self.prefix else -1
        digits = host[len(self.prefix) : len(host) - len(self.suffix)]
        if len(digits) > _DIGITS + 2 or not (digits.isascii() and digits.isdigit()):
            return -1
        number = int(digits)
        if not self.low <= number <= self.high:
            return -1
        return number - self.low if self.name(number - self.low) == host else -1


# -- reading -------------------------------------------------------------------------


def parse_into(text: str, where: str | None, segments: list[HostRange]) -> None:
    """Append the ranges of one RFC 29 string; an empty expression adds nothing."""
    at, separator = 0, "," if text else ""
    while separator:
        match = _ELEMENT.match(text, at)
        if match is None or match.end(1) - at > MAX_NAME:
            raise _fault(text, at, where)
        prefix, ids, suffix, separator = match.groups()
        if ids is not None:
            try:
                segments.extend(_parse_ids(prefix, ids, suffix))
            except FormatError as error:
                place = f"{error.message} at character {at + 1} of hostlist {clip(text)!r}"
                raise type(error)(place, where=where, expected=error.expected) from None
        elif prefix:
            segments.append(split_name(prefix))
        at = match.end()


def _parse_ids(prefix: str, ids: str, suffix: str) -> Iterator[HostRange]:
    """The ranges of one bracketed list.

    The leading zeroes of its first id count for all of them (RFC 29); those of another id for that
    id alone.
    """
    first = 0
    for at, part in enumerate(ids.split(",")):
        match = _RANGE.match(part)
        if match is None:
            raise FormatError(f"{clip(part)!r} is neither an id nor a range", expected="such as 0-3,7")
        low_text, high_text = match.groups()
        if len(low_text) > _DIGITS or (high_text and len(high_text) > _DIGITS):
            raise LimitError(f"{clip(part)!r} has too many digits", expected=f"at most {_DIGITS}")
        low = int(low_text)
        high = int(high_text) if high_text else low
        if high < low:
            raise FormatError(f"the range {clip(part)!r} descends", expected="low-high")
        own = len(low_text) if low_text[0] == "0" and len(low_text) > 1 else 0
        first = own if at == 0 else first
        width = max(first, own)
        yield HostRange(prefix, suffix, width if len(str(low)) < width else 0, low, high)


def _fault(text: str, at: int, where: str | None) -> FormatError:
    """Return the fault of the element of `text` that begins at `at`."""
    end = re.compile(r"[,\]]|\Z").search(text, at)
    element = text[at : end.end() if end else len(text)]
    if re.search(r"\s", element):
        reason = f"white space in {clip(element)!r}"
    elif "[" in text[at:] and "]" not in text[at:]:
        reason = f"'[' is never closed in {clip(text[at:])!r}"
    elif "[" in element:
        reason = f"more than one pair of brackets in {clip(text[at:])!r}"
    elif "]" in element:
        reason = f"']' without '[' in {clip(element)!r}"
    else:
        reason = f"a name of more than {MAX_NAME} characters"
    return FormatError(
        f"{reason} at character {at + 1} of hostlist {clip(text)!r}", where=where, expected=FORM
    )


# -- names to ranges and back --------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def split_name(host: str) -> HostRange:
    """Split a name at the number that most likely enumerates hosts: the last one before its first dot.

    An address such as 10.0.0.7 is split at its last number.
    """
    label, dot, domain = host.partition(".")
    if not _NOT_DIGITS.search(domain):
        label, dot, domain = host, "", ""
    stem = label.rstrip("0123456789")
    if stem != label:
        start, end = len(stem), len(label)
    elif match := _LAST_NUMBER.search(label[:MAX_NAME]):
        start, end = match.span()
    else:
        return HostRange(host, "", -1, 0, 0)
    digits = label[start:end]
    if len(digits) > _DIGITS:
        return HostRange(host, "", -1, 0, 0)
    number = int(digits)
    width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
    return HostRange(label[:start], label[end:] + dot + domain, width, number, number)


def follows(left: HostRange, right: HostRange) -> bool:
    """Whether `right` begins where `left` ends, so that the two are one range."""
    if right.low != left.high + 1 or right.prefix != left.prefix or right.suffix != left.suffix:
        return False
    if left.width < 0:
        return False
    # Without leading zeroes of its own, `right` still continues a padded range once its digits fill the
    # width: 09 is followed by 10, but 009 is not followed by 10.
    return left.width == right.width or (right.width == 0 and len(str(right.low)) >= left.width)


def joined(segments: Iterable[HostRange]) -> Iterator[HostRange]:
    """Join segments where one follows the other."""
    last: HostRange | None = None
    for segment in segments:
        if last is not None and follows(last, segment):
            last = HostRange(last.prefix, last.suffix, last.width, last.low, segment.high)
        else:
            if last is not None:
                yield last
            last = segment
    if last is not None:
        yield last


def ranges_of(hosts: Iterable[str]) -> Iterator[HostRange]:
    """The joined ranges of single names.

    The same as `joined` of `split_name` of each, without an object per name: a run of a million hosts costs
    one `HostRange`.  The condition is that of `follows`, written out.
    """
    prefix, suffix, width, low, high = "", "", -1, 0, -1
    for right in map(split_name, hosts):
        if (
            right[3] == high + 1
            and width >= 0
            and right[0] == prefix
            and right[1] == suffix
            and (right[2] == width or (right[2] == 0 and len(str(high + 1)) >= width))
        ):
            high += 1
            continue
        if high >= low:
            yield HostRange(prefix, suffix, width, low, high)
        prefix, suffix, width, low, high = right
    if high >= low:
        yield HostRange(prefix, suffix, width, low, high)


def format_ranges(segments: Iterable[HostRange]) -> str:
    """Write ranges, those with one prefix and suffix in one pair of brackets.

    The first id sets the least width of a bracket, so a number that this width would pad starts another one.
    """
    parts: list[str] = []
    ids: list[str] = []
    prefix, suffix, width = "", "", 0
    for before, after, digits, first, last in segments:
        if digits < 0:
            _flush(parts, prefix, ids, suffix)
            parts.append(before)
            continue
        low = str(first).zfill(digits)
        if ids and (len(low) < width or before != prefix or after != suffix):
            _flush(parts, prefix, ids, suffix)
        if not ids:
            prefix, suffix = before, after
            width = len(low) if low[0] == "0" and len(low) > 1 else 0
        ids.append(low if first == last else f"{low}-{str(last).zfill(digits)}")
    _flush(parts, prefix, ids, suffix)
    return ",".join(parts)


def _flush(parts: list[str], prefix: str, ids: list[str], suffix: str) -> None:
    """Write the open bracket, if there is one."""
    if ids:
        text = ",".join(ids)
        parts.append(f"{prefix}{text}{suffix}" if text.isdigit() else f"{prefix}[{text}]{suffix}")
        ids.clear()


MAX_HOSTS = 10_000_000
"""The most names that `Hostlist.expand` makes by default."""

MAX_COUNTED = 2**62
"""The most names of any hostlist; `len` then fits a machine word."""


class Hostlist:
    """An ordered list of host names that may repeat; equal if the names are equal one by one.

    >>> hosts = Hostlist.parse("foo[0-2]-eth2,bar")
    >>> len(hosts), hosts[1], str(hosts)
    (4, 'foo1-eth2', 'foo[0-2]-eth2,bar')
    """

    __slots__ = ("_ends", "_segments")
    _segments: tuple[HostRange, ...]
    _ends: list[int]

    def __init__(self, segments: Iterable[HostRange] = ()) -> None:
        self._segments = tuple(segments)
        self._ends = list(accumulate(s.high - s.low + 1 for s in self._segments))

    # -- making one ------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str | Iterable[str], *, where: str | None = None) -> Hostlist:
        """Read an RFC 29 string, or several of them one after the other (as in R's nodelist).

        The leading zeroes of the first id of a bracketed list set the width of all its ids, those
        of another id the width of that id (or range): ``[00-2]`` is 00,01,02, ``[005,4]`` is
        005,004 and ``[8,09,7]`` is 8,09,7.  An empty expression adds nothing: ``a,,b`` is a,b.

        Raises
        ------
        FormatError
            Unbalanced or second brackets, empty brackets, spaces, a descending range.
        LimitError
            Numbers of more than 18 digits, or more than `MAX_COUNTED` names.

        >>> list(Hostlist.parse("[00-2]"))
        ['00', '01', '02']
        """
        segments: list[HostRange] = []
        single = isinstance(text, str) or not hasattr(text, "__iter__")
        for position, part in enumerate([text] if single else text):
            place = where if single or where is None else f"{where}[{position}]"
            if not isinstance(part, str):
                raise FormatError(
                    f"a hostlist is a string, not {type(part).__name__}", where=place, expected=FORM
                )
            parse_into(part, place, segments)
        if sum(s.high - s.low + 1 for s in segments) > MAX_COUNTED:
            raise LimitError("the hostlist has too many names", where=where, expected=f"{MAX_COUNTED}")
        return cls(joined(segments))

    @classmethod
    def from_hosts(cls, hosts: Iterable[str]) -> Hostlist:
        """The list of these names, in this order; the names are taken as they are.

        >>> str(Hostlist.from_hosts(["n1", "n2", "n2", "login"]))
        'n[1-2,2],login'
        """
        return cls(ranges_of(hosts))

    @classmethod
    def join(cls, parts: Iterable[Hostlist]) -> Hostlist:
        """The lists of `parts`, one after the other; linear in their ranges.

        >>> str(Hostlist.join([Hostlist.parse("n1"), Hostlist.parse("n[2-3]")]))
        'n[1-3]'
        """
        return cls(joined(chain.from_iterable(part._segments for part in parts)))

    # -- as a sequence ---------------------------------------------------------------

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __bool__(self) -> bool:
        return bool(self._segments)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(map(HostRange.names, self._segments))

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> Hostlist: ...
    def __getitem__(self, item: int | slice) -> str | Hostlist:
        """The name at a position, or the list of a slice with step 1."""
        if isinstance(item, slice):
            start, stop, step = item.indices(len(self))
            if step != 1:
                raise ValueError("a hostlist is sliced in steps of 1")
            return Hostlist(self._between(start, stop))
        position = item if item >= 0 else item + len(self)
        if not 0 <= position < len(self):
            raise IndexError(item)
        at = bisect_right(self._ends, position)
        segment = self._segments[at]
        return segment.name(position - self._ends[at] + segment.high - segment.low + 1)

    def _between(self, start: int, stop: int) -> Iterator[HostRange]:
        """The segments of the positions from `start` up to `stop`."""
        at = bisect_right(self._ends, start)
        while start < stop:
            segment, end = self._segments[at], self._ends[at]
            first = segment.high + 1 - (end - start)
            last = segment.high - max(0, end - stop)
            width = segment.width if len(str(first)) < segment.width else min(segment.width, 0)
            yield segment._replace(low=first, high=last, width=width)
            start, at = end, at + 1

    def __add__(self, other: Hostlist) -> Hostlist:
        return Hostlist.join((self, other))

    def __contains__(self, host: object) -> bool:
        return isinstance(host, str) and any(s.position(host) >= 0 for s in self._segments)

    def index(self, host: str) -> int:
        """The first position of `host`; ValueError if it is not in the list.  O(ranges).

        >>> Hostlist.parse("a,n[5-9]").index("n7")
        3
        """
        for segment, end in zip(self._segments, self._ends, strict=True):
            position = segment.position(host)
            if position >= 0:
                return end - (segment.high - segment.low + 1) + position
        raise ValueError(f"{host!r} is not in the hostlist")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hostlist):
            return NotImplemented
        if self._segments == other._segments:
            return True
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((len(self), self[0], self[-1])) if self else 0

    # -- out -------------------------------------------------------------------------

    def expand(self, limit: int = MAX_HOSTS) -> list[str]:
        """All names, in order; LimitError if there are more than `limit`.

        >>> Hostlist.parse("n[9-10]").expand()
        ['n9', 'n10']
        """
        if len(self) > limit:
            raise LimitError(
                f"the hostlist {clip(str(self))} has {len(self)} names", expected=f"at most {limit}"
            )
        return list(self)

    def unique(self, limit: int = MAX_HOSTS) -> Hostlist:
        """The same names, each where it first occurs; LimitError above `limit` names.

        >>> str(Hostlist.parse("foo1,bar,foo[1-2]").unique())
        'foo1,bar,foo2'
        """
        return Hostlist.from_hosts(dict.fromkeys(self.expand(limit)))

    def duplicate(self, limit: int = MAX_HOSTS) -> str | None:
        """A name that occurs twice, or None; LimitError if more than `limit` names must be made.

        >>> Hostlist.parse("a[1-3],a2").duplicate()
        'a2'
        """
        if len(self._segments) <= 1:
            return None
        seen: set[str] = set()
        for host in self.expand(limit):
            if host in seen:
                return host
            seen.add(host)
        return None

    def __str__(self) -> str:
        return format_ranges(self._segments)

    def __repr__(self) -> str:
        return f"Hostlist({clip(str(self))!r})"

    def _check(self) -> None:
        """Assert that every segment is a range and that the ends count them."""
        total = 0
        for segment, end in zip(self._segments, self._ends, strict=True):
            assert segment.low <= segment.high
            assert segment.width >= 0 or segment.low == segment.high == 0
            total += segment.high - segment.low + 1
            assert total == end


def encode_hosts(hosts: Sequence[str]) -> str:
    """Write host names as a hostlist that keeps their order and repeats.

    >>> encode_hosts(["n1", "n2", "n3", "n7", "login"])
    'n[1-3,7],login'
    """
    return hosts[0] if len(hosts) == 1 else format_ranges(ranges_of(hosts))


class HostEncoder:
    """Writes subsets of one fixed list of hosts, in list order, as hostlists; fast when called often.

    Made once per cluster: it numbers the runs of names that are consecutive.  Positions that are consecutive
    and in one run are therefore one range, and `encode` finds its end by doubling steps; the cost follows
    the number of ranges, not of names.

    >>> HostEncoder(["n1", "n2", "n3", "gpu1"]).encode([0, 1, 2, 3])
    'n[1-3],gpu1'
    """

    __slots__ = ("_hosts", "_parts", "_run")

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = list(hosts)
        self._parts = [split_name(host) for host in self._hosts]
        self._run = [0] * len(self._hosts)
        run = 0
        for at in range(1, len(self._parts)):
            if not follows(self._parts[at - 1], self._parts[at]):
                run += 1
            self._run[at] = run

    def encode(self, positions: Sequence[int]) -> str:
        """The hostlist of the hosts at strictly ascending `positions` (list or NumPy array)."""
        ids: Sequence[int] = positions.tolist() if hasattr(positions, "tolist") else positions
        if len(ids) == 1:
            return self._hosts[ids[0]]
        return format_ranges(self._ranges(ids))

    def _ranges(self, ids: Sequence[int]) -> Iterator[HostRange]:
        parts, run = self._parts, self._run
        at, count = 0, len(ids)
        while at < count:
            first = ids[at]
            here, end, step = run[first], at, 1
            offset = first - at
            while end + step < count and (i := ids[end + step]) - end - step == offset and run[i] == here:
                end += step
                step *= 2
            while step:
                if end + step < count and (i := ids[end + step]) - end - step == offset and run[i] == here:
                    end += step
                step >>= 1
            low = parts[first]
            yield low if end == at else HostRange(*low[:4], parts[ids[end]].high)
            at = end + 1
