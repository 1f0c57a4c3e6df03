"""Views of a cluster: counts, groups of equal targets, a folded tree, a search for vertices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import networkx as nx

from simsched.errors import ConfigError, LimitError
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.graph import resource_graph as rg
from simsched.graph.inspect.fold import ALIKE, APART, Fold, fold
from simsched.graph.pool import STATUSES, UP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from simsched.graph.pool import Pool


def subsystem_view(graph: rg.ResourceGraph, subsystem: str) -> rg.ResourceGraph:
    """Return networkx's view of one subsystem: its edges and the vertices they join.

    A walk through a view is several times slower than one over the graph itself.

    >>> from simsched.formats.cluster.rset import ResourceSet
    >>> from simsched.graph.build.rset import from_rset
    >>> graph = from_rset(ResourceSet.of([("0", {"core": "0-3"})], "n0"))
    >>> sorted(subsystem_view(graph, "containment"))
    ['cluster0', 'n0', 'n0/core']
    """
    edges = [(source, target, key) for source, target, key in graph.edges(keys=True) if key == subsystem]
    view: rg.ResourceGraph = nx.edge_subgraph(graph, edges)  # type: ignore[assignment,unused-ignore]
    return view


# --- counts --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    """Execution targets with equal contents."""

    hosts: str
    count: int
    holds: dict[str, str]
    properties: tuple[str, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The contents of a cluster.

    name, source : of the cluster; null if it has none.
    vertices : type: the number of vertices.
    units : type: their units, "512 GB" or a plain number.
    targets : number of execution targets.
    groups : execution targets with equal contents.
    properties : property: the number of targets that have it.
    statuses : status: the number of targets that have it.
    """

    name: str | None
    source: str | None
    vertices: dict[str, int]
    units: dict[str, str]
    targets: int
    groups: list[Group]
    properties: dict[str, int]
    statuses: dict[str, int]
    subsystems: list[str]


def summary(graph: rg.ResourceGraph, name: str | None = None, source: str | None = None) -> Summary:
    """Count a graph; `name` and `source` are those of its cluster.  O(vertices)."""
    below = rg.children_map(graph)
    targets = rg.execution_targets(graph, below)
    having = Counter(name for key in targets for name in rg.pool_of(graph, key).properties)
    return Summary(
        name=name,
        source=source,
        vertices=dict(Counter(pool.type for _, pool in rg.pools(graph))),
        units=units_of(pool for _, pool in rg.pools(graph)),
        targets=len(targets),
        groups=_groups(graph, targets, below),
        properties=dict(sorted(having.items())),
        statuses=dict(Counter(rg.pool_of(graph, key).status for key in targets)),
        subsystems=rg.subsystems(graph) or [rg.CONTAINMENT],
    )


def units_of(found: Iterable[Pool]) -> dict[str, str]:
    """Return type → the sum of the sizes of pools as text, by unit if there are several."""
    total: Counter[tuple[str, str]] = Counter()
    for pool in found:
        total[pool.type, pool.unit] += pool.size
    units: dict[str, list[str]] = {}
    for (kind, unit), size in total.items():
        units.setdefault(kind, []).append(f"{size:,} {unit}".rstrip())
    return {kind: " + ".join(sizes) for kind, sizes in units.items()}


def _groups(graph: rg.ResourceGraph, targets: Sequence[str], below: Mapping[str, list[str]]) -> list[Group]:
    alike: dict[Any, list[str]] = {}
    holds: dict[Any, dict[str, str]] = {}
    seen: dict[tuple[int, ...], dict[str, str]] = {}
    for key in targets:
        pool = rg.pool_of(graph, key)
        within = [rg.pool_of(graph, inner) for inner in rg.inside(below, key)]
        made_of = seen.setdefault(tuple(map(id, within)), {})
        if within and not made_of:
            made_of.update(units_of(within))
        mark = (tuple(made_of.items()), tuple(pool.properties), pool.status)
        holds[mark] = made_of
        alike.setdefault(mark, []).append(pool.name)
    return [
        Group(encode_hosts(hosts), len(hosts), holds[mark], mark[1], mark[2]) for mark, hosts in alike.items()
    ]


# --- the tree ------------------------------------------------------------------------


def tree_lines(
    graph: rg.ResourceGraph, subsystem: str = rg.CONTAINMENT, *, apart: bool = False, depth: int | None = None
) -> Iterator[str]:
    """Yield the lines of a tree in which equal subtrees are folded into one.

    ``3 × rack  rack[0-2]`` means: in each vertex above there are three; the names are those
    of all these vertices.  Without `depth`, vertices deeper than `MAX_LEVELS` are one line that gives
    their place.  Raises `LimitError` if more than `MAX_APART` vertices would not be folded.
    """
    if apart and len(graph) > MAX_APART:
        raise LimitError(
            f"{len(graph):,} vertices with a line each",
            where="--apart",
            expected=f"at most {MAX_APART:,}; without it equal ones are folded; --find lists some of them",
        )
    classes = fold(graph, subsystem, how=APART if apart else ALIKE)
    inner = {child for one in classes for _, child in one.below}
    for number, one in enumerate(classes):
        if number not in inner:
            yield label(graph, one, len(one.vertices))
            yield from _branches(graph, classes, one, depth)


