"""R as JSON text, written from the arrays of a selection: for what most jobs get.

`PlainText.of` gives the very bytes that encoding `emit.document` gives, many times as fast.
It does so where R needs no look at single targets: hosts that end in their ranks, ranks in
containment order, units of pools that have the same ids on every target, and no properties.
Everything else is for `emit.document`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from simsched.match.emit import ids_of

if TYPE_CHECKING:
    from simsched.graph.index import Index
    from simsched.graph.kinds import Ints
    from simsched.match.masks import Words
    from simsched.match.selection import Draw, Selection

MAX_KEPT = 4096
"""How many texts of units are remembered."""

_encode = msgspec.json.Encoder().encode


class PlainText:
    """Writes the R of plain selections on one cluster."""

    def __init__(self, index: Index) -> None:
        self._pools = index.pool_types
        self._first = int(index.ranks[0]) if len(index) else 0
        ranks = np.arange(self._first, self._first + len(index))
        plain = not index.written_properties and bool((index.ranks == ranks).all())
        prefix = index.host_prefix if plain and len(index) else None
        self._prefix = None if prefix is None else _encode(prefix).decode()[1:-1]
        self._types = {
            name for name, pool in self._pools.items() if pool.named and pool.aligned and pool.uniform_ids
        }
        self._children: dict[tuple[object, ...], str] = {}

    def of(self, selection: Selection, starttime: str, expiration: str, scheduler: str) -> bytes | None:
        """Return R as JSON; None where it is not plain.

        The times and what R says of the scheduler are given as JSON.
        """
        targets, draws = selection.targets, selection.named
        count = len(targets)
        if self._prefix is None or selection.unlisted is not None or not count:
            return None
        words: list[Words] = []
        for draw in draws:
            if draw.banks is not targets or draw.type not in self._types or isinstance(draw.masks, list):
                return None
            if draw.masks is not None:
                words.append(draw.masks)
        if len(draws) > 1:
            draws = tuple(sorted(draws, key=lambda draw: draw.type))
            words = [
                draw.masks for draw in draws if draw.masks is not None and not isinstance(draw.masks, list)
            ]
        if words:
            entries, hosts = self._entries(draws, targets, words)
        else:
            hosts = _joined(*self._runs(targets, ())[:2])
            entries = f'{{"rank":"{hosts}","children":{self._units(draws, ())}}}'
        return (
            f'{{"version":1,"execution":{{"R_lite":[{entries}],'
            f'"nodelist":["{self._prefix}{hosts if count == 1 else f"[{hosts}]"}"],'
            f'"nslots":{selection.slots or count},"starttime":{starttime},"expiration":{expiration}}},'
            f'"attributes":{{"system":{{"scheduler":{scheduler}}}}}}}'
        ).encode()

    def _runs(
        self, targets: Ints, words: list[Words] | tuple[()]
    ) -> tuple[list[int], list[int], list[list[int]]]:
        """Return runs of consecutive ranks with equal units: their first and last ranks, and their units."""
        steps = targets[1:] - targets[:-1]
        ends = steps != 1
        for row in words:
            ends |= row[1:] != row[:-1]
        last = ends.nonzero()[0]
        if len(last) and int(steps.min()) < 0:
            order = targets.argsort()
            return self._runs(targets[order], [row[order] for row in words])
        first = last + 1
        ranks = targets + self._first if self._first else targets
        low, high = ranks.item(0), ranks.item(-1)
        units = [[row.item(0), *row[first].tolist()] for row in words]
        return [low, *ranks[first].tolist()], [*ranks[last].tolist(), high], units

    def _entries(self, draws: tuple[Draw, ...], targets: Ints, words: list[Words]) -> tuple[str, str]:
        """Return the entries of R_lite, one for all ranks with equal units, and all ranks."""
        lows, highs, units = self._runs(targets, words)
        groups: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
        for low, high, key in zip(lows, highs, zip(*units, strict=True), strict=True):
            group = groups.get(key)
            if group is None:
                group = groups[key] = ([], [])
            group[0].append(low)
            group[1].append(high)
        entries = [
            f'{{"rank":"{_joined(*group)}","children":{self._units(draws, key)}}}'
            for key, group in groups.items()
        ]
        return ",".join(entries), _joined(lows, highs)

    def _units(self, draws: tuple[Draw, ...], masks: tuple[int, ...]) -> str:
        """Return the units of one target: type → ids; the masks are those of the draws that have some."""
        key = (*[draw.type if draw.masks is None else f"some {draw.type}" for draw in draws], *masks)
        known = self._children.get(key)
        if known is None:
            known = self._written(draws, masks)
            if len(self._children) >= MAX_KEPT:
                self._children.clear()
            self._children[key] = known
        return known

    def _written(self, draws: tuple[Draw, ...], masks: tuple[int, ...]) -> str:
        left, found = list(masks), {}
        for draw in draws:
            mask = -1 if draw.masks is None else left.pop(0)
            found[draw.type] = str(ids_of(self._pools[draw.type], int(draw.banks[0]), mask))
        return _encode(found).decode()


def _joined(lows: list[int], highs: list[int]) -> str:
    """Return ranges in ascending order as an idset; those that follow one another become one.

    >>> _joined([0, 4, 6, 9], [3, 5, 6, 9])
    '0-6,9'
    """
    low, high = lows[0], highs[0]
    if len(lows) == 1:
        return f"{low}-{high}" if high > low else str(low)
    parts = []
    for first, last in zip(lows, highs, strict=True):
        if first > high + 1:
            parts.append(f"{low}-{high}" if high > low else str(low))
            low = first
        high = last
    parts.append(f"{low}-{high}" if high > low else str(low))
    return ",".join(parts)
