"""The answers: `Matched`, `Busy` (not now), `Infeasible` (never here), `Undecided` (M11).

They are different types, and each is true only where the question was answered with yes.
A negative answer carries its reasons as data (M12); ``str()`` of them is for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from simsched.formats.rset import ResourceSet
    from simsched.match.selection import Selection


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One filter of a funnel: how many candidates are left after it.

    Attributes
    ----------
    name : ``exist``, ``up``, ``constraint``, ``idle`` or ``fits``.
    left : candidates that passed this filter and those before it.
    note : what the filter asked for.
    """

    name: str
    left: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON data."""
        return {"name": self.name, "left": self.left, **({"note": self.note} if self.note else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """Why one request vertex failed.

    Attributes
    ----------
    path : where it stands in the request, ``node/slot/core``.
    type : what the candidates are (the execution targets, mostly).
    steps : the filters in order, each with what it left.
    needed : copies (or vertices, or units) that were asked for.
    available : how many of them could be had.
    binding : the resource that limits them, or None.
    nearest : the nearest changes that would make the request match, best first.
    """

    path: str
    type: str
    steps: tuple[Step, ...]
    needed: int
    available: int
    binding: str | None = None
    nearest: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the funnel as JSON data."""
        return {
            "path": self.path,
            "type": self.type,
            "steps": [step.to_dict() for step in self.steps],
            "needed": self.needed,
            "available": self.available,
            "binding": self.binding,
            "nearest": list(self.nearest),
        }

    def __str__(self) -> str:
        chain = " → ".join(
            f"{step.left} {step.name}" + (f" ({step.note})" if step.note else "") for step in self.steps
        )
        lines = [f"{self.path}: {self.needed} needed, {self.available} to be had", f"  {self.type}: {chain}"]
        if self.binding:
            lines.append(f"  limited by {self.binding}")
        lines += [f"  would do: {change}" for change in self.nearest]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a request did not match: one funnel a failing vertex; empty for a yes."""

    funnels: tuple[Funnel, ...] = ()
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.funnels or self.note)

    def to_dict(self) -> dict[str, Any]:
        """Return the reasons as JSON data."""
        found: dict[str, Any] = {"funnels": [funnel.to_dict() for funnel in self.funnels]}
        if self.note:
            found["note"] = self.note
        return found

    def short(self) -> str:
        """Return one line, for tables."""
        if not self.funnels:
            return self.note
        first = self.funnels[0]
        last = next(
            (s for s in first.steps if s.left < first.needed), first.steps[-1] if first.steps else None
        )
        at = f", {last.left} {first.type} left after {last.name}" if last else ""
        limit = f", limited by {first.binding}" if first.binding else ""
        return f"{first.path}: {first.needed} needed, {first.available} to be had{at}{limit}"

    def __str__(self) -> str:
        return "\n".join([*([self.note] if self.note else []), *map(str, self.funnels)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An answer; true where the request matched, or is feasible.

    Attributes
    ----------
    status : ``matched``, ``busy``, ``infeasible`` or ``undecided``.
    id : what `Matcher.release` takes; None where nothing was claimed.
    R : what the request gets (RFC 20); None for a no.
    reasons : why not (the funnels, as data; ``str()`` of it for people).
    """

    status: ClassVar[str] = ""
    id: int | None = None
    R: ResourceSet | None = None
    reasons: Reasons = Reasons()
    selection: Selection | None = None

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched(Outcome):
    """Yes: the request matched, or would on the idle machine."""

    status: ClassVar[str] = "matched"

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy(Outcome):
    """Not now: it would match on the idle machine."""

    status: ClassVar[str] = "busy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible(Outcome):
    """Never on this cluster."""

    status: ClassVar[str] = "infeasible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided(Outcome):
    """The exact search reached its limit: neither found nor refuted."""

    status: ClassVar[str] = "undecided"
