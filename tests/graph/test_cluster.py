"""load_cluster finds the kind of a file by its content; every bad file is one clear error."""

import gzip
import json
import pickle

import pytest

from simsched import bundled
from simsched.errors import ConfigError, SimschedError
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import Cluster, load_cluster

R = {
    "version": 1,
    "execution": {"R_lite": [{"rank": "0", "children": {"core": "0-3"}}], "nodelist": ["a"]},
}


@pytest.mark.parametrize("name", bundled.bundled("clusters"))
def test_every_bundled_cluster_loads_and_its_index_is_sound(name):
    cluster = load_cluster(name)
    assert cluster.name == name
    assert cluster.source == name
    cluster.index._check()
    assert cluster.index is cluster.index


def test_the_bundled_ones_are_as_large_as_they_say():
    sizes = {
        name: len(load_cluster(name).index.targets) for name in ("tiny", "flat240", "gpu1152", "big9400")
    }
    assert sizes == {"tiny": 4, "flat240": 240, "gpu1152": 1152, "big9400": 9400}


def test_gzip_byte_order_marks_and_white_space_do_not_matter(tmp_path):
    text = json.dumps(R).encode()
    for number, data in enumerate((gzip.compress(text), b"\xef\xbb\xbf" + text, b"\n\n  " + text)):
        path = tmp_path / f"c{number}.json"
        path.write_bytes(data)
        assert load_cluster(path).name == f"c{number}"


def test_clusters_travel_to_other_processes():
    cluster = load_cluster("tiny")
    again = pickle.loads(pickle.dumps(cluster))
    assert list(again.graph) == list(cluster.graph)
    assert again.index.targets == cluster.index.targets


@pytest.mark.parametrize("form", ["r", "r+jgf", "jgf", "treepool"])
def test_a_cluster_is_saved_and_loaded_again(tmp_path, form):
    cluster = load_cluster("tiny")
    cluster.save(tmp_path / "c.json", form)
    again = load_cluster(tmp_path / "c.json")
    assert again.to_dict() == cluster.to_dict()


def test_a_cluster_says_what_it_is():
    assert repr(load_cluster("tiny")) == "<Cluster 'tiny': 11 vertices>"


BAD = {
    "empty": (b"", "the file is empty"),
    "blank": (b" \n\n", "the file is empty"),
    "text": (b"hello", "the format is not recognised .expected R, R with a graph, JGF"),
    "list": (b"[1, 2]", "not a description of a cluster"),
    "other": (b'{"a": 1}', "not a description of a cluster .expected R, R with a graph, JGF"),
    "truncated": (json.dumps(R).encode()[:-9], "not JSON"),
    "gzip": (gzip.compress(json.dumps(R).encode() * 99)[:-20], "truncated"),
    "binary": (b"{\xff\xfe\x00", "this is a binary file"),
    "not UTF-8": (b"{\xff\xfe", "not UTF-8"),
    "nan": (b'{"graph": {"nodes": [NaN]}}', "NaN"),
    "deep": (b'{"graph": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested"),
    "twice": (b'{"graph": {}, "graph": {}}', "'graph' occurs twice"),
    "scheduling": (b'{"version": 1, "scheduling": {}}', "neither execution nor scheduling.graph"),
    "no ranks": (b'{"version": 1, "execution": {"R_lite": [], "nodelist": []}}', "empty"),
    "no hosts": (json.dumps({**R, "execution": {"R_lite": R["execution"]["R_lite"]}}).encode(), "nodelist"),
    "idset": (b'{"version":1,"execution":{"R_lite":[{"rank":"x","children":{}}],"nodelist":["a"]}}', "rank"),
    "many": (
        b'{"version":1,"execution":{"R_lite":[{"rank":"0-99999999999","children":{"core":"0"}}],"nodelist":["a"]}}',
        "ranks|hosts|limit|more than",
    ),
    "property": (
        b'{"version":1,"execution":{"R_lite":[{"rank":"0","children":{}}],"nodelist":["a"],"properties":{"a&b":"0"}}}',
        "forbidden",
    ),
    "xml": (b"<graphml>", "not XML"),
    "yaml": (b"groups: [", "YAML|expected"),
    "alias": (b"a: &a [x, x]\nb: &b [*a, *a]\ngroups: [*b, *b]\n", "groups"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_one_error_that_names_the_file(tmp_path, kind):
    data, fault = BAD[kind]
    path = tmp_path / "bad.file"
    path.write_bytes(data)
    with pytest.raises(SimschedError, match=fault) as caught:
        load_cluster(path)
    assert str(caught.value).count("bad.file") == 1


@pytest.mark.parametrize("name", ["nobody", "a" * 5000, "no/such/file.json", "\0"])
def test_neither_a_file_nor_a_name(name):
    with pytest.raises(ConfigError, match="expected a file, or a bundled name of clusters: big9400"):
        load_cluster(name)


def test_an_empty_name_is_no_cluster():
    with pytest.raises(
        ConfigError, match=r"name of one of the clusters is empty \(expected a file, or a bundled name"
    ):
        load_cluster("")


def test_a_directory_is_no_cluster(tmp_path):
    with pytest.raises(ConfigError, match="is a directory"):
        load_cluster(tmp_path)


def test_a_million_of_anything_can_be_named_without_being_made():
    with pytest.raises(SimschedError):
        Cluster.from_rset(_of("0-9999999"))


def _of(ranks):
    from simsched.formats.cluster.rset import ResourceSet

    return ResourceSet.of([(ranks, {"core": "0"})], f"n[{ranks}]")


def r_of(*, children=None, host="n0"):
    """R of one node."""
    lite = [{"rank": "0", "children": children or {"core": "0"}}]
    return {"version": 1, "execution": {"R_lite": lite, "nodelist": [host]}}


def jgf_of(**memory):
    """JGF of one node with a pool."""
    nodes = [("c", {"type": "cluster"}), ("n", {"type": "node"}), ("m", memory)]
    return {
        "graph": {
            "nodes": [{"id": key, "metadata": metadata} for key, metadata in nodes],
            "edges": [{"source": "c", "target": "n"}, {"source": "n", "target": "m"}],
        }
    }


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (r_of(children={"co\x07re": "0"}), r"children: 'co\\x07re' is not a resource type"),
        (r_of(children={"co\nre": "0"}), r"children: 'co\\nre' is not a resource type"),
        (r_of(host="n\x1bc"), r"the host 'n\\x1bc' has control characters"),
        (jgf_of(type="me\x07m"), r"vertex 'm': control characters in 'me\\x07m' called 'me\\x07m'"),
        (
            jgf_of(type="memory", name="m\x000"),
            r"vertex 'm': control characters in 'memory' called 'm\\x000'",
        ),
    ],
)
def test_names_with_control_characters_are_refused(document, fault):
    with pytest.raises(SimschedError, match=fault):
        graph_from_document(document)
