"""Slurm's limits: ``sacctmgr show qos -P``, ``show assoc -P``, ``sacctmgr dump``, and the JSON of QOS.

The records are understood together with those of other files: see `understanding`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.errors import clip
from simsched.formats.accounts import IndentedAccounts, delimiter_of
from simsched.formats.machines.description import NoteCollector
from simsched.formats.machines.limit_tables import UNLIMITED
from simsched.formats.machines.slurm.slurm_records import Line, SlurmRecords
from simsched.formats.machines.slurm.understanding import describe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.machines.description import MachineDescription


FORMAT = "sacctmgr"
_SAME = {
    "grpsubmitjobs": "grpsubmit", "maxsubmitjobs": "maxsubmit", "maxjobsperuser": "maxjobspu",
    "maxjobsperaccount": "maxjobspa", "maxsubmitjobsperuser": "maxsubmitpu", "maxsubmitpuser": "maxsubmitpu",
    "maxsubmitjobsperaccount": "maxsubmitpa", "maxsubmitjobspu": "maxsubmitpu",
    "maxsubmitjobspa": "maxsubmitpa", "maxtresperuser": "maxtrespu", "maxtresperaccount": "maxtrespa",
    "maxtresperjob": "maxtres", "maxtrespj": "maxtres", "maxtresminsperjob": "maxtresmins",
    "maxtresminspj": "maxtresmins", "maxwalldurationperjob": "maxwall", "maxwallpj": "maxwall",
    "maxtresrunminspu": "maxtresrunminsperuser", "maxtresrunminspa": "maxtresrunminsperaccount",
    "maxtrespn": "maxtrespernode", "mintresperjob": "mintres", "usagethreshold": "usagethres",
    "defaultqos": "defqos", "parname": "parentname", "defacct": "defaultaccount", "admin": "adminlevel",
    "maxjobsaccrueperuser": "maxjobsaccruepu",
    "maxjobsaccrueperaccount": "maxjobsaccruepa",
}  # fmt: skip
#: Key of versions before 15.08, without TRES → key, TRES.
_OLD = {
    "grpcpus": ("grptres", "cpu"), "grpnodes": ("grptres", "node"), "grpmem": ("grptres", "mem"),
    "grpmemory": ("grptres", "mem"), "grpcpumins": ("grptresmins", "cpu"),
    "grpcpurunmins": ("grptresrunmins", "cpu"), "maxcpus": ("maxtres", "cpu"),
    "maxcpusperjob": ("maxtres", "cpu"), "maxnodes": ("maxtres", "node"),
    "maxnodesperjob": ("maxtres", "node"), "maxcpumins": ("maxtresmins", "cpu"),
    "maxcpuminsperjob": ("maxtresmins", "cpu"), "maxcpuspu": ("maxtrespu", "cpu"),
    "maxcpusperuser": ("maxtrespu", "cpu"), "maxnodespu": ("maxtrespu", "node"),
    "maxnodesperuser": ("maxtrespu", "node"),
}  # fmt: skip
_RECORD = re.compile(r"(Cluster|QOS|Parent|Account|User) - '([^']*)'(?::(.*))?")
_FIELD = re.compile(r"(\w+)=('[^']*'|[^:]*(?::\d+(?=:|$))*)(?::|$)")


def read_sacctmgr(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the limits in what ``sacctmgr show qos -P`` or ``show assoc -P`` printed.

    Raises
    ------
    FormatError
        if the header has neither QOS nor associations; under `strict` for the first value that is not
        understood.
    """
    notes = NoteCollector(strict=strict)
    reader = _Reader(notes)
    head: list[str] = []
    mark, tree = "|", IndentedAccounts()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if not head:
            mark = delimiter_of(line) or mark
        raw = line.split(mark)
        cells = [cell.strip() for cell in raw]
        names = [cell.lower().replace(" ", "") for cell in cells]
        place = f"{where}:{number}"
        if {"account", "user"} <= set(names) or {"name", "flags"} <= set(names) or not head:
            head, tree = names, IndentedAccounts()  # one file may have both tables
        elif len(cells) not in (len(head), len(head) + 1):
            notes.fault(f"{len(cells)} columns", place, f"{len(head)}, as in the header")
        else:
            values = _normal(dict(zip(head, cells, strict=False)))
            if values.get("account"):
                above = tree.parent(raw[head.index("account")], is_user=bool(values.get("user")))
                values = {**({"parentname": above} if above else {}), **values}
            reader.take(values, place)
    if "name" not in head and "account" not in head:
        notes.refuse("there are neither QOS nor associations", where, "sacctmgr show qos -P or show assoc -P")
    return reader.description()


