"""`AuditReport`: the faults, notes and explained promises of an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Most faults of one law, and most explained promises, that a report names.
NAMED = 20


@dataclass(frozen=True, slots=True)
class AuditFault:
    """A broken law: its number, the job that breaks it, and the fault as text."""

    law: str
    job: str
    text: str

    def __str__(self) -> str:
        return f"{self.law} job {self.job}: {self.text}"


class LateStart(NamedTuple):
    """A job that started after its promised start, and the explanation, None if it has none."""

    job: str
    promised: float
    start: float
    cause: str | None

    def __str__(self) -> str:
        text = f"was promised {self.promised:g} and started at {self.start:g}"
        return text if self.cause is None else f"{text}: {self.cause}"


@dataclass(slots=True)
class AuditReport:
    """The result of an audit; true if it found no fault."""

    jobs: int = 0
    allocations: int = 0
    releases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[AuditFault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Comparisons that were not possible, and why."""
    explained: list[LateStart] = field(default_factory=list)
    """Jobs that started after their promised start for a valid reason."""
    files: int = 0
    """The files that were compared with their digests."""
    left_out: str | None = None
    """Why jobs and allocations were not compared with the inputs; None: they were."""

    @property
    def complete(self) -> bool:
        """Whether jobs and allocations were compared with the inputs, and not the digests of files alone."""
        return self.left_out is None

    def __bool__(self) -> bool:
        return not self.counts

    def add(self, law: str, job: object, text: str) -> None:
        """Record a fault; only the first `NAMED` of each law are kept in full."""
        self.counts[law] += 1
        if self.counts[law] <= NAMED:
            self.faults.append(AuditFault(law, str(job), text))

    def __str__(self) -> str:
        scope = f"{self.jobs} jobs, {self.allocations} allocations, {self.releases} releases"
        found = f"{sum(self.counts.values())} faults" if self.counts else "clean"
        if self.left_out is not None:
            found = found if self.counts else "not complete"
            scope = (
                f"{self.files} files were compared with their digests; jobs and allocations were not compared"
            )
            scope = f"{scope} with the inputs: {self.left_out}"
        head = f"audit: {found} ({scope})"
        notes = [f"audit: note: {note}" for note in self.notes]
        return "\n".join([head, *map(str, self.faults), *_late_lines(self.explained), *notes])


def _late_lines(explained: Sequence[LateStart]) -> list[str]:
    """Return the lines of a report about broken promises that are explained."""
    if not explained:
        return []
    head = f"{len(explained)} jobs started after their promised start, for these reasons:"
    return [head, *(f"job {late.job} {late}" for late in explained[:NAMED])]
