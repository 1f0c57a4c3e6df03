"""Slurm's limits: ``sacctmgr show qos -P``, ``show assoc -P``, ``sacctmgr dump``, and the JSON of QOS.

sacctmgr(1), "SPECIFICATIONS FOR ASSOCIATIONS" and "FOR QOS". A value of an account's Max… is that of each of
its users, and its Grp… counts all of its users and of the accounts below it. A job over MaxSubmit is refused;
one over another limit waits, unless the QOS has the flag DenyOnLimit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.formats.cluster.recipe import Recipe
from simsched.formats.machines.description import MachineDescription, QosRow
from simsched.formats.machines.limits.limit_tables import HOLD, REJECT, UNLIMITED, LimitTables
from simsched.formats.machines.shared.note_collector import NoteCollector
from simsched.formats.machines.slurm.notation import time_limit
from simsched.formats.machines.slurm.preemption_lines import grace_time, mode_of, note_words
from simsched.formats.rfc.duration import format_duration
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMAT = "sacctmgr"
_SAME = {
    "grpsubmitjobs": "grpsubmit", "maxsubmitjobs": "maxsubmit", "maxjobsperuser": "maxjobspu",
    "maxjobsperaccount": "maxjobspa", "maxsubmitjobsperuser": "maxsubmitpu", "maxsubmitpuser": "maxsubmitpu",
    "maxsubmitjobsperaccount": "maxsubmitpa", "maxsubmitjobspu": "maxsubmitpu",
    "maxsubmitjobspa": "maxsubmitpa", "maxtresperuser": "maxtrespu", "maxtresperaccount": "maxtrespa",
    "maxtresperjob": "maxtres", "maxtrespj": "maxtres", "maxtresminsperjob": "maxtresmins",
    "maxtresminspj": "maxtresmins", "maxwalldurationperjob": "maxwall", "maxwallpj": "maxwall",
    "maxtresrunminspu": "maxtresrunminsperuser", "maxtresrunminspa": "maxtresrunminsperaccount",
}  # fmt: skip
_LEFT_OUT = {
    "grpwall": "GrpWall (the wall time of all jobs together)",
    "maxtrespernode": "MaxTRESPerNode", "maxtrespn": "MaxTRESPerNode", "mintres": "MinTRES",
    "mintresperjob": "MinTRES", "grpjobsaccrue": "GrpJobsAccrue",
}  # fmt: skip
MOST = 2**32
"""Priorities of QOS are less than this, as Slurm's."""
_RECORD = re.compile(r"(Cluster|QOS|Parent|Account|User) - '([^']*)'(?::(.*))?")
_FIELD = re.compile(r"(\w+)=('[^']*'|[^:]*(?::\d+(?=:|$))*)(?::|$)")


@dataclass(slots=True)
class _Accounts:
    """The accounts of a file and the accounts above them."""

    parents: dict[str, str] = field(default_factory=dict)

    def below(self, name: str) -> list[str]:
        """Return an account and all accounts below it, in the order of the file."""
        return [child for child in dict.fromkeys([name, *self.parents]) if name in self._line(child)]

    def _line(self, name: str) -> list[str]:
        """Return an account and the accounts above it."""
        found = [name]
        while (above := self.parents.get(found[-1])) and above not in found:
            found.append(above)
        return found


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
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("|")]
        names = [cell.lower().replace(" ", "") for cell in cells]
        place = f"{where}:{number}"
        if {"account", "user"} <= set(names) or {"name", "flags"} <= set(names) or not head:
            head = names  # one file may have both tables
        elif len(cells) not in (len(head), len(head) + 1):
            notes.fault(f"{len(cells)} columns", place, f"{len(head)}, as in the header")
        else:
            reader.take(_normal(dict(zip(head, cells, strict=False))), place)
    if "name" not in head and "account" not in head:
        notes.refuse("there are neither QOS nor associations", where, "sacctmgr show qos -P or show assoc -P")
    return reader.description()


def read_sacctmgr_dump(text: str, where: str, *, strict: bool = False) -> MachineDescription:
    """Return the limits of a file that ``sacctmgr dump`` wrote; errors as `read_sacctmgr`."""
    notes = NoteCollector(strict=strict)
    reader = _Reader(notes)
    parent = ""
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
        names = {"Cluster": ("root", ""), "Account": (name, ""), "User": (parent, name)}[kind]
        reader.take(_normal({**values, "account": names[0], "user": names[1]}), place)
        if kind == "Account":
            reader.accounts.parents[name] = parent
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
                texts = {key: item[key] for key in ("account", "user", "partition") if item.get(key)}
                parent = item.get("parent_account")
                if any(not isinstance(text, str) for text in (*texts.values(), parent or "")):
                    notes.fault("an association with a name that is not a text", place)
                    continue
                values = {"user": "", **texts, "parentname": parent or ""}
                reader.take(values | _limits_at(item, paths), place)
    return reader.description()


def _normal(values: Mapping[str, str]) -> dict[str, str]:
    return {_SAME.get(key, key): value for key, value in values.items()}


