"""One cluster file → resource graph, whatever its kind: the kind is found by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.rset import ResourceSet
from simsched.formats.text import load_json, read_text
from simsched.graph.build_rset import from_rset

if TYPE_CHECKING:
    from pathlib import Path

    from simsched.graph.resource_graph import ResourceGraph


def graph_from_text(path: str | Path, *, name: str) -> ResourceGraph:
    """Read a file and build its graph.

    Raises
    ------
    FormatError, ClusterError
        if the file is of no known kind, or describes no possible cluster.
    """
    document = load_json(read_text(path), None)
    if not isinstance(document, dict) or "execution" not in document:
        raise FormatError("not a cluster", expected="R, JGF, TreePool, GRUG or a recipe")
    return from_rset(ResourceSet.from_dict(document), name=name)
