"""Resource sets as tests look at them: the example document of RFC 20, and a set as plain units."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.formats.cluster.rset import ResourceSet

EXAMPLE = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "19-22", "children": {"core": "0-47", "gpu": "0-7"}}],
        "nodelist": ["node[186-189]"],
        "starttime": 1676560542,
        "expiration": 1676562342,
    },
}


def units_of(rset: ResourceSet) -> set[tuple[int, str, int]]:
    """Every unit of a set: rank, type, id."""
    return {
        (rank, kind, unit)
        for group in rset.groups
        for rank in group.ranks
        for kind, ids in group.children.items()
        for unit in ids
    }
