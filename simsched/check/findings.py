"""`Finding` and `rule`: the faults of a site's files, and the table of the rules that find them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simsched.check.site_files import SiteFault, SiteFiles

    Severity = Literal["error", "warning", "note"]
    Look = Callable[[SiteFiles], Iterator[SiteFault]]

ERROR: Severity = "error"
WARNING: Severity = "warning"
NOTE: Severity = "note"
"""A remark and not a fault: a site with notes alone is sound."""

VERSION = 1
"""The version of ``formats/schemas/check-findings.json``."""


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


class SiteRule(NamedTuple):
    """One rule: how grave its findings are, its meaning as the manual has it, and where it is."""

    severity: Severity
    meaning: str
    look: Look


RULES: dict[str, SiteRule] = {}
"""Code → rule, in the order of the manual: those on nodes, on queues, and on storage."""


def rule(code: str, severity: Severity, meaning: str) -> Callable[[Look], Look]:
    """Return a decorator that adds a function to `RULES`."""

    def add(look: Look) -> Look:
        RULES[code] = SiteRule(severity, meaning, look)
        return look

    return add
