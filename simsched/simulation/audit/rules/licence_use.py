"""Rule of the audit for licences (L2): an R has those of its request, and there are enough of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc.idset import Idset
from simsched.simulation.licences.licence_pools import Licences, licences_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.workload.job import Job


def _number(units: Any) -> int:
    """Return how many units an R lists of a pool: their number, or their ids."""
    return len(Idset.parse(units)) if isinstance(units, str) else int(units)


class LicenceUse:
    """The licences that are in use after each line of the allocations.

    Attributes
    ----------
    free : the licences that are left.
    taken : those of the last line.
    """

    def __init__(self, licences: Licences | None) -> None:
        self._counts = {} if licences is None else licences.to_dict()
        self.free = dict(self._counts)
        self.taken: dict[str, int] = {}
        self._ids: dict[str, Idset] = {}  # licence → the ids in use, where R names ids

    def note(self, event: str, job: Job, document: Mapping[str, Any]) -> Iterator[str]:
        """Count the licences of a line, and yield its faults."""
        if not self._counts:
            return
        pools = document.get("scheduling", {}).get("pools", {})
        named = {str(path).rpartition("/")[2]: units for path, units in pools.items()}
        found = {name: _number(units) for name, units in named.items() if name in self._counts}
        self.taken = found
        for name, units in named.items():
            if name in self._counts and isinstance(units, str):
                ids, used = Idset.parse(units), self._ids.get(name, Idset())
                if event != "release" and ids & used:
                    yield f"has the licence {name!r} {ids & used}, which another job has"
                self._ids[name] = used - ids if event == "release" else used | ids
        if event == "release":
            for name, units in found.items():
                self.free[name] += units
            return
        try:
            expected = licences_of(job.jobspec)
        except ConfigError as error:
            yield f"has an attribute that cannot be read: {error}"
            return
        if found != expected:
            yield f"has the licences {found or 'none'} instead of {expected or 'none'}"
        for name, units in found.items():
            self.free[name] -= units
            if self.free[name] < 0:
                there = self._counts[name]
                yield f"{there - self.free[name]} of the licence {name!r} are in use, there are {there}"
