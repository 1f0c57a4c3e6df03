"""The answers: `Matched`, `Busy` (not now), `Infeasible` (never here), `Undecided` (M11).

They are different types, and only `Matched` is true.  The others have their reasons as data (see
`explain.reasons`).  Reasons and R cost time and are made when they are first read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from simsched.errors import clip
from simsched.match.explain.reasons import Funnel, Holder, Reasons, Step, Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from simsched.formats.cluster.rset import ResourceSet
    from simsched.match.explain.reason_codes import Reason
    from simsched.match.state.selection import Selection

__all__ = [
    "Busy",
    "Funnel",
    "Holder",
    "Infeasible",
    "Matched",
    "Outcome",
    "Placement",
    "Reasons",
    "Step",
    "Suggestion",
    "Undecided",
]


@dataclass(frozen=True, eq=False)
class Placement:
    """Where a configuration of queues puts a request.

    Attributes
    ----------
    queue : the name of the queue; None if the request is in no queue.
    duration : the seconds that the request has there, its own or a default; None means no limit.
    notes : remarks that do not refuse the request: defaults that apply, a queue that is stopped.
    try_all : tries the request in every queue.
    """

    queue: str | None
    duration: float | None
    notes: tuple[Reason, ...]
    try_all: Callable[[], Mapping[str, tuple[str, ...]]]

    @cached_property
    def queues(self) -> Mapping[str, tuple[str, ...]]:
        """Each queue → the codes of the reasons against the request there; () if it takes and starts it."""
        return self.try_all()

    @property
    def takers(self) -> tuple[str, ...]:
        """The queues that would take the request and start it."""
        return tuple(name for name, codes in self.queues.items() if not codes)

    def to_dict(self) -> dict[str, Any]:
        """Return the placement as JSON data."""
        queues = {name: list(codes) for name, codes in self.queues.items()}
        notes = [note.to_dict() for note in self.notes]
        return {"queue": self.queue, "duration": self.duration, "notes": notes, "queues": queues}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Outcome:
    """An answer; true if the request matched, or is feasible.

    Attributes
    ----------
    status : ``matched``, ``busy``, ``infeasible`` or ``undecided``.
    id : the id for `Matcher.release`; None if nothing was claimed.
    start : the start of the allocation in seconds, if a time was given; else None.
    reasons : the reasons against a match (funnels as data; ``str()`` of it for people).
    placement : the queue of the request, if the question was about a configuration of queues.
    select : finds the selection; None if the request does not fit.
    emit : makes the R of a selection.
    """

    status: ClassVar[str] = ""
    id: int | None = None
    start: float | None = None
    reasons: Reasons = field(default_factory=Reasons)
    placement: Placement | None = None
    select: Callable[[], Selection | None] | None = None
    emit: Callable[[Selection], ResourceSet] | None = None

    @cached_property
    def selection(self) -> Selection | None:
        """The selection, as arrays; None if the request does not fit."""
        return self.select() if self.select is not None else None

    @cached_property
    def R(self) -> ResourceSet | None:  # noqa: N802 - the standard's name
        """The allocation as an R (RFC 20); None if the request does not fit."""
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
        if self.placement is not None:
            found.update(self.placement.to_dict())
        return found

    def __repr__(self) -> str:
        """Return the answer in one line: the allocation, or the first reason against it.

        >>> Infeasible(reasons=Reasons(note="nothing fits"))
        <Infeasible: nothing fits>
        """
        number = "" if self.id is None else f" {self.id}"
        start = "" if self.start is None else f" from {self.start:g} s"
        text = clip(str(self.R), 80) if self.R is not None else self.reasons.short()
        return f"<{type(self).__name__}{number}{start}{f': {text}' if text else ''}>"

    def _repr_html_(self) -> str:
        """Return the answer for a notebook: the allocation, or all reasons against it."""
        from simsched.text_table import html_text

        text = str(self.R) if self.R is not None else str(self.reasons)
        return html_text(self.status if self.id is None else f"{self.status} {self.id}", text)

    def __bool__(self) -> bool:
        return False


class Matched(Outcome):
    """The request matched, or would match on the idle cluster."""

    status: ClassVar[str] = "matched"

    def __bool__(self) -> bool:
        return True


class Busy(Outcome):
    """The request does not match now, but would on the idle cluster."""

    status: ClassVar[str] = "busy"


class Infeasible(Outcome):
    """The request can never match on this cluster."""

    status: ClassVar[str] = "infeasible"


class Undecided(Outcome):
    """The exact search reached its limit before it found a match or refuted it."""

    status: ClassVar[str] = "undecided"
