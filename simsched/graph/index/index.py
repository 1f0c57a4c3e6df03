"""The compiled index: a resource graph as arrays that matching runs on.

Vertices are in containment preorder (`pos`), so *the descendants of one type below any
vertex are one contiguous interval of that type's ordinals*, and counting them is a
difference of prefix sums.  Types come in two kinds:

* a **vertex type** (cluster, rack, node, socket …) has vertices that contain or dominate
  others; they are claimed whole or shared, one by one;
* a **pool type** (core, gpu, memory …) has only leaves; leaves of one type, unit and status
  below one parent fold into one *leaf pool*, whose units are claimed in numbers.

An *execution target* has an ordinal 0 … N-1 in containment order; a pool type with at most
one leaf pool on each target is *aligned*: its leaf pool ordinals are the target ordinals.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.hostlist import HostEncoder
from simsched.garbage import collector_paused
from simsched.graph import resource_graph as rg
from simsched.graph.index.compile_types import check_properties, target_type_of, types_of, wide_spans
from simsched.graph.index.preorder import preorder
from simsched.graph.index.reach import (
    Spans,
    View,
    fan_view,
    interval_view,
    listed_view,
    merged,
    ordinals_within,
)
from simsched.graph.index.types import BELOW, UnitsOfKinds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.arrays import Bools, Integers
    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.resource_graph import ResourceGraph


class Index:
    """A resource graph compiled for matching; see the module.

    Attributes
    ----------
    graph : the graph that it was compiled from.
    targets : vertex keys of the execution targets, in containment order.
    hosts, ranks : their names and broker ranks, in the same order.
    vertex_types, pool_types : name → arrays.
    """

    def __init__(self, graph: ResourceGraph) -> None:
        with collector_paused():
            others = rg.subsystems(graph)[1:]
            tree = preorder(graph)
            self.graph = graph
            self._wide = wide_spans(graph, tree, others)
            self.size = len(tree.keys)
            places = tree.targets.tolist()
            self.targets: tuple[str, ...] = tuple(tree.keys[i] for i in places)
            self.hosts: tuple[str, ...] = tuple(tree.pools[i].name for i in places)
            self.ranks: Integers = np.array([tree.pools[i].rank for i in places], dtype=np.int64)
            self.up: Bools = tree.up[tree.targets]
            check_properties(tree)
            self._properties = [tree.pools[i].properties for i in places]
            self.target_type = target_type_of(tree)
            self.vertex_types, self.pool_types = types_of(tree, self.target_type, set(self._wide))
        self._intervals: dict[tuple[str, str], tuple[Integers, Integers]] = {}
        self._beneath: dict[str, frozenset[str]] = {}
        self._fans: dict[tuple[str, str], int] = {}
        self._rows: dict[tuple[str, str], list[Integers]] = {}
        self.memo: dict[str, Any] = {}
        """Values that other modules derive from this index and keep with it (compiled requests)."""

    # --- shape -----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def flat(self) -> bool:
        """Whether every pool type is aligned and no vertex type is within a target."""
        return all(p.aligned for p in self.pool_types.values()) and not any(
            v.level == BELOW for v in self.vertex_types.values()
        )

    @cached_property
    def on_each_target(self) -> Mapping[str, int] | None:
        """Units of each pool type on a target, if all have the same and there is nothing else on them."""
        kind = self.target_type
        pools = [pool for pool in self.pool_types.values() if pool.name in self.types_beneath(kind)]
        same = all(pool.aligned and pool.uniform and pool.sound.all() for pool in pools)
        if not same or len(pools) < len(self.types_beneath(kind)):
            return None
        return {pool.name: pool.uniform for pool in pools if pool.uniform}

    @cached_property
    def ranks_ascend(self) -> bool:
        """Whether ranks ascend in containment order, as they mostly do."""
        return bool((np.diff(self.ranks) > 0).all())

    @cached_property
    def host_prefix(self) -> str | None:
        """The common prefix of all hosts if each ends in its rank (``node0``, ``node1`` …); else None."""
        prefix = self.hosts[0].removesuffix(str(self.ranks[0]))
        follow = all(
            host == f"{prefix}{rank}" for host, rank in zip(self.hosts, self.ranks.tolist(), strict=True)
        )
        return prefix if follow and not prefix[-1:].isdigit() else None

    @cached_property
    def host_encoder(self) -> HostEncoder:
        """Writes the hosts of ascending target ordinals as a hostlist."""
        return HostEncoder(self.hosts)

    @cached_property
    def written_properties(self) -> dict[str, Bools]:
        """Property → which targets have it, for R: as given, without those that begin with ``+``."""
        given = {name for properties in self._properties for name in properties}
        return {name: self.property_rows[name] for name in sorted(given) if not name.startswith("+")}

    @cached_property
    def totals(self) -> dict[str, int]:
        """Units of each pool type and vertices of each vertex type."""
        found = {name: len(vertices) for name, vertices in self.vertex_types.items()}
        found.update((name, pool.total) for name, pool in self.pool_types.items())
        return found

    def positions(self, type_: str) -> tuple[Integers, Integers]:
        """Return preorder place and end of each vertex or leaf pool of a type."""
        vertices = self.vertex_types.get(type_)
        if vertices is not None:
            return vertices.pos, vertices.end
        pos = self.pool_types[type_].pos
        return pos, pos + 1

    def interval(self, above: str, below: str) -> tuple[Integers, Integers]:
        """Return for each vertex of type `above` the interval [low, high) of `below` ordinals under it."""
        found = self._intervals.get((above, below))
        if found is None:
            pos, end = self.positions(above)
            places = self.positions(below)[0]
            # side="right" leaves out the vertex itself if both types are one
            found = (np.searchsorted(places, pos, side="right"), np.searchsorted(places, end, side="left"))
            self._intervals[above, below] = found
        return found

    def beneath(self, above: str, below: str, scope: Integers | None = None) -> View:
        """Return the vertices or leaf pools of type `below` under each vertex of `scope` (type `above`).

        `scope` None means all vertices.  A vertex is under another if that contains it, or dominates
        over another subsystem the vertex or one that contains it.
        """
        wide = self._wide_rows(above, below)
        if wide is not None:
            return listed_view(wide if scope is None else [wide[i] for i in scope.tolist()])
        low, high = self.interval(above, below)
        if scope is None:
            return View(None, low, high)
        # On most clusters all vertices of a type contain the same number: then a sum is one reshape.
        fan = self._fan(above, below)
        return fan_view(low[scope], fan) if fan else interval_view(low[scope], high[scope])

    def _fan(self, above: str, below: str) -> int:
        """Return how many of type `below` each of type `above` contains; 0 if they differ."""
        fan = self._fans.get((above, below))
        if fan is None:
            low, high = self.interval(above, below)
            counts = high - low
            fan = int(counts[0]) if len(counts) and (counts == counts[0]).all() else 0
            self._fans[above, below] = fan
        return fan

    def members(self, above: str, vertex: int, below: str) -> Integers:
        """Return the ordinals of type `below` under one vertex of type `above`."""
        wide = self._wide_rows(above, below)
        if wide is not None:
            return wide[vertex]
        low, high = self.interval(above, below)
        return np.arange(low[vertex], high[vertex])

    def spans(self, kind: str) -> list[Spans]:
        """Return the reach of each vertex of a type as intervals of preorder."""
        vertices = self.vertex_types[kind]
        inner = zip((vertices.pos + 1).tolist(), vertices.end.tolist(), strict=True)
        return [self._wide.get(key, (span,)) for key, span in zip(vertices.keys, inner, strict=True)]

    def subtree(self, kind: str, vertex: int) -> Spans:
        """Return one vertex with its reach as intervals of preorder."""
        vertices = self.vertex_types[kind]
        place, end = int(vertices.pos[vertex]), int(vertices.end[vertex])
        wide = self._wide.get(vertices.keys[vertex])
        return ((place, end),) if wide is None else merged([(place, place + 1), *wide])

    def _wide_rows(self, above: str, below: str) -> list[Integers] | None:
        """Return the ordinals under each vertex of a type that dominates over other subsystems."""
        # A switch contains nothing; the vertices that it dominates are no interval of preorder, so
        # they are listed.  None: the type has containment alone, and intervals suffice.
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
        """Return the types that have a vertex or leaf pool under a vertex of type `above`."""
        found = self._beneath.get(above)
        if found is None:
            names = [*self.vertex_types, *self.pool_types]
            views = ((name, self.beneath(above, name)) for name in names)
            found = frozenset(name for name, view in views if (view.high > view.low).any())
            self._beneath[above] = found
        return found

    def unit_names(self, type_: str, leaf: int) -> list[str]:
        """Return the name of each unit of a leaf pool: its vertex's, or that of the pool it is part of."""
        pool = self.pool_types[type_]
        names = [rg.pool_of(self.graph, key).name for key in pool.keys[leaf]]
        return names if len(names) == pool.size[leaf] else names * int(pool.size[leaf])

    def units_of_kinds(self, type_: str, kinds: frozenset[str]) -> UnitsOfKinds:
        """Return the units of a pool type that have one of the properties `kinds`.

        In a leaf pool of which no unit has a property that its target names as a kind of the type
        (``a100@gpu``), the properties of the target are about all units.
        """
        memo: dict[object, UnitsOfKinds] = self.memo.setdefault("kinds", {})
        found = memo.get((type_, kinds))
        if found is None:
            pool = self.pool_types[type_]
            masks = [self._mask_of_kinds(type_, leaf, kinds) for leaf in range(len(pool))]
            whole = [mask == (1 << size) - 1 for mask, size in zip(masks, pool.size.tolist(), strict=True)]
            found = memo[type_, kinds] = UnitsOfKinds(masks, np.array(whole, dtype=np.bool_))
        return found

    def _mask_of_kinds(self, type_: str, leaf: int, kinds: frozenset[str]) -> int:
        pool = self.pool_types[type_]
        keys, size, target = pool.keys[leaf], int(pool.size[leaf]), int(pool.target[leaf])
        every = (1 << size) - 1
        if target < 0 or not keys:
            return every
        end = f"@{pool.name}"
        known = {name.removesuffix(end) for name in self._properties[target] if name.endswith(end)}
        own = [known & rg.pool_of(self.graph, key).properties.keys() for key in keys]
        if not any(own):
            return every if known & kinds else 0
        if len(own) < size:  # one vertex for all units
            return every if own[0] & kinds else 0
        return sum(1 << unit for unit, names in enumerate(own) if names & kinds)

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
        """Host name → ordinals of its targets."""
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

        >>> from simsched.graph.build.rset import from_rset
        >>> from simsched.formats.cluster.rset import ResourceSet
        >>> R = {"version": 1, "execution": {"R_lite": [{"rank": "0-2", "children": {"core": "0"}}],
        ...      "nodelist": ["n[0-2]"], "properties": {"ssd": "1-2"}}}
        >>> index = Index(from_rset(ResourceSet.from_dict(R)))
        >>> index.targets_matching(rfc31.from_json({"properties": ["^ssd"]})).tolist()
        [True, False, False]
        """
        row = np.ones(len(self), dtype=np.bool_)
        match constraint:
            case rfc31.Properties():
                none = np.zeros(len(self), dtype=np.bool_)
                for name in constraint.names:
                    having = self.property_rows.get(name.removeprefix("^"), none)
                    row &= ~having if name.startswith("^") else having
            case rfc31.Hosts() if len(constraint.hostlist):
                hosts = self.ordinal_of_host
                named = constraint.hostlist.unique()
                row = _row(len(self), [o for host in named for o in hosts.get(host, ())])
            case rfc31.Ranks() if constraint.idset:
                row = np.zeros(len(self), dtype=np.bool_)
                for low, high in constraint.idset.ranges:
                    row |= (self.ranks >= low) & (self.ranks <= high)
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
