"""Jobspec → request: its resources and constraint in the terms of one cluster.

Requests are cached, `MAX_REQUESTS` of them: equal resources and constraints share one `Request`, and
slots of equal content share one set of counts, whatever their number of copies.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from simsched.errors import RequestError
from simsched.formats.jobspec.heterogeneous import part_constraints
from simsched.formats.jobspec.validation_rules import KEY
from simsched.formats.rfc.constraint import kinds_of_units
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.units import convert
from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.graph.index.types import ABOVE, BELOW, TARGET
from simsched.match.requests.dialect import RFC14
from simsched.match.requests.request import (
    ABSENT,
    POOL,
    SLOT,
    VERTEX,
    Content,
    Need,
    Request,
    flat_demand,
    identified,
)

if TYPE_CHECKING:
    from simsched.arrays import Bools
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.index.index import Index
    from simsched.match.requests.dialect import Dialect
    from simsched.match.requests.request import Flat

MAX_KEPT = 4096
"""Contents, and constraints, that are remembered."""

MAX_REQUESTS = 16_384
"""Requests that are remembered, of 2 to 4 KB each; with one more, all are forgotten."""

_Kept = TypeVar("_Kept")

MAX_UNITS = 10**15
"""A larger count is refused: no cluster has that many units, and sums of them would overflow."""


def compile_request(
    jobspec: Jobspec, index: Index, dialect: Dialect = RFC14, *, alone: bool = False, keep: bool = True
) -> Request:
    """Compile a jobspec's resources and constraint against a cluster.

    With `alone`, only idle targets serve, and they are taken whole (policies of whole nodes).
    Without `keep` the request is not remembered: for requests that are tried once.  A remembered
    request may be forgotten: keep a reference if equal requests have to be one object.

    Raises
    ------
    RequestError
        if the request has no meaning here: units of another dimension, a slot in a slot,
        a slot without content, a slot or vertex below a pool.
    """
    key = (jobspec.resources, jobspec.constraint, jobspec.system.get(KEY), dialect, alone)
    cache: dict[object, Request] = index.memo.setdefault("requests", {})
    request = cache.get(key)
    if request is None:
        request = _Compiler(index, jobspec, dialect, {}, alone=alone).request()
        if keep:
            _remember(cache, key, request, MAX_REQUESTS)
    return request


def with_amount(request: Request, number: int, amount: int, index: Index) -> Request:
    """Return the request with one ranged need fixed at `amount`; the other choices stay."""
    variant = request.variants.get((number, amount))
    if variant is None:
        chosen = {**request.chosen, number: amount}
        variant = _Compiler(index, request.jobspec, request.dialect, chosen, alone=request.alone).request()
        request.variants[number, amount] = variant
    return variant


class _Compiler:
    """One compilation; short-lived."""

    def __init__(
        self, index: Index, jobspec: Jobspec, dialect: Dialect, chosen: dict[int, int], *, alone: bool
    ) -> None:
        self.index = index
        self.alone = alone
        self.jobspec = jobspec
        self.dialect = dialect
        self.chosen = chosen
        """Counts settled for ranged vertices: in the request's own unit, by preorder number."""
        self.number = 0
        self.ranged: list[tuple[int, int]] = []  # depth and preorder number
        self.constraint = jobspec.constraint
        self.eligible, self.every = _eligible(self.constraint, index)

    def request(self) -> Request:
        if not self.jobspec.resources:
            raise RequestError(
                "the request has no resources", where="resources", expected="at least one vertex"
            )
        needs = self._needs()
        demand: dict[str, int] = {}
        for need in needs:
            _add_demand(need, 1, demand)
        separable = is_separable(needs, self.index, alone=self.alone)
        return Request(
            jobspec=self.jobspec,
            needs=needs,
            eligible=self.eligible,
            every=self.every,
            demand=demand,
            nodes=max(1, sum(_targets_touched(need) for need in needs)),
            slots=sum(_slots(need, 1) for need in needs),
            ranged=tuple(number for _, number in sorted(self.ranged)),  # the outermost first (M6)
            separable=separable,
            plain=self._plain(needs),
            simple=self._simple(needs) if separable else None,
            whole=self._whole(needs),
            dialect=self.dialect,
            chosen=self.chosen,
            alone=self.alone,
        )

    def _needs(self) -> tuple[Need, ...]:
        """Return the top-level needs; parts of a heterogeneous job have constraints of their own."""
        apart = part_constraints(self.jobspec)
        if apart is None:
            return tuple(self.need(vertex, in_slot=False, path="") for vertex in self.jobspec.resources)
        needs = []
        for vertex, constraint in zip(self.jobspec.resources, apart, strict=True):
            self.constraint = constraint
            self.eligible, self.every = _eligible(constraint, self.index)
            needs.append(self.need(vertex, in_slot=False, path=""))
        rows = [_eligible(constraint, self.index)[0] for constraint in apart]
        self.eligible = np.logical_or.reduce(rows)
        self.every = bool(self.eligible.all())
        return tuple(needs)

    def need(self, vertex: ResourceVertex, *, in_slot: bool, path: str) -> Need:
        number = self.number
        self.number += 1
        path = f"{path}/{vertex.type}" if path else vertex.type
        if vertex.type == "slot":
            return self._slot(vertex, number, path, in_slot=in_slot)
        kind, level = self._place(vertex.type)
        if kind == POOL and vertex.with_:
            raise RequestError(
                f"a {vertex.type} contains nothing in this cluster", where=path, expected="no 'with'"
            )
        at_target = kind == VERTEX and level == TARGET
        children = tuple(self.need(child, in_slot=in_slot, path=path) for child in vertex.with_)
        exclusive = self.dialect.is_exclusive(vertex.exclusive, in_slot=in_slot)
        ids, names = self._identified(vertex, path)
        kinds = self._kinds(vertex.type, level) if kind == POOL else frozenset()
        flat = flat_demand(children)
        return Need(
            type=vertex.type,
            kind=kind,
            level=level,
            amount=self._amount(vertex, number, path),
            count=vertex.count,
            exclusive=exclusive,
            whole=kind == VERTEX and ((exclusive and not vertex.with_) or vertex.exclusive is True),
            children=children,
            ids=ids,
            names=names,
            kinds=kinds,
            path=path,
            number=number,
            label=vertex.label,
            eligible=self.eligible,
            every=self.every,
            flat=flat,
            content=self._content(children, flat, ids, names, exclusive=exclusive) if at_target else None,
        )

    def _slot(self, vertex: ResourceVertex, number: int, path: str, *, in_slot: bool) -> Need:
        if in_slot:
            raise RequestError("a slot cannot contain a slot", where=path)
        if not vertex.with_:
            raise RequestError("a slot needs content", where=path, expected="'with'")
        amount = self._amount(vertex, number, path)
        children = tuple(self.need(child, in_slot=True, path=path) for child in vertex.with_)
        flat = flat_demand(children)
        parts = [part for child in children for part in child.walk()]
        on_target = tuple(child for child in children if child.level != ABOVE)
        # A copy is within one target (M3) if it has units or vertices there and claims no vertex
        # at or above the targets.  Pools above the targets (licences) are drawn beside the target.
        confined = any(part.level != ABOVE for part in parts) and not any(
            part.kind == VERTEX and part.level != BELOW for part in parts
        )
        content = None
        if confined:
            units = flat if len(on_target) == len(children) else flat_demand(on_target)
            content = self._content(on_target, units, None, None, node=False)
        return Need(
            type="slot",
            kind=SLOT,
            level=TARGET if confined else ABOVE,
            amount=amount,
            count=vertex.count,
            exclusive=vertex.exclusive is not False,
            whole=False,
            children=children,
            ids=None,
            names=None,
            kinds=frozenset(),
            path=path,
            number=number,
            label=vertex.label,
            eligible=self.eligible,
            every=self.every,
            flat=flat,
            content=content,
        )

    def _place(self, type_: str) -> tuple[str, str]:
        places: dict[str, tuple[str, str]] = self.index.memo.setdefault("places", {})
        if type_ not in places:
            vertices, pool = self.index.vertex_types.get(type_), self.index.pool_types.get(type_)
            if vertices is not None:
                places[type_] = VERTEX, vertices.level
            elif pool is not None:
                places[type_] = POOL, BELOW if pool.on_targets else ABOVE
            else:
                return ABSENT, BELOW
        return places[type_]

    def _amount(self, vertex: ResourceVertex, number: int, path: str) -> int:
        amount = self.chosen.get(number, vertex.count.min)
        if not vertex.count.is_fixed and number not in self.chosen:
            self.ranged.append((path.count("/"), number))
        if amount > MAX_UNITS:
            raise RequestError(f"a count of {amount} is too large for any cluster", where=path)
        own = getattr(self.index.pool_types.get(vertex.type), "unit", "")  # vertices have none (M2)
        if vertex.unit in (None, own) or self._place(vertex.type)[0] == ABSENT:
            return amount
        if not own:
            raise RequestError(
                f"the cluster counts {vertex.type} without a unit, the request asks for {vertex.unit!r}",
                where=path,
                expected="no unit",
            )
        try:
            return ceil(convert(amount, vertex.unit, own))
        except RequestError as error:
            raise error.at(path) from None

    def _kinds(self, type_: str, level: str) -> frozenset[str]:
        """Return the kinds of units that the constraint names, if the targets that it selects have others."""
        kinds = kinds_of_units(self.constraint, type_)
        if not kinds or level == ABOVE:
            return frozenset()
        pool = self.index.pool_types[type_]
        others = ~self.index.units_of_kinds(type_, kinds).whole & (pool.target >= 0)
        return kinds if (others & self.eligible[pool.target]).any() else frozenset()

    def _identified(self, vertex: ResourceVertex, path: str) -> tuple[Idset | None, frozenset[str] | None]:
        """Read `id`: an idset of vertex ids, or a hostlist of names (M2)."""
        if vertex.id is None:
            return None, None
        text = vertex.id
        if text and all(c in "0123456789,-[]" for c in text):
            return Idset.parse(text, where=f"{path}.id"), None
        return None, frozenset(Hostlist.parse(text, where=f"{path}.id"))

    def _content(
        self,
        needs: tuple[Need, ...],
        flat: Flat | None,
        ids: Idset | None,
        names: frozenset[str] | None,
        *,
        node: bool = True,
        exclusive: bool = False,
    ) -> Content:
        """Return the shared `Content` of these needs, which draw `flat`, under this constraint."""
        key = (
            "content",
            self.constraint if not self.every else None,
            node,
            exclusive,
            self.alone,
            ids,
            names,
            flat if flat is not None else tuple(_signature(need) for need in needs),
        )
        cache: dict[object, Content] = self.index.memo.setdefault("contents", {})
        content = cache.get(key)
        if content is None:
            eligible, every = self.eligible, self.every
            if ids is not None or names is not None:
                targets = self.index.vertex_types[self.index.target_type]
                eligible = eligible & identified(targets, ids, names)
                every = bool(eligible.all())
            unit = self._one_unit(flat) if every and not node and not self.alone else None
            content = Content(node, exclusive, needs, flat, eligible, every, self.alone, unit)
            _remember(cache, key, content)
        return content

    def _plain(self, needs: tuple[Need, ...]) -> Content | None:
        content = needs[0].content
        if len(needs) > 1 or needs[0].kind != SLOT or needs[0].loose or self.ranged or self.alone:
            return None
        if content is None or not content.flat:
            return None
        pools = [self.index.pool_types.get(type_) for type_, _ in content.flat]
        return content if all(pool is not None and pool.aligned for pool in pools) else None

    def _simple(self, needs: tuple[Need, ...]) -> tuple[Need, int] | None:
        need, wanted = needs[0], needs[0].amount
        if len(needs) > 1 or self.ranged or self.alone:
            return None
        if need.kind == SLOT and need.content is None and len(need.children) == 1:
            need, wanted = need.children[0], wanted * need.children[0].amount
            if not need.exclusive:
                return None
        content = need.content
        if content is None or need.level != TARGET or content.flat is None or need.loose:
            return None
        types = {type_ for type_, _ in content.flat}
        if need.kind == VERTEX and need.exclusive:
            if need.children:
                return None
            types = set(self.index.types_beneath(self.index.target_type) & self.index.pool_types.keys())
        have_leaves = all(leaves_on_targets(self.index, type_) is not None for type_ in types)
        return (need, wanted) if types and have_leaves else None

    def _whole(self, needs: tuple[Need, ...]) -> int:
        if len(needs) > 1 or self.ranged or self.alone or self.index.on_each_target is None:
            return 0
        need, times = needs[0], 1
        if need.kind == SLOT and len(need.children) == 1:
            need, times = need.children[0], need.amount
        plain = need.kind == VERTEX and need.level == TARGET and need.exclusive and not need.children
        return need.amount * times if plain and need.ids is None and need.names is None else 0

    def _one_unit(self, flat: Flat | None) -> str | None:
        if flat is None or len(flat) != 1 or flat[0][1] != 1:
            return None
        pool = self.index.pool_types.get(flat[0][0])
        return pool.name if pool is not None and pool.aligned else None


