"""`UnitsText`: the entries of R_lite, written from the numbers of a claim (RFC 20).

Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.match.kernel import integers, zeros
from simsched.match.state.masks import word_tables

if TYPE_CHECKING:
    from simsched.formats.rfc.idset import Idset
    from simsched.graph.index.index import Index

_encode = msgspec.json.Encoder().encode


class UnitsText:
    """Writes units on the targets of one cluster.

    A leaf pool is given by its place among those of all types (`Availability.units`).
    """

    def __init__(self, index: Index) -> None:
        targets: list[int] = []
        kinds: list[int] = []
        firsts: list[int] = []
        ids = array("q")
        begins: dict[Idset, int] = {}
        tables = word_tables(index)
        for number, pool in enumerate(index.pool_types.values()):
            targets += pool.target.tolist()
            kinds += [number] * len(pool)
            for own in pool.ids if pool.name in tables.rows else [None] * len(pool):
                if own is not None and own not in begins:
                    begins[own] = len(ids)
                    ids.extend(own.expand())
                firsts.append(-1 if own is None else begins[own])
        self.target, self.kind, self.first = integers(targets), integers(kinds), integers(firsts)
        """Leaf pool → its target (-1: none), its type, and the place of its first id in `ids` (-1: none)."""
        self.ids, self.word, self.rank = integers(ids), integers(tables.word), integers(index.ranks)
        self.names = [f",{_encode(name).decode()}:" for name in index.pool_types]
        self.place, self.seen, self.turn = zeros(len(index)), zeros(len(index)), 0
        """Target → its place in the present claim, and the turn (one for each type) that last wrote it."""

    def entries(self, targets: list[int], cells: Any, bits: Any) -> str | None:
        """Return what R_lite says of units on targets, which ascend; None where R is not plain.

        The leaf pools `cells` are in the order of their types' names; `bits` are the words of their masks.
        """
        texts = [""] * len(targets)
        for i in range(len(targets)):
            self.place[targets[i]] = i
        before, at, b, behind = -1, 0, 0, len(cells)
        text, of, was, until = "", -1, -1, -1
        while at < behind:
            cell = cells[at]
            n, kind = self.target[cell], self.kind[cell]
            if kind != before:
                before = kind
                self.turn += 1
            # Units above targets or without ids, and leaf pools of a target that do not follow one another.
            if n < 0 or self.first[cell] < 0 or self.seen[n] == self.turn:
                return None
            self.seen[n] = self.turn
            found, low, high = "", -1, -2
            while True:
                first = self.first[cell]
                for _ in range(self.word[cell], self.word[cell + 1]):
                    rest, unit = bits[b], first
                    while rest:
                        step = 1
                        if rest & 255 == 0:
                            step = 8
                        elif rest & 1:
                            id_ = self.ids[unit]
                            if rest & 255 == 255 and self.ids[unit + 7] == id_ + 7:
                                step = 8
                            if id_ != high + 1:
                                if id_ <= high:  # the ids of the leaf pools do not ascend
                                    return None
                                found = _with_run(found, low, high)
                                low = id_
                            high = id_ + step - 1
                        rest >>= step
                        unit += step
                    b += 1
                    first += 64
                at += 1
                if at == behind:
                    break
                cell = cells[at]
                if self.target[cell] != n or self.kind[cell] != kind:
                    break
            i = self.place[n]
            if i >= len(targets) or targets[i] != n:
                return None
            if found or kind != of or low != was or high != until:  # mostly as on the target before
                text = f'{self.names[kind]}"{_with_run(found, low, high)[1:]}"'
                of, was, until = -1 if found else kind, low, high
            texts[i] = texts[i] + text if texts[i] else text
        return self._grouped(targets, texts)

    def _grouped(self, targets: list[int], texts: list[str]) -> str:
        """Return one entry for all targets with the same units."""
        groups: dict[str, list[int]] = {}
        for i in range(len(texts)):
            groups.setdefault(texts[i], []).append(targets[i])
        entries = [
            f'{{"rank":"{self.ranks(some)}","children":{{{text[1:]}}}}}' for text, some in groups.items()
        ]
        return ",".join(entries)

    def ranks(self, targets: list[int]) -> str:
        """Return the ranks of targets as an idset; they ascend."""
        found, low, high = "", -1, -2
        for target in targets:
            rank = self.rank[target]
            if rank != high + 1:
                found = _with_run(found, low, high)
                low = rank
            high = rank
        return _with_run(found, low, high)[1:]


def _with_run(found: str, low: int, high: int) -> str:
    """Return an idset, with a comma before each range, and one more range; a negative one is none."""
    if low < 0:
        return found
    return f"{found},{low}-{high}" if low < high else f"{found},{low}"
