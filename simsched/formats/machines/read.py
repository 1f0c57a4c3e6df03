"""`read_description`: a site's own files as one description, each recognised by its content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.machines.merging import merge
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.machines.slurm.reservation_lines import on_known_nodes
from simsched.formats.text import sniffing
from simsched.formats.text.input_files import name_of, opener, read_text
from simsched.formats.text.json_text import load_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.machines.description import MachineDescription
    from simsched.formats.text.input_files import OpenFile

HEAD = 65_536
"""The characters at the beginning of a text by which its format is recognised."""

KNOWN = (
    "slurm.conf, scontrol, sinfo --json, a Flux configuration, flux resource list or status, "
    "pbsnodes -a, qmgr, sacctmgr, flux-accounting, hwloc XML or a SimGrid platform"
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


SLURM_QOS_JSON = "sacctmgr show qos --json"
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
    sniffing.SACCTMGR: MachineFormat("limits.sacctmgr", "read_sacctmgr", opens=False),
    sniffing.SACCTMGR_DUMP: MachineFormat("limits.sacctmgr", "read_sacctmgr_dump", opens=False),
    SLURM_QOS_JSON: MachineFormat("limits.sacctmgr", "read_qos_document", opens=False),
    sniffing.FLUX_ACCOUNTING: MachineFormat("limits.flux_accounting", "read_flux_accounting", opens=False),
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
    if isinstance(document.get("QOS", document.get("qos")), list):
        return SLURM_QOS_JSON
    if isinstance(nodes, list) or isinstance(document.get("sinfo"), list | dict):
        return SLURM_JSON
    if any(isinstance(document.get(key), list | dict) for key in ("partitions", "reservations")):
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
        elif len(texts) == 1 and not text.strip():
            raise FormatError("the file is empty", where=name_of(path), expected=KNOWN)
        elif len(texts) == 1:
            raise sniffing.unrecognised(text, name_of(path), "", KNOWN) or FormatError(
                "the format is not recognised", where=name_of(path), expected=KNOWN
            )
        else:
            notes.left_out("the format of this file is not recognised", name_of(path))
    if not any(part.recipe.groups for part in parts):
        fault = next((note for part in parts for note in part.notes if note.kind == "fault"), None)
        if fault is not None:
            raise FormatError(f"no nodes are described; {fault.text}", where=fault.where or None)
        formats = " and ".join(part.format for part in parts) or "nothing"
        where = ", ".join(map(name_of, given))
        raise FormatError(f"no nodes are described, only {formats}", where=where, expected=KNOWN)
    return on_known_nodes(merge(parts, notes), NoteCollector(strict=strict))


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
