"""Counting, bottom-up: how many copies of a request's parts each vertex can host.

Counts of execution targets are kept between matches: a claim or release touches few
targets, and only those are counted again.  Everything above the targets is a difference of
prefix sums over them.  If the siblings of a request do not compete, the counts are exact; else they are
a necessary condition, and the exact search decides (M10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np

from simsched.arrays import Bools, Integers
from simsched.graph.index.reach import View
from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.graph.index.types import ABOVE, BELOW, TARGET
from simsched.graph.resource_graph import pool_of
from simsched.match.requests.request import ABSENT, POOL, SLOT, identified
from simsched.match.search.target_classes import target_classes
from simsched.match.state.availability import KeptCount, idle_cluster

if TYPE_CHECKING:
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.requests.request import Content, Need
    from simsched.match.state.availability import Availability

MAX_KEPT = 256
"""Contents that a state keeps counts of; with one more, all are dropped and counted again on demand."""

MANY = 1 << 40
"""Stands for any number of copies: those of a request that takes nothing from others."""

EVERYWHERE = ""
"""The scope of a request's top level: above all vertices, the root included."""

Ordinals: TypeAlias = "Integers | None"
"""Vertices of one type by ordinal; None: all of them."""

_Array = TypeVar("_Array", Integers, Bools)


class Capacity(NamedTuple):
    """How many copies of one `Content` the targets can host.

    Attributes
    ----------
    fits : copies, one entry per target.  Read-only, and valid until the next claim or release.
    total : their sum.
    some : how many targets can host at least one.
    """

    fits: Integers
    total: int
    some: int


def capacity(content: Content, avail: Availability) -> Capacity:
    """Return how many copies of `content` each target can host now."""
    if content.unit is not None:
        # One unit of an aligned pool per copy, so the free units are the counts.  Such a content belongs
        # to a slot, and `some` is read of vertices alone: it need not be counted.
        return Capacity(avail.free[content.unit], avail.total[content.unit], MANY)
    if avail.kinds is not None and (counted := avail.kinds.capacity_of(content)) is not None:
        return Capacity(*counted)
    kept = avail.counts.get(content)
    if kept is None:
        # Claims only take away: what no target of the idle cluster can host, none can host now.
        if not avail.is_idle and not (ever := capacity(content, idle_cluster(avail.index))).total:
            return ever
        if len(avail.counts) >= MAX_KEPT:
            avail.counts.clear()
        kept = avail.counts[content] = KeptCount(*_count(content, avail), avail.version)
    elif kept.seen != avail.base + len(avail.log):  # `avail.version`, without the call
        _catch_up(kept, content, avail)
    return Capacity(kept.fits, kept.total, kept.some)


def _count(content: Content, avail: Availability) -> Capacity:
    """Count every target."""
    known = _counted_by_class(content, avail)
    if known is not None:
        return known
    fits = copies_on_targets(content, None, avail)
    return Capacity(fits, int(fits.sum()), int(np.count_nonzero(fits)))


def _catch_up(kept: KeptCount, content: Content, avail: Availability) -> None:
    """Count the targets again that were touched since the last time.

    A target's count depends on the target alone: its own units, vertices, claims and status.  Every
    change of these is a claim, a release or a change of status, and each of them logs the targets
    that it touches (`Availability.log`).  So targets that are not in the log have kept their counts.
    (A claim of a rack does not log its targets that are down: they count 0 before and after.)
    """
    dirty = avail.changed_since(kept.seen)
    if dirty is None or len(dirty) > len(kept.fits) // 4 + 8:  # one count of all is cheaper by then
        kept.fits, kept.total, kept.some = _count(content, avail)
        kept.seen = avail.version
        return
    kept.seen = avail.version
    stale = kept.fits[dirty]
    fresh = copies_on_targets(content, dirty, avail)
    kept.fits[dirty] = fresh
    kept.total += int(fresh.sum()) - int(stale.sum())
    kept.some += int(np.count_nonzero(fresh)) - int(np.count_nonzero(stale))


