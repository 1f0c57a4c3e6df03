"""What docs/clusters.md shows is what happens."""

import doctest
from textwrap import dedent

from simsched.graph.build.cluster_files import graph_from_bytes
from simsched.graph.inspect.view import summary
from simsched.graph.resource_graph import subsystems
from tests import REPOSITORY

PAGE = REPOSITORY / "docs" / "clusters.md"


def test_the_python_examples():
    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


def test_the_recipe_loads():
    text = PAGE.read_text().split("## Recipes")[1].split("- `groups`")[0]
    graph = graph_from_bytes(dedent(text).encode())
    assert summary(graph).targets == 992
    assert subsystems(graph) == ["containment", "network", "power"]
