"""Vertex types and pool types: the arrays of a compiled cluster, one value per resource type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simsched.arrays import Bools, Integers
    from simsched.formats.rfc.idset import Idset


ABOVE, TARGET, BELOW = "above", "target", "below"
"""Levels of a type: above the execution targets, the targets themselves, within them."""

MAX_NAMED_UNITS = 65_536
"""The units of a larger leaf pool are only counted and have no ids (a pool of 512 GB in bytes, say)."""


@dataclass(frozen=True, slots=True, eq=False)
class VertexType:
    """The vertices of one type that are claimed one by one.

    Arrays have one entry per vertex: `pos` twice its place in preorder (the odd places are for
    empty leaf pools), `end` that of the first vertex after its subtree, `target` the ordinal of the
    target that it is or is in (-1: above), `ids` its logical id (-1: none), `up` whether it
    and all that contains it is up, `sound` the same without regard to its
    target and the containers of that.
    """

    name: str
    level: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    pos: Integers
    end: Integers
    target: Integers
    ids: Integers
    up: Bools
    sound: Bools

    def __len__(self) -> int:
        return len(self.keys)


class UnitsOfKinds(NamedTuple):
    """The units of each leaf pool that are of some kinds, as masks, and whether that is all of them."""

    masks: list[int]
    whole: Bools


@dataclass(frozen=True, slots=True, eq=False)
class PoolType:
    """The leaf pools of one type, whose units are claimed by number.

    Arrays have one entry per leaf pool: `size` its units, `up` whether they are available, `sound` whether
    they are once its target is up, `target` the ordinal of its target (-1: none), `pos` its place in
    preorder.  `ids` are the units' ids in ascending order; unit *i* of a leaf pool has the *i*-th of them.
    """

    name: str
    unit: str
    aligned: bool
    named: bool
    pos: Integers
    size: Integers
    target: Integers
    up: Bools
    sound: Bools
    ids: tuple[Idset, ...]
    keys: tuple[tuple[str, ...], ...]
    per_target: Integers
    total: int
    uniform: int | None
    """The one size of all leaf pools, if they agree."""
    uniform_ids: Idset | None
    """The one set of unit ids of all leaf pools, if they agree."""
    full: list[int] = field(default_factory=list)
    """All units of each leaf pool, as a bit mask over unit ordinals; empty where units have no ids."""
    texts: dict[int, str] = field(default_factory=dict)
    """Where all leaf pools have the same ids: masks that were written before → the ids as text."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def on_targets(self) -> bool:
        """Whether any leaf pool is on an execution target."""
        return bool((self.target >= 0).any())
