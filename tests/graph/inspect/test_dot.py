"""Pictures are well-formed, hold the words of all classes, and stay small for large machines."""

from xml.etree import ElementTree as ET

import pytest

from simsched.errors import ConfigError
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import load_cluster
from simsched.graph.inspect.dot import dot, svg

SVG = "{http://www.w3.org/2000/svg}"


def texts(document):
    return [element.text for element in ET.fromstring(document).iter(f"{SVG}text")]


def test_four_nodes_are_drawn_one_by_one():
    words = texts(svg(load_cluster("tiny").graph))
    assert words.count("node") == 4
    assert [word for word in words if word.startswith("node") and word != "node"] == [
        f"node{n}" for n in range(4)
    ]
    assert "debug amd-mi50@gpu" in words


def test_a_large_machine_is_drawn_by_classes():
    words = texts(svg(load_cluster("gpu1152").graph))
    assert words == ["1,152×", "cluster", "cluster0", "1,152 × node", "gpu[0-1151]",
                     "1,152 × 64 core", "[0-63]", "1,152 × 4 gpu", "[0-3]"]  # fmt: skip


def test_a_network_is_drawn_by_its_switches():
    words = texts(svg(load_cluster("fattree").graph, "network"))
    assert words.count("switch") == 16
    assert words.count("16 × node") == 16


@pytest.mark.parametrize(
    ("name", "subsystem"),
    [
        ("racked", "containment"),
        ("racked", "power"),
        ("fattree", "network"),
        ("dragonfly", "network"),
        ("tiny", "containment"),
    ],
)
def test_boxes_are_inside_and_do_not_overlap(name, subsystem):
    root = ET.fromstring(svg(load_cluster(name).graph, subsystem))
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = [
        tuple(float(rect.get(name)) for name in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("x") and rect.get("fill") == "white"
    ]
    assert len(boxes) > 2
    for x, y, w, h in boxes:
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    for n, (x, y, w, h) in enumerate(boxes):
        for a, b, c, d in boxes[n + 1 :]:
            assert x + w <= a or a + c <= x or y + h <= b or b + d <= y


def test_graphviz_text():
    lines = dot(load_cluster("flat240").graph).splitlines()
    assert lines[0] == 'digraph "flat240" {'
    assert '  v1 [label="240 × node\\nnode[0-239]"];' in lines
    assert '  v0 -> v1 [label="240 ×"];' in lines


def test_names_are_escaped():
    nasty = {"type": "node", "name": '<b>"&\\', "properties": {"x<y": ""}}
    graph = graph_from_document({"graph": {"nodes": [{"id": "0", "metadata": nasty}]}})
    assert '<b>"&\\' in texts(svg(graph))
    assert r'label="node\n<b>\"&\\\nx<y"' in dot(graph)


def test_too_many_boxes_are_refused():
    with pytest.raises(ConfigError, match="too many for a picture"):
        svg(load_cluster("gpu1152").graph, apart=True)
