"""Which units of each leaf pool no claim has: bit masks over unit ordinals, one store per pool type.

Up to `MAX_WIDTH` machine words for a leaf pool, the masks of a type are a table of words with a row for each
leaf pool, and the tables of all types are one array (`WordTables`). The kernel works on them. Types with
larger leaf pools have Python integers, kept for pools that are neither whole nor empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from simsched.match.kernel import NOT_FREE, choose_rows, view

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.arrays import Integers
    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType

    Words: TypeAlias = npt.NDArray[np.uint64]
    Masks: TypeAlias = list[int] | Words
    """Units of some leaf pools: one mask per leaf pool, or a row of words."""
    Store: TypeAlias = dict[int, int] | Words
    """The units of all leaf pools of a pool type that no claim has."""

WORD = 64
"""Bits of a machine word."""

MAX_WIDTH = 16
"""Words in a row at most: a table has a row for every leaf pool, also for those that are never touched."""


class WordTables(NamedTuple):
    """The tables of words of a cluster, one behind the other.

    Attributes
    ----------
    places : pool type → the place of its first leaf pool among those of all types.
    rows : pool type → its table while nothing is claimed; types with larger leaf pools have none.
    full : the words of all tables.
    word : place of a leaf pool → its first word; the last entry is the number of words.
    """

    places: dict[str, int]
    rows: dict[str, Words]
    full: Words
    word: Integers

    def views(self, words: Words) -> dict[str, Store]:
        """Return the tables in an array of all words."""
        found: dict[str, Store] = {}
        for name, row in self.rows.items():
            begin = self.word[self.places[name]]
            found[name] = words[begin : begin + row.size].reshape(row.shape)
        return found


def word_tables(index: Index) -> WordTables:
    """Return the tables of words of a cluster, which are kept with the index."""
    found: WordTables | None = index.memo.get("words")
    if found is None:
        places: dict[str, int] = {}
        rows: dict[str, Words] = {}
        widths, place = [np.zeros(1, dtype=np.int64)], 0
        for name, pool in index.pool_types.items():
            width = -(-int(pool.size.max(initial=1)) // WORD) if pool.named else 0
            if 0 < width <= MAX_WIDTH:
                rows[name] = as_words(list(pool.full), width)
            widths.append(np.full(len(pool), width if name in rows else 0))
            places[name] = place
            place += len(pool)
        full = np.concatenate([np.zeros(0, dtype=np.uint64), *(row.ravel() for row in rows.values())])
        found = index.memo["words"] = WordTables(places, rows, full, np.concatenate(widths).cumsum())
    return found


def as_words(masks: Masks, width: int) -> Words:
    """Return masks as rows of words."""
    if not isinstance(masks, list):
        return masks
    rows = b"".join([mask.to_bytes(8 * width, "little") for mask in masks])
    return np.frombuffer(rows, dtype="<u8").astype(np.uint64).reshape(-1, width)


def listed(masks: Masks) -> list[int]:
    """Return masks as Python integers."""
    if isinstance(masks, list):
        return masks
    width = masks.shape[1]
    if width == 1:
        found: list[int] = masks[:, 0].tolist()
        return found
    rows = masks.astype("<u8").tobytes()
    return [int.from_bytes(rows[at : at + 8 * width], "little") for at in range(0, len(rows), 8 * width)]


def mask_of(masks: Masks, at: int) -> int:
    """Return one of some masks as a Python integer."""
    return listed(masks[at : at + 1])[0]


def mask_at(store: Store, pool: PoolType, leaf: int) -> int:
    """Return the mask of a leaf pool that has free units."""
    return store.get(leaf, pool.full[leaf]) if isinstance(store, dict) else mask_of(store, leaf)


def take(store: Store, pool: PoolType, pools: Integers, masks: Masks | None) -> None:
    """Take units of some leaf pools; None: whole ones. ValueError if some are not there."""
    if not isinstance(store, dict):
        words = store[pools] if masks is None else as_words(masks, store.shape[1])
        if (words & ~store[pools]).any():
            raise ValueError(NOT_FREE)
        store[pools] &= ~words
        return
    if masks is None:
        return  # a mask counts only while the pool has free units
    full = pool.full
    for leaf, mask in zip(pools.tolist(), listed(masks), strict=True):
        free = store.pop(leaf, full[leaf])
        if mask & ~free:
            raise ValueError(NOT_FREE)
        rest = free & ~mask
        if rest:
            store[leaf] = rest


def give(store: Store, pool: PoolType, pools: Integers, masks: Masks | None, rows: dict[str, Words]) -> None:
    """Return units of some leaf pools to the store; None: whole ones, which are in `WordTables.rows`."""
    if not isinstance(store, dict):
        store[pools] |= rows[pool.name][pools] if masks is None else as_words(masks, store.shape[1])
        return
    if masks is None:
        return
    for leaf, mask in zip(pools.tolist(), listed(masks), strict=True):
        now = store.pop(leaf, 0) | mask
        if now != pool.full[leaf]:
            store[leaf] = now


def chosen(store: Store, pool: PoolType, pools: Integers, units: Integers | int, *, highest: bool) -> Masks:
    """Return the lowest (or highest) `units` that no claim has of each of some leaf pools."""
    numbers = each_of(units, len(pools))
    if isinstance(store, dict):
        pick = highest_bits if highest else lowest_bits
        have = [store.get(leaf) or pool.full[leaf] for leaf in pools.tolist()]
        return [pick(mask, number) for mask, number in zip(have, numbers.tolist(), strict=True)]
    words = store[pools]
    choose_rows(view(words.reshape(-1)), store.shape[1], numbers, highest)
    return words


def each_of(numbers: Integers | int, length: int) -> Integers:
    """Return one number per place from an array, or from one number for all places."""
    return np.full(length, numbers) if isinstance(numbers, int) else numbers


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
