"""`describe_inputs`: a site's own files, each recognised and parsed, as one description."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, SimschedError, clip
from simsched.formats.cluster.recipe import MAX_NODES, Recipe
from simsched.formats.machines import recognition
from simsched.formats.machines.description import Content, MachineDescription, NoteCollector
from simsched.formats.machines.site_facts import Node, SiteFacts, grouped, joined, name_queues
from simsched.formats.machines.slurm.notation import EVERY_NODE
from simsched.formats.machines.slurm.reservation_lines import on_known_nodes
from simsched.formats.machines.slurm.slurm_records import SlurmRecords
from simsched.formats.machines.slurm.understanding import facts_of
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.text import sniffing
from simsched.formats.text.decompression import opened
from simsched.formats.text.documents import OpenFile, name_of, opener, read_text, text_of_bytes
from simsched.formats.text.json_text import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from simsched.formats.machines.description import Table

    Part = SiteFacts | SlurmRecords
    """The facts in one file, or in one part of it; those of Slurm are understood together."""


def understood(parts: Sequence[Part], notes: NoteCollector | None = None) -> MachineDescription:
    """Return the machine and the queues of the files of one site.

    The records of Slurm are understood together.  The first facts with cores count for the nodes, and those
    of the same format add some; others add properties and states (`site_facts.joined`).  Of a value of the
    configuration, the first counts.  Queues with ``hosts`` become queues of a property.  A node that one
    file excludes from scheduling is left out.

    notes : receives the amounts in which files differ, and nodes that are left aside; its notes are the last
        of the result.

    Raises `FormatError` under strict `notes` for the first fault.
    """
    notes = notes or NoteCollector()
    slurm = [part for part in parts if isinstance(part, SlurmRecords)]
    given = [
        facts_of(slurm, strict=notes.strict) if isinstance(part, SlurmRecords) else part
        for part in parts
        if not isinstance(part, SlurmRecords) or part is slurm[0]
    ]
    facts = sorted(given, key=lambda one: not any(node.kind.cores for node in one.nodes.values()))
    config: dict[str, Any] = {}
    for one in facts:
        config = _joined(config, one.config)
    reserved: dict[str, Any] = {}
    for table in (table for one in facts for table in one.config.get("reservations", ())):
        reserved.setdefault(table["name"], table)
    limits = [table for one in facts for table in one.config.get("limits", ())]
    config |= {"reservations": [*reserved.values()]} if reserved else {}
    config |= {"limits": limits} if limits else {}
    lists = [(one.form, one.nodes) for one in facts if one.nodes]
    excluded = dict.fromkeys(host for one in given for host in one.excluded)
    nodes = {host: node for host, node in joined(lists, notes).items() if host not in excluded}
    if nodes and "queues" in config:
        config["queues"] = _with_properties(config["queues"], nodes, notes)
    collected = [*(one.notes for one in given), notes]
    recipe = Recipe(
        name=next((one.name for one in facts if one.name), None),
        groups=grouped(nodes),
        pools=next((one.pools for one in facts if one.pools), ()),
        network=next((one.network for one in facts if one.network), None),
    )
    counts = next((one for one in facts if one.nodes), facts[0])
    return MachineDescription(
        recipe=recipe,
        config=config,
        notes=tuple(dict.fromkeys(note for one in collected for note in one.notes())),
        format=", ".join(dict.fromkeys(one.form for one in facts)),
        cpus_per_core=counts.cpus_per_core,
        excluded=tuple(excluded),
    )


def _joined(first: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return two configurations as one, key by key; of a value in both, the first counts."""
    both = dict(more)
    for key, value in first.items():
        inner = both.get(key)
        both[key] = _joined(value, inner) if isinstance(value, dict) and isinstance(inner, dict) else value
    return both


def _with_properties(queues: dict[str, Table], nodes: dict[str, Node], notes: NoteCollector) -> Table:
    """Return queues that require a property in place of their ``hosts``, and give it to the nodes."""
    members = {}
    for name, queue in queues.items():
        if "hosts" in queue:
            every = queue["hosts"] == EVERY_NODE
            hosts = [*nodes] if every else Hostlist.parse(queue["hosts"]).expand(MAX_NODES)
            unknown = [host for host in hosts if host not in nodes]
            if unknown:
                notes.fault(f"partition {clip(name)}: there is no node {clip(encode_hosts(unknown))}")
            members[name] = [host for host in hosts if host in nodes], ""
    found = {name: {key: item for key, item in row.items() if key != "hosts"} for name, row in queues.items()}
    for name, word in name_queues(members, nodes, notes).items():
        found[name]["requires"] = [word]
    return found


