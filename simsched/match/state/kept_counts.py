"""Counts that a state keeps: of one content, and of many at once. The search brings them up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simsched.graph.index.types import Ints
    from simsched.match.requests.request import Content


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

    fits: Ints
    total: int
    some: int
    seen: int


class KeptTable(Protocol):
    """The counts of many contents as of one version of a state (see `search.count_table`)."""

    fits: Ints
    pending: list[Ints]
    """The targets that each change touched since the table last followed the state."""
    grew: bool
    """Whether any of these changes may have freed something."""

    def sums_of(self, content: int) -> tuple[int, int]:
        """Return the sum of the copies of a content, and the number of targets with any."""

    def count(self, content: int, *, targets: bool) -> int:
        """Return the sum of the copies of a content now, or with `targets` the number of targets with any."""

    def first(self, content: int, wanted: int, among: Ints | None, most: int) -> tuple[Ints, Ints | int]:
        """Return the first targets that host copies of a content now, in a fixed order, and how many each."""

    def number_of(self, content: Content) -> int | None:
        """Return the number of a content among the rows of `fits`; None if it is not counted here."""

    def follow(self) -> None:
        """Catch up with the state."""
