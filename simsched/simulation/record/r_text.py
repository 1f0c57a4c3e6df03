"""R as JSON text, written directly from the arrays of selections, for most allocations.

`PlainText.resources` gives the same bytes as encoding `emit.document`, many times faster.  It applies if
R does not depend on single targets: hosts end in their ranks, ranks are in containment order, pools
have the same unit ids on every target, and there are no properties.  `emit.document` writes all others.

Many selections are written at once: their arrays are joined, so that the runs of ranks of all of them
are found with a few operations.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from simsched.match.emit import carried_topology, ids_of
from simsched.match.state.free_runs import RunSelection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools, Ints
    from simsched.match.state.free_runs import UnitKind
    from simsched.match.state.masks import Words
    from simsched.match.state.selection import Draw, Selection

MAX_KEPT = 4096
"""Most texts of units that are cached per combination of types."""

_encode = msgspec.json.Encoder().encode
_by_type = attrgetter("type")

_NO_PIECE = (-1, -1, 0)
"""Follows the last stretch of `RunSelection.pieces`."""


class _Runs(NamedTuple):
    """The targets of many selections as runs of consecutive ones.

    Attributes
    ----------
    texts : each run as ranks, such as ``4-7``.
    begins, ends : the runs of each selection.
    first : the place of the first target of each run in the joined targets.
    """

    texts: list[str]
    begins: list[int]
    ends: list[int]
    first: Ints


class PlainText:
    """Writes the R of plain selections on one cluster."""

    def __init__(self, index: Index) -> None:
        self._pools = index.pool_types
        ranks = np.arange(len(index)) + (index.ranks[0] if len(index) else 0)
        plain = not index.written_properties and bool((index.ranks == ranks).all())
        plain = plain and carried_topology(index) is None
        self._ranks = [str(rank) for rank in ranks.tolist()]
        self._upto = ["", *[f"-{rank}" for rank in self._ranks]]
        """The unit behind a run of targets → the text of the last one, as it follows that of the first."""
        prefix = index.host_prefix if plain and len(index) else None
        self._prefix = None if prefix is None else _encode(prefix).decode()[1:-1]
        self._types = {
            name for name, pool in self._pools.items() if pool.named and pool.aligned and pool.uniform_ids
        }
        self._children: dict[tuple[str, ...], dict[tuple[int, ...], str]] = {}
        """Drawn types → masks of those that are not whole → the text of the units."""
        self._of_mask: dict[int, str] = {}
        """Masks of the units on a target → their text, for runs of units (in a run all are of one kind)."""
        self._of_units: dict[tuple[int, ...], tuple[str, str, bool]] = {}
        """Runs of units → what `_grouped` returns, while texts are made: two in five are found again."""

    def resources(self, selections: Sequence[Selection]) -> list[str | None]:
        """Return ``"R_lite":…,"nodelist":…,"nslots":…`` of each selection; None where R is not plain."""
        found: list[str | None] = [None] * len(selections)
        alike: dict[tuple[str, ...], list[int]] = {}
        with_arrays: list[Selection | None] = [None] * len(selections)
        draws: list[tuple[Draw, ...]] = [()] * len(selections)
        runs = []
        for at, selection in enumerate(selections):
            if isinstance(selection, RunSelection):
                runs.append(selection)
                continue
            with_arrays[at] = selection
            drawn = self._plain_draws(selection)
            if drawn is not None:
                draws[at] = drawn
                kinds = tuple([draw.type if draw.masks is None else f"some {draw.type}" for draw in drawn])
                alike.setdefault(kinds, []).append(at)
        if len(runs) == len(selections):
            return self._of_runs(runs)
        for kinds, places in alike.items():
            group = [each for each in map(with_arrays.__getitem__, places) if each is not None]
            texts = self._entries(kinds, group, [draws[at] for at in places])
            for at, selection, (entries, hosts, single) in zip(places, group, texts, strict=True):
                found[at] = (
                    f'"R_lite":[{entries}],"nodelist":["{self._prefix}{hosts if single else f"[{hosts}]"}"],'
                    f'"nslots":{selection.slots or len(selection.targets)}'
                )
        if runs:
            of_runs = iter(self._of_runs(runs))
            for at, selection in enumerate(selections):
                if isinstance(selection, RunSelection):
                    found[at] = next(of_runs)
        return found

    def _of_runs(self, selections: Sequence[RunSelection]) -> list[str | None]:
        """Return the texts of runs of units; None where R is not plain."""
        text, prefix = self._ranks, self._prefix
        found: list[str | None] = []
        kind: UnitKind | None = None
        for selection in selections:
            if selection.kind is not kind:
                kind = selection.kind
                plain = prefix is not None and self._types.issuperset(kind.content)
                each = kind.each
                if plain and each == 1:
                    behind = f'","children":{self._units_of(kind, 1)}}}],"nodelist":["{prefix}'
            if not plain:
                found.append(None)
                continue
            runs, units = selection.runs, selection.units
            slots = selection.request.slots or units
            if each == 1:
                hosts = ranks = self._ranks_of(runs)
                if units != 1:
                    hosts = f"[{ranks}]"
                found.append(f'"R_lite":[{{"rank":"{ranks}{behind}{hosts}"],"nslots":{slots}')
                continue
            if len(runs) == 2 and (low := runs[0] // each) == (runs[1] - 1) // each:
                ranks, single = text[low], True
                mask = ((1 << units) - 1) << runs[0] - low * each
                entries = f'{{"rank":"{ranks}","children":{self._units_of(selection.kind, mask)}}}'
            else:
                key = tuple(runs)
                known = self._of_units.get(key)
                if known is None:
                    known = self._of_units[key] = self._grouped(selection)
                entries, ranks, single = known
            hosts = ranks if single else f"[{ranks}]"
            found.append(f'"R_lite":[{entries}],"nodelist":["{prefix}{hosts}"],"nslots":{slots}')
        self._of_units.clear()  # kept for longer, hardly more would be found again
        return found

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

    def _plain_draws(self, selection: Selection) -> tuple[Draw, ...] | None:
        """Return what R names, sorted by type; None if R is not plain."""
        targets, draws = selection.targets, selection.named
        if self._prefix is None or selection.unlisted is not None or not len(targets):
            return None
        for draw in draws:
            # one pool per target: only then the draw shares the array of the targets
            if draw.pools is not targets or draw.type not in self._types or isinstance(draw.masks, list):
                return None
        return draws if len(draws) <= 1 else tuple(sorted(draws, key=_by_type))

    def _entries(
        self, kinds: tuple[str, ...], selections: list[Selection], draws: list[tuple[Draw, ...]]
    ) -> Iterator[tuple[str, str, bool]]:
        """Yield the entries of R_lite, all ranks, and whether it is one rank, of selections of equal kinds.

        There is one entry for all ranks with equal units.
        """
        known = self._children.get(kinds)
        if known is None or len(known) >= MAX_KEPT:  # a full cache is emptied: bounded memory
            known = self._children[kinds] = {}
        counts = [len(selection.targets) for selection in selections]
        targets: Ints = np.concatenate([selection.targets for selection in selections])
        masked = [at for at, draw in enumerate(draws[0]) if draw.masks is not None]
        words: list[Words] = [np.concatenate([drawn[at].masks for drawn in draws]) for at in masked]
        ends = np.array(counts).cumsum()
        targets, words = _ascending(targets, words, ends)
        apart = np.ones(len(targets), dtype=np.bool_)
        np.not_equal(targets[1:] - targets[:-1], 1, out=apart[:-1])
        apart[ends - 1] = True
        hosts = self._runs(targets, apart, ends)
        differ = apart.copy()
        for row in words:
            differ[:-1] |= row[1:] != row[:-1]
        runs = self._runs(targets, differ, ends) if words else hosts
        units = list(zip(*[row[runs.first].tolist() for row in words], strict=True)) if words else []
        for at, count in enumerate(counts):
            groups: dict[tuple[int, ...], str] = {}
            ranks = ",".join(hosts.texts[hosts.begins[at] : hosts.ends[at]])
            if words:
                for run in range(runs.begins[at], runs.ends[at]):
                    key, text = units[run], runs.texts[run]
                    groups[key] = f"{groups[key]},{text}" if key in groups else text
            else:
                groups[()] = ranks
            entries = []
            for key, text in groups.items():
                children = known.get(key)
                if children is None:
                    children = known[key] = self._written(draws[at], key)
                entries.append(f'{{"rank":"{text}","children":{children}}}')
            yield ",".join(entries), ranks, count == 1

    def _runs(self, targets: Ints, apart: Bools, ends: Ints) -> _Runs:
        """Return the runs of targets; `apart` marks the last of each, `ends` the end of each selection."""
        text = self._ranks
        last = apart.nonzero()[0]
        first = np.zeros_like(last)
        first[1:] = last[:-1] + 1
        lows, highs = targets[first].tolist(), targets[last].tolist()
        texts = [
            text[low] if low == high else f"{text[low]}-{text[high]}"
            for low, high in zip(lows, highs, strict=True)
        ]
        upto = (last.searchsorted(ends - 1) + 1).tolist()
        return _Runs(texts, [0, *upto[:-1]], upto, first)

    def _written(self, draws: tuple[Draw, ...], masks: tuple[int, ...]) -> str:
        left, found = list(masks), {}
        for draw in draws:
            mask = -1 if draw.masks is None else left.pop(0)
            found[draw.type] = str(ids_of(self._pools[draw.type], int(draw.pools[0]), mask))
        return _encode(found).decode()


def _ascending(targets: Ints, words: list[Words], ends: Ints) -> tuple[Ints, list[Words]]:
    """Return joined targets and words with those of each selection in ascending order.

    They mostly are; policies such as highest-first select in descending order.
    """
    falls = targets[1:] < targets[:-1]
    falls[ends[:-1] - 1] = False  # from one selection to the next
    if not falls.any():
        return targets, words
    counts = np.diff(ends, prepend=0)
    order = np.lexsort((targets, np.repeat(np.arange(len(ends)), counts)))
    return targets[order], [row[order] for row in words]
