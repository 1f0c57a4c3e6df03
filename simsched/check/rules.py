"""The rules of ``simsched check`` in one table: code → severity, meaning, and the function that looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from simsched.check import node_rules, queue_rules, storage_rules
from simsched.check.site_files import read_site_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from simsched.check.site_files import SiteFault, SiteFiles
    from simsched.site.site import Site

    Severity = Literal["error", "warning", "note"]

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
    look: Callable[[SiteFiles], Iterator[SiteFault]]


RULES: Mapping[str, SiteRule] = {
    "machine-impossible": SiteRule(
        ERROR, "a description of the machine contradicts itself", node_rules.impossible
    ),
    "import-fault": SiteRule(
        WARNING, "the import of the site did not understand a line", node_rules.not_understood
    ),
    "nodes-number": SiteRule(ERROR, "two descriptions have different numbers of nodes", node_rules.numbers),
    "nodes-hosts": SiteRule(ERROR, "a host is in one description and not in another", node_rules.hosts),
    "nodes-twice": SiteRule(ERROR, "a host occurs twice in one description", node_rules.host_names_twice),
    "nodes-ranks": SiteRule(ERROR, "a host has different ranks in two descriptions", node_rules.ranks),
    "nodes-units": SiteRule(
        ERROR, "a host has different numbers of cores, GPUs or other units", node_rules.units
    ),
    "properties-missing": SiteRule(
        ERROR, "a property of the first description is missing in another", node_rules.properties_missing
    ),
    "properties-extra": SiteRule(
        WARNING, "a property is not in the first description", node_rules.properties_extra
    ),
    "excluded-unknown": SiteRule(
        ERROR, "a host or rank that is excluded, drained or down does not exist", node_rules.excluded
    ),
    "configuration-invalid": SiteRule(ERROR, "the configuration cannot be used", queue_rules.unreadable),
    "queue-property": SiteRule(
        ERROR, "a queue requires a property that no node has", queue_rules.unknown_properties
    ),
    "queue-host": SiteRule(ERROR, "a queue names a host that does not exist", queue_rules.unknown_hosts),
    "queue-empty": SiteRule(ERROR, "a queue has no node", queue_rules.without_nodes),
    "limit-crossed": SiteRule(ERROR, "a least size is above the most", queue_rules.crossed_limits),
    "limit-unreachable": SiteRule(
        ERROR, "a least size is above what the nodes of the queue have", queue_rules.unreachable_limits
    ),
    "limit-zero": SiteRule(
        WARNING, "a limit of 0 allows none of the jobs that it is about", queue_rules.limits_of_zero
    ),
    "limit-unknown-queue": SiteRule(
        WARNING, "a limit is about a queue that does not exist", queue_rules.limits_of_unknown_queues
    ),
    "default-above-limit": SiteRule(
        ERROR, "a default duration is above the limit of its queue", queue_rules.default_durations
    ),
    "node-unqueued": SiteRule(WARNING, "a node is in no queue", queue_rules.nodes_in_no_queue),
    "queues-overlap": SiteRule(NOTE, "queues have nodes in common", queue_rules.overlaps),
    "storage-twice": SiteRule(ERROR, "the same storage is counted twice", storage_rules.counted_twice),
    "storage-capacity": SiteRule(
        ERROR, "the capacity of a server differs between map and graph", storage_rules.capacities
    ),
    "storage-host": SiteRule(
        ERROR, "a storage map names a host that does not exist", storage_rules.unknown_hosts_of_map
    ),
    "storage-map": SiteRule(
        ERROR, "the two tables of a storage map disagree", storage_rules.contradictions_of_map
    ),
    "storage-place": SiteRule(
        ERROR, "the hosts of a server are in different parts of the graph", storage_rules.localities
    ),
}


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
    return CheckResult(tuple(found.files), tuple(findings), _summary(found))


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
