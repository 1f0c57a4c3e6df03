"""Clusters from an indented outline, one vertex a line: ``node3 rank=0 properties=ssd``."""

from __future__ import annotations

from typing import Any

from simsched.formats.cluster.jgf import jgf_from_object
from simsched.graph.build.jgf import from_jgf
from simsched.graph.cluster import Cluster


def outline_cluster(outline: str) -> Cluster:
    """Return the cluster that an outline describes; deeper lines lie within."""
    nodes: list[dict[str, Any]] = []
    edges = []
    stack: list[tuple[int, str]] = []
    for line in filter(str.strip, outline.splitlines()):
        depth = len(line) - len(line.lstrip())
        key = str(len(nodes))
        nodes.append({"id": key, "metadata": metadata_of(*line.split())})
        while stack and stack[-1][0] >= depth:
            stack.pop()
        if stack:
            edges.append({"source": stack[-1][1], "target": key})
        stack.append((depth, key))
    return Cluster(from_jgf(jgf_from_object({"nodes": nodes, "edges": edges})))


def metadata_of(name: str, *facts: str) -> dict[str, Any]:
    """Return the JGF metadata of one line; ``c2 type=node`` is a node called c2."""
    kind = name.rstrip("0123456789")
    metadata: dict[str, Any] = {"type": kind, "basename": kind, "id": int(name[len(kind) :] or 0)}
    for fact in facts:
        key, _, value = fact.partition("=")
        if key == "properties":
            pairs = (item.partition("=") for item in value.split(","))
            metadata[key] = {name: text for name, _, text in pairs}
        else:
            metadata[key] = int(value) if value.isdigit() else value
    return metadata
