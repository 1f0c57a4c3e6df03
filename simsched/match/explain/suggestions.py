"""Suggestions: the smallest changes with which a request would fit, each of them tried (M12)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import SimschedError
from simsched.formats.jobspec.shape import format_shape
from simsched.formats.jobspec.validation_rules import KEY
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.count import Count
from simsched.match.explain.reasons import Suggestion, clock
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import VERTEX
from simsched.match.search.counts import EVERYWHERE, copies_of
from simsched.match.search.select import can_match

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.constraint import Constraint
    from simsched.match.explain.occupancy import Occupancy
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability

TRIED = 8
"""Vertices of a request that are tried with a smaller count."""

MOST_MORE = 1 << 16
"""Counts that are tried above the own one of a vertex."""

STEPS = 2_000
"""Steps of the exact search that one try may take."""


def suggestions(request: Request, state: Occupancy, failing: list[Need]) -> Iterator[Suggestion]:
    """Yield changes with which the whole request matches; `failing` are the needs that do not fit."""
    trial = _Trial(request, state.avail)
    found = list(trial.single_changes(failing))
    yield from found or trial.all_smaller(failing)
    yield from trial.later(state)


def other_counts(request: Request, works: Callable[[Jobspec], bool], *, more: bool) -> Iterator[Suggestion]:
    """Yield the count of each vertex with which the request works, nearest to its own; `more`: above it."""
    needs = [need for top in request.needs for need in top.walk()][:TRIED]
    for need in needs if more else _countable(list(request.needs)):
        own = need.count.min

        def fits(count: int, need: Need = need) -> bool:
            return works(_counted(request.jobspec, need.number, count))

        if more:
            low, high = own, own + 1
            while high <= own + MOST_MORE and not fits(high):
                low, high = high, own + 2 * (high - own)
            if high > own + MOST_MORE:
                continue
        elif own > 1 and fits(1):
            low, high = own, 1
        else:
            continue
        while abs(low - high) > 1:  # `high` works, and `low` does not
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        unit, path = _unit_of(request.jobspec, need.number), f" ({need.path})" if "/" in need.path else ""
        text = f"{need.type}={high}{unit} instead of {own}{unit}{path}"
        yield Suggestion(kind="count", text=text, path=need.path, value=high)


class _Trial:
    """Tries variations of one request in one state."""

    def __init__(self, request: Request, avail: Availability) -> None:
        self.request = request
        self.jobspec = request.jobspec
        self.avail = avail

    def works(
        self, jobspec: Jobspec, avail: Availability | None = None, *, alone: bool | None = None
    ) -> bool:
        """Whether a variation matches; a variation that `STEPS` do not settle counts as a refusal."""
        state = self.avail if avail is None else avail
        try:
            whole = self.request.alone if alone is None else alone
            request = compile_request(jobspec, state.index, self.request.dialect, alone=whole, keep=False)
            return can_match(request, state, STEPS)
        except SimschedError:
            return False

    def single_changes(self, failing: list[Need]) -> Iterator[Suggestion]:
        """Try one change at a time."""
        if len(failing) == len(self.request.needs) > 1:
            yield from self.fewer_parts()
        yield from self.smaller_counts(failing)
        yield from self.wider_constraints()
        yield from self.other_vertices(failing)
        yield from self.all_up()

    def smaller_counts(self, failing: list[Need]) -> Iterator[Suggestion]:
        """Try the largest count that works, for one vertex at a time."""
        for need in _countable(failing):
            best = self._largest(self.jobspec, need, self._counted_at_most(need))
            if best:
                yield Suggestion(kind="count", text=self._words(need, best), path=need.path, value=best)

    def all_smaller(self, failing: list[Need]) -> Iterator[Suggestion]:
        """Try all counts at 1, then enlarge each as far as the others allow."""
        needs = _countable(failing)
        jobspec = self.jobspec
        for need in needs:
            jobspec = _counted(jobspec, need.number, 1)
        constraint = None if self.request.every else jobspec.constraint
        if not needs or not self.works(jobspec):
            jobspec = jobspec.with_system(constraints=None)
            if not needs or constraint is None or not self.works(jobspec):
                return
        else:
            constraint = None
        words = []
        for need in reversed(needs):
            best = max(1, self._largest(jobspec, need, need.count.min))
            jobspec = _counted(jobspec, need.number, best)
            words += [self._words(need, best)] if best < need.count.min else []
        words = words[::-1] + ([f"without the constraint {constraint}"] if constraint is not None else [])
        yield Suggestion(kind="several", text=" and ".join(words))

    def _words(self, need: Need, count: int) -> str:
        unit = _unit_of(self.jobspec, need.number)
        path = f" ({need.path})" if "/" in need.path else ""
        return f"{need.type}={count}{unit} instead of {need.count.min}{unit}{path}"

    def _counted_at_most(self, need: Need) -> int:
        """Return an upper bound, below the requested count, on the count of a need that could fit."""
        high = need.count.min - 1
        if need.amount != need.count.min:
            return high
        if need in self.request.needs:

            def lacks(amount: int) -> bool:
                return bool(copies_of(replace(need, amount=amount), EVERYWHERE, None, self.avail)[0] < 1)

            return bisect_left(range(1, high + 1), x=True, key=lacks)
        times = _times_on_target(self.request.needs, need)
        if not times:
            return high
        fits = copies_of(replace(need, amount=1), self.avail.index.target_type, None, self.avail)
        return min(high, int(fits.max(initial=0)) // times)

    def _largest(self, jobspec: Jobspec, need: Need, high: int) -> int:
        """Return the largest count up to `high` that works, by bisection; 0 if none does.

        A match with n copies holds one with fewer, so the counts that work are those up to a limit.
        """
        if high and self.works(_counted(jobspec, need.number, high)):
            return high
        if high < 2 or not self.works(_counted(jobspec, need.number, 1)):
            return 0
        low, high = 1, high - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.works(_counted(jobspec, need.number, middle)):
                low = middle
            else:
                high = middle - 1
        return low

    def fewer_parts(self) -> Iterator[Suggestion]:
        """Try without one of the top-level vertices."""
        # The constraints of a heterogeneous job belong to places in its resources.
        parts = () if KEY in self.jobspec.system else self.jobspec.resources
        for part in parts:
            rest = tuple(other for other in parts if other is not part)
            if self.works(replace(self.jobspec, resources=rest)):
                yield Suggestion(kind="sibling", text=f"without {format_shape((part,))}")

    def wider_constraints(self) -> Iterator[Suggestion]:
        """Try without the constraint's parts, one at a time, or else without all of it."""
        constraint = self.jobspec.constraint
        if constraint is None or self.request.every:
            return
        found = False
        parts = list(_without_one(constraint))
        for dropped, rest in parts:
            if self.works(self.jobspec.with_system(constraints=rfc31.to_json(rest))):
                found = True
                yield Suggestion(kind="constraint", text=f"without {dropped}")
        if not found and self.works(self.jobspec.with_system(constraints=None)):
            yield Suggestion(kind="constraint", text=f"without the constraint {constraint}")

    def other_vertices(self, failing: list[Need]) -> Iterator[Suggestion]:
        """Try any vertex instead of a named one, and shared vertices instead of exclusive ones."""
        for need in (part for top in failing for part in top.walk()):
            if need.ids is not None or need.names is not None:
                change = self._edited(need, lambda vertex: replace(vertex, id=None))
                if self.works(change):
                    yield Suggestion(kind="id", text=f"any {need.type}, without id", path=need.path)
            elif need.kind == VERTEX and need.exclusive and need.children:
                change = self._edited(need, lambda vertex: replace(vertex, exclusive=False))
                if self.works(change):
                    yield Suggestion(kind="sharing", text=f"with {need.type}{{-x}}, shared", path=need.path)
        if self.request.alone and self.works(self.jobspec, alone=False):
            yield Suggestion(kind="sharing", text="with a match policy that shares nodes")

    def _edited(self, need: Need, edit: Callable[[ResourceVertex], ResourceVertex]) -> Jobspec:
        return _edited(self.jobspec, need.number, edit)

    def all_up(self) -> Iterator[Suggestion]:
        """Try with the targets that are down back up."""
        down = np.flatnonzero(~self.avail.up)
        if len(down):
            state = self.avail.copy()
            state.set_status(down, up=True)
            if self.works(self.jobspec, state):
                kind = self.avail.index.target_type
                names = f"{len(down)} {kind}s that are down" if len(down) > 1 else f"{kind} that is down"
                yield Suggestion(kind="status", text=f"with the {names} back up")

    def later(self, state: Occupancy) -> Iterator[Suggestion]:
        """Try at the ends of the allocations."""
        ended = state.to_wait_for(lambda later: self.works(self.jobspec, later))
        if ended:
            end = state.ends[ended[-1]]
            yield Suggestion(kind="time", text=f"at {clock(end)}, when job {ended[-1]} ends", value=end)


