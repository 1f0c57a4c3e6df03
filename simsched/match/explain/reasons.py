"""The reasons against a match as data (M12): funnels, holders of missing resources, and suggestions.

Each has three forms: attributes, `to_dict` for programs, and ``str()`` for people.  `Reasons.short` is
one line for tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired

from simsched.declare.answers import Written, extended, json_of, meaning, written
from simsched.match.explain.reason_codes import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHOWN = 5
"""Holders that ``str()`` lists; `to_dict` lists all."""

Filter = Literal["exist", "up", "constraint", "id", "idle", "fits"]
EXIST: Filter = "exist"
UP: Filter = "up"
CONSTRAINT: Filter = "constraint"
ID: Filter = "id"
IDLE: Filter = "idle"
FITS: Filter = "fits"

_WORDS = {
    EXIST: "{left} exist",
    UP: "{left} up",
    CONSTRAINT: "{left} with {note}",
    ID: "{left} with id={note}",
    IDLE: "{left} idle enough",
    FITS: "{left} fit {note}",
}

#: The filter that left too little → the code of the reason.
_CODES = {
    EXIST: "graph-count",
    UP: "graph-down",
    CONSTRAINT: "graph-constraint",
    ID: "graph-id",
    IDLE: "graph-busy",
    FITS: "graph-content",
}

TOGETHER = "each part fits by itself, but not all of them together"
"""The note of a request whose parts fit one by one."""

_SHORT = {
    EXIST: "the idle cluster holds {holds}",
    UP: "the part that is up holds {holds}",
    CONSTRAINT: "the part with {note} holds {holds}",
    ID: "the part with id={note} holds {holds}",
}


Natural = Annotated[int, json_of(minimum=0)]


class Step(Written, frozen=True, kw_only=True):
    """One filter of a funnel.

    Attributes
    ----------
    name : ``exist``, ``up``, ``constraint``, ``id``, ``idle`` or ``fits``.
    left : candidates that passed this filter and those before it.
    holds : how many copies these could hold if they were idle; at ``fits``, can hold now.
    note : the condition of the filter: a constraint, ids, the content of a copy.
    """

    name: Filter
    left: Natural
    holds: Natural
    note: str = ""

    def __str__(self) -> str:
        holds = f" (hold {self.holds})" if self.holds != self.left else ""
        return _WORDS[self.name].format(left=self.left, note=self.note).rstrip() + holds


class Holder(Written, frozen=True, kw_only=True):
    """An allocation that has resources which the request lacks.

    Attributes
    ----------
    id : the allocation's.
    targets : how many of the candidates it touches.
    units : units of the binding resource that it has there; 0 if no resource binds.
    until : its expected end in seconds, if known.
    """

    id: int | str
    targets: Natural
    units: Natural
    until: float | None = None


class Suggestion(Written, frozen=True, kw_only=True):
    """A change with which the request matches; it has been tried.

    Attributes
    ----------
    kind : ``count``, ``constraint``, ``id``, ``status``, ``sharing``, ``sibling``,
        ``several``, ``time``, ``duration`` or ``queue``.
    text : the change in words.
    path : the request vertex that it changes, ``node/slot/core``; empty: none.
    value : the count, or the time or duration (in seconds), that would fit; the other kinds have none.
    """

    kind: str
    text: str
    path: str = ""
    value: float | None = None

    @property
    def sentence(self) -> str:
        """The change as a line of an answer; the text of the other kinds begins with a preposition."""
        lead = "would fit with:" if self.kind in ("count", "several", "id", "duration") else "would fit"
        return f"{lead} {self.text}"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """Why one request vertex failed.

    Attributes
    ----------
    path : its place in the request, ``node/slot/core``.
    type : the type of the candidates (the execution targets, mostly).
    steps : the filters in order, each with the candidates that it left.
    needed : copies, vertices or units requested (the least acceptable count).
    available : how many of them are available.
    binding : the resource that limits them, or None.
    note : a remark that the counts do not show.
    held_by : the allocations that have the missing resources, the largest share first.
    """

    path: str
    type: str
    steps: tuple[Step, ...]
    needed: Natural
    available: Natural
    binding: str | None = None
    note: str = ""
    held_by: tuple[Holder, ...] = ()

    @property
    def broke_at(self) -> Step | None:
        """The first filter that left too little, or None."""
        return next((step for step in self.steps if step.holds < self.needed), None)

    @property
    def code(self) -> str:
        """The code of the reason (`reason_codes.REASON_CODES`)."""
        broke = self.broke_at
        if broke is not None and broke.name == EXIST and self.note and not broke.left:
            return "graph-type"
        if broke is None or (self.note and not self.held_by):
            return "graph-apart"  # the other notes say so
        return "graph-busy" if broke.name == FITS and self.held_by else _CODES[broke.name]

    def answer(self) -> dict[str, Any]:
        """Return the funnel as it is written."""
        broke = self.broke_at
        return {
            "path": self.path,
            "type": self.type,
            "steps": self.steps,
            "needed": self.needed,
            "available": self.available,
            "broke_at": broke.name if broke else None,
            "binding": self.binding,
            **({"note": self.note} if self.note else {}),
            "held_by": self.held_by,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the funnel as JSON data."""
        found: dict[str, Any] = written(self.answer())
        return found

    def short(self) -> str:
        """Return one line, for tables."""
        parts = [self._need]
        broke = self.broke_at
        if self.note:
            parts.append(self.note)
        elif broke is not None and broke.name in _SHORT:
            parts.append(_SHORT[broke.name].format(holds=broke.holds, note=broke.note))
        elif self.held_by:
            parts.append("the rest is in use")
        if self._is_limited and self.binding != self.path.rpartition("/")[2]:
            parts.append(f"limited by {self.binding}")
        return ", ".join(parts)

    def __str__(self) -> str:
        lines = [self._need]
        if self.steps:
            lines.append(f"  {self.type}: {' → '.join(map(str, self._shown_steps()))}")
        if self.note:
            lines.append(f"  {self.note}")
        if self._is_limited and self.binding != self.type:
            lines.append(f"  limited by {self.binding}")
        if self.held_by:
            lines.append(f"  claimed by {self._holders()}")
        return "\n".join(lines)

    @property
    def _need(self) -> str:
        return f"{self.path}: {self.needed} needed, {self.available} available"

    @property
    def _is_limited(self) -> bool:
        """Whether a resource is the limit, and not a constraint or an id that nothing satisfies."""
        broke = self.broke_at
        return bool(self.binding) and not (broke and broke.name in (CONSTRAINT, ID) and not broke.left)

    def _shown_steps(self) -> list[Step]:
        """Return the first step, the last, and those that filter something."""
        shown = list(self.steps[:1])
        for step in self.steps[1:]:
            if (step.left, step.holds) != (shown[-1].left, shown[-1].holds) or step is self.steps[-1]:
                shown.append(step)
        return shown

    def _holders(self) -> str:
        words = []
        for holder in self.held_by[:SHOWN]:
            units = f" ({holder.units} {self.binding})" if self.binding and holder.units else ""
            until = f" until {clock(holder.until)}" if holder.until is not None else ""
            words.append(f"job {holder.id}{units}{until}")
        more = len(self.held_by) - SHOWN
        return ", ".join(words) + (f" and {more} more" if more > 0 else "")


