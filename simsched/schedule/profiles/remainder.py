"""The part of an availability that reservations leave, and whether a selection is free in a state.

A reservation is for resources that other jobs may hold until it begins. So it cannot be claimed; it is
set aside: the units that the later time does not need stay free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.graph.index.types import BELOW
from simsched.match.state.masks import highest_bits, listed
from simsched.match.state.selection import Draw, changed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from simsched.arrays import Integers
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

_NONE = np.empty(0, dtype=np.int64)


def beside(available: Availability, then: Availability, selection: Selection) -> Availability:
    """Return the part of `available` that is still left over once `selection` is claimed on `then`.

    Units of one leaf pool are interchangeable: if four units of it are free then and the selection takes
    three of them, any one unit may be used now.
    """
    keep = {type_: np.minimum(free, then.free[type_]) for type_, free in available.free.items()}
    for draw in selection.held:
        left = then.free[draw.type][draw.pools] - draw.units
        keep[draw.type][draw.pools] = np.minimum(keep[draw.type][draw.pools], left)
    return set_aside(available, (selection,), keep, counts_only=then.partial is None)


def set_aside(
    available: Availability,
    selections: Iterable[Selection],
    keep: Mapping[str, Integers],
    *,
    counts_only: bool = False,
    units: Mapping[str, Mapping[int, int]] | None = None,
) -> Availability:
    """Return a state with only `keep` units of each leaf pool free, and the selections' vertices claimed.

    The selections may name vertices and units that are claimed already. With `units` (pool type → leaf
    pool → mask) exactly these units are set aside where units have ids, regardless of `keep`.
    """
    left = available.copy(counts_only=counts_only)
    given = tuple(selections)
    for selection in given:
        holds = [
            changed(hold, ordinals=hold.ordinals[~left.held[hold.type][hold.ordinals]])
            for hold in selection.holds
            if hold.exclusive
        ]
        some = tuple(hold for hold in holds if len(hold.ordinals))
        if some or not selection.held:  # the targets of units are touched below
            left.claim(changed(selection, held=(), holds=some, shared=()))
    pools = left.index.pool_types
    draws = tuple(
        _over(left, type_, free)
        if units is None or not pools[type_].named
        else _exactly(left, type_, units.get(type_, {}))
        for type_, free in keep.items()
    )
    left.claim(changed(given[-1], targets=_touched(left, draws), held=draws, holds=(), shared=()))
    return left


def _touched(available: Availability, draws: Iterable[Draw]) -> Integers:
    """Return the targets on which units are set aside; no request can take these targets whole."""
    pools = available.index.pool_types
    targets = np.unique(np.concatenate([pools[draw.type].target[draw.pools] for draw in draws] or [_NONE]))
    return targets[targets >= 0]


def _exactly(available: Availability, type_: str, units: Mapping[int, int]) -> Draw:
    """Return a draw of those of some units (leaf pool → mask) that are free."""
    pool = available.index.pool_types[type_]
    free = {bank: mask & available.free_mask(pool, bank) for bank, mask in sorted(units.items())}
    return Draw.of_masks(type_, {bank: mask for bank, mask in free.items() if mask})


def _over(available: Availability, type_: str, keep: Integers) -> Draw:
    """Return a draw of the free units beyond `keep` of each leaf pool, the highest ids first."""
    pool = available.index.pool_types[type_]
    # After an overrun more may be reserved than the machine has; then `keep` is negative.
    over = available.free[type_] - np.maximum(keep, 0)
    banks = np.flatnonzero(over > 0)
    numbers = over[banks]
    masks = None
    if pool.named and available.partial is not None:
        masks = [
            highest_bits(available.free_mask(pool, bank), number)
            for bank, number in zip(banks.tolist(), numbers.tolist(), strict=True)
        ]
    return Draw(type_, banks, numbers, int(numbers.sum()), masks)


def is_free(available: Availability, selection: Selection) -> bool:
    """Whether a whole selection can be claimed: targets up, units free by their ids, vertices idle."""
    free_of = available.free
    if not available.up[selection.targets].all():
        return False
    if not all((free_of[draw.type][draw.pools] >= draw.units).all() for draw in selection.held):
        return False
    for hold in selection.holds:
        if available.held[hold.type][hold.ordinals].any():
            return False
        if hold.exclusive and available.shared[hold.type][hold.ordinals].any():
            return False
        # of vertices within targets the units tell; a job without units may be on a target or below a rack
        within = available.index.vertex_types[hold.type].level == BELOW
        if hold.exclusive and not within and available.use[selection.targets].any():
            return False
    if available.partial is None:
        return True
    for draw in (*selection.held, *selection.shared):
        pool, may_share = available.index.pool_types[draw.type], draw in selection.shared
        masks = () if draw.masks is None else listed(draw.masks)
        for leaf, mask in zip(draw.pools.tolist(), masks, strict=draw.masks is not None):
            free = available.free_mask(pool, leaf)
            for kind, other, unit in available.sharers if may_share else ():
                if kind == draw.type and other == leaf:
                    free |= 1 << unit
            if mask & ~free:
                return False
    return True
