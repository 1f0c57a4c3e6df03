"""Small clusters that several tests of this room look at."""

from __future__ import annotations

from typing import Any

import pytest

from simsched.formats.cluster.rset import ResourceSet
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import Cluster
from tests.reference.rsets import EXAMPLE

MACHINE = {
    "name": "machine",
    "groups": [
        {
            "name": "gpu",
            "count": 6,
            "sockets": 2,
            "cores": 8,
            "gpus": 2,
            "memory": "64 GiB",
            "storage": [{"type": "storage", "size": "2 TB", "path": "/local"}],
            "properties": ["batch", "mi300@gpu"],
        },
        {"name": "fat", "hosts": "fat[1-2]", "cores": 32, "memory": "1024 GiB", "drained": "fat2"},
    ],
    "racks": 2,
    "network": {"type": "fat-tree", "nodes_per_leaf": 2, "leaves_per_pod": 2, "spines": 2},
    "power": {"budget": "20 kW", "per": {"rack": "8 kW"}, "node": "800 W"},
}


@pytest.fixture
def rfc20() -> dict[str, Any]:
    """The example of RFC 20."""
    return dict(EXAMPLE)


@pytest.fixture
def small() -> Cluster:
    """Four nodes of four cores; the last two have two gpus."""
    return Cluster.from_rset(
        ResourceSet.of(
            [("0-1", {"core": "0-3"}), ("2-3", {"core": "0-3", "gpu": "0-1"})],
            "n[0-3]",
            properties={"batch": _idset("0-1,3"), "mi50@gpu": _idset("2-3")},
        ),
        name="small",
    )


@pytest.fixture
def machine() -> Cluster:
    """Two kinds of nodes in racks, with a network and a power subsystem."""
    return Cluster(graph_from_document(MACHINE))


def _idset(text: str) -> Any:
    from simsched.formats.rfc.idset import Idset

    return Idset.parse(text)
