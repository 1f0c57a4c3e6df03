"""`describe_inputs`: a site's own files as one description, each recognised by its content."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError, SimschedError, clip
from simsched.formats.cluster.recipe import MAX_NODES, NodeGroup, Recipe
from simsched.formats.machines import recognition
from simsched.formats.machines.description import MachineDescription, NoteCollector
from simsched.formats.machines.node_groups import DOWN, DRAINED, UP, differences, in_order, property_for
from simsched.formats.machines.slurm.notation import EVERY_NODE
from simsched.formats.machines.slurm.reservation_lines import joined, on_known_nodes
from simsched.formats.machines.slurm.understanding import describe
from simsched.formats.rfc.hostlist import Hostlist, encode_hosts
from simsched.formats.text import sniffing
from simsched.formats.text.decompression import opened
from simsched.formats.text.documents import name_of, opener, read_text, text_of_bytes
from simsched.formats.text.json_text import load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from simsched.formats.machines.description import Content
    from simsched.formats.text.documents import OpenFile


def merge(
    descriptions: Iterable[MachineDescription], notes: NoteCollector | None = None
) -> MachineDescription:
    """Return the machine and the queues of several files of one site.

    The first description with cores counts for the nodes; a file of the same format adds nodes.  Any other
    adds the properties and states of nodes that are known: a list may leave out nodes, or name more than
    the machine has.  A node has the properties of all, and is down or drained if one says so.  Of a value
    of the configuration, the first counts.  Queues with ``hosts`` become queues of a property, as those of
    one file are.  A node that one file excludes from scheduling is left out, but not of groups in levels.

    notes : receives the amounts in which descriptions of a node differ, and nodes that are left aside; its
        notes are the last of the result.

    Raises `FormatError` without a description, and under strict `notes` where descriptions differ.
    """
    given = list(descriptions)
    notes = NoteCollector() if notes is None else notes
    slurm = [records for part in given for records in part.records]
    if len(slurm) > 1:  # Slurm's files are joined first and understood together
        first = next(number for number, part in enumerate(given) if part.records)
        others = [part for part in given[first + 1 :] if not part.records]
        given = [*given[:first], describe(slurm, strict=notes.strict), *others]
    if not given:
        raise FormatError("there is no description to merge", expected="at least one file")
    if len(given) == 1:
        more = notes.notes()
        return replace(given[0], notes=(*given[0].notes, *more)) if more else given[0]
    excluded = dict.fromkeys(host for part in given for host in part.excluded)
    parts = sorted(given, key=lambda part: not any(group.cores for group in part.recipe.groups))
    config: dict[str, Any] = {}
    for part in parts:
        config = _joined(config, part.config)
    reserved = joined(parts)
    if reserved:
        config["reservations"] = reserved
    limits = [table for part in parts for table in part.config.get("limits", ())]
    if limits:
        config["limits"] = limits
    if any(part.recipe.levels or any(group.levels for group in part.recipe.groups) for part in parts):
        groups = _as_they_are(parts)  # groups that are divided would change the places in their levels
    else:
        nodes = {host: node for host, node in _joined_nodes(parts, notes).items() if host not in excluded}
        if nodes:
            config = deepcopy(config)  # its queues are those of the parts
            _name_properties(config.get("queues", {}), nodes, notes)
        groups = in_order((host, *node) for host, node in nodes.items())
    recipe = Recipe(
        name=next((part.recipe.name for part in parts if part.recipe.name), None),
        groups=groups,
        levels=next((part.recipe.levels for part in parts if part.recipe.levels), ()),
        pools=next((part.recipe.pools for part in parts if part.recipe.pools), ()),
        network=next((part.recipe.network for part in parts if part.recipe.network), None),
        power=next((part.recipe.power for part in parts if part.recipe.power), None),
    )
    described = [part for part in parts if part.recipe.groups] or parts
    return MachineDescription(
        recipe=recipe,
        config=config,
        notes=tuple(dict.fromkeys((*(note for part in given for note in part.notes), *notes.notes()))),
        format=", ".join(dict.fromkeys(part.format for part in parts if part.format)),
        cpus_per_core=described[0].cpus_per_core,
        excluded=tuple(excluded),
        records=tuple(slurm),
    )


_Node = tuple[NodeGroup, tuple[str, ...], str]
"""The kind of a node, its properties and its status, as in `NodeOfKind`."""


def _joined(first: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return two configurations as one, key by key; of a value in both, the first counts."""
    both = dict(more)
    for key, value in first.items():
        inner = both.get(key)
        both[key] = _joined(value, inner) if isinstance(value, dict) and isinstance(inner, dict) else value
    return both


