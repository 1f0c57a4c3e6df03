"""What docs/clusters.md and docs/graphs.md show is what happens."""

import doctest

import pytest

from simsched.graph.build.cluster_files import graph_from_bytes
from simsched.graph.inspect.view import summary
from simsched.graph.resource_graph import subsystems
from tests import REPOSITORY

MANUAL = REPOSITORY / "docs"


@pytest.mark.parametrize("page", ["clusters.md", "graphs.md"])
def test_the_python_examples(page):
    results = doctest.testfile(str(MANUAL / page), module_relative=False)
    assert (results.failed, results.attempted > 3) == (0, True)


def test_the_recipe_loads():
    text = (MANUAL / "clusters.md").read_text().split("```yaml\n")[1].split("```")[0]
    graph = graph_from_bytes(text.encode())
    assert summary(graph).targets == 992
    assert subsystems(graph) == ["containment", "network", "power"]
