"""Draws of units: merging them by leaf pool, and choosing the lowest or highest free units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.state.masks import chosen, listed, set_units
from simsched.match.state.selection import Draw, Selection, changed, takes_whole_pools

if TYPE_CHECKING:
    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.graph.index.reach import View
    from simsched.match.state.availability import Availability


def finished(draws: list[Draw], avail: Availability, *, highest: bool = False) -> tuple[Draw, ...]:
    """Return one draw per pool type, each leaf pool once, with the lowest (or highest) free units chosen."""
    if len(draws) > 1:
        draws = _merged(draws, avail, highest=highest)
    return with_masks(draws, avail, highest=highest)


def with_masks(draws: list[Draw], avail: Availability, *, highest: bool = False) -> tuple[Draw, ...]:
    """Return draws, one per type, with the lowest (or highest) free units, unless the state only counts."""
    if avail.partial is not None:
        pools = avail.index.pool_types
        for at, draw in enumerate(draws):
            if draw.masks is None and pools[draw.type].named:
                draws[at] = _chosen(draw, avail, highest=highest)
    return tuple(draws)


def with_units(selection: Selection, avail: Availability, *, highest: bool = False) -> Selection:
    """Return a selection that was made on counts alone, with its units chosen among the free ones."""
    held = tuple(_chosen(draw, avail, highest=highest) for draw in selection.held)
    same = selection.named is selection.held
    named = held if same else tuple(_chosen(draw, avail, highest=highest) for draw in selection.named)
    return changed(selection, held=held, named=named, counted=False)


def _merged(draws: list[Draw], avail: Availability, *, highest: bool) -> list[Draw]:
    by_type: dict[str, list[Draw]] = {}
    for draw in draws:
        by_type.setdefault(draw.type, []).append(draw)
    return [
        parts[0] if len(parts) == 1 else _merge(parts, avail, highest=highest) for parts in by_type.values()
    ]


def _merge(parts: list[Draw], avail: Availability, *, highest: bool) -> Draw:
    """Add up draws of one type; a unit that is named twice counts once."""
    if any(part.masks is not None for part in parts):
        return _merge_masks(parts, avail, highest=highest)
    pools = np.concatenate([part.pools for part in parts])
    units = np.concatenate([np.broadcast_to(part.units, len(part.pools)) for part in parts])
    once, where = np.unique(pools, return_inverse=True)
    numbers = np.zeros(len(once), dtype=np.int64)
    np.add.at(numbers, where, units)
    # Without masks, a pool that is drawn whole and in part has been counted twice: it has no more to give.
    numbers = np.minimum(numbers, avail.free[parts[0].type][once])
    return Draw(parts[0].type, once, numbers, int(numbers.sum()))


def _merge_masks(parts: list[Draw], avail: Availability, *, highest: bool) -> Draw:
    masks: dict[int, int] = {}
    for part in parts:
        if part.masks is None:
            part = _chosen(part, avail, highest=highest, always=True)  # noqa: PLW2901 - the same draw, its units chosen
        assert part.masks is not None
        for leaf, mask in zip(part.pools.tolist(), listed(part.masks), strict=True):
            masks[leaf] = masks.get(leaf, 0) | mask
    return Draw.of_masks(parts[0].type, dict(sorted(masks.items())))


def _chosen(draw: Draw, avail: Availability, *, highest: bool, always: bool = False) -> Draw:
    """Return the draw with units chosen from each leaf pool; whole pools need masks only if `always`."""
    pool = avail.index.pool_types[draw.type]
    if not pool.named or (not always and takes_whole_pools(draw, pool)):
        return draw
    assert avail.partial is not None, "this state only counts units"
    masks = chosen(avail.partial[draw.type], pool, draw.pools, draw.units, highest=highest)
    return Draw(draw.type, draw.pools, draw.units, draw.amount, masks)


def ids_ascend(type_: str, index: Index) -> bool:
    """Whether unit ids ascend from pool to pool on every target, as they mostly do.

    The order of the leaf pools is then that of the ids.  Outside the targets each pool has its own ids,
    so there the order of the leaf pools decides anyway.
    """
    known: dict[str, bool] = index.memo.setdefault("ids ascend", {})
    if type_ not in known:
        pool = index.pool_types[type_]
        target = pool.target
        next_on_target = np.flatnonzero((target[1:] == target[:-1]) & (target[1:] >= 0)).tolist()
        known[type_] = not pool.named or all(
            not pool.ids[at] or not pool.ids[at + 1] or pool.ids[at].last < pool.ids[at + 1].first
            for at in next_on_target
        )
    return known[type_]


def drawn_by_ids(type_: str, view: View, units: Integers, avail: Availability, *, highest: bool) -> Draw:
    """Draw ``units[i]`` free units below each vertex of a view, the lowest (highest) ids first."""
    pool = avail.index.pool_types[type_]
    assert view.ordinals is not None
    masks: dict[int, int] = {}
    for low, high, number in zip(view.low.tolist(), view.high.tolist(), units.tolist(), strict=True):
        free = [
            (unit, leaf, bit)
            for leaf in view.ordinals[low:high].tolist()
            for bit, unit in set_units(pool.ids[leaf], avail.free_mask(pool, leaf))
        ]
        free.sort(reverse=highest)
        for _, leaf, bit in free[:number]:
            masks[leaf] = masks.get(leaf, 0) | 1 << bit
    return Draw.of_masks(type_, dict(sorted(masks.items())))
