"""Sites' own files as clusters: the graph, its notes, and the warning that carries them."""

import pytest

from simsched.errors import FormatError, InputWarning
from simsched.graph import edit
from simsched.graph.build.cluster_files import graph_from_bytes, graph_from_document
from simsched.graph.cluster import load_cluster
from simsched.graph.inspect.view import summary
from simsched.graph.resource_graph import pool_of

FLUX = """\
[[resource.config]]
hosts = "n[0-3]"
cores = "2-5"
properties = ["batch"]
colour = "red"
[queues.batch]
requires = ["batch"]
"""
PBS = """\
n0
     Mom = n0
     state = down
     resources_available.ncpus = 4
     resources_available.mem = 8gb
"""
PLATFORM = """\
<!DOCTYPE platform SYSTEM "simgrid.dtd">
<platform><cluster prefix="a" radical="0-7" core="2"/></platform>
"""


@pytest.mark.parametrize(("text", "targets"), [(FLUX, 4), (PBS, 1), (PLATFORM, 8)])
def test_a_site_file_is_a_cluster(text, targets):
    assert summary(graph_from_bytes(text.encode())).targets == targets


def test_ids_properties_states_and_memory_are_in_the_graph():
    graph = graph_from_bytes(FLUX.encode())
    assert str(pool_of(graph, "n1/core").ids) == "2-5"
    assert list(pool_of(graph, "n1").properties) == ["batch"]
    graph = graph_from_bytes(PBS.encode())
    memory = pool_of(graph, "n0/memory0")
    assert (pool_of(graph, "n0").status, memory.size, memory.unit) == ("down", 8, "GiB")


def test_a_document_is_a_cluster_too():
    graph = graph_from_document({"resource": {"config": [{"hosts": "x[1-2]", "cores": "0-1"}]}})
    assert summary(graph).targets == 2


def test_notes_are_an_attribute_and_a_warning_and_stay_through_edits(tmp_path):
    (tmp_path / "flux.toml").write_text(FLUX)
    with pytest.warns(InputWarning) as warned:
        cluster = load_cluster(tmp_path / "flux.toml")
    assert [note.kind for note in cluster.notes] == ["left out", "left out"]
    lines = warned[0].message.lines
    assert lines[0].endswith("flux.toml:5: resource.config[0].colour: the key 'colour' is not used")
    assert "queues and their limits are not part of a cluster (batch)" in lines[1]
    assert edit.remove_nodes(cluster, "n0").notes == cluster.notes


def test_a_sound_file_warns_of_nothing(tmp_path):
    (tmp_path / "flux.toml").write_text('[[resource.config]]\nhosts = "n[0-3]"\ncores = "0-3"\n')
    assert load_cluster(tmp_path / "flux.toml").notes == ()


def test_queues_alone_and_nodes_without_cores():
    with pytest.raises(FormatError, match="no nodes are described, only queues of PBS"):
        graph_from_bytes(b"create queue a\nset queue a enabled = True\n", where="q")
    graph = graph_from_bytes(b"STATE UP NNODES NODELIST\navail y 2 a[0-1]\n")
    assert "cores, which flux resource status does not list" in [note.text for note in graph.graph["notes"]]