def _eligible(constraint: Constraint | None, index: Index) -> tuple[Bools, bool]:
    """Return which targets satisfy a constraint (a row that its requests share), and whether all do."""
    cache: dict[object, tuple[Bools, bool]] = index.memo.setdefault("eligible", {})
    found = cache.get(constraint)
    if found is None:
        row = index.targets_matching(constraint)
        row.flags.writeable = False
        found = (row, bool(row.all()))
        _remember(cache, constraint, found)
    return found


def _remember(cache: dict[object, _Kept], key: object, value: _Kept, most: int = MAX_KEPT) -> None:
    """Keep a value that can be made again; if there are too many, forget all."""
    if len(cache) >= most:
        cache.clear()
    cache[key] = value


def _signature(need: Need) -> tuple[object, ...]:
    """Return the facts in which two needs must agree to be counted alike."""
    return (
        need.type,
        need.amount,
        need.exclusive,
        need.ids,
        need.names,
        need.kinds,
        tuple(_signature(child) for child in need.children),
    )


def _add_demand(need: Need, times: int, demand: dict[str, int]) -> None:
    times *= need.amount
    if need.exclusive and need.kind in (POOL, ABSENT):
        demand[need.type] = demand.get(need.type, 0) + times
    for child in need.children:
        _add_demand(child, times, demand)


