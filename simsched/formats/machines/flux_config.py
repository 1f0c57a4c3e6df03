"""Flux's configuration, TOML or the JSON of ``flux config get``; `flux_queues` reads its queues.

flux-config-resource(5): each entry of ``resource.config`` updates its hosts, and a host may occur in
several; ranks are in the order in which hosts first occur.  Excluded hosts are not scheduled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.errors import ClusterError, FormatError, LimitError
from simsched.formats.cluster.recipe import MAX_NODES, Recipe
from simsched.formats.machines.description import MachineDescription
from simsched.formats.machines.flux_queues import queue_config
from simsched.formats.machines.shared.node_groups import NodeRow, groups_of
from simsched.formats.machines.shared.node_values import (
    MAX_UNITS,
    hosts_in,
    idset_in,
    named_ids,
    usable_properties,
)
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.rfc.hostlist import encode_hosts
from simsched.formats.rfc.idset import Idset
from simsched.formats.text.excerpts import clip
from simsched.formats.text.json_text import load_json
from simsched.formats.text.toml_text import load_toml, toml_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORMAT = "Flux configuration"
RESOURCE_KEYS = (
    "path", "config", "scheduling", "exclude", "norestrict", "noverify", "verify", "rediscover", "reserve",
    "journal-max", "no-update-watch",
)  # fmt: skip
ENTRY_KEYS = ("hosts", "cores", "gpus", "properties")
OTHER_TABLES = (
    "access", "accounting", "archive", "bootstrap", "broker", "content", "content-files", "content-s3",
    "content-sqlite", "cron", "exec", "fop", "heartbeat", "ingest", "job-exec", "job-ingest", "job-info",
    "job-list", "job-manager", "job-shell", "kvs", "module", "modules", "overlay", "sched-simple", "systemd",
    "sdexec", "tbon", "rabbit", "flux-coral2", "hooks",
)  # fmt: skip
"""Tables that describe neither the machine nor its queues."""
TABLES = ("resource", "queues", "policy", "sched-fluxion-qmanager", "sched-fluxion-resource", *OTHER_TABLES)
_CHECKS = ("norestrict", "noverify", "verify", "rediscover", "journal-max", "no-update-watch")
"""Keys of ``resource`` on how Flux finds and checks its hardware."""


def read_flux_config(
    text: str, where: str, *, open_file: Callable[[str], str] | None = None, strict: bool = False
) -> MachineDescription:
    """Return the machine and queues of one TOML file; errors as `read_flux_configs`."""
    return read_flux_configs([(where, text, open_file)], strict=strict)


def read_flux_configs(
    files: Sequence[tuple[str, str, Callable[[str], str] | None]], *, strict: bool = False
) -> MachineDescription:
    """Return the machine and queues of the files (name, text, `open_file`) of a configuration folder.

    Tables are merged as Flux merges them: of a key that several files give, the last one counts.

    Raises
    ------
    FormatError
        if a file is not TOML; under `strict` for the first part that is not understood.
    """
    notes = NoteCollector(strict=strict)
    merged, places = merged_tables([(where, text) for where, text, _ in files], notes)
    names = ", ".join(where for where, _, _ in files)
    return _Reader(names, places, files[-1][2] if files else None, notes).description(merged)


def merged_tables(
    files: Sequence[tuple[str, str]], notes: NoteCollector
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the tables of the files (name, text) as one document, and the file and line of each path in it.

    Raises
    ------
    FormatError
        if a file is not TOML.
    """
    merged: dict[str, Any] = {}
    places: dict[str, str] = {}
    for where, text in files:
        _merge(merged, load_toml(text, where), where, "", notes)
        places |= {path: f"{where}:{line}" for path, line in toml_lines(text).items()}
    return merged, places


def read_flux_document(
    document: dict[str, Any],
    where: str,
    *,
    open_file: Callable[[str], str] | None = None,
    strict: bool = False,
) -> MachineDescription:
    """Return the machine and queues of the JSON that ``flux config get`` prints."""
    notes = NoteCollector(strict=strict)
    return _Reader(where, {}, open_file, notes).description(document)


def _merge(into: dict[str, Any], more: dict[str, Any], where: str, path: str, notes: NoteCollector) -> None:
    for key, value in more.items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value, where, place, notes)
            continue
        if key in into and into[key] != value:
            notes.assumed(f"{place} is given by several files; this one counts", where)
        into[key] = value


