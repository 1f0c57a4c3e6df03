"""``nodes.parquet``: the machine of a run, one row per execution target.

Reports need it for the use of property groups and for the racks and switches of each job.  It is
made when a run directory is written, not during the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.index.types import ABOVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index.index import Index

#: Precedes the name of a type that divides the machine: the rack, switch … that contains a target.
PLACE = "in_"
#: Precedes the name of a pool type: its units on a target, up or not.
UNITS = "total_"


def node_columns(index: Index) -> dict[str, Any]:
    """Return the columns of ``nodes.parquet``, NumPy arrays with one entry per target, in containment order.

    ``rank``, ``host``, ``up`` (when the run began), ``properties`` (the names that a constraint
    can use, a sorted list), ``total_T`` units of each pool type T, and ``in_T``, the name of the vertex
    of type T that contains the target (None if none does), for each type that divides the machine.
    """
    columns: dict[str, Any] = {
        "rank": index.ranks,
        "host": np.array(index.hosts, dtype=object),
        "up": index.up,
        "properties": _properties(index),
    }
    for name, pool in index.pool_types.items():
        if name != index.target_type:
            units = np.zeros(len(index), dtype=np.int64)
            on = pool.target >= 0
            np.add.at(units, pool.target[on], pool.size[on])
            columns[UNITS + name] = units
    return columns | {PLACE + name: places for name, places in _places(index)}


def _properties(index: Index) -> Any:
    names: list[list[str]] = [[] for _ in range(len(index))]
    for name in sorted(index.property_rows):
        for ordinal in np.flatnonzero(index.property_rows[name]).tolist():
            names[ordinal].append(name)
    column = np.empty(len(index), dtype=object)
    column[:] = names
    return column


def _places(index: Index) -> Iterator[tuple[str, Any]]:
    """Yield each type whose vertices have different targets below them, and the vertex of each target.

    Of several vertices of one type the narrowest counts (a leaf switch before its spine), of
    equally narrow ones the first.  If names repeat, the keys of the vertices are used.
    """
    above = {name: vertices for name, vertices in index.vertex_types.items() if vertices.level == ABOVE}
    for name, vertices in above.items():
        below = [index.members(name, v, index.target_type) for v in range(len(vertices))]
        if all(len(targets) in {0, len(index)} for targets in below):
            continue
        names = vertices.names if len(set(vertices.names)) == len(vertices) else vertices.keys
        places = np.empty(len(index), dtype=object)
        for vertex in sorted(range(len(vertices)), key=lambda v: (-len(below[v]), -v)):
            places[below[vertex]] = names[vertex]
        yield name, places
