"""Selections: the targets, units and vertices of a match, as arrays over the index; immutable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from simsched.match.state.masks import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.arrays import Bools, Integers
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import PoolType
    from simsched.match.requests.request import Request
    from simsched.match.state.masks import Masks


class Draw(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Units of one pool type, pool by pool.

    Attributes
    ----------
    type : the pool type.
    pools : leaf pool ordinals, each once.
    units : the number of units from each, an array like `pools` or one number for all.
    amount : their sum.
    masks : the units of each leaf pool as a bit mask over its unit ordinals (see `masks`); None:
        whole leaf pools, or a pool whose units have no ids.
    """

    type: str
    pools: Integers
    units: Integers | int
    amount: int
    masks: Masks | None = None

    @classmethod
    def of_masks(cls, type_: str, masks: Mapping[int, int]) -> Draw:
        """Return a draw of the units of some leaf pools: leaf pool → mask."""
        units = np.array([mask.bit_count() for mask in masks.values()], dtype=np.int64)
        pools = np.array(list(masks), dtype=np.int64)
        return cls(type_, pools, units, int(units.sum()), list(masks.values()))


def takes_whole_pools(draw: Draw, pool: PoolType) -> bool:
    """Whether a draw takes all units of each of its leaf pools."""
    if pool.uniform is not None:
        return draw.amount == pool.uniform * len(draw.pools)
    return bool((pool.size[draw.pools] == draw.units).all())


