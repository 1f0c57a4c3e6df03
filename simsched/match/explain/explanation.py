"""Why not: which request vertices failed, and the funnel of each (M12)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from simsched.formats.rfc import constraint as rfc31
from simsched.graph.index.types import ABOVE, BELOW, TARGET
from simsched.match.explain.changes import nearest
from simsched.match.explain.funnel import Case, Times, can_have, units_step
from simsched.match.explain.holders import Claims
from simsched.match.explain.reasons import EXIST, FITS, IDLE, UP, Funnel, Reasons, Step
from simsched.match.requests.request import ABSENT, POOL, SLOT, VERTEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.formats.rfc.constraint import Constraint
    from simsched.match.explain.reasons import Change
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

MOST_NAMES = 20
"""How many properties of a cluster are named where one was asked for that it does not have."""

TOGETHER = "each part can be had by itself, all of them together cannot"


def explain(
    request: Request,
    avail: Availability,
    *,
    holders: Mapping[int | str, Selection] | None = None,
    ends: Mapping[int | str, float] | None = None,
) -> Reasons:
    """Return why a request does not match in this state.

    `holders` are the allocations that the state consists of, by id, and `ends` when they are
    expected to end (seconds); with both, the reasons tell who has what is missing, and from
    when on the request would match.
    """
    return explain_later(request, lambda: State(avail, holders or {}, ends or {}))


class State(NamedTuple):
    """A state, the allocations that it consists of by id, and their expected ends."""

    avail: Availability
    holders: Mapping[int | str, Selection]
    ends: Mapping[int | str, float]


def explain_later(request: Request, state: Callable[[], State]) -> Reasons:
    """Return reasons that are found when they are looked at, in the state that there was then."""
    return Reasons.later(lambda: _funnels(request, state()), lambda: _changes(request, state()))


def _failing(request: Request, avail: Availability) -> list[Need]:
    return [need for need in request.needs if not can_have(need, avail)]


def _funnels(request: Request, state: State) -> tuple[tuple[Funnel, ...], str]:
    """Return the funnels and the note."""
    case = Case(request, state.avail, Claims(state.avail.index, state.holders, state.ends))
    failing = _failing(request, state.avail)
    funnels = tuple(funnel for need in failing for funnel in _funnels_of(case, need, Times()))
    return (funnels, _unknown_properties(case)) if funnels else (tuple(_sums(case)), TOGETHER)


def _changes(request: Request, state: State) -> tuple[Change, ...]:
    failing = _failing(request, state.avail) or list(request.needs)
    return tuple(nearest(request, state.avail, failing, state.holders, state.ends))


# --- the request as a whole ----------------------------------------------------------------


def _sums(case: Case) -> Iterator[Funnel]:
    """Yield a funnel for each pool type of which the parts together ask for more than is free."""
    for type_, needed in case.request.demand.items():
        if needed > case.avail.total[type_]:
            size = case.index.pool_types[type_].size
            up = case.avail.free[type_] + case.avail.taken(type_)
            free = case.avail.total[type_]
            yield Funnel(
                path="the whole request",
                type=type_,
                steps=(units_step(EXIST, size), units_step(UP, up), Step(name=IDLE, left=free, holds=free)),
                needed=needed,
                available=free,
                binding=type_,
                held_by=case.held.units(type_, size > 0),
            )


def _unknown_properties(case: Case) -> str:
    """Return a note about properties that the constraint asks for and no target has."""
    asked = set(_properties(case.request.jobspec.constraint))
    unknown = sorted(asked - set(case.index.property_rows))
    if not unknown:
        return ""
    known = ", ".join(sorted(case.index.property_rows)[:MOST_NAMES]) or "none"
    return f"no {case.index.target_type} has the property {' or '.join(unknown)}; there are: {known}"


def _properties(constraint: Constraint | None) -> Iterator[str]:
    """Yield the properties that a constraint asks for, not those that it refuses."""
    match constraint:
        case rfc31.Properties():
            yield from (name for name in constraint.names if not name.startswith("^"))
        case rfc31.And() | rfc31.Or():
            for part in constraint.args:
                yield from _properties(part)


# --- which vertices fail -------------------------------------------------------------------


def _funnels_of(case: Case, need: Need, times: Times) -> Iterator[Funnel]:
    """Yield the funnels of `times` copies of a need: its own, then those of what is to blame beneath."""
    absent = next((part for part in need.walk() if part.kind == ABSENT), None)
    if absent is not None:
        yield case.absent(absent)
    elif need.kind == POOL:
        yield case.pool(need, times)
    elif need.kind == SLOT and need.content is None:
        yield from _of_children(case, need, times.slots(need.amount))
    elif need.kind == VERTEX and need.level != TARGET:
        yield case.of_vertices(need, times)
        yield from _of_children(case, need, times.vertices(need.amount))
    else:
        yield from _on_targets(case, need, times)


def _of_children(case: Case, need: Need, times: Times) -> Iterator[Funnel]:
    """Yield the funnels of the children that fail."""
    for child in need.children:
        if not times.can_have(child, case.avail):
            yield from _funnels_of(case, child, times)


def _on_targets(case: Case, need: Need, times: Times) -> Iterator[Funnel]:
    """Yield the funnel over targets, if it fails there, and those of what lies elsewhere."""
    far = [child for child in need.children if need.kind == SLOT and child.level == ABOVE]
    slots = times.slots(need.amount)
    failing = [child for child in far if not slots.can_have(child, case.avail)]
    funnel = case.of_targets(need, times)
    if funnel.available < funnel.needed or not failing:
        yield funnel
        if not funnel.steps[-1].left and funnel.steps[-1].name == FITS:
            yield from _within(case, need)
    for child in failing:
        yield from _funnels_of(case, child, slots)


def _within(case: Case, need: Need) -> Iterator[Funnel]:
    """Yield the funnels of the vertices within targets of which there is not even one that serves."""
    for child in need.children:
        if (
            child.kind == VERTEX
            and child.level == BELOW
            and not can_have(replace(child, amount=1), case.avail)
        ):
            yield case.of_vertices(child, Times())
