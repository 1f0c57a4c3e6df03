"""One cluster file → resource graph, whatever its kind: the kind is found by content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, LimitError
from simsched.formats.text.documents import name_of, opener, read_bytes, text_of_bytes
from simsched.formats.text.json_text import is_unicode, load_json
from simsched.formats.text.yaml_text import load_yaml
from simsched.garbage import collector_paused
from simsched.graph.build.cluster_plugins import KIND as PLUGINS
from simsched.graph.build.cluster_plugins import read_by_plugin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simsched.formats.machines.description import MachineDescription
    from simsched.formats.text.documents import OpenFile
    from simsched.graph.build.cluster_plugins import ClusterReader
    from simsched.graph.resource_graph import ResourceGraph

BULK = 8 * 2**20
"""Larger JSON texts (bytes) are decoded straight into structs, and duplicate keys are not looked for."""

_RECIPE = re.compile(r"^groups:", re.MULTILINE)

KINDS = (
    "R, R with a graph, JGF, TreePool, GRUG, GraphML, a cluster recipe, or a site's own file: slurm.conf, "
    "scontrol, a Flux configuration, flux resource list, pbsnodes -a, hwloc XML or a SimGrid platform"
)


def read_graph(path: str | Path, *, name: str, reader: ClusterReader | None = None) -> ResourceGraph:
    """Read a file (``-`` is standard input, it may be compressed) and build its graph.

    A `reader` of another package reads its text; without one, the installed reader that recognises it.

    Raises
    ------
    FormatError, ClusterError
        if the file is of an unknown kind, or the cluster it describes is impossible.
    """
    data, where = read_bytes(path), name_of(path)
    if reader is not None or PLUGINS.names():
        found = read_by_plugin(text_of_bytes(data, where), name, reader)
        if isinstance(found, dict):
            return graph_from_document(found, name=name, where=where)
        if found is not None:
            from simsched.graph.build.networkx_graph import from_networkx

            return from_networkx(found)
    return _from_box([data], name, where, opener(path))


def graph_from_bytes(data: bytes, *, name: str = "cluster", where: str | None = None) -> ResourceGraph:
    """Build the graph of a document: XML is GRUG, JSON is R or JGF, anything else YAML."""
    return _from_box([data], name, where)


def _from_box(
    box: list[bytes], name: str, where: str | None, open_file: OpenFile | None = None
) -> ResourceGraph:
    """Build from the one text in `box`; a large one is dropped as soon as it is decoded."""
    start = box[0][:4096].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"{" and len(box[0]) > BULK:
        return _from_large(box, name, where)
    text = text_of_bytes(box.pop(), where)
    try:
        return _from_text(text, start, name, where, open_file)
    except LimitError:
        raise
    except FormatError as error:
        from simsched.formats.machines.recognition import CLUSTER, unrecognised

        raise unrecognised(text, where, CLUSTER, KINDS) or error from None


def _from_text(
    text: str, start: bytes, name: str, where: str | None, open_file: OpenFile | None
) -> ResourceGraph:
    """Build from a text that begins with `start`: XML, JSON (braces), or else YAML.

    Files of sites come first: none of them is GRUG, and none has the line of a recipe.
    """
    if start != b"{" and not _RECIPE.search(text):  # TOML begins with a bracket
        from simsched.formats.machines.read import describe_text

        description = describe_text(text, where or "", open_file=open_file)
        if description is not None:
            return _from_description(description, name, where)
    if text.lstrip()[:1] == "<":
        from simsched.graph.build.networkx_graph import from_graphml, is_graph_of_cluster

        if is_graph_of_cluster(text):
            return from_graphml(text, name=name, where=where)
        from simsched.formats.cluster.grug import parse_grug
        from simsched.graph.build.grug import from_grug

        return from_grug(parse_grug(text, where=where), name=name)
    if not text.strip():
        raise FormatError("the file is empty", where=where, expected=KINDS)
    document = load_json(text, where) if start in (b"{", b"[") else load_yaml(text, where)
    if "\\" in text and not is_unicode(document):
        raise FormatError("a text has half of a surrogate pair", where=where, expected="whole characters")
    return graph_from_document(document, name=name, where=where, open_file=open_file)


def graph_from_document(
    document: Any, *, name: str = "cluster", where: str | None = None, open_file: OpenFile | None = None
) -> ResourceGraph:
    """Build the graph of a decoded document.

    `open_file` returns the text of a file that the document names.

    Raises
    ------
    FormatError, ClusterError
        if it is of an unknown kind, or the cluster it describes is impossible.
    """
    if isinstance(document, dict):
        if "execution" in document or "scheduling" in document:
            return _from_r(document, name, where)
        if "graph" in document:
            from simsched.formats.cluster.jgf import jgf_from_object

            inner = f"{where}: graph" if where else "graph"
            return _from_jgf(jgf_from_object(document["graph"], where=inner), document, name, where)
        if "groups" in document:
            from simsched.formats.cluster.recipe import parse_recipe
            from simsched.graph.build.recipe import from_recipe

            return from_recipe(parse_recipe(document, where=where), name=name)
        from simsched.formats.machines.read import describe_document

        description = describe_document(document, where or "", open_file=open_file)
        if description is not None:
            return _from_description(description, name, where)
    raise FormatError("this is not a description of a cluster", where=where, expected=KINDS)


def _from_description(description: MachineDescription, name: str, where: str | None) -> ResourceGraph:
    """Build from a site's own description; the graph keeps the notes as its attribute ``notes``.

    Raises FormatError for one that has queues only.
    """
    from simsched.formats.machines.description import Note
    from simsched.formats.machines.read import lacking
    from simsched.graph.build.recipe import from_recipe

    if not description.recipe.groups:
        raise lacking(description, [description.format], where or "")
    graph = from_recipe(description.recipe, name=name)
    notes = list(description.notes)
    queues = ", ".join(map(str, description.config.get("queues", ())))
    if queues:
        text = (
            f"queues and their limits are not part of a cluster ({queues}); simsched site import keeps them"
        )
        notes.append(Note("left out", text))
    if not any(group.cores for group in description.recipe.groups):
        notes.append(Note("left out", f"cores, which {description.format} does not list"))
    if notes:
        graph.graph["notes"] = tuple(notes)
    return graph


def _from_jgf(jgf: Any, document: Mapping[str, Any], name: str, where: str | None) -> ResourceGraph:
    from dataclasses import replace

    from simsched.graph.build.jgf import from_jgf

    rest = {key: value for key, value in document.items() if key != "graph"}
    return from_jgf(replace(jgf, document_keys=rest), name=name, where=where)


def _from_r(document: dict[str, Any], name: str, where: str | None, jgf: Any = None) -> ResourceGraph:
    """Build from R: R_lite alone, with a TreePool topology, with a graph, or the graph alone.

    `jgf` is the value of ``scheduling.graph`` if it has been decoded already.
    """
    from simsched.formats.cluster.rset import ResourceSet
    from simsched.graph.build.rset import from_rset

    scheduling = document.get("scheduling")
    inner = f"{where}: scheduling" if where else "scheduling"
    if jgf is None and isinstance(scheduling, dict) and "graph" in scheduling:
        from simsched.formats.cluster.jgf import jgf_from_object

        jgf = jgf_from_object(scheduling["graph"], where=f"{inner}.graph")
        scheduling = {key: value for key, value in scheduling.items() if key != "graph"}
    if "execution" not in document:
        if jgf is None:
            raise FormatError("neither execution nor scheduling.graph", where=where, expected=KINDS)
        return _from_jgf(jgf, {}, name, where)
    rset = ResourceSet.from_dict(
        {**document, "scheduling": scheduling} if scheduling is not None else document, where
    )
    if jgf is not None:
        from simsched.graph.build.r_with_graph import from_rset_with_jgf

        return from_rset_with_jgf(rset, jgf, name=name, where=where)
    writer = (scheduling or {}).get("writer")
    if writer is None or str(writer).lower().startswith(("fluxion", "simsched")):
        return from_rset(rset, name=name)
    from simsched.formats.cluster.treepool import WRITER, from_scheduling

    if writer != WRITER:
        raise FormatError(
            f"unknown writer {writer!r}", where=f"{inner}.writer", expected="TreePool or fluxion"
        )
    return from_rset(rset, from_scheduling(scheduling or {}, where=inner), name=name)


def _from_large(box: list[bytes], name: str, where: str | None) -> ResourceGraph:
    """Build from JSON of hundreds of megabytes: the graph is decoded from its own bytes."""
    from simsched.formats.cluster.jgf import take_apart

    with collector_paused():
        document, jgf = take_apart(box, where=where)
        if "execution" in document:
            return _from_r(document, name, where, jgf)
        if jgf is not None:
            return _from_jgf(jgf, document, name, where)
        return graph_from_document(document, name=name, where=where)
