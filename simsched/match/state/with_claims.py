"""`with_claims`: a state of the same cluster with other claims; all that stays is shared, not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.match.state.availability import Availability

if TYPE_CHECKING:
    from simsched.graph.index.types import Bools, Ints


def with_claims(
    available: Availability,
    room: dict[str, Ints],
    use: Ints,
    held: dict[str, Bools],
    shared: dict[str, Ints],
    *,
    counts_only: bool,
) -> Availability:
    """Return a state with other claims, to match on and not to change; unchanged parts are shared.

    `room` are the units of each leaf pool that no claim takes; on targets that are down, and in pools
    that are, they are hidden.  Without `counts_only` a leaf pool must have the free units of this
    state or none.
    """
    twin: Availability = object.__new__(Availability)
    twin.index = available.index
    twin.ignores_status = available.ignores_status
    twin.hidden = {}
    for name, hidden in available.hidden.items():
        pool = available.index.pool_types[name]
        down = pool.sound & (pool.target >= 0) & ~available.up[pool.target]
        twin.hidden[name] = np.where(pool.sound, np.where(down, room[name], 0), hidden)
        room[name] = np.where(down | ~pool.sound, 0, room[name])
    twin.set_units(
        np.concatenate([np.empty(0, np.int64), *(room[name] for name in available.index.pool_types)])
    )
    room = twin.free
    twin.total = {name: int(free.sum()) for name, free in room.items()}
    twin.partial = None if counts_only else available.partial
    twin.use, twin.up, twin.held, twin.shared = use, available.up, held, shared
    twin.sharers = {}
    twin.idle = twin.kinds = None
    twin.log, twin.base, twin.counts = [], 0, {}
    return twin
