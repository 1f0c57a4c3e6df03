"""Hostlists (RFC 29): ordered lists of host names that may repeat, such as ``node[01-16,20]``.

A `Hostlist` holds ranges as ranges, so that a list of 10**9 names is as small as its text;
only `Hostlist.expand` and the methods that use it make the names, up to a stated limit.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, chain
from typing import TYPE_CHECKING, overload

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.host_ranges import (
    FORM,
    HostRange,
    follows,
    format_ranges,
    joined,
    parse_into,
    ranges_of,
    split_name,
)
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
