"""`Gap`: a time from which a job could run to its requested end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from simsched.match.state.selection import Selection

NEVER = float("inf")


class Gap(NamedTuple):
    """A start in seconds (`NEVER` without one) and the resources, None where counts decide."""

    start: float
    selection: Selection | None
