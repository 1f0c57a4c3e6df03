"""Funnels: how many candidates for one request vertex each filter leaves (M12).

The filters are applied in one order: exist → up → constraint → id → idle → fits.  Each reports
how many candidates it left, and how many copies those could hold if they were idle.  The first
filter that leaves too few is the reason.  The copies that candidates could hold are counted on the
idle cluster, for the same request without constraint and ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.errors import did_you_mean
from simsched.formats.jobspec.shape import format_shape
from simsched.formats.jobspec.validation_rules import KEY
from simsched.formats.jobspec.vertex import walk
from simsched.graph.index.types import ABOVE, BELOW
from simsched.match.explain.reasons import CONSTRAINT, EXIST, FITS, ID, IDLE, UP, Filter, Funnel, Step
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import POOL, SLOT, identified
from simsched.match.search.counts import (
    EVERYWHERE,
    MANY,
    beneath,
    capacity,
    copies_of,
    hosts,
    is_idle,
    usable_units,
)
from simsched.match.state.availability import idle_cluster

if TYPE_CHECKING:
    from simsched.arrays import Bools, Integers
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.graph.index.index import Index
    from simsched.match.explain.occupancy import Occupancy
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability


def can_have(need: Need, avail: Availability, times: int = 1) -> bool:
    """Whether `times` copies of a need are available, counted by itself."""
    return int(copies_of(need, EVERYWHERE, None, avail)[0]) >= times


class Times(NamedTuple):
    """How many copies of a need are requested: `all` of them, and `apart`, below different vertices."""

    all: int = 1
    apart: int = 1

    def slots(self, count: int) -> Times:
        """Return the numbers of copies in `count` slots, which may use one shared vertex together."""
        return Times(self.all * count, self.apart)

    def vertices(self, count: int) -> Times:
        """Return the numbers of copies of a need below `count` vertices, which share nothing."""
        return Times(self.all * count, self.apart * count)

    def of(self, need: Need) -> int:
        """Return how many units of a pool all copies take; a shared unit serves several of them."""
        return need.amount * (self.all if need.exclusive else self.apart)

    def can_have(self, need: Need, avail: Availability) -> bool:
        """Whether all copies are available, each part counted by itself."""
        wide = replace(need, amount=need.amount * self.apart) if self.apart > 1 else need
        return can_have(wide, avail, self.all // self.apart)

    def shares(self, need: Need) -> int:
        """Return how many copies one vertex may serve at most: one if it is claimed exclusively."""
        return 1 if need.exclusive else self.all // self.apart


@dataclass
class Case:
    """One request in one state, and the same request without filters on the idle cluster."""

    request: Request
    state: Occupancy

    @property
    def avail(self) -> Availability:
        """The free units and claims of the state."""
        return self.state.avail

    @property
    def index(self) -> Index:
        """The compiled cluster."""
        return self.state.index

    @cached_property
    def vertices(self) -> list[ResourceVertex]:
        """The jobspec's vertices in preorder."""
        return list(walk(self.request.jobspec.resources))

    @cached_property
    def bare(self) -> list[Need]:
        """The needs of the request without constraint and ids, in preorder."""
        plain = _without_filters(self.request.jobspec)
        request = self.request
        compiled = compile_request(plain, self.index, request.dialect, alone=request.alone, keep=False)
        return list(compiled.walk())

    @cached_property
    def idle(self) -> Availability:
        """The cluster with nothing on it."""
        return idle_cluster(self.index)

    def absent(self, need: Need) -> Funnel:
        """Return the funnel of a type that the cluster does not have."""
        known = ", ".join(sorted(self.index.totals))
        meant = did_you_mean(need.type, self.index.totals, cutoff=0.75)
        return Funnel(
            path=need.path,
            type=need.type,
            steps=(Step(name=EXIST, left=0, holds=0),),
            needed=need.amount,
            available=0,
            note=f"this cluster has no {need.type}; it has {known}{meant}",
        )

    def pool(self, need: Need, times: Times) -> Funnel:
        """Return the funnel over the units of a pool type."""
        needed = times.of(need)
        pool = self.index.pool_types[need.type]
        up = self.avail.free[need.type] + self.avail.taken(need.type)
        steps = [units_step(EXIST, pool.size), units_step(UP, up)]
        if not need.every:
            up = up * ((pool.target < 0) | need.eligible[pool.target])
        if need.kinds:
            up = np.minimum(up, self._identified_units(need))
        if need.kinds or not need.every:
            steps.append(units_step(CONSTRAINT, up, self._constraint))
        if need.ids is not None or need.names is not None:
            up = np.minimum(up, self._identified_units(need))
            steps.append(units_step(ID, up, self.vertices[need.number].id or ""))
        steps.append(units_step(IDLE, usable_units(need, self.avail)))
        return Funnel(
            path=need.path,
            type=need.type,
            steps=tuple(steps),
            needed=needed,
            available=min(needed, steps[-1].left),
            binding=need.type,
            held_by=self.state.holders_of_units(need.type, up > 0),
        )

    def _identified_units(self, need: Need) -> Integers:
        counts = [
            self.idle.usable_mask(need, b).bit_count() for b in range(len(self.index.pool_types[need.type]))
        ]
        return np.array(counts, dtype=np.int64)

    def of_vertices(self, need: Need, times: Times) -> Funnel:
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
            left = left & identified(self.index.vertex_types[need.type], need.ids, need.names)
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
            held_by=self.state.holders_of_vertices(need.type, left & (fits < idle_fits)),
        )

    def of_targets(self, need: Need, times: Times) -> Funnel:
        """Return the funnel over the execution targets, for a slot or a target vertex."""
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
            held_by=self.state.holders_of_targets(left & (fits < idle_fits), binding),
        )
        return replace(funnel, note=self._fragmented(funnel, need, left))

    # --- filters ---------------------------------------------------------------------------

    @cached_property
    def _constraint(self) -> str:
        if KEY in self.request.jobspec.system:
            return "the constraints of the parts"
        return str(self.request.jobspec.constraint)

    def _content(self, need: Need) -> str:
        """Return the content of each copy as a shape."""
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

    def _idle_enough(self, need: Need) -> Bools:
        """Say which targets have free units of each type that they own; those taken whole must be idle."""
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

    # --- the binding resource --------------------------------------------------------------

    def _binding(self, need: Need, left: Bools, needed: int) -> str | None:
        """Return the resource that limits the copies on the targets `left` most."""
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
        """Return a note if each part fits by itself, but not all of them on the same targets."""
        if funnel.binding is None and len(_near(need)) > 1 and left.any():
            types = sorted({self._scarcest(part, left) for part in _near(need)})
            return f"enough {' and '.join(types)}, but not on the same {self.index.target_type}s"
        if funnel.available >= funnel.needed and "/" in need.path:
            return "enough of them, but not where the rest of the request needs them"
        return ""


def _without_filters(jobspec: Jobspec) -> Jobspec:
    """Return the jobspec without constraint, and its resources without ids."""
    plain = replace(jobspec, resources=tuple(map(_without_ids, jobspec.resources)))
    return plain.with_system(constraints=None, **{KEY: None})


def _without_ids(vertex: ResourceVertex) -> ResourceVertex:
    return replace(vertex, id=None, with_=tuple(map(_without_ids, vertex.with_)))


def _near(need: Need) -> list[Need]:
    """Return the children that one target must provide."""
    return [child for child in need.children if child.level != ABOVE or child.kind != POOL]


def _usable_on_targets(need: Need, avail: Availability) -> Integers:
    view = beneath(avail.index.target_type, need.type, None, avail.index)
    return view.sum(usable_units(need, avail))


def units_step(name: Filter, sizes: Integers, note: str = "") -> Step:
    """Return the step of a filter that leaves `sizes` units of the leaf pools."""
    total = int(sizes.sum())
    return Step(name=name, left=total, holds=total, note=note)


def _sum(name: Filter, left: Bools, fits: Integers, note: str = "") -> Step:
    return Step(name=name, left=int(left.sum()), holds=int(fits[left].sum()), note=note)
