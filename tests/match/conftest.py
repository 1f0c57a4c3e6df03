"""Clusters and requests that the matching tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import simsched as ss
from simsched.formats.cluster.rset import ResourceSet
from simsched.graph.cluster import Cluster
from tests.reference.outlines import outline_cluster

if TYPE_CHECKING:
    from collections.abc import Callable


def cluster_of(
    *groups: tuple[str, dict[str, str]], hosts: str, properties: dict[str, str] | None = None
) -> Cluster:
    """Return the cluster of an R: groups of (ranks, children)."""
    execution: dict[str, Any] = {
        "R_lite": [{"rank": ranks, "children": children} for ranks, children in groups],
        "nodelist": [hosts],
    }
    if properties:
        execution["properties"] = properties
    return Cluster.from_rset(ResourceSet.from_dict({"version": 1, "execution": execution}))


@pytest.fixture(scope="session")
def make() -> Callable[..., Cluster]:
    return cluster_of


@pytest.fixture
def four() -> Cluster:
    """4 nodes × 4 cores."""
    return cluster_of(("0-3", {"core": "0-3"}), hosts="n[0-3]")


@pytest.fixture(scope="session")
def tiny() -> Cluster:
    return ss.load_cluster("tiny")


@pytest.fixture(scope="session")
def center() -> Cluster:
    return ss.load_cluster("center")


@pytest.fixture
def jgf() -> Callable[[str], Cluster]:
    """Build a cluster from an indented outline, one vertex a line: ``node0 rank=0 properties=ssd``."""
    return outline_cluster