def _as_they_are(parts: Sequence[MachineDescription]) -> tuple[NodeGroup, ...]:
    """Return all groups, without the nodes that an earlier group has."""
    seen: set[str] = set()
    found = []
    for part in parts:
        for group in part.recipe.groups:
            hosts = tuple(host for host in group.hosts if host not in seen)
            if hosts:
                down, drained = group.down.intersection(hosts), group.drained.intersection(hosts)
                found.append(replace(group, hosts=hosts, down=down, drained=drained))
        seen.update(host for group in part.recipe.groups for host in group.hosts)
    return tuple(found)


def _joined_nodes(parts: Sequence[MachineDescription], notes: NoteCollector) -> dict[str, _Node]:
    """Return the nodes of the first description, with those that others of its format add."""
    kinds: dict[NodeGroup, NodeGroup] = {}
    found: dict[str, _Node] = {}
    first = parts[0].format
    for part in parts:
        adds = part is parts[0] or part.format == first
        unknown: list[str] = []
        unlike: dict[str, list[str]] = {}
        for group in part.recipe.groups:
            bare = replace(
                group, name="", hosts=(), properties=(), status=UP, down=frozenset(), drained=frozenset()
            )
            kind = kinds.setdefault(bare, bare)
            for host in group.hosts:
                status = DRAINED if host in group.drained else DOWN if host in group.down else group.status
                before = found.get(host)
                if before is not None:  # of two states, the first that is not up counts
                    known, properties, earlier = before
                    properties = tuple(dict.fromkeys((*properties, *group.properties)))
                    found[host] = (known, properties, status if earlier == UP else earlier)
                    for difference in differences(known, kind):
                        unlike.setdefault(difference, []).append(host)
                elif adds:
                    found[host] = (kind, group.properties, status)
                elif status == UP:  # a list leaves out nodes that are excluded
                    unknown.append(host)
        if unknown:
            shown = clip(encode_hosts(unknown))
            notes.fault(f"nodes of {part.format} that {first} does not have: {shown}")
        for difference, hosts in unlike.items():
            notes.fault(f"{encode_hosts(hosts)}: {difference} in {first}, which counts", part.format)
    return found


def _name_properties(
    queues: dict[str, dict[str, Any]], nodes: dict[str, _Node], notes: NoteCollector
) -> None:
    """Give the nodes of each queue with ``hosts`` a property, which the queue requires instead."""
    known: dict[str, set[str]] = {}
    for host, (_, properties, _) in nodes.items():
        for name in properties:
            known.setdefault(name, set()).add(host)
    for name, queue in queues.items():
        listed = queue.pop("hosts", None)
        if listed is None:
            continue
        hosts = list(nodes) if listed == EVERY_NODE else Hostlist.parse(listed).expand(MAX_NODES)
        unknown = [host for host in hosts if host not in nodes]
        if unknown:
            text = f"partition {clip(name)}: there is no node {clip(encode_hosts(unknown))}"
            notes.fault(text)
        own = {host for host in hosts if host in nodes}
        word = property_for(name, own, known, notes)
        queue["requires"] = [word]
        for host in own:
            kind, properties, status = nodes[host]
            if word not in properties:
                nodes[host] = (kind, (*properties, word), status)


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
) -> MachineDescription:
    """Return the description that a text or document of a known kind (`FORMATS`) is.

    Raises
    ------
    FormatError, LimitError
        if it describes nothing of its kind, or is too large; under `strict` for the first part that is not
        understood.
    """
    module, _, function = FORMATS[kind].rpartition(".")
    reader = getattr(import_module(f"simsched.formats.machines.{module}"), function)
    more = {"open_file": open_file} if kind in _NAME_FILES else {}
    description: MachineDescription = reader(content, where, NoteCollector(strict=strict), **more)
    return description


def describe_text(
    text: str, where: str, *, open_file: OpenFile | None = None, strict: bool = False
) -> MachineDescription | None:
    """Return the description that a text is, all parts of it together; None if it is none of `FORMATS`."""
    documents, rest = sniffing.json_parts(text.removeprefix("\ufeff"))
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
    kind = recognition.document_kind(sniffing.outline_of(document))
    return read_as(kind, document, where, open_file=open_file, strict=strict) if kind else None


def _described(
    parts: Mapping[str, str], where: str, open_file: OpenFile | None, *, strict: bool
) -> list[MachineDescription]:
    """Return the descriptions of the parts of one text, each read by its own reader."""
    notes = NoteCollector(strict=strict)
    found = []
    for kind, part in parts.items():
        if kind in FORMATS:
            found.append(read_as(kind, part, where, open_file=open_file, strict=strict))
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

        parts.insert(0, read_flux_configs(configs, NoteCollector(strict=strict)))
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
