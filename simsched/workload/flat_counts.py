"""From a resource request back to flat counts, for formats that have nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from simsched.formats.jobspec.validation_rules import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex


@dataclass(frozen=True, slots=True)
class Demand:
    """The least that a request takes: units per type over all its copies."""

    nodes: int
    slots: int
    cores: int
    gpus: int

    @property
    def procs(self) -> int:
        """Processors as flat formats count them: cores, else slots, else nodes, at least 1."""
        return self.cores or self.slots or self.nodes or 1


@lru_cache(maxsize=65536)
def demand(jobspec: Jobspec) -> Demand:
    """Return the least that a request takes; `nodes` is 0 if it has no node vertex.

    >>> from simsched.formats.jobspec.jobspec import Jobspec
    >>> demand(Jobspec.from_shape("node=2/slot=3/[core=4;gpu]"))
    Demand(nodes=2, slots=6, cores=24, gpus=6)
    """
    found = {"node": 0, "slot": 0, "core": 0, "gpu": 0}
    for kind, units in _units(jobspec.resources, 1):
        if kind in found:
            found[kind] += units
    return Demand(found["node"], found["slot"], found["core"], found["gpu"])


def _units(vertices: tuple[ResourceVertex, ...], copies: int) -> Iterator[tuple[str, int]]:
    for vertex in vertices:
        units = copies * vertex.count.min
        yield vertex.type, units
        yield from _units(vertex.with_, units)


def bare(jobspec: Jobspec) -> Jobspec:
    """Return the request alone, without the attributes that a `Job` has itself (limit, queue, name …).

    So equal requests share one jobspec, whatever their users.
    """
    from simsched.formats.text.immutable import FrozenDict

    kept = {key: jobspec.system[key] for key in ("constraints", KEY) if key in jobspec.system}
    return replace(jobspec, attributes=FrozenDict(system=FrozenDict(duration=0.0, **kept)))


def procs_of(procs: int | None, jobspec: Jobspec) -> int:
    """Return the trace's own processor count, or the request's."""
    return procs if procs is not None else demand(jobspec).procs