class Hold(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Vertices of one type claimed exclusively, or shared."""

    type: str
    ordinals: Integers
    exclusive: bool


class Selection(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The resources selected for a request: data only, until `Availability.claim` claims it.

    Attributes
    ----------
    targets : ordinals of the execution targets it touches, each once, in the policy's order.
    held : units that are claimed exclusively.
    named : units that R names.  They differ from `held` for a target that is claimed whole and of which
        four cores were counted (M4, M5), and for units that are claimed shared.
    holds : vertices that are claimed.
    shared : units that are claimed shared.
    slots : copies of slots in all (R's ``nslots``), 0 without a slot.
    counted : whether it was made on counts alone, so that its units are not chosen yet (see
        `draws.with_units`).
    unlisted : targets that are claimed with a vertex above them, while R names nothing on them.
    """

    request: Request
    targets: Integers
    held: tuple[Draw, ...]
    named: tuple[Draw, ...]
    holds: tuple[Hold, ...]
    shared: tuple[Draw, ...]
    slots: int
    unlisted: Integers | None = None
    counted: bool = False

    @property
    def listed(self) -> Integers:
        """The targets that R names, or all if it names none; releasing the last one releases everything."""
        if self.unlisted is None or len(self.unlisted) == len(self.targets):
            return self.targets
        return np.setdiff1d(self.targets, self.unlisted)

    def sizes(self) -> tuple[int, int, int, int]:
        """Return how many nodes, cores, gpus and slots there are."""
        cores = gpus = 0
        for draw in self.held:
            if draw.type == "core":
                cores = draw.amount
            elif draw.type == "gpu":
                gpus = draw.amount
        return len(self.targets), cores, gpus, self.slots

    @property
    def counts(self) -> dict[str, int]:
        """Units claimed exclusively of each pool type."""
        return {draw.type: draw.amount for draw in self.held}


class LazySelection:
    """A selection in a shorter form, whose arrays are made when they are asked for."""

    __slots__ = ()
    shared = ()
    unlisted = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, and what other processes get, are selections with arrays."""
        return with_arrays, (self.full(),)

    def __repr__(self) -> str:
        return repr(self.full())

    def full(self) -> Selection:
        """Return the same as a selection with arrays, as the matcher would make it."""
        raise NotImplementedError

    @property
    def held(self) -> tuple[Draw, ...]:
        """The units, all claimed exclusively."""
        return self.full().held

    @property
    def named(self) -> tuple[Draw, ...]:
        """The units that R names: the same."""
        return self.full().held

    @property
    def listed(self) -> Integers:
        """The targets that R names: all."""
        return self.full().targets


def with_arrays(selection: Selection | LazySelection) -> Selection:
    """Return a selection with arrays."""
    return selection.full() if isinstance(selection, LazySelection) else selection


_Value = TypeVar("_Value", Draw, Hold, Selection)


def changed(value: _Value, **changes: Any) -> _Value:
    """Return the same draw, hold or selection with some fields changed."""
    given: Any = value
    full: Any = with_arrays(given)
    made: _Value = msgspec.structs.replace(full, **changes)
    return made


class SplitSelection(NamedTuple):
    """A selection in two parts: the released part and the kept one (None if nothing is kept)."""

    given: Selection
    kept: Selection | None


def split(selection: Selection, targets: Integers, index: Index) -> SplitSelection:
    """Split a selection into its part on some targets and the rest.

    Resources outside targets (licences, a rack that is claimed with nodes that R does not name) stay
    with the rest until the last target that R names is released.
    """
    leaving = np.zeros(len(index), dtype=np.bool_)
    leaving[targets] = True
    listed = selection.listed
    if leaving[listed].all():
        return SplitSelection(selection, None)
    if selection.unlisted is not None and len(listed) < len(selection.targets):
        leaving[selection.unlisted] = False
    given = _restricted(selection, leaving, index, loose=False)
    return SplitSelection(given, _restricted(selection, ~leaving, index, loose=True))


def _restricted(selection: Selection, stays: Bools, index: Index, *, loose: bool) -> Selection:
    """Return the part of a selection on the targets that stay, with `loose` also the part outside targets."""
    held = _draws_on(selection.held, stays, index, loose=loose)
    same = selection.named is selection.held
    return changed(
        selection,
        targets=selection.targets[stays[selection.targets]],
        held=held,
        named=held if same else _draws_on(selection.named, stays, index, loose=loose),
        holds=tuple(_holds_on(selection.holds, stays, index, loose=loose)),
        shared=_draws_on(selection.shared, stays, index, loose=loose),
    )


def _draws_on(draws: tuple[Draw, ...], stays: Bools, index: Index, *, loose: bool) -> tuple[Draw, ...]:
    found = []
    for draw in draws:
        target = index.pool_types[draw.type].target[draw.pools]
        row = np.where(target >= 0, stays[target], loose)
        if row.any():
            units = draw.units if isinstance(draw.units, int) else draw.units[row]
            amount = units * int(row.sum()) if isinstance(units, int) else int(units.sum())
            masks = draw.masks
            if masks is not None:
                masks = [masks[at] for at in row.nonzero()[0]] if isinstance(masks, list) else masks[row]
            found.append(Draw(draw.type, draw.pools[row], units, amount, masks))
    return tuple(found)


def _holds_on(holds: tuple[Hold, ...], stays: Bools, index: Index, *, loose: bool) -> list[Hold]:
    found = []
    for hold in holds:
        target = index.vertex_types[hold.type].target[hold.ordinals]
        row = np.where(target >= 0, stays[target], loose)
        if row.any():
            found.append(Hold(hold.type, hold.ordinals[row], hold.exclusive))
    return found


def joined(first: Selection, second: Selection, request: Request, index: Index) -> Selection:
    """Return both selections as the answer to `request`; they must have no execution target in common."""
    held = _joined_draws((*first.held, *second.held), index)
    same = first.named is first.held and second.named is second.held
    unlisted = [part.unlisted for part in (first, second) if part.unlisted is not None]
    return changed(
        first,
        request=request,
        targets=np.concatenate([first.targets, second.targets]),
        held=held,
        named=held if same else _joined_draws((*first.named, *second.named), index),
        holds=_joined_holds((*first.holds, *second.holds)),
        shared=_joined_draws((*first.shared, *second.shared), index),
        slots=first.slots + second.slots,
        unlisted=np.concatenate(unlisted) if unlisted else None,
    )


def _joined_draws(draws: Sequence[Draw], index: Index) -> tuple[Draw, ...]:
    by_type: dict[str, list[Draw]] = {}
    for draw in draws:
        by_type.setdefault(draw.type, []).append(draw)
    return tuple(some[0] if len(some) == 1 else _draw_of_both(some, index) for some in by_type.values())


def _draw_of_both(draws: Sequence[Draw], index: Index) -> Draw:
    pools = np.concatenate([draw.pools for draw in draws])
    units = np.concatenate([np.broadcast_to(draw.units, len(draw.pools)) for draw in draws])
    masks = None
    if any(draw.masks is not None for draw in draws):
        masks = [mask for draw in draws for mask in _masks_of(draw, index)]
    return Draw(draws[0].type, pools, units, int(units.sum()), masks)


def _masks_of(draw: Draw, index: Index) -> list[int]:
    """Return the units of a draw as masks; whole leaf pools have none of their own."""
    if draw.masks is not None:
        return list(listed(draw.masks))
    sizes = index.pool_types[draw.type].size[draw.pools]
    return [(1 << size) - 1 for size in sizes.tolist()]


def _joined_holds(holds: Sequence[Hold]) -> tuple[Hold, ...]:
    by_kind: dict[tuple[str, bool], list[Hold]] = {}
    for hold in holds:
        by_kind.setdefault((hold.type, hold.exclusive), []).append(hold)
    return tuple(
        Hold(type_, np.concatenate([hold.ordinals for hold in some]), exclusive)
        for (type_, exclusive), some in by_kind.items()
    )
