"""The compiled index: a resource graph as arrays that matching runs on.

Vertices stand in containment preorder (`pos`), so *the descendants of one type beneath any
vertex are one contiguous interval of that type's ordinals*, and counting them is a
difference of prefix sums.  Types come in two kinds:

* a **vertex type** (cluster, rack, node, socket …) has vertices that contain or dominate
  others; they are claimed whole or shared, one by one;
* a **pool type** (core, gpu, memory …) has only leaves; leaves of one type, unit and status
  below one parent fold into one *bank*, whose units are claimed in numbers.

An *execution target* has an ordinal 0 … N-1 in containment order; a pool type with at most
one bank on each target is *aligned*: its bank ordinals are the target ordinals.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from simsched.errors import ClusterError, RequestError
from simsched.formats import constraint as rfc31
from simsched.formats.hostlist import HostEncoder
from simsched.formats.idset import Idset
from simsched.formats.units import convert
from simsched.graph import resource_graph as rg
from simsched.graph.reach import (
    Spans,
    View,
    dominated_spans,
    interval_view,
    listed_view,
    merged,
    ordinals_within,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.constraint import Constraint
    from simsched.graph.pool import Pool
    from simsched.graph.resource_graph import ResourceGraph

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

ABOVE, TARGET, BELOW = "above", "target", "below"
"""Where the vertices of a type lie: above the execution targets, they themselves, within them."""

MAX_NAMED_UNITS = 65_536
"""A larger bank is counted; its units bear no ids (a pool of 512 GB in bytes, say)."""


@dataclass(frozen=True, slots=True, eq=False)
class VertexType:
    """The vertices of one type that are claimed one by one.

    Arrays have one entry a vertex: `pos` twice its place in preorder (the odd places are for
    empty banks), `end` that of the first vertex after its subtree, `target` the ordinal of the
    target that it is or lies in (-1: above), `ids` its logical id (-1: none), `up` whether it
    and all that contains it is up.
    """

    name: str
    level: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    pos: Ints
    end: Ints
    target: Ints
    ids: Ints
    up: Bools

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True, eq=False)
class PoolType:
    """The banks of one type whose units are claimed in numbers.

    Arrays have one entry a bank: `size` its units, `up` whether they can be had, `target`
    the ordinal of the target it lies on (-1: on none), `pos` its place in preorder.
    `ids` are the units' ids in ascending order; unit *i* of a bank bears the *i*-th of them.
    """

    name: str
    unit: str
    aligned: bool
    named: bool
    pos: Ints
    size: Ints
    target: Ints
    up: Bools
    ids: tuple[Idset, ...]
    keys: tuple[tuple[str, ...], ...]
    per_target: Ints
    total: int
    uniform: int | None
    """The one size of all banks, if they agree."""
    uniform_ids: Idset | None
    """The one set of unit ids of all banks, if they agree."""
    texts: dict[tuple[Idset, int], Idset] = field(default_factory=dict)
    """Sets of ids made from masks before: (ids of the bank, mask) → ids."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def on_targets(self) -> bool:
        """Whether any bank lies on an execution target."""
        return bool((self.target >= 0).any())


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """Containment in preorder: `keys[i]` ends its subtree before `end[i]`; `parent[0]` is -1."""

    keys: list[str]
    pools: list[Pool]
    parent: list[int]
    end: list[int]
    up: list[bool]
    target: list[int]
    targets: list[int]


