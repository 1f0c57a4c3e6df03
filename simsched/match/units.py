"""Ids that policies order by: of free units, and the performance classes of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.request import POOL

if TYPE_CHECKING:
    from simsched.graph.index import Index, Ints, PoolType
    from simsched.match.allocate import Availability
    from simsched.match.request import Content

PERF_CLASS = "perf_class"
"""The property that tells a node's performance class: an integer, the lowest is the best."""

NO_CLASS = (1 << 15) - 1


def free_unit_ids(
    content: Content, targets: Ints, copy: Ints | None, avail: Availability, *, highest: bool = False
) -> Ints:
    """Return the id of the first unit that copy number `copy[i]` of `content` gets on ``targets[i]``.

    Judged by the first type (by name) of units that the content asks for; without units, the
    target's ordinal counts.
    """
    asked = _first_units(content, avail.index)
    if asked is None:
        return targets
    type_, units = asked
    pool = avail.index.pool_types[type_]
    low, high = avail.index.interval(avail.index.target_type, type_)
    known: dict[int, list[int]] = {}
    numbers = np.zeros(len(targets), dtype=np.int64) if copy is None else copy
    found = []
    for target, number in zip(targets.tolist(), numbers.tolist(), strict=True):
        ids = known.get(target)
        if ids is None:
            banks = (target,) if pool.aligned else range(int(low[target]), int(high[target]))
            ids = known[target] = sorted(
                (unit for bank in banks for unit in _free_ids(pool, bank, avail)), reverse=highest
            )
        at = number * units
        found.append(ids[at] if at < len(ids) else target)
    return np.array(found, dtype=np.int64)


def _first_units(content: Content, index: Index) -> tuple[str, int] | None:
    """Return the first pool type by name that a content draws units of, and how many a copy."""
    found = content.flat or sorted(
        (need.type, need.amount) for top in content.needs for need in top.walk() if need.kind == POOL
    )
    return next(((type_, units) for type_, units in found if index.pool_types[type_].named), None)


def _free_ids(pool: PoolType, bank: int, avail: Availability) -> list[int]:
    ids = pool.ids[bank].expand()
    if avail.free[pool.name][bank] == len(ids):
        return ids
    mask = avail.free_mask(pool, bank)
    return [unit for i, unit in enumerate(ids) if mask >> i & 1]


def performance_classes(kind: str, index: Index) -> Ints:
    """Return the performance class of each vertex of a type; a vertex without one comes last.

    A target's class is its property ``perf_class`` (``perf_class=2`` in an R); a vertex above
    the targets has the best class beneath it.
    """
    found: Ints | None = index.memo.get(f"classes of {kind}")
    if found is None:
        classes = np.full(len(index), NO_CLASS, dtype=np.int64)
        for name, row in index.property_rows.items():
            number = name.removeprefix(f"{PERF_CLASS}=")
            if number != name and number.isascii() and number.isdigit():
                classes[row] = np.minimum(classes[row], int(number))
        found = classes if kind == index.target_type else _best_beneath(kind, classes, index)
        index.memo[f"classes of {kind}"] = found
    return found


def _best_beneath(kind: str, classes: Ints, index: Index) -> Ints:
    low, high = index.interval(kind, index.target_type)
    best = [
        int(classes[a:b].min()) if b > a else NO_CLASS
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
    return np.array(best, dtype=np.int64)
