"""`MachineDescription`: the hardware and queues in the files of a site."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.cluster.recipe import Recipe

    NoteKind = Literal["assumed", "left out", "fault"]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the person who imports a site.

    kind : `assumed` for a value that the file does not state, `left out` for one that simsched does
        not hold, `fault` for a line that could not be understood.
    where : file and line, ``slurm.conf:12``, as far as they are known.
    """

    kind: NoteKind
    text: str
    where: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.text}" if self.where else self.text
        return {"assumed": "assumed: ", "left out": "left out: ", "fault": "ignored: "}[self.kind] + text


@dataclass(frozen=True, slots=True)
class QosRow:
    """The values of a QOS that are not limits; `where` is its line.

    preempts : the QOS whose jobs it may preempt.
    victims : ``mode``, ``grace`` and ``exempt`` (seconds) of its own jobs that are preempted, as far as they
        are stated.
    """

    name: str
    priority: int = 0
    usage_factor: float = 1.0
    where: str = ""
    preempts: tuple[str, ...] = ()
    victims: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDescription:
    """The hardware and the queues that one or several files of a site describe.

    Attributes
    ----------
    recipe : the nodes.  Partitions and features are properties of nodes.
    config : a configuration document as `--config` takes it (RFC 33: ``queues``, ``policy``); empty if
        the files state no queues.
    notes : assumptions, omissions, and parts that were not understood, in the order of the files.
    format : the name of the format, ``slurm.conf``.
    excluded : the hosts that Flux's ``resource.exclude`` withholds from scheduling; `recipe` lacks them.
    records : the `SlurmRecords` of each file of Slurm, which `merging` understands together.
    cpus_per_core : the CPUs that the site's scheduler, and so its logs, count for one core: 2 if it
        counts hardware threads.  1 also if nodes differ.
    """

    recipe: Recipe
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    format: str = ""
    cpus_per_core: int = 1
    excluded: tuple[str, ...] = ()
    records: tuple[Any, ...] = field(default=(), compare=False, repr=False)