class Index:
    """A resource graph compiled for matching; see the module's text.

    Attributes
    ----------
    graph : the frozen graph it was compiled from.
    targets : vertex keys of the execution targets, in containment order.
    hosts, ranks : their names and broker ranks, in the same order.
    vertex_types, pool_types : name → arrays.
    """

    def __init__(self, graph: ResourceGraph) -> None:
        with rg.collector_paused():
            others = rg.subsystems(graph)[1:]
            tree = _preorder(graph)
            self.graph = graph
            self._wide = _wide_spans(graph, tree, others)
            self.size = len(tree.keys)
            self.targets: tuple[str, ...] = tuple(tree.keys[i] for i in tree.targets)
            self.hosts: tuple[str, ...] = tuple(tree.pools[i].name for i in tree.targets)
            self.ranks: Ints = np.array([tree.pools[i].rank for i in tree.targets], dtype=np.int64)
            self.up: Bools = np.array([tree.up[i] for i in tree.targets], dtype=np.bool_)
            self._properties = [tree.pools[i].properties for i in tree.targets]
            self.target_type = _target_type(tree)
            self.vertex_types, self.pool_types = _types(tree, self.target_type, set(self._wide))
        self._intervals: dict[tuple[str, str], tuple[Ints, Ints]] = {}
        self._beneath: dict[str, frozenset[str]] = {}
        self._rows: dict[tuple[str, str], list[Ints]] = {}
        self.memo: dict[str, Any] = {}
        """What others derived from this index and keep with it (compiled requests)."""

    # --- shape -----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def flat(self) -> bool:
        """Whether every bank lies directly aligned on targets and no vertex lies within one."""
        return all(p.aligned for p in self.pool_types.values()) and not any(
            v.level == BELOW for v in self.vertex_types.values()
        )

    @cached_property
    def ranks_ascend(self) -> bool:
        """Whether ranks ascend in containment order, as they mostly do."""
        return bool((np.diff(self.ranks) > 0).all())

    @cached_property
    def host_encoder(self) -> HostEncoder:
        """Writes the hosts of ascending target ordinals as a hostlist."""
        return HostEncoder(self.hosts)

    @cached_property
    def written_properties(self) -> dict[str, Bools]:
        """Property → which targets have it, for R: as it was given, ``+`` ones left out."""
        given = {name for properties in self._properties for name in properties}
        return {name: self.property_rows[name] for name in sorted(given) if not name.startswith("+")}

    @cached_property
    def totals(self) -> dict[str, int]:
        """Units of each pool type and vertices of each vertex type."""
        found = {name: len(vertices) for name, vertices in self.vertex_types.items()}
        found.update((name, pool.total) for name, pool in self.pool_types.items())
        return found

    def positions(self, type_: str) -> tuple[Ints, Ints]:
        """Return preorder place and end of each vertex or bank of a type."""
        vertices = self.vertex_types.get(type_)
        if vertices is not None:
            return vertices.pos, vertices.end
        pos = self.pool_types[type_].pos
        return pos, pos + 1

    def interval(self, above: str, below: str) -> tuple[Ints, Ints]:
        """Return for each vertex of type `above` the interval [lo, hi) of `below` ordinals beneath it."""
        found = self._intervals.get((above, below))
        if found is None:
            pos, end = self.positions(above)
            places = self.positions(below)[0]
            found = (np.searchsorted(places, pos, side="right"), np.searchsorted(places, end, side="left"))
            self._intervals[above, below] = found
        return found

    def beneath(self, above: str, below: str, scope: Ints | None = None) -> View:
        """Return what of type `below` lies beneath each vertex of `scope` (type `above`; None: all of them).

        Beneath is: contained, or dominated over another subsystem, or contained in what is.
        """
        wide = self._wide_rows(above, below)
        if wide is not None:
            return listed_view(wide if scope is None else [wide[i] for i in scope.tolist()])
        low, high = self.interval(above, below)
        return View(None, low, high) if scope is None else interval_view(low[scope], high[scope])

    def members(self, above: str, vertex: int, below: str) -> Ints:
        """Return the ordinals of type `below` beneath one vertex of type `above`."""
        wide = self._wide_rows(above, below)
        if wide is not None:
            return wide[vertex]
        low, high = self.interval(above, below)
        return np.arange(low[vertex], high[vertex])

    def spans(self, kind: str) -> list[Spans]:
        """Return all that each vertex of a type reaches, as intervals of preorder."""
        vertices = self.vertex_types[kind]
        inner = zip((vertices.pos + 1).tolist(), vertices.end.tolist(), strict=True)
        return [self._wide.get(key, (span,)) for key, span in zip(vertices.keys, inner, strict=True)]

    def subtree(self, kind: str, vertex: int) -> Spans:
        """Return one vertex and all that it reaches, as intervals of preorder."""
        vertices = self.vertex_types[kind]
        place, end = int(vertices.pos[vertex]), int(vertices.end[vertex])
        wide = self._wide.get(vertices.keys[vertex])
        return ((place, end),) if wide is None else merged([(place, place + 1), *wide])

    def _wide_rows(self, above: str, below: str) -> list[Ints] | None:
        """Return what lies beneath each vertex of a type that dominates over other subsystems."""
        vertices = self.vertex_types.get(above)
        if not self._wide or vertices is None or self._wide.keys().isdisjoint(vertices.keys):
            return None
        rows = self._rows.get((above, below))
        if rows is None:
            places = self.positions(below)[0]
            rows = [ordinals_within(spans, places) for spans in self.spans(above)]
            self._rows[above, below] = rows
        return rows

    def types_beneath(self, above: str) -> frozenset[str]:
        """Return the types of which some vertex or bank lies beneath a vertex of type `above`."""
        found = self._beneath.get(above)
        if found is None:
            names = [*self.vertex_types, *self.pool_types]
            views = ((name, self.beneath(above, name)) for name in names)
            found = frozenset(name for name, view in views if (view.high > view.low).any())
            self._beneath[above] = found
        return found

    def unit_names(self, type_: str, bank: int) -> list[str]:
        """Return the name of each unit of a bank: its vertex's, or that of the pool it is part of."""
        pool = self.pool_types[type_]
        names = [rg.pool_of(self.graph, key).name for key in pool.keys[bank]]
        return names if len(names) == pool.size[bank] else names * int(pool.size[bank])

    # --- properties and constraints (RFC 31) -----------------------------------------

    @cached_property
    def property_rows(self) -> dict[str, Bools]:
        """Property → which targets have it.  ``amd@gpu`` also counts as ``amd`` (RFC 20)."""
        holders: dict[str, list[int]] = defaultdict(list)
        for ordinal, properties in enumerate(self._properties):
            for name, value in properties.items():
                for spelling in _spellings(name, value):
                    holders[spelling].append(ordinal)
        return {name: _row(len(self), ordinals) for name, ordinals in holders.items()}

    @cached_property
    def ordinal_of_host(self) -> dict[str, list[int]]:
        """Host name → ordinals of the targets that bear it."""
        found: dict[str, list[int]] = defaultdict(list)
        for ordinal, host in enumerate(self.hosts):
            found[host].append(ordinal)
        return found

    @cached_property
    def ordinal_of_rank(self) -> dict[int, int]:
        """Broker rank → target ordinal."""
        return {rank: ordinal for ordinal, rank in enumerate(self.ranks.tolist())}

    def targets_matching(self, constraint: Constraint | None) -> Bools:
        """Return which targets satisfy an RFC 31 constraint (M7; empty forms after R4).

        >>> from simsched.graph.build_rset import from_rset
        >>> from simsched.formats.rset import ResourceSet
        >>> R = {"version": 1, "execution": {"R_lite": [{"rank": "0-2", "children": {"core": "0"}}],
        ...      "nodelist": ["n[0-2]"], "properties": {"ssd": "1-2"}}}
        >>> index = Index(from_rset(ResourceSet.from_dict(R)))
        >>> index.targets_matching(rfc31.from_json({"properties": ["^ssd"]})).tolist()
        [True, False, False]
        """
        row = np.ones(len(self), dtype=np.bool_)
        match constraint:
            case rfc31.Properties():
                for name in constraint.names:
                    row &= self._property(name)
            case rfc31.Hosts() if len(constraint.hostlist):
                hosts = self.ordinal_of_host
                named = constraint.hostlist.unique()
                row = _row(len(self), [o for host in named for o in hosts.get(host, ())])
            case rfc31.Ranks() if constraint.idset:
                row = self._ranks_in(constraint.idset)
            case rfc31.And():
                for part in constraint.args:
                    row &= self.targets_matching(part)
            case rfc31.Or() if constraint.args:
                row = np.logical_or.reduce([self.targets_matching(part) for part in constraint.args])
            case rfc31.Always():
                row &= constraint.value
            case rfc31.Not():
                row = ~self.targets_matching(constraint.arg)
        return row

    def _property(self, name: str) -> Bools:
        wanted = not name.startswith("^")
        row = self.property_rows.get(name.removeprefix("^"))
        if row is None:
            row = np.zeros(len(self), dtype=np.bool_)
        return row if wanted else ~row

    def _ranks_in(self, wanted: Idset) -> Bools:
        row = np.zeros(len(self), dtype=np.bool_)
        for low, high in wanted.ranges:
            row |= (self.ranks >= low) & (self.ranks <= high)
        return row

    def _check(self) -> None:
        """Assert every invariant of the compiled arrays against the graph."""
        assert len(self.targets) == len(self.hosts) == len(self.ranks) == len(self.up)
        for vertices in self.vertex_types.values():
            assert (np.diff(vertices.pos) > 0).all()
            assert (vertices.end > vertices.pos).all()
            assert all(rg.pool_of(self.graph, k).type == vertices.name for k in vertices.keys)
        for pool in self.pool_types.values():
            assert pool.total == int(pool.size[pool.up].sum())
            assert (np.diff(pool.pos) > 0).all() or pool.aligned
            assert (
                all(len(i) == s for i, s in zip(pool.ids, pool.size.tolist(), strict=True)) or not pool.named
            )
            counted = np.zeros(len(self), dtype=np.int64)
            on = (pool.target >= 0) & pool.up
            np.add.at(counted, pool.target[on], pool.size[on])
            assert (counted == pool.per_target).all()
            if pool.aligned:
                assert len(pool) == len(self)


