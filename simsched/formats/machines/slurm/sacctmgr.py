"""Slurm's limits: ``sacctmgr show qos -P``, ``show assoc -P``, ``sacctmgr dump``, and the JSON of QOS.

The records are understood together with those of other files: see `understanding`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.errors import clip
from simsched.formats.machines.accounts import IndentedAccounts, association_names, dump_records, table_lines
from simsched.formats.machines.limit_tables import UNLIMITED
from simsched.formats.machines.slurm.notation import Line, texts_at
from simsched.formats.machines.slurm.slurm_records import SlurmRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from simsched.formats.machines.description import Content, NoteCollector


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


def read_sacctmgr(content: Content, where: str, notes: NoteCollector) -> SlurmRecords:
    """Return the limits in the output of ``sacctmgr show qos`` or ``show assoc``, with ``-P`` or ``--json``.

    slurmrestd answers with the same JSON, one list each or both in one document.

    Raises
    ------
    FormatError
        if the header has neither QOS nor associations; under strict `notes` for the first value that is not
        understood.
    """
    if isinstance(content, str):
        return _records(_table_lines(content, where, notes), notes)
    return _records(_document_lines(content, where, notes), notes)


def _records(lines: Iterable[Line], notes: NoteCollector) -> SlurmRecords:
    """Return the QOS and associations, whose keys are those of sacctmgr in lower case."""
    records = SlurmRecords(notes, FORMAT)
    for line in lines:
        if "account" in line.values and "user" in line.values:
            records.associations.append(line)
        elif line.values.get("name"):
            records.qos.append(line)
    return records


def _table_lines(text: str, where: str, notes: NoteCollector) -> Iterator[Line]:
    head: list[str] = []
    tree = IndentedAccounts()
    for raw, place in table_lines(text, where, quotes=False):
        cells = [cell.strip() for cell in raw]
        names = [cell.lower().replace(" ", "") for cell in cells]
        if {"account", "user"} <= set(names) or {"name", "flags"} <= set(names) or not head:
            head, tree = names, IndentedAccounts()  # one file may have both tables
        elif len(cells) not in (len(head), len(head) + 1):
            notes.fault(f"{len(cells)} columns", place, f"{len(head)}, as in the header")
        else:
            values = _normal(dict(zip(head, cells, strict=False)))
            if values.get("account"):
                above = tree.parent(raw[head.index("account")], is_user=bool(values.get("user")))
                values = {**({"parentname": above} if above else {}), **values}
            yield Line(values, place)
    if "name" not in head and "account" not in head:
        notes.refuse("there are neither QOS nor associations", where, "sacctmgr show qos -P or show assoc -P")


def read_sacctmgr_dump(text: str, where: str, notes: NoteCollector) -> SlurmRecords:
    """Return the limits of a file that ``sacctmgr dump`` wrote; errors as `read_sacctmgr`."""
    lines = []
    for kind, values, strange, place in dump_records(text, where):
        if kind:
            lines.append(Line(_normal(values), place))
        else:
            notes.fault(f"not a record of sacctmgr: {clip(strange)!r}", place, "Account - 'name':…")
    return _records(lines, notes)


def _document_lines(document: Mapping[str, Any], where: str, notes: NoteCollector) -> Iterator[Line]:
    for key in ("QOS", "qos"):
        for place, item in _items(document, key, where):
            name = item.get("name") if isinstance(item, dict) else None
            if not isinstance(name, str) or not name:
                notes.fault(f"this is not one of {key}", place, "an object with name")
                continue
            values = texts_at(item, _PATHS)
            exempt = values.pop("preemptexempttime", "UNLIMITED")  # seconds, where texts have a time
            more = {} if exempt == "UNLIMITED" else {"preemptexempttime": f"0:{exempt}"}
            yield Line({"name": name, **values, **more}, place)
    for place, item in _items(document, "associations", where):
        names = association_names(item)
        if names is None:
            notes.fault("this is not one of associations", place, "an object with account")
            continue
        names["parentname"] = names.pop("parent_account")
        yield Line({**names, **texts_at(item, _ASSOCIATION_PATHS)}, place)


def _items(document: Mapping[str, Any], key: str, where: str) -> Iterator[tuple[str, Any]]:
    given = document.get(key)
    for at, item in enumerate(given if isinstance(given, list) else []):
        yield f"{where}: {key}[{at}]", item


def _normal(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values by one name for each key."""
    found = {_SAME.get(key, key): value.strip("'\"") for key, value in values.items() if key not in _OLD}
    for key, (name, kind) in _OLD.items():
        if values.get(key, "").lower() not in UNLIMITED:
            found[name] = ",".join(filter(None, (found.get(name), f"{kind}={values[key]}")))
    return found


# --- JSON ------------------------------------------------------------------------------------

_PATHS = {
    "flags": "flags", "priority": "priority", "usagefactor": "usage_factor", "preempt": "preempt/list",
    "preemptmode": "preempt/mode", "preemptexempttime": "preempt/exempt_time",
    "gracetime": "limits/grace_time",
    "grpjobs": "limits/max/active_jobs/count", "grpsubmit": "limits/max/jobs/count",
    "grptres": "limits/max/tres/total",
    "grptresmins": "limits/max/tres/minutes/per/qos", "grptresrunmins": "limits/max/tres/minutes/total",
    "maxtres": "limits/max/tres/per/job", "maxtresmins": "limits/max/tres/minutes/per/job",
    "maxtrespu": "limits/max/tres/per/user", "maxtrespa": "limits/max/tres/per/account",
    "maxtresrunminsperuser": "limits/max/tres/minutes/per/user",
    "maxtresrunminsperaccount": "limits/max/tres/minutes/per/account",
    "maxjobspu": "limits/max/jobs/active_jobs/per/user",
    "maxjobspa": "limits/max/jobs/active_jobs/per/account",
    "maxsubmitpu": "limits/max/jobs/per/user", "maxsubmitpa": "limits/max/jobs/per/account",
    "maxwall": "limits/max/wall_clock/per/job", "grpwall": "limits/max/wall_clock/per/qos",
    "maxtrespernode": "limits/max/tres/per/node", "mintres": "limits/min/tres/per/job",
}  # fmt: skip
"""Key of sacctmgr → its place in a QOS (Slurm's data parsers)."""
_ASSOCIATION_PATHS = {
    "grpjobs": "max/jobs/per/count", "grpsubmit": "max/jobs/per/submitted", "grptres": "max/tres/total",
    "grptresmins": "max/tres/group/minutes", "grptresrunmins": "max/tres/group/active",
    "grpjobsaccrue": "max/jobs/per/accruing", "grpwall": "max/per/account/wall_clock",
    "maxjobs": "max/jobs/active", "maxsubmit": "max/jobs/total", "maxwall": "max/jobs/per/wall_clock",
    "maxtres": "max/tres/per/job", "maxtresmins": "max/tres/minutes/per/job",
    "maxtrespernode": "max/tres/per/node",
}  # fmt: skip
"""The same for an association."""
