"""The state of a cluster at one instant: free units and claims, changed by whole selections.

The present state, the expected state at a job's shadow time, and the idle cluster are three
`Availability` objects, and matching treats them alike.  A claim costs time in proportion to the targets
that it touches, not to the size of the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from simsched.graph.index.types import ABOVE, TARGET
from simsched.match.kernel import NOT_FREE, change, shift, touch, view
from simsched.match.state.masks import each_of, give, listed, mask_at, take, word_tables
from simsched.match.state.placed import Placed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from simsched.arrays import Bools, Integers
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.kernel import Kernel
    from simsched.match.requests.request import Content, Need, Request
    from simsched.match.state.masks import Store, Words
    from simsched.match.state.selection import Draw, Hold, Selection


@dataclass(slots=True, eq=False)
class KeptCount:
    """The counts of one `Content` as of one version of a state; `search.counts` keeps them up to date.

    Attributes
    ----------
    fits : copies that each target can host.
    total : their sum.
    some : how many targets can host at least one.
    seen : the version of the state that they hold for.
    """

    fits: Integers
    total: int
    some: int
    seen: int


class StateKinds(Protocol):
    """The requests of a run, whose copies on each target a kernel counts (see `match.counted_kinds`)."""

    kernel: Kernel

    def capacity_of(self, content: Content) -> tuple[Integers, int, int] | None:
        """Return the copies of a content on each target, their sum, and the targets with any; or None."""

    def places(self, request: Request, policy: object) -> bool:
        """Whether the kernel places a request under a policy."""

    def select(self, request: Request) -> Selection | None:
        """Return the selection of a request that the kernel places, or None if it does not fit now."""

    def follow_status(self) -> None:
        """Note that targets went down or came up."""


_NOTHING: Integers = np.empty(0, np.int64)
_NO_WORDS: Words = np.empty(0, np.uint64)

_PLAIN = ("total", "use", "up", "held", "shared", "sharers", "hidden")
"""Attributes that a saved state has as they are."""

LOG_LIMIT = 4096
"""Changes that are remembered for counts to catch up; counts further behind are taken again from scratch."""


class Availability:
    """Free units per leaf pool, claims per vertex, and the counts derived from them.

    Parameters
    ----------
    index : the compiled cluster.
    ignore_status : treat everything as up (feasibility on the cluster as such, M11).

    Attributes
    ----------
    units : free units of each leaf pool, type by type: those of a type begin at ``places[type]``.
    free : pool type → free units per leaf pool, as a view of `units`.
    total : pool type → free units in all.
    use : claims that touch each target.
    up : which targets are up.
    held, shared : vertex type → which vertices are claimed exclusively; how many claims share each.
    partial : pool type → which units no claim has, as masks; None if this state only counts units.
    words : the masks of types with tables of words (see `masks`), of which `partial` has views; or None.
    sharers : (pool type, leaf pool, unit) → how many claims share it; a shared unit is not free.
    hidden : pool type → units that are neither free nor claimed, because their target is down.
    idle : which targets are up and unclaimed; computed on first use (`idle_targets`).
    counts, log, base : counts kept up to date (see `search.counts`), the targets touched by each change
        since there are counts, and the number of entries that the log has lost at its front.
    kinds : the requests of a run, whose copies on each target a kernel counts (see `counted_kinds`), or None.
    """

    def __init__(self, index: Index, *, ignore_status: bool = False) -> None:
        self.index = index
        self.ignores_status = ignore_status
        pools = index.pool_types
        free = [pool.size if ignore_status else np.where(pool.up, pool.size, 0) for pool in pools.values()]
        self.set_units(np.concatenate([_NOTHING, *free]))
        self.total: dict[str, int] = {name: int(free.sum()) for name, free in self.free.items()}
        self.set_words(word_tables(index).full.copy(), {})
        self.use: Integers = np.zeros(len(index), dtype=np.int64)
        self.up: Bools = np.ones(len(index), dtype=np.bool_) if ignore_status else index.up.copy()
        self.held: dict[str, Bools] = {n: np.zeros(len(v), np.bool_) for n, v in index.vertex_types.items()}
        self.shared: dict[str, Integers] = {
            n: np.zeros(len(v), np.int64) for n, v in index.vertex_types.items()
        }
        self.sharers: dict[tuple[str, int, int], int] = {}
        self.hidden: dict[str, Integers] = {}
        if not ignore_status and not all(p.up.all() for p in pools.values()):
            self.hidden = {name: np.where(p.up, 0, p.size) for name, p in pools.items()}
        self.idle: Bools | None = None
        self.log: list[Integers] = []
        self.base = 0
        self.counts: dict[Content, KeptCount] = {}
        self.kinds: StateKinds | None = None

    def set_units(self, units: Integers) -> None:
        """Set the free units of all leaf pools, and make the views of each type."""
        self.units, self.free, self.places = units, {}, word_tables(self.index).places
        for name, begin in self.places.items():
            self.free[name] = units[begin : begin + len(self.index.pool_types[name])]

    def set_words(self, words: Words | None, others: dict[str, dict[int, int]]) -> None:
        """Set which units no claim has: the words of all tables, and the masks of the other types."""
        self.words: Words | None = words
        self.partial: dict[str, Store] | None = None
        if words is not None:
            stores = word_tables(self.index).views(words)
            named = [name for name, pool in self.index.pool_types.items() if pool.named]
            self.partial = {name: stores[name] if name in stores else others.get(name, {}) for name in named}

    def count_only(self) -> None:
        """Forget which units are free: from now on this state only counts them."""
        self.set_words(None, {})

    def _others(self) -> dict[str, dict[int, int]]:
        """Return the masks of the types without a table of words."""
        return {name: store for name, store in (self.partial or {}).items() if isinstance(store, dict)}

    def arrays(self) -> tuple[Integers, Integers, npt.NDArray[np.uint8], Words, Integers]:
        """Return `units`, `use`, which targets are claimed whole, and `words`, which are changed in place.

        Behind them is the first word of each leaf pool (`WordTables.word`).
        """
        whole, word = self.held[self.index.target_type].view(np.uint8), word_tables(self.index).word
        if self.words is None:
            return self.units, self.use, whole, _NO_WORDS, np.zeros_like(word)
        return self.units, self.use, whole, self.words, word

    def copy(self, *, counts_only: bool = False) -> Availability:
        """Return an independent copy, without the derived counts.

        With `counts_only` the copy has the numbers of free units of a leaf pool but not their ids.  This
        suffices for a what-if, unless a request names units by `id` or shares them.
        """
        twin: Availability = Availability.__new__(Availability)
        twin.index = self.index
        twin.ignores_status = self.ignores_status
        twin.set_units(self.units.copy())
        twin.total = self.total.copy()
        words = None if counts_only or self.words is None else self.words.copy()
        twin.set_words(words, {name: store.copy() for name, store in self._others().items()})
        twin.use = self.use.copy()
        twin.up = self.up.copy()
        twin.held = {name: row.copy() for name, row in self.held.items()}
        twin.shared = {name: row.copy() for name, row in self.shared.items()}
        twin.sharers = self.sharers.copy()
        twin.hidden = {name: row.copy() for name, row in self.hidden.items()}
        twin.idle = None
        twin.log = []
        twin.base = 0
        twin.counts = {}
        twin.kinds = None
        return twin

    def state(self) -> dict[str, Any]:
        """Return all values that claims and status changes determine, without derived counts."""
        own = {name: getattr(self, name) for name in ("ignores_status", "free", "words", *_PLAIN)}
        return {**own, "masks": self._others()}

    @classmethod
    def from_state(cls, index: Index, state: Mapping[str, Any]) -> Availability:
        """Return the availability with a state, over the index that it was taken from."""
        made = cls(index, ignore_status=state["ignores_status"])
        made.set_units(np.concatenate([_NOTHING, *(state["free"][name] for name in index.pool_types)]))
        made.set_words(state["words"], state["masks"])
        for name in _PLAIN:
            setattr(made, name, state[name])
        return made

    # --- questions -----------------------------------------------------------------------

    def free_mask(self, pool: PoolType, leaf: int) -> int:
        """Return which units of a leaf pool are free, as a bit mask over its unit ordinals."""
        assert self.partial is not None, "this state only counts units"
        return mask_at(self.partial[pool.name], pool, leaf) if self.free[pool.name][leaf] else 0

    def is_up(self, kind: str, ordinals: Integers | None = None) -> Bools:
        """Return which vertices of a type (None: all) are up, each with the target that it is or is in."""
        vertices = self.index.vertex_types[kind]
        some = slice(None) if ordinals is None else ordinals
        row = (vertices.up if vertices.level == ABOVE else vertices.sound)[some]
        if self.ignores_status:
            row = np.ones_like(row)
        if vertices.level == ABOVE:
            return row
        up = self.up[vertices.target[some]]
        return up if vertices.level == TARGET else row & up

    def taken(self, name: str, pools: Integers | None = None) -> Integers:
        """Return how many units of each leaf pool (None: of all) are claimed, exclusively or shared."""
        some = slice(None) if pools is None else pools
        found: Integers = self.index.pool_types[name].size[some] - self.free[name][some]
        hidden = self.hidden.get(name)
        return found if hidden is None else found - hidden[some]

    def shareable(self, name: str) -> Integers:
        """Return how many units of each leaf pool are free or claimed shared only."""
        free = self.free[name]
        if self.sharers:
            free = free.copy()
            for leaf, _ in self._sharers_up(name):
                free[leaf] += 1
        return free

    def _sharers_up(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield leaf pool and unit of each shared claim on a pool type, except on targets that are down."""
        target = self.index.pool_types[name].target
        for kind, leaf, unit in self.sharers:
            if kind == name and (target[leaf] < 0 or self.up[target[leaf]]):
                yield leaf, unit

    def usable_mask(self, need: Need, leaf: int) -> int:
        """Return the units of a leaf pool that may serve a pool need, as a mask over unit ordinals."""
        pool = self.index.pool_types[need.type]
        mask = self.free_mask(pool, leaf)
        if not need.exclusive:
            for shared_leaf, unit in self._sharers_up(need.type):
                mask |= 1 << unit if shared_leaf == leaf else 0
        if need.ids is not None:
            mask &= sum(1 << i for i, unit in enumerate(pool.ids[leaf]) if unit in need.ids)
        if need.kinds:
            mask &= self.index.units_of_kinds(need.type, need.kinds).masks[leaf]
        if need.names is not None:
            names = self.index.unit_names(need.type, leaf)
            mask &= sum(1 << i for i, name in enumerate(names) if name in need.names)
        return mask

    @property
    def is_idle(self) -> bool:
        """Whether this is the idle cluster, with everything up and nothing claimed (see `idle_cluster`)."""
        return self.index.memo.get("idle") is self

    def idle_targets(self) -> Bools:
        """Return which targets are up and unclaimed; read-only, and kept up to date from now on."""
        idle = self.idle
        if idle is None:
            held = self.held[self.index.target_type]
            idle = self.idle = (self.use == 0) & self.up & ~held
        return idle

    @property
    def version(self) -> int:
        """A number that grows with every change while there are `counts`."""
        return self.base + len(self.log)

    def changed_since(self, version: int) -> Integers | None:
        """Return the targets touched since `version`, each once; None if the log starts later than that."""
        if version < self.base:
            return None
        missed = self.log[version - self.base :]
        if len(missed) == 1:
            return missed[0]
        return np.unique(np.concatenate(missed)) if missed else _NOTHING

    # --- changes -------------------------------------------------------------------------

    def claim(self, selection: Selection) -> int:
        """Claim a selection; it must have been selected on this very state.

        Returns how many of its targets have no other claim. ValueError if units of it are not free.
        """
        untouched = self._change(selection, -1)
        for draw in selection.shared:
            self._share_units(draw)
        for hold in selection.holds:
            self._hold(hold, 1)
        targets = selection.targets
        if self.idle is not None:
            self.idle[targets] = False
        self._note(targets, counted=isinstance(selection, Placed))
        if len(selection.holds) > 1:
            beyond = self._held_beyond(selection)
            if len(beyond):
                self._move_pools(beyond, reveal=False)
        return untouched

    def release(self, selection: Selection) -> int:
        """Release a selection; return how many of its targets have no claim any more."""
        untouched = self._change(selection, 1)
        for draw in selection.shared:
            self._unshare_units(draw)
        for hold in selection.holds:
            self._hold(hold, -1)
        targets = selection.targets
        if self.idle is not None:
            self._note_idle(selection)
        if self.hidden:
            self._hide(selection)
        self._note(targets, counted=isinstance(selection, Placed) and not self.hidden)
        if len(selection.holds) > 1:
            beyond = self._held_beyond(selection)
            if len(beyond):
                self._move_pools(beyond[self.up[beyond]], reveal=True)
                self._note(beyond)
        return untouched

    def _change(self, selection: Selection | Placed, sign: int) -> int:
        """Claim (-1) or release (1) units and targets; return how many targets have no other claim."""
        if isinstance(selection, Placed):
            return self._change_placed(selection, sign)
        total, pools, stores = self.total, self.index.pool_types, self.partial or {}
        for draw in selection.held:
            units, free, at, pool = draw.units, self.free[draw.type], draw.pools, pools[draw.type]
            if isinstance(units, int) and units == pool.uniform:  # whole leaf pools
                if sign < 0 and (free[at] != units).any():
                    raise ValueError(NOT_FREE)
                free[at] = units if sign > 0 else 0
            else:
                shift(free, at, each_of(units, len(at)), sign)
            total[draw.type] += sign * draw.amount
            if draw.type in stores and sign > 0:
                give(stores[draw.type], pool, at, draw.masks, word_tables(self.index).rows)
            elif draw.type in stores:
                take(stores[draw.type], pool, at, draw.masks)
        return touch(self.use, selection.targets, -sign)

    def _change_placed(self, placed: Placed, sign: int) -> int:
        """Claim or release what the kernel placed, as `_change`."""
        names, sums, total = placed.kind.names, placed.sums, self.total
        for at in range(len(sums)):
            total[names[at]] += sign * sums[at]
        if self.kinds is not None:
            return self.kinds.kernel.apply(placed.claim, placed.bits, sign)
        words, word = view(_NO_WORDS if self.words is None else self.words), word_tables(self.index).word
        return change(self.units, self.use, words, word, placed.claim, placed.bits, sign)

    def set_status(self, targets: Integers, *, up: bool) -> None:
        """Mark execution targets up or down; claims on them stay.

        Units of a target that is down are hidden: neither free nor claimed.  A target that comes up
        shows them again, unless a vertex above it was claimed exclusively while the target was down: then
        they belong to that claim, and its release shows them (`_held_beyond`).
        """
        changing = targets[self.up[targets] != up]
        self.up = self.up.copy()  # another array, so that whoever keeps values derived from it notices
        self.up[changing] = up
        self.idle = None
        if self.kinds is not None:
            self.kinds.follow_status()
        held = self.held[self.index.target_type]
        self._move_pools(changing[~held[changing] | (self.use[changing] > 0)] if up else changing, reveal=up)
        self._note(changing)

    def _move_pools(self, targets: Integers, *, reveal: bool) -> None:
        """Hide all free units of some targets, or show their hidden units."""
        for name, pool in self.index.pool_types.items():
            hidden = self.hidden.setdefault(name, np.zeros(len(pool), np.int64))
            pools = np.flatnonzero(np.isin(pool.target, targets))
            if reveal and not self.ignores_status:
                pools = pools[pool.sound[pools]]
            self._move(name, pools, hidden[pools].copy() if reveal else -self.free[name][pools], hidden)

    def _held_beyond(self, selection: Selection) -> Integers:
        """Return the targets that are claimed with a vertex above them and that the selection does not list.

        They were down at that time.  Once they are up, their units are free as soon as that vertex is.
        """
        types, kind = self.index.vertex_types, self.index.target_type
        holds = selection.holds
        for hold in holds:
            if hold.exclusive and types[hold.type].level == ABOVE:
                break
        else:
            return _NOTHING
        held = [hold.ordinals for hold in holds if hold.type == kind and hold.exclusive]
        return np.setdiff1d(np.concatenate([_NOTHING, *held]), selection.targets)

    def _move(self, name: str, pools: Integers, units: Integers, hidden: Integers) -> None:
        self.free[name][pools] += units
        self.total[name] += int(units.sum())
        hidden[pools] -= units

    def _hide(self, selection: Selection) -> None:
        """Hide units that were released on targets that are down."""
        down = selection.targets[~self.up[selection.targets]]
        for draw in (*selection.held, *selection.shared) if len(down) else ():
            pool = self.index.pool_types[draw.type]
            pools = draw.pools[np.isin(pool.target[draw.pools], down)]
            self._move(draw.type, pools, -self.free[draw.type][pools], self.hidden[draw.type])

    def _share_units(self, draw: Draw) -> None:
        """Claim units shared: the first to share a unit takes it from exclusive use.

        Units without ids cannot be distinguished, so that sharing them takes nothing from others.
        """
        if draw.masks is None:
            return
        for leaf, mask in zip(draw.pools.tolist(), listed(draw.masks), strict=True):
            for unit in _bits(mask):
                key = (draw.type, leaf, unit)
                self.sharers[key] = self.sharers.get(key, 0) + 1
                if self.sharers[key] == 1:
                    self._shift(draw.type, leaf, 1 << unit, -1)

    def _unshare_units(self, draw: Draw) -> None:
        if draw.masks is None:
            return
        for leaf, mask in zip(draw.pools.tolist(), listed(draw.masks), strict=True):
            for unit in _bits(mask):
                key = (draw.type, leaf, unit)
                self.sharers[key] -= 1
                if not self.sharers[key]:
                    del self.sharers[key]
                    self._shift(draw.type, leaf, 1 << unit, 1)

    def _shift(self, name: str, leaf: int, mask: int, sign: int) -> None:
        """Move one unit in or out of exclusive use."""
        pool = self.index.pool_types[name]
        assert self.partial is not None, "this state only counts units"
        if sign > 0:
            give(self.partial[name], pool, np.array([leaf]), [mask], word_tables(self.index).rows)
        else:
            take(self.partial[name], pool, np.array([leaf]), [mask])
        self.free[name][leaf] += sign
        self.total[name] += sign

    def _hold(self, hold: Hold, sign: int) -> None:
        if hold.exclusive:
            self.held[hold.type][hold.ordinals] = sign > 0
        else:
            self.shared[hold.type][hold.ordinals] += sign

    def _note_idle(self, selection: Selection) -> None:
        """Note which targets are idle once a selection is released."""
        assert self.idle is not None
        kind, targets = self.index.target_type, selection.targets
        self.idle[targets] = (self.use[targets] == 0) & self.up[targets] & ~self.held[kind][targets]
        if any(hold.type == kind and hold.ordinals is not targets for hold in selection.holds):
            self.idle = None  # targets that came up while a vertex above them was held

    def _note(self, targets: Integers, counted: bool = False) -> None:
        """Log that targets changed, for the counts that are kept; the kernel may have `counted` them.

        Without counts nothing is logged: the first count is taken of the state as it is.
        """
        if self.kinds is not None and not counted:
            self.kinds.kernel.recount(targets)
        if not self.counts:
            return
        self.log.append(targets)
        if len(self.log) > LOG_LIMIT:
            drop = LOG_LIMIT // 2
            del self.log[:drop]
            self.base += drop

    # --- invariants ----------------------------------------------------------------------

    def check(self) -> None:
        """Assert that counts, masks and totals agree."""
        for name, pool in self.index.pool_types.items():
            free = self.free[name]
            assert (free >= 0).all(), name
            assert (free <= pool.size).all(), name
            assert self.total[name] == int(free.sum()), name
            hidden = self.hidden.get(name)
            visible = free if hidden is None else free + hidden
            store = self.partial.get(name) if self.partial is not None else None
            if store is not None:
                for leaf, units in enumerate(visible.tolist()):
                    known = units or not isinstance(store, dict)
                    assert not known or mask_at(store, pool, leaf).bit_count() == units, (name, leaf)
        assert (self.use >= 0).all()
        if self.idle is not None:
            free = (self.use == 0) & self.up & ~self.held[self.index.target_type]
            assert (self.idle == free).all()
        assert all((row >= 0).all() for row in self.shared.values())


def idle_cluster(index: Index) -> Availability:
    """Return the state in which everything is up and nothing is claimed; never change it."""
    idle: Availability | None = index.memo.get("idle")
    if idle is None:
        idle = index.memo["idle"] = Availability(index, ignore_status=True)
    return idle


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
