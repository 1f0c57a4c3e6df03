"""`Site`: the machine of a centre, the configuration of its queues, and notes on both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simsched.formats.cluster.recipe import Recipe
    from simsched.formats.machines.description import Note
    from simsched.graph.cluster import Cluster


@dataclass(frozen=True, slots=True)
class SiteSource:
    """A file that a site was imported from: its name as given, and the SHA-256 of its content."""

    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Site:
    """The machine and the queues of a centre.

    Attributes
    ----------
    name : its name in reports.
    config : the configuration of its queues, a document as ``--config`` takes it; empty without queues.
    notes : values that were assumed, left out or not understood when the site was imported.
    sources : the files that it was imported from.
    format : the formats of these files, ``slurm.conf``.
    cpus_per_core : processors of its logs per core of the machine: Slurm counts hardware threads.
    logs : logs of jobs that were among the files.
    cluster_file : the file in the folder of the site that holds the machine; None in memory.
    recipe : the machine of a site in memory; None if it is in `cluster_file`.
    """

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    sources: tuple[SiteSource, ...] = ()
    format: str = ""
    cpus_per_core: int = 1
    logs: tuple[str, ...] = ()
    cluster_file: Path | None = None
    recipe: Recipe | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"<Site {self.name!r}: {len(self.queues)} queues{notes}>"

    def _repr_html_(self) -> str:
        """Return the queues and the notes as tables, for a notebook."""
        from simsched.text_table import html_table

        queues = [(name, str(queue)) for name, queue in self.queues.items()]
        policy = str(self.config.get("queue-policy", "easy"))
        tables = [html_table(repr(self)[1:-1], [("queue policy", policy), *queues])]
        if self.notes:
            tables.append(html_table("notes", [(note.kind, str(note)) for note in self.notes]))
        return "".join(tables)

    @cached_property
    def cluster(self) -> Cluster:
        """The machine, read or built at the first use.

        Raises
        ------
        FormatError, ClusterError
            if the file of the machine is damaged, or the machine is impossible; with the place.
        """
        from simsched.graph.build.recipe import from_recipe
        from simsched.graph.cluster import Cluster, load_cluster

        if self.cluster_file is not None:
            return load_cluster(self.cluster_file)
        assert self.recipe is not None  # a site has one of the two
        return Cluster(from_recipe(self.recipe, name=self.name), name=self.name)

    @property
    def queues(self) -> Mapping[str, Any]:
        """The queues of the configuration by name, as they are written there."""
        found: Mapping[str, Any] = self.config.get("queues", {})
        return found

    @property
    def path(self) -> Path | None:
        """The folder of the site; None in memory."""
        return None if self.cluster_file is None else self.cluster_file.parent
