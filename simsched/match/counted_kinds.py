"""`CountedKinds`: the kinds of requests of a run in a `Kernel`, and the selections of its placements.

The kernel counts a kind where one number decides whether it fits: the copies of a slot, or the targets with
room for one. A copy may take sockets, or other vertices within its target. Under a policy with a fixed order
of targets the kernel places such a kind, too, if that takes units on targets, or whole targets, and nothing
else. All other requests are for the general search (`search.select`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.graph.index.types import BELOW, TARGET
from simsched.match.kernel import IDLE, OPEN, UP, Kernel, Within
from simsched.match.kernel_kinds import KernelKinds
from simsched.match.policies.policy import fixed_order
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import POOL, SLOT, VERTEX, flat_demand
from simsched.match.search.counts import MANY
from simsched.match.search.on_targets import recipe_of, vertices_on
from simsched.match.state.draws import ids_ascend, with_masks
from simsched.match.state.masks import word_tables
from simsched.match.state.placed import Placed, PlacedKind
from simsched.match.state.selection import Hold, changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simsched.arrays import Bools, Integers
    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Flat, Need, Request
    from simsched.match.search.on_targets import TargetRecipe
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection


MAX_ENTRIES = 1 << 22
"""Demands times targets that a kernel counts at most; kinds of further demands are for the general search."""


_NONE = np.zeros(0, dtype=np.int64)


class Parts(NamedTuple):
    """A content as a kernel counts it.

    Attributes
    ----------
    flat : the units of each type that a copy draws, no matter where on its target.
    inner : what else a copy takes: vertices within the target, and units of each; or None.
    times : how often it takes that.
    """

    flat: Flat
    inner: Need | None = None
    times: int = 1


class CountedDemand(NamedTuple):
    """What a kernel counts: copies of a content on targets; `once`: each target hosts one copy at most."""

    content: Content
    parts: Parts
    once: bool

    def types(self) -> list[str]:
        """Return the types of the units that it draws."""
        inner = self.parts.inner
        return [type_ for type_, _ in (*self.parts.flat, *((inner and inner.flat) or ()))]


def counted(request: Request) -> tuple[CountedDemand, int] | None:
    """Return the demand, and the number of copies of it, that alone decide whether a request fits."""
    need, times = request.needs[0], 1
    if len(request.needs) > 1 or request.ranged or not request.separable:
        return None
    if need.kind == SLOT and need.content is None and len(need.children) == 1 and need.children[0].exclusive:
        need, times = need.children[0], need.amount  # slots of whole targets: the same number of targets
    content = need.content
    if content is None or need.level != TARGET:
        return None
    parts = _parts(content)
    if parts is None:
        return None
    if need.kind == SLOT and not need.loose:
        return CountedDemand(content, parts, once=False), need.amount
    return (CountedDemand(content, parts, once=True), need.amount * times) if need.kind == VERTEX else None


def _parts(content: Content) -> Parts | None:
    """Return the parts of a content, or None if there are others than a kernel counts."""
    if content.flat is not None:
        return Parts(content.flat)
    needs, times = content.needs, 1
    if len(needs) == 1 and needs[0].kind == SLOT:
        needs, times = needs[0].children, needs[0].amount
    inner = [need for need in needs if need.kind == VERTEX]
    flat = flat_demand(tuple(need for need in needs if need.kind != VERTEX))
    if len(inner) != 1 or flat is None or inner[0].flat is None or inner[0].is_particular:
        return None
    if not inner[0].exclusive and not inner[0].flat:
        return None  # it shares a vertex, and takes nothing of it
    return Parts(tuple((type_, units * times) for type_, units in flat), inner[0], times)


def _is_seen(need: Need, index: Index) -> bool:
    """Whether a claim on a vertex within a target takes units of it, so that free units tell of it."""
    if need.kind != VERTEX or need.level != BELOW:
        return True
    if not need.exclusive or need.children:
        return any(part.kind == POOL and part.exclusive for part in need.walk())
    units = np.zeros(len(index.vertex_types[need.type]), dtype=np.int64)
    for name, pool in index.pool_types.items():
        view, sizes = index.beneath(need.type, name), np.where(pool.sound, pool.size, 0)
        units += view.sum(sizes if view.ordinals is None else sizes[view.ordinals])
    return bool(units[index.vertex_types[need.type].sound].all())


def _within(
    demands: Sequence[CountedDemand],
    table: Integers,
    types: Sequence[str],
    available: Availability,
    policy: MatchPolicy,
) -> Within | None:
    """Return the vertices within targets that demands take, those of each target in the order of the policy.

    `table` is target and column → leaf pool, counted through all types, or -1.
    """
    levels = sorted({each.parts.inner.type for each in demands if each.parts.inner is not None})
    if not levels:
        return None
    index = available.index
    sizes = [np.where(pool.sound, pool.size, 0) for pool in index.pool_types.values()]
    numbers = np.zeros((len(levels), len(index)), dtype=np.int64)
    of = np.empty((len(levels), *table.shape), dtype=np.int64)
    for at, level in enumerate(levels):
        vertices = index.vertex_types[level]
        views = [index.beneath(level, name) for name in index.pool_types]
        owners = [np.full(len(pool), -1) for pool in index.pool_types.values()]
        order = fixed_order(policy, level, available) if policy.static else None
        usable = vertices.sound & (vertices.target >= 0)
        for vertex in np.flatnonzero(usable) if order is None else order[usable[order]]:
            target = vertices.target[vertex]
            for view, owner in zip(views, owners, strict=True):
                pools = slice(view.low[vertex], view.high[vertex])
                owner[pools if view.ordinals is None else view.ordinals[pools]] = numbers[at, target]
            numbers[at, target] += 1
        of[at] = np.where(table >= 0, np.concatenate(owners)[table], -1)
    full = np.where(table >= 0, np.concatenate(sizes)[table], 0)
    return Within(numbers, of, full, [_inner(each.parts, levels, types) for each in demands])


def _inner(
    parts: Parts, levels: list[str], types: Sequence[str]
) -> tuple[int, int, bool, int, list[tuple[int, int]]] | None:
    need = parts.inner
    if need is None:
        return None
    units = [(types.index(type_), each) for type_, each in need.flat or ()]
    return levels.index(need.type), need.amount, need.exclusive, parts.times, units


class CountedKinds(KernelKinds):
    """The kinds of requests of a run, by number."""

    on_targets = True

    def __init__(
        self, requests: Sequence[Request | None], available: Availability, policy: MatchPolicy
    ) -> None:
        index = available.index
        self._available, self._policy = available, policy
        available.kinds = self
        leaves = [each for name in index.pool_types if (each := leaves_on_targets(index, name)) is not None]
        self._types = [each.type for each in leaves]
        columns = [1 if each.pools is None else each.pools.shape[1] for each in leaves]
        table = np.full((len(index), sum(columns)), -1, dtype=np.int64)
        first = np.cumsum([0, *columns])
        for each, low, high in zip(leaves, first[: len(columns)].tolist(), first[1:].tolist(), strict=True):
            pools = np.arange(len(index))[:, None] if each.pools is None else each.pools
            here = pools + available.places[each.type]
            table[:, low:high] = here if each.within is None else np.where(each.within, here, -1)
        compiled = [request and self._as_selected(request) for request in requests]
        seen = all(_is_seen(need, index) for request in compiled if request for need in request.walk())
        demands: dict[CountedDemand, int] = {}
        kinds: list[tuple[int, int]] = []
        for request in compiled:
            found = None if request is None else counted(request)
            if found is not None and self._can_count(found[0], seen=seen):
                number = demands.setdefault(found[0], len(demands))
                if number * len(index) < MAX_ENTRIES:
                    kinds.append((number, found[1]))
                    continue
            kinds.append((-1, 0))
        self._demands = [each for each, at in demands.items() if at * len(index) < MAX_ENTRIES]
        among = fixed_order(policy, index.target_type, available) if policy.static else None
        self._draws = [self._drawn(each) for each in self._demands]
        kernel = Kernel(
            table,
            first.tolist(),
            [
                (_gate(content), 1 if once or _takes_all(content) else MANY, _takes_all(content))
                for content, _, once in self._demands
            ],
            [[(self._types.index(type_), units) for type_, units in draws] for draws in self._draws],
            self.may(),
            np.arange(len(index)) if among is None else among,
            kinds,
            available.arrays(),
            last=policy.highest,
            written=partial(_written, available.places, index.target_type),
            within=_within(self._demands, table, self._types, available, policy),
        )
        by_ids = (policy.lowest or policy.highest) and not all(
            ids_ascend(name, index) for name in self._types
        )
        places = policy.static and not policy.whole_nodes and not by_ids
        placed = [  # without bool, Cython 3.3.1 makes code that crashes
            bool(demand >= 0 and places and request is not None and request.simple is not None)
            for request, (demand, _) in zip(requests, kinds, strict=True)
        ]
        super().__init__(
            kernel,
            [demand >= 0 for demand, _ in kinds],
            placed,
            all_counted=all(
                number >= 0 or request is None for request, (number, _) in zip(requests, kinds, strict=True)
            ),
            all_placed=all(each or request is None for request, each in zip(requests, placed, strict=True)),
        )
        self._requests = requests
        self._numbered = {request: kind for kind, request in enumerate(requests) if request is not None}
        self._kinds = kinds
        self._of_kind = np.array([demand for demand, _ in kinds], dtype=np.int64)
        self._amount = np.array([amount for _, amount in kinds], dtype=np.int64)
        self._recipes: dict[int, tuple[TargetRecipe, PlacedKind]] = {}
        self._numbers = {each.content: at for at, each in enumerate(self._demands) if not each.once}

    @property
    def components(self) -> Integers:
        """A number for each kind: kinds with different numbers share no targets, not even through others."""
        found = np.arange(len(self._demands))
        rows = np.array([each.content.eligible for each in self._demands], dtype=np.bool_)
        for d, row in enumerate(rows):
            found[np.isin(found, found[: d + 1][(rows[: d + 1] & row).any(axis=1)])] = d
        return found[self._of_kind]

    def _as_selected(self, request: Request) -> Request:
        """Return a request as `select` takes it under the policy."""
        if not self._policy.whole_nodes or request.alone:
            return request
        return compile_request(request.jobspec, self._available.index, request.dialect, alone=True)

    def _can_count(self, demand: CountedDemand, *, seen: bool) -> bool:
        """Whether the table has all that a demand needs; `seen`: units tell of all claims on vertices."""
        inner, index, types = demand.parts.inner, self._available.index, demand.types()
        if inner is not None and inner.exclusive:
            types += index.types_beneath(inner.type) & index.pool_types.keys()
        if inner is not None and (inner.level != BELOW or (inner.exclusive and not seen)):
            return False
        return all(type_ in self._types for type_ in types)

    def _drawn(self, demand: CountedDemand) -> list[tuple[str, int]]:
        """Return the types that a copy draws, by name, and the units of each; 0: all that there is."""
        least, whole = dict(demand.parts.flat), _takes_all(demand.content)
        return [(name, least.get(name, 0)) for name in sorted(self._types if whole else least)]

    def may(self, back: Integers = _NONE) -> npt.NDArray[np.uint8]:
        """Return for each demand and target whether the target is up (or will be `back`) and may serve it."""
        up = self._available.up.copy()
        up[back] = True
        rows = [each.content.eligible & up for each in self._demands]
        return np.array(rows, dtype=np.uint8).reshape(len(rows), len(self._available.up))

    def units(self, back: Integers) -> Integers:
        """Return the free units of each leaf pool, with those of some targets that are down."""
        available = self._available
        units = available.units.copy()
        for name, hidden in available.hidden.items():
            pool = available.index.pool_types[name]
            here = np.flatnonzero(np.isin(pool.target, back) & pool.sound)
            units[available.places[name] + here] += hidden[here]
        return units

    def follow_status(self) -> None:
        """Note that targets went down or came up; they are counted again by themselves."""
        self.kernel.permit(self.may().reshape(-1))

    def recount(self) -> None:
        """See `KernelKinds`: here the state tells the kernel of each change."""

    def check(self) -> None:
        """Assert that the kernel counts what it would count anew."""
        before = self.kernel.table.copy()
        self.kernel.recount(np.arange(len(self._available.up)))
        assert (before == self.kernel.table).all()
        self.kernel.check()

    def fitting(self) -> Bools:
        """Return for each kind whether it fits now; true where the kernel does not count it."""
        fits: Bools = self.kernel.totals[self._of_kind] >= self._amount
        return fits

    def capacity_of(self, content: Content) -> tuple[Integers, int, int] | None:
        """Return the copies of a content on each target, their sum, and the targets with any, as of now.

        None if they are not counted.
        """
        number = self._numbers.get(content)
        if number is None:
            return None
        row = self.kernel.table[number]
        return row, self.kernel.totals.item(number), int(np.count_nonzero(row))

    def less(self, least: Integers) -> Availability:
        """Return the present state with no more units free on each target than given (see `Profile.least`).

        Which units of a pool remain does not matter to kinds that are counted.
        """
        kernel, left = self.kernel, self._available.copy(counts_only=True)
        pools = least.shape[1] - 2
        shut = least[:, pools + 1] < 0
        left.up &= ~shut
        np.maximum(left.use, -least[:, pools], out=left.use)
        leaf = np.asarray(kernel.leaf).reshape(len(least), -1)
        held = np.where(leaf >= 0, left.units[leaf], 0)
        first = np.arange(pools) if kernel.divided else np.asarray(kernel.column)[:pools]
        keep = np.where(shut[:, None], 0, least[:, :pools].clip(min=0))
        over = np.add.reduceat(held, first, axis=1) - keep
        pool_of = np.repeat(np.arange(pools), np.diff([*first, leaf.shape[1]]))
        for column, pool in zip(leaf.T, pool_of, strict=True):
            here = ((column >= 0) & (over[:, pool] > 0)).nonzero()[0]
            taken = np.minimum(over[here, pool], left.units[column[here]])
            left.units[column[here]] -= taken
            over[here, pool] -= taken
        for name in self._types:
            left.total[name] = int(left.free[name].sum())
        return left

    def places(self, request: Request, policy: object) -> bool:
        """Whether the kernel places a request under a policy."""
        kind = self._numbered.get(request)
        return kind is not None and policy is self._policy and self.placed[kind]

    def select(self, request: Request) -> Selection | None:
        """Return the selection of a request that the kernel places, or None if it does not fit now."""
        kind = self._numbered[request]
        return self.selection(kind, -1) if self.kernel.place(kind) else None

    def selection(self, kind: int, job: int) -> Selection:  # noqa: ARG002 - there are no random choices
        """See `KernelKinds`."""
        kernel, available = self.kernel, self._available
        found = self._recipes.get(kind)
        if found is None:
            found = self._recipes[kind] = self._recipe(kind)
        recipe, placed = found
        claim, bits, targets, parts, sums = kernel.placement(len(placed.draws))
        holds: tuple[Hold, ...] = ()
        if recipe.inner is not None:
            inner = vertices_on(targets, recipe.inner, available.index)
            holds = (Hold(available.index.target_type, targets, exclusive=True), *inner)
        elif recipe.shares:
            holds = (Hold(available.index.target_type, targets, exclusive=False),)
        counted = available.partial is None
        made: Any = Placed(placed, claim, bits, parts, sums, targets, holds, counted=counted)
        if not placed.tabled:
            held = with_masks(list(made.held), available, highest=self._policy.highest)
            made = changed(made.full(), held=held, named=held)
        kernel.draft = made
        selection: Selection = made  # a `Placed` has what policies look at
        return selection

    def _recipe(self, kind: int) -> tuple[TargetRecipe, PlacedKind]:
        """Return how a kind that the kernel places is claimed, and what its placements have in common."""
        request, index = self._requests[kind], self._available.index
        assert request is not None
        assert request.simple is not None
        tables, draws = word_tables(index), []
        for name, _ in self._draws[self._kinds[kind][0]]:
            width = tables.rows[name].shape[1] if name in tables.rows else 0
            draws.append((index.pool_types[name], tables.places[name], width))
        tabled = all(width or not pool.named for pool, _, width in draws)
        all_named = all(width for *_, width in draws)
        names = tuple(pool.name for pool, _, _ in draws)
        core, gpu = (names.index(name) if name in names else -1 for name in ("core", "gpu"))
        placed = PlacedKind(request, draws, names, tabled, all_named, core, gpu)
        return recipe_of(request, request.simple, index), placed


def _written(places: Mapping[str, int], target_type: str, selection: Selection | Placed) -> Integers:
    """Return the claim of a selection as the kernel has it."""
    if isinstance(selection, Placed):
        return np.asarray(selection.claim)
    held = [hold for hold in selection.holds if hold.type == target_type and hold.exclusive]
    whole = np.concatenate([np.zeros(0, np.int64), *(hold.ordinals for hold in held)])
    cells = [draw.pools + places[draw.type] for draw in selection.held]
    units = [np.broadcast_to(draw.units, len(draw.pools)) for draw in selection.held]
    head = [0, len(selection.targets), len(whole), sum(map(len, cells))]
    claim = np.concatenate([np.array(head), selection.targets, whole, *cells, *units])
    claim[0] = len(claim)
    return claim


def _gate(content: Content) -> int:
    """Return which targets may serve a content."""
    if content.alone or _takes_all(content):
        return IDLE
    return OPEN if content.node else UP


def _takes_all(content: Content) -> bool:
    return content.node and content.exclusive
