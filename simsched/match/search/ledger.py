"""The claims of a search on top of an availability, which it can undo.

The availability itself is never changed.  Claims are appended to lists; a mark is their
lengths, and `undo` cuts them back to a mark.  A *cover* is a vertex that the search claims exclusively:
only the children of its own need may use its subtree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.index.types import ABOVE, TARGET
from simsched.match.search.counts import beneath, is_idle
from simsched.match.state.draws import finished
from simsched.match.state.masks import highest_bits, lowest_bits
from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from simsched.arrays import Bools, Integers
    from simsched.graph.index.reach import Spans
    from simsched.graph.index.types import PoolType
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """A vertex that the search claims exclusively, with everything that it reaches (`spans` of preorder)."""

    need: Need
    ordinal: int
    spans: Spans
    outer: Cover | None

    def covers(self, place: int) -> bool:
        """Whether a place in preorder is in the vertex's subtree."""
        return _lies_in(self.spans, place)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Units drawn from one leaf pool: a number of any, or particular ones, or shared ones."""

    type: str
    leaf: int
    units: int
    mask: int
    exclusive: bool
    cover: Cover | None


class Ledger:
    """Claims of one search on top of an `Availability`."""

    def __init__(self, avail: Availability, *, alone: bool, highest: bool = False) -> None:
        self.avail = avail
        self.index = avail.index
        self.alone = alone
        self._highest = highest
        self._pieces: list[_Piece] = []
        self._covers: list[Cover] = []
        self._shares: list[tuple[Need, int]] = []
        self._touched: list[int] = []
        self._places: list[int] = []
        self._idle: dict[str, Bools] = {}
        self._states: dict[tuple[str, int], object] = {}

    # --- marks ---------------------------------------------------------------------------

    def mark(self) -> tuple[int, ...]:
        """Return a mark of the present state for `undo`."""
        return tuple(len(entries) for entries in self._lists())

    def undo(self, mark: tuple[int, ...]) -> None:
        """Take back everything since `mark`."""
        for entries, length in zip(self._lists(), mark, strict=True):
            del entries[length:]

    def _lists(self) -> tuple[list[Any], ...]:
        return self._pieces, self._covers, self._shares, self._touched, self._places

    # --- questions -----------------------------------------------------------------------

    def blocked(self, place: int, cover: Cover | None) -> bool:
        """Whether a place is in a vertex that is claimed for another need than `cover`'s."""
        return any(c.covers(place) and not _is_within(cover, c) for c in self._covers)

    def free(self, type_: str, leaf: int, cover: Cover | None) -> int:
        """Return how many units of a leaf pool may still be drawn under `cover`."""
        if self.blocked(int(self.index.pool_types[type_].pos[leaf]), cover):
            return 0
        free = int(self.avail.free[type_][leaf])
        if not self._pieces:
            return free
        shared = 0
        for piece in self._pieces:
            if piece.leaf == leaf and piece.type == type_:
                free -= piece.units if piece.exclusive else 0
                shared |= 0 if piece.exclusive else piece.mask
        if shared:  # a unit that the search shares is free in the state below, but not to others
            free -= (shared & self.avail.free_mask(self.index.pool_types[type_], leaf)).bit_count()
        return free

    def drawable(self, need: Need, leaf: int, cover: Cover | None) -> int:
        """Return how many units of a leaf pool a need may still draw: none if the constraint fails."""
        target = int(self.index.pool_types[need.type].target[leaf])
        return self.free(need.type, leaf, cover) if target < 0 or need.eligible[target] else 0

    def units(self, need: Need, leaf: int, cover: Cover | None) -> list[int]:
        """Return the unit ordinals of a leaf pool that may serve a need for particular or shared units."""
        pool = self.index.pool_types[need.type]
        target = int(pool.target[leaf])
        if self.blocked(int(pool.pos[leaf]), cover) or (target >= 0 and not need.eligible[target]):
            return []
        mask = self.avail.usable_mask(need, leaf)
        drawn = shared = 0
        for piece in self._pieces:
            if piece.leaf == leaf and piece.type == need.type:
                if piece.mask and (piece.exclusive or need.exclusive):
                    mask &= ~piece.mask
                drawn += 0 if piece.mask else piece.units
                shared |= 0 if piece.exclusive else piece.mask
        # Draws of any units have no mask yet.  As long as a free unit is left over, they can be moved to
        # others than the one picked here; else only units that are shared already, or not free at all
        # in the state below, remain.
        if drawn and self.free(need.type, leaf, cover) < 1:
            mask &= shared | ~self.avail.free_mask(pool, leaf)
        return [unit for unit in range(mask.bit_length()) if mask >> unit & 1]

    def unit_state(self, need: Need, leaf: int, unit: int) -> object:
        """Return the facts in which two units of a leaf pool must agree to be exchangeable."""
        bit = 1 << unit
        free = bool(self.avail.free_mask(self.index.pool_types[need.type], leaf) & bit)
        mine = [p.cover for p in self._pieces if p.leaf == leaf and p.type == need.type and p.mask & bit]
        return leaf, free, tuple(map(id, mine))

    def total(self, type_: str) -> int:
        """Return the units of a pool that are free outside all covers."""
        if type_ not in self.index.pool_types:
            return 0
        free = self.avail.total[type_]
        for piece in self._pieces:
            if piece.type == type_ and piece.exclusive and piece.cover is None:
                free -= piece.units
        for cover in self._covers:
            if cover.outer is None:
                free -= int(self.avail.free[type_][self._beneath(cover, type_)].sum())
        return free

    def may_claim(self, need: Need, ordinal: int, cover: Cover | None) -> bool:
        """Whether a vertex need may claim this vertex now, its children aside."""
        vertices = self.index.vertex_types[need.type]
        target = int(vertices.target[ordinal])
        place = int(vertices.pos[ordinal])
        avail = self.avail
        if not avail.is_up(need.type)[ordinal] or self.blocked(place, cover):
            return False
        if target >= 0 and not (need.content.eligible if need.content else need.eligible)[target]:
            return False
        if not _is_identified(need, int(vertices.ids[ordinal]), vertices.names[ordinal]):
            return False
        if self.alone and target >= 0 and avail.use[target]:
            return False
        if target < 0 and not self._reaches(need, ordinal):
            return False
        if not need.exclusive:
            return not avail.held[need.type][ordinal]
        return bool(self._base_idle(need.type)[ordinal]) and not self._is_touched(need.type, ordinal)

    def _is_touched(self, kind: str, ordinal: int) -> bool:
        """Whether the search has claimed anything in a vertex's subtree."""
        spans = self.index.subtree(kind, ordinal)
        return any(_lies_in(spans, place) for place in self._places)

    def _reaches(self, need: Need, ordinal: int) -> bool:
        """Whether the constraint lets a vertex above the targets pass (M7)."""
        if need.every:
            return True
        eligible = need.eligible[self.index.members(need.type, ordinal, self.index.target_type)]
        return bool(eligible.all() if need.whole else eligible.any() or not len(eligible))

    def may_serve(self, need: Need, target: int, cover: Cover | None) -> bool:
        """Whether copies of a slot may be on this target, regardless of their content."""
        content = need.content
        if content is None or not content.eligible[target] or not self.avail.up[target]:
            return False
        if self.alone and self.avail.use[target]:
            return False
        return not self.blocked(int(self.index.vertex_types[self.index.target_type].pos[target]), cover)

    def _base_idle(self, kind: str) -> Bools:
        row = self._idle.get(kind)
        if row is None:
            row = self._idle[kind] = is_idle(kind, None, self.avail)
        return row

    def state(self, kind: str, ordinal: int) -> object:
        """Return the state of a vertex's subtree; a vertex that the search has touched equals no other."""
        if self._is_touched(kind, ordinal):
            return ordinal
        found = self._states.get((kind, ordinal))
        if found is None:
            found = self._states[kind, ordinal] = self._base_state(kind, ordinal)
        return found

    def _base_state(self, kind: str, ordinal: int) -> object:
        avail = self.avail
        first = int(self.index.vertex_types[kind].pos[ordinal])
        parts: list[object] = [self._vertex_state(kind, np.array([ordinal]))]
        for name in sorted(self.index.types_beneath(kind)):
            below = self.index.members(kind, ordinal, name)
            places = self.index.positions(name)[0][below] - first
            if name in avail.free:
                parts.append((name, avail.free[name][below].tobytes(), places.tobytes()))
            else:
                parts.append((name, self._vertex_state(name, below), places.tobytes()))
        return tuple(parts)

    def _vertex_state(self, kind: str, ordinals: Integers) -> object:
        avail = self.avail
        rows = [avail.held[kind], avail.shared[kind], avail.is_up(kind)]
        if self.index.vertex_types[kind].level == TARGET:
            rows.append(avail.use)
        return tuple(row[ordinals].tobytes() for row in rows)

    # --- claims --------------------------------------------------------------------------

    def hold(self, need: Need, ordinal: int, cover: Cover | None) -> Cover | None:
        """Claim a vertex; return the cover for its children."""
        vertices = self.index.vertex_types[need.type]
        place = int(vertices.pos[ordinal])
        self._places.append(place)
        if vertices.level != ABOVE:
            self._touched.append(int(vertices.target[ordinal]))
        if not need.exclusive:
            self._shares.append((need, ordinal))
            return cover
        found = Cover(need, ordinal, self.index.subtree(need.type, ordinal), cover)
        self._covers.append(found)
        return found

    def touch(self, target: int) -> None:
        """Note that an execution target is used."""
        self._touched.append(target)
        self._places.append(int(self.index.vertex_types[self.index.target_type].pos[target]))

    def draw(self, type_: str, leaf: int, units: int, cover: Cover | None) -> None:
        """Draw any units of a leaf pool."""
        self._add(_Piece(type_, leaf, units, 0, exclusive=True, cover=cover))

    def pick(self, need: Need, leaf: int, unit: int, cover: Cover | None) -> None:
        """Take one particular unit, or one unit to share."""
        self._add(_Piece(need.type, leaf, 1, 1 << unit, exclusive=need.exclusive, cover=cover))

    def _add(self, piece: _Piece) -> None:
        pool = self.index.pool_types[piece.type]
        self._pieces.append(piece)
        self._places.append(int(pool.pos[piece.leaf]))
        if pool.target[piece.leaf] >= 0:
            self._touched.append(int(pool.target[piece.leaf]))

    # --- the result ----------------------------------------------------------------------

    def selection(self, request: Request) -> Selection:
        """Return the claims as a selection."""
        named = self._drawn()
        whole = [c for c in self._covers if c.outer is None]
        alone = sorted(set(self._touched)) if self.alone else []
        loose = [
            (d, exclusive) for d, cover, exclusive in named if cover is None and not self._taken_whole(d)
        ]
        held = [draw for draw, exclusive in loose if exclusive]
        for cover in whole:
            held += self._everything(cover.need.type, [cover.ordinal])
        names = [draw for draw, _, _ in named]
        for cover in self._covers:
            if cover.need.whole:
                names += self._everything(cover.need.type, [cover.ordinal])
        for need, ordinal in self._shares:
            if need.whole:
                names += self._everything(need.type, [ordinal])
        if alone:
            held += self._everything(self.index.target_type, alone)
            names += self._everything(self.index.target_type, alone)
        listed = {*self._touched, *self._targets_below([c for c in self._covers if c.need.whole])}
        unlisted = sorted({*self._targets_below(whole)} - listed)
        return Selection(
            request=request,
            targets=np.array(sorted({*listed, *unlisted}), dtype=np.int64),
            held=finished(held, self.avail, highest=self._highest),
            named=finished(names, self.avail, highest=self._highest),
            holds=self._holds(whole),
            shared=tuple(draw for draw, exclusive in loose if not exclusive),
            slots=request.slots,
            counted=self.avail.partial is None,
            unlisted=np.array(unlisted, dtype=np.int64) if unlisted else None,
        )

    def _taken_whole(self, draw: Draw) -> bool:
        """Whether a draw is on a target that the job takes whole anyway."""
        return self.alone and bool((self.index.pool_types[draw.type].target[draw.pools] >= 0).all())

    def _drawn(self) -> list[tuple[Draw, Cover | None, bool]]:
        """Return the pieces as draws with their units chosen: particular ones first, then any free ones."""
        pick = highest_bits if self._highest else lowest_bits
        used: dict[tuple[str, int], int] = {}
        found = []
        for piece in sorted(self._pieces, key=lambda p: not p.mask):
            pool = self.index.pool_types[piece.type]
            key = (piece.type, piece.leaf)
            mask = piece.mask
            if not mask and self._knows_units(pool):
                left = self.avail.free_mask(pool, piece.leaf) & ~used.get(key, 0)
                mask = pick(left, piece.units)
            used[key] = used.get(key, 0) | mask
            units = np.array([piece.units])
            masks = [mask] if self._knows_units(pool) else None
            draw = Draw(piece.type, np.array([piece.leaf]), units, piece.units, masks)
            found.append((draw, piece.cover, piece.exclusive))
        return found

    def _everything(self, kind: str, ordinals: list[int]) -> list[Draw]:
        """Return all free units below some vertices."""
        found = []
        for name in self.index.pool_types:
            pools = beneath(kind, name, np.array(ordinals, dtype=np.int64), self.index).ordinals
            assert pools is not None
            units = self.avail.free[name][pools]
            some = np.flatnonzero(units)
            pools, units = pools[some], units[some]
            if len(pools):
                masks = self._all_free(name, pools)
                found.append(Draw(name, pools, units, int(units.sum()), masks))
        return found

    def _all_free(self, name: str, pools: Integers) -> list[int] | None:
        pool = self.index.pool_types[name]
        return (
            [self.avail.free_mask(pool, leaf) for leaf in pools.tolist()] if self._knows_units(pool) else None
        )

    def _knows_units(self, pool: PoolType) -> bool:
        return pool.named and self.avail.partial is not None

    def _targets_below(self, covers: list[Cover]) -> list[int]:
        kind = self.index.target_type
        below = [target for cover in covers for target in self._beneath(cover, kind).tolist()]
        return [target for target in below if self.avail.up[target]]

    def _beneath(self, cover: Cover, kind: str) -> Integers:
        return self.index.members(cover.need.type, cover.ordinal, kind)

    def _holds(self, whole: list[Cover]) -> tuple[Hold, ...]:
        found = [Hold(need.type, np.array([ordinal]), exclusive=False) for need, ordinal in self._shares]
        for cover in whole:
            found.append(Hold(cover.need.type, np.array([cover.ordinal]), exclusive=True))
            below = [(name, self._beneath(cover, name)) for name in self.index.vertex_types]
            found += [Hold(name, ordinals, exclusive=True) for name, ordinals in below if len(ordinals)]
        return tuple(found)


def _is_within(cover: Cover | None, outer: Cover) -> bool:
    while cover is not None:
        if cover is outer:
            return True
        cover = cover.outer
    return False


def _lies_in(spans: Spans, place: int) -> bool:
    return any(first <= place < last for first, last in spans)


def _is_identified(need: Need, number: int, name: str) -> bool:
    return (need.ids is None or number in need.ids) and (need.names is None or name in need.names)
