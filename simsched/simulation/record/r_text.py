"""R as JSON text, written directly from the arrays of selections, for most allocations.

`PlainText.resources` gives the same bytes as encoding `emit.document`, many times faster.  It applies if
ranks are in containment order and R names only units on execution targets; `emit.document` writes all others.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import compress, repeat
from operator import attrgetter, or_
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from simsched.formats.rfc.idset import encode_ids
from simsched.match.emit import carried_topology, ids_of
from simsched.match.state.masks import listed
from simsched.match.state.run_selection import RunSelection, with_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.state.run_selection import UnitKind
    from simsched.match.state.selection import Selection

MAX_KEPT = 4096
"""Most texts of units that are cached per type."""

_encode = msgspec.json.Encoder().encode
_by_type = attrgetter("type")

_NO_PIECE = (-1, -1, 0)
"""Follows the last stretch of `RunSelection.pieces`."""


class Resources(NamedTuple):
    """The resources of an R as text: what is before its times, and what is behind them."""

    text: str
    properties: str


class _Leaves(NamedTuple):
    """What R says of the units of one pool type.

    Attributes
    ----------
    name : the type, as ``,"core":``.
    alike : each leaf pool → the first one with the same ids.
    text : leaf pools of a target, each followed by the mask of its units → the ids as text.
    each : leaf pools on each target, if all targets have the same number with the same ids; else 0.
    whole : the text of all of them.
    """

    name: str
    alike: list[int]
    text: Callable[..., str]
    each: int
    whole: str


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
        self._leaves = {name: _leaves(pool, len(index)) for name, pool in self._pools.items() if pool.named}
        self._ranks = [str(rank) for rank in self._numbers]
        self._upto = ["", *[f"-{rank}" for rank in self._ranks]]
        """The unit behind a run of targets → the text of the last one, as it follows that of the first."""
        prefix = index.host_prefix if self._plain and len(index) else None
        self._prefix = None if prefix is None else _encode(prefix).decode()[1:-1]
        consecutive = len(index) > 0 and self._numbers[-1] - self._numbers[0] == len(index) - 1
        self._types = {
            name for name, pool in self._pools.items() if pool.named and pool.aligned and pool.uniform_ids
        }
        self._in_runs = self._prefix is not None and consecutive and not self._properties
        """Whether runs of targets are runs of ranks, and of hosts, and say all."""
        self._of_mask: dict[int, str] = {}
        """Masks of the units on a target → their text, for runs of units (in a run all are of one kind)."""
        self._of_units: dict[tuple[int, ...], tuple[str, str, bool]] = {}
        """Runs of units → what `_grouped` returns, while texts are made: two in five are found again."""

    def resources(self, selections: Sequence[Selection]) -> list[Resources | None]:
        """Return ``"R_lite":…,"nodelist":…,"nslots":…`` and ``,"properties":…`` of each selection.

        None where R is not plain.
        """
        found: list[Resources | None] = []
        for selection in selections:
            if isinstance(selection, RunSelection) and self._has_runs(selection.kind):
                found.append(Resources(self._of_runs(selection), ""))
            else:
                found.append(self._of_draws(with_arrays(selection)))
        self._of_units.clear()  # kept for longer, hardly more would be found again
        return found

    def _of_draws(self, selection: Selection) -> Resources | None:
        """Return the texts of a selection target by target; None where R is not plain."""
        if not self._plain or selection.unlisted is not None or not len(selection.targets):
            return None
        targets: list[int] = sorted(selection.targets.tolist())
        texts: list[str | dict[int, str]] = []  # of each draw: the same for all targets, or target by target
        for draw in sorted(selection.named, key=_by_type):
            leaves = self._leaves.get(draw.type)
            if leaves is None:
                return None
            if draw.masks is None and len(draw.pools) == leaves.each * len(targets):
                texts.append(leaves.name + leaves.whole)
                continue
            on = self._pools[draw.type].target[draw.pools].tolist()
            masks = repeat(-1) if draw.masks is None else listed(draw.masks)
            units: dict[int, tuple[int, ...]] = {}
            for leaf, target, mask in zip(draw.pools.tolist(), on, masks):  # noqa: B905 (endless)
                here = leaves.alike[leaf], mask
                units[target] = (*units[target], *here) if target in units else here
            if -1 in units:
                return None
            texts.append({target: leaves.name + leaves.text(*parts) for target, parts in units.items()})
        ranks = [self._numbers[target] for target in targets]
        every = encode_ids(ranks)
        groups: dict[str, list[int]] = {}
        if all(isinstance(text, str) for text in texts):
            groups["".join(texts)] = ranks  # type: ignore[arg-type]
        else:
            for rank, target in zip(ranks, targets, strict=True):
                mine = "".join([text if isinstance(text, str) else text.get(target, "") for text in texts])
                groups.setdefault(mine, []).append(rank)
        entries = ",".join(
            f'{{"rank":"{every if len(groups) == 1 else encode_ids(members)}","children":{{{text[1:]}}}}}'
            for text, members in groups.items()
        )
        if self._prefix is not None:
            hosts = f'"{self._prefix}{every if len(targets) == 1 else f"[{every}]"}"'
        else:
            hosts = _encode(self._index.host_encoder.encode(targets)).decode()
        properties = []
        for name, row in self._properties:
            having = list(compress(ranks, map(row.__getitem__, targets)))
            if having:
                text = every if len(having) == len(ranks) else encode_ids(having)
                properties.append(f'{name}:"{text}"')
        return Resources(
            f'"R_lite":[{entries}],"nodelist":[{hosts}],"nslots":{selection.slots or len(targets)}',
            f',"properties":{{{",".join(properties)}}}' if properties else "",
        )

    def _has_runs(self, kind: UnitKind) -> bool:
        return self._in_runs and self._types.issuperset(kind.content)

    def _of_runs(self, selection: RunSelection) -> str:
        """Return the text of runs of units."""
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
            key = tuple(runs)
            known = self._of_units.get(key)
            if known is None:
                known = self._of_units[key] = self._grouped(selection)
            entries, ranks, single = known
        hosts = ranks if single else f"[{ranks}]"
        return f'"R_lite":[{entries}],"nodelist":["{prefix}{hosts}"],"nslots":{slots}'

    def _grouped(self, selection: RunSelection) -> tuple[str, str, bool]:
        """Return what `_entries` yields, for units on several targets or in several runs."""
        kind, text, of_mask = selection.kind, self._ranks, self._of_mask
        pieces = selection.pieces()
        low, last, before = next(pieces)
        hosts, behind = [low], last + 1
        groups: dict[int, str] = {}
        # each is written once it is known that the next one does not extend it
        for first, last, mask in (*pieces, _NO_PIECE):
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


def _leaves(pool: PoolType, targets: int) -> _Leaves:
    @lru_cache(MAX_KEPT)
    def text(*parts: int) -> str:
        ids = [ids_of(pool, leaf, mask) for leaf, mask in zip(parts[::2], parts[1::2], strict=True)]
        return f'"{reduce(or_, ids)}"'

    first: dict[Idset, int] = {}
    alike = [first.setdefault(ids, leaf) for leaf, ids in enumerate(pool.ids)]
    on: dict[int, tuple[int, ...]] = {}
    for target, leaf in zip(pool.target.tolist(), alike, strict=True):
        on[target] = (*on.get(target, ()), leaf, -1)
    parts = set(on.values())
    same = len(parts) == 1 and on.keys() == set(range(targets))
    each, whole = (len(one := parts.pop()) // 2, text(*one)) if same else (0, "")
    return _Leaves(f",{_encode(pool.name).decode()}:", alike, text, each, whole)
