"""Why not: the funnels of the request vertices that failed (M12).

The filters are applied in one order, exist → up → constraint → id → idle → fits.  Each says
how many candidates it left, and how much of what is needed those could hold if they were
idle; so the first filter that leaves too little is the reason.  What "could hold" means is
asked of the same request without constraint and ids, on the idle cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.formats import constraint as rfc31
from simsched.formats.shape import format_shape
from simsched.formats.vertex import walk
from simsched.graph.kinds import ABOVE, BELOW, TARGET
from simsched.match.allocate import Availability, idle_cluster
from simsched.match.capacity import (
    EVERYWHERE,
    MANY,
    beneath,
    capacity,
    copies_of,
    hosts,
    is_idle,
    usable_units,
)
from simsched.match.compile import compile_request
from simsched.match.holders import Claims
from simsched.match.nearest import nearest
from simsched.match.reasons import CONSTRAINT, EXIST, FITS, ID, IDLE, UP, Funnel, Reasons, Step
from simsched.match.request import ABSENT, POOL, SLOT, VERTEX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.formats.constraint import Constraint
    from simsched.formats.jobspec import Jobspec
    from simsched.formats.vertex import ResourceVertex
    from simsched.graph.index import Index
    from simsched.graph.kinds import Bools, Ints
    from simsched.match.reasons import Change
    from simsched.match.request import Need, Request
    from simsched.match.selection import Selection

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
    return [need for need in request.needs if not _can_have(need, avail)]


def _funnels(request: Request, state: State) -> tuple[tuple[Funnel, ...], str]:
    """Return the funnels and the note."""
    case = _Case(request, state.avail, Claims(state.avail.index, state.holders, state.ends))
    failing = _failing(request, state.avail)
    funnels = tuple(funnel for need in failing for funnel in case.funnels(need, Times()))
    return (funnels, case.unknown_properties()) if funnels else (tuple(case.sums()), TOGETHER)


def _changes(request: Request, state: State) -> tuple[Change, ...]:
    failing = _failing(request, state.avail) or list(request.needs)
    return tuple(nearest(request, state.avail, failing, state.holders, state.ends))


def _can_have(need: Need, avail: Availability, times: int = 1) -> bool:
    return int(copies_of(need, EVERYWHERE, None, avail)[0]) >= times


class Times(NamedTuple):
    """How many copies of a need are asked for: `all` of them, and `apart`, beneath different vertices."""

    all: int = 1
    apart: int = 1

    def slots(self, count: int) -> Times:
        """Return the times of what is in so many slots, which may share what is shared."""
        return Times(self.all * count, self.apart)

    def vertices(self, count: int) -> Times:
        """Return the times of what is beneath so many vertices, which share nothing."""
        return Times(self.all * count, self.apart * count)

    def of(self, need: Need) -> int:
        """Return how many units of a pool all copies take; what is shared serves several."""
        return need.amount * (self.all if need.exclusive else self.apart)

    def can_have(self, need: Need, avail: Availability) -> bool:
        """Say whether all copies can be had, as far as they are counted by themselves."""
        wide = replace(need, amount=need.amount * self.apart) if self.apart > 1 else need
        return _can_have(wide, avail, self.all // self.apart)

    def shares(self, need: Need) -> int:
        """Return how many copies one vertex may serve at most: one if it is held."""
        return 1 if need.exclusive else self.all // self.apart


@dataclass
class _Case:
    """One request in one state, and the same request with nothing in its way."""

    request: Request
    avail: Availability
    held: Claims

    @property
    def index(self) -> Index:
        return self.avail.index

    @cached_property
    def vertices(self) -> list[ResourceVertex]:
        """The request's vertices in preorder, as they were asked for."""
        return list(walk(self.request.jobspec.resources))

    @cached_property
    def bare(self) -> list[Need]:
        """The needs of the request without constraint and ids, in preorder."""
        plain = _without_filters(self.request.jobspec)
        request = self.request
        compiled = compile_request(plain, self.index, request.rules, alone=request.alone, keep=False)
        return list(compiled.walk())

    @cached_property
    def idle(self) -> Availability:
        return idle_cluster(self.index)

    # --- the request as a whole ------------------------------------------------------------

    def sums(self) -> Iterator[Funnel]:
        """Yield a funnel for each pool type of which the parts together ask for more than is free."""
        for type_, needed in self.request.demand.items():
            if needed > self.avail.total[type_]:
                size = self.index.pool_types[type_].size
                up = self.avail.free[type_] + self.avail.taken(type_)
                free = self.avail.total[type_]
                yield Funnel(
                    path="the whole request",
                    type=type_,
                    steps=(_units(EXIST, size), _units(UP, up), Step(name=IDLE, left=free, holds=free)),
                    needed=needed,
                    available=free,
                    binding=type_,
                    held_by=self.held.units(type_, size > 0),
                )

    def unknown_properties(self) -> str:
        """Return a note about properties that the constraint asks for and no target has."""
        asked = set(_properties(self.request.jobspec.constraint))
        unknown = sorted(asked - set(self.index.property_rows))
        if not unknown:
            return ""
        known = ", ".join(sorted(self.index.property_rows)[:MOST_NAMES]) or "none"
        return f"no {self.index.target_type} has the property {' or '.join(unknown)}; there are: {known}"

    # --- which vertices fail ---------------------------------------------------------------

    def funnels(self, need: Need, times: Times) -> Iterator[Funnel]:
        """Yield the funnels of `times` copies of a need: its own, then those of what is to blame beneath."""
        absent = next((part for part in need.walk() if part.kind == ABSENT), None)
        if absent is not None:
            yield self._absent(absent)
        elif need.kind == POOL:
            yield self._pool(need, times)
        elif need.kind == SLOT and need.content is None:
            yield from self._children(need, times.slots(need.amount))
        elif need.kind == VERTEX and need.level != TARGET:
            yield self._vertices(need, times)
            yield from self._children(need, times.vertices(need.amount))
        else:
            yield from self._on_targets(need, times)

    def _children(self, need: Need, times: Times) -> Iterator[Funnel]:
        """Yield the funnels of the children that fail."""
        for child in need.children:
            if not times.can_have(child, self.avail):
                yield from self.funnels(child, times)

    def _on_targets(self, need: Need, times: Times) -> Iterator[Funnel]:
        """Yield the funnel over targets, if it fails there, and those of what lies elsewhere."""
        far = [child for child in need.children if need.kind == SLOT and child.level == ABOVE]
        slots = times.slots(need.amount)
        failing = [child for child in far if not slots.can_have(child, self.avail)]
        funnel = self._targets(need, times)
        if funnel.available < funnel.needed or not failing:
            yield funnel
            if not funnel.steps[-1].left and funnel.steps[-1].name == FITS:
                yield from self._within(need)
        for child in failing:
            yield from self.funnels(child, slots)

    def _within(self, need: Need) -> Iterator[Funnel]:
        """Yield the funnels of the vertices within targets of which there is not even one that serves."""
        for child in need.children:
            if (
                child.kind == VERTEX
                and child.level == BELOW
                and not _can_have(replace(child, amount=1), self.avail)
            ):
                yield self._vertices(child, Times())

    # --- one funnel each -------------------------------------------------------------------

    def _absent(self, need: Need) -> Funnel:
        known = ", ".join(sorted(self.index.totals))
        return Funnel(
            path=need.path,
            type=need.type,
            steps=(Step(name=EXIST, left=0, holds=0),),
            needed=need.amount,
            available=0,
            note=f"this cluster has no {need.type}; it has {known}" + _meant(need.type, self.index.totals),
        )

    def _pool(self, need: Need, times: Times) -> Funnel:
        needed = times.of(need)
        pool = self.index.pool_types[need.type]
        up = self.avail.free[need.type] + self.avail.taken(need.type)
        steps = [_units(EXIST, pool.size), _units(UP, up)]
        if not need.every:
            up = up * ((pool.target < 0) | need.eligible[pool.target])
            steps.append(_units(CONSTRAINT, up, self._constraint))
        if need.ids is not None or need.names is not None:
            up = np.minimum(up, self._identified_units(need))
            steps.append(_units(ID, up, self.vertices[need.number].id or ""))
        steps.append(_units(IDLE, usable_units(need, self.avail)))
        return Funnel(
            path=need.path,
            type=need.type,
            steps=tuple(steps),
            needed=needed,
            available=min(needed, steps[-1].left),
            binding=need.type,
            held_by=self.held.units(need.type, up > 0),
        )

    def _identified_units(self, need: Need) -> Ints:
        counts = [
            self.idle.usable_mask(need, b).bit_count() for b in range(len(self.index.pool_types[need.type]))
        ]
        return np.array(counts, dtype=np.int64)

    def _vertices(self, need: Need, times: Times) -> Funnel:
        """Return the funnel over the vertices of a type above or within targets."""
        most = times.shares(need)
        idle_fits = np.minimum(hosts(self.bare[need.number], None, self.idle), most)
        left = np.ones(len(idle_fits), dtype=np.bool_)
        steps = [_sum(EXIST, left, idle_fits)]
        left = left & self.avail.is_up(need.type)
        steps.append(_sum(UP, left, idle_fits))
        if not need.every:
            left = left & self._passes(need)
            steps.append(_sum(CONSTRAINT, left, idle_fits, self._constraint))
        if need.ids is not None or need.names is not None:
            left = left & self._identified(need)
            steps.append(_sum(ID, left, idle_fits, self.vertices[need.number].id or ""))
        ready = left & (
            is_idle(need.type, None, self.avail) if need.exclusive else ~self.avail.held[need.type]
        )
        steps.append(_sum(IDLE, ready, idle_fits))
        fits = np.where(ready, np.minimum(hosts(need, None, self.avail), most), 0)
        steps.append(_sum(FITS, fits > 0, fits, self._content(need)))
        return Funnel(
            path=need.path,
            type=need.type,
            steps=tuple(steps),
            needed=need.amount * times.all,
            available=min(need.amount * times.all, int(fits.sum())),
            held_by=self.held.vertices(need.type, left & (fits < idle_fits)),
        )

    def _targets(self, need: Need, times: Times) -> Funnel:
        """Return the funnel over the execution targets that a slot or a target vertex asks for."""
        content = need.content
        bare = self.bare[need.number].content
        assert content is not None
        assert bare is not None
        index, avail = self.index, self.avail
        distinct = content.node
        most = times.shares(need) if distinct else MANY
        needed = need.amount * times.all
        idle_fits = np.minimum(capacity(bare, self.idle).fits, most)
        left = np.ones(len(index), dtype=np.bool_)
        steps = [_sum(EXIST, left, idle_fits)]
        left = left & avail.up
        steps.append(_sum(UP, left, idle_fits))
        if not need.every:
            left = left & need.eligible
            steps.append(_sum(CONSTRAINT, left, idle_fits, self._constraint))
        if need.ids is not None or need.names is not None:
            left = left & content.eligible
            steps.append(_sum(ID, left, idle_fits, self.vertices[need.number].id or ""))
        ready = left & self._idle_enough(need)
        steps.append(_sum(IDLE, ready, idle_fits))
        fits = np.where(ready, np.minimum(capacity(content, avail).fits, most), 0)
        steps.append(_sum(FITS, fits > 0, fits, self._content(need)))
        available = min(needed, int(fits.sum()))
        all_serve = distinct and int((fits > 0).sum()) == int(left.sum())
        binding = index.target_type if all_serve else self._binding(need, left, needed)
        funnel = Funnel(
            path=need.path,
            type=index.target_type,
            steps=tuple(steps),
            needed=needed,
            available=available,
            binding=binding,
            held_by=self.held.targets(left & (fits < idle_fits), binding),
        )
        return replace(funnel, note=self._fragmented(funnel, need, left))

    # --- filters ---------------------------------------------------------------------------

    @cached_property
    def _constraint(self) -> str:
        return str(self.request.jobspec.constraint)

    def _content(self, need: Need) -> str:
        """Return what each copy asks for, as a shape."""
        inner = self.vertices[need.number].with_
        return format_shape(inner) if inner else ""

    def _passes(self, need: Need) -> Bools:
        """Say which vertices reach a target that the constraint lets pass (M7)."""
        vertices = self.index.vertex_types[need.type]
        if need.level == BELOW:
            passes: Bools = need.eligible[vertices.target]
            return passes
        view = beneath(need.type, self.index.target_type, None, self.index)
        reached: Bools = (view.sum(need.eligible.astype(np.int64)) > 0) | (view.high == view.low)
        return reached

    def _identified(self, need: Need) -> Bools:
        vertices = self.index.vertex_types[need.type]
        rows = zip(vertices.ids.tolist(), vertices.names, strict=True)
        return np.array(
            [
                (need.ids is None or i in need.ids) and (need.names is None or n in need.names)
                for i, n in rows
            ],
            dtype=np.bool_,
        )

    def _idle_enough(self, need: Need) -> Bools:
        """Say which targets have some left of all they ever have, or are idle if they are taken whole."""
        content = need.content
        assert content is not None
        kind, avail = self.index.target_type, self.avail
        if content.alone or (content.node and content.exclusive):
            return is_idle(kind, None, avail)
        row = ~avail.held[kind]
        for part in (part for child in _near(need) for part in child.walk()):
            if part.kind == POOL:
                never = _usable_on_targets(part, self.idle) == 0
                row = row & (never | (_usable_on_targets(part, avail) > 0))
        return row

    # --- what binds ------------------------------------------------------------------------

    def _binding(self, need: Need, left: Bools, needed: int) -> str | None:
        """Return the resource of which the targets that are `left` hold the fewest copies."""
        parts = _near(need)
        if not parts:
            return self.index.target_type
        held = {}
        for part in parts:
            copies = copies_of(part, self.index.target_type, None, self.avail)[left]
            held[self._scarcest(part, left)] = int(np.minimum(copies, needed).sum())
        scarcest = min(held, key=lambda type_: (held[type_], type_))
        distinct = need.content is not None and need.content.node
        return scarcest if held[scarcest] < needed or distinct else None

    def _scarcest(self, part: Need, left: Bools) -> str:
        """Return the type to name for a part: its own, or that of a child that is scarcer."""
        if not part.children:
            return part.type
        if part.kind == SLOT:
            child = min(part.children, key=lambda child: self._copies(child, left))
            return self._scarcest(child, left)
        hosting = [int((copies_of(child, part.type, None, self.avail) > 0).sum()) for child in part.children]
        fewest = min(hosting)
        if fewest == len(self.index.vertex_types[part.type]):
            return part.type
        return self._scarcest(part.children[hosting.index(fewest)], left)

    def _copies(self, need: Need, left: Bools) -> int:
        copies = copies_of(need, self.index.target_type, None, self.avail)[left]
        return int(np.minimum(copies, MANY // max(1, len(copies))).sum())

    def _fragmented(self, funnel: Funnel, need: Need, left: Bools) -> str:
        """Return a note where the parts suffice each by itself, but not on the same targets."""
        if funnel.binding is None and len(_near(need)) > 1 and left.any():
            types = sorted({self._scarcest(part, left) for part in _near(need)})
            return f"enough {' and '.join(types)}, but not on the same {self.index.target_type}s"
        if funnel.available >= funnel.needed and "/" in need.path:
            return "enough of them, but not where the rest of the request needs them"
        return ""


# --- small change -------------------------------------------------------------------------------


def _meant(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""


def _properties(constraint: Constraint | None) -> Iterator[str]:
    """Yield the properties that a constraint asks for, not those that it refuses."""
    match constraint:
        case rfc31.Properties():
            yield from (name for name in constraint.names if not name.startswith("^"))
        case rfc31.And() | rfc31.Or():
            for part in constraint.args:
                yield from _properties(part)


def _without_filters(jobspec: Jobspec) -> Jobspec:
    """Return the jobspec without constraint, and its resources without ids."""
    plain = replace(jobspec, resources=tuple(map(_without_ids, jobspec.resources)))
    return plain.with_system(constraints=None)


def _without_ids(vertex: ResourceVertex) -> ResourceVertex:
    return replace(vertex, id=None, with_=tuple(map(_without_ids, vertex.with_)))


def _near(need: Need) -> list[Need]:
    """Return the children that must be had within one target."""
    return [child for child in need.children if child.level != ABOVE or child.kind != POOL]


def _usable_on_targets(need: Need, avail: Availability) -> Ints:
    view = beneath(avail.index.target_type, need.type, None, avail.index)
    return view.sum(usable_units(need, avail))


def _units(name: str, sizes: Ints, note: str = "") -> Step:
    total = int(sizes.sum())
    return Step(name=name, left=total, holds=total, note=note)


def _sum(name: str, left: Bools, fits: Ints, note: str = "") -> Step:
    return Step(name=name, left=int(left.sum()), holds=int(fits[left].sum()), note=note)