FunnelAnswer: Any = extended(
    "FunnelAnswer",
    Funnel,
    broke_at=Annotated[Filter | None, meaning("the first filter that left too little")],
    note=NotRequired[str],
)


class ReasonsAnswer(Written, frozen=True, kw_only=True):
    """Why a request is refused.

    codes : each reason with its code.
    funnels : one or more for each top-level vertex that fails.
    note : a remark on the request as a whole.
    would_do : changes with which the whole request matches, each of them tried.
    """

    codes: tuple[Reason, ...]
    funnels: tuple[FunnelAnswer, ...]
    note: str = ""
    would_do: tuple[Suggestion, ...]


class Reasons:
    """Why a request did not match: a funnel per failing vertex, and suggestions; empty if it matched.

    Funnels and note, or changes, that cost time are given as functions, `find` and `attempt`: they are
    called when their result is first read.

    Attributes
    ----------
    configured : the reasons that the configuration of the queues has against the request.
    funnels : one or more for each top-level vertex that fails, the outer ones first.
    note : a remark on the request as a whole.
    changes : changes with which the whole request matches, each of them tried.
    """

    __slots__ = ("_changes", "_found", "_make", "_try", "configured")

    def __init__(
        self,
        funnels: tuple[Funnel, ...] = (),
        note: str = "",
        changes: tuple[Suggestion, ...] = (),
        *,
        find: Callable[[], tuple[tuple[Funnel, ...], str]] | None = None,
        attempt: Callable[[], tuple[Suggestion, ...]] | None = None,
    ) -> None:
        self._found = (funnels, note)
        self._changes = changes
        self._make = find
        self._try = attempt
        self.configured: tuple[Reason, ...] = ()

    def with_configured(
        self,
        reasons: tuple[Reason, ...],
        keep: Callable[[Suggestion], bool],
        more: Callable[[], Iterator[Suggestion]],
    ) -> Reasons:
        """Return these reasons after those of a configuration; `keep` selects changes, `more` makes more."""
        twin = Reasons(*self._found, find=self._make, attempt=lambda: (*more(), *filter(keep, self.changes)))
        twin.configured = reasons
        return twin

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
        """A remark on the request as a whole."""
        return self._explained()[1]

    @property
    def changes(self) -> tuple[Suggestion, ...]:
        """Changes with which the whole request matches, each of them tried."""
        if self._try is not None:
            self._changes, self._try = self._try(), None
        return self._changes

    @property
    def coded(self) -> tuple[Reason, ...]:
        """Each reason with its code: those of the configuration, the note, then a line for each funnel."""
        return (*self.configured, *self._noted(), *(Reason(f.code, f.short()) for f in self.funnels))

    def _noted(self) -> Iterator[Reason]:
        """Yield the note as a reason; it is about unknown properties if funnels follow it."""
        if self.note == TOGETHER:
            yield Reason("graph-together", self.note)
        elif self.note:
            yield Reason("graph-property" if self.funnels else "graph-undecided", self.note)

    def __bool__(self) -> bool:
        return bool(self.configured or self._make or any(self._found))

    def answer(self) -> ReasonsAnswer:
        """Return the reasons as they are written."""
        return ReasonsAnswer(
            codes=self.coded,
            funnels=tuple(funnel.answer() for funnel in self.funnels),
            note=self.note,
            would_do=self.changes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the reasons as JSON data."""
        return self.answer().to_dict()

    def short(self) -> str:
        """Return one line, for tables."""
        if self.configured:
            return self.configured[0].text
        return self.funnels[0].short() if self.funnels else self.note

    def with_codes(self) -> Iterator[str]:
        """Yield the lines of ``str()``, with the code before each reason."""
        yield from map(str, (*self.configured, *self._noted()))
        for funnel in self.funnels:
            yield from f"{funnel.code}: {funnel}".splitlines()
        yield from (change.sentence for change in self.changes)

    def __str__(self) -> str:
        lines = [str(reason) for reason in self.configured]
        lines += [self.note] if self.note else []
        lines += map(str, self.funnels)
        lines += [change.sentence for change in self.changes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Reasons: {'not read yet' if self._make else self.short() or 'none'}>"


def clock(seconds: float) -> str:
    """Return a time for people: a date and time if it is one since the epoch, else the seconds.

    >>> clock(300), clock(1763650000)
    ('300 s', '2025-11-20T14:46:40Z')
    """
    if seconds == float("inf"):
        return "no known end"
    if seconds < 1e9:
        return f"{seconds:g} s"
    from simsched.formats.rfc.duration import format_date

    return format_date(seconds)
