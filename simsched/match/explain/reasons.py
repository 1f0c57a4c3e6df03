"""Why not, as data (M12): funnels, who holds what is missing, and changes that would do.

Everything here has three forms: attributes, `to_dict` for programs, ``str()`` for people;
and `Reasons.short` is one line for tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SHOWN = 5
"""How many holders are shown to people; programs get all."""

EXIST, UP, CONSTRAINT, ID, IDLE, FITS = "exist", "up", "constraint", "id", "idle", "fits"

_WORDS = {
    EXIST: "{left} exist",
    UP: "{left} up",
    CONSTRAINT: "{left} with {note}",
    ID: "{left} named by id={note}",
    IDLE: "{left} idle enough",
    FITS: "{left} fit {note}",
}

_SHORT = {
    EXIST: "the whole cluster, idle, holds {holds}",
    UP: "what is up holds {holds}",
    CONSTRAINT: "what has {note} holds {holds}",
    ID: "what id={note} names holds {holds}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One filter of a funnel.

    Attributes
    ----------
    name : ``exist``, ``up``, ``constraint``, ``id``, ``idle`` or ``fits``.
    left : candidates that passed this filter and those before it.
    holds : how much of what is needed these could hold if idle; at ``fits``, can hold now.
    note : what the filter asked for.
    """

    name: str
    left: int
    holds: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the step as JSON data."""
        found: dict[str, Any] = {"name": self.name, "left": self.left, "holds": self.holds}
        if self.note:
            found["note"] = self.note
        return found

    def __str__(self) -> str:
        holds = f" (hold {self.holds})" if self.holds != self.left else ""
        return _WORDS[self.name].format(left=self.left, note=self.note).rstrip() + holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """An allocation that has what is missing.

    Attributes
    ----------
    id : the allocation's.
    targets : how many of the candidates it touches.
    units : units of the binding resource that it has there; 0 where none binds.
    until : its expected end in seconds, if known.
    """

    id: int | str
    targets: int
    units: int
    until: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the holder as JSON data."""
        found: dict[str, Any] = {"id": self.id, "targets": self.targets, "units": self.units}
        if self.until is not None:
            found["until"] = self.until
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that was tried, and with which the request matches.

    Attributes
    ----------
    kind : ``count``, ``constraint``, ``id``, ``status``, ``sharing``, ``sibling``,
        ``several`` or ``time``.
    text : the change in words.
    path : the request vertex that it changes, ``node/slot/core``; empty: none.
    value : the count or the time (in seconds) that would do; None for the other kinds.
    """

    kind: str
    text: str
    path: str = ""
    value: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data."""
        found: dict[str, Any] = {"kind": self.kind, "text": self.text}
        if self.path:
            found["path"] = self.path
        if self.value is not None:
            found["value"] = self.value
        return found

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """Why one request vertex failed.

    Attributes
    ----------
    path : where it stands in the request, ``node/slot/core``.
    type : what the candidates are (the execution targets, mostly).
    steps : the filters in order, each with what it left.
    needed : copies, vertices or units that were asked for (the least acceptable count).
    available : how many of them could be had.
    binding : the resource that limits them, or None.
    note : what the counts alone do not say.
    held_by : the allocations that have what is missing, most of it first.
    """

    path: str
    type: str
    steps: tuple[Step, ...]
    needed: int
    available: int
    binding: str | None = None
    note: str = ""
    held_by: tuple[Holder, ...] = ()

    @property
    def broke_at(self) -> Step | None:
        """The first filter that left too little, or None."""
        return next((step for step in self.steps if step.holds < self.needed), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the funnel as JSON data."""
        broke = self.broke_at
        return {
            "path": self.path,
            "type": self.type,
            "steps": [step.to_dict() for step in self.steps],
            "needed": self.needed,
            "available": self.available,
            "broke_at": broke.name if broke else None,
            "binding": self.binding,
            **({"note": self.note} if self.note else {}),
            "held_by": [holder.to_dict() for holder in self.held_by],
        }

    def short(self) -> str:
        """Return one line, for tables."""
        parts = [f"{self.path}: {self.needed} needed, {self.available} to be had"]
        broke = self.broke_at
        if self.note:
            parts.append(self.note)
        elif broke is not None and broke.name in _SHORT:
            parts.append(_SHORT[broke.name].format(holds=broke.holds, note=broke.note))
        elif self.held_by:
            parts.append("the rest is taken")
        if self._is_limited and self.binding != self.path.rpartition("/")[2]:
            parts.append(f"limited by {self.binding}")
        return ", ".join(parts)

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.needed} needed, {self.available} to be had"]
        if self.steps:
            lines.append(f"  {self.type}: {' → '.join(map(str, self._telling()))}")
        if self.note:
            lines.append(f"  {self.note}")
        if self._is_limited and self.binding != self.type:
            lines.append(f"  limited by {self.binding}")
        if self.held_by:
            lines.append(f"  held by {self._holders()}")
        return "\n".join(lines)

    @property
    def _is_limited(self) -> bool:
        """Whether a resource is to blame, and not a constraint or an id that nothing satisfies."""
        broke = self.broke_at
        return bool(self.binding) and not (broke and broke.name in (CONSTRAINT, ID) and not broke.left)

    def _telling(self) -> list[Step]:
        """Return the steps worth a word: the first, the last, and those that filter something."""
        told = list(self.steps[:1])
        for step in self.steps[1:]:
            if (step.left, step.holds) != (told[-1].left, told[-1].holds) or step is self.steps[-1]:
                told.append(step)
        return told

    def _holders(self) -> str:
        words = []
        for holder in self.held_by[:SHOWN]:
            units = f" ({holder.units} {self.binding})" if self.binding and holder.units else ""
            until = f" until {clock(holder.until)}" if holder.until is not None else ""
            words.append(f"job {holder.id}{units}{until}")
        more = len(self.held_by) - SHOWN
        return ", ".join(words) + (f" and {more} more" if more > 0 else "")


class Reasons:
    """Why a request did not match: a funnel a failing vertex, and what would do; empty for a yes.

    Attributes
    ----------
    funnels : one or more for each top-level vertex that fails, the outer ones first.
    note : what no funnel says.
    changes : changes that were tried on the whole request, and with which it matches.
    """

    __slots__ = ("_changes", "_found", "_make", "_try")

    def __init__(
        self, funnels: tuple[Funnel, ...] = (), note: str = "", changes: tuple[Change, ...] = ()
    ) -> None:
        self._found = (funnels, note)
        self._changes = changes
        self._make: Callable[[], tuple[tuple[Funnel, ...], str]] | None = None
        self._try: Callable[[], tuple[Change, ...]] | None = None

    @classmethod
    def later(
        cls, find: Callable[[], tuple[tuple[Funnel, ...], str]], attempt: Callable[[], tuple[Change, ...]]
    ) -> Reasons:
        """Return reasons whose funnels and note, and whose changes, are found when they are looked at."""
        reasons = cls()
        reasons._make, reasons._try = find, attempt
        return reasons

    def _explained(self) -> tuple[tuple[Funnel, ...], str]:
        if self._make is not None:
            self._found, self._make = self._make(), None
        return self._found

    @property
    def funnels(self) -> tuple[Funnel, ...]:
        """One or more funnels for each top-level vertex that fails."""
        return self._explained()[0]

    @property
    def note(self) -> str:
        """What no funnel says."""
        return self._explained()[1]

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes that were tried, and with which the request matches."""
        if self._try is not None:
            self._changes, self._try = self._try(), None
        return self._changes

    def __bool__(self) -> bool:
        return bool(self._make or any(self._found))

    def to_dict(self) -> dict[str, Any]:
        """Return the reasons as JSON data."""
        found: dict[str, Any] = {"funnels": [funnel.to_dict() for funnel in self.funnels]}
        if self.note:
            found["note"] = self.note
        found["would_do"] = [change.to_dict() for change in self.changes]
        return found

    def short(self) -> str:
        """Return one line, for tables."""
        return self.funnels[0].short() if self.funnels else self.note

    def __str__(self) -> str:
        lines = [self.note] if self.note else []
        lines += map(str, self.funnels)
        lines += [f"would do: {change}" for change in self.changes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Reasons: {'not looked at yet' if self._make else self.short() or 'none'}>"


def clock(seconds: float) -> str:
    """Return a time for people: the date and time of an epoch, else the seconds themselves.

    >>> clock(300), clock(1763650000)
    ('300 s', '2025-11-20T14:46:40Z')
    """
    if seconds == float("inf"):
        return "no known end"
    if seconds < 1e9:
        return f"{seconds:g} s"
    from simsched.formats.rfc.duration import format_date

    return format_date(seconds)