# --- compiling ---------------------------------------------------------------------------


def _preorder(graph: ResourceGraph) -> _Tree:
    below = rg.children_map(graph)
    nodes = graph.nodes
    is_target = dict.fromkeys(rg.execution_targets(graph))
    tree = _Tree([], [], [], [], [], [], [])
    stack: list[tuple[str, int]] = [(rg.containment_root(graph), -1)]
    while stack:
        key, parent = stack.pop()
        place = len(tree.keys)
        pool: Pool = nodes[key]["pool"]
        tree.keys.append(key)
        tree.pools.append(pool)
        tree.parent.append(parent)
        tree.up.append(pool.is_up and (parent < 0 or tree.up[parent]))
        target = tree.target[parent] if parent >= 0 else -1
        if key in is_target:
            target = len(tree.targets)
            tree.targets.append(place)
        tree.target.append(target)
        children = below.get(key)
        if children:
            stack.extend((child, place) for child in reversed(children))
    _add_uncontained(graph, tree)
    tree.end.extend(range(1, len(tree.keys) + 1))
    for place in range(len(tree.keys) - 1, 0, -1):
        parent = tree.parent[place]
        if parent >= 0 and tree.end[place] > tree.end[parent]:
            tree.end[parent] = tree.end[place]
    return tree


