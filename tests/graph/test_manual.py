"""What docs/clusters.md shows is what happens."""

import doctest
from pathlib import Path
from textwrap import dedent

from simsched.graph.read import graph_from_bytes
from simsched.graph.resource_graph import subsystems
from simsched.graph.view import summary

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clusters.md"


def test_the_python_examples():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


def test_the_recipe_loads():
    text = PAGE.read_text().split("## Recipes")[1].split("- `groups`")[0]
    graph = graph_from_bytes(dedent(text).encode())
    assert summary(graph).targets == 992
    assert subsystems(graph) == ["containment", "network", "power"]
