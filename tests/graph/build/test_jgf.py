"""JGF in all its forms lands in one graph, and comes out again as it went in."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ClusterError, FormatError, SimschedError
from simsched.formats.cluster.jgf import jgf_from_bytes, jgf_from_object, to_object
from simsched.graph.build.cluster_files import graph_from_bytes, graph_from_document
from simsched.graph.build.jgf import from_jgf
from simsched.graph.pool import Pool
from simsched.graph.resource_graph import execution_targets, pool_of, subsystems
from simsched.graph.write.jgf import to_jgf


def vertex(id_, type_, **metadata):
    return {"id": id_, "metadata": {"type": type_, **metadata}}


def edge(source, target, **metadata):
    return {"source": source, "target": target, **({"metadata": metadata} if metadata else {})}


def document(nodes, edges):
    return {"graph": {"nodes": nodes, "edges": edges}}


def as_read(doc):
    return to_object(to_jgf(graph_from_document(doc)))


FLUXION = document(
    [
        vertex(
            "0",
            "cluster",
            basename="tiny",
            name="tiny0",
            id=0,
            uniq_id=0,
            rank=-1,
            exclusive=False,
            unit="",
            size=1,
            paths={"containment": "/tiny0"},
        ),
        vertex(
            "1",
            "node",
            basename="node",
            name="node0",
            id=0,
            uniq_id=1,
            rank=0,
            exclusive=False,
            unit="",
            size=1,
            status=1,
            properties={"ssd": "", "perf_class": "3"},
            paths={"containment": "/tiny0/node0"},
        ),
        vertex("2", "core", paths={"containment": "/tiny0/node0/core0"}, id=0, rank=0),
        vertex(
            "3",
            "memory",
            id=1,
            rank=0,
            size=8,
            unit="GB",
            exclusive=True,
            paths={"containment": "/tiny0/node0/memory1"},
        ),
    ],
    [
        edge("0", "1", name={"containment": "contains"}),
        edge("1", "2", name={"containment": "contains"}),
        edge("1", "3", subsystem="containment"),
    ],
)

RFC40 = document(
    [
        {
            "id": "r",
            "metadata": {
                "type": "cluster",
                "uuid": "u-1",
                "basename": "c",
                "name": "c0",
                "id": 0,
                "properties": {},
                "size": 1,
                "unit": "",
            },
        },
        {
            "id": "n",
            "metadata": {
                "type": "node",
                "uuid": "u-2",
                "basename": "n",
                "name": "n7",
                "id": 7,
                "properties": ["fast"],
                "size": 1,
                "unit": "",
                "colour": {"rgb": [1, 2]},
            },
        },
    ],
    [{"source": "r", "target": "n", "metadata": {"subsystem": "containment", "relationship": "contains"}}],
)


def test_what_fluxion_writes():
    graph = graph_from_document(FLUXION)
    assert pool_of(graph, "1") == Pool(
        type="node",
        name="node0",
        basename="node",
        id=0,
        rank=0,
        status="down",
        properties={"ssd": "", "perf_class": "3"},
        given=frozenset(
            [
                "basename",
                "name",
                "id",
                "uniq_id",
                "rank",
                "exclusive",
                "unit",
                "size",
                "status",
                "properties",
                "paths",
            ]
        ),
    )
    assert pool_of(graph, "2").name == "core0"
    assert (pool_of(graph, "3").size, pool_of(graph, "3").unit) == (8, "GB")
    assert pool_of(graph, "3").extra == {"exclusive": True}


def test_what_rfc_20_asks_for_with_keys_that_nobody_knows():
    graph = graph_from_document(RFC40)
    assert pool_of(graph, "n").properties == {"fast": ""}
    assert pool_of(graph, "n").extra["colour"] == {"rgb": [1, 2]}
    assert pool_of(graph, "n").rank == 0


@pytest.mark.parametrize("doc", [FLUXION, RFC40], ids=["fluxion", "rfc40"])
def test_both_come_out_as_they_went_in(doc):
    assert as_read(doc) == doc


def test_forms_that_the_writer_would_not_choose_are_kept():
    doc = document(
        [
            vertex("c", "cluster", id=None, uuid=None, unit=None, properties=None),
            {
                "id": "n",
                "label": "a node",
                "metadata": {"type": "node", "status": "down", "name": "odd", "rank": None},
            },
            vertex("m", "node", drained=True, status=1, uniq_id="x1", paths={"containment": "/elsewhere/m"}),
        ],
        [
            {"source": "c", "target": "n", "directed": True, "metadata": {"relationship": "contains"}},
            edge("c", "m", subsystem="containment", relationship="contains", bandwidth=3),
        ],
    )
    doc["graph"]["metadata"] = {"made": "by hand"}
    doc["comment"] = ["kept", 1]
    assert as_read(doc) == doc
    graph = graph_from_document(doc)
    assert [pool_of(graph, key).status for key in "nm"] == ["down", "drained"]


def test_ids_that_fluxion_leaves_out_are_inferred_as_its_reader_does():
    doc = document(
        [
            vertex("0", "cluster", paths={"containment": "/cluster0"}),
            vertex("1", "node", name="tux17", paths={"containment": "/cluster0/tux17"}),
            vertex("2", "core", paths={"containment": "/cluster0/tux17/core5"}),
            vertex("3", "memory", name="ram", paths={"containment": "/cluster0/tux17/ram"}),
            vertex("4", "gpu", uniq_id=9, paths={"containment": "/cluster0/tux17/other"}),
        ],
        [edge("0", "1"), edge("1", "2"), edge("1", "3"), edge("1", "4")],
    )
    graph = graph_from_document(doc)
    found = [(pool_of(graph, key).name, pool_of(graph, key).id) for key in graph]
    assert found == [("cluster0", 0), ("tux17", 17), ("core5", 5), ("ram", 3), ("gpu9", 9)]
    assert as_read(doc) == doc


def test_several_subsystems_and_one_edge_in_two_of_them():
    doc = document(
        [vertex("c", "cluster"), vertex("n", "node"), vertex("s", "switch", paths={"network": "/switch"})],
        [
            edge("c", "n", name={"containment": "contains", "power": "supplies_to"}),
            edge("s", "n", name={"network": "conduit-of"}),
        ],
    )
    graph = graph_from_document(doc)
    assert subsystems(graph) == ["containment", "network", "power"]
    assert as_read(doc) == doc


def test_an_edge_without_metadata_is_one_of_containment_and_no_edges_at_all_is_a_lone_node():
    assert execution_targets(
        graph_from_document(document([vertex("c", "cluster"), vertex("n", "node")], [edge("c", "n")]))
    ) == ["n"]
    alone = {"graph": {"nodes": [vertex("n", "node")]}}
    assert as_read(alone) == alone


def test_the_dialect_of_fluxion_has_numeric_ids_paths_and_inherited_ranks():
    doc = document(
        [vertex("c", "cluster"), vertex("n", "node"), vertex("k", "core")], [edge("c", "n"), edge("n", "k")]
    )
    written = to_object(to_jgf(graph_from_document(doc), dialect="fluxion"))["graph"]
    assert written["nodes"][2] == {
        "id": "2",
        "metadata": {
            "type": "core",
            "basename": "core",
            "name": "core",
            "id": -1,
            "uniq_id": 2,
            "rank": 0,
            "exclusive": False,
            "unit": "",
            "size": 1,
            "uuid": "",
            "properties": {},
            "paths": {"containment": "/cluster/node/core"},
        },
    }
    assert written["edges"][1] == {
        "source": "1",
        "target": "2",
        "metadata": {"subsystem": "containment", "relationship": "contains"},
    }


def test_pools_of_r_become_one_vertex_a_unit_or_stay_whole(small):
    whole = to_object(to_jgf(small.graph))["graph"]["nodes"]
    assert [v["metadata"]["ids"] for v in whole if v["metadata"]["type"] == "gpu"] == ["0-1", "0-1"]
    each = to_object(to_jgf(small.graph, dialect="fluxion"))["graph"]
    assert sum(v["metadata"]["type"] == "core" for v in each["nodes"]) == 16
    assert len(each["edges"]) == len(each["nodes"]) - 1
    again = graph_from_document({"graph": each})
    assert len(execution_targets(again)) == 4


@pytest.mark.parametrize(
    ("nodes", "edges", "fault"),
    [
        ([vertex("0", "node"), vertex("0", "node")], [], "vertex '0': two vertices have this id"),
        ([vertex("0", "node")], [edge("0", "9")], r"edges\[0\] \('0' -> '9'\): no vertex has the id '9'"),
        ([vertex("0", "cluster"), vertex("1", "node")], [edge("0", "1"), edge("1", "0")], "no root"),
        (
            [vertex("0", "a"), vertex("1", "a"), vertex("2", "node")],
            [edge("0", "2"), edge("1", "2")],
            "two parents",
        ),
        ([vertex("0", "node"), vertex("1", "node")], [], "2 roots: '0', '1'"),
        ([vertex("0", "node", size=-3)], [], "vertex '0': size -3"),
        ([vertex("0", "node", size=2.5)], [], r"graph.nodes\[0\].metadata.size: found float \(expected int"),
        ([vertex("0", "node", ids="3-1")], [], "vertex '0': ids"),
        ([vertex("0", "node", status=7)], [], "vertex '0': status 7"),
        ([vertex("0", "node", rank=-5)], [], "vertex '0': rank -5"),
        ([{"id": 0, "metadata": {"type": "node"}}], [], r"nodes\[0\].id: found int \(expected str"),
        ([{"id": "0", "metadata": {}}], [], r"nodes\[0\].metadata: the key 'type' is missing"),
        (
            [{"id": "0", "odd": 1, "metadata": []}],
            [],
            r"nodes\[0\]: found an empty list \(expected an object",
        ),
        ([vertex("0", "core")], [], "no execution target"),
        ([vertex("0", "node")], [edge("0", "0", name={}, subsystem="x")], "'name' beside or without"),
    ],
)
def test_bad_graphs_are_refused_with_the_vertex_or_path(nodes, edges, fault):
    with pytest.raises(SimschedError, match=fault):
        graph_from_document(document(nodes, edges))


def test_bad_shapes_of_the_document_itself():
    with pytest.raises(FormatError, match="graph: found array"):
        graph_from_document({"graph": []})
    with pytest.raises(FormatError, match="the key 'nodes' is missing"):
        graph_from_document({"graph": {}})
    with pytest.raises(FormatError, match=r"graph\.nodes: found object"):
        graph_from_document({"graph": {"nodes": {}}})
    with pytest.raises(ClusterError, match="empty"):
        graph_from_document(document([], []))


# --- round trips ---------------------------------------------------------------------

names = st.sampled_from(["a", "b", "core", "node7", "x-1"])
properties = st.one_of(
    st.none(),
    st.dictionaries(names, st.sampled_from(["", "1"]), max_size=2),
    st.lists(names, max_size=2, unique=True),
)
optional = {
    "basename": names,
    "name": names,
    "id": st.one_of(st.none(), st.integers(-1, 9)),
    "uniq_id": st.one_of(st.integers(0, 99), names),
    "exclusive": st.booleans(),
    "unit": st.sampled_from(["", "GB", None]),
    "size": st.integers(0, 9),
    "status": st.sampled_from([0, 1, "up", "down"]),
    "properties": properties,
    "uuid": st.sampled_from(["", "u-1", None]),
    "paths": st.just({"containment": "/anywhere"}),
    "mtl": st.dictionaries(names, st.integers(), max_size=1),
}
metadata = st.fixed_dictionaries({}, optional=optional)
relationship = st.sampled_from(["contains", "conduit-of", "supplies_to"])
edge_metadata = st.sampled_from(
    [
        {},
        {"subsystem": "containment"},
        {"relationship": "contains"},
        {"subsystem": "containment", "relationship": "contains"},
        {"name": {"containment": "contains"}},
        {"subsystem": "containment", "speed": 1},
    ]
)


@st.composite
def documents(draw):
    """Random JGF: a tree of containment in random order, and two other subsystems over it."""
    count = draw(st.integers(1, 12))
    ids = draw(st.permutations([str(n) for n in range(count)]))
    kinds = [
        "node" if n == count - 1 else draw(st.sampled_from(["rack", "core", "memory"])) for n in range(count)
    ]
    nodes = [
        {"id": key, "metadata": {"type": kind, **draw(metadata)}}
        for key, kind in zip(ids, kinds, strict=True)
    ]
    edges = []
    for child in range(1, count):
        found = {"source": ids[draw(st.integers(0, child - 1))], "target": ids[child]}
        if draw(st.booleans()):
            found["metadata"] = draw(edge_metadata)
        edges.append(found)
    for subsystem in ("network", "power"):
        pairs = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=4))
        edges += [
            edge(ids[a], ids[b], subsystem=subsystem, relationship=draw(relationship))
            for a, b in sorted(pairs)
            if a < b
        ]
    return document(nodes, draw(st.permutations(edges)))


@given(documents())
@settings(max_examples=150)
def test_jgf_to_graph_to_jgf_is_the_identity(doc):
    """Law: JGF → graph → JGF is the identity up to the order of keys in an object."""
    assert as_read(doc) == doc


@given(documents())
@settings(max_examples=60)
def test_large_documents_are_read_as_small_ones(doc):
    """Law: the way for hundreds of megabytes gives the same graph."""
    large = jgf_from_bytes(json.dumps(doc["graph"]).encode())
    assert to_object(to_jgf(from_jgf(large))) == to_object(to_jgf(from_jgf(jgf_from_object(doc["graph"]))))


@given(documents())
@settings(max_examples=60)
def test_the_dialect_of_fluxion_is_read_back_as_the_same_resources(doc):
    """Law: writing in Fluxion's dialect loses no vertex, edge, type, size, unit or property."""
    graph = graph_from_document(doc)
    again = graph_from_document(to_object(to_jgf(graph, dialect="fluxion")))
    assert _facts(again) == _facts(graph)


def _facts(graph):
    order = {key: number for number, key in enumerate(graph)}
    pools = [pool_of(graph, key) for key in graph]
    return (
        [(p.type, p.name, p.id, p.size, p.unit, p.is_up, dict(p.properties)) for p in pools],
        sorted(
            (order[u], order[v], s, d["relationship"]) for u, v, s, d in graph.edges(keys=True, data=True)
        ),
        [order[key] for key in execution_targets(graph)],
    )


def test_a_document_beyond_the_bulk_limit_takes_the_other_way(monkeypatch):
    monkeypatch.setattr("simsched.graph.build.cluster_files.BULK", 10)
    data = json.dumps({**FLUXION, "comment": "kept"}).encode()
    assert to_object(to_jgf(graph_from_bytes(data))) == {**FLUXION, "comment": "kept"}
    with pytest.raises(FormatError, match="not JSON"):
        graph_from_bytes(data[:-20])
    with pytest.raises(SimschedError, match="nested"):
        graph_from_bytes(b'{"graph": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
