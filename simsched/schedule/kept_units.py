"""Units that a closure keeps from jobs while their targets stay open: cores of a node, or licences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from simsched.match.state.masks import highest_bits, listed
from simsched.match.state.selection import Draw, Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.match.state.availability import Availability

_NONE = np.empty(0, dtype=np.int64)


class KeptUnits(Protocol):
    """Some units of a pool type."""

    def draw(self, state: Availability, time: float) -> Draw:
        """Return those of them that are free in the state of a time (s)."""

    def hits(self, draw: Draw, free: Mapping[str, Integers], time: float) -> bool:
        """Whether a draw needs some of them, where these units of each leaf pool are free beside it."""


class KeptIds(NamedTuple):
    """Units of leaf pools by their ids: leaf pool → mask."""

    type: str
    masks: Mapping[int, int]

    def draw(self, state: Availability, time: float) -> Draw:  # noqa: ARG002
        """Return those of them that are free."""
        pool = state.index.pool_types[self.type]
        free = {leaf: mask & state.free_mask(pool, leaf) for leaf, mask in self.masks.items()}
        return Draw.of_masks(self.type, {leaf: mask for leaf, mask in sorted(free.items()) if mask})

    def hits(self, draw: Draw, free: Mapping[str, Integers], time: float) -> bool:  # noqa: ARG002
        """Whether a draw takes one of them."""
        if draw.type != self.type:
            return False
        leaves = draw.pools.tolist()
        if draw.masks is None:
            return any(leaf in self.masks for leaf in leaves)
        pairs = zip(leaves, listed(draw.masks), strict=True)
        return any(mask & self.masks.get(leaf, 0) for leaf, mask in pairs)


class KeptNumber(NamedTuple):
    """A number of units of one leaf pool, as far as those that they are kept for do not have them.

    `used` returns how many units these jobs have at a time (s).
    """

    type: str
    leaf: int
    number: int
    used: Callable[[str, float], int]

    def _left(self, time: float) -> int:
        return max(0, self.number - self.used(self.type, time))

    def draw(self, state: Availability, time: float) -> Draw:
        """Return free units of that number, or all that are free."""
        pool = state.index.pool_types[self.type]
        number = min(self._left(time), int(state.free[self.type][self.leaf]))
        if not number:
            return Draw(self.type, _NONE, _NONE, 0)
        masks = None
        if pool.named and state.partial is not None:
            masks = [highest_bits(state.free_mask(pool, self.leaf), number)]
        return Draw(self.type, np.array([self.leaf]), np.array([number]), number, masks)

    def hits(self, draw: Draw, free: Mapping[str, Integers], time: float) -> bool:
        """Whether fewer units than a draw takes are left."""
        if draw.type != self.type:
            return False
        return int(free[self.type][self.leaf]) - self._left(time) < draw.amount


def set_units_aside(state: Availability, kept: KeptUnits, time: float) -> None:
    """Take units out of a state; their targets are no longer free as a whole."""
    draw = kept.draw(state, time)
    targets = state.index.pool_types[draw.type].target[draw.pools] if draw.amount else _NONE
    state.claim(
        Selection(
            request=cast("Any", None),
            targets=np.unique(targets[targets >= 0]),
            held=(draw,) if draw.amount else (),
            named=(),
            holds=(),
            shared=(),
            slots=0,
        )
    )


def masks_by_leaf(index: Index, cores: Mapping[int, int]) -> dict[int, int]:
    """Return leaf pool → mask over its units, of rank → mask over the ids of cores."""
    pool, ranks = index.pool_types["core"], index.ranks.tolist()
    masks = {leaf: cores.get(ranks[target], 0) for leaf, target in enumerate(pool.target.tolist())}
    return {
        leaf: sum(1 << unit for unit, id_ in enumerate(pool.ids[leaf]) if mask >> id_ & 1)
        for leaf, mask in masks.items()
        if mask
    }
