"""R as JSON text, written directly from the arrays of selections, for most allocations.

`PlainText.resources` gives the same bytes as encoding `emit.document`, many times faster.  It applies if
ranks are in containment order and R names only units on execution targets; `emit.document` writes all others.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from simsched.match.emit import carried_topology, ids_of
from simsched.match.kernel import view
from simsched.match.state.masks import as_words, word_tables
from simsched.match.state.placed import Placed
from simsched.match.state.run_selection import RunSelection
from simsched.simulation.record.units_text import UnitsText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.state.masks import Words
    from simsched.match.state.run_selection import UnitKind
    from simsched.match.state.selection import Selection

MAX_KEPT = 4096
"""Most texts that are kept: of places, and of the units on a target."""

_encode = msgspec.json.Encoder().encode
_by_type = attrgetter("type")

_NO_CELLS: Integers = np.empty(0, np.int64)
_NO_WORDS: Words = np.empty(0, np.uint64)
_NO_PIECE = (-1, -1, 0)
"""Follows the last stretch of `RunSelection.pieces`."""


class PlainText:
    """Writes the R of plain selections on one cluster."""

    def __init__(self, index: Index) -> None:
        self._pools = index.pool_types
        self._index = index
        self._plain = index.ranks_ascend and carried_topology(index) is None
        self._numbers: list[int] = index.ranks.tolist()
        self._properties = [
            (_encode(name).decode(), row.tolist()) for name, row in index.written_properties.items()
        ]
        self._tables = word_tables(index)
        self._place = lru_cache(MAX_KEPT)(self._place_text)
        self._ranks = [str(rank) for rank in self._numbers]
        self._upto = ["", *[f"-{rank}" for rank in self._ranks]]
        """The unit behind a run of targets → the text of the last one, as it follows that of the first."""
        prefix = index.host_prefix if self._plain and len(index) else None
        self._prefix = None if prefix is None else _encode(prefix).decode().removesuffix('"')
        consecutive = len(index) > 0 and int(index.ranks.max()) - self._numbers[0] == len(index) - 1
        self._types = {
            name for name, pool in self._pools.items() if pool.named and pool.aligned and pool.uniform_ids
        }
        self._in_runs = self._prefix is not None and consecutive and not self._properties
        """Whether runs of targets are runs of ranks, and of hosts, and say all."""
        self._of_mask: dict[int, str] = {}
        """Masks of the units on a target → their text, for runs of units (in a run all are of one kind)."""
        self._units_text: UnitsText | None = None  # which runs of units on flat machines do not need

    def text(self, selection: Selection, begin: str, end: str, last: str) -> str | None:
        """Return an R that holds from begin to end, with what is `last` in it; None if it is not plain."""
        if isinstance(selection, RunSelection) and self._has_runs(selection.kind):
            return self._of_runs(selection, begin, end, last)
        return self._of_claim(selection, begin, end, last)

    def _of_claim(self, selection: Selection | Placed, begin: str, end: str, last: str) -> str | None:
        if not self._plain or selection.unlisted is not None or not len(selection.targets):
            return None
        found = selection.numbers() if isinstance(selection, Placed) else self._claim_of(selection)
        if found is None:
            return None
        if self._units_text is None:
            self._units_text = UnitsText(self._index)
        targets: list[int] = sorted(selection.targets.tolist())
        cells, bits = found
        entries = self._units_text.entries(targets, cells, view(bits))
        if entries is None:
            return None
        hosts, properties = self._place(*targets)
        slots = selection.slots or len(targets)
        return (
            f'{{"version":1,"execution":{{"R_lite":[{entries}],"nodelist":[{hosts}],"nslots":{slots},'
            f'"starttime":{begin},"expiration":{end}{properties}{last}'
        )

    def _claim_of(self, selection: Selection) -> tuple[Integers, Words] | None:
        """Return the leaf pools that a selection names, type by type, and its units; None without a table."""
        cells, bits = [_NO_CELLS], [_NO_WORDS]
        for draw in sorted(selection.named, key=_by_type):
            if draw.type not in self._tables.rows:
                return None
            rows = self._tables.rows[draw.type]
            cells.append(draw.pools + self._tables.places[draw.type])
            if draw.masks is None:
                bits.append(rows[draw.pools].ravel())
            else:
                bits.append(as_words(draw.masks, rows.shape[1]).ravel())
        return np.concatenate(cells), np.concatenate(bits)

    def _place_text(self, *targets: int) -> tuple[str, str]:
        """Return the hosts of targets, and what is behind the times: the properties."""
        units = self._units_text
        assert units is not None
        every = units.ranks([*targets])
        if self._prefix is not None:
            hosts = f'{self._prefix}{every if len(targets) == 1 else f"[{every}]"}"'
        else:
            hosts = _encode(self._index.host_encoder.encode(list(targets))).decode()
        properties = []
        for name, row in self._properties:
            having = [target for target in targets if row[target]]
            if having:
                properties.append(f'{name}:"{every if len(having) == len(targets) else units.ranks(having)}"')
        return hosts, f',"properties":{{{",".join(properties)}}}' if properties else ""

    def _has_runs(self, kind: UnitKind) -> bool:
        return self._in_runs and self._types.issuperset(kind.content)

    def _of_runs(self, selection: RunSelection, begin: str, end: str, last: str) -> str:
        kind, runs, units = selection.kind, selection.runs, selection.units
        slots, prefix, each = selection.request.slots or units, self._prefix, kind.each
        if each == 1:
            ranks = self._ranks_of(runs)
            entries, single = f'{{"rank":"{ranks}","children":{self._units_of(kind, 1)}}}', units == 1
        elif len(runs) == 2 and (low := runs[0] // each) == (runs[1] - 1) // each:
            ranks, single = self._ranks[low], True
            mask = ((1 << units) - 1) << runs[0] - low * each
            entries = f'{{"rank":"{ranks}","children":{self._units_of(kind, mask)}}}'
        else:
            entries, ranks, single = self._grouped(selection)
        opened, closed = ("", "") if single else ("[", "]")
        return (
            f'{{"version":1,"execution":{{"R_lite":[{entries}],"nodelist":[{prefix}{opened}{ranks}{closed}"],'
            f'"nslots":{slots},"starttime":{begin},"expiration":{end}{last}'
        )

    def _grouped(self, selection: RunSelection) -> tuple[str, str, bool]:
        """Return what `_entries` yields, for units on several targets or in several runs."""
        kind, text, of_mask = selection.kind, self._ranks, self._of_mask
        pieces = [*selection.pieces(), _NO_PIECE]
        low, last, before = pieces[0]
        hosts, behind = [low], last + 1
        groups: dict[int, str] = {}
        # each is written once it is known that the next one does not extend it
        for first, last, mask in pieces[1:]:
            if first != behind:
                hosts += (behind, first)
            elif mask == before:
                behind = last + 1
                continue
            ranks = text[low] if behind - low == 1 else f"{text[low]}-{text[behind - 1]}"
            groups[before] = f"{groups[before]},{ranks}" if before in groups else ranks
            low, behind, before = first, last + 1, mask
        hosts.pop()
        entries = [
            f'{{"rank":"{ranks}","children":{of_mask.get(mask) or self._units_of(kind, mask)}}}'
            for mask, ranks in groups.items()
        ]
        # of units that are alike on all targets, the ranks are those of all
        ranks = next(iter(groups.values())) if len(groups) == 1 else self._ranks_of(hosts)
        return ",".join(entries), ranks, len(hosts) == 2 and hosts[1] - hosts[0] == 1

    def _ranks_of(self, runs: list[int]) -> str:
        """Return runs of targets as ranks, such as ``0,4-7``."""
        text, upto = self._ranks, self._upto
        if len(runs) == 2:
            low, high = runs
            return text[low] if high - low == 1 else text[low] + upto[high]
        ends = iter(runs)
        return ",".join(
            [
                text[low] if high - low == 1 else text[low] + upto[high]
                for low, high in zip(ends, ends, strict=True)
            ]
        )

    def _units_of(self, kind: UnitKind, mask: int) -> str:
        """Return the text of the units on a target, those of a mask where a target has several."""
        known = self._of_mask.get(mask)
        if known is None:
            if len(self._of_mask) >= MAX_KEPT:
                self._of_mask.clear()
            single = mask if kind.each > 1 else -1
            found = {name: str(ids_of(self._pools[name], 0, single)) for name in sorted(kind.content)}
            known = self._of_mask[mask] = _encode(found).decode()
        return known
