"""SimGrid platforms (XML), as Batsim uses them: hosts and clusters; the network is left out.

The host ``master_host``, also with a number, and hosts whose property ``role`` is master or storage run
no jobs (Batsim's roles of hosts).  Jobs of Batsim take whole hosts; ``core`` is their number of cores.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.cluster.recipe import MAX_NODES
from simsched.formats.machines.site_facts import (
    MAX_UNITS,
    Node,
    SiteFacts,
    idset_in,
    node_of,
    usable_host,
    usable_properties,
)
from simsched.formats.text.excerpts import place
from simsched.formats.text.xml_tree import Element, parse_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.machines.description import NoteCollector

FORMAT = "SimGrid platform"
_MASTER = re.compile(r"master_host\d*")
"""Batsim's usual names of the host that runs the scheduler: a host, or a cluster of one."""
ZONES = ("zone", "AS", "platform")
NOT_FOR_JOBS = ("master", "storage")
_NETWORK = (
    "link", "link_ctn", "route", "zoneRoute", "ASroute", "bypassRoute", "bypassZoneRoute", "bypassASroute",
    "router", "backbone", "host_link", "peer", "trace", "trace_connect", "storage", "storage_type",
    "mount", "config", "prop", "random", "include", "process", "actor",
)  # fmt: skip
_KNOWN = ("host", "cluster", "cabinet", *ZONES, *_NETWORK)


def read_platform(text: str, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the machine of a platform.

    Raises
    ------
    FormatError
        if the text is not XML of a platform or has no host for jobs; under strict `notes` for the first part
        that is not understood.
    LimitError
        for more than 1,000,000 hosts.
    """
    # Some of Batsim's own files begin with an empty line, which XML does not allow before a declaration.
    text = re.sub(r"\A\s+<\?xml[^>]*\?>", lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    root = parse_xml(text, where, doctype="platform")
    if root.name != "platform":
        raise FormatError(f"<{clip(root.name)}> is not a platform", where=where, expected="<platform>")
    nodes: dict[str, Node] = {}
    speeds: set[str] = set()
    for names, element in _hosts(root, nodes, where, notes):
        at = place(where, element.line, element.column)
        hosts = [host for host in names if usable_host(host, at, notes)]
        pairs = ((prop.attribute("id") or "", prop.attribute("value") or "") for prop in element.all("prop"))
        properties = dict(pairs)
        roles = [role.strip() for role in properties.get("role", "").split(",")]
        if any(role in NOT_FOR_JOBS for role in roles):
            text = f"hosts whose role is {properties['role']}, such as {hosts[0] if hosts else ''}"
            notes.left_out(text, at)
            continue
        core = element.attribute("core", "1") or "1"
        cores = int(core) if re.fullmatch(r"[0-9]{1,9}", core) and 1 <= int(core) <= MAX_UNITS else 0
        if not cores:
            cores, text = 1, f"{clip(core)!r} is not a number of cores; 1 counts"
            notes.fault(text, at, f"1 to {MAX_UNITS:,}")
        speeds.add(element.attribute("speed") or element.attribute("power") or "")
        true = [name for name, value in properties.items() if value.lower() == "true" and name]
        words = usable_properties(true, at, notes)
        for host in hosts:
            if _MASTER.fullmatch(host):
                notes.left_out(f"the host {host}, which runs the scheduler", at)
            elif host in nodes:
                notes.fault(f"the host {clip(host)!r} occurs twice; the first counts", at)
            else:
                nodes[host] = node_of(words, cores=cores)
        if len(nodes) > MAX_NODES:
            raise LimitError("too many hosts", where=at, expected=f"at most {MAX_NODES:,}")
    if not nodes:
        notes.refuse("the platform has no hosts for jobs", where, "<host> or <cluster>")
    if len(speeds) > 1:
        notes.left_out(f"{len(speeds)} speeds of hosts: every core takes the same time", where)
    notes.left_out("links and routes of the network", where)
    return SiteFacts(form=FORMAT, notes=notes, nodes=nodes)


def _hosts(
    zone: Element, nodes: Mapping[str, Node], where: str, notes: NoteCollector
) -> Iterator[tuple[list[str], Element]]:
    """Yield the names of hosts, with their element, of a zone and of the zones in it; `nodes` are known."""
    for child in zone.children:
        at = place(where, child.line, child.column)
        if child.name in ZONES:
            yield from _hosts(child, nodes, where, notes)
        elif child.name == "host":
            yield [child.attribute("id", "") or ""], child
        elif child.name in ("cluster", "cabinet"):  # PREFIX number SUFFIX, of a list of numbers and ranges
            text = re.sub(r"\s", "", child.attribute("radical", "") or "")
            numbers = idset_in(text, at, notes)
            if not text:
                notes.fault("a cluster without radical", at, 'radical="0-15"')
            if len(numbers) + len(nodes) > MAX_NODES:
                expected = f"at most {MAX_NODES:,}"
                raise LimitError(f"{len(numbers):,} hosts", where=at, expected=expected)
            prefix, suffix = child.attribute("prefix", "") or "", child.attribute("suffix", "") or ""
            yield [f"{prefix}{number}{suffix}" for number in numbers], child
        elif child.name not in _NETWORK:
            notes.unknown(child.name, _KNOWN, at)
