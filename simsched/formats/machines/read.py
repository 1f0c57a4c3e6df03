"""`read_description`: a site's own files as one description, each recognised by its content."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, SimschedError
from simsched.formats.machines import recognition
from simsched.formats.machines.merging import merge
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.machines.slurm.reservation_lines import on_known_nodes
from simsched.formats.text import json_outline
from simsched.formats.text.decompression import opened
from simsched.formats.text.excerpts import clip
from simsched.formats.text.input_files import name_of, opener, read_text, text_of_bytes
from simsched.formats.text.json_text import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.description import MachineDescription
    from simsched.formats.text.input_files import OpenFile

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


FORMATS: dict[str, MachineFormat] = {
    recognition.SLURM_CONF: MachineFormat("slurm_conf", "read_slurm_conf"),
    recognition.SCONTROL: MachineFormat("scontrol", "read_scontrol", opens=False),
    recognition.SLURM_JSON: MachineFormat("slurm_documents", "read_slurm_document", opens=False),
    recognition.FLUX_CONFIG: MachineFormat("flux_config", "read_flux_config"),
    recognition.FLUX_CONFIG_JSON: MachineFormat("flux_config", "read_flux_document"),
    recognition.FLUX_LIST: MachineFormat("flux_resources", "read_flux_list", opens=False),
    recognition.FLUX_STATUS: MachineFormat("flux_resources", "read_flux_status", opens=False),
    recognition.FLUX_JSON: MachineFormat("flux_resources", "read_flux_list_document", opens=False),
    recognition.FLUX_STATUS_JSON: MachineFormat("flux_resources", "read_flux_status_document", opens=False),
    recognition.R: MachineFormat("flux_resources", "read_r", opens=False),
    recognition.PBSNODES: MachineFormat("pbsnodes", "read_pbsnodes", opens=False),
    recognition.PBS_JSON: MachineFormat("pbsnodes", "read_pbsnodes_document", opens=False),
    recognition.QMGR: MachineFormat("pbs_queues", "read_pbs_queues", opens=False),
    recognition.PBS_QUEUES_JSON: MachineFormat("pbs_queues", "read_pbs_queues_document", opens=False),
    recognition.SACCTMGR: MachineFormat("limits.sacctmgr", "read_sacctmgr", opens=False),
    recognition.SACCTMGR_DUMP: MachineFormat("limits.sacctmgr", "read_sacctmgr_dump", opens=False),
    recognition.SLURM_LIMITS_JSON: MachineFormat("limits.sacctmgr", "read_limits_document", opens=False),
    recognition.FLUX_ACCOUNTING: MachineFormat("limits.flux_accounting", "read_flux_accounting", opens=False),
    recognition.HWLOC: MachineFormat("hwloc_xml", "read_hwloc", opens=False),
    recognition.PLATFORM: MachineFormat("batsim_platform", "read_platform", opens=False),
}
"""Kind of text (`recognition.machine_parts`) or of JSON document → its reader, imported on use."""


def describe_text(
    text: str, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> MachineDescription | None:
    """Return the description that a text is, all parts of it together; None if it is none of `FORMATS`."""
    documents, rest = json_outline.json_parts(text.removeprefix("\ufeff"))
    found = [
        described
        for part in documents
        if (described := describe_document(load_json(part, where), where, open_file=open_file, strict=strict))
    ]
    found += _described(recognition.machine_parts(rest), where, open_file, strict=strict)
    return merge(found) if found else None


def describe_document(
    document: Any, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> MachineDescription | None:
    """Return the description that a decoded JSON document is; None if it is none of `FORMATS`."""
    if not isinstance(document, dict):
        return None
    kind = recognition.document_kind(json_outline.outline_of(document))
    return FORMATS[kind].read(document, where, open_file=open_file, strict=strict) if kind else None


def _described(
    parts: Mapping[str, str], where: str, open_file: OpenFile | None, *, strict: bool
) -> list[MachineDescription]:
    """Return the descriptions of the parts of one text, each read by its own reader."""
    notes = NoteCollector(strict=strict)
    found = []
    for kind, part in parts.items():
        if kind in FORMATS:
            found.append(FORMATS[kind].read(part, where, open_file=open_file, strict=strict))
        else:
            notes.left_out(f"{kind}: {recognition.BESIDE[kind]}", where)
    more = notes.notes()
    return [*found[:-1], replace(found[-1], notes=(*found[-1].notes, *more))] if found and more else found


# -- files ----------------------------------------------------------------------------


@dataclass(slots=True)
class SiteInputs:
    """The files of a site, sorted out by what they are.

    described : the files that describe machine and queues, with their texts.
    logs, accounts : logs of jobs, and files of accounts, some of which have limits and are described, too.
    left : (folder, reason) → the files of it that are not read.
    """

    described: list[tuple[Path, str]] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    accounts: list[Path] = field(default_factory=list)
    left: dict[tuple[str, str], list[Path]] = field(default_factory=dict)

    def leave(self, path: Path, reason: str) -> None:
        """Note that a file of a folder is not read."""
        self.left.setdefault((str(path.parent), reason), []).append(path)


_COPY = re.compile(
    r"(?:\.(?:(?:bak|bk|backup|back|old|original|orig|saved?|sav|previous|prev|copy|disabled|off|swp|tmp|new|dist|"
    r"example|sample|template)\d*+|rpm(?:save|new|orig)|(?:dpkg|ucf)-\w++|pac(?:new|save)|gz|xz|bz2|zst|zip|v\d++|"
    r"\d[\w.:-]*+|[a-z]{0,4}\d{6,}\w*+|~\d+~)|[-_.]\d{4,}[\w-]*+|~)++\Z",
    re.IGNORECASE,
)
"""The ends of names of old copies: ``slurm.conf.bak``, ``.rpmsave``, ``.2024-01-31``, ``~``."""
OLD_COPY = "old copies are not read"
ONLY_CONF = "Slurm reads slurm.conf and the files that it includes, not these"
ONLY_TOML = "Flux reads the files *.toml of a folder, not these"
SHARES_APART = "the shares of accounts are read from a file of their own alone"
UNKNOWN = "the format is not recognised"


def sort_out(given: Sequence[Path]) -> SiteInputs:
    """Return the files of these paths, and of the folders among them by name, each looked at once.

    Of a folder, as much is read as its own program reads: slurm.conf with the files that it names, or the
    files ``*.toml`` of Flux; old copies are left aside; and the output of commands is read.

    Raises
    ------
    FormatError
        for a folder without files, and a given file that cannot be read.
    """
    from simsched.formats.accounts import looks_like_accounts

    found = SiteInputs()
    listed = [(path, file) for path in given for file in (_inside(path, found) if path.is_dir() else [path])]
    names = {file for _, file in listed}
    for path, file in listed:
        inner = file != path  # of a folder, which may have anything
        if len(listed) > 1 and _is_log(file):
            found.logs.append(file)
            continue
        try:
            text = read_text(file, lenient=True)
        except SimschedError as error:
            if not inner:
                raise
            found.leave(file, error.message)
            continue
        kinds = kinds_of(text)
        is_accounts = looks_like_accounts(text)
        if is_accounts:
            found.accounts.append(file)
        elif any(map(looks_like_accounts, kinds.values())):
            found.leave(file, SHARES_APART)
        beside = {other.name for other in names if other.parent == file.parent}
        is_conf = recognition.SLURM_CONF in kinds and recognition.SCONTROL not in kinds
        is_toml = recognition.FLUX_CONFIG in kinds
        if inner and is_conf and file.name != "slurm.conf" and "slurm.conf" in beside:
            found.leave(file, ONLY_CONF)
        elif inner and is_toml and file.suffix != ".toml" and any(name.endswith(".toml") for name in beside):
            found.leave(file, ONLY_TOML)
        elif kinds or not (inner or is_accounts):
            found.described.append((file, text))
        elif not is_accounts:
            found.leave(file, _why_not(text))
    return found


def _inside(folder: Path, found: SiteInputs) -> list[Path]:
    """Return the files of a folder by name, without hidden ones and old copies of the others."""
    inside = [file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")]
    inside.sort(key=lambda file: (file.name != "slurm.conf", file.name))  # its nodes are those of the site
    if not inside:
        raise FormatError("the folder has no files", where=str(folder), expected=KNOWN)
    kept = []
    for file in inside:
        current = _COPY.sub("", file.name.strip("#"))
        if current != file.name and (folder / current).is_file():
            found.leave(file, OLD_COPY)
        else:
            kept.append(file)
    return kept


def _why_not(text: str) -> str:
    """Return why a text is not read: what it is, if that is known."""
    look = recognition.look_of(text)
    if look is None:
        return UNKNOWN
    if look.advice:
        return f"{look.what}: {look.advice}"
    return f"{look.what}, which is {f'a {look.role}, not' if look.role else 'not'} a description of a site"


def kinds_of(text: str) -> dict[str, str]:
    """Return the kinds of site files that a text has, with the part of each."""
    documents, rest = json_outline.json_parts(text.removeprefix("\ufeff"))
    found = {recognition.document_kind(json_outline.outline(part)): part for part in documents}
    return {kind: part for kind, part in found.items() if kind} | recognition.machine_parts(rest)


def _is_log(path: Path) -> bool:
    """Whether a file is a log of jobs, by its beginning; a file that cannot be read is none."""
    if path.suffix == ".parquet":
        return True
    try:
        with opened(path) as stream:
            head = stream.read(json_outline.HEAD)
        look = recognition.look_of(text_of_bytes(head, "", lenient=True), first=recognition.CLUSTER)
        if look is not None and look.what == recognition.SCONTROL_JOBS:  # nodes may follow
            look = recognition.look_of(read_text(path, lenient=True), first=recognition.CLUSTER)
    except SimschedError:
        return False
    return look is not None and look.role == recognition.WORKLOAD


def read_description(
    path_or_paths: str | Path | Sequence[str | Path], *, strict: bool = False
) -> MachineDescription:
    """Read a site's own files, or folders of them, as one description; see `describe_inputs`."""
    paths = [path_or_paths] if isinstance(path_or_paths, str | Path) else path_or_paths
    return describe_inputs(sort_out([Path(path) for path in paths]), strict=strict)


