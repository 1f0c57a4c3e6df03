"""`read_description`: a site's own files as one description, each recognised by its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.errors import FormatError
from simsched.formats.cluster.recipe import NodeGroup, SwitchTree
from simsched.formats.machines.description import MachineDescription, Note
from simsched.formats.machines.merging import lasting_notes, name_properties
from simsched.formats.machines.node_rows import NodeRow, NoteCollector, groups_of
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.text import sniffing
from simsched.formats.text.excerpts import clip
from simsched.formats.text.input_files import name_of, read_text
from simsched.formats.text.json_text import load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.formats.cluster.recipe import Recipe

OpenFile: TypeAlias = Callable[[str], str]
"""Returns the text of another file that a file names, relative to that file; errors as `read_text`."""

HEAD = 65_536
"""The characters at the beginning of a text by which its format is recognised."""

KNOWN = (
    "slurm.conf, scontrol, sinfo --json, a Flux configuration, flux resource list or status, "
    "pbsnodes -a, qmgr, hwloc XML or a SimGrid platform"
)


@dataclass(frozen=True, slots=True)
class MachineFormat:
    """One format: the module and function that read it; whether it takes `open_file`."""

    module: str
    function: str
    opens: bool = True

    def read(
        self, content: Any, where: str, *, open_file: OpenFile | None, strict: bool
    ) -> MachineDescription:
        """Read a text or document of this format."""
        from importlib import import_module

        function = getattr(import_module(f"simsched.formats.machines.{self.module}"), self.function)
        more = {"open_file": open_file} if self.opens else {}
        description: MachineDescription = function(content, where, strict=strict, **more)
        return description


SLURM_JSON, PBS_JSON, PBS_QUEUES_JSON = "JSON of Slurm", "pbsnodes -F json", "qstat -Qf -F json"
R = "R"
FLUX_JSON, FLUX_STATUS_JSON, FLUX_CONFIG_JSON = (
    "flux resource list",
    "flux resource status",
    "flux config get",
)

FORMATS: dict[str, MachineFormat] = {
    sniffing.SLURM_CONF: MachineFormat("slurm_conf", "read_slurm_conf"),
    sniffing.SCONTROL: MachineFormat("scontrol", "read_scontrol", opens=False),
    SLURM_JSON: MachineFormat("slurm_documents", "read_slurm_document", opens=False),
    sniffing.FLUX_CONFIG: MachineFormat("flux_config", "read_flux_config"),
    FLUX_CONFIG_JSON: MachineFormat("flux_config", "read_flux_document"),
    sniffing.FLUX_LIST: MachineFormat("flux_resources", "read_flux_list", opens=False),
    sniffing.FLUX_STATUS: MachineFormat("flux_resources", "read_flux_status", opens=False),
    FLUX_JSON: MachineFormat("flux_resources", "read_flux_list_document", opens=False),
    FLUX_STATUS_JSON: MachineFormat("flux_resources", "read_flux_status_document", opens=False),
    R: MachineFormat("flux_resources", "read_r", opens=False),
    sniffing.PBSNODES: MachineFormat("pbsnodes", "read_pbsnodes", opens=False),
    PBS_JSON: MachineFormat("pbsnodes", "read_pbsnodes_document", opens=False),
    sniffing.QMGR: MachineFormat("pbs_queues", "read_pbs_queues", opens=False),
    PBS_QUEUES_JSON: MachineFormat("pbs_queues", "read_pbs_queues_document", opens=False),
    sniffing.HWLOC: MachineFormat("hwloc_xml", "read_hwloc", opens=False),
    sniffing.PLATFORM: MachineFormat("batsim_platform", "read_platform", opens=False),
}
"""Kind of text (as `machine_look` names it) or of JSON document → its reader, imported on use."""


def describe_text(
    text: str, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> MachineDescription | None:
    """Return the description that a text is; None if it is none of `FORMATS`."""
    text = text.removeprefix("\ufeff")
    if text[:HEAD].lstrip()[:1] == "{":
        return describe_document(load_json(text, where), where, open_file=open_file, strict=strict)
    found = FORMATS.get(sniffing.machine_look(text[:HEAD]))
    return None if found is None else found.read(text, where, open_file=open_file, strict=strict)


def describe_document(
    document: Any, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> MachineDescription | None:
    """Return the description that a decoded JSON document is; None if it is none of `FORMATS`."""
    kind = _kind_of(document) if isinstance(document, dict) else ""
    return FORMATS[kind].read(document, where, open_file=open_file, strict=strict) if kind else None


def _kind_of(document: dict[str, Any]) -> str:
    """Return the kind of a JSON document by its keys; empty if it is not known."""
    nodes = document.get("nodes")
    if isinstance(nodes, dict):
        return PBS_JSON
    if isinstance(document.get("Queue"), dict):
        return PBS_QUEUES_JSON
    if isinstance(nodes, list) or isinstance(document.get("sinfo"), list | dict):
        return SLURM_JSON
    if isinstance(document.get("partitions"), list | dict):
        return SLURM_JSON
    if _is_r(document):
        return R
    if _is_r(document.get("all")):
        return FLUX_JSON
    if _is_r(document.get("R")):
        return FLUX_STATUS_JSON
    flux = ("resource", "queues") if "groups" not in document else ()
    tables = any(isinstance(document.get(key), dict) and document[key] for key in flux)
    return FLUX_CONFIG_JSON if tables or any(key.startswith("sched-fluxion") for key in document) else ""


def _is_r(value: Any) -> bool:
    return isinstance(value, dict) and "execution" in value


# -- files ----------------------------------------------------------------------------


def read_description(
    path_or_paths: str | Path | Sequence[str | Path], *, strict: bool = False
) -> MachineDescription:
    """Read a site's own files, or folders of them, as one description.

    Several configuration files of Flux are one configuration, as Flux itself reads them.  Otherwise
    the first file with nodes describes them; later ones add the states and properties of these nodes.

    Raises
    ------
    FormatError, ClusterError
        if no file describes nodes, or a file cannot be read; under `strict` also for the first line that
        is not understood.
    """
    paths = [path_or_paths] if isinstance(path_or_paths, str | Path) else path_or_paths
    given = [Path(path) for path in paths]
    notes = NoteCollector(strict=strict)
    texts = [(path, read_text(path, lenient=True)) for path in files_of(given)]
    parts = _flux_parts(texts, strict=strict)
    for path, text in texts:
        if sniffing.machine_look(text[:HEAD]) == sniffing.FLUX_CONFIG:
            continue
        found = describe_text(text, name_of(path), open_file=opener(path), strict=strict)
        if found is not None:
            parts.append(found)
        elif len(texts) == 1:
            raise sniffing.unrecognised(text, name_of(path), "", KNOWN) or FormatError(
                "the format is not recognised", where=name_of(path), expected=KNOWN
            )
        else:
            notes.left_out("the format of this file is not recognised", name_of(path))
    return _combined(parts, notes, ", ".join(map(name_of, given)))


def opener(path: str | Path) -> OpenFile | None:
    """Return the function that opens the files which a file names; None for standard input."""
    if str(path) == "-":
        return None
    folder = Path(path).parent

    def open_file(name: str) -> str:
        return read_text(folder / name, lenient=True)  # an absolute name stays as it is

    return open_file


def files_of(given: Sequence[Path]) -> list[Path]:
    """Return the files of these paths; those of a folder by name, without the parts of a slurm.conf."""
    found: list[Path] = []
    for path in given:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        if any(file.name == "slurm.conf" for file in inside):
            inside = [file for file in inside if file.suffix != ".conf" or file.name == "slurm.conf"]
        if not inside:
            raise FormatError("the folder has no files", where=str(path), expected=KNOWN)
        found += inside
    return found


def _flux_parts(texts: Sequence[tuple[Path, str]], *, strict: bool) -> list[MachineDescription]:
    """Return the description of all configuration files of Flux, if there are any."""
    configs = [
        (name_of(path), text, opener(path))
        for path, text in texts
        if sniffing.machine_look(text[:HEAD]) == sniffing.FLUX_CONFIG
    ]
    if not configs:
        return []
    from simsched.formats.machines.flux_config import read_flux_configs

    return [read_flux_configs(configs, strict=strict)]


# -- several descriptions of one machine ------------------------------------------------


def _combined(parts: Sequence[MachineDescription], notes: NoteCollector, where: str) -> MachineDescription:
    """Return one description: nodes of the first part that has cores, more facts of the others."""
    ordered = sorted(parts, key=lambda part: not any(group.cores for group in part.recipe.groups))
    if not ordered or not any(part.recipe.groups for part in ordered):
        formats = " and ".join(part.format for part in parts) or "nothing"
        raise FormatError(f"no nodes are described, only {formats}", where=where, expected=KNOWN)
    base = ordered[0]
    if len(ordered) == 1:
        return replace(base, notes=(*base.notes, *notes.notes()))
    rows = {row.host: row for row in rows_of(base.recipe)}
    for part in ordered[1:]:
        _add_rows(rows, part, base.format, notes)
    config: dict[str, Any] = {}
    for part in ordered:
        config = _merged(config, part.config)
    config = _name_queues(config, rows, notes)
    whole = {key: _first_stated(ordered, key) for key in ("name", "pools", "power")}
    network = _network_of(ordered, rows)
    return MachineDescription(
        recipe=replace(base.recipe, groups=groups_of(rows.values()), network=network, **whole),
        config=config,
        notes=(*(note for part in parts for note in lasting_notes(part, parts)), *notes.notes()),
        format=", ".join(dict.fromkeys(part.format for part in ordered)),
        cpus_per_core=base.cpus_per_core,
    )


def _name_queues(config: dict[str, Any], rows: dict[str, NodeRow], notes: NoteCollector) -> dict[str, Any]:
    """Return a configuration whose queues require a property of their nodes instead of listing hosts."""
    queues = {name: dict(queue) for name, queue in config.get("queues", {}).items()}
    if not any("hosts" in queue for queue in queues.values()):
        return config
    unnamed = NodeGroup(name="", hosts=())  # the inside of the nodes does not matter here
    nodes = {host: (unnamed, row.properties, row.status) for host, row in rows.items()}
    found: list[Note] = []
    name_properties(queues, nodes, found)
    for note in found:
        (notes.fault if note.kind == "fault" else notes.assumed)(note.text)
    for host, (_, properties, _) in nodes.items():
        rows[host] = replace(rows[host], properties=properties)
    return {**config, "queues": queues}


def _first_stated(parts: Sequence[MachineDescription], key: str) -> Any:
    """Return a fact of the whole machine from the first description that states it."""
    values = [getattr(part.recipe, key) for part in parts]
    return next(filter(None, values), values[0])


def _network_of(parts: Sequence[MachineDescription], hosts: Mapping[str, NodeRow]) -> Any:
    """Return the first network, with the switches joined only to nodes that exist."""
    network = _first_stated(parts, "network")
    if not isinstance(network, SwitchTree):
        return network
    known = (replace(s, hosts=tuple(host for host in s.hosts if host in hosts)) for s in network.switches)
    return replace(network, switches=tuple(known))


def _merged(first: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return two configurations as one; of a value in both, the first counts."""
    both = dict(more)
    for key, value in first.items():
        inner = both.get(key)
        both[key] = _merged(value, inner) if isinstance(value, dict) and isinstance(inner, dict) else value
    return both