KNOWN = (
    "slurm.conf, scontrol, sinfo --json, a Flux configuration, flux resource list or status, "
    "pbsnodes -a, qmgr, sacctmgr, flux-accounting, hwloc XML or a SimGrid platform"
)


FORMATS: dict[str, str] = {
    recognition.SLURM_CONF: "slurm.slurm_conf.read_slurm_conf",
    recognition.SCONTROL: "slurm.scontrol.read_scontrol",
    recognition.SLURM_JSON: "slurm.scontrol.read_slurm_document",
    recognition.FLUX_CONFIG: "flux_config.read_flux_config",
    recognition.FLUX_CONFIG_JSON: "flux_config.read_flux_config",
    recognition.FLUX_LIST: "flux_config.read_flux_list",
    recognition.FLUX_JSON: "flux_config.read_flux_list",
    recognition.FLUX_STATUS: "flux_config.read_flux_status",
    recognition.FLUX_STATUS_JSON: "flux_config.read_flux_status",
    recognition.R: "flux_config.read_r",
    recognition.PBSNODES: "pbs_server.read_pbsnodes",
    recognition.PBS_JSON: "pbs_server.read_pbsnodes",
    recognition.QMGR: "pbs_server.read_pbs_queues",
    recognition.PBS_QUEUES_JSON: "pbs_server.read_pbs_queues",
    recognition.SACCTMGR: "slurm.sacctmgr.read_sacctmgr",
    recognition.SLURM_LIMITS_JSON: "slurm.sacctmgr.read_sacctmgr",
    recognition.SACCTMGR_DUMP: "slurm.sacctmgr.read_sacctmgr_dump",
    recognition.FLUX_ACCOUNTING: "flux_accounting.read_flux_accounting",
    recognition.HWLOC: "hwloc_xml.read_hwloc",
    recognition.PLATFORM: "batsim_platform.read_platform",
}
"""Kind of text (`recognition.machine_parts`) or of JSON document → its reader, imported on use."""
_NAME_FILES = (recognition.SLURM_CONF, recognition.FLUX_CONFIG, recognition.FLUX_CONFIG_JSON)
"""The kinds that name other files."""