def _targets_touched(need: Need) -> int:
    """Return the least number of distinct targets that a match of this need touches."""
    if need.kind == VERTEX and need.level == TARGET:
        return need.amount
    below = max((_targets_touched(child) for child in need.children), default=0)
    return below * need.amount if need.kind == VERTEX and need.level == ABOVE else below


def _slots(need: Need, times: int) -> int:
    times *= need.amount
    if need.kind == SLOT:
        return times
    return sum(_slots(child, times) for child in need.children)


# --- competition between siblings (M10) ------------------------------------------------------------


def is_separable(needs: tuple[Need, ...], index: Index, *, alone: bool) -> bool:
    """Whether no two siblings of a request compete; with `alone`, targets are taken whole."""
    return _separable(needs, index, within=False) and not (alone and _meet(needs))


def _meet(needs: tuple[Need, ...]) -> bool:
    """Whether two parts of a request may want the same whole target, or one part several pieces of it."""
    on_targets = [need for need in needs if _touches_targets(need)]
    if len(on_targets) > 1 or any(need.kind == POOL for need in on_targets):
        return True
    return any(need.content is None and _meet(need.children) for need in on_targets)


def _touches_targets(need: Need) -> bool:
    return need.level in (TARGET, BELOW) or any(_touches_targets(child) for child in need.children)


