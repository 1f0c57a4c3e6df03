"""The free units of each leaf pool: bit masks over unit ordinals, one store per pool type.

If no leaf pool has more than 64 units, the masks are machine words in one array (`Words`).
Larger leaf pools have Python integers, kept for pools that are neither full nor empty.  A leaf pool that
is taken whole without a mask keeps its old mask: a mask counts only while the pool has free units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.types import Ints, PoolType

    Words: TypeAlias = npt.NDArray[np.uint64]
    Masks: TypeAlias = list[int] | Words
    """Units of some leaf pools, one mask per leaf pool."""
    Store: TypeAlias = dict[int, int] | Words
    """The free units of all leaf pools of a pool type."""

WORD = 64
"""Bits of a machine word."""

Pick: TypeAlias = Callable[[int, int], int]
"""(free units as a mask, number) → the units that are taken."""


def everything(pool: PoolType) -> Store:
    """Return the masks of a pool type with all units free."""
    if not len(pool) or int(pool.size.max()) > WORD:
        return {}
    ones = np.full(len(pool), ~np.uint64(0))
    return np.where(pool.size > 0, ones >> (WORD - np.maximum(pool.size, 1)).astype(np.uint64), np.uint64(0))


def mask_at(store: Store, pool: PoolType, leaf: int) -> int:
    """Return the mask of a leaf pool that has free units."""
    return store.get(leaf, pool.full[leaf]) if isinstance(store, dict) else int(store[leaf])


def take(store: Store, pool: PoolType, pools: Ints, masks: Masks) -> None:
    """Take units of some leaf pools."""
    if not isinstance(store, dict):
        store[pools] &= ~(np.array(masks, dtype=np.uint64) if isinstance(masks, list) else masks)
        return
    full = pool.full
    for leaf, mask in zip(pools.tolist(), masks, strict=True):
        rest = store.pop(leaf, full[leaf]) & ~mask
        if rest:
            store[leaf] = rest


def give(store: Store, pool: PoolType, pools: Ints, masks: Masks) -> None:
    """Return units of some leaf pools to the store."""
    if not isinstance(store, dict):
        store[pools] |= np.array(masks, dtype=np.uint64) if isinstance(masks, list) else masks
        return
    full = pool.full
    for leaf, mask in zip(pools.tolist(), masks, strict=True):
        now = store.pop(leaf, 0) | mask
        if now != full[leaf]:
            store[leaf] = now


def chosen(store: Store, pool: PoolType, draw: tuple[Ints, Ints | int], free: Ints, pick: Pick) -> Masks:
    """Return the units that `pick` takes from some leaf pools, as masks.

    `draw` are the leaf pools and the number of units from each (or from all alike); `free` the free
    units of each leaf pool of the type.  Mostly all free units of a pool are taken, and its mask as it is
    is the answer.
    """
    pools, units = draw
    if isinstance(store, dict):
        full = pool.full
        numbers = [units] * len(pools) if isinstance(units, int) else units.tolist()
        have = [store.get(leaf) or full[leaf] for leaf in pools.tolist()]
        return [pick(mask, number) for mask, number in zip(have, numbers, strict=True)]
    words = store[pools]
    some = (free[pools] != units).nonzero()[0]  # pools of which not every free unit is taken
    if len(some) == 1:
        at = some.item()
        words[at] = pick(words.item(at), units if isinstance(units, int) else units.item(at))
    elif len(some):
        numbers = [units] * len(some) if isinstance(units, int) else units[some].tolist()
        picked = [pick(*pair) for pair in zip(words[some].tolist(), numbers, strict=True)]
        words[some] = np.array(picked, dtype=np.uint64)
    return words


def lowest_bits(mask: int, count: int) -> int:
    """Return the `count` lowest set bits of a mask that has at least that number.

    >>> bin(lowest_bits(0b1011010, 3))
    '0b11010'
    """
    # Mostly the lowest free units are consecutive: then they are one run from the lowest set bit.
    run = ((1 << count) - 1) * (mask & -mask)
    if run & mask == run:
        return run
    low, high = count, mask.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (mask & ((1 << middle) - 1)).bit_count() >= count:
            high = middle
        else:
            low = middle + 1
    return mask & ((1 << low) - 1)


def highest_bits(mask: int, count: int) -> int:
    """Return the `count` highest set bits of a mask that has at least that number.

    >>> bin(highest_bits(0b1011010, 3))
    '0b1011000'
    """
    spare = mask.bit_count() - count
    return mask & ~lowest_bits(mask, spare) if spare else mask


def set_units(ids: Idset, mask: int) -> Iterator[tuple[int, int]]:
    """Yield ordinal and id of the units in a mask over the unit ordinals of a leaf pool."""
    return ((at, unit) for at, unit in enumerate(ids) if mask >> at & 1)


def listed(masks: Masks) -> list[int]:
    """Return masks as Python integers."""
    return masks if isinstance(masks, list) else masks.tolist()
