"""How a run uses a log on a site: the maps of its requests, and the sentence that says so.

A job's partition that the site has is its queue, and so a constraint: `simulation.queues` does that.
Memory is requested where every node that a job may use has memory; elsewhere such a request could never
be met.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.formats.jobspec.vertex import walk
from simsched.formats.machines.slurm.node_records import SLICES
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.formats.rfc.units import UNITS, unit_of
from simsched.formats.submit_commands import SlurmUnits
from simsched.workload.readers.gather import LEAVES_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.arrays import Bools
    from simsched.graph.index.index import Index
    from simsched.simulation.queues import Queue, Queues
    from simsched.site.site import Site
    from simsched.workload.job import Workload

_MOST_NAMES = 5

YEAR = 365 * 86400
"""Seconds that an unlimited job may take in a queue that has a default, but no limit: as in Slurm."""


def reading_on(site: Site) -> dict[str, Any]:
    """Return how logs are read on a site, as the plain data of `workload.mapping.SiteReading`."""
    queues = queues_of(site)
    found: dict[str, Any] = {"maps": list(site_maps(site))}
    if site.cpus_per_core > 1:
        found["processors_per_core"] = site.cpus_per_core
    types = gpu_types(site.cluster.index)
    if types:
        found["gpu_types"] = types
    if queues is not None:
        limits = {name: _longest(queue) for name, queue in queues.queues.items()}
        found["limits"] = {name: seconds for name, seconds in limits.items() if seconds is not None}
        found["default_queue"] = queues.default
    return found


def slurm_units(site: Site) -> SlurmUnits:
    """Return what the options of Slurm's commands count on a site."""
    index = site.cluster.index
    return SlurmUnits(site.cpus_per_core, gpu_types(index), "memory" in index.pool_types)


def gpu_types(index: Index) -> dict[str, str]:
    """Return type of gpu in lower case → the property of its gpus, or the type of resource that it is."""
    properties = {name.removesuffix("@gpu"): name for name in index.property_rows if name.endswith("@gpu")}
    slices = {name.removeprefix(SLICES): name for name in index.pool_types if name.startswith(SLICES)}
    return {kind.lower(): name for kind, name in sorted({**properties, **slices}.items())}


def _longest(queue: Queue) -> float | None:
    """Return the limit of a job for which a log states none; None where it may stay unlimited."""
    if queue.longest < float("inf"):
        return queue.longest
    return None if queue.default_duration is None else YEAR


def site_maps(site: Site) -> tuple[str, ...]:
    """Return the maps (`workload.mapping`) for logs that have none of their own; () for the usual ones.

    Queues whose nodes have memory request it, others do not.  Where a core has several processors, as
    Slurm counts hardware threads, a job gets whole cores.
    """
    index = site.cluster.index
    unit, per_core = _memory_unit(index), site.cpus_per_core
    asks: dict[str, bool] = {}
    anywhere = False
    if unit is not None:
        has_memory, queues = _targets_with_memory(index), queues_of(site)
        anywhere = bool(has_memory.all())
        for name, queue in ({} if queues is None else queues.queues).items():
            targets = index.targets_matching(queue.constraint)
            asks[name] = bool(targets.any() and has_memory[targets].all())
    if per_core == 1 and not anywhere and not any(asks.values()):
        return ()
    texts = {True: _map(per_core, unit), False: _map(per_core, None)}
    return (texts[anywhere], *(f"{name} -> {texts[ask]}" for name, ask in asks.items() if ask != anywhere))


def _map(per_core: int, unit: str | None) -> str:
    """Return the map that requests gpus for records with gpus, and memory for those with memory.

    unit : that of the memory; None leaves memory out.
    """
    by, times = (f"/{per_core}", f"*{per_core}") if per_core > 1 else ("", "")
    gpus, cores = f"slot={{gpus}}/[core={{cpg{by}}};gpu", f"slot={{procs{by}}}/"
    parts = [f"{gpus}]", f"{cores}core"]
    if unit is not None:
        label = f"{{unit:{unit}}}"
        parts.insert(0, f"{gpus};memory={{memg}}{label}]")
        parts.insert(2, f"{cores}[core;memory={{memp{times}}}{label}]")
    return " else ".join(parts)


def queues_of(site: Site) -> Queues | None:
    """Return the queues of a site as a run has them; None without queues."""
    from simsched.simulation.options.run_config import from_document

    found: Queues | None = from_document(site.config, "queues.toml").get("queues")
    return found


