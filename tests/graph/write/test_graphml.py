"""GraphML of clusters: written with plain attributes, and read again by networkx and by simsched."""

import networkx as nx
import pytest

import simsched as ss
from simsched.errors import ConfigError, FormatError
from simsched.graph.build.cluster_files import graph_from_bytes
from simsched.graph.inspect.diff import diff
from simsched.graph.write.losses import losses

CLUSTERS = ("tiny", "grug4", "jgf4", "topo16", "colony", "dragonfly")


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_comes_back_from_graphml(name, tmp_path):
    cluster = ss.load_cluster(name)
    cluster.save(tmp_path / "c.graphml", "graphml")
    again = ss.load_cluster(tmp_path / "c.graphml")
    assert again.name == cluster.name
    assert diff(cluster.graph, again.graph) == []
    assert again.to_dict("jgf") == cluster.to_dict("jgf")


def test_networkx_reads_plain_attributes_and_containment(tmp_path):
    cluster = ss.load_cluster("grug4")
    cluster.save(tmp_path / "c.graphml", "graphml")
    graph = nx.read_graphml(tmp_path / "c.graphml", force_multigraph=True)
    plain = cluster.to_networkx()
    assert dict(graph.nodes(data=True)) == dict(plain.nodes(data=True))
    edges = {(a, b, data["subsystem"], data["relationship"]) for a, b, data in graph.edges(data=True)}
    assert edges == {(a, b, d["subsystem"], d["relationship"]) for a, b, d in plain.edges(data=True)}
    values = [value for _, data in graph.nodes(data=True) for value in data.values()]
    assert {type(value) for value in values} == {str, int}


def test_every_edge_has_an_id_of_its_own(tmp_path):
    ss.load_cluster("tiny").save(tmp_path / "c.graphml", "graphml")
    ids = [key for *_, key in nx.read_graphml(tmp_path / "c.graphml", force_multigraph=True).edges(keys=True)]
    assert len(set(ids)) == len(ids) == 10


def test_ids_of_edges_are_not_facts_of_the_cluster(tmp_path):
    ss.load_cluster("tiny").save(tmp_path / "c.graphml", "graphml")
    again = ss.Cluster(nx.read_graphml(tmp_path / "c.graphml"))
    assert all("id" not in data for *_, data in again.graph.edges(data=True))


def test_facts_of_the_whole_set_are_lost():
    cluster = ss.load_cluster("tiny")
    lost = losses(cluster.graph, "graphml")
    assert lost == losses(cluster.graph, "jgf")


def test_graphml_is_not_a_document_of_json_values():
    with pytest.raises(ConfigError, match="GraphML is not a document of JSON values"):
        ss.load_cluster("tiny").to_dict("graphml")


HEAD = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="d0" for="edge" attr.name="subsystem" attr.type="string"/>'
    '<key id="d1" for="node" attr.name="size" attr.type="long"/><graph edgedefault="directed">'
)
END = "</graph></graphml>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD, "c.graphml: not XML: .*line 1"),
        (f"<!DOCTYPE x>{HEAD}{END}", "document type"),
        (f'{HEAD}<node id="a"><data key="d1">many</data></node>{END}', "not GraphML: invalid literal"),
        (f'{HEAD}<node id="a"><data key="d9">1</data></node>{END}', "not GraphML: Bad GraphML data"),
    ],
)
def test_a_broken_file_is_an_error_with_its_place(text, message):
    with pytest.raises(FormatError, match=message):
        graph_from_bytes(text.encode(), where="c.graphml")


def test_vertices_without_a_type_are_refused():
    text = f'{HEAD}<node id="a"/>{END}'
    with pytest.raises(ss.ClusterError, match="vertex 'a': no pool"):
        graph_from_bytes(text.encode())
