"""Rule of the audit for licences (L2): an R has those of its request, and there are enough of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc.idset import Idset
from simsched.simulation.licences.licence_pools import read_licences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.simulation.licences.licence_pools import Licences
    from simsched.workload.job import Job


def _requested(job: Job) -> dict[str, int]:
    """Return the licences that a job requests, by its attribute and as vertices of the type ``License``."""
    given = read_licences(job.jobspec.system.get("licenses"), "licenses")
    counts = {} if given is None else given.to_dict()
    for vertex in job.jobspec.resources:
        if vertex.type == "License" and vertex.id is not None:
            counts[vertex.id] = counts.get(vertex.id, 0) + vertex.count.min
    return {name: number for name, number in counts.items() if number}


class LicenceUse:
    """The licences that are in use after each line of the allocations.

    Attributes
    ----------
    free : the licences that are left.
    taken : those of the last allocation.
    checked : the allocations that were compared with their requests.
    """

    def __init__(self, licences: Licences | None) -> None:
        self._counts = {} if licences is None else licences.to_dict()
        self.free = dict(self._counts)
        self.taken: dict[str, int] = {}
        self.checked = 0
        self._ids: dict[str, Idset] = {}  # licence → the ids in use, where R names ids

    def _numbers(self, named: Mapping[str, Any]) -> dict[str, int]:
        """Return how many units an R lists of each licence: their number, or their ids."""
        return {
            name: len(Idset.parse(units)) if isinstance(units, str) else int(units)
            for name, units in named.items()
            if name in self._counts
        }

    def take(self, job: Job, named: Mapping[str, Any]) -> Iterator[str]:
        """Take the licences that an R names, and yield its faults."""
        if not self._counts:
            return
        self.checked += 1
        self.taken = self._numbers(named)
        for name in self.taken:
            if isinstance(named[name], str):
                ids, used = Idset.parse(named[name]), self._ids.get(name, Idset())
                if ids & used:
                    yield f"has the licence {name!r} {ids & used}, which another job has"
                self._ids[name] = used | ids
        try:
            expected = _requested(job)
        except ConfigError as error:
            yield f"has an attribute that cannot be read: {error}"
            return
        if self.taken != expected:
            yield f"has the licences {self.taken or 'none'} instead of {expected or 'none'}"
        for name, units in self.taken.items():
            self.free[name] -= units
            if self.free[name] < 0:
                there = self._counts[name]
                yield f"{there - self.free[name]} of the licence {name!r} are in use, there are {there}"

    def give_back(self, named: Mapping[str, Any]) -> None:
        """Release the licences that an R names."""
        for name, units in self._numbers(named).items() if self._counts else ():
            self.free[name] += units
            if isinstance(named[name], str):
                self._ids[name] = self._ids.get(name, Idset()) - Idset.parse(named[name])