def _add_rows(rows: dict[str, NodeRow], part: MachineDescription, first: str, notes: NoteCollector) -> None:
    """Add the nodes of a file of the same format, or the states and properties of nodes that are known."""
    unlike: dict[str, list[str]] = {}
    unknown: list[str] = []
    for row in rows_of(part.recipe):
        known = rows.get(row.host)
        if known is None and part.format == first:
            rows[row.host] = row
        elif known is None and row.status == "up":  # a list leaves out nodes that are excluded
            unknown.append(row.host)
        elif known is not None:
            for difference in _differences(known, row):
                unlike.setdefault(difference, []).append(row.host)
            both = tuple(dict.fromkeys((*known.properties, *row.properties)))
            status = row.status if known.status == "up" else known.status
            rows[row.host] = replace(known, properties=both, status=status)
    if unknown:
        notes.fault(f"nodes of {part.format} that {first} does not have: {clip(encode_hosts(unknown))}")
    for difference, hosts in unlike.items():
        notes.fault(f"{encode_hosts(hosts)}: {difference} in {first}, which counts", part.format)


def _differences(known: NodeRow, row: NodeRow) -> Iterator[str]:
    """Yield the amounts in which two descriptions of a node differ; an amount that is missing is none."""
    for kind, first, second in (
        ("cores", known.cores, row.cores),
        ("gpus", known.gpus, row.gpus),
        ("memory", _memory(known), _memory(row)),
    ):
        if first and second and first != second:
            yield f"{second} {kind}, but {first}"


def _memory(row: NodeRow) -> str:
    return next((f"{p.amount.size} {p.amount.unit}" for p in row.pools if p.type == "memory"), "")


def rows_of(recipe: Recipe) -> Iterable[NodeRow]:
    """Yield the nodes of a recipe's groups one by one."""
    for group in recipe.groups:
        for host in group.hosts:
            status = "drained" if host in group.drained else "down" if host in group.down else group.status
            yield NodeRow(
                host=host,
                cores=group.cores,
                gpus=group.gpus,
                core_ids=group.core_ids,
                gpu_ids=group.gpu_ids,
                locality=group.locality,
                pools=group.pools,
                properties=group.properties,
                status=status,
            )