def describe_inputs(inputs: SiteInputs, *, strict: bool = False) -> MachineDescription:
    """Return the description that files of a site make together.

    Several configuration files of Flux are one configuration, as Flux itself reads them.  Otherwise
    the first file with nodes describes them; later ones add the states and properties of these nodes.

    Raises
    ------
    FormatError, ClusterError
        if no file describes nodes, or a file cannot be read; under `strict` also for the first line that
        is not understood.
    """
    notes = NoteCollector(strict=strict)
    taken: set[Path] = set()  # the files that other files name
    read: list[tuple[Path, MachineDescription]] = []
    configs, unused = [], []
    for path, text in inputs.described:
        where, open_file = name_of(path), _noting(path, taken)
        if recognition.FLUX_CONFIG in (kinds := kinds_of(text)):
            configs.append((where, text, open_file))
            continue
        found = describe_text(text, where, open_file=open_file, strict=strict)
        if found is not None:
            read.append((path, found))
        elif len(inputs.described) == 1:
            raise _nothing(text, where)
        else:
            beside = [f"{kind}: {recognition.BESIDE[kind]}" for kind in kinds]
            unused.append((path, "; ".join(beside) or _why_not(text)))
    for path, reason in unused:
        if path.resolve() not in taken:
            notes.left_out(reason, name_of(path), cause=name_of(path))
    parts = [part for path, part in read if path.resolve() not in taken]
    if configs:
        from simsched.formats.machines.flux_config import read_flux_configs

        parts.insert(0, read_flux_configs(configs, strict=strict))
    taken.update(path.resolve() for path, _ in read)  # a copy may be what a link points to
    for (folder, reason), files in inputs.left.items():
        unread = [file for file in files if reason == SHARES_APART or file.resolve() not in taken]
        names = ", ".join(clip(file.name, 60) for file in unread)
        if names:
            notes.left_out(f"{reason}: {clip(names, 1000)}", folder)
    if not any(part.recipe.groups for part in parts):
        alone = [file for files in inputs.left.values() for file in files]
        if len(alone) == 1 and not inputs.described:
            raise _nothing(read_text(alone[0], lenient=True), name_of(alone[0]))
        where = ", ".join(
            clip(name_of(path), 200) for path in [path for path, _ in inputs.described] or alone
        )
        raise lacking(parts, where)
    whole = merge(parts, notes)
    more = NoteCollector(strict=strict)
    if configs:  # that the partitions of Slurm have nodes is known with their own places
        for name, queue in whole.config.get("queues", {}).items():
            wanted = set(queue.get("requires", ()))
            if not any(wanted <= set(group.properties) for group in whole.recipe.groups):
                text = f"queue {clip(name)}: no node has {', '.join(sorted(wanted))}: its jobs never start"
                more.assumed(text)
    return on_known_nodes(replace(whole, notes=(*whole.notes, *more.notes())), NoteCollector(strict=strict))


