"""Selection of requests that take copies on execution targets and nothing else.

Most requests do: slots of cores with memory, whole nodes, nodes divided into slots. Their selection is
that of `descend`, without the descent: the targets follow from one row of counts, and the units are drawn
from the leaf pools of these targets, all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.graph.index.target_leaves import leaves_on_targets
from simsched.match.policies.policy import fixed_order
from simsched.match.requests.request import SLOT, VERTEX
from simsched.match.search.counts import MANY, capacity
from simsched.match.search.descend import take_copies
from simsched.match.search.few_draws import FEW, drawn_in_turn
from simsched.match.search.portions import each_of
from simsched.match.state.draws import drawn_by_ids, finished, ids_ascend
from simsched.match.state.selection import Draw, Hold, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Ints
    from simsched.match.policies.policy import MatchPolicy
    from simsched.match.requests.request import Need, Request
    from simsched.match.state.availability import Availability


def select_on_targets(
    request: Request,
    simple: tuple[Need, int],
    avail: Availability,
    policy: MatchPolicy,
    rng: np.random.Generator | None,
) -> Selection | None:
    """Return the selection of a simple request (`Request.simple`), or None if it does not fit."""
    need, wanted = simple
    content, kind = need.content, avail.index.target_type
    assert content is not None
    counts = capacity(content, avail)
    if (counts.total if need.kind == SLOT else counts.some) < wanted:
        return None
    most = MANY if need.kind == SLOT else 1
    among = fixed_order(policy, kind, avail) if policy.static else None
    number = None if avail.table is None or not policy.static else avail.table.number_of(content)
    if number is not None and avail.table is not None:
        targets, copies = avail.table.first(number, wanted, among, most)
    else:
        targets, copies = take_copies(kind, counts.fits, wanted, among, (avail, policy, rng), most, content)
    whole = need.kind == VERTEX and need.exclusive
    if whole:
        draws = list(_everything_on(targets, avail))
        holds = (Hold(kind, targets, exclusive=True), *_vertices_on(targets, avail.index))
    else:
        draws = [
            _drawn(type_, targets, copies * units, wanted * units, avail, policy)
            for type_, units in content.flat or ()
        ]
        holds = () if need.kind == SLOT else (Hold(kind, targets, exclusive=False),)
    held = finished(draws, avail, highest=policy.highest)
    counted = avail.partial is None
    return Selection(request, targets, held, held, holds, (), request.slots, counted=counted)


def _drawn(
    type_: str, targets: Ints, units: Ints | int, amount: int, avail: Availability, policy: MatchPolicy
) -> Draw:
    """Draw ``units[i]`` units of a type on each target, from its first leaf pool (or its last) on."""
    leaves = leaves_on_targets(avail.index, type_)
    assert leaves is not None
    if leaves.pools is None:
        return Draw(type_, targets, units, amount)
    if (policy.lowest or policy.highest) and avail.partial is not None and not ids_ascend(type_, avail.index):
        view = avail.index.beneath(avail.index.target_type, type_, targets)
        return drawn_by_ids(type_, view, each_of(units, len(targets)), avail, highest=policy.highest)
    if leaves.pools.shape[1] == 1 and leaves.within is None:
        return Draw(type_, leaves.pools[targets].reshape(-1), units, amount)
    if len(targets) <= FEW and not policy.highest:
        return drawn_in_turn(leaves, targets, units, avail)
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


def _everything_on(targets: Ints, avail: Availability) -> Iterator[Draw]:
    """Yield draws of all units on some idle targets."""
    index = avail.index
    for type_ in index.pool_types:
        leaves = leaves_on_targets(index, type_)
        if leaves is None:
            continue
        pools = targets if leaves.pools is None else leaves.pools[targets].reshape(-1)
        units = avail.free[type_][pools] if leaves.pools is None else leaves.free(avail.free[type_], targets)
        units = units.reshape(-1)
        if not units.all():
            some = units.nonzero()[0]
            pools, units = pools[some], units[some]
        if len(pools):
            yield Draw(type_, pools, units, int(np.add.reduce(units)))


def _vertices_on(targets: Ints, index: Index) -> Iterator[Hold]:
    """Yield exclusive claims of the vertices within some targets."""
    kind = index.target_type
    for name in index.vertex_types:
        if name in index.types_beneath(kind):
            ordinals = index.beneath(kind, name, targets).ordinals
            assert ordinals is not None
            yield Hold(name, ordinals, exclusive=True)