MAX_APART = 200_000
"""The most vertices that are shown in lines of their own."""

MAX_LEVELS = 100
"""Levels of a tree that are shown if no depth is given."""


def _branches(
    graph: rg.ResourceGraph, classes: Sequence[Fold], root: Fold, depth: int | None
) -> Iterator[str]:
    """Yield the classes below a class, depth first."""
    most = MAX_LEVELS if depth is None else depth
    stack = [(root, turn, "", 1) for turn in reversed(range(len(root.below)))] if most > 0 else []
    while stack:
        above, turn, indent, level = stack.pop()
        last = turn == len(above.below) - 1
        count, number = above.below[turn]
        one = classes[number]
        yield f"{indent}{'└─ ' if last else '├─ '}{label(graph, one, count)}"
        inner = indent + ("   " if last else "│  ")
        if level < most:
            stack.extend((one, turn, inner, level + 1) for turn in reversed(range(len(one.below))))
        elif depth is None and one.below:
            name = rg.pool_of(graph, one.vertices[0]).name
            yield f"{inner}└─ … more below {name} at level {level}: --depth N shows N levels"


def label(graph: rg.ResourceGraph, one: Fold, count: int) -> str:
    """Return a class in one line: number, type, names."""
    found = [rg.pool_of(graph, vertex) for vertex in one.vertices]
    first = found[0]
    parts = [f"{count} × {first.type}" if count > 1 else first.type]
    if first.size != 1 or first.ids is not None or first.unit:
        parts.append(f"{first.size:,} {first.unit}".rstrip())
    parts.append(which(found))
    if first.properties:
        named = [f"{name}={value}" if value else name for name, value in first.properties.items()]
        parts.append("{" + ", ".join(named) + "}")
    if first.status != UP:
        parts.append(f"({first.status})")
    return "  ".join(part for part in parts if part)


def which(found: Sequence[Pool]) -> str:
    """Return the names or unit ids of equal pools, as short as possible."""
    ids = {pool.ids for pool in found}
    if len(ids) == 1 and found[0].ids is not None:
        return f"[{found[0].ids}]"
    if None not in ids or (found[0].name == found[0].type and len({pool.name for pool in found}) == 1):
        return ""
    names = list(dict.fromkeys(pool.name for pool in found))
    text = encode_hosts(names)
    return text if len(text) <= 60 else f"{text[:57]}…"


# --- finding -------------------------------------------------------------------------


def find(graph: rg.ResourceGraph, text: str) -> list[str]:
    """Return the vertices that satisfy all terms of `text`, in graph order.

    Terms are separated by blanks: ``type=T``, ``property=P``, ``status=down``,
    ``name=HOSTLIST``, ``rank=IDSET``, ``id=IDSET``; a ``-`` before a term negates it.

    Raises
    ------
    ConfigError
        for an unknown term or status.
    FormatError
        for an invalid hostlist or idset.
    """
    tests = [_term(term) for term in text.split()]
    if not tests:
        raise ConfigError("nothing to find", expected=_TERMS)
    return [key for key, pool in rg.pools(graph) if all(test(pool) for test in tests)]


_TERMS = "terms such as type=node, property=fast, status=down, name=n[0-3], rank=0-7, -status=up"


def _term(text: str) -> Callable[[Pool], bool]:
    negated = text.startswith("-")
    word, equals, operand = text.removeprefix("-").partition("=")
    if not equals or word not in _PREDICATES:
        raise ConfigError(f"unknown term {text!r}", expected=_TERMS)
    read, holds = _PREDICATES[word]
    wanted = read(operand)
    return lambda pool: holds(pool, wanted) != negated


def _status(text: str) -> str:
    if text not in STATUSES:
        raise ConfigError(f"unknown status {text!r}", expected=" or ".join(STATUSES))
    return text


def _has_property(pool: Pool, wanted: tuple[str, str, str]) -> bool:
    name, equals, value = wanted
    return pool.properties.get(name) == value if equals else name in pool.properties


def _has_id(pool: Pool, ids: Idset) -> bool:
    return (pool.id is not None and pool.id in ids) or bool(pool.ids and not ids.isdisjoint(pool.ids))


#: Term → how its operand is read, and whether a pool satisfies it.
_PREDICATES: dict[str, tuple[Callable[[str], Any], Callable[[Pool, Any], bool]]] = {
    "type": (str, lambda pool, kind: pool.type == kind),
    "property": (lambda text: text.partition("="), _has_property),
    "status": (_status, lambda pool, status: pool.status == status),
    "name": (lambda text: frozenset(Hostlist.parse(text).expand()), lambda pool, names: pool.name in names),
    "rank": (Idset.parse, lambda pool, ranks: pool.rank is not None and pool.rank in ranks),
    "id": (Idset.parse, _has_id),
}