def _separable(needs: tuple[Need, ...], index: Index, *, within: bool) -> bool:
    """Whether counting each sibling by itself is exact, here and below; `within` a target or not."""
    if len(needs) == 1:
        return _counts_exactly(needs[0], index, within=within)
    blocked = [_blocked(need, index) for need in needs]
    touched = [{n.type for n in need.walk()} for need in needs]
    for i, left in enumerate(blocked):
        for j in range(i + 1, len(needs)):
            if left & touched[j] or blocked[j] & touched[i]:
                return False
    return all(_counts_exactly(need, index, within=within) for need in needs)


def _counts_exactly(need: Need, index: Index, *, within: bool) -> bool:
    """Whether a need counts exactly by itself: its vertices do not overlap, its content is separable."""
    if need.kind == VERTEX and _nested(need.type, index):
        return False
    inside = within or need.level == TARGET
    # Units of several pool types within one target: the type that allows the fewest copies decides,
    # and which units are drawn makes no difference.
    return (inside and need.flat is not None) or _separable(need.children, index, within=inside)


def _nested(type_: str, index: Index) -> bool:
    """Whether vertices of a type overlap: one contains another, or two reach the same vertices."""
    known: dict[str, bool] = index.memo.setdefault("nested", {})
    if type_ not in known:
        spans = sorted(span for spans in index.spans(type_) for span in spans)
        known[type_] = any(before[1] > after[0] for before, after in pairwise(spans))
    return known[type_]


def _blocked(need: Need, index: Index) -> set[str]:
    """Return the types of which a match of this need takes units or vertices from others."""
    found: set[str] = set()
    for part in need.walk():
        if part.kind in (POOL, ABSENT) and part.exclusive:
            found.add(part.type)
        elif part.kind == VERTEX and part.exclusive:
            found.add(part.type)
            found |= index.types_beneath(part.type)
    return found
