"""A site's own description of its machine (slurm.conf, Flux, PBS, hwloc, SimGrid) → resource graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.formats.machines.description import Note
from simsched.formats.machines.read import describe_document, describe_text, lacking
from simsched.graph.build.recipe import from_recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.machines.description import MachineDescription
    from simsched.formats.text.documents import OpenFile
    from simsched.graph.resource_graph import ResourceGraph


def from_machine_text(
    text: str, *, name: str = "cluster", where: str | None = None, open_file: OpenFile | None = None
) -> ResourceGraph | None:
    """Return the graph of a text that is a site's own file; None if it is none."""
    found = describe_text(text, where or "", open_file=open_file)
    return None if found is None else from_description(found, name=name, where=where)


def from_machine_document(
    document: Any, *, name: str = "cluster", where: str | None = None, open_file: OpenFile | None = None
) -> ResourceGraph | None:
    """Return the graph of a JSON document that describes a machine; None if it is none."""
    found = describe_document(document, where or "", open_file=open_file)
    return None if found is None else from_description(found, name=name, where=where)


def from_description(
    description: MachineDescription, *, name: str = "cluster", where: str | None = None
) -> ResourceGraph:
    """Return the graph of a description.

    The graph keeps the notes as its attribute ``notes``.

    Raises
    ------
    FormatError
        if it has queues only.
    ClusterError, LimitError
        as `from_recipe`.
    """
    if not description.recipe.groups:
        raise lacking(description, [description.format], where or "")
    graph = from_recipe(description.recipe, name=name)
    notes = (*description.notes, *_left_out(description))
    if notes:
        graph.graph["notes"] = notes
    return graph


def _left_out(description: MachineDescription) -> Iterator[Note]:
    """Yield notes on missing parts of a cluster: the queues, and cores if no node has any."""
    queues = ", ".join(map(str, description.config.get("queues", ())))
    if queues:
        text = (
            f"queues and their limits are not part of a cluster ({queues}); simsched site import keeps them"
        )
        yield Note("left out", text)
    if not any(group.cores for group in description.recipe.groups):
        yield Note("left out", f"cores, which {description.format} does not list")