def read_as(
    kind: str, content: Content, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> Part:
    """Return the facts in a text or document of a known kind (`FORMATS`); those of Slurm as records.

    Raises
    ------
    FormatError, LimitError
        if it describes nothing of its kind, or is too large; under `strict` for the first part that is not
        understood.
    """
    module, _, function = FORMATS[kind].rpartition(".")
    reader = getattr(import_module(f"simsched.formats.machines.{module}"), function)
    more = {"open_file": open_file} if kind in _NAME_FILES else {}
    found: Part = reader(content, where, NoteCollector(strict=strict), **more)
    return found


def read_parts(
    text: str, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> list[Part]:
    """Return the facts in all parts of a text; none if it is none of `FORMATS`.  Errors as `read_as`."""
    documents, rest = sniffing.json_parts(text.removeprefix("\ufeff"))
    contents = [load_json(part, where) for part in documents]
    texts = recognition.machine_parts(rest)
    kinds = [(_kind_of(document), document) for document in contents]
    found = []
    for kind, content in (*kinds, *texts.items()):
        if kind in FORMATS:
            found.append(read_as(kind, content, where, open_file=open_file, strict=strict))
    for kind in texts:
        if kind not in FORMATS and found:
            found[-1].notes.left_out(f"{kind}: {recognition.BESIDE[kind]}", where)
    return found


def _kind_of(document: Any) -> str:
    is_table = isinstance(document, dict)
    return recognition.document_kind(sniffing.outline_of(document)) if is_table else ""


def describe_text(
    text: str, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> MachineDescription | None:
    """Return the description that a text is, all parts of it together; None if it is none of `FORMATS`."""
    parts = read_parts(text, where, open_file=open_file, strict=strict)
    return understood(parts) if parts else None


def describe_document(
    document: Any, where: str, *, open_file: OpenFile | None = None
) -> MachineDescription | None:
    """Return the description that a decoded JSON document is; None if it is none of `FORMATS`."""
    kind = _kind_of(document)
    return understood([read_as(kind, document, where, open_file=open_file)]) if kind else None


# -- files ----------------------------------------------------------------------------


@dataclass(slots=True)
class SiteInputs:
    """The files of a site, sorted out by what they are.

    described : the files that describe machine and queues, with their texts and the kinds of these.
    logs, accounts : logs of jobs, and files of accounts, some of which have limits and are described, too.
    left : (folder, reason) → the files of it that are not read.
    """

    described: list[tuple[Path, str, Mapping[str, str]]] = field(default_factory=list)
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
    from simsched.formats.machines.accounts import looks_like_accounts

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
            found.described.append((file, text, kinds))
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
    documents, rest = sniffing.json_parts(text.removeprefix("\ufeff"))
    found = {recognition.document_kind(sniffing.outline(part)): part for part in documents}
    return {kind: part for kind, part in found.items() if kind} | recognition.machine_parts(rest)


def _is_log(path: Path) -> bool:
    """Whether a file is a log of jobs, by its beginning; a file that cannot be read is none."""
    if path.suffix == ".parquet":
        return True
    try:
        with opened(path) as stream:
            head = stream.read(sniffing.HEAD)
        look = recognition.look_of(text_of_bytes(head, "", lenient=True), first=recognition.CLUSTER)
        if look is not None and look.what == recognition.SCONTROL_JOBS:  # nodes may follow
            look = recognition.look_of(read_text(path, lenient=True), first=recognition.CLUSTER)
    except SimschedError:
        return False
    return look is not None and look.role == recognition.WORKLOAD


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
    read: list[tuple[Path, list[Part]]] = []
    configs, unused = [], []
    for path, text, kinds in inputs.described:
        where, open_file = name_of(path), _noting(path, taken)
        if recognition.FLUX_CONFIG in kinds:
            configs.append((where, text, open_file))
        elif found := read_parts(text, where, open_file=open_file, strict=strict):
            read.append((path, found))
        elif len(inputs.described) == 1:
            raise _nothing(text, where)
        else:
            beside = [f"{kind}: {recognition.BESIDE[kind]}" for kind in kinds]
            unused.append((path, "; ".join(beside) or _why_not(text)))
    for path, reason in unused:
        if path.resolve() not in taken:
            notes.left_out(reason, name_of(path), cause=name_of(path))
    parts = [part for path, found in read if path.resolve() not in taken for part in found]
    if configs:
        from simsched.formats.machines.flux_config import read_flux_configs

        parts.insert(0, read_flux_configs(configs, NoteCollector(strict=strict)))
    taken.update(path.resolve() for path, _ in read)  # a copy may be what a link points to
    for (folder, reason), files in inputs.left.items():
        unread = [file for file in files if reason == SHARES_APART or file.resolve() not in taken]
        names = ", ".join(clip(file.name, 60) for file in unread)
        if names:
            notes.left_out(f"{reason}: {clip(names, 1000)}", folder)
    whole = understood(parts, notes) if parts else None
    if whole is None or not whole.recipe.groups:
        alone = [file for files in inputs.left.values() for file in files]
        if len(alone) == 1 and not inputs.described:
            raise _nothing(read_text(alone[0], lenient=True), name_of(alone[0]))
        files = [path for path, *_ in inputs.described] or alone
        where = ", ".join(clip(name_of(path), 200) for path in files)
        raise lacking(whole, [part.form for part in parts], where)
    more = NoteCollector(strict=strict)
    # that the partitions of Slurm have nodes is known with their own places
    for name, queue in whole.config.get("queues", {}).items() if configs else ():
        wanted = set(queue.get("requires", ()))
        if not any(wanted <= set(group.properties) for group in whole.recipe.groups):
            more.assumed(f"queue {clip(name)}: no node has {', '.join(sorted(wanted))}: its jobs never start")
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
    known = recognition.unrecognised(text, where, "", KNOWN) if text.strip() else None
    message = UNKNOWN if text.strip() else "the file is empty"
    return known or FormatError(message, where=where, expected=KNOWN)


_NODES_FROM = {
    "scontrol": "the output of scontrol show node as well",
    "Slurm's JSON": "the nodes as well, from scontrol show node --json, sinfo --json or slurm.conf",
    "sacctmgr": "slurm.conf or the output of scontrol show node as well",
    "slurm.conf": "NodeName=… lines, or the output of scontrol show node as well",
    "qmgr": "the output of pbsnodes -a as well",
}


def lacking(found: MachineDescription | None, forms: Sequence[str], where: str) -> FormatError:
    """Return the error for files that describe no nodes: what they have, and which command is missing."""
    fault = next((note for note in found.notes if note.kind == "fault"), None) if found else None
    if fault is not None:
        return FormatError(f"no nodes are described; {fault.text}", where=fault.where or None)
    if found and found.excluded:
        hosts = clip(encode_hosts(found.excluded))
        return FormatError(f"all nodes are excluded from scheduling: {hosts}", where=where)
    formats = " and ".join(forms) or "nothing"
    expected = next((_NODES_FROM[form] for form in forms if form in _NODES_FROM), KNOWN)
    return FormatError(f"no nodes are described, only {formats}", where=where, expected=expected)
