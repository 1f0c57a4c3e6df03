"""The recipe of docs/clusters.md is the cluster that the page describes."""

from simsched.graph.build.cluster_files import graph_from_bytes
from simsched.graph.inspect.view import summary
from simsched.graph.resource_graph import subsystems
from tests import REPOSITORY

PAGE = REPOSITORY / "docs" / "clusters.md"


def test_the_recipe_loads():
    text = PAGE.read_text().split("```yaml my-racked.yaml\n")[1].split("```")[0]
    graph = graph_from_bytes(text.encode())
    assert summary(graph).targets == 992
    assert subsystems(graph) == ["containment", "network", "power"]
