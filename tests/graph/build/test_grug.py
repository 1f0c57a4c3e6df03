"""GRUG recipes are generated as Fluxion does: multiplied, associated, numbered by scope."""

import pytest

from simsched.errors import ClusterError, LimitError
from simsched.formats.cluster.grug import parse_grug
from simsched.graph.build.grug import from_grug
from simsched.graph.cluster import load_cluster
from simsched.graph.resource_graph import children, execution_targets, parents, pool_of, subsystems

KEYS = "".join(
    f'<key id="{name}" for="{domain}" attr.name="{name}" attr.type="string"/>'
    for domain, names in {
        "node": "root type basename size unit subsystem",
        "edge": "e_subsystem relation rrelation gen_method multi_scale id_scope id_start id_stride "
        "as_tgt_subsystem as_tgt_uplvl as_src_uplvl",
    }.items()
    for name in names.split()
)


def grug(nodes, edges):
    """A GRUG document of {name: data} and (source, target, data)."""

    def data(found):
        return "".join(f'<data key="{key}">{value}</data>' for key, value in found.items())

    body = "".join(f'<node id="{name}">{data(found)}</node>' for name, found in nodes.items())
    body += "".join(f'<edge source="{a}" target="{b}">{data(found)}</edge>' for a, b, found in edges)
    return f'<graphml>{KEYS}<graph id="g" edgedefault="directed">{body}</graph></graphml>'


def generated(nodes, edges):
    return from_grug(parse_grug(grug(nodes, edges)))


TREE = {
    "c": {"root": 1, "type": "cluster"},
    "r": {"type": "rack"},
    "n": {"type": "node", "basename": "tux"},
    "s": {"type": "socket"},
    "k": {"type": "core"},
}


def chain(**scopes):
    counts = {"r": 2, "n": 2, "s": 2, "k": 4}
    pairs = [("c", "r"), ("r", "n"), ("n", "s"), ("s", "k")]
    return [(a, b, {"multi_scale": counts[b], "id_scope": scopes.get(b, 0)}) for a, b in pairs]


def test_each_source_gets_its_copies():
    graph = generated(TREE, chain(n=1))
    assert execution_targets(graph) == [
        "/cluster0/rack0/tux0",
        "/cluster0/rack0/tux1",
        "/cluster0/rack1/tux2",
        "/cluster0/rack1/tux3",
    ]
    assert sum(pool_of(graph, key).type == "core" for key in graph) == 32


@pytest.mark.parametrize(
    ("scope", "numbers"),
    [
        (0, [0, 1, 2, 3] * 8),
        (1, [0, 1, 2, 3, 4, 5, 6, 7] * 4),
        (2, list(range(16)) * 2),
        (9, list(range(32))),
        (-1, [None] * 32),
    ],
)
def test_the_scope_says_within_which_ancestor_ids_are_unique(scope, numbers):
    graph = generated(TREE, chain(k=scope))
    found = [pool_of(graph, key).id for key in graph if pool_of(graph, key).type == "core"]
    assert found == numbers


def test_start_and_stride():
    edges = [("c", "n", {"multi_scale": 3, "id_scope": 1, "id_start": 10, "id_stride": 5})]
    graph = generated({"c": TREE["c"], "n": TREE["n"]}, edges)
    assert [pool_of(graph, key).id for key in execution_targets(graph)] == [10, 15, 20]


def test_association_by_path_joins_neighbours_in_another_subsystem():
    graph = load_cluster("grug4").graph
    assert subsystems(graph) == ["containment", "power"]
    assert children(graph, "/powerpanel0", "power") == ["/cluster0/rack0/pdu0", "/cluster0/rack1/pdu1"]
    assert parents(graph, "/cluster0/rack1/node3", "power") == ["/cluster0/rack1/pdu1"]
    edge = graph.edges["/powerpanel0", "/cluster0/rack0/pdu0", "power"]
    assert edge == {"relationship": "supplies_to", "more": {"reverse": "draws_from"}}


@pytest.mark.slow
def test_a_recipe_for_10_to_the_9_vertices_is_counted_and_not_made():
    edges = [("c", "n", {"multi_scale": 100_000}), ("n", "k", {"multi_scale": 10_000})]
    with pytest.raises(LimitError, match="line 1: the recipe makes 1,000,100,001 vertices or more"):
        generated({name: TREE[name] for name in "cnk"}, edges)


def test_an_association_of_everything_with_everything_is_counted():
    nodes = {
        "c": TREE["c"],
        "n": TREE["n"],
        "p": {"root": 1, "type": "plant", "subsystem": "power"},
        "q": {"type": "pdu", "subsystem": "power"},
        "t": {"type": "node", "subsystem": "power"},
    }
    edges = [
        ("c", "n", {"multi_scale": 5000}),
        ("p", "q", {"multi_scale": 5000, "e_subsystem": "power"}),
        ("q", "t", {"gen_method": "ASSOCIATE_IN", "e_subsystem": "power", "as_tgt_subsystem": "containment"}),
    ]
    with pytest.raises(LimitError, match="edges or more"):
        generated(nodes, edges)


@pytest.mark.parametrize(
    ("nodes", "edges", "fault"),
    [
        ({"c": TREE["c"], "d": {**TREE["c"]}}, [], "a second root of subsystem 'containment'"),
        (TREE, [*chain(), ("c", "k", {})], "a second path to vertex 'k'"),
        (TREE, chain()[:-1], "no root reaches vertex 'k'"),
        ({"c": TREE["c"], "r": TREE["r"]}, [("c", "r", {})], "no execution target"),
    ],
)
def test_recipes_that_make_no_cluster(nodes, edges, fault):
    with pytest.raises(ClusterError, match=fault):
        generated(nodes, edges)
