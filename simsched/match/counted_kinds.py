"""`CountedKinds`: the kinds of requests of a run in a `Kernel`, and the selections of its placements.

The kernel counts a kind where one number decides whether it fits: the copies of a slot, or the targets with
room for one. Under a policy with a fixed order of targets it places such a kind, too, if that takes units
on targets, or whole targets, and nothing else. All other requests are for the general search
(`search.select`).
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.graph.index.types import TARGET
from simsched.match.kernel import IDLE, OPEN, UP, Kernel
from simsched.match.policies.policy import fixed_order
from simsched.match.requests.compile import compile_request
from simsched.match.requests.request import SLOT, VERTEX
from simsched.match.search.counts import MANY
from simsched.match.search.on_targets import recipe_of, vertices_on
from simsched.match.state.draws import ids_ascend, with_masks
from simsched.match.state.masks import word_tables
from simsched.match.state.placed import Placed, PlacedKind
from simsched.match.state.selection import Hold, changed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simsched.graph.index.types import Ints
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Request
    from simsched.match.search.on_targets import TargetRecipe
    from simsched.match.state.availability import Availability
    from simsched.match.state.selection import Selection

    Bools = npt.NDArray[np.bool_]

MAX_ENTRIES = 1 << 22
"""Demands times targets that a kernel counts at most; kinds of further demands are for the general search."""


_NONE = np.zeros(0, dtype=np.int64)


class CountedDemand(NamedTuple):
    """What a kernel counts: copies of a content on targets; `once`: each target hosts one copy at most."""

    content: Content
    once: bool


def counted(request: Request) -> tuple[CountedDemand, int] | None:
    """Return the demand, and the number of copies of it, that alone decide whether a request fits."""
    need, times = request.needs[0], 1
    if len(request.needs) > 1 or request.ranged or not request.separable:
        return None
    if need.kind == SLOT and need.content is None and len(need.children) == 1 and need.children[0].exclusive:
        need, times = need.children[0], need.amount  # slots of whole targets: the same number of targets
    content = need.content
    if content is None or content.flat is None or need.level != TARGET:
        return None
    if need.kind == SLOT and not need.loose:
        return CountedDemand(content, once=False), need.amount
    return (CountedDemand(content, once=True), need.amount * times) if need.kind == VERTEX else None


class CountedKinds:
    """The kinds of requests of a run, by number.

    Attributes
    ----------
    kernel : what counts them.
    counted : for each kind whether the kernel counts it.
    placed : for each kind whether the kernel places it, too.
    all_counted, all_placed : whether it counts, or places, all kinds that can run at all.
    """

    on_targets = True
    """Each target of the kernel is an execution target."""

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
        for each, low, high in zip(leaves, first[:-1].tolist(), first[1:].tolist(), strict=True):
            pools = np.arange(len(index))[:, None] if each.pools is None else each.pools
            here = pools + available.places[each.type]
            table[:, low:high] = here if each.within is None else np.where(each.within, here, -1)
        demands: dict[CountedDemand, int] = {}
        kinds: list[tuple[int, int]] = []
        for request in requests:
            if request is not None and policy.whole_nodes and not request.alone:
                request = compile_request(request.jobspec, index, request.dialect, alone=True)  # noqa: PLW2901 (as in `select`)
            found = None if request is None else counted(request)
            if found is not None and all(type_ in self._types for type_, _ in found[0].content.flat or ()):
                number = demands.setdefault(found[0], len(demands))
                if number * len(index) < MAX_ENTRIES:
                    kinds.append((number, found[1]))
                    continue
            kinds.append((-1, 0))
        self._demands = [each for each, at in demands.items() if at * len(index) < MAX_ENTRIES]
        among = fixed_order(policy, index.target_type, available) if policy.static else None
        contents = [each.content for each in self._demands]
        self._draws = [self._drawn(content) for content in contents]
        self.kernel = Kernel(
            table,
            first.tolist(),
            [
                (_gate(content), 1 if once or _takes_all(content) else MANY, _takes_all(content))
                for content, once in self._demands
            ],
            [[(self._types.index(type_), units) for type_, units in draws] for draws in self._draws],
            self.may(),
            np.arange(len(index)) if among is None else among,
            kinds,
            available.arrays(),
            last=policy.highest,
            written=partial(_written, available.places, index.target_type),
        )
        self.counted = [demand >= 0 for demand, _ in kinds]
        by_ids = (policy.lowest or policy.highest) and not all(
            ids_ascend(name, index) for name in self._types
        )
        places = policy.static and not policy.whole_nodes and not by_ids
        self.all_counted = all(
            number >= 0 or request is None for request, (number, _) in zip(requests, kinds, strict=True)
        )
        self.placed = [
            demand >= 0 and places and request is not None and request.simple is not None
            for request, (demand, _) in zip(requests, kinds, strict=True)
        ]
        self.all_placed = all(
            placed or request is None for request, placed in zip(requests, self.placed, strict=True)
        )
        self._requests = requests
        self._numbered = {request: kind for kind, request in enumerate(requests) if request is not None}
        self._kinds = kinds
        self._of_kind = np.array([demand for demand, _ in kinds], dtype=np.int64)
        self._amount = np.array([amount for _, amount in kinds], dtype=np.int64)
        self._recipes: dict[int, tuple[TargetRecipe, PlacedKind]] = {}
        self._numbers = {each.content: at for at, each in enumerate(self._demands) if not each.once}

    @cached_property
    def components(self) -> Ints:
        """A number for each kind: kinds with different numbers share no targets, not even through others."""
        found = np.arange(len(self._demands))
        rows = np.array([each.content.eligible for each in self._demands], dtype=np.bool_)
        for d, row in enumerate(rows):
            found[np.isin(found, found[: d + 1][(rows[: d + 1] & row).any(axis=1)])] = d
        return found[self._of_kind]

    def _drawn(self, content: Content) -> list[tuple[str, int]]:
        """Return the types that a copy draws, by name, and the units of each; 0: all that there is."""
        least = dict(content.flat or ())
        return [(name, least.get(name, 0)) for name in sorted(self._types if _takes_all(content) else least)]

    def may(self, back: Ints = _NONE) -> npt.NDArray[np.uint8]:
        """Return for each demand and target whether the target is up (or will be `back`) and may serve it."""
        up = self._available.up.copy()
        up[back] = True
        rows = [each.content.eligible & up for each in self._demands]
        return np.array(rows, dtype=np.uint8).reshape(len(rows), len(self._available.up))

    def units(self, back: Ints) -> Ints:
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
        """Do nothing: the kernel counts the arrays of the state, which tells it of each change."""

    def check(self) -> None:
        """Assert that the kernel counts what it would count anew."""
        before = self.kernel.table.copy()
        self.kernel.recount(np.arange(len(self._available.up)))
        assert (before == self.kernel.table).all()

    def fitting(self) -> Bools:
        """Return for each kind whether it fits now; true where the kernel does not count it."""
        fits: Bools = self.kernel.totals[self._of_kind] >= self._amount
        return fits

    def capacity_of(self, content: Content) -> tuple[Ints, int, int] | None:
        """Return the copies of a content on each target, their sum, and the targets with any, as of now.

        None if they are not counted.
        """
        number = self._numbers.get(content)
        if number is None:
            return None
        row = self.kernel.table[number]
        return row, self.kernel.totals.item(number), int(np.count_nonzero(row))

    def less(self, least: Ints) -> Availability:
        """Return the present state with no more units free on each target than given (see `Profile.least`).

        Which units of a target remain does not matter to kinds that are counted.
        """
        left = self._available.copy(counts_only=True)
        types = len(self._types)
        shut = (least[:, types + 1] < 0) & left.up
        left.set_status(shut.nonzero()[0], up=False)
        np.maximum(left.use, -least[:, types], out=left.use)
        leaf = np.asarray(self.kernel.leaf).reshape(len(least), -1)
        for t, name in enumerate(self._types):
            columns = leaf[:, self.kernel.column[t] : self.kernel.column[t + 1]]
            over = np.where(columns >= 0, left.units[columns], 0).sum(axis=1) - least[:, t].clip(min=0)
            for column in columns.T:
                here = ((column >= 0) & (over > 0)).nonzero()[0]
                taken = np.minimum(over[here], left.units[column[here]])
                left.units[column[here]] -= taken
                over[here] -= taken
            left.total[name] = int(left.free[name].sum())
        return left

    def places(self, request: Request, policy: object) -> bool:
        """Whether the kernel places a request under a policy."""
        kind = self._numbered.get(request)
        return kind is not None and policy is self._policy and self.placed[kind]

    def select(self, request: Request) -> Selection | None:
        """Return the selection of a request that the kernel places, or None if it does not fit now."""
        kind = self._numbered[request]
        return self.selection(kind) if self.kernel.place(kind) else None

    def selection(self, kind: int, _job: int = -1) -> Selection:
        """Return the last placement of the kernel, which is of this kind (and has no random choices)."""
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
        made: Any = Placed(placed, claim, bits, parts, sums, targets, holds, counted)
        if not placed.tabled:
            held = with_masks(list(made.held), available, highest=self._policy.highest)
            made = changed(made.full(), held=held, named=held)
        kernel.draft = made
        return cast("Selection", made)  # a `Placed` has what policies look at

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
        return recipe_of(request, request.simple, index), PlacedKind(request, draws, tabled, all_named)


def _written(places: Mapping[str, int], target_type: str, selection: Selection | Placed) -> Ints:
    """Return the claim of a selection as the kernel has it."""
    if isinstance(selection, Placed):
        return selection.claim
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