def _noting(path: Path, taken: set[Path]) -> OpenFile | None:
    """Return the function that opens the files which a file names, and adds them to `taken`."""
    open_file = opener(path)
    if open_file is None:
        return None

    def noted(name: str) -> str:
        text = open_file(name)
        taken.add((path.parent / name).resolve())
        return text

    return noted


def _nothing(text: str, where: str) -> FormatError:
    """Return the error for the only file, which is none of a site."""
    if not text.strip():
        return FormatError("the file is empty", where=where, expected=KNOWN)
    return recognition.unrecognised(text, where, "", KNOWN) or FormatError(
        "the format is not recognised", where=where, expected=KNOWN
    )


_NODES_FROM = {
    "scontrol": "the output of scontrol show node as well",
    "Slurm's JSON": "the nodes as well, from scontrol show node --json, sinfo --json or slurm.conf",
    "sacctmgr": "slurm.conf or the output of scontrol show node as well",
    "slurm.conf": "NodeName=… lines, or the output of scontrol show node as well",
    "qmgr": "the output of pbsnodes -a as well",
}


def lacking(parts: Sequence[MachineDescription], where: str) -> FormatError:
    """Return the error for files that describe no nodes: what they have, and which command is missing."""
    fault = next((note for part in parts for note in part.notes if note.kind == "fault"), None)
    if fault is not None:
        return FormatError(f"no nodes are described; {fault.text}", where=fault.where or None)
    formats = " and ".join(part.format for part in parts) or "nothing"
    expected = next((_NODES_FROM[part.format] for part in parts if part.format in _NODES_FROM), KNOWN)
    return FormatError(f"no nodes are described, only {formats}", where=where, expected=expected)
