"""Selection of requests that take copies on execution targets and nothing else.

Most requests do: slots of cores with memory, whole nodes, nodes divided into slots. Their selection is
that of `descend`, without the descent: the targets follow from one row of counts, and the units are drawn
from the leaf pools of these targets, all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.match.policies.policy import fixed_order
from simsched.match.requests.request import SLOT, VERTEX
from simsched.match.search.counts import MANY, capacity
from simsched.match.search.descend import take_copies
from simsched.match.state.draws import drawn_by_ids, ids_ascend, with_masks
from simsched.match.state.masks import each_of
from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Integers
    from simsched.graph.index.index import Index
    from simsched.graph.index.target_leaves import TargetLeaves
    from simsched.graph.index.types import PoolType
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Content, Need, Request
    from simsched.match.state.availability import Availability

MAX_RECIPES = 16_384
"""Recipes that an index keeps; with one more, all are forgotten."""


class TargetRecipe(NamedTuple):
    """The values that the selection of a simple request looks up in any state.

    Attributes
    ----------
    content : the content of which it takes copies.
    wanted, most : the copies in all, and on one target.
    draws : the types of which it takes units, with their leaf pools by target and the units per copy;
        without those that no target has that may serve it.
    inner : the types of vertices within targets that it claims; None: it does not claim whole targets.
    shares : whether it claims targets shared.
    """

    content: Content
    wanted: int
    most: int
    draws: tuple[tuple[PoolType, TargetLeaves, int], ...]
    inner: tuple[str, ...] | None
    shares: bool

    @classmethod
    def of(cls, need: Need, wanted: int, index: Index) -> TargetRecipe:
        """Return the recipe of a need and the copies of it (`Request.simple`)."""
        content, slots, whole = need.content, need.kind == SLOT, need.kind == VERTEX and need.exclusive
        assert content is not None
        flat = [(type_, 0) for type_ in index.pool_types] if whole else content.flat or ()
        found = [(index.pool_types[type_], leaves_on_targets(index, type_), units) for type_, units in flat]
        draws = tuple(
            (pool, leaves, units)
            for pool, leaves, units in found
            if leaves is not None and (leaves.within is None or leaves.within[content.eligible].any())
        )
        beneath = index.types_beneath(index.target_type)
        inner = tuple(name for name in index.vertex_types if name in beneath) if whole else None
        return cls(content, wanted, MANY if slots else 1, draws, inner, not slots and not whole)


def recipe_of(request: Request, simple: tuple[Need, int], index: Index) -> TargetRecipe:
    """Return the recipe of a simple request, which is kept with the index."""
    known: dict[Request, TargetRecipe] = index.memo.setdefault("recipes", {})
    found = known.get(request)
    if found is None:
        if len(known) >= MAX_RECIPES:
            known.clear()
        found = known[request] = TargetRecipe.of(*simple, index)
    return found


def select_on_targets(
    request: Request,
    simple: tuple[Need, int],
    avail: Availability,
    policy: MatchPolicy,
    rng: np.random.Generator | None,
) -> Selection | None:
    """Return the selection of a simple request (`Request.simple`), or None if it does not fit."""
    kind, recipe = avail.index.target_type, recipe_of(request, simple, avail.index)
    content, wanted, most, shapes, inner, shares = recipe
    among = fixed_order(policy, kind, avail) if policy.static else None
    fits, total, some = capacity(content, avail)
    if (some if most == 1 else total) < wanted:
        return None
    targets, copies = take_copies(kind, fits, wanted, among, (avail, policy, rng), most, content)
    holds: tuple[Hold, ...] = ()
    if inner is not None:
        draws = _everything_on(targets, recipe, avail)
        holds = (Hold(kind, targets, exclusive=True), *vertices_on(targets, inner, avail.index))
    else:
        draws = []
        for _, leaves, units in shapes:
            each = copies if units == 1 else copies * units
            if leaves.pools is None:
                draws.append(Draw(leaves.type, targets, each, wanted * units))
            else:
                draws.append(_drawn(leaves, targets, each, wanted * units, avail, policy))
        if shares:
            holds = (Hold(kind, targets, exclusive=False),)
    held = with_masks(draws, avail, highest=policy.highest)
    counted = avail.partial is None
    return Selection(request, targets, held, held, holds, (), request.slots, counted=counted)


def _drawn(
    leaves: TargetLeaves,
    targets: Integers,
    units: Integers | int,
    amount: int,
    avail: Availability,
    policy: MatchPolicy,
) -> Draw:
    """Draw ``units[i]`` units of a type on each target, from its first leaf pool (or its last) on."""
    type_ = leaves.type
    assert leaves.pools is not None
    if (policy.lowest or policy.highest) and avail.partial is not None and not ids_ascend(type_, avail.index):
        view = avail.index.beneath(avail.index.target_type, type_, targets)
        return drawn_by_ids(type_, view, each_of(units, len(targets)), avail, highest=policy.highest)
    if leaves.pools.shape[1] == 1 and leaves.within is None:
        return Draw(type_, leaves.pools[targets].reshape(-1), units, amount)
    pools = leaves.pools[targets]
    free = leaves.free(avail.free[type_], targets)
    each = units if isinstance(units, int) else units[:, None]
    # `before` are the units of the leaf pools in front: a leaf pool gives what those do not cover.
    before = np.add.accumulate(free, axis=1) - free
    if policy.highest:
        before = np.add.reduce(free, axis=1, keepdims=True) - free - before
    given = np.minimum(np.maximum(each - before, 0), free).reshape(-1)
    some = given.nonzero()[0]
    return Draw(type_, pools.reshape(-1)[some], given[some], amount)


def _everything_on(targets: Integers, recipe: TargetRecipe, avail: Availability) -> list[Draw]:
    """Return draws of all units on some idle targets."""
    draws = []
    all_sound = not avail.hidden
    for pool, leaves, _ in recipe.draws:
        pools = targets if leaves.pools is None else leaves.pools[targets].reshape(-1)
        if all_sound and pool.uniform and leaves.within is None:  # an idle target has all of its units free
            draws.append(Draw(pool.name, pools, pool.uniform, pool.uniform * len(pools)))
            continue
        units = (
            avail.free[pool.name][pools]
            if leaves.pools is None
            else leaves.free(avail.free[pool.name], targets)
        )
        units = units.reshape(-1)
        if not units.all():
            some = units.nonzero()[0]
            pools, units = pools[some], units[some]
        if len(pools):
            draws.append(Draw(pool.name, pools, units, int(np.add.reduce(units))))
    return draws


def vertices_on(targets: Integers, types: tuple[str, ...], index: Index) -> Iterator[Hold]:
    """Yield exclusive claims of the vertices of some types within some targets."""
    for name in types:
        ordinals = index.beneath(index.target_type, name, targets).ordinals
        assert ordinals is not None
        yield Hold(name, ordinals, exclusive=True)
