"""Counts that a state keeps: of one content, which the search brings up to date, and of those of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simsched.graph.index.types import Ints
    from simsched.match.kernel import Kernel
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


class KernelKinds(Protocol):
    """The requests of a run, whose copies on each target a kernel counts (see `match.counted_kinds`)."""

    kernel: Kernel

    def row_of(self, content: Content) -> Ints | None:
        """Return the copies of a content that each target hosts now; None if they are not counted."""

    def follow_status(self) -> None:
        """Note that targets went down or came up."""
