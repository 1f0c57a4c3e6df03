"""Draws of units on a few targets, leaf pool by leaf pool.

Most jobs run on a few targets with a few leaf pools each. A loop over numbers takes them in half the time of
array operations, whose price hardly depends on the length of the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.state.masks import lowest_bits
from simsched.match.state.selection import Draw

if TYPE_CHECKING:
    from simsched.graph.index.target_leaves import TargetLeaves
    from simsched.graph.index.types import Ints, PoolType
    from simsched.match.state.availability import Availability

FEW = 6
"""Targets up to which the loop is faster."""


def drawn_in_turn(
    pool_type: PoolType, leaves: TargetLeaves, targets: Ints, units: Ints | int, avail: Availability
) -> Draw:
    """Draw ``units[i]`` units on each target, from its first leaf pool on, the lowest free units of each.

    The units are left open where the state only counts them, or where the draw takes whole leaf pools.
    """
    free = avail.free[leaves.type].item
    pools: list[int] = []
    given: list[int] = []
    whole = True
    wanted = [units] * len(targets) if isinstance(units, int) else units.tolist()
    amount = 0
    for left, of_target in zip(wanted, leaves.on_each(targets.tolist()), strict=True):
        amount += left
        for pool in of_target:
            have = free(pool)
            if have:
                if have > left:
                    have = left
                    whole = False
                pools.append(pool)
                given.append(have)
                left -= have  # noqa: PLW2901 - what the target's other leaf pools give
                if not left:
                    break
    at, numbers = np.array(pools, dtype=np.int64), np.array(given, dtype=np.int64)
    if avail.partial is None or not pool_type.named or (whole and _are_whole(pools, given, pool_type)):
        return Draw(leaves.type, at, numbers, amount)
    store = avail.partial[leaves.type]
    if isinstance(store, dict):
        return Draw(leaves.type, at, numbers, amount)
    masks = store[at]
    if not whole:
        for place, (pool, number) in enumerate(zip(pools, given, strict=True)):
            if number != free(pool):
                masks[place] = lowest_bits(masks.item(place), number)
    return Draw(leaves.type, at, numbers, amount, masks)


def _are_whole(pools: list[int], units: list[int], type_: PoolType) -> bool:
    """Whether all units of each leaf pool are drawn, none of which are in use."""
    if type_.uniform is not None:
        return all(number == type_.uniform for number in units)
    size = type_.size.item
    return all(number == size(pool) for pool, number in zip(pools, units, strict=True))
