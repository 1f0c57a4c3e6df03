"""`AuditReport`: what an audit found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

#: Faults of one law that a report names one by one.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """One law broken, where, and how."""

    law: str
    job: str
    text: str

    def __str__(self) -> str:
        return f"{self.law} job {self.job}: {self.text}"


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
        return "\n".join([head, *map(str, self.faults), *(f"audit: note: {note}" for note in self.notes)])
