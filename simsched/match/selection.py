"""What a match takes, as arrays over the index: frozen in, frozen out of the matcher."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.graph.index import Ints
    from simsched.match.request import Request


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Units of one pool type, bank by bank.

    Attributes
    ----------
    type : the pool type.
    banks : bank ordinals, each once.
    units : units of each, an array like `banks` or one number for all.
    amount : their sum.
    masks : which units of each bank, as a bit mask over its unit ordinals; None: whole banks,
        or a pool whose units bear no ids.
    """

    type: str
    banks: Ints
    units: Ints | int
    amount: int
    masks: list[int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Hold:
    """Vertices of one type claimed exclusively, or shared."""

    type: str
    ordinals: Ints
    exclusive: bool


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What a request gets: pure data until `Availability.claim` takes it.

    Attributes
    ----------
    targets : ordinals of the execution targets it touches, each once, in the policy's order.
    held : units that are taken from others.
    named : units that R names, where they differ from `held`: a target held whole of which
        four cores were counted (M4, M5), or units claimed shared.
    holds : vertices claimed.
    slots : copies of slots in all (R's ``nslots``), 0 without a slot.
    """

    request: Request
    targets: Ints
    held: tuple[Draw, ...]
    named: tuple[Draw, ...]
    holds: tuple[Hold, ...]
    shared: tuple[Draw, ...]
    slots: int

    @property
    def counts(self) -> dict[str, int]:
        """Units held of each pool type."""
        return {draw.type: draw.amount for draw in self.held}