def _times_on_target(needs: tuple[Need, ...], wanted: Need, times: int = 0) -> int:
    """Return how many of a need one execution target has to host at least; 0 if none.

    `times` are the copies of the need that contains `needs` on one target; 0 above the targets.
    """
    for need in needs:
        if need is wanted:
            return times
        inner = times * need.amount if times else int(need.content is not None)
        found = _times_on_target(need.children, wanted, inner)
        if found:
            return found
    return 0


def _countable(failing: list[Need]) -> list[Need]:
    """Return the needs with a count above 1, the first `TRIED` of them."""
    return [need for top in failing for need in top.walk() if need.count.min > 1][:TRIED]


# --- edited requests ----------------------------------------------------------------------------


def _counted(jobspec: Jobspec, number: int, count: int) -> Jobspec:
    return _edited(jobspec, number, lambda vertex: replace(vertex, count=Count.fixed(count)))


def _edited(jobspec: Jobspec, number: int, edit: Callable[[ResourceVertex], ResourceVertex]) -> Jobspec:
    """Return the jobspec with the vertex of that preorder number edited."""
    left = [number]

    def visit(vertex: ResourceVertex) -> ResourceVertex:
        here = left[0] == 0
        left[0] -= 1
        below = tuple(visit(child) for child in vertex.with_)
        vertex = vertex if below == vertex.with_ else replace(vertex, with_=below)
        return edit(vertex) if here else vertex

    return replace(jobspec, resources=tuple(visit(vertex) for vertex in jobspec.resources))


def _unit_of(jobspec: Jobspec, number: int) -> str:
    from simsched.formats.jobspec.vertex import walk

    vertex = list(walk(jobspec.resources))[number]
    return f" {vertex.unit}" if vertex.unit else ""


def _without_one(constraint: Constraint) -> Iterator[tuple[str, Constraint]]:
    """Yield each part of a conjunction in words, with the constraint without it."""
    match constraint:
        case rfc31.Properties() if len(constraint.names) > 1:
            for name in constraint.names:
                rest = tuple(other for other in constraint.names if other != name)
                yield f"the property {name}", rfc31.Properties(rest)
        case rfc31.And() if len(constraint.args) > 1:
            for part in constraint.args:
                others = tuple(other for other in constraint.args if other is not part)
                yield named_part(part), others[0] if len(others) == 1 else rfc31.And(others)


def named_part(part: Constraint) -> str:
    """Return a part of a constraint in the words of a suggestion."""
    if isinstance(part, rfc31.Properties) and len(part.names) == 1:
        return f"the property {part.names[0]}"
    return f"the constraint {part}"
