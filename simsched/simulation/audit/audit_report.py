"""`AuditReport`: the checks, faults, notes and explained promises of an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from textwrap import fill
from typing import Any, NamedTuple, TypedDict

from simsched.declare.answers import extended

#: Most faults of one law, and most explained promises, that a report names.
NAMED = 20
LAWS = ("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10",
        "L1", "L2", "P1", "R1", "R2", "V1", "V2", "W1")  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditFault:
    """A broken law: its number, the job that breaks it, and the fault as text."""

    law: str
    job: str
    text: str

    def __str__(self) -> str:
        return f"{self.law} job {self.job}: {self.text}"


class LateStart(NamedTuple):
    """A job that started after its promised start, and the explanation, if there is one."""

    job: str
    promised: float
    start: float
    cause: str | None

    def __str__(self) -> str:
        text = f"was promised {self.promised:g} and started at {self.start:g}"
        return text if self.cause is None else f"{text}: {self.cause}"


FaultAnswer: Any = extended("AuditFault", AuditFault)
LateAnswer: Any = extended("LateStart", LateStart)


class CheckedThings(TypedDict):
    """How many things of a kind were compared under a law."""

    law: str
    of: str
    number: int


class AuditDocument(TypedDict):
    """The result of an audit; `RunAudit` has the meanings."""

    result: str
    complete: bool
    jobs: int
    allocations: int
    releases: int
    checked: list[CheckedThings]
    fault_counts: dict[str, int]
    faults: list[FaultAnswer]
    late: list[LateAnswer]
    not_checked: list[str]


class RunAudit(AuditDocument):
    """The result of an audit of a run directory.

    result : in words; "clean" only if nothing was left out.
    complete : whether jobs and allocations were compared with the inputs.
    jobs, allocations, releases : numbers of compared records.
    fault_counts : law: number of faults.
    faults : the first of each law.
    late : jobs that started after their promised start for a valid reason.
    not_checked : comparisons that were not possible, and why.
    run : the directory.
    """

    run: str


RunAudits = list[RunAudit]


@dataclass(slots=True)
class AuditReport:
    """The result of an audit; true if it found no fault."""

    jobs: int = 0
    allocations: int = 0
    releases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[AuditFault] = field(default_factory=list)
    checked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(law, kind of thing) → how many of these were compared."""
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

    @property
    def verdict(self) -> str:
        """The result in words: "clean" only if nothing was left out."""
        if self.counts:
            number = sum(self.counts.values())
            return f"{number} fault{'s' if number != 1 else ''}"
        if self.left_out is not None:
            return "not complete"
        return "no faults, but not all was checked" if self.notes else "clean"

    def __bool__(self) -> bool:
        return not self.counts

    def add(self, law: str, job: object, text: str) -> None:
        """Record a fault; only the first `NAMED` of each law are kept in full."""
        self.counts[law] += 1
        if self.counts[law] <= NAMED:
            self.faults.append(AuditFault(law, str(job), text))

    def __str__(self) -> str:
        scope = f"{self.jobs} jobs, {self.allocations} allocations, {self.releases} releases"
        if self.left_out is not None:
            scope = (
                f"{self.files} files were compared with their digests; jobs and allocations were not compared"
            )
            scope = f"{scope} with the inputs: {self.left_out}"
        late = [f"job {late.job} {late}" for late in self.explained[:NAMED]]
        if late:
            head = f"{len(self.explained)} jobs started after their promised start, for these reasons:"
            late.insert(0, head)
        notes = [f"audit: note: {note}" for note in self.notes]
        first = f"audit: {self.verdict} ({scope})"
        return "\n".join([first, *map(str, self.faults), *late, *self._numbers(), *notes])

    def _numbers(self) -> list[str]:
        of = {law: [(what, n) for (found, what), n in self.checked.items() if found == law] for law in LAWS}
        parts = [f"{law} " + ", ".join(f"{n:,} {what}" for what, n in of[law] if n) for law in LAWS]
        done = [part for part in parts if not part.endswith(" ")]
        text = f"audit: checked {'; '.join(done) or 'nothing'}"
        left = [part.strip() for part in parts if part.endswith(" ")]
        return [fill(text + (f"; nothing to check for {', '.join(left)}" if left else ""), 110,
                     subsequent_indent="  ", break_on_hyphens=False)]  # fmt: skip

    def to_dict(self) -> AuditDocument:
        """Return the report as a document."""
        return {
            "result": self.verdict,
            "complete": self.complete,
            "jobs": self.jobs,
            "allocations": self.allocations,
            "releases": self.releases,
            "checked": [{"law": law, "of": of, "number": n} for (law, of), n in self.checked.items()],
            "fault_counts": dict(self.counts),
            "faults": [asdict(fault) for fault in self.faults],
            "late": [late._asdict() for late in self.explained],
            "not_checked": [*([] if self.left_out is None else [self.left_out]), *self.notes],
        }
