"""Set algebra over ranks and their children, by ranges of ranks: the engine of `rset`.

A *piece* is a range of ranks with equal children; a list of pieces is ascending and
disjoint.  Two lists are swept side by side, so an operation costs the number of pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Children: TypeAlias = "Mapping[str, Idset]"
"""The children of a rank: resource type → idset, none of them empty."""


Rule: TypeAlias = "Callable[[Children | None, Children | None], Children | None]"
"""The children of a rank on both sides (None: no such rank) → its children in the result."""


class Piece(NamedTuple):
    """Ranks `low` to `high`, all with `children`."""

    low: int
    high: int
    children: Children


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Ranks that hold the same: an idset of units by resource type."""

    ranks: Idset
    children: Mapping[str, Idset]

    def __hash__(self) -> int:
        return hash((self.ranks, frozenset(self.children.items())))


def ranks_of(groups: tuple[RankGroup, ...]) -> Idset:
    """All ranks of groups that share none."""
    if len(groups) == 1:
        return groups[0].ranks
    return Idset.from_ranges(span for group in groups for span in group.ranks.ranges)


def pieces(groups: Iterable[tuple[Idset, Children]]) -> list[Piece]:
    """The ranges of all groups in ascending order; the groups' ranks must be disjoint."""
    cut = [Piece(low, high, children) for ranks, children in groups for low, high in ranks.ranges]
    cut.sort(key=_low)
    return cut


def _low(piece: Piece) -> int:
    return piece.low


def sweep(
    left: list[Piece], right: list[Piece]
) -> Iterator[tuple[int, int, Children | None, Children | None]]:
    """Every largest range of ranks that is in one piece of each side, or of one side alone."""
    i = j = 0
    at = 0
    while i < len(left) or j < len(right):
        a = left[i] if i < len(left) else None
        b = right[j] if j < len(right) else None
        starts = [max(piece.low, at) for piece in (a, b) if piece is not None]
        low = min(starts)
        in_a = a is not None and a.low <= low
        in_b = b is not None and b.low <= low
        # The range ends with a piece that covers `low`, or just before a piece that begins after it, so each
        # side has one piece or none in it.
        ends = [p.high if p.low <= low else p.low - 1 for p in (a, b) if p is not None]
        high = min(ends)
        yield low, high, a.children if a and in_a else None, b.children if b and in_b else None
        at = high + 1
        i += a is not None and a.high < at
        j += b is not None and b.high < at


def combine(left: list[Piece], right: list[Piece], rule: Rule) -> list[Piece]:
    """Apply `rule` to the children of each rank on both sides; None leaves the rank out."""
    result = []
    known: dict[tuple[int, int], Children | None] = {}
    for low, high, a, b in sweep(left, right):
        key = (id(a), id(b))  # ids are unique: both sides stay alive while the sweep runs
        if key not in known:
            known[key] = rule(a, b)
        if (children := known[key]) is not None:
            result.append(Piece(low, high, children))
    return result


def united(a: Children | None, b: Children | None) -> Children | None:
    """The children of either rank."""
    if a is None or b is None or a == b:
        return b if a is None else a
    return {kind: a.get(kind, _NONE) | b.get(kind, _NONE) for kind in (*a, *(k for k in b if k not in a))}


def shared(a: Children | None, b: Children | None) -> Children | None:
    """The children of both ranks; a rank without children is shared if both have none."""
    if a is None or b is None:
        return None
    if a == b:
        return a
    both = {kind: a[kind] & b[kind] for kind in a if kind in b}
    return {kind: ids for kind, ids in both.items() if ids} or None


def remaining(a: Children | None, b: Children | None) -> Children | None:
    """The children of the first rank that the second lacks; a rank without any is omitted."""
    if a is None or b is None:
        return a
    left = {kind: ids - b.get(kind, _NONE) for kind, ids in a.items()}
    return {kind: ids for kind, ids in left.items() if ids} or None


def grouped(cut: Iterable[Piece]) -> tuple[RankGroup, ...]:
    """Groups of ranks with equal children, in order of their lowest rank; types in canonical order."""
    ranges: dict[tuple[tuple[str, Idset], ...], list[tuple[int, int]]] = {}
    keys: dict[int, tuple[tuple[str, Idset], ...]] = {}
    alive = []
    for low, high, children in cut:
        key = keys.get(id(children))
        if key is None:
            key = keys[id(children)] = tuple(sorted(children.items(), key=type_order))
            alive.append(children)
        spans = ranges.setdefault(key, [])
        if spans and spans[-1][1] + 1 == low:
            spans[-1] = (spans[-1][0], high)
        else:
            spans.append((low, high))
    return tuple(RankGroup(Idset(tuple(spans)), dict(key)) for key, spans in ranges.items())


def spans(ranks: Idset, wanted: Idset) -> Iterator[tuple[int, int]]:
    """Where the ranks of `wanted` (a subset) are among the sorted `ranks`: (start, stop) positions."""
    before, source = 0, iter(ranks.ranges)
    low, high = next(source, (0, -1))
    for first, last in wanted.ranges:
        while high < first:
            before += high - low + 1
            low, high = next(source)
        yield before + first - low, before + last - low + 1


_NONE = Idset()
_RANKING = {"core": "0", "gpu": "1"}


def type_order(item: tuple[str, Idset]) -> str:
    """Cores before gpus before all others by name."""
    return _RANKING.get(item[0], "2" + item[0])
