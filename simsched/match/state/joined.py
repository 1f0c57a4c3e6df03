"""`joined`: two selections of one job as one, when the job gets more resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.state.masks import listed
from simsched.match.state.selection import Draw, Hold, Selection, changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.graph.index.index import Index
    from simsched.match.requests.request import Request


def joined(first: Selection, second: Selection, request: Request, index: Index) -> Selection:
    """Return both selections as the answer to `request`; they must have no execution target in common."""
    held = _draws((*first.held, *second.held), index)
    same = first.named is first.held and second.named is second.held
    unlisted = [part.unlisted for part in (first, second) if part.unlisted is not None]
    return changed(
        first,
        request=request,
        targets=np.concatenate([first.targets, second.targets]),
        held=held,
        named=held if same else _draws((*first.named, *second.named), index),
        holds=_holds((*first.holds, *second.holds)),
        shared=_draws((*first.shared, *second.shared), index),
        slots=first.slots + second.slots,
        unlisted=np.concatenate(unlisted) if unlisted else None,
    )


def _draws(draws: Sequence[Draw], index: Index) -> tuple[Draw, ...]:
    by_type: dict[str, list[Draw]] = {}
    for draw in draws:
        by_type.setdefault(draw.type, []).append(draw)
    return tuple(some[0] if len(some) == 1 else _sum(some, index) for some in by_type.values())


def _sum(draws: Sequence[Draw], index: Index) -> Draw:
    pools = np.concatenate([draw.pools for draw in draws])
    units = np.concatenate([np.broadcast_to(draw.units, len(draw.pools)) for draw in draws])
    masks = None
    if any(draw.masks is not None for draw in draws):
        masks = [mask for draw in draws for mask in _masks(draw, index)]
    return Draw(draws[0].type, pools, units, int(units.sum()), masks)


def _masks(draw: Draw, index: Index) -> list[int]:
    """Return the units of a draw as masks; whole leaf pools have none of their own."""
    if draw.masks is not None:
        return list(listed(draw.masks))
    sizes = index.pool_types[draw.type].size[draw.pools]
    return [(1 << size) - 1 for size in sizes.tolist()]


def _holds(holds: Sequence[Hold]) -> tuple[Hold, ...]:
    by_kind: dict[tuple[str, bool], list[Hold]] = {}
    for hold in holds:
        by_kind.setdefault((hold.type, hold.exclusive), []).append(hold)
    return tuple(
        Hold(type_, np.concatenate([hold.ordinals for hold in some]), exclusive)
        for (type_, exclusive), some in by_kind.items()
    )
