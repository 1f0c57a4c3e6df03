"""Counts that a state keeps: of one content, which the search brings up to date, and of those of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from simsched.graph.index.types import Ints
    from simsched.match.kernel import Kernel
    from simsched.match.requests.request import Content, Request
    from simsched.match.state.selection import Selection


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

    def capacity_of(self, content: Content) -> tuple[Ints, int, int] | None:
        """Return the copies of a content on each target, their sum, and the targets with any; or None."""

    def places(self, request: Request, policy: object) -> bool:
        """Whether the kernel places a request under a policy."""

    def select(self, request: Request) -> Selection | None:
        """Return the selection of a request that the kernel places, or None if it does not fit now."""

    def follow_status(self) -> None:
        """Note that targets went down or came up."""
