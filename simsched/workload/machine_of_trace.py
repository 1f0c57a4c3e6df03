"""The machine of a trace: from the header of SWF, and where it states nothing from the largest requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simsched.errors import WorkloadError
from simsched.formats.cluster.recipe import MAX_NODES, Amount, PoolSpec, Recipe
from simsched.formats.machines.description import MachineDescription, NoteCollector
from simsched.formats.machines.site_facts import MAX_UNITS, grouped, node_of
from simsched.workload.job import demand, procs_of

if TYPE_CHECKING:
    from simsched.workload.job import Job, Workload

FORMAT = "machine of a trace"


@dataclass(slots=True)
class _Largest:
    """The largest requests of the jobs; 0 for what no job states.

    `width`, `gpus` and `memory` (KB) are those of one node, `gpu_nodes` the nodes of the largest request for
    gpus.  A slot is in one node where a request names no nodes.  `per_processor` is the cores of a processor
    of the trace, which a map such as ``slot={procs}/[core=16;gpu]`` makes more than one.
    """

    procs: int = 0
    per_processor: int = 1
    nodes: int = 0
    width: int = 0
    gpus: int = 0
    gpu_nodes: int = 0
    memory: int = 0

    def add(self, job: Job) -> None:
        """Enlarge all values to those of a job."""
        least = demand(job.jobspec)
        procs = max(procs_of(job), least.cores)
        nodes = job.nodes or least.nodes
        self.per_processor = max(self.per_processor, least.cores // (job.procs or procs))
        places = nodes or least.slots
        in_node = -(-procs // nodes) if nodes else least.cores // least.slots if least.slots else 0
        self.procs, self.nodes = max(self.procs, procs), max(self.nodes, nodes)
        self.width = max(self.width, in_node if nodes or in_node > 1 else 0)
        self.memory = max(self.memory, (job.memory or 0) * max(1, in_node))
        if least.gpus:
            self.gpus = max(self.gpus, -(-least.gpus // max(1, places)))
            self.gpu_nodes = max(self.gpu_nodes, places)


def machine_of(workload: Workload) -> MachineDescription:
    """Return the machine on which a trace was recorded, as far as the trace states it.

    ``MaxNodes`` and ``MaxProcs`` of the header count.  Without them the machine is as large as the largest
    request.  A trace without nodes has nodes of one core, so that its jobs may share them as they did.

    Raises
    ------
    WorkloadError
        if the workload has neither jobs nor a header with sizes, or is too large for a recipe.
    """
    notes = NoteCollector()
    where = workload.source or workload.name
    largest = _Largest()
    for job in workload.jobs:
        largest.add(job)
    nodes, procs = (workload.stated(key) or 0 for key in ("MaxNodes", "MaxProcs"))
    for key in ("MaxNodes", "MaxProcs"):
        text = workload.header.get(key, "").strip()
        if text not in ("", "-1", "-1.0") and workload.stated(key) is None:
            notes.fault(f"{key} of the header is {text[:40]!r}, not a number", where)
    if procs and largest.per_processor > 1:
        text = f"a processor of the trace is {largest.per_processor} cores, as its jobs are mapped"
        notes.assumed(text, where)
        procs *= largest.per_processor
    if not nodes and not procs and not largest.procs:
        raise WorkloadError(
            "there are neither jobs nor sizes in a header", where=where, expected="MaxProcs, MaxNodes or jobs"
        )
    if procs and largest.procs > procs:
        text = f"a job requests {largest.procs:,} processors, but there are {procs:,}: it never starts"
        notes.left_out(text, where)
    shares = _shares(nodes, procs, largest, notes, where)
    with_gpus = 0
    if largest.gpus:  # all nodes have them if the header states a size, else those of one request
        with_gpus = MAX_NODES if nodes or procs else largest.gpu_nodes
        which = "each node" if nodes or procs else f"each of {largest.gpu_nodes:,} nodes"
        units = "1 gpu" if largest.gpus == 1 else f"{largest.gpus} gpus"
        notes.assumed(f"{units} in {which}, the most that a job requests", where)
    pools: tuple[PoolSpec, ...] = ()
    if largest.memory:
        text = f"{largest.memory:,} KiB of memory in each node, the most that a job requests there"
        notes.assumed(text, where)
        pools = (PoolSpec(type="memory", amount=Amount(largest.memory, "KiB")),)
    found = {
        f"node{number}": node_of(cores=cores, gpus=largest.gpus if number < with_gpus else 0, pools=pools)
        for number, cores in enumerate(cores for count, cores in shares for _ in range(count))
    }
    _note_names(workload, notes, where)
    recipe = Recipe(name=workload.name or None, groups=grouped(found))
    return MachineDescription(recipe=recipe, notes=notes.notes(), format=FORMAT)


def _shares(
    nodes: int, procs: int, largest: _Largest, notes: NoteCollector, where: str
) -> list[tuple[int, int]]:
    """Return (number of nodes, cores in each); a header may name more nodes than processors by mistake."""
    if nodes and procs:
        least, more = divmod(procs, nodes)
        if more:
            text = (
                f"MaxProcs {procs:,} does not divide over MaxNodes {nodes:,}: {more:,} nodes have a core more"
            )
            notes.assumed(text, where)
        found = [(more, least + 1), (nodes - more, least)] if least else [(procs, 1)]
    elif nodes:
        cores = largest.width or 1
        notes.assumed(f"{_cores(cores)} in each node, the most that a job requests there", where)
        found = [(nodes, cores)]
    else:
        found = [_without_nodes(procs, largest, notes, where)]
    for count, cores in found:
        if count > MAX_NODES or cores > MAX_UNITS:
            text = f"{count:,} nodes of {cores:,} cores are too many"
            raise WorkloadError(text, where=where, expected=f"at most {MAX_NODES:,} nodes")
    return [(count, cores) for count, cores in found if count]


def _without_nodes(procs: int, largest: _Largest, notes: NoteCollector, where: str) -> tuple[int, int]:
    if not procs:
        procs = largest.procs
        notes.assumed(f"{procs:,} processors, the most that a job requests", where)
    cores = max(1, largest.width)
    count = max(-(-procs // cores), largest.nodes)
    reason = "which the largest jobs use there" if largest.width else "because the trace names no nodes"
    notes.assumed(f"{count:,} nodes of {_cores(cores)}, {reason}", where)
    return count, cores


def _cores(number: int) -> str:
    return f"{number:,} core" + ("" if number == 1 else "s")


def _note_names(workload: Workload, notes: NoteCollector, where: str) -> None:
    """Note the partitions and queues of the trace, whose nodes and limits it does not state."""
    for word, key in (("partition", "partitions"), ("queue", "queues")):
        names = {name for job in workload.jobs if (name := getattr(job, word)) is not None}
        if len(names) > 1:
            some = ", ".join(sorted(names)[:6]) + (" …" if len(names) > 6 else "")
            notes.left_out(
                f"{len(names)} {key} ({some}): the trace does not state their nodes and limits", where
            )
