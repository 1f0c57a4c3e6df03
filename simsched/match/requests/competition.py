"""Competition between siblings (M10): whether the counts of a request's parts, each by itself, are exact.

If they are not, the exact search decides.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from simsched.graph.index.types import BELOW, TARGET
from simsched.match.requests.request import ABSENT, POOL, VERTEX

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Need


def is_separable(needs: tuple[Need, ...], index: Index, *, alone: bool) -> bool:
    """Whether no two siblings of a request compete; with `alone`, targets are taken whole."""
    return _separable(needs, index, within=False) and not (alone and _meet(needs))


def _meet(needs: tuple[Need, ...]) -> bool:
    """Whether two parts of a request may want the same whole target, or one part several pieces of it."""
    on_targets = [need for need in needs if _touches_targets(need)]
    if len(on_targets) > 1 or any(need.kind == POOL for need in on_targets):
        return True
    return any(need.content is None and _meet(need.children) for need in on_targets)


def _touches_targets(need: Need) -> bool:
    return need.level in (TARGET, BELOW) or any(_touches_targets(child) for child in need.children)


def _separable(needs: tuple[Need, ...], index: Index, *, within: bool) -> bool:
    """Whether counting each sibling by itself is exact, here and below; `within` a target or not."""
    if len(needs) == 1:
        return _alone(needs[0], index, within=within)
    blocked = [_blocked(need, index) for need in needs]
    touched = [{n.type for n in need.walk()} for need in needs]
    for i, left in enumerate(blocked):
        for j in range(i + 1, len(needs)):
            if left & touched[j] or blocked[j] & touched[i]:
                return False
    return all(_alone(need, index, within=within) for need in needs)


def _alone(need: Need, index: Index, *, within: bool) -> bool:
    """Whether a need counts exactly by itself: its vertices do not overlap, its content is separable."""
    if need.kind == VERTEX and _nested(need.type, index):
        return False
    inside = within or need.level == TARGET
    # Units of several pool types within one target: the type that allows the fewest copies decides,
    # and which units are drawn makes no difference.
    return (inside and need.flat is not None) or _separable(need.children, index, within=inside)


def _nested(type_: str, index: Index) -> bool:
    """Whether vertices of a type overlap: one contains another, or two reach the same vertices."""
    known: dict[str, bool] = index.memo.setdefault("nested", {})
    if type_ not in known:
        spans = sorted(span for spans in index.spans(type_) for span in spans)
        known[type_] = any(before[1] > after[0] for before, after in pairwise(spans))
    return known[type_]


def _blocked(need: Need, index: Index) -> set[str]:
    """Return the types of which a match of this need takes units or vertices from others."""
    found: set[str] = set()
    for part in need.walk():
        if part.kind in (POOL, ABSENT) and part.exclusive:
            found.add(part.type)
        elif part.kind == VERTEX and part.exclusive:
            found.add(part.type)
            found |= index.types_beneath(part.type)
    return found