def _add_uncontained(graph: ResourceGraph, tree: _Tree) -> None:
    """Put the vertices that serve another subsystem only behind the tree."""
    if len(tree.keys) == len(graph):
        return
    seen = set(tree.keys)
    for key, pool in rg.pools(graph):
        if key not in seen:
            tree.keys.append(key)
            tree.pools.append(pool)
            tree.parent.append(-1)
            tree.up.append(pool.is_up)
            tree.target.append(-1)


def _target_type(tree: _Tree) -> str:
    names = {tree.pools[i].type for i in tree.targets}
    if len(names) != 1:
        raise ClusterError(
            f"execution targets are of several types: {', '.join(sorted(names))}",
            expected="one type that carries ranks",
        )
    return names.pop()


def _wide_spans(graph: ResourceGraph, tree: _Tree, others: list[str]) -> dict[str, Spans]:
    """Return what vertices reach that dominate others outside containment."""
    if not others:
        return {}
    spans = zip(range(0, 2 * len(tree.keys), 2), (2 * end for end in tree.end), strict=True)
    return dominated_spans(graph, dict(zip(tree.keys, spans, strict=True)), others)


def _types(
    tree: _Tree, target_type: str, dominators: set[str]
) -> tuple[dict[str, VertexType], dict[str, PoolType]]:
    is_inner = {tree.pools[place].type for place in set(tree.parent) if place >= 0} | {target_type}
    if dominators:
        is_inner |= {pool.type for key, pool in zip(tree.keys, tree.pools, strict=True) if key in dominators}
    inner: dict[str, list[int]] = defaultdict(list)
    leaves: dict[str, list[int]] = defaultdict(list)
    for place, pool in enumerate(tree.pools):
        (inner if pool.type in is_inner else leaves)[pool.type].append(place)
    vertices = {name: _vertex_type(name, places, tree, target_type) for name, places in inner.items()}
    banks = {name: _pool_type(name, places, tree) for name, places in leaves.items()}
    return vertices, banks


