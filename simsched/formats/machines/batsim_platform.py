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
from simsched.formats.text.xml_tree import parse_xml

if TYPE_CHECKING:
    from simsched.formats.machines.description import NoteCollector
    from simsched.formats.text.xml_tree import Element

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
    reader = _Reader(where, notes)
    # Some of Batsim's own files begin with an empty line, which XML does not allow before a declaration.
    text = re.sub(r"\A\s+<\?xml[^>]*\?>", lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    root = parse_xml(text, where, doctype="platform")
    if root.name != "platform":
        raise FormatError(f"<{clip(root.name)}> is not a platform", where=where, expected="<platform>")
    reader.zone(root)
    if not reader.nodes:
        notes.refuse("the platform has no hosts for jobs", where, "<host> or <cluster>")
    if len(reader.speeds) > 1:
        notes.left_out(f"{len(reader.speeds)} speeds of hosts: every core takes the same time", where)
    notes.left_out("links and routes of the network", where)
    return SiteFacts(form=FORMAT, notes=notes, nodes=reader.nodes)


class _Reader:
    """Collects the hosts of all zones in the order of the text."""

    def __init__(self, where: str, notes: NoteCollector) -> None:
        self.where, self.notes = where, notes
        self.nodes: dict[str, Node] = {}
        self.speeds: set[str] = set()

    def at(self, element: Element) -> str:
        return place(self.where, element.line, element.column)

    def zone(self, zone: Element) -> None:
        """Add the hosts of a zone and of the zones in it."""
        for child in zone.children:
            if child.name in ZONES:
                self.zone(child)
            elif child.name == "host":
                self._add([child.attribute("id", "") or ""], child)
            elif child.name in ("cluster", "cabinet"):
                self._cluster(child)
            elif child.name not in _NETWORK:
                self.notes.unknown(child.name, _KNOWN, self.at(child))

    def _cluster(self, element: Element) -> None:
        """Add the hosts PREFIX number SUFFIX of a cluster; ``radical`` is a list of numbers and ranges."""
        text = re.sub(r"\s", "", element.attribute("radical", "") or "")
        numbers = idset_in(text, self.at(element), self.notes)
        if not text:
            self.notes.fault("a cluster without radical", self.at(element), 'radical="0-15"')
        if len(numbers) + len(self.nodes) > MAX_NODES:
            expected = f"at most {MAX_NODES:,}"
            raise LimitError(f"{len(numbers):,} hosts", where=self.at(element), expected=expected)
        prefix, suffix = element.attribute("prefix", "") or "", element.attribute("suffix", "") or ""
        self._add([f"{prefix}{number}{suffix}" for number in numbers], element)

    def _add(self, hosts: list[str], element: Element) -> None:
        """Add hosts that have the attributes and properties of an element."""
        where = self.at(element)
        pairs = ((prop.attribute("id") or "", prop.attribute("value") or "") for prop in element.all("prop"))
        properties = dict(pairs)
        roles = [role.strip() for role in properties.get("role", "").split(",")]
        hosts = [host for host in hosts if usable_host(host, where, self.notes)]
        if any(role in NOT_FOR_JOBS for role in roles):
            text = f"hosts whose role is {properties['role']}, such as {hosts[0] if hosts else ''}"
            self.notes.left_out(text, where)
            return
        core = element.attribute("core", "1") or "1"
        cores = int(core) if re.fullmatch(r"[0-9]{1,9}", core) and 1 <= int(core) <= MAX_UNITS else 0
        if not cores:
            cores, text = 1, f"{clip(core)!r} is not a number of cores; 1 counts"
            self.notes.fault(text, where, f"1 to {MAX_UNITS:,}")
        self.speeds.add(element.attribute("speed") or element.attribute("power") or "")
        true = [name for name, value in properties.items() if value.lower() == "true" and name]
        names = usable_properties(true, where, self.notes)
        for host in hosts:
            if _MASTER.fullmatch(host):
                self.notes.left_out(f"the host {host}, which runs the scheduler", where)
            elif host in self.nodes:
                self.notes.fault(f"the host {clip(host)!r} occurs twice; the first counts", where)
            else:
                self.nodes[host] = node_of(names, cores=cores)
        if len(self.nodes) > MAX_NODES:
            raise LimitError("too many hosts", where=where, expected=f"at most {MAX_NODES:,}")
