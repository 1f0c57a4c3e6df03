"""`SiteFiles`: the files of a site, each recognised by its content and read by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.check.findings import SiteFault
from simsched.check.stated_nodes import GRAPH, R, StatedMachine, machine_of_graph, machine_of_r
from simsched.errors import ClusterError, ConfigError, FormatError, SimschedError
from simsched.formats.cluster.storage_map import StorageMap, is_storage_map, read_storage_map
from simsched.formats.rfc.idset import Idset
from simsched.simulation.options.config_file import load_toml, queue_document
from simsched.simulation.options.run_config import KEYS, from_document
from simsched.simulation.outages.outages import Outage, read_outages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from simsched.formats.machines.description import Note
    from simsched.graph.resource_graph import ResourceGraph
    from simsched.simulation.queues import Queues
    from simsched.site.site import Site

EXPECTED = "R, JGF, a cluster recipe, TreePool, GRUG, a configuration, outages or a storage map"

_TABLE = re.compile(r"^\s*\[\[?[\w.\"' -]+\]\]?\s*(?:#.*)?$", re.MULTILINE)
_FLUX = ("resource", "rabbit")
"""Tables of Flux that say something about the machine."""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """A configuration: its place and content, and its queues, or the fault for which they cannot be read."""

    where: str
    document: Mapping[str, Any]
    queues: Queues | None = None
    fault: SimschedError | None = None
    outages: tuple[Outage, ...] = ()

    @property
    def excluded(self) -> str:
        """The nodes that Flux withholds from scheduling: an idset of ranks or a hostlist; mostly empty."""
        table = self.document.get("resource")
        value = table.get("exclude", "") if isinstance(table, Mapping) else ""
        return str(value)


@dataclass(slots=True)
class SiteFiles:
    """All that the files of a site say, in the order of the files.

    Attributes
    ----------
    files : name and kind of each file.
    machines : the descriptions of the machine; R with a graph gives two.
    configs : configurations of queues, or of Flux.
    maps : storage maps, with their places.
    outages : outages, with their places.
    faults : descriptions that are well formed and describe no possible machine.
    notes : what an import could not understand.
    """

    files: list[tuple[str, str]] = field(default_factory=list)
    machines: list[StatedMachine] = field(default_factory=list)
    configs: list[SiteConfig] = field(default_factory=list)
    maps: list[tuple[str, StorageMap]] = field(default_factory=list)
    outages: list[tuple[str, tuple[Outage, ...]]] = field(default_factory=list)
    faults: list[SiteFault] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def machine(self) -> StatedMachine | None:
        """The description that a scheduler goes by: a graph rather than R, else the first."""
        graphs = [machine for machine in self.machines if machine.kind == GRAPH]
        return next(iter(graphs or self.machines), None)

    @property
    def excluded_hosts(self) -> frozenset[str]:
        """The hosts that a configuration withholds from scheduling; a graph need not have them."""
        found: set[str] = set()
        for config in self.configs:
            for machine in self.machines:
                found.update(hosts_named(config.excluded, machine))
        return frozenset(found)


def hosts_named(text: str, machine: StatedMachine) -> list[str]:
    """Return the hosts of a text that is an idset of ranks or a hostlist, without ranks that do not exist.

    Raises FormatError for a text of neither form.
    """
    from simsched.formats.rfc.hostlist import Hostlist

    if not re.fullmatch(r"[\d,\-\[\] ]*", text):
        return Hostlist.parse(text, where="resource.exclude").expand()
    of_rank = {node.rank: node.host for node in machine.nodes}
    return [of_rank[rank] for rank in Idset.parse(text.strip("[] ")) if rank in of_rank]


# --- reading --------------------------------------------------------------------------------------


def read_site_files(paths: Iterable[str | Path], site: Site | None = None) -> SiteFiles:
    """Read files of any kind, and the folder of a site.

    Raises
    ------
    ConfigError
        if there is nothing to check.
    FormatError
        for a file that is empty, not well formed, or of an unknown kind; with the place.
    """
    found = SiteFiles()
    if site is not None and site.cluster_file is not None:
        _add_file(found, site.cluster_file)
        _add_config(found, site.config, str(site.cluster_file.parent / "queues.toml"))
        found.files.append((str(site.cluster_file.parent / "queues.toml"), "configuration"))
        found.notes += site.notes
    for path in paths:
        _add_file(found, path)
    if not found.files:
        raise ConfigError("there is nothing to check", where="check", expected="FILE…, or --site DIR")
    return found


def _add_file(found: SiteFiles, path: str | Path) -> None:
    from simsched.formats.text.documents import load_document, name_of, read_text

    where, text = name_of(path), read_text(path)
    if not text.strip():
        raise FormatError("the file is empty", where=where, expected=EXPECTED)
    if text.lstrip("\ufeff \t\r\n")[:1] == "<":
        _add_xml(found, text, where)
    elif _is_toml(text, where):
        _add_document(found, load_toml(text, where), where)
    else:
        _add_document(found, load_document(text, where), where)


def _is_toml(text: str, where: str) -> bool:
    """Whether a text is TOML: by its name, or by a line that is the head of a table."""
    return where.endswith(".toml") or (text.lstrip()[:1] != "{" and bool(_TABLE.search(text)))


def _add_document(found: SiteFiles, document: Any, where: str) -> None:
    if isinstance(document, list) or (isinstance(document, dict) and set(document) == {"outages"}):
        found.outages.append((where, read_outages(document, where)))
        found.files.append((where, "outages"))
    elif is_storage_map(document):
        found.maps.append((where, read_storage_map(document, where)))
        found.files.append((where, "storage map"))
    elif isinstance(document, dict) and document.keys() & {"execution", "scheduling", "graph", "groups"}:
        _add_machine(found, document, where)
    elif isinstance(document, dict) and _is_config(document):
        _add_config(found, document, where)
        found.files.append((where, "configuration"))
    else:
        raise FormatError("this is not a file of a site", where=where, expected=EXPECTED)


def _is_config(document: Mapping[str, Any]) -> bool:
    return any(str(key).replace("_", "-") in KEYS or key in _FLUX for key in document)


def _add_config(found: SiteFiles, document: Mapping[str, Any], where: str) -> None:
    try:
        options = from_document(queue_document(document), where)
    except SimschedError as error:
        found.configs.append(SiteConfig(where, document, fault=error))
        return
    queues, outages = options.get("queues"), tuple(options.get("outages", ()))
    found.configs.append(SiteConfig(where, document, queues, outages=outages))


# --- descriptions of the machine ------------------------------------------------------------------


def _add_xml(found: SiteFiles, text: str, where: str) -> None:
    from simsched.graph.build.cluster_files import graph_from_bytes

    found.files.append((where, "GRUG"))
    _add(found, where, lambda: _other(graph_from_bytes(text.encode(), name=_name(where), where=where), where))


def _add_machine(found: SiteFiles, document: Mapping[str, Any], where: str) -> None:
    """Add the descriptions of one document: R, a graph, both, or one of another format."""
    from simsched.graph.build.cluster_files import graph_from_document

    is_r, has_graph = "execution" in document, _graph_of(document) is not None
    if not is_r and not has_graph:
        found.files.append((where, "recipe"))
        _add(
            found, where, lambda: _other(graph_from_document(document, name=_name(where), where=where), where)
        )
        return
    found.files.append((where, "R with a graph" if is_r and has_graph else R if is_r else "JGF"))
    if is_r:
        _add(found, where, lambda: _from_r(document, where))
    if has_graph:
        place = where if "graph" in document else f"{where}: scheduling.graph"
        _add(found, place, lambda: _from_graph(document, place))


def _name(where: str) -> str:
    from pathlib import Path

    from simsched.bundled import plain_name

    return plain_name(Path(where))


def _graph_of(document: Mapping[str, Any]) -> Any:
    """Return the graph of a document of JGF, or of R's scheduling; None without one."""
    if "graph" in document:
        return document["graph"]
    scheduling = document.get("scheduling")
    return scheduling.get("graph") if isinstance(scheduling, dict) else None


def _add(found: SiteFiles, where: str, make: Callable[[], StatedMachine]) -> None:
    """Add a description; one that is well formed and contradicts itself is a fault, and the others count."""
    try:
        found.machines.append(make())
    except ClusterError as error:
        found.faults.append(SiteFault(where, str(error).removeprefix(f"{where}: ")))


def _other(graph: ResourceGraph, where: str) -> StatedMachine:
    return machine_of_graph(graph, where, "other", ranked=False)


def _from_r(document: Mapping[str, Any], where: str) -> StatedMachine:
    from simsched.formats.cluster.rset import ResourceSet

    plain = {key: value for key, value in document.items() if key != "scheduling"}
    return machine_of_r(ResourceSet.from_dict(plain, where), where, _name(where))


def _from_graph(document: Mapping[str, Any], where: str) -> StatedMachine:
    from simsched.formats.cluster.jgf import jgf_from_object
    from simsched.graph.build.jgf import from_jgf

    jgf = jgf_from_object(_graph_of(document), where=where)
    return machine_of_graph(from_jgf(jgf, name="cluster", where=where), where, GRAPH, ranked=True)
