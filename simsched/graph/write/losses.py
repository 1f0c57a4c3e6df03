"""The losses of a file format: the facts of a graph that it cannot hold, as sentences for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from simsched.formats.cluster.treepool import MEMORY_UNIT
from simsched.graph import resource_graph as rg
from simsched.graph.holdings import Holdings, holdings
from simsched.graph.pool import OUTER, UP
from simsched.graph.write.treepool import is_storage, memory_in_gib

if TYPE_CHECKING:
    from collections.abc import Iterator


MEASURED = "pools that are measured, not counted"
STATUS = "status"
"""The beginnings of the sentences on memory and the like, and on nodes that are not up."""

R, R_JGF, JGF, TREEPOOL, GRAPHML = "r", "r+jgf", "jgf", "treepool", "graphml"
FORMATS = (R, R_JGF, JGF, TREEPOOL)
"""The formats that are documents of JSON values; GraphML is not."""


def losses(graph: rg.ResourceGraph, form: str) -> list[str]:
    """Return one sentence for each fact of this graph that a format cannot hold; [] if nothing is lost.

    >>> from simsched.formats.cluster.rset import ResourceSet
    >>> from simsched.graph.build.rset import from_rset
    >>> losses(from_rset(ResourceSet.of([("0-1", {"core": "0-3"})], "n[0-1]")), "r")
    []
    """
    if form == R_JGF:
        return []
    if form in {JGF, GRAPHML}:
        return list(_of_facts(graph, form))
    return [*_of_structure(graph, form), *_of_pools(graph, form, holdings(graph)), *_of_vertices(graph)]


def _of_facts(graph: rg.ResourceGraph, form: str) -> Iterator[str]:
    source = graph.graph.get("source")
    facts = graph.graph.get("document", {}) if source != "JGF" or form != JGF else {}
    if facts:
        yield f"facts of {source} about the whole set: {', '.join(sorted(facts))}"


def _of_structure(graph: rg.ResourceGraph, form: str) -> Iterator[str]:
    """Levels above and within the targets, and other subsystems."""
    below = rg.children_map(graph)
    targets = set(rg.execution_targets(graph, below))
    above, within = Counter[str](), Counter[str]()
    stack = [(rg.containment_root(graph), False)]
    while stack:
        key, inside = stack.pop()
        kind = rg.pool_of(graph, key).type
        if key != rg.containment_root(graph) and key not in targets and (key in below or not inside):
            (within if inside else above)[kind] += 1
        stack.extend((child, inside or key in targets) for child in below.get(key, ()))
    if above:
        yield f"vertices above or beside the execution targets: {_counted(above)}"
    if within and form == R:
        yield f"localities within them: {_counted(within)}"
    others = [name for name in rg.subsystems(graph) if name != rg.CONTAINMENT]
    if others:
        yield f"the subsystems {', '.join(others)}"


def _of_pools(graph: rg.ResourceGraph, form: str, found: Holdings) -> Iterator[str]:
    """Pools that are measured and not counted, and ids that had to change."""
    lost, rounded, renamed = Counter[str](), Counter[str](), Counter[str]()
    for _, pool in rg.pools(graph):
        if pool.type not in found.uncounted:
            continue
        if form == TREEPOOL and (amount := memory_in_gib(pool)) is not None:
            rounded[pool.type] += amount != int(amount)
        elif form == TREEPOOL and is_storage(pool):
            renamed[pool.type] += pool.type != "storage"
        else:
            lost[pool.type] += 1
    for what, counted in (
        (MEASURED, lost),
        (f"parts of a {MEMORY_UNIT}, rounded down", rounded),
        ("the type of storage pools", renamed),
    ):
        if counted.total():
            yield f"{what}: {_counted(counted)}"
    if found.renumbered:
        yield f"ids within a target, which are renumbered: {', '.join(sorted(found.renumbered))}"


def _of_vertices(graph: rg.ResourceGraph) -> Iterator[str]:
    """Statuses, values of properties, uuids, unknown keys."""
    found = Counter[str]()
    for _, pool in rg.pools(graph):
        found[STATUS] += pool.status != UP
        found["values of properties"] += any(pool.properties.values())
        found["uuid"] += bool(pool.uuid)
        keys = [key for key in pool.extra if key not in _FORMS]
        found["unknown keys"] += bool(keys)
    for what, count in found.items():
        if count:
            yield f"{what} of {count:,} {'vertex' if count == 1 else 'vertices'}"


_FORMS = frozenset({"id", "rank", "unit", "uuid", "properties", "status", "uniq_id", "paths", "path", OUTER})
"""Keys of `Pool.extra` that hold the original form of a known value."""


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in found.items() if count)