def _vertex_type(name: str, places: list[int], tree: _Tree, target_type: str) -> VertexType:
    target = np.array([tree.target[i] for i in places], dtype=np.int64)
    pools = [tree.pools[i] for i in places]
    level = TARGET if name == target_type else BELOW if (target >= 0).all() else ABOVE
    return VertexType(
        name=name,
        level=level,
        keys=tuple(tree.keys[i] for i in places),
        names=tuple(pool.name for pool in pools),
        pos=2 * np.array(places, dtype=np.int64),
        end=2 * np.array([tree.end[i] for i in places], dtype=np.int64),
        target=target,
        ids=np.array([-1 if pool.id is None else pool.id for pool in pools], dtype=np.int64),
        up=np.array([tree.up[i] for i in places], dtype=np.bool_),
    )


@dataclass(slots=True)
class _Bank:
    """A bank in the making: the leaves that fold into it, in preorder."""

    pos: int
    target: int
    up: bool
    unit: str
    places: list[int]
    size: int = 0
    ids: Idset | None = None


def _pool_type(name: str, places: list[int], tree: _Tree) -> PoolType:
    banks = list(_fold(places, tree))
    unit = _common_unit(name, banks)
    for bank in banks:
        _measure(bank, tree, unit)
    _number_within_targets(banks)
    aligned = _is_aligned(banks, len(tree.targets))
    if aligned:
        banks = _align(banks, tree.targets)
    size = np.array([bank.size for bank in banks], dtype=np.int64)
    up = np.array([bank.up for bank in banks], dtype=np.bool_)
    target = np.array([bank.target for bank in banks], dtype=np.int64)
    on = (target >= 0) & up
    per_target = np.zeros(len(tree.targets), dtype=np.int64)
    np.add.at(per_target, target[on], size[on])
    sizes = {bank.size for bank in banks}
    return PoolType(
        name=name,
        unit=unit,
        aligned=aligned,
        named=max(sizes, default=0) <= MAX_NAMED_UNITS,
        pos=np.array([bank.pos for bank in banks], dtype=np.int64),
        size=size,
        target=target,
        up=up,
        ids=tuple(bank.ids or Idset.from_ids(()) for bank in banks),
        keys=tuple(tuple(tree.keys[i] for i in bank.places) for bank in banks),
        per_target=per_target,
        total=int(size[up].sum()),
        uniform=sizes.pop() if len(sizes) == 1 else None,
        uniform_ids=banks[0].ids if len({bank.ids for bank in banks}) == 1 else None,
    )


def _fold(places: list[int], tree: _Tree) -> Iterator[_Bank]:
    """Fold single-unit leaves of one parent, unit and status; larger pools stay banks of their own."""
    open_banks: dict[tuple[int, str, bool], _Bank] = {}
    for place in places:
        pool = tree.pools[place]
        up = tree.up[place]
        key = (tree.parent[place], pool.unit, up)
        single = pool.size == 1 and pool.ids is None and key[0] >= 0
        if single and key in open_banks:
            open_banks[key].places.append(place)
            continue
        bank = _Bank(2 * place, tree.target[place], up, pool.unit, [place])
        if single:
            open_banks[key] = bank
        yield bank


