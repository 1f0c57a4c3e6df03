"""R as JSON text, written directly from the arrays of a selection, for most allocations.

`PlainText.of` gives the same bytes as encoding `emit.document`, many times faster.  It applies if R
does not depend on single targets: hosts end in their ranks, ranks are in containment order, pools
have the same unit ids on every target, and there are no properties.  `emit.document` writes all others.
"""

from __future__ import annotations

from itertools import repeat
from operator import gt
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from simsched.match.emit import carried_topology, ids_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Ints
    from simsched.match.state.masks import Words
    from simsched.match.state.selection import Draw, Selection

MAX_KEPT = 4096
"""Most texts of units that are cached per combination of types."""

_encode = msgspec.json.Encoder().encode


class PlainText:
    """Writes the R of plain selections on one cluster."""

    def __init__(self, index: Index) -> None:
        self._pools = index.pool_types
        ranks = np.arange(len(index)) + (index.ranks[0] if len(index) else 0)
        plain = not index.written_properties and bool((index.ranks == ranks).all())
        plain = plain and carried_topology(index) is None
        self._ranks = [str(rank) for rank in ranks.tolist()]
        prefix = index.host_prefix if plain and len(index) else None
        self._prefix = None if prefix is None else _encode(prefix).decode()[1:-1]
        self._types = {
            name for name, pool in self._pools.items() if pool.named and pool.aligned and pool.uniform_ids
        }
        self._children: dict[tuple[str, ...], dict[tuple[int, ...], str]] = {}
        """Drawn types → masks of those that are not whole → the text of the units."""

    def of(self, selection: Selection, starttime: str, expiration: str, scheduler: str) -> bytes | None:
        """Return R as JSON; None if it is not plain.

        The times and the scheduler attributes are given as JSON.
        """
        targets, draws = selection.targets, selection.named
        count = len(targets)
        if self._prefix is None or selection.unlisted is not None or not count:
            return None
        if len(draws) > 1:
            draws = tuple(sorted(draws, key=lambda draw: draw.type))
        words: list[Words] = []
        for draw in draws:
            # one pool per target: only then the draw shares the array of the targets
            if draw.pools is not targets or draw.type not in self._types or isinstance(draw.masks, list):
                return None
            if draw.masks is not None:
                words.append(draw.masks)
        entries, hosts = self._entries(draws, targets, words)
        return (
            f'{{"version":1,"execution":{{"R_lite":[{entries}],'
            f'"nodelist":["{self._prefix}{hosts if count == 1 else f"[{hosts}]"}"],'
            f'"nslots":{selection.slots or count},"starttime":{starttime},"expiration":{expiration}}},'
            f'"attributes":{{"system":{{"scheduler":{scheduler}}}}}}}'
        ).encode()

    def _entries(self, draws: tuple[Draw, ...], targets: Ints, words: list[Words]) -> tuple[str, str]:
        """Return the entries of R_lite, one for all ranks with equal units, and all ranks."""
        kinds = tuple([draw.type if draw.masks is None else f"some {draw.type}" for draw in draws])
        known = self._children.get(kinds)
        if known is None or len(known) >= MAX_KEPT:  # a full cache is emptied: bounded memory
            known = self._children[kinds] = {}
        groups, hosts = self._grouped(targets, words)
        entries = []
        for key, ranks in groups.items():
            children = known.get(key)
            if children is None:
                children = known[key] = self._written(draws, key)
            entries.append(f'{{"rank":"{ranks}","children":{children}}}')
        return ",".join(entries), hosts

    def _grouped(self, targets: Ints, words: list[Words]) -> tuple[dict[tuple[int, ...], str], str]:
        """Return units → the ranks with these units, and all ranks."""
        text = self._ranks
        lows, highs, units = self._runs(targets, words)
        groups: dict[tuple[int, ...], str] = {}
        hosts = []
        begin = top = lows[0]
        for low, high, key in zip(lows, highs, units, strict=True):
            run = f"{text[low]}-{text[high]}" if high > low else text[low]
            groups[key] = f"{groups[key]},{run}" if key in groups else run  # runs of equal units never touch
            if low > top + 1:
                hosts.append(f"{text[begin]}-{text[top]}" if top > begin else text[begin])
                begin = low
            top = high
        hosts.append(f"{text[begin]}-{text[top]}" if top > begin else text[begin])
        return groups, ",".join(hosts)

    def _runs(
        self, targets: Ints, words: list[Words]
    ) -> tuple[list[int], list[int], Iterable[tuple[int, ...]]]:
        """Return runs of consecutive targets with equal units: the first and last of each, and the units."""
        if len(targets) == 1:
            alone = [targets.item()]
            return alone, alone, (tuple([row.item() for row in words]),)
        ends = targets[1:] - targets[:-1] != 1
        for row in words:
            ends |= row[1:] != row[:-1]
        last = ends.nonzero()[0]
        first = last + 1
        lows, highs = [targets.item(0), *targets[first].tolist()], [*targets[last].tolist(), targets.item(-1)]
        if any(map(gt, lows, lows[1:])):  # policies such as highest-first select in descending order
            order = targets.argsort()
            return self._runs(targets[order], [row[order] for row in words])
        if not words:
            return lows, highs, repeat((), len(lows))
        return lows, highs, zip(*[[row.item(0), *row[first].tolist()] for row in words], strict=True)

    def _written(self, draws: tuple[Draw, ...], masks: tuple[int, ...]) -> str:
        left, found = list(masks), {}
        for draw in draws:
            mask = -1 if draw.masks is None else left.pop(0)
            found[draw.type] = str(ids_of(self._pools[draw.type], int(draw.pools[0]), mask))
        return _encode(found).decode()
