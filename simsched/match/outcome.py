"""The answers: `Matched`, `Busy` (not now), `Infeasible` (never here), `Undecided` (M11).

They are different types, and true only where the question was answered with yes.  A no
carries its reasons as data (see `reasons`); what costs time, the reasons and R, is made
when it is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from simsched.formats.text.excerpts import clip
from simsched.match.explain.reasons import Funnel, Holder, Reasons, Step, Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.formats.cluster.rset import ResourceSet
    from simsched.match.state.selection import Selection

__all__ = [
    "Busy",
    "Funnel",
    "Holder",
    "Infeasible",
    "Matched",
    "Outcome",
    "Reasons",
    "Step",
    "Suggestion",
    "Undecided",
]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Outcome:
    """An answer; true where the request matched, or is feasible.

    Attributes
    ----------
    status : ``matched``, ``busy``, ``infeasible`` or ``undecided``.
    id : what `Matcher.release` takes; None where nothing was claimed.
    start : when it starts, where that was asked (`Matcher.match_or_reserve`); None: now, or never.
    reasons : why not (the funnels, as data; ``str()`` of it for people).
    select : finds what was selected; None for a no.
    emit : makes its R.
    """

    status: ClassVar[str] = ""
    id: int | None = None
    start: float | None = None
    reasons: Reasons = field(default_factory=Reasons)
    select: Callable[[], Selection | None] | None = None
    emit: Callable[[Selection], ResourceSet] | None = None

    @cached_property
    def selection(self) -> Selection | None:
        """What was selected, as arrays; None for a no."""
        return self.select() if self.select is not None else None

    @cached_property
    def R(self) -> ResourceSet | None:  # noqa: N802 - the standard's name
        """What the request gets (RFC 20); None for a no."""
        return self.emit(self.selection) if self.emit is not None and self.selection is not None else None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        found: dict[str, Any] = {"status": self.status}
        if self.id is not None:
            found["id"] = self.id
        if self.start is not None:
            found["start"] = self.start
        if self.R is not None:
            found["R"] = self.R.to_dict()
        if self.reasons:
            found["reasons"] = self.reasons.to_dict()
        return found

    def __repr__(self) -> str:
        """Return the answer in one line: the allocation, or the first reason against it.

        >>> Infeasible(reasons=Reasons(note="nothing fits"))
        <Infeasible: nothing fits>
        """
        number = "" if self.id is None else f" {self.id}"
        start = "" if self.start is None else f" from {self.start:g} s"
        told = clip(str(self.R), 80) if self.R is not None else self.reasons.short()
        return f"<{type(self).__name__}{number}{start}{f': {told}' if told else ''}>"

    def __bool__(self) -> bool:
        return False


class Matched(Outcome):
    """Yes: the request matched, or would on the idle machine."""

    status: ClassVar[str] = "matched"

    def __bool__(self) -> bool:
        return True


class Busy(Outcome):
    """Not now: it would match on the idle machine."""

    status: ClassVar[str] = "busy"


class Infeasible(Outcome):
    """Never on this cluster."""

    status: ClassVar[str] = "infeasible"


class Undecided(Outcome):
    """The exact search reached its limit: neither found nor refuted."""

    status: ClassVar[str] = "undecided"