def _counted_by_class(content: Content, avail: Availability) -> Capacity | None:
    """Return the counts of the idle cluster; of each class of equal targets one target is counted.

    None if targets are in use, there are too many classes, or the request names targets.
    """
    classes = target_classes(avail.index, content) if avail.is_idle else None
    if classes is None:
        return None
    found = copies(content.needs, content.flat, avail.index.target_type, classes.first, avail)
    if content.node and content.exclusive:
        found = (found > 0).astype(np.int64)
    fits = classes.spread(found)
    if content.every:
        return Capacity(fits, int(found @ classes.sizes), int(classes.sizes[found > 0].sum()))
    fits = np.where(content.eligible, fits, 0)
    return Capacity(fits, int(fits.sum()), int(np.count_nonzero(fits)))


def copies_on_targets(content: Content, targets: Ordinals, avail: Availability) -> Integers:
    """Return how many copies of `content` each of `targets` can host; at most one if it claims the target."""
    kind = avail.index.target_type
    may = avail.up if targets is None else avail.up[targets]
    if not content.every:
        may = may & _at(content.eligible, targets)
    if content.alone or (content.node and content.exclusive):
        may = may & (_at(avail.use, targets) == 0)
        if not may.any():
            return np.zeros(len(may), dtype=np.int64)
    if content.node:
        may = may & ~_at(avail.held[kind], targets)
    found = copies(content.needs, content.flat, kind, targets, avail)
    if content.node and content.exclusive:
        return (may & (found > 0)).astype(np.int64)
    return np.where(may, found, 0)


def copies(
    needs: tuple[Need, ...],
    flat: tuple[tuple[str, int], ...] | None,
    above: str,
    scope: Ordinals,
    avail: Availability,
) -> Integers:
    """Return how many disjoint copies of all `needs` fit below each vertex of `scope` (type `above`).

    Each need is counted by itself and the least count is taken: exact if the needs do not compete.
    """
    parts = [] if flat is None else [_share(free_beneath(t, above, scope, avail), n) for t, n in flat]
    if flat is None:
        parts = [copies_of(need, above, scope, avail) for need in needs]
    if not parts:  # a bare target or vertex: nothing limits its copies
        return np.full(_length(above, scope, avail.index), MANY)
    found = parts[0]
    for part in parts[1:]:
        found = np.minimum(found, part)
    return found


