"""R as JSON text, written directly from the arrays of selections, for most allocations.

`PlainText.text` gives the same bytes as encoding `emit.document`, many times faster.  It applies if
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
        self._then = [f",{rank}" for rank in self._numbers]
        self._upto = ["", *[f"-{rank}" for rank in self._numbers]]
        """The target behind a run of them → the text of the last one, as it follows that of the first."""
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
        if isinstance(selection, Placed):
            if selection.counted or not selection.kind.all_named:
                return None  # masks do not tell the units
            placed = selection  # of a C type where this is compiled
            cells, bits = placed.cells(), placed.bits
        else:
            found = self._claim_of(selection)
            if found is None:
                return None
            cells, bits = found[0], view(found[1])
        if self._units_text is None:
            self._units_text = UnitsText(self._index)
        targets: list[int] = sorted(selection.targets.tolist())
        entries = self._units_text.entries(targets, cells, bits)
        if entries is None:
            return None
        hosts, properties = self._place(*targets)
        slots = selection.slots or len(targets)
        return (
            f'{{"version":1,"execution":{{"R_lite":[{entries}],"nodelist":[{hosts}],"nslots":{slots},'
            f'"starttime":{begin},"expiration":{end}{properties}}}{last}'
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
        content = kind.content
        for name in content:
            if name not in self._types:
                return False
        return self._in_runs

    def _of_runs(self, selection: RunSelection, begin: str, end: str, last: str) -> str:
        kind, request, runs, units = selection.kind, selection.request, selection.runs, selection.units
        slots, each, upto = request.slots or units, kind.each, self._upto
        one = 1  # a word where this is compiled: nothing is shifted by all of its bits
        full = ((one << (each - 1)) - one) * 2 + one
        groups: dict[int, list[str]] = {}  # units on a target → the ranks that have them, in parts
        hosts: list[str] = []
        ranks = hosts
        at, low, before, latest = 0, 0, -1, one - one
        while at < len(runs):
            # The next targets: all that a run has whole, or one with the units of all runs on it.
            low, high = max(low, runs[at]), runs[at + 1]
            first, behind = low // each, high // each
            if low == first * each and first < behind:
                mask, low = full, behind * each
            else:
                behind, mask = first + 1, one - one
                while True:
                    stop = min(high, behind * each)
                    mask |= ((one << (stop - low)) - one) << (low - first * each)
                    low = stop
                    if low < high or at + 2 == len(runs) or runs[at + 2] >= behind * each:
                        break
                    at += 2
                    low, high = runs[at], runs[at + 1]
            if low == high:
                at += 2
            if first == before:
                hosts[len(hosts) - 1] = upto[behind]
            else:
                self._add(hosts, first, behind)
            if first == before and mask == latest:
                ranks[len(ranks) - 1] = upto[behind]
            else:
                if mask != latest:
                    ranks = groups.setdefault(mask, [])
                self._add(ranks, first, behind)
            before, latest = behind, mask
        place = "".join(hosts)
        entries = ",".join(
            [
                f'{{"rank":"{"".join(ranks)}","children":{self._units_of(kind, mask)}}}'
                for mask, ranks in groups.items()
            ]
        )
        opened, closed = ("", "") if len(hosts) == 2 and not hosts[1] else ("[", "]")
        return (
            f'{{"version":1,"execution":{{"R_lite":[{entries}],'
            f'"nodelist":[{self._prefix}{opened}{place}{closed}"],'
            f'"nslots":{slots},'
            f'"starttime":{begin},"expiration":{end}}}{last}'
        )

    def _add(self, ranks: list[str], first: int, behind: int) -> None:
        """Add a run of targets to ranks in parts, of which every second is the end of a range."""
        ranks.append(self._then[first] if ranks else self._ranks[first])
        ranks.append(self._upto[behind] if behind - first > 1 else "")

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
