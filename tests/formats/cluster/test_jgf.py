"""JGF text and values: the shape of the document, unknown keys, places of faults."""

import pytest

from simsched.errors import FormatError, SimschedError
from simsched.formats.cluster.jgf import (
    OddEdge,
    OddVertex,
    encode_document,
    jgf_from_bytes,
    jgf_from_object,
    take_apart,
    to_object,
)

PLAIN = {
    "nodes": [{"id": "0", "metadata": {"type": "node", "size": 1, "paths": {"containment": "/n"}}}],
    "edges": [],
}
ODD = {
    "directed": True,
    "nodes": [
        {"id": "0", "label": "first", "metadata": {"type": "node", "mtl1default": {"a": 1}}},
        {"id": "1", "metadata": {"type": "core"}},
    ],
    "edges": [{"source": "0", "target": "1", "relation": "r", "metadata": {"subsystem": "x", "weight": 2}}],
}


@pytest.mark.parametrize("graph", [PLAIN, ODD, {"nodes": []}])
def test_a_graph_comes_out_as_it_went_in(graph):
    assert to_object(jgf_from_object(graph)) == {"graph": graph}


def test_unknown_keys_ride_along_where_they_were():
    jgf = jgf_from_object(ODD)
    assert jgf.graph_keys == {"directed": True}
    assert isinstance(jgf.vertices[0], OddVertex)
    assert jgf.vertices[0].more == {"mtl1default": {"a": 1}}
    assert jgf.vertices[0].outer == {"label": "first"}
    assert not isinstance(jgf.vertices[1], OddVertex)
    assert isinstance(jgf.edges[0], OddEdge)
    assert (jgf.edges[0].more, jgf.edges[0].outer) == ({"weight": 2}, {"relation": "r"})


@pytest.mark.parametrize(
    ("graph", "fault"),
    [
        ([], "G: found array"),
        ({"nodes": 3}, "G.nodes: found int"),
        ({"nodes": [{"metadata": {"type": "t"}}]}, r"G.nodes\[0\]: the key 'id' is missing"),
        ({"nodes": [{"id": "0"}]}, r"G.nodes\[0\]: the key 'metadata' is missing"),
        (
            {"nodes": [{"id": "0", "metadata": {"type": 3}}]},
            r"G.nodes\[0\].metadata.type: found int .expected str",
        ),
        ({"nodes": [{"id": "0", "metadata": {"type": "t", "rank": "x"}}]}, r"metadata.rank: found str"),
        ({"nodes": [{"id": "0", "metadata": {"type": "t", "properties": {"a": 1}}}]}, "properties"),
        ({"nodes": [], "edges": [{"source": "0"}]}, r"G.edges\[0\]: the key 'target' is missing"),
        ({"nodes": [], "edges": [[]]}, r"G.edges\[0\]: found array"),
        ({"odd": 1, "nodes": [], "edges": [[]]}, r"G.edges\[0\]: found an empty list"),
        ({"odd": 1, "nodes": [{"id": 0, "metadata": {"type": "t"}}]}, r"G.nodes\[0\].id: found int"),
        ({"odd": 1, "nodes": {}}, "G.nodes: found an object .expected a list"),
        ({"odd": 1, "nodes": [], "edges": [{"source": "0", "target": 1}]}, r"G.edges\[0\].target: found int"),
    ],
)
def test_faults_name_their_place(graph, fault):
    with pytest.raises(FormatError, match=fault):
        jgf_from_object(graph, where="G")


def test_large_documents_are_taken_apart_and_their_text_let_go():
    for graph in (PLAIN, ODD):
        box = [encode_document(jgf_from_object(graph))]
        document, jgf = take_apart(box)
        assert box == []
        assert document == {}
        assert to_object(jgf) == {"graph": graph}
    box = [b'{"version": 1, "execution": {"a": 1}, "scheduling": {"writer": "w", "graph": {"nodes": []}}}']
    document, jgf = take_apart(box)
    assert document == {"version": 1, "execution": {"a": 1}, "scheduling": {"writer": "w"}}
    assert jgf.vertices == []


@pytest.mark.parametrize("data", [b"", b"{", b'{"nodes": [}', b'{"nodes": [NaN]}', b"[" * 100_000])
def test_what_is_no_json_is_one_error(data):
    with pytest.raises(SimschedError):
        jgf_from_bytes(data)