class _Reader:
    """Takes one QOS or association after the other."""

    def __init__(self, notes: NoteCollector) -> None:
        self.notes = notes
        self.limits = LimitTables(notes)
        self.accounts = _Accounts()
        self._groups: list[tuple[dict[str, str], str]] = []
        self._records = 0
        self.qos: list[QosRow] = []

    def take(self, values: Mapping[str, str], where: str) -> None:
        """Take a record; its keys are those of sacctmgr in lower case."""
        self._records += 1
        for key, meaning in _LEFT_OUT.items():
            if values.get(key, "").lower() not in UNLIMITED:
                self.notes.left_out(meaning, where, cause=key)
        if values.get("account") is not None and "user" in values:
            self._association(dict(values), where)
        elif values.get("name"):
            self._qos(values["name"], values, where)

    def description(self) -> MachineDescription:
        """Return the description of all records."""
        for values, where in self._groups:
            names = self.accounts.below(values["account"])
            scope: dict[str, Any] = {"account": names if len(names) > 1 else names[0]}
            self._group({} if values["account"] == "root" else scope, values, where, HOLD)
        tables = self.limits.tables()
        if tables:
            self.notes.assumed(
                "all limits of QOS and associations count; in Slurm that of a QOS goes before the same "
                "one of an association, and AccountingStorageEnforce decides which are enforced"
            )
        config = {"limits": tables} if tables else {}
        return MachineDescription(
            recipe=Recipe(name=None, groups=()),
            config=config,
            notes=self.notes.notes(),
            format=FORMAT,
            qos=tuple(self.qos),
        )

    def _qos(self, name: str, values: Mapping[str, str], where: str) -> None:
        flags = values.get("flags", "").lower().replace("_", "")
        over = REJECT if "denyonlimit" in flags or "denylimit" in flags else HOLD
        scope = {"qos": name}
        self._group(scope, values, where, over)
        for suffix, long, dimension in (("pu", "user", "user"), ("pa", "account", "account")):
            each = {**scope, "each": dimension}
            self.limits.number(each, "running-jobs", values.get(f"maxjobs{suffix}"), where, over)
            self.limits.number(each, "submitted-jobs", values.get(f"maxsubmit{suffix}"), where, REJECT)
            self.limits.tres(each, values.get(f"maxtres{suffix}", ""), where, over)
            self.limits.minutes(each, values.get(f"maxtresrunminsper{long}", ""), where, "running-", over)
        self._single(scope, values, where, over)
        priority = self._plain(values, "priority", 0, where)
        used = self._plain(values, "usagefactor", 1, where)
        preempts = tuple(
            dict.fromkeys(part.strip() for part in values.get("preempt", "").split(",") if part.strip())
        )
        self.qos.append(QosRow(name, round(priority), used, where, preempts, self._victims(values, where)))

    def _victims(self, values: Mapping[str, str], where: str) -> dict[str, Any]:
        """Return what becomes of preempted jobs of a QOS, as far as it states that."""
        found: dict[str, Any] = {}
        text = values.get("preemptmode", "").lower()
        note_words(self.notes, text, where, "PreemptMode of QOS")
        mode = mode_of(text)
        if mode not in (None, "off"):  # OFF stands for the mode of the cluster
            found["mode"] = mode
        for key, name, read in (
            ("gracetime", "grace", grace_time),
            ("preemptexempttime", "exempt", time_limit),
        ):
            given = values.get(key, "")
            if given.lower() in UNLIMITED:
                continue
            seconds = self.notes.attempt(read, given, where, key)
            if seconds is not None and (seconds or name == "exempt") and seconds < float("inf"):
                found[name] = seconds
        return found

    def _plain(self, values: Mapping[str, str], key: str, usual: float, where: str) -> float:
        """Return a value of a QOS that is a number of 0 or more."""
        text = values.get(key, "")
        if text.lower() in UNLIMITED:
            return usual
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if 0 <= number < MOST:
            return number
        self.notes.fault(f"{key} {clip(text)!r} is not a number", where, "a number of 0 or more")
        return usual

    def _association(self, values: dict[str, str], where: str) -> None:
        account, user = values["account"], values["user"]
        if values.get("parentname"):
            self.accounts.parents.setdefault(account, values["parentname"])
        partition = values.get("partition", "")
        if not user:
            self.accounts.parents.setdefault(account, "")
            self._groups.append((values, where))
            scope: dict[str, Any] = {} if account == "root" else {"account": account}
            each: dict[str, Any] = {**scope, "each": "user" if scope else ["user", "account"]}
        else:
            scope = each = {"user": user, "account": account}
            self._group(scope, values, where, HOLD)
        if partition:
            scope, each = {**scope, "queue": partition}, {**each, "queue": partition}
        self.limits.number(each, "running-jobs", values.get("maxjobs"), where)
        self.limits.number(each, "submitted-jobs", values.get("maxsubmit"), where, REJECT)
        self._single(scope, values, where, HOLD)

    def _group(self, scope: dict[str, Any], values: Mapping[str, str], where: str, over: str) -> None:
        """Add the limits on all jobs of a scope together."""
        self.limits.number(scope, "running-jobs", values.get("grpjobs"), where, over)
        self.limits.number(scope, "submitted-jobs", values.get("grpsubmit"), where, REJECT)
        self.limits.tres(scope, values.get("grptres", ""), where, over)
        self.limits.minutes(scope, values.get("grptresmins", ""), where, "", over)
        self.limits.minutes(scope, values.get("grptresrunmins", ""), where, "running-", over)

    def _single(self, scope: dict[str, Any], values: Mapping[str, str], where: str, over: str) -> None:
        """Add the limits on each job of a scope."""
        job = {**scope, "each": "job"}
        self.limits.tres(job, values.get("maxtres", ""), where, over)
        self.limits.minutes(job, values.get("maxtresmins", ""), where, "", over)
        wall = values.get("maxwall", "")
        if wall.lower() not in UNLIMITED:
            seconds = self.notes.attempt(time_limit, wall, where, "MaxWall")
            if seconds is not None and seconds < float("inf"):
                self.limits.add(job, "duration", format_duration(seconds), over)


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
