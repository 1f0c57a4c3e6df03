"""Preorder and leaf pools against their definitions, walked vertex by vertex."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ClusterError
from simsched.formats.rfc.idset import Idset
from simsched.graph import resource_graph as rg
from simsched.graph.build import assemble
from simsched.graph.index.index import Index
from simsched.graph.index.preorder import preorder
from simsched.graph.pool import Pool

INSIDE, OUTSIDE = ("socket", "core", "gpu", "memory"), ("rack", "node", "node", "license")
INNER = {"cluster", "rack", "node", "socket"}


@st.composite
def graphs(draw):
    """A random machine: vertices of all statuses, in an order that need not be preorder."""
    graph = assemble.new_graph("random")
    places = [("c", False)]
    rows = [("c", Pool(type="cluster", name="c", basename="c"), None)]
    for number in range(draw(st.integers(1, 25))):
        above, within = draw(st.sampled_from(places))
        kind = "node" if number == 0 else draw(st.sampled_from(INSIDE if within else OUTSIDE))
        above = "c" if number == 0 else above
        size = 1 if kind in INNER else draw(st.sampled_from([1, 1, 1, 0, 3]))
        pool = Pool(
            type=kind,
            name=f"{kind}{number}",
            basename=kind,
            id=draw(st.sampled_from([None, 0, 1, number])),
            size=size,
            ids=Idset.from_range(0, size - 1) if kind == "core" and size and draw(st.booleans()) else None,
            unit="GB" if kind == "memory" else "",
            status=draw(st.sampled_from(["up", "up", "up", "down", "drained"])),
        )
        rows.append((f"v{number}", pool, above))
        if kind in INNER:
            places.append((f"v{number}", (within and number > 0) or kind == "node"))
    assemble.add_vertices(graph, [(key, pool) for key, pool, _ in rows])
    edges = [(above, key) for key, _, above in rows if above is not None]
    assemble.add_contained(graph, draw(st.permutations(edges)))
    return assemble.finish(graph)


def walked(graph, key, path=()):
    """Yield (vertex, what contains it from the root down) in preorder."""
    yield key, path
    for child in rg.children(graph, key):
        yield from walked(graph, child, (*path, key))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(graphs())
def test_preorder_is_what_a_walk_of_the_tree_gives(graph):
    tree = preorder(graph)
    rows = list(walked(graph, rg.containment_root(graph)))
    assert tree.keys == [key for key, _ in rows]
    targets = rg.execution_targets(graph)
    for place, (key, path) in enumerate(rows):
        chain = (*path, key)
        assert tree.parent[place] == (tree.keys.index(path[-1]) if path else -1)
        assert tree.end[place] - place == sum(key in (*above, own) for own, above in rows)
        owner = [target for target in targets if target in chain]
        assert tree.target[place] == (targets.index(owner[0]) if owner else -1)
        down = {vertex for vertex in chain if not rg.pool_of(graph, vertex).is_up}
        assert tree.up[place] == (not down)
        within = chain[chain.index(owner[0]) + 1 :] if owner else chain
        assert tree.sound[place] == down.isdisjoint(within)


def is_up(graph, key):
    """Whether a vertex is up with all that contains it; below one that is down, its own status is nothing."""
    return rg.pool_of(graph, key).is_up and all(is_up(graph, parent) for parent in rg.parents(graph, key))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(graphs())
def test_leaf_pools_hold_every_unit_once(graph):
    """Leaves of one parent and status fold; the units of a type add up to the sizes of its pools."""
    index = Index(graph)
    index._check()
    leaves = {key: pool for key, pool in rg.pools(graph) if pool.type in index.pool_types}
    for name, leaf_pools in index.pool_types.items():
        keys = [key for row in leaf_pools.keys for key in row]
        assert sorted(keys) == sorted(key for key, pool in leaves.items() if pool.type == name)
        for row, size, ids in zip(leaf_pools.keys, leaf_pools.size.tolist(), leaf_pools.ids, strict=True):
            assert size == sum(leaves[key].size for key in row)
            assert len(ids) == size
            assert len({(*rg.parents(graph, key), is_up(graph, key)) for key in row}) <= 1
        for target in set(leaf_pools.target.tolist()) - {-1}:
            sets = [
                ids
                for ids, on in zip(leaf_pools.ids, leaf_pools.target.tolist(), strict=True)
                if on == target
            ]
            assert sum(map(len, sets)) == len(set().union(*sets))


def machine(*pools):
    """One node that holds these pools of type `power` or `memory`."""
    graph = assemble.new_graph("units")
    assemble.add_vertices(graph, [("c", Pool(type="cluster", name="c", basename="c"))])
    assemble.add_tree(graph, [("n", Pool(type="node", name="n", basename="n"), "c")])
    rows = [
        (f"p{number}", Pool(type=kind, name=f"p{number}", basename="p", size=size, unit=unit), "n")
        for number, (kind, size, unit) in enumerate(pools)
    ]
    assemble.add_tree(graph, rows)
    return assemble.finish(graph)


@pytest.mark.parametrize(
    ("pools", "unit", "total"),
    [
        ([("power", 2, "kW"), ("power", 500, "W")], "W", 2_500),
        ([("power", 1, "kW"), ("power", 1, "W")], "W", 1_001),
        ([("memory", 1, "GB"), ("memory", 1, "GiB")], "B", 10**9 + 2**30),
        ([("memory", 4, "KB"), ("memory", 1, "kB")], "B", 5_000),
        ([("link", 1, "Gb/s"), ("link", 1, "MB/s")], "B/s", 126_000_000),
        ([("link", 3, "b/s"), ("link", 1, "MB/s")], "b/s", 8_000_003),
        ([("energy", 1, "MJ"), ("energy", 7, "J")], "J", 1_000_007),
    ],
)
def test_units_of_one_dimension_convert(pools, unit, total):
    index = Index(machine(*pools))
    index._check()
    found = index.pool_types[pools[0][0]]
    assert (found.unit, found.total) == (unit, total)


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (("W", "GB"), "some pools of type 'power' are counted in 'GB' and some in 'W'"),
        (("", "W"), "some pools of type 'power' have a unit and some have none"),
        (("boxes", "W"), "some pools of type 'power' are counted in 'W' and some in 'boxes'"),
    ],
)
def test_units_that_do_not_convert_are_refused_by_name(units, said):
    with pytest.raises(ClusterError, match=said):
        Index(machine(*[("power", 2, unit) for unit in units]))


def test_what_adds_up_beyond_64_bits_is_refused_single_units_too():
    with pytest.raises(ClusterError, match="exceed the largest possible total"):
        machine(("memory", 1, "YB"), ("memory", 1, "KB"))
