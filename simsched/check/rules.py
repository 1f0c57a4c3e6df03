"""``simsched check``: all rules on some files of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

# each adds its rules, in this order
from simsched.check import node_rules, queue_rules, storage_rules  # noqa: F401
from simsched.check.findings import NOTE, RULES, Severity
from simsched.check.site_files import read_site_files
from simsched.declare.answers import Written, json_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simsched.check.site_files import SiteFiles
    from simsched.site.site import Site


class Finding(Written, frozen=True):
    """One fault, with the code and severity of its rule.

    ``str()`` is a line for people.

    code : stable; docs/checks.md lists the meanings.
    where : the file, and the path in it.
    text : a sentence for people, which may change.
    """

    code: Annotated[str, json_of(enum=list(RULES))]
    severity: Severity
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.severity} {self.code}: {self.text}"


class CheckedFile(Written, frozen=True):
    """A file and its kind."""

    file: str
    kind: str


class CheckResult(Written, frozen=True, kw_only=True):
    """All findings on some files, and one line on their content; true if they are sound.

    sound : no errors and no warnings.
    """

    version: Literal[1]
    sound: bool
    summary: str
    files: tuple[CheckedFile, ...]
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.sound


def check_files(paths: Iterable[str | Path], site: Site | str | Path | None = None) -> CheckResult:
    """Check whether files agree: descriptions of one machine, configurations, outages, storage maps.

    `site` is the folder of a site, whose files come first.  The first description of the machine is the one
    that the others are compared with.

    Raises
    ------
    ConfigError
        if there is nothing to check, or the folder is not a site.
    FormatError
        for a file that is empty, not well formed, or of an unknown kind; with the place.
    """
    found = read_site_files(paths, site)
    findings = dict.fromkeys(
        Finding(code, rule.severity, fault.where, fault.text)
        for code, rule in RULES.items()
        for fault in rule.look(found)
    )
    return CheckResult(
        version=1,
        sound=all(finding.severity == NOTE for finding in findings),
        summary=_summary(found),
        files=tuple(CheckedFile(*file) for file in found.files),
        findings=tuple(findings),
    )


def _summary(site: SiteFiles) -> str:
    """Return the content of the files in one line: the units of the machine, and its queues."""
    from simsched.human import units

    parts = []
    if site.machine is not None:
        machine = site.machine
        totals = {"node": len(machine.nodes)}
        totals |= {kind: machine.totals[kind] for kind in ("core", "gpu") if machine.totals.get(kind)}
        parts.append(", ".join(units(totals)))
    queues = len({name for config in site.configs if config.queues for name in config.queues.queues})
    if queues:
        parts.append("1 queue" if queues == 1 else f"{queues} queues")
    servers = sum(len(map_.servers) for _, map_ in site.maps)
    if servers:
        parts.append("1 storage server" if servers == 1 else f"{servers} storage servers")
    number = len(site.files)
    return "; ".join([*parts, "1 file" if number == 1 else f"{number} files"])