def _memory_unit(index: Index) -> str | None:
    """Return the unit in which a log's memory is requested; None if it cannot be.

    The machine counts memory in one unit, and a request is rounded up to whole ones: in GB, each core of
    a job would take at least one.
    """
    pool = index.pool_types.get("memory")
    if pool is None or pool.unit not in UNITS or unit_of(pool.unit).factor > unit_of("MiB").factor:
        return None
    # the megabytes of a log are Slurm's: those of the machine, as its files count them
    return "MiB" if "i" in pool.unit else "MB"


def _targets_with_memory(index: Index) -> Bools:
    """Return the targets that have memory, available or not."""
    pool = index.pool_types["memory"]
    row = np.zeros(len(index), dtype=np.bool_)
    # an index may have empty leaf pools, so that there is one for each target
    row[pool.target[(pool.target >= 0) & (pool.size > 0)]] = True
    return row


# --- the sentence -----------------------------------------------------------------------------


def notes_on_site(site: Site, workload: Workload, *, mapped: bool = False) -> list[str]:
    """Return the notes of a workload for a run on a site: one sentence on its use, and the others."""
    others = [text for text in workload.notes if not text.startswith(LEAVES_OUT)]
    return [text for text in (use_sentence(site, workload, mapped=mapped), *others) if text]


def use_sentence(site: Site, workload: Workload, *, mapped: bool = False) -> str:
    """Return the sentence on the use that a run makes of the partitions, memory, nodes and gpus of a log.

    `mapped` is true if the user gave the map.  A part that neither the log nor its requests have is not
    mentioned.
    """
    jobspecs = {id(job.jobspec): job.jobspec for job in workload}.values()  # equal requests are one object
    kinds = {vertex.type for jobspec in jobspecs for vertex in walk(jobspec.resources)}
    unused = next((text for text in workload.notes if text.startswith(LEAVES_OUT)), "")
    parts = list(_partitions(site, workload))
    if site.cpus_per_core > 1 and not mapped and any(job.procs for job in workload):
        parts.append(f"{site.cpus_per_core} processors are a core")
    if "memory" in kinds:
        parts.append("memory is requested")
    elif any(job.memory for job in workload):
        parts.append(f"memory is left out ({_why_no_memory(site)})")
    if "node" in kinds:
        parts.append("node counts are requested")
    elif any(job.nodes for job in workload):
        parts.append("node counts are left out ({nodes} and {ppn} in --map request them)")
    named = {gpu_type_of(job.jobspec.constraint) for job in workload} - {None}
    types = sorted({kind for kind in kinds if kind.startswith(SLICES)} | {name for name in named if name})
    if types:
        parts.append(f"gpus are requested by type ({', '.join(types[:_MOST_NAMES])})")
    elif "gpu" in kinds:
        parts.append("gpus are requested")
    elif "gpus (" in unused:
        parts.append("gpus are left out ({gpus} in --map requests them)")
    if "features (" in unused:
        parts.append("features are left out (--constrain features)")
    return "; ".join(parts)


def _partitions(site: Site, workload: Workload) -> Iterator[str]:
    named = Counter(job.queue if job.queue is not None else job.jobspec.queue for job in workload)
    queues = queues_of(site)
    if queues is None:
        if any(name is not None for name in named):
            yield "partitions are left out (the site has no queues)"
        return
    known = [name for name in queues.queues if name in named]
    word = "partition" if any(job.partition for job in workload) else "queue"
    if known:
        own = "a job's partition is its queue and" if word == "partition" else "a job's queue"
        yield f"{own} restricts its nodes ({_some(known)})"
    strange = {name: count for name, count in named.items() if name is not None and name not in queues.queues}
    if strange:
        jobs = sum(strange.values())
        those = f"1 job of a {word}" if jobs == 1 else f"{jobs:,} jobs of {word}s"
        are = "is" if jobs == 1 else "are"
        yield f"{those} that the site does not have {are} rejected ({_some(list(strange))})"
    if named.get(None):
        place = "on every node" if queues.default is None else f"in the queue {queues.default}"
        yield f"jobs without a {word} run {place} ({named[None]:,})"


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _why_no_memory(site: Site) -> str:
    index = site.cluster.index
    pool = index.pool_types.get("memory")
    if pool is None:
        return "the nodes of the site have none"
    if _memory_unit(index) is None:
        return f"the site counts memory in {pool.unit or 'no unit'}, MB or MiB is needed"
    if not _targets_with_memory(index).all():
        return "some nodes of the site have none"
    return "the map does not request it"
