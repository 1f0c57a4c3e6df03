"""`AuditReport`: what an audit found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Faults of one law, and explained promises, that a report names one by one.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """One law broken, where, and how."""

    law: str
    job: str
    text: str

    def __str__(self) -> str:
        return f"{self.law} job {self.job}: {self.text}"


class Late(NamedTuple):
    """A job that started after its promise, and what explains it (None: nothing does)."""

    job: str
    promised: float
    start: float
    cause: str | None

    def __str__(self) -> str:
        text = f"was promised {self.promised:g} and started at {self.start:g}"
        return text if self.cause is None else f"{text}: {self.cause}"


@dataclass(slots=True)
class AuditReport:
    """What an audit found; true when nothing is wrong."""

    jobs: int = 0
    allocations: int = 0
    releases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be compared, and why."""
    explained: list[Late] = field(default_factory=list)
    """Jobs that started after their promise for a reason that is no fault."""

    def __bool__(self) -> bool:
        return not self.counts

    def add(self, law: str, job: object, text: str) -> None:
        """Note a fault; only the first few of each law are kept in full."""
        self.counts[law] += 1
        if self.counts[law] <= NAMED:
            self.faults.append(Fault(law, str(job), text))

    def __str__(self) -> str:
        looked = f"{self.jobs} jobs, {self.allocations} allocations, {self.releases} releases"
        head = f"audit: {f'{sum(self.counts.values())} faults' if self.counts else 'clean'} ({looked})"
        notes = [f"audit: note: {note}" for note in self.notes]
        return "\n".join([head, *map(str, self.faults), *_late_lines(self.explained), *notes])


def _late_lines(explained: Sequence[Late]) -> list[str]:
    """Return the lines of a report about promises whose breaking is explained."""
    if not explained:
        return []
    head = f"{len(explained)} jobs started after their promise, which is explained:"
    return [head, *(f"job {late.job} {late}" for late in explained[:NAMED])]