@dataclass(slots=True)
class _Host:
    """The units of a host while entries are added."""

    cores: Idset = field(default_factory=lambda: Idset(()))
    gpus: Idset = field(default_factory=lambda: Idset(()))
    properties: dict[str, None] = field(default_factory=dict)


class _Reader:
    """Reads a merged configuration; `places` has the file and line of each path in it."""

    def __init__(
        self,
        where: str,
        places: dict[str, str],
        open_file: Callable[[str], str] | None,
        notes: NoteCollector,
    ) -> None:
        self.where, self.places, self.open_file, self.notes = where, places, open_file, notes

    def at(self, path: str) -> str:
        """Return a path with its file and line, or those of the nearest table around it."""
        steps = path
        while steps and steps not in self.places:
            steps = steps[: max(steps.rfind("."), steps.rfind("["), 0)]
        spot = self.places.get(steps, self.where)
        return f"{spot}: {path}" if spot else path

    def description(self, document: dict[str, Any]) -> MachineDescription:
        """Return the description of the whole configuration."""
        for table in document:
            if table not in TABLES:
                self.notes.unknown(table, TABLES, self.at(table))
        resource = self._table(document, "resource")
        rows = self._rows(resource)
        excluded = self._excluded(rows, resource)
        rows = [row for row in rows if row.host not in excluded]
        if resource.get("reserve"):
            text = f"cores that are reserved for the system ({clip(str(resource['reserve']))})"
            self.notes.left_out(text, self.at("resource.reserve"))
        config = queue_config(document, self.notes, self.at)
        if not rows and not config:
            self.notes.refuse(
                "the configuration describes neither nodes nor queues",
                self.where,
                "[[resource.config]] with hosts and cores, or [queues]",
            )
        return MachineDescription(
            recipe=Recipe(name=None, groups=groups_of(rows)),
            config=config,
            notes=self.notes.notes(),
            format=FORMAT,
            excluded=tuple(excluded),
        )

    def _table(self, document: dict[str, Any], name: str) -> dict[str, Any]:
        table = document.get(name, {})
        if isinstance(table, dict):
            return table
        self.notes.fault("this is not a table", self.at(name))
        return {}

    def _rows(self, resource: dict[str, Any]) -> list[NodeRow]:
        place = self.at("resource")
        for key in resource:
            if key not in RESOURCE_KEYS:
                self.notes.unknown(key, RESOURCE_KEYS, self.at(f"resource.{key}"))
            elif key in _CHECKS:
                self.notes.left_out(
                    f"how Flux finds and checks its hardware ({key})", self.at(f"resource.{key}")
                )
        entries = resource.get("config")
        if entries is None:
            return self._rows_of_path(resource)
        if "path" in resource:
            self.notes.left_out("path, because resource.config is given", self.at("resource.path"))
        self._scheduling(resource)
        if not isinstance(entries, list):
            self.notes.fault("resource.config is not an array of tables", place, "[[resource.config]]")
            return []
        hosts: dict[str, _Host] = {}
        for number, entry in enumerate(entries):
            self._entry(entry, hosts, f"resource.config[{number}]")
        return self._finished(hosts)

    def _entry(self, entry: Any, hosts: dict[str, _Host], path: str) -> None:
        """Add one entry to its hosts."""
        if not isinstance(entry, dict) or not isinstance(entry.get("hosts"), str):
            self.notes.fault("an entry without hosts", self.at(path), 'hosts = "node[0-15]"')
            return
        for key in entry:
            if key not in ENTRY_KEYS:
                self.notes.unknown(key, ENTRY_KEYS, self.at(f"{path}.{key}"))
        named = hosts_in(entry["hosts"], self.at(f"{path}.hosts"), self.notes)
        cores, gpus = (self._ids(entry, key, self.at(f"{path}.{key}")) for key in ("cores", "gpus"))
        properties = self._properties(entry, self.at(f"{path}.properties"))
        for name in named:
            host = hosts.setdefault(name, _Host())
            # The same object where nothing is added: a million hosts share the ids of their entry.
            host.cores = host.cores | cores if host.cores and cores else host.cores or cores
            host.gpus = host.gpus | gpus if host.gpus and gpus else host.gpus or gpus
            host.properties.update(properties)
        if len(hosts) > MAX_NODES:
            raise LimitError("too many hosts", where=self.at(path), expected=f"at most {MAX_NODES:,}")

    def _properties(self, entry: dict[str, Any], where: str) -> dict[str, None]:
        given = entry.get("properties", [])
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            self.notes.fault("properties is not a list of names", where, '["batch"]')
            return {}
        return dict.fromkeys(usable_properties(given, where, self.notes))

    def _ids(self, entry: dict[str, Any], key: str, where: str) -> Idset:
        """Return the ids of ``cores`` or ``gpus``; a number without quotes is a frequent fault."""
        ids = idset_in(entry.get(key, ""), where, self.notes)
        if len(ids) > MAX_UNITS:
            raise LimitError(f"{len(ids):,} {key} of one host", where=where, expected=f"{MAX_UNITS:,}")
        return ids

    def _finished(self, hosts: dict[str, _Host]) -> list[NodeRow]:
        """Return the rows of all hosts that have units."""
        empty = [name for name, host in hosts.items() if not host.cores and not host.gpus]
        if empty:
            self.notes.fault(
                f"hosts without cores and gpus: {clip(encode_hosts(empty))}", self.at("resource")
            )
        named = ((name, host) for name, host in hosts.items() if host.cores or host.gpus)
        return [
            NodeRow(
                host=name,
                cores=len(host.cores),
                gpus=len(host.gpus),
                core_ids=named_ids(host.cores),
                gpu_ids=named_ids(host.gpus),
                properties=tuple(host.properties),
            )
            for name, host in named
        ]

    def _rows_of_path(self, resource: dict[str, Any]) -> list[NodeRow]:
        """Return the rows of the R that ``resource.path`` names."""
        path = resource.get("path")
        where = self.at("resource.path")
        if path is None:
            if resource:
                self.notes.left_out("nodes, which Flux discovers when it starts", self.at("resource"))
            return []
        document = self._opened(path, where)
        if document is None:
            return []
        from simsched.formats.machines.flux_resources import rows_of_r

        try:
            rows = rows_of_r(document, str(path))
        except (FormatError, ClusterError) as error:
            self.notes.error(error)
            return []
        if document.get("scheduling"):
            self.notes.left_out(f"the graph or topology in {path}; as a cluster itself it is kept", where)
        self._scheduling(resource)
        return rows

    def _opened(self, path: object, where: str) -> Any:
        """Return the JSON document of a file that the configuration names, or None."""
        if not isinstance(path, str):
            self.notes.fault(f"{clip(repr(path))} is not the name of a file", where)
            return None
        if self.open_file is None:
            self.notes.left_out(f"the file {path}, which cannot be opened from here", where)
            return None
        try:
            return load_json(self.open_file(path), path)
        except FormatError as error:
            self.notes.error(error)
            return None

    def _scheduling(self, resource: dict[str, Any]) -> None:
        if "scheduling" in resource:
            text = "the graph of resource.scheduling; `flux R encode` and simsched read it as R with a graph"
            self.notes.left_out(text, self.at("resource.scheduling"))

    def _excluded(self, rows: list[NodeRow], resource: dict[str, Any]) -> dict[str, None]:
        """Return the hosts that ``exclude`` withholds from scheduling: an idset of ranks, or a hostlist."""
        given = resource.get("exclude")
        if not given:
            return {}
        where = self.at("resource.exclude")
        if not isinstance(given, str):
            self.notes.fault("exclude is not a text", where, "a hostlist or an idset of ranks")
            return {}
        known = [row.host for row in rows]
        hosts = set(known)
        try:
            ranks = Idset.parse(given)
            named = [host for rank, host in enumerate(known) if rank in ranks]
            strange = str(ranks - Idset.from_range(0, len(known) - 1))
        except FormatError:
            named = hosts_in(given, where, self.notes)
            strange = next((host for host in named if host not in hosts), "")
        if strange and known:
            self.notes.fault(f"excluded nodes that are not configured, such as {strange}", where)
        excluded = dict.fromkeys(host for host in named if host in hosts)
        if excluded:
            self.notes.left_out(f"excluded from scheduling: {clip(encode_hosts(list(excluded)))}", where)
        return excluded
