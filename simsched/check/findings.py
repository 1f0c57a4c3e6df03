"""`Finding`: one fault of a site's files, with its place, its stable code and its severity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    Severity = Literal["error", "warning", "note"]

ERROR: Severity = "error"
WARNING: Severity = "warning"
NOTE: Severity = "note"
"""A remark and not a fault: a site with notes alone is sound."""

VERSION = 1
"""The version of ``formats/schemas/check-findings.json``."""


class SiteFault(NamedTuple):
    """What one rule has found: the place (a file and a path in it) and a sentence."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, with the code and severity of its rule; ``str()`` is a line for people."""

    code: str
    severity: Severity
    where: str
    text: str

    def to_dict(self) -> dict[str, str]:
        """Return the finding as JSON data."""
        return {"code": self.code, "severity": self.severity, "where": self.where, "text": self.text}

    def __str__(self) -> str:
        return f"{self.where}: {self.severity} {self.code}: {self.text}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """All findings on some files, and one line on their content; true if they are sound."""

    files: Sequence[tuple[str, str]]
    findings: tuple[Finding, ...]
    summary: str

    def __bool__(self) -> bool:
        return not any(finding.severity != NOTE for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data, after the schema ``check-findings``."""
        return {
            "version": VERSION,
            "sound": bool(self),
            "summary": self.summary,
            "files": [{"file": name, "kind": kind} for name, kind in self.files],
            "findings": [finding.to_dict() for finding in self.findings],
        }