def _common_unit(name: str, banks: list[_Bank]) -> str:
    """Return the unit that all banks of a type are counted in: their own, or bytes if they differ."""
    units = {bank.unit for bank in banks}
    if len(units) == 1:
        return units.pop()
    if "" in units:
        raise ClusterError(
            f"some pools of type {name!r} have a unit and some have none", expected="one dimension"
        )
    base = "B"
    for unit in sorted(units):
        try:
            convert(1, unit, base)
        except RequestError as error:
            raise ClusterError(
                f"pools of type {name!r} have units of different dimensions: {error}"
            ) from None
    return base


def _measure(bank: _Bank, tree: _Tree, unit: str) -> None:
    """Set size and unit ids of a bank, the leaves put in the order of their ids."""
    pools = [tree.pools[i] for i in bank.places]
    if len(pools) == 1 and (pools[0].size != 1 or pools[0].ids is not None):
        pool = pools[0]
        factor = int(convert(1, bank.unit, unit)) if unit != bank.unit else 1
        bank.size = pool.size * factor
        if bank.size <= MAX_NAMED_UNITS:
            keep = pool.ids is not None and factor == 1
            bank.ids = pool.ids if keep else _first_ids(bank.size)
        return
    bank.size = len(pools)
    ids = [pool.id for pool in pools]
    if None in ids or len(set(ids)) != len(ids):
        bank.ids = _first_ids(bank.size)
        return
    numbered = sorted(zip((i for i in ids if i is not None), bank.places, strict=True))
    bank.places = [place for _, place in numbered]
    bank.ids = _interned_ids(tuple(i for i, _ in numbered))


@lru_cache(maxsize=1024)
def _first_ids(size: int) -> Idset:
    return Idset.from_range(0, size - 1) if size else Idset.from_ids(())


@lru_cache(maxsize=1024)
def _interned_ids(ids: tuple[int, ...]) -> Idset:
    return Idset.from_ids(ids)


def _number_within_targets(banks: list[_Bank]) -> None:
    """Number units anew on targets where two banks of the type use one id (socket-local ids)."""
    by_target: dict[int, list[_Bank]] = defaultdict(list)
    for bank in banks:
        if bank.ids is not None:
            by_target[bank.target].append(bank)
    for target, group in by_target.items():
        if target < 0 or len(group) == 1 or _disjoint([bank.ids for bank in group if bank.ids is not None]):
            continue
        start = 0
        for bank in group:
            bank.ids = Idset.from_range(start, start + bank.size - 1) if bank.size else bank.ids
            start += bank.size


def _disjoint(sets: list[Idset]) -> bool:
    ranges = sorted(r for ids in sets for r in ids.ranges)
    return all(before[1] < after[0] for before, after in pairwise(ranges))


def _is_aligned(banks: list[_Bank], targets: int) -> bool:
    on = [bank.target for bank in banks]
    return targets > 0 and -1 not in on and len(set(on)) == len(on)


def _align(banks: list[_Bank], targets: list[int]) -> list[_Bank]:
    """Put one bank on every target: an empty one, right behind the target, where there is none."""
    if len(banks) == len(targets):
        return banks
    by_target = {bank.target: bank for bank in banks}
    empty = Idset.from_ids(())
    unit = banks[0].unit
    return [
        by_target.get(ordinal) or _Bank(2 * place + 1, ordinal, up=True, unit=unit, places=[], ids=empty)
        for ordinal, place in enumerate(targets)
    ]


def _spellings(name: str, value: str) -> Iterator[str]:
    yield name
    if value:
        yield f"{name}={value}"
    if "@" in name:
        yield name.split("@", 1)[0]


def _row(length: int, ordinals: list[int]) -> Bools:
    row = np.zeros(length, dtype=np.bool_)
    row[ordinals] = True
    return row
