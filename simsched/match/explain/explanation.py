"""The reasons against a match: the request vertices that failed, and the funnel of each (M12)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.formats.jobspec.heterogeneous import part_constraints
from simsched.formats.rfc import constraint as rfc31
from simsched.graph.index.types import ABOVE, BELOW, TARGET
from simsched.match.explain.funnel import Case, Times, can_have, units_step
from simsched.match.explain.occupancy import Occupancy
from simsched.match.explain.reasons import EXIST, FITS, IDLE, TOGETHER, UP, Funnel, Reasons, Step
from simsched.match.explain.suggestions import suggestions
from simsched.match.requests.request import ABSENT, POOL, SLOT, VERTEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.formats.rfc.constraint import Constraint
    from simsched.match.explain.reasons import Suggestion
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

MOST_NAMES = 20
"""Known properties listed if a request names one that the cluster does not have."""


def explain(
    request: Request,
    avail: Availability,
    *,
    holders: Mapping[int | str, Selection] | None = None,
    ends: Mapping[int | str, float] | None = None,
) -> Reasons:
    """Return why a request does not match in this state.

    `holders` are the allocations that the state consists of, by id, and `ends` their expected ends
    (seconds).  With both, the reasons name the allocations that have the missing resources, and the
    time from which the request would match.
    """
    return explain_later(request, lambda: Occupancy(avail, holders or {}, ends or {}))


def explain_later(request: Request, state: Callable[[], Occupancy]) -> Reasons:
    """Return reasons that are worked out when they are first read; `state` then returns the state."""
    return Reasons(find=lambda: _funnels(request, state()), attempt=lambda: _changes(request, state()))


def _failing(request: Request, avail: Availability) -> list[Need]:
    return [need for need in request.needs if not can_have(need, avail)]


def _funnels(request: Request, state: Occupancy) -> tuple[tuple[Funnel, ...], str]:
    """Return the funnels and the note."""
    case = Case(request, state)
    failing = _failing(request, state.avail)
    funnels = tuple(funnel for need in failing for funnel in _funnels_of(case, need, Times()))
    return (funnels, _unknown_properties(case)) if funnels else (tuple(_sums(case)), TOGETHER)


def _changes(request: Request, state: Occupancy) -> tuple[Suggestion, ...]:
    failing = _failing(request, state.avail) or list(request.needs)
    return tuple(suggestions(request, state, failing))


# --- the request as a whole ----------------------------------------------------------------


def _sums(case: Case) -> Iterator[Funnel]:
    """Yield a funnel for each pool type whose free units do not suffice for all parts together."""
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
                held_by=case.state.holders_of_units(type_, size > 0),
            )


def _unknown_properties(case: Case) -> str:
    """Return a note about properties that the constraint requires and no target has."""
    jobspec = case.request.jobspec
    rules = part_constraints(jobspec) or [jobspec.constraint]
    required = {name for rule in rules for name in _properties(rule)}
    unknown = sorted(required - set(case.index.property_rows))
    if not unknown:
        return ""
    known = ", ".join(sorted(case.index.property_rows)[:MOST_NAMES]) or "none"
    return f"no {case.index.target_type} has the property {' or '.join(unknown)}; known properties: {known}"


def _properties(constraint: Constraint | None) -> Iterator[str]:
    """Yield the properties that a constraint requires, not those that it excludes."""
    match constraint:
        case rfc31.Properties():
            yield from (name for name in constraint.names if not name.startswith("^"))
        case rfc31.And() | rfc31.Or():
            for part in constraint.args:
                yield from _properties(part)


# --- which vertices fail -------------------------------------------------------------------


def _funnels_of(case: Case, need: Need, times: Times) -> Iterator[Funnel]:
    """Yield the funnels of `times` copies of a need: its own, then those of the needs below that fail."""
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
    """Yield the funnel over targets, if the need fails there, and those of needs that no target contains."""
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
    """Yield the funnels of the vertices within targets, if not a single one can serve."""
    for child in need.children:
        if (
            child.kind == VERTEX
            and child.level == BELOW
            and not can_have(replace(child, amount=1), case.avail)
        ):
            yield case.of_vertices(child, Times())
