"""The live state: what is free now, claimed and released by whole selections.

An `Availability` is a value of one instant; the matcher never knows which.  The state of
this moment, the expected state at a job's shadow time, and an idle machine are three
instances of it.  Costs are in the targets touched, never in the size of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.index.types import ABOVE, TARGET
from simsched.match.state.masks import everything, give, listed, mask_at, take

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools, Ints, PoolType
    from simsched.match.requests.request import Content, Need
    from simsched.match.search.counts import Capacity
    from simsched.match.state.masks import Store
    from simsched.match.state.selection import Draw, Hold, Selection

_NOTHING: Ints = np.empty(0, np.int64)

LOG_LIMIT = 4096
"""Changes remembered for counts that catch up; a count that fell further behind starts anew."""


class Availability:
    """Free units a bank, claims a vertex, and the counts derived from them.

    Parameters
    ----------
    index : the compiled cluster.
    ignore_status : treat everything as up (feasibility "on this cluster, whatever its state").

    Attributes
    ----------
    free : pool type → free units a bank.
    total : pool type → free units in all.
    use : claims that touch each target.
    up : which targets are up.
    """

    __slots__ = (
        "_hidden",
        "_idle",
        "base",
        "counts",
        "free",
        "held",
        "ignores_status",
        "index",
        "log",
        "partial",
        "shared",
        "sharers",
        "total",
        "up",
        "use",
    )

    def __init__(self, index: Index, *, ignore_status: bool = False) -> None:
        self.index = index
        self.ignores_status = ignore_status
        pools = index.pool_types
        self.free: dict[str, Ints] = {
            name: p.size.copy() if ignore_status else np.where(p.up, p.size, 0) for name, p in pools.items()
        }
        self.total: dict[str, int] = {name: int(free.sum()) for name, free in self.free.items()}
        self.partial: dict[str, Store] | None = {n: everything(p) for n, p in pools.items() if p.named}
        """Which units are free of the banks that are not taken whole; None: units are only counted."""
        self.use: Ints = np.zeros(len(index), dtype=np.int64)
        self.up: Bools = np.ones(len(index), dtype=np.bool_) if ignore_status else index.up.copy()
        self.held: dict[str, Bools] = {n: np.zeros(len(v), np.bool_) for n, v in index.vertex_types.items()}
        self.shared: dict[str, Ints] = {n: np.zeros(len(v), np.int64) for n, v in index.vertex_types.items()}
        self.sharers: dict[tuple[str, int, int], int] = {}
        """(pool type, bank, unit) → how many share it; a shared unit is not free."""
        self._hidden: dict[str, Ints] = {}
        """Pool type → units that are neither free nor taken, because their target is down."""
        if not ignore_status and not all(p.up.all() for p in pools.values()):
            self._hidden = {name: np.where(p.up, 0, p.size) for name, p in pools.items()}
        self._idle: Bools | None = None
        self.log: list[Ints] = []
        self.base = 0
        """How many entries the log has lost at its front."""
        self.counts: dict[Content, Capacity] = {}
        """Incrementally kept counts, by what they count (see `capacity`)."""

    def copy(self, *, counts_only: bool = False) -> Availability:
        """Return an independent copy; derived counts are made anew where they are asked for.

        With `counts_only` the copy does not know which units of a bank are free, only how many:
        all that a what-if needs unless a request names units by `id` or shares them.
        """
        twin: Availability = object.__new__(Availability)
        twin.index = self.index
        twin.ignores_status = self.ignores_status
        twin.free = {name: free.copy() for name, free in self.free.items()}
        twin.total = self.total.copy()
        twin.partial = None
        if not counts_only and self.partial is not None:
            twin.partial = {name: masks.copy() for name, masks in self.partial.items()}
        twin.use = self.use.copy()
        twin.up = self.up.copy()
        twin.held = {name: row.copy() for name, row in self.held.items()}
        twin.shared = {name: row.copy() for name, row in self.shared.items()}
        twin.sharers = self.sharers.copy()
        twin._hidden = {name: row.copy() for name, row in self._hidden.items()}
        twin._idle = None
        twin.log = []
        twin.base = 0
        twin.counts = {}
        return twin

    def state(self) -> dict[str, Any]:
        """Return all that claims and status changes have made of it; derived counts are left out."""
        return {
            "ignores_status": self.ignores_status,
            "free": self.free,
            "total": self.total,
            "partial": self.partial,
            "use": self.use,
            "up": self.up,
            "held": self.held,
            "shared": self.shared,
            "sharers": self.sharers,
            "hidden": self._hidden,
        }

    @classmethod
    def from_state(cls, index: Index, state: Mapping[str, Any]) -> Availability:
        """Return the availability with a state, over the index that it was taken from."""
        made = cls(index, ignore_status=state["ignores_status"])
        made.free = state["free"]
        made.total = state["total"]
        made.partial = state["partial"]
        made.use = state["use"]
        made.up = state["up"]
        made.held = state["held"]
        made.shared = state["shared"]
        made.sharers = state["sharers"]
        made._hidden = state["hidden"]
        return made

    # --- questions -----------------------------------------------------------------------

    def free_mask(self, pool: PoolType, bank: int) -> int:
        """Return which units of a bank are free, as a bit mask over its unit ordinals."""
        assert self.partial is not None, "this state only counts units"
        return mask_at(self.partial[pool.name], pool, bank) if self.free[pool.name][bank] else 0

    def is_up(self, kind: str, ordinals: Ints | None = None) -> Bools:
        """Return which vertices of a type (None: all) are up, each with the target it is or lies in."""
        vertices = self.index.vertex_types[kind]
        some = slice(None) if ordinals is None else ordinals
        row = (vertices.up if vertices.level == ABOVE else vertices.sound)[some]
        if self.ignores_status:
            row = np.ones_like(row)
        if vertices.level == ABOVE:
            return row
        up = self.up[vertices.target[some]]
        return up if vertices.level == TARGET else row & up

    def taken(self, name: str, banks: Ints | None = None) -> Ints:
        """Return how many units of each bank (None: of all) are claimed, exclusively or shared."""
        some = slice(None) if banks is None else banks
        found: Ints = self.index.pool_types[name].size[some] - self.free[name][some]
        hidden = self._hidden.get(name)
        return found if hidden is None else found - hidden[some]

    def shareable(self, name: str) -> Ints:
        """Return how many units of each bank are free or claimed shared only."""
        free = self.free[name]
        if self.sharers:
            free = free.copy()
            for bank, _ in self._sharers_up(name):
                free[bank] += 1
        return free

    def _sharers_up(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield bank and unit of what is claimed shared of a pool type, except on targets that are down."""
        target = self.index.pool_types[name].target
        for kind, bank, unit in self.sharers:
            if kind == name and (target[bank] < 0 or self.up[target[bank]]):
                yield bank, unit

    def usable_mask(self, need: Need, bank: int) -> int:
        """Return the units of a bank that may serve a pool need, as a mask over unit ordinals."""
        pool = self.index.pool_types[need.type]
        mask = self.free_mask(pool, bank)
        if not need.exclusive:
            for shared_bank, unit in self._sharers_up(need.type):
                mask |= 1 << unit if shared_bank == bank else 0
        if need.ids is not None:
            mask &= sum(1 << i for i, unit in enumerate(pool.ids[bank]) if unit in need.ids)
        if need.names is not None:
            names = self.index.unit_names(need.type, bank)
            mask &= sum(1 << i for i, name in enumerate(names) if name in need.names)
        return mask

    @property
    def is_idle(self) -> bool:
        """Whether this is the machine as such, all of it up and nothing claimed (see `idle_cluster`)."""
        return self.index.memo.get("idle") is self

    def idle_targets(self) -> Bools:
        """Return which targets are up and touched by no claim; read-only, and kept up to date from now on."""
        idle = self._idle
        if idle is None:
            held = self.held[self.index.target_type]
            idle = self._idle = (self.use == 0) & self.up & ~held
        return idle

    @property
    def version(self) -> int:
        """A number that grows with every change while there are `counts`."""
        return self.base + len(self.log)

    def changed_since(self, version: int) -> Ints | None:
        """Return the targets touched since `version`, each once; None: too long ago to tell."""
        if version < self.base:
            return None
        missed = self.log[version - self.base :]
        if len(missed) == 1:
            return missed[0]
        return np.unique(np.concatenate(missed)) if missed else _NOTHING

    # --- changes -------------------------------------------------------------------------

    def claim(self, selection: Selection, *, alone: bool = False) -> int:
        """Take what a selection names; it must have been selected on this very state.

        Returns how many targets nobody else touches.  `alone` promises that this is so of all,
        so that nothing need be looked up.
        """
        pools = self.index.pool_types
        for draw in selection.held:
            units, free = draw.units, self.free[draw.type]
            if isinstance(units, int) and units == pools[draw.type].uniform:  # whole banks
                free[draw.banks] = 0
            else:
                free[draw.banks] -= units
            self.total[draw.type] -= draw.amount
            if draw.masks is not None and self.partial is not None:
                take(self.partial[draw.type], pools[draw.type], draw.banks, draw.masks)
        for draw in selection.shared:
            self._share_units(draw)
        for hold in selection.holds:
            self._hold(hold, 1)
        targets = selection.targets
        untouched = len(targets)
        if alone:
            self.use[targets] = 1
        else:
            before = self.use[targets]
            untouched -= len(before.nonzero()[0])
            self.use[targets] = before + 1
        if self._idle is not None:
            self._idle[targets] = False
        self._note(targets)
        if len(selection.holds) > 1:
            beyond = self._held_beyond(selection)
            if len(beyond):
                self._move_banks(beyond, reveal=False)
        return untouched

    def release(self, selection: Selection, *, alone: bool = False) -> int:
        """Give back what a selection took; return how many targets nobody touches any more."""
        pools = self.index.pool_types
        for draw in selection.held:
            units, free = draw.units, self.free[draw.type]
            if isinstance(units, int) and units == pools[draw.type].uniform:  # whole banks
                free[draw.banks] = units
            else:
                free[draw.banks] += units
            self.total[draw.type] += draw.amount
            if draw.masks is not None and self.partial is not None:
                give(self.partial[draw.type], pools[draw.type], draw.banks, draw.masks)
        for draw in selection.shared:
            self._unshare_units(draw)
        for hold in selection.holds:
            self._hold(hold, -1)
        targets = selection.targets
        untouched = len(targets)
        if alone:
            self.use[targets] = 0
        else:
            after = self.use[targets] - 1
            untouched -= len(after.nonzero()[0])
            self.use[targets] = after
        if self._idle is not None:
            self._note_idle(selection, alone=alone)
        if self._hidden:
            self._hide(selection)
        self._note(targets)
        if len(selection.holds) > 1:
            beyond = self._held_beyond(selection)
            if len(beyond):
                self._move_banks(beyond[self.up[beyond]], reveal=True)
                self._note(beyond)
        return untouched

    def set_status(self, targets: Ints, *, up: bool) -> None:
        """Mark execution targets up or down; what runs on them is not touched."""
        changing = targets[self.up[targets] != up]
        self.up[changing] = up
        self._idle = None
        held = self.held[self.index.target_type]
        self._move_banks(changing[~held[changing] | (self.use[changing] > 0)] if up else changing, reveal=up)
        self._note(changing)

    def _move_banks(self, targets: Ints, *, reveal: bool) -> None:
        """Hide all free units of some targets, or show again what is hidden."""
        for name, pool in self.index.pool_types.items():
            hidden = self._hidden.setdefault(name, np.zeros(len(pool), np.int64))
            banks = np.flatnonzero(np.isin(pool.target, targets))
            if reveal and not self.ignores_status:
                banks = banks[pool.sound[banks]]
            self._move(name, banks, hidden[banks].copy() if reveal else -self.free[name][banks], hidden)

    def _held_beyond(self, selection: Selection) -> Ints:
        """Return the targets that are held with a vertex above them and that the selection does not touch.

        They were down.  Once they are up, their units are free as soon as that vertex is.
        """
        types, kind = self.index.vertex_types, self.index.target_type
        holds = selection.holds
        if not any(h.exclusive and types[h.type].level == ABOVE for h in holds):
            return _NOTHING
        held = [hold.ordinals for hold in holds if hold.type == kind and hold.exclusive]
        return np.setdiff1d(np.concatenate([_NOTHING, *held]), selection.targets)

    def _move(self, name: str, banks: Ints, units: Ints, hidden: Ints) -> None:
        self.free[name][banks] += units
        self.total[name] += int(units.sum())
        hidden[banks] -= units

    def _hide(self, selection: Selection) -> None:
        """Keep units that come back on targets that are down from being free."""
        down = selection.targets[~self.up[selection.targets]]
        for draw in (*selection.held, *selection.shared) if len(down) else ():
            pool = self.index.pool_types[draw.type]
            banks = draw.banks[np.isin(pool.target[draw.banks], down)]
            self._move(draw.type, banks, -self.free[draw.type][banks], self._hidden[draw.type])

    def _share_units(self, draw: Draw) -> None:
        """Claim units shared: the first to share a unit takes it from exclusive use.

        Units without ids cannot be told apart, so that sharing them takes nothing away.
        """
        if draw.masks is None:
            return
        for bank, mask in zip(draw.banks.tolist(), listed(draw.masks), strict=True):
            for unit in _bits(mask):
                key = (draw.type, bank, unit)
                self.sharers[key] = self.sharers.get(key, 0) + 1
                if self.sharers[key] == 1:
                    self._shift(draw.type, bank, 1 << unit, -1)

    def _unshare_units(self, draw: Draw) -> None:
        if draw.masks is None:
            return
        for bank, mask in zip(draw.banks.tolist(), listed(draw.masks), strict=True):
            for unit in _bits(mask):
                key = (draw.type, bank, unit)
                self.sharers[key] -= 1
                if not self.sharers[key]:
                    del self.sharers[key]
                    self._shift(draw.type, bank, 1 << unit, 1)

    def _shift(self, name: str, bank: int, mask: int, sign: int) -> None:
        """Move one unit in or out of exclusive use."""
        pool = self.index.pool_types[name]
        assert self.partial is not None, "this state only counts units"
        (give if sign > 0 else take)(self.partial[name], pool, np.array([bank]), [mask])
        self.free[name][bank] += sign
        self.total[name] += sign

    def _hold(self, hold: Hold, sign: int) -> None:
        if hold.exclusive:
            self.held[hold.type][hold.ordinals] = sign > 0
        else:
            self.shared[hold.type][hold.ordinals] += sign

    def _note_idle(self, selection: Selection, *, alone: bool) -> None:
        """Note which targets are idle once a selection is given back."""
        assert self._idle is not None
        kind, targets = self.index.target_type, selection.targets
        if alone:
            self._idle[targets] = self.up[targets]
            return
        self._idle[targets] = (self.use[targets] == 0) & self.up[targets] & ~self.held[kind][targets]
        if any(hold.type == kind and hold.ordinals is not targets for hold in selection.holds):
            self._idle = None  # targets that came up while a vertex above them was held

    def _note(self, targets: Ints) -> None:
        """Remember that targets changed, for the counts that there are."""
        if not self.counts:
            return
        self.log.append(targets)
        if len(self.log) > LOG_LIMIT:
            drop = LOG_LIMIT // 2
            del self.log[:drop]
            self.base += drop

    # --- invariants ----------------------------------------------------------------------

    def _check(self) -> None:
        """Assert that counts, masks and totals tell one story."""
        for name, pool in self.index.pool_types.items():
            free = self.free[name]
            assert (free >= 0).all(), name
            assert (free <= pool.size).all(), name
            assert self.total[name] == int(free.sum()), name
            hidden = self._hidden.get(name)
            visible = free if hidden is None else free + hidden
            store = self.partial.get(name) if self.partial is not None else None
            if store is not None:
                for bank, units in enumerate(visible.tolist()):
                    assert not units or mask_at(store, pool, bank).bit_count() == units, (name, bank)
        assert (self.use >= 0).all()
        if self._idle is not None:
            free = (self.use == 0) & self.up & ~self.held[self.index.target_type]
            assert (self._idle == free).all()
        assert all((row >= 0).all() for row in self.shared.values())


def idle_cluster(index: Index) -> Availability:
    """Return the state in which everything is up and nothing is claimed; never change it."""
    idle: Availability | None = index.memo.get("idle")
    if idle is None:
        idle = index.memo["idle"] = Availability(index, ignore_status=True)
    return idle


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