def read_sacctmgr_dump(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the limits of a file that ``sacctmgr dump`` wrote; errors as `read_sacctmgr`."""
    notes = NoteCollector(strict=strict)
    reader = _Reader(notes)
    cluster = parent = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line, place = raw.strip(), f"{where}:{number}"
        if not line or line.startswith("#"):
            continue
        found = _RECORD.fullmatch(line)
        if found is None:
            notes.fault(f"not a record of sacctmgr: {clip(line)!r}", place, "Account - 'name':…")
            continue
        kind, name, rest = found.groups()
        values = {key.lower(): value.strip("'") for key, value in _FIELD.findall(rest or "")}
        if kind == "QOS":
            reader.take(_normal({**values, "name": name}), place)
            continue
        if kind == "Parent":
            parent = name
            continue
        if kind == "Cluster":
            cluster = name
        names = {"Cluster": ("root", ""), "Account": (name, ""), "User": (parent, name)}[kind]
        above = {"parentname": parent} if kind == "Account" else {}
        own = {"cluster": cluster, "account": names[0], "user": names[1]}
        reader.take(_normal({**values, **above, **own}), place)
    return reader.description()


def read_limits_document(
    document: Mapping[str, Any], where: str, *, strict: bool = False
) -> MachineDescription:
    """Return the limits of the JSON of ``sacctmgr show qos --json`` or ``show assoc --json``.

    slurmrestd answers with the same, one list each or both in one document.  Errors as `read_sacctmgr`.
    """
    notes = NoteCollector(strict=strict)
    reader = _Reader(notes)
    for key, paths in (("QOS", _PATHS), ("qos", _PATHS), ("associations", _ASSOCIATION_PATHS)):
        given = document.get(key)
        name = "account" if paths is _ASSOCIATION_PATHS else "name"
        for at, item in enumerate(given if isinstance(given, list) else []):
            place = f"{where}: {key}[{at}]"
            if not isinstance(item, dict) or not isinstance(item.get(name), str) or not item[name]:
                notes.fault(f"this is not one of {key}", place, f"an object with {name}")
            elif name == "name":
                reader.take(_qos_values(item), place)
            else:
                texts = {
                    key: item[key] for key in ("cluster", "account", "user", "partition") if item.get(key)
                }
                parent = item.get("parent_account")
                if any(not isinstance(text, str) for text in (*texts.values(), parent or "")):
                    notes.fault("an association with a name that is not a text", place)
                    continue
                values = {"user": "", **texts, "parentname": parent or ""}
                reader.take(values | _limits_at(item, paths), place)
    return reader.description()


def _normal(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values by one name for each key."""
    found = {_SAME.get(key, key): value for key, value in values.items() if key not in _OLD}
    for key, (name, kind) in _OLD.items():
        if values.get(key, "").lower() not in UNLIMITED:
            found[name] = ",".join(filter(None, (found.get(name), f"{kind}={values[key]}")))
    return found


class _Reader:
    """Takes one QOS or association after the other."""

    def __init__(self, notes: NoteCollector) -> None:
        self.records = SlurmRecords(notes, FORMAT)

    def take(self, values: Mapping[str, str], where: str) -> None:
        """Take a record; its keys are those of sacctmgr in lower case."""
        line = Line({key: value.strip("'\"") for key, value in values.items()}, where)
        if "account" in values and "user" in values:
            self.records.associations.append(line)
        elif values.get("name"):
            self.records.qos.append(line)

    def description(self) -> MachineDescription:
        """Return the description of all records."""
        return describe([self.records])


# --- JSON ------------------------------------------------------------------------------------

_PATHS = {
    "grpjobs": "max/active_jobs/count", "grpsubmit": "max/jobs/count", "grptres": "max/tres/total",
    "grptresmins": "max/tres/minutes/per/qos", "grptresrunmins": "max/tres/minutes/total",
    "maxtres": "max/tres/per/job", "maxtresmins": "max/tres/minutes/per/job",
    "maxtrespu": "max/tres/per/user", "maxtrespa": "max/tres/per/account",
    "maxtresrunminsperuser": "max/tres/minutes/per/user",
    "maxtresrunminsperaccount": "max/tres/minutes/per/account",
    "maxjobspu": "max/jobs/active_jobs/per/user", "maxjobspa": "max/jobs/active_jobs/per/account",
    "maxsubmitpu": "max/jobs/per/user", "maxsubmitpa": "max/jobs/per/account",
    "maxwall": "max/wall_clock/per/job", "grpwall": "max/wall_clock/per/qos",
    "maxtrespernode": "max/tres/per/node", "mintres": "min/tres/per/job",
}  # fmt: skip
"""Key of sacctmgr → its place in ``limits`` of a QOS (Slurm's data parsers)."""
_ASSOCIATION_PATHS = {
    "grpjobs": "max/jobs/per/count", "grpsubmit": "max/jobs/per/submitted", "grptres": "max/tres/total",
    "grptresmins": "max/tres/group/minutes", "grptresrunmins": "max/tres/group/active",
    "grpjobsaccrue": "max/jobs/per/accruing", "grpwall": "max/per/account/wall_clock",
    "maxjobs": "max/jobs/active", "maxsubmit": "max/jobs/total", "maxwall": "max/jobs/per/wall_clock",
    "maxtres": "max/tres/per/job", "maxtresmins": "max/tres/minutes/per/job",
    "maxtrespernode": "max/tres/per/node",
}  # fmt: skip
"""The same for an association."""


def _qos_values(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a QOS in JSON as sacctmgr prints them."""
    flags = item.get("flags") or []
    found = {"name": str(item["name"]), "flags": ",".join(map(str, flags))}
    for key in ("priority", "usage_factor"):
        found[key.replace("_", "")] = _text(item.get(key))
    preempt = item.get("preempt")
    if isinstance(preempt, dict):
        names, modes = preempt.get("list"), preempt.get("mode")
        found["preempt"] = ",".join(map(str, names)) if isinstance(names, list) else ""
        found["preemptmode"] = ",".join(map(str, modes)) if isinstance(modes, list) else ""
        exempt = _text(preempt.get("exempt_time"))
        found["preemptexempttime"] = f"0:{exempt}" if exempt else ""  # seconds
    limits = item.get("limits")
    found["gracetime"] = _text(limits.get("grace_time") if isinstance(limits, dict) else None)
    return found | _limits_at(limits, _PATHS)


def _limits_at(limits: Any, paths: Mapping[str, str]) -> dict[str, str]:
    """Return the values at these places, as sacctmgr prints them."""
    found = {}
    for key, path in paths.items():
        value = limits
        for step in path.split("/"):
            value = value.get(step) if isinstance(value, dict) else None
        found[key] = _text(value)
    return found


def _text(value: Any) -> str:
    """Return a number, ``{set, infinite, number}`` or a list of TRES as text."""
    if isinstance(value, list):
        return ",".join(_tres(value))
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return (
        ""
        if value is None or isinstance(value, dict | bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _tres(items: list[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            name = f"/{item['name']}" if item.get("name") else ""
            yield f"{item.get('type', '')}{name}={item.get('count', '')}"
