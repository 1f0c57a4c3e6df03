"""``simsched check``: all rules on some files of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

# each adds its rules, in this order
from simsched.check import node_rules, queue_rules, storage_rules  # noqa: F401
from simsched.check.findings import RULES, CheckResult, Finding
from simsched.check.site_files import read_site_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from simsched.check.site_files import SiteFiles
    from simsched.site.site import Site


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
