"""Clusters and requests that the matching tests share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import simsched as ss
from simsched.formats.rset import ResourceSet
from simsched.graph.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
def jgf(tmp_path: Path) -> Callable[[str], Cluster]:
    """Build a cluster from an indented outline, one vertex a line: ``node rank=0 properties=ssd``."""

    def build(outline: str) -> Cluster:
        path = tmp_path / "outline.json"
        path.write_text(json.dumps(outline_to_jgf(outline)))
        return ss.load_cluster(path)

    return build


def outline_to_jgf(outline: str) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []
    edges = []
    stack: list[tuple[int, str]] = []
    for line in outline.strip("\n").splitlines():
        depth = len(line) - len(line.lstrip())
        name, *facts = line.split()
        kind = name.rstrip("0123456789")
        metadata: dict[str, Any] = {"type": kind, "id": int(name[len(kind) :] or 0)}
        for fact in facts:
            key, _, value = fact.partition("=")
            if key == "properties":
                metadata[key] = dict.fromkeys(value.split(","), "")
            else:
                metadata[key] = int(value) if value.isdigit() else value
        key = str(len(nodes))
        nodes.append({"id": key, "metadata": metadata})
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if stack:
            edges.append({"source": stack[-1][1], "target": key})
        stack.append((depth, key))
    return {"graph": {"nodes": nodes, "edges": edges}}
