"""``nodes.parquet``: the machine that a run was made on, one row an execution target.

Reports need it to say what lies where: the use of a property group, the racks and switches
that a job spans.  It is made when a run directory is written, not while a run goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.graph.index.types import ABOVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.graph.index.index import Index

#: Before the name of a type that divides the machine: the rack, switch … that a target lies in.
PLACE = "in_"
#: Before the name of a pool type: its units on a target, whether it is up or not.
UNITS = "total_"


def node_columns(index: Index) -> dict[str, Any]:
    """Return the columns of ``nodes.parquet``, NumPy arrays with one entry a target, in containment order.

    ``rank``, ``host``, ``up`` (when the run began), ``properties`` (the names that a constraint
    can ask for, sorted, a list), ``total_T`` units of each pool type T, and ``in_T``, the name of the
    vertex of type T that the target lies in (None: in none), for each type that divides the machine.
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
    """Yield each type whose vertices have different targets beneath them, and where each target lies.

    Of several vertices of one type the narrowest counts (a leaf switch before its spine), of
    equally narrow ones the first.  Where names repeat, vertices are called by their keys.
    """
    above = {name: vertices for name, vertices in index.vertex_types.items() if vertices.level == ABOVE}
    for name, vertices in above.items():
        beneath = [index.members(name, v, index.target_type) for v in range(len(vertices))]
        if all(len(targets) in {0, len(index)} for targets in beneath):
            continue
        names = vertices.names if len(set(vertices.names)) == len(vertices) else vertices.keys
        places = np.empty(len(index), dtype=object)
        for vertex in sorted(range(len(vertices)), key=lambda v: (-len(beneath[v]), -v)):
            places[beneath[vertex]] = names[vertex]
        yield name, places
