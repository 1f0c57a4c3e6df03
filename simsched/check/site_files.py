"""`SiteFiles`: the files of a site, each recognised by its content and read by itself.

Each description of the machine becomes a graph, and its nodes are those of the graph, the same for R, JGF and
every other format.  R that holds a graph is two descriptions, which may contradict each other: each is read
by itself, where `graph.build.r_with_graph` would refuse the document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.bundled import bundled, plain_name
from simsched.errors import ClusterError, ConfigError, FormatError, LimitError, SimschedError
from simsched.formats.cluster.jgf import jgf_from_object
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.cluster.storage_map import StorageMap, is_storage_map, read_storage_map
from simsched.formats.machines.description import MachineDescription, Note, NoteCollector
from simsched.formats.machines.flux_config import TABLES, merged_tables, read_flux_configs
from simsched.formats.machines.read import describe_document, describe_text, kinds_of, read_parts, understood
from simsched.formats.machines.recognition import CLUSTER, SLURM_KINDS, unrecognised
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.rfc.units import is_unit, unit_of
from simsched.formats.text.documents import load_document, name_of, opener, read_text
from simsched.formats.text.toml_text import load_toml
from simsched.graph.build.cluster_files import graph_from_bytes, graph_from_document
from simsched.graph.build.jgf import from_jgf
from simsched.graph.build.recipe import from_recipe
from simsched.graph.build.rset import from_rset
from simsched.graph.cluster import SITE_FILES, SITE_QUEUES, Cluster
from simsched.graph.resource_graph import children_map, containment_root, execution_targets, inside, pool_of
from simsched.simulation.options.config_file import queue_document
from simsched.simulation.options.run_config import KEYS, from_document
from simsched.simulation.outages.outages import Outage, read_outages
from simsched.site.site_folder import load_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from simsched.graph.resource_graph import ResourceGraph
    from simsched.simulation.queues import Queues
    from simsched.site.site import Site

    SiteText = tuple[str | Path, str, str]
    """The path, the name and the text of a file."""


R, GRAPH, OTHER = "R", "graph", "other"
"""The kinds of descriptions: R and graphs state ranks."""

COUNTED = ("core", "gpu")
"""Types that every description counts, also where they have parts (hardware threads)."""


@dataclass(frozen=True, slots=True)
class StatedNode:
    """One node as a description states it.

    `rank` is None where the description has no ranks.  `units` are those of each type below it, in bytes
    and other base units where a graph has units.
    """

    host: str
    rank: int | None
    properties: frozenset[str]
    units: Mapping[str, int]


@dataclass(frozen=True)
class StatedMachine:
    """One description: its place, its kind, and its cluster."""

    where: str
    kind: str
    cluster: Cluster

    @cached_property
    def nodes(self) -> tuple[StatedNode, ...]:
        """The execution targets, and the vertices with a rank of their own that are outside of them."""
        graph = self.cluster.graph
        below = children_map(graph)
        targets, assigned = set(execution_targets(graph, below)), graph.graph.get("assigned_ranks", ())
        found, stack = [], [containment_root(graph)]
        while stack:
            vertex = stack.pop()
            pool = pool_of(graph, vertex)
            if vertex not in targets and pool.rank is None:
                stack.extend(reversed(below.get(vertex, ())))
                continue
            rank = None if self.kind == OTHER or vertex in assigned else pool.rank
            # names as R writes them: without those that Fluxion makes itself, which begin with +
            names = frozenset(name for name in pool.properties if not name.startswith("+"))
            found.append(StatedNode(pool.name, rank, names, _units(graph, vertex, below)))
        return tuple(found)

    @cached_property
    def by_host(self) -> Mapping[str, StatedNode]:
        """The nodes by host; of several on one host, the first."""
        found: dict[str, StatedNode] = {}
        for node in self.nodes:
            found.setdefault(node.host, node)
        return found

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """The units of each type on all nodes."""
        found: Counter[str] = Counter()
        for node in self.nodes:
            found.update(node.units)
        return found


def _units(graph: ResourceGraph, vertex: str, below: Mapping[str, list[str]]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for within in inside(below, vertex):
        pool = pool_of(graph, within)
        if within not in below or pool.type in COUNTED:
            factor = int(unit_of(pool.unit).factor) if is_unit(pool.unit) else 1
            found[pool.type] += pool.size * factor
    return found


EXPECTED = "R, JGF, a cluster recipe, a site's own file, a configuration, outages or a storage map"

_TABLE = re.compile(r"^\s*\[\[?[\w.\"' -]+\]\]?\s*(?:#.*)?$", re.MULTILINE)
_FLUX = ("resource", "rabbit")
"""Tables of Flux that say something about the machine."""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """A configuration: its place and content, its queues or the fault in them.

    places : the file and line of each path in it, if they are known.
    withheld : the hosts that it excludes, if it is a configuration of Flux that also lists all nodes.
    """

    where: str
    document: Mapping[str, Any]
    queues: Queues | None = None
    fault: SimschedError | None = None
    outages: tuple[Outage, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    withheld: tuple[str, ...] | None = None

    def place(self, path: str) -> str:
        """Return the place of a key by its path, ``queues.debug.requires``, with its line if it is known."""
        keys = path.split(".")
        known = (".".join(keys[:n]) for n in range(len(keys), 0, -1))
        return f"{next((self.places[key] for key in known if key in self.places), self.where)}: {path}"

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
    faults : descriptions (place, sentence) that are well formed and describe no possible machine.
    notes : what an import could not understand.
    excluded_hosts : the hosts that a configuration withholds from scheduling; a graph need not have them.
    """

    files: list[tuple[str, str]] = field(default_factory=list)
    machines: list[StatedMachine] = field(default_factory=list)
    configs: list[SiteConfig] = field(default_factory=list)
    maps: list[tuple[str, StorageMap]] = field(default_factory=list)
    outages: list[tuple[str, tuple[Outage, ...]]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    excluded_hosts: frozenset[str] = frozenset()

    @property
    def machine(self) -> StatedMachine | None:
        """The description that a scheduler goes by: a graph rather than R, else the first."""
        graphs = [machine for machine in self.machines if machine.kind == GRAPH]
        return next(iter(graphs or self.machines), None)


def ranks_named(text: str) -> Idset | None:
    """Return the ranks of a text that is an idset; None for a hostlist."""
    return Idset.parse(text.strip("[] ")) if re.fullmatch(r"[\d,\-\[\] ]*", text) else None


def hosts_named(text: str, machine: StatedMachine) -> list[str]:
    """Return the hosts of a text that is an idset of ranks or a hostlist, without ranks that do not exist.

    Raises FormatError for a text of neither form.
    """
    ranks = ranks_named(text)
    if ranks is None:
        return Hostlist.parse(text, where="resource.exclude").expand()
    return [node.host for node in machine.nodes if node.rank is not None and node.rank in ranks]


# --- reading --------------------------------------------------------------------------------------


def read_site_files(paths: Iterable[str | Path], site: Site | str | Path | None = None) -> SiteFiles:
    """Read files of any kind, and the folder of a site.

    Raises
    ------
    ConfigError
        if there is nothing to check.
    FormatError
        for a file that is empty, not well formed, or of an unknown kind; with the place.
    """
    found = SiteFiles()
    if isinstance(site, str | Path):
        _add_folder(found, Path(site))
    elif site is not None:
        found.files.append((site.name, "site"))
        _add(found, site.name, OTHER, lambda: site.cluster.graph)
        _add_config(found, site.config, site.name)
        found.notes += site.notes
    texts = [(path, *_text_of(path)) for path in paths]
    configs = [file for file in texts if _is_toml(file[2], file[1])]
    # several files with tables of Flux alone are one configuration of Flux
    together = [
        file for file in configs if len(configs) == 1 or load_toml(file[2], file[1]).keys() <= set(TABLES)
    ]
    joined, parts = _of_slurm([file for file in texts if file not in configs])
    for file in texts:
        where = file[1]
        if file in together:
            if file == together[0]:
                _add_toml(found, together)
        elif where in joined:
            _add_description(found, joined[where], where)
        elif where in parts:
            found.files.append((where, parts[where]))
        else:
            _add_file(found, *file)
    if not found.files:
        raise ConfigError("there is nothing to check", where="check", expected="FILE…, or --site DIR")
    excluded: set[str] = set()
    for config in found.configs:
        excluded.update(config.withheld or ())
        for machine in found.machines if config.withheld is None else ():
            with suppress(FormatError):  # its own rule reports the text
                excluded.update(hosts_named(config.excluded, machine))
    found.excluded_hosts = frozenset(excluded)
    return found


def _add_folder(found: SiteFiles, folder: Path) -> None:
    """Add the files of a site's folder one by one, since `load_site` refuses a configuration with a fault."""
    files = [folder / name for name in (*SITE_FILES, SITE_QUEUES) if (folder / name).is_file()]
    if len(files) != 2 or files[-1].name != SITE_QUEUES:
        load_site(folder)  # raises the error that names the missing file
    machine, queues = files
    _add_file(found, machine, *_text_of(machine))
    _add_toml(found, [(queues, str(queues), read_text(queues))])
    with suppress(SimschedError):  # a fault of the configuration is found by its rule
        found.notes += load_site(folder).notes


def _text_of(path: str | Path) -> tuple[str, str]:
    """Return the name and the text of a file, or of a bundled cluster."""
    if str(path) in bundled("clusters") and not Path(path).exists():
        path = bundled("clusters")[str(path)]
    where, text = name_of(path), read_text(path)
    if not text.strip():
        raise FormatError("the file is empty", where=where, expected=EXPECTED)
    return where, text


def _add_file(found: SiteFiles, path: str | Path, where: str, text: str) -> None:
    begin = text.lstrip("\ufeff \t\r\n")[:1]
    if _is_toml(text, where):
        _add_toml(found, [(path, where, text)])
    elif begin != "{" and (described := describe_text(text, where, open_file=opener(path))) is not None:
        _add_description(found, described, where)
    elif begin == "<":
        found.files.append((where, "GRUG"))
        _add(found, where, OTHER, lambda: graph_from_bytes(text.encode(), name=_name(where), where=where))
    else:
        try:
            document = load_document(text, where)
        except LimitError:
            raise
        except FormatError as error:
            raise unrecognised(text, where, CLUSTER, EXPECTED) or error from None
        _add_document(found, path, where, text, document)


def _add_document(found: SiteFiles, path: str | Path, where: str, text: str, document: Any) -> None:
    """Add a JSON or YAML document."""
    if _is_config(document):
        lists_nodes = _has_nodes(document)
        described = describe_document(document, where, open_file=opener(path)) if lists_nodes else None
        found.files.append((where, "configuration"))
        _add_config(found, document, where, described)
    elif isinstance(document, list) and document:
        found.outages.append((where, read_outages(document, where)))
        found.files.append((where, "outages"))
    elif is_storage_map(document):
        found.maps.append((where, read_storage_map(document, where)))
        found.files.append((where, "storage map"))
    elif isinstance(document, dict) and document.keys() & {"execution", "scheduling", "graph", "groups"}:
        _add_machine(found, document, where)
    elif (described := describe_document(document, where, open_file=opener(path))) is not None:
        _add_description(found, described, where)
    else:
        fault = FormatError("this is not a file of a site", where=where, expected=EXPECTED)
        raise unrecognised(text, where, "", EXPECTED) or fault


def _of_slurm(files: Sequence[SiteText]) -> tuple[dict[str, MachineDescription], dict[str, str]]:
    """Return the first file of Slurm with nodes, joined with those without, and the formats of these."""
    found = {
        where: parts
        for path, where, text in files
        if SLURM_KINDS & kinds_of(text).keys() and (parts := read_parts(text, where, open_file=opener(path)))
    }
    described = {where: understood(parts) for where, parts in found.items()}
    first = next((where for where, one in described.items() if one.recipe.groups), None)
    formats = {where: one.format for where, one in described.items() if not one.recipe.groups}
    if first is None or not formats:
        return {}, {}
    return {first: understood([part for where in (first, *formats) for part in found[where]])}, formats


def _add_toml(found: SiteFiles, files: Sequence[SiteText]) -> None:
    """Add the TOML files (path, name, text) of one configuration."""
    document, places = merged_tables([(where, text) for _, where, text in files], NoteCollector())
    names = ", ".join(where for _, where, _ in files)
    if not _is_config(document):
        raise FormatError("this is not a configuration", where=names, expected=EXPECTED)
    described = None
    if _has_nodes(document):
        opened = [(where, text, opener(path)) for path, where, text in files]
        described = understood([read_flux_configs(opened, NoteCollector())])
    found.files += [(where, "configuration") for _, where, _ in files]
    _add_config(found, document, names, described, places)


def _is_toml(text: str, where: str) -> bool:
    """Whether a text is TOML: by its name, or by a line that is the head of a table."""
    return where.endswith(".toml") or (text.lstrip()[:1] != "{" and bool(_TABLE.search(text)))


def _is_config(document: Any) -> bool:
    """Whether a document has the keys of a configuration; one without keys states no queues."""
    return isinstance(document, dict) and (
        not document or any(str(key).replace("_", "-") in KEYS or key in _FLUX for key in document)
    )


def _has_nodes(document: Mapping[str, Any]) -> bool:
    """Whether a configuration is one of Flux that lists nodes."""
    resource = document.get("resource")
    return isinstance(resource, Mapping) and not resource.keys().isdisjoint(("config", "path"))


def _add_description(found: SiteFiles, described: MachineDescription, where: str) -> None:
    """Add a site's own file: its nodes, its queues, and the lines that were not understood."""
    found.files.append((where, described.format))
    _add_nodes(found, described, where)
    if described.config:
        _add_config(found, described.config, where)


def _add_nodes(found: SiteFiles, described: MachineDescription, where: str) -> None:
    found.notes += described.notes
    if described.recipe.groups:
        _add(found, where, OTHER, lambda: from_recipe(described.recipe, name=_name(where)))


def _add_config(
    found: SiteFiles,
    document: Mapping[str, Any],
    where: str,
    described: MachineDescription | None = None,
    places: Mapping[str, str] | None = None,
) -> None:
    """Add a configuration, ours or that of Flux; the nodes of the latter are a description of the machine."""
    if described is not None:
        _add_nodes(found, described, where)
    withheld = None if described is None or not described.recipe.groups else described.excluded
    config = SiteConfig(where, document, places=places or {}, withheld=withheld)
    try:
        options = from_document(queue_document(document), where)
        queues, outages = options.get("queues"), tuple(options.get("outages", ()))
        config = replace(config, queues=queues, outages=outages)
    except SimschedError as error:
        config = replace(config, fault=error)
    found.configs.append(config)


def _add_machine(found: SiteFiles, document: Mapping[str, Any], where: str) -> None:
    """Add the descriptions of one document: R, a graph, both, or a recipe."""
    scheduling = document.get("scheduling")
    inner = scheduling.get("graph") if isinstance(scheduling, dict) else None
    is_r, graph = "execution" in document, document.get("graph", inner)
    if not is_r and graph is None:
        found.files.append((where, "recipe"))
        _add(found, where, OTHER, lambda: graph_from_document(document, name=_name(where), where=where))
        return
    found.files.append((where, "JGF" if not is_r else R if graph is None else "R with a graph"))
    if is_r:
        plain = {key: value for key, value in document.items() if key != "scheduling"}
        _add(found, where, R, lambda: from_rset(ResourceSet.from_dict(plain, where), name=_name(where)))
    if graph is not None:
        place = where if "graph" in document else f"{where}: scheduling.graph"
        _add(found, place, GRAPH, lambda: from_jgf(jgf_from_object(graph, where=place), where=place))


def _add(found: SiteFiles, where: str, kind: str, make: Callable[[], ResourceGraph]) -> None:
    """Add a description; one that is well formed and contradicts itself is a fault, and the others count."""
    try:
        found.machines.append(StatedMachine(where, kind, Cluster(make())))
    except ClusterError as error:
        found.faults.append((where, str(error).removeprefix(f"{where}: ")))


def _name(where: str) -> str:
    return plain_name(Path(where))