def copies_of(need: Need, above: str, scope: Ordinals, avail: Availability) -> Integers:
    """Return how many disjoint copies of one need fit below each vertex of `scope`."""
    if need.kind == ABSENT:
        return np.zeros(_length(above, scope, avail.index), dtype=np.int64)
    if need.kind == POOL:
        return _share_units(need, above, scope, avail)
    if need.kind == SLOT:
        return _slot_copies(need, above, scope, avail)
    if above == EVERYWHERE and need.content is not None and (need.exclusive or need.amount == 1):
        # The sums over all targets are kept with the counts.  (A shared target that must be one of
        # several distinct ones is left to `spread`.)
        supply = capacity(need.content, avail)
        return np.array([supply.some // need.amount if need.exclusive else min(supply.total, MANY)])
    view = beneath(above, need.type, scope, avail.index)
    if need.exclusive:
        return _share(view.sum((hosts(need, view.ordinals, avail) > 0).astype(np.int64)), need.amount)
    return spread(hosts(need, view.ordinals, avail), view, need.amount)


def _slot_copies(need: Need, above: str, scope: Ordinals, avail: Availability) -> Integers:
    index = avail.index
    if need.content is None or above == index.target_type or _is_within(above, index):
        flat = need.flat if need.content is not None else None
        return _share(copies(need.children, flat, above, scope, avail), need.amount)
    # Each copy is within one target (M3), so the copies of several targets simply add up; pools
    # above the targets limit the sum.
    view = beneath(above, index.target_type, scope, index)
    found = view.sum(_at(capacity(need.content, avail).fits, view.ordinals))
    for child in need.children:
        if child.level == ABOVE:
            found = np.minimum(found, copies_of(child, above, scope, avail))
    return _share(found, need.amount)


def hosts(need: Need, ordinals: Ordinals, avail: Availability) -> Integers:
    """Return how many copies of a vertex need each vertex of its type can serve: 0 or 1 if exclusive (M4)."""
    if need.level == TARGET:
        assert need.content is not None
        return _at(capacity(need.content, avail).fits, ordinals)
    may = ~_at(avail.held[need.type], ordinals) & avail.is_up(need.type, ordinals)
    if need.level != ABOVE and not need.every:
        may &= need.eligible[_at(avail.index.vertex_types[need.type].target, ordinals)]
    if need.ids is not None or need.names is not None:
        vertices = avail.index.vertex_types[need.type]
        may &= _at(identified(vertices, need.ids, need.names), ordinals)
    if need.exclusive:
        may &= is_idle(need.type, ordinals, avail)
    if need.level == ABOVE and not need.every:
        may &= _reaches_eligible(need, ordinals, avail)
    # `flat` counts free units.  Above the targets the constraint excludes the units of some of them
    # (M7), so there the children are counted one by one.
    flat = need.flat if need.level != ABOVE else None
    found = copies(need.children, flat, need.type, ordinals, avail)
    return (may & (found > 0)).astype(np.int64) if need.exclusive else np.where(may, found, 0)


def is_idle(kind: str, ordinals: Ordinals, avail: Availability) -> Bools:
    """Say which vertices have nothing claimed in their whole subtree (M4)."""
    index = avail.index
    idle: Bools = ~_at(avail.held[kind], ordinals) & (_at(avail.shared[kind], ordinals) == 0)
    own = index.vertex_types[kind]
    # A target that no claim touches has idle vertices only: the common case needs no look inside.
    if own.level == BELOW and not avail.use[_at(own.target, ordinals)].any():
        return idle
    for name, vertices in index.vertex_types.items():
        if name in index.types_beneath(kind):
            view = beneath(kind, name, ordinals, index)
            busy = _at(avail.held[name], view.ordinals) | (_at(avail.shared[name], view.ordinals) > 0)
            if vertices.level == TARGET:
                busy |= _at(avail.use, view.ordinals) > 0
            idle &= view.sum(busy.astype(np.int64)) == 0
    for name in index.pool_types:
        if name in index.types_beneath(kind):
            view = beneath(kind, name, ordinals, index)
            idle &= view.sum(avail.taken(name, view.ordinals)) == 0
    return idle


def _reaches_eligible(need: Need, ordinals: Ordinals, avail: Availability) -> Bools:
    """Say which vertices above targets reach one that passes (M7); if claimed whole, all must pass."""
    index = avail.index
    view = beneath(need.type, index.target_type, ordinals, index)
    eligible = need.eligible
    passing = view.sum(_at(eligible, view.ordinals).astype(np.int64))
    size = view.high - view.low
    found: Bools = (passing == size) if need.whole else (passing > 0) | (size == 0)
    return found


# --- units ---------------------------------------------------------------------------------


def free_beneath(type_: str, above: str, scope: Ordinals, avail: Availability) -> Integers:
    """Return the free units of a pool type below each vertex of `scope`."""
    free = avail.free.get(type_)
    if free is None:
        return np.zeros(_length(above, scope, avail.index), dtype=np.int64)
    leaves = leaves_on_targets(avail.index, type_) if above == avail.index.target_type else None
    if leaves is not None:
        return leaves.sums(free, slice(None) if scope is None else scope)
    view = beneath(above, type_, scope, avail.index)
    return view.sum(_at(free, view.ordinals))


def _share_units(need: Need, above: str, scope: Ordinals, avail: Availability) -> Integers:
    """Return the copies of a pool need that fit; a shared one takes nothing and fits any number of times."""
    units = usable_units(need, avail)
    view = beneath(above, need.type, scope, avail.index)
    have = view.sum(_at(units, view.ordinals))
    if need.exclusive:
        return _share(have, need.amount)
    return np.where(have >= need.amount, MANY, 0)


def usable_units(need: Need, avail: Availability) -> Integers:
    """Return how many units of each leaf pool may serve a pool need."""
    pool = avail.index.pool_types[need.type]
    if not need.is_particular:
        found = avail.free[need.type] if need.exclusive else avail.shareable(need.type)
    elif pool.named:
        found = np.array([avail.usable_mask(need, leaf).bit_count() for leaf in range(len(pool))], np.int64)
    else:  # units without ids: only the name of their pool distinguishes them
        found = np.where(_serving_pools(need, pool, avail), avail.free[need.type], 0)
    if need.every:
        return found
    return np.where((pool.target < 0) | need.eligible[pool.target], found, 0)


def _serving_pools(need: Need, pool: PoolType, avail: Availability) -> Bools:
    """Say which leaf pools have the wanted name and kind (an empty pool has no vertex)."""
    row = np.ones(len(pool), dtype=np.bool_)
    if need.kinds:
        row &= avail.index.units_of_kinds(need.type, need.kinds).whole
    if need.names is not None or need.ids is not None:
        graph, wanted = avail.index.graph, need.names or frozenset()
        row &= np.array([any(pool_of(graph, key).name in wanted for key in keys[:1]) for keys in pool.keys])
    return row


# --- intervals -----------------------------------------------------------------------------


def beneath(above: str, below: str, scope: Ordinals, index: Index) -> View:
    """Return the vertices or leaf pools of type `below` under each vertex of `scope` (type `above`)."""
    if above == EVERYWHERE:
        return View(None, np.zeros(1, np.int64), np.array([len(index.positions(below)[0])]))
    return index.beneath(above, below, scope)


def members(above: str, vertex: int, below: str, index: Index) -> Integers:
    """Return the vertices or leaf pools of a type below one vertex, in graph order."""
    if above == EVERYWHERE:
        return np.arange(len(index.positions(below)[0]))
    return index.members(above, vertex, below)


def spread(values: Integers, view: View, distinct: int) -> Integers:
    """Return the largest number N of copies that can each take `distinct` different vertices.

    A vertex serves at most v copies, and each copy only once.  N is the largest number with
    sum(min(v, N)) >= distinct * N.  That sum grows ever more slowly with N, so bisection finds it.
    """
    if distinct == 1:
        return np.minimum(view.sum(values), MANY)
    lows, highs = view.low.tolist(), view.high.tolist()
    found = [_most_copies(values[a:b], distinct) for a, b in zip(lows, highs, strict=True)]
    return np.array(found, dtype=np.int64)


def _most_copies(values: Integers, distinct: int) -> int:
    if np.count_nonzero(values) < distinct:
        return 0
    low, high = 1, min(MANY, int(values.sum()) // distinct)
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(values, middle).sum()) >= distinct * middle:
            low = middle
        else:
            high = middle - 1
    return low


def _share(values: Integers, parts: int) -> Integers:
    return values if parts == 1 else values // parts


def _at(values: _Array, ordinals: Ordinals) -> _Array:
    return values if ordinals is None else values[ordinals]


def _length(above: str, scope: Ordinals, index: Index) -> int:
    if above == EVERYWHERE:
        return 1
    return len(index.positions(above)[0]) if scope is None else len(scope)


def _is_within(above: str, index: Index) -> bool:
    vertices = index.vertex_types.get(above)
    return vertices is not None and vertices.level not in (ABOVE, TARGET)
