"""`facts_of`: the facts that the records of Slurm's files make together.

The QOS and associations of the accounting database become rules and priorities (sacctmgr(1), "SPECIFICATIONS
FOR ASSOCIATIONS" and "FOR QOS", and the page resource_limits).  A value of an account's Max… is that of each
of its users, and its Grp… counts all of its users and of the accounts below it.  Of the other limits, the
first one that is defined counts: partition QOS, QOS of the job (before that of the partition with
OverPartQOS), user, account, accounts above, root.  Each rule has the place in this order as its `level`; Grp
limits all count, and have none.  A job over MaxSubmit is refused; one over another limit waits, unless the
QOS has the flag DenyOnLimit.

PreemptType, PreemptMode, PreemptExemptTime and PreemptParameters of the cluster, PreemptMode and GraceTime of
partitions become the table ``preemption``.  With ``preempt/qos`` the accounting database says which QOS
preempts another.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import clip
from simsched.formats.machines.description import NoteCollector, QosRow
from simsched.formats.machines.limit_tables import HOLD, REJECT, UNLIMITED, LimitTables, policy_of
from simsched.formats.machines.site_facts import Node, SiteFacts, name_queues, property_name
from simsched.formats.machines.site_facts import joined as joined_nodes
from simsched.formats.machines.slurm import notation
from simsched.formats.machines.slurm.config_keys import PARTITION as PARTITION_KEYS
from simsched.formats.machines.slurm.node_records import node_kind, status_of
from simsched.formats.machines.slurm.notation import (
    EVERY_NODE,
    Keys,
    Line,
    comma_parts,
    stated,
    time_limit,
    yes,
)
from simsched.formats.machines.slurm.settings import BY_PARTITION, BY_QOS, LEFT_OUT, WHOLE_NODES, YOUNGEST
from simsched.formats.machines.slurm.slurm_records import INSIDE, SlurmRecords, joined
from simsched.formats.rfc.duration import format_duration
from simsched.formats.rfc.hostlist import encode_hosts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.cluster.recipe import NodeGroup
    from simsched.formats.machines.description import Table
    from simsched.formats.machines.slurm.settings import Settings


MODES = ("requeue", "cancel", "suspend", "checkpoint", "off")
ENDING = ("requeue", "cancel")
"""The modes for which Slurm honours PreemptExemptTime (slurm.conf(5))."""
SUSPENDS = "PreemptMode=SUSPEND: the nodes of a suspended job run only jobs that may preempt it"
"""The note on the mode of suspended jobs."""
AT_ONCE = "PreemptMode=REQUEUE: a job queued again may start at once; Slurm keeps it back (121 s by default)"
"""The note on the mode of jobs that are queued again."""


def preemption_of(
    settings: Settings,
    tiers: Mapping[str, int],
    partitions: Mapping[str, Keys],
    qos: Sequence[QosRow] = (),
) -> dict[str, Any]:
    """Return the table ``preemption``; empty if no partition and no QOS preempts another.

    `tiers` is partition → PriorityTier, `qos` the QOS of the accounting database.
    """
    kind, mode = settings.get("preempttype"), settings.get("preemptmode")
    if kind != BY_QOS and any(row.preempts for row in qos):
        shown = "; ".join(f"QOS {row.name} preempts {', '.join(row.preempts)}" for row in qos if row.preempts)
        text = f"{shown}: no slurm.conf has PreemptType=preempt/qos"
        settings.notes.left_out(text, qos[0].where.rpartition(":")[0])
    if kind in ("", "preempt/none"):  # modes of a cluster where no job is preempted
        cause, none = "preemptmode without preempttype", "without PreemptType, no job is preempted"
        if mode not in ("", "off"):
            settings.at("preemptmode").left_out(f"PreemptMode={mode}: {none}", cause)
        for name, keys in partitions.items():
            own = keys.stated("preemptmode")
            if own.lower() not in ("", "off"):
                keys.left_out(f"partition {name}: PreemptMode={own}: {none}", cause)
        return {}
    if kind == BY_QOS:
        _note_rest(settings, mode)
        if qos:
            return _by_qos(settings, qos)
        text = "preemption with preempt/qos: which QOS preempts another is in the accounting database"
        settings.at("preempttype").left_out(text)
        return {}
    if kind != BY_PARTITION:
        settings.at("preempttype").left_out(f"PreemptType={settings.values['preempttype']}")
        return {}
    if len(set(tiers.values())) < 2:
        return {}
    common, exempt = mode_of(mode) or "off", _exempt(settings)
    found = _common(settings, common, exempt)
    victims = {name: _victims(partitions[name]) for name in tiers if name in partitions}
    tables = {name: with_exempt(table, common, exempt) for name, table in victims.items() if table}
    if tables:
        found["queues"] = tables
    used = {common, *(table["mode"] for table in tables.values() if "mode" in table)}
    if used == {"off"}:
        return {}
    _note_rest(settings, mode)
    if "suspend" in used:
        settings.at("preempttype").assumed(SUSPENDS)
    return found


def _by_qos(settings: Settings, rows: Sequence[QosRow]) -> dict[str, Any]:
    """Return the table ``preemption`` of these QOS; empty if none preempts another."""
    notes, where = settings.notes, rows[0].where.rpartition(":")[0]
    priorities = {row.name: row.priority for row in rows}
    mode, exempt = mode_of(settings.get("preemptmode")) or "off", _exempt(settings)
    modes = {row.name: row.victims.get("mode", mode) for row in rows}
    tables: dict[str, dict[str, Any]] = {}
    for row in rows:
        for name in row.preempts:
            if name == row.name:
                notes.left_out(f"QOS {name} preempts its own jobs", row.where)
            elif name not in priorities:
                notes.fault(f"QOS {row.name} preempts {name!r}, which the file does not have", row.where)
        found = dict(row.victims) if "exempt" in row.victims else {**with_exempt(row.victims, mode, exempt)}
        if found.get("mode", mode) == "suspend" and found.get("exempt"):
            found["exempt"] = 0  # Slurm ignores that of jobs that are suspended
        others = [name for name in row.preempts if name in priorities and name != row.name]
        loops = [one for one in others if modes[one] != "off" and _preempts(tables, modes, one, row.name)]
        for name in loops:
            others.remove(name)
            notes.fault(f"QOS {row.name} preempts {name}, whose jobs preempt its own", row.where)
        if others:  # Slurm preempts jobs of the QOS of the lowest priority first
            found["preempts"] = sorted(others, key=priorities.__getitem__)
        if found:
            tables[row.name] = found
    used = {modes[name] for table in tables.values() for name in table.get("preempts", ())}
    if used <= {"off"}:
        return {}
    if "suspend" in used:
        notes.assumed(SUSPENDS, where)
    shown = (f"{name}: {', '.join(row['preempts'])}" for name, row in tables.items() if "preempts" in row)
    notes.assumed(f"the QOS preempt these, the first one first: {'; '.join(shown)}", where)
    return {"by": "qos", **_common(settings, mode, exempt), "qos": tables}


def _preempts(tables: Mapping[str, Any], modes: Mapping[str, str], name: str, other: str) -> bool:
    """Whether jobs of one QOS preempt those of another, directly or through jobs that they preempt."""
    found = [one for one in tables.get(name, {}).get("preempts", ()) if modes[one] != "off"]
    return other in found or any(_preempts(tables, modes, one, other) for one in found)


def _common(settings: Settings, mode: str, exempt: float) -> dict[str, Any]:
    youngest = "youngest_first" in comma_parts(settings.get("preemptparameters"))
    youngest = youngest or YOUNGEST in settings.get("schedulerparameters")
    found: dict[str, Any] = {"mode": mode, "order": "youngest" if youngest else "priority"}
    if mode == "requeue":
        settings.at("preemptmode").assumed(AT_ONCE)
    return found | ({"exempt": exempt} if exempt and mode in ENDING else {})


def with_exempt(table: Mapping[str, Any], common: str, exempt: float) -> Mapping[str, Any]:
    """Return a table of victims with its exempt time where it differs from that of the common mode."""
    mode = table.get("mode", common)
    if exempt and (mode in ENDING) != (common in ENDING) and mode != "off":
        return {**table, "exempt": exempt if mode in ENDING else 0}
    return table


def _exempt(settings: Settings) -> float:
    """Return the seconds of PreemptExemptTime; 0 without a time, and for -1."""
    found = settings.at("preemptexempttime").time("preemptexempttime")
    return 0 if found is None or found == inf else found


def _note_rest(settings: Settings, mode: str) -> None:
    """Note the parts of the lines that affect which jobs are preempted, and are not kept."""
    left = [name for name in comma_parts(settings.get("preemptparameters")) if name != "youngest_first"]
    if left:
        settings.at("preemptparameters").left_out(f"PreemptParameters: {', '.join(left)}")
    note_words(settings.notes, mode, settings.where("preemptmode"), "PreemptMode")


def note_words(notes: NoteCollector, text: str, where: str, what: str) -> None:
    """Note the words of a PreemptMode that are not kept; GANG is a part of every mode SUSPEND."""
    words = text.lower().split(",")
    for word, meaning in _WORDS.items():
        if word in words and not (word == "gang" and "suspend" in words):
            notes.left_out(f"{what}={word.upper()} ({meaning})", where, cause=word)


_WORDS = {
    "within": "jobs preempt others of their own QOS",
    "priority": "only jobs of a higher priority preempt",
    "gang": "jobs that share nodes take turns",
}


def _victims(keys: Keys) -> dict[str, Any]:
    """Return how the jobs of a partition are preempted, as far as it states that."""
    own = keys.stated("preemptmode")
    mode = mode_of(own)
    if own and mode is None:
        keys.left_out(f"PreemptMode={own}", cause="partition preemptmode")
    seconds = keys.read(grace_time, "gracetime") if keys.stated("gracetime") else None
    return {key: value for key, value in (("mode", mode), ("grace", seconds)) if value}


def grace_time(text: str) -> float:
    """Return the seconds of a GraceTime, which is a number of seconds or a time.  Raises `FormatError`."""
    return notation.whole_number(text) if ":" not in text and "-" not in text else time_limit(text)


def mode_of(text: str) -> str | None:
    """Return the mode of victims in a PreemptMode, which may state GANG, PRIORITY and WITHIN beside it."""
    return next((word for word in text.lower().split(",") if word in MODES), None)


OVER_PARTITION, PARTITION, QOS, USER, ACCOUNT, ROOT = range(1, 7)
"""The levels of the hierarchy."""
_OWNERS = ("qos", "queue", "user", "account")
MOST_NAMES = 12
"""The most owners of limits that a note names."""
MOST = 2**32
"""Priorities of QOS are less than this, as Slurm's."""

#: Key → sacctmgr's name, and what it states; limits and options that are not held.
_LEFT_OUT = {
    "grpwall": ("GrpWall", "the wall time of all jobs together"),
    "maxtrespernode": ("MaxTRESPerNode", "the most of each node of a job"),
    "mintres": ("MinTRES", "the least that a job requests"),
    "grpjobsaccrue": ("GrpJobsAccrue", "the jobs whose age counts"),
    "maxjobsaccrue": ("MaxJobsAccrue", "the jobs whose age counts"),
    "maxjobsaccruepu": ("MaxJobsAccruePU", "the jobs whose age counts"),
    "maxjobsaccruepa": ("MaxJobsAccruePA", "the jobs whose age counts"),
    "minpriothresh": ("MinPrioThresh", "the least priority for a reservation"),
    "usagethres": ("UsageThreshold", "the least fair share of jobs that may be submitted"),
    "maxtresrunmins": ("MaxTRESRunMins", "the minutes that running jobs may still use"),
}
_DATABASE = {
    "qos": ("QOS", "the QOS that its jobs may use"),
    "defqos": ("DefaultQOS", "the QOS of jobs that name none: a log states that of each job"),
}
_USED_KEYS = """
    account adminlevel cluster comment coordinator coordinators defaultaccount defaultwckey defqos description
    descr fairshare flags gracetime
    grpjobs grpsubmit grptres grptresmins grptresrunmins id lft limitfactor lineage maxjobs
    maxjobspa maxjobspu maxsubmit maxsubmitpa maxsubmitpu maxtres maxtresmins maxtrespa maxtrespu
    maxtresrunminsperaccount maxtresrunminsperuser maxwall name org organization parent parentid parentname
    partition preempt preemptexempttime preemptmode priority qos rgt share shares usagefactor user wckeys
"""
_USED = frozenset(_USED_KEYS.split())
"""The keys that are used, here or by the fair share, and those without effect on the schedule."""

#: Flags of QOS in lower case, without underscores → what they state; None: held, or without effect here.
_FLAGS: Mapping[str, str | None] = {
    "denyonlimit": None, "denylimit": None, "overpartqos": None, "overridepartitionqos": None,
    "nodecay": None, "none": None, "notset": None, "add": None, "remove": None, "deleted": None,
    "enforceusagethreshold": "jobs below the UsageThreshold are rejected",
    "noreserve": "jobs get no reservation of the backfill scheduler",
    "partitionmaxnodes": "jobs may exceed the MaxNodes of the partition",
    "partitionmaximumnode": "jobs may exceed the MaxNodes of the partition",
    "partitionminnodes": "jobs may be below the MinNodes of the partition",
    "partitionminimumnode": "jobs may be below the MinNodes of the partition",
    "partitiontimelimit": "jobs may exceed the MaxTime of the partition",
    "partitionqos": "a QOS of partitions alone",
    "relative": "its limits are percentages",
    "requiresreservation": "jobs need a reservation", "requiredreservation": "jobs need a reservation",
    "usagefactorsafe": "GrpTRESMins counts the time limit of a job times the UsageFactor",
}  # fmt: skip


class SlurmLimits:
    """The QOS and associations of joined records.

    qos : the values of QOS that are not limits.
    """

    def __init__(self, records: SlurmRecords, notes: NoteCollector) -> None:
        self._records = records
        self._notes = notes
        self._limits = LimitTables(notes)
        self._qos: dict[str, Keys] = {}
        for values, where in records.qos:  # of a QOS in two files, the first counts
            self._qos.setdefault(values["name"], Keys(values, notes, where))
        self.qos = tuple(self._row(name, keys) for name, keys in self._qos.items())
        self._associations = self._of_this_cluster()
        self._parents: dict[str, str] = {}  # account → the account above it
        for values in (keys.values for keys in self._associations):
            if values.get("parentname") or not values["user"]:
                self._parents.setdefault(values["account"], values.get("parentname", ""))

    def tables(self, cpus_per_core: int, partitions: Sequence[str]) -> list[dict[str, Any]]:
        """Return the tables ``[[limits]]``; of Slurm's CPUs, `cpus_per_core` are a core."""
        for keys in (*self._qos.values(), *self._associations):
            _leave_out(keys, _LEFT_OUT)
            for key, value in keys.values.items():
                if key not in _USED and key not in _LEFT_OUT and value.lower() not in UNLIMITED:
                    keys.left_out(f"{key}={clip(value)}: not known", cause=key)
        for keys in self._associations:
            _leave_out(keys, _DATABASE)
        with_qos: dict[str, list[str]] = {}
        for name, line in self._records.partitions.items():
            of = stated(line.values, "qos")
            if of and of in self._qos:
                with_qos.setdefault(of, []).append(name)
            elif of:
                text = f"partition {clip(name)}: QOS={clip(of)} (the limits of its QOS, which no file states)"
                self._notes.left_out(text, line.where, cause="partition qos")
        for name, keys in self._qos.items():
            flags = self._flags(keys)
            over = REJECT if {"denyonlimit", "denylimit"} & flags else HOLD
            level = OVER_PARTITION if {"overpartqos", "overridepartitionqos"} & flags else QOS
            if name in with_qos:
                queues = with_qos[name]
                self._of_qos({"queue": _one_or_all(queues)}, PARTITION, keys, over)
                both = f"the jobs of {clip(', '.join(queues))}, and the jobs with this QOS, apart"
                text = f"limits of QOS {clip(name)} count {both}; Slurm counts them together"
                keys.assumed(text, cause="partition qos apart")
            self._of_qos({"qos": name}, level, keys, over)
        self._of_associations(partitions)
        tables = self._limits.tables()
        for table in tables if cpus_per_core > 1 else ():  # cores in the place of hardware threads
            for key in table:
                if key == "cores":
                    table[key] //= cpus_per_core
                elif key.endswith("core-hours"):
                    table[key] /= cpus_per_core
        given = self._records.settings.get("accountingstorageenforce")
        if given and not tables:
            text = f"AccountingStorageEnforce={given}: no file states limits of associations and QOS"
            self._notes.left_out(text, self._records.settings.where("accountingstorageenforce"))
        if not tables or not self._are_enforced(tables):
            return []
        if len({table.get("level") for table in tables} - {None}) > 1:
            text = (
                "of the limits that are not Grp limits, the first one that is defined counts: partition QOS, "
                "QOS, user, account, root (the key level)"
            )
            self._notes.assumed(text)
            return tables
        return [{key: value for key, value in table.items() if key != "level"} for table in tables]

    def _are_enforced(self, tables: Sequence[Mapping[str, Any]]) -> bool:
        """Whether Slurm enforces limits (AccountingStorageEnforce, slurm.conf(5)); a note says why."""
        settings = self._records.settings
        if not settings.are_stated:
            text = "no slurm.conf states AccountingStorageEnforce: all limits of QOS and associations count"
            self._notes.assumed(text)
            return True
        given = settings.get("accountingstorageenforce")
        words = {word.strip() for word in given.split(",")}
        where = settings.where("accountingstorageenforce")
        if not words & {"limits", "safe", "all", "2"}:
            stated_so = f"AccountingStorageEnforce={given}" if given else "no AccountingStorageEnforce"
            named = ((kind, table[kind]) for table in tables for kind in _OWNERS if kind in table)
            owners = {
                f"{kind} {name if isinstance(name, str) else ', '.join(name)}": 0 for kind, name in named
            }
            more = f" and {len(owners) - MOST_NAMES} more" if len(owners) > MOST_NAMES else ""
            names = ", ".join([*owners][:MOST_NAMES]) + more or "all jobs"
            text = f"this slurm.conf does not enforce limits ({stated_so}): those of {names}"
            self._notes.left_out(text, where)
            return False
        quantities = {key for table in tables for key in table}
        if "memory" in quantities and not settings.counts_memory:
            text = "limits on memory do not count: Slurm does not count memory on this machine"
            self._notes.left_out(text, settings.where("selecttypeparameters"))
        if quantities & {"core-hours", "node-hours", "gpu-hours"}:
            if not words & {"safe", "all"}:
                text = (
                    "GrpTRESMins: a job starts only if it can end within the limit, as with "
                    f"AccountingStorageEnforce=safe; this one is {given}"
                )
                self._notes.assumed(text, where)
            half_life = settings.get("prioritydecayhalflife") or "7-0"
            if half_life not in ("0", "0-0", "00:00:00", "0-00:00:00"):
                text = f"GrpTRESMins: usage does not decay (PriorityDecayHalfLife={half_life})"
                self._notes.left_out(text, settings.where("prioritydecayhalflife"))
        return True

    # --- QOS ---------------------------------------------------------------------------------

    def _row(self, name: str, keys: Keys) -> QosRow:
        priority, used = _plain(keys, "priority", 0), _plain(keys, "usagefactor", 1)
        if _plain(keys, "limitfactor", 1) not in (0, 1):
            given = keys.values["limitfactor"]
            text = f"LimitFactor={given} of QOS {name} (it multiplies limits of associations)"
            keys.left_out(text, cause="limitfactor")
        preempts = (part.strip() for part in keys.values.get("preempt", "").split(","))
        names = tuple(dict.fromkeys(filter(None, preempts)))
        return QosRow(name, round(priority), used, keys.where, names, self._victims(keys))

    def _flags(self, keys: Keys) -> set[str]:
        found = set()
        for flag in map(str.strip, comma_parts(keys.values.get("flags", "").replace("+", ","))):
            word = flag.lower().replace("_", "")
            found.add(word)
            if word and word not in _FLAGS:
                keys.left_out(f"Flags={clip(flag)} of QOS {keys.values['name']}: not known")
            elif meaning := _FLAGS.get(word):
                keys.left_out(f"Flags={flag} of QOS {keys.values['name']} ({meaning})")
        return found

    def _of_qos(self, scope: dict[str, Any], level: int, keys: Keys, over: str) -> None:
        values, where = keys.values, keys.where
        self._group(scope, keys, over)
        for suffix, dimension in (("pu", "user"), ("pa", "account")):
            each = {**scope, "each": dimension, "level": level}
            self._limits.number(each, "running-jobs", values.get(f"maxjobs{suffix}"), where, over)
            self._limits.number(each, "submitted-jobs", values.get(f"maxsubmit{suffix}"), where, REJECT)
            self._limits.tres(each, values.get(f"maxtres{suffix}", ""), where, over)
            minutes = values.get(f"maxtresrunminsper{dimension}", "")
            self._limits.minutes(each, minutes, where, "running-", over)
        self._single({**scope, "level": level}, keys, over)

    def _victims(self, keys: Keys) -> dict[str, Any]:
        found: dict[str, Any] = {}
        text = keys.values.get("preemptmode", "")
        note_words(self._notes, text, keys.where, "PreemptMode of QOS")
        mode = mode_of(text)
        if mode not in (None, "off"):  # OFF stands for the mode of the cluster
            found["mode"] = mode
        times = {"gracetime": ("grace", grace_time), "preemptexempttime": ("exempt", time_limit)}
        for key, (name, read) in times.items():
            given = keys.values.get(key, "")
            seconds = None if given.lower() in UNLIMITED else keys.read(read, key, given)
            if seconds is not None and (seconds or name == "exempt") and seconds < inf:
                found[name] = seconds
        return found

    # --- associations ------------------------------------------------------------------------

    def _of_this_cluster(self) -> list[Keys]:
        """Return the associations of the cluster: one accounting database may have those of several.

        Of a value that two files state, the first counts.
        """
        lines = [Keys(values, self._notes, where) for values, where in self._records.associations]
        own = self._records.settings.get("clustername")
        named = dict.fromkeys(line.values.get("cluster", "").lower() for line in lines)
        named.pop("", None)
        name = own if own in named or not named else next(iter(named))
        if name != own and (own or len(named) > 1):
            which = f"no association is of {own}" if own else "no file states ClusterName"
            self._notes.assumed(f"{which}: those of the cluster {clip(name)} count", lines[0].where)
        others = [line for line in lines if line.values.get("cluster", "").lower() not in ("", name)]
        if others:
            names = ", ".join(sorted({line.values["cluster"] for line in others}))
            others[0].left_out(f"associations of clusters other than {name}: {clip(names)} ({len(others):,})")
            lines = [line for line in lines if line.values.get("cluster", "").lower() in ("", name)]
        found: dict[tuple[str, str, str], Keys] = {}
        for line in lines:
            key = line.values["account"], line.values["user"], line.values.get("partition", "")
            known = found.setdefault(key, line)
            before = {name: value for name, value in known.values.items() if value.lower() not in UNLIMITED}
            found[key] = replace(known, values={**known.values, **line.values, **before})
        return list(found.values())

    def _line(self, name: str) -> list[str]:
        """Return an account and the accounts above it."""
        found = [name]
        while (above := self._parents.get(found[-1])) and above not in found:
            found.append(above)
        return found

    def _of_associations(self, partitions: Sequence[str]) -> None:
        accounts = {keys.values["account"]: keys for keys in self._associations if not keys.values["user"]}
        users = [keys for keys in self._associations if keys.values["user"]]
        below: dict[str, list[str]] = {}
        for name in self._parents:
            for above in self._line(name):
                below.setdefault(above, []).append(name)
        if len(accounts.keys() - {"root"}) > 1 and not any(self._parents.values()):
            text = "no file states which accounts are above others, as sacctmgr dump or show assoc tree does"
            self._notes.assumed(f"the limits of an account are those of its own users: {text}")
        for name, keys in accounts.items():
            names = below.get(name, [name])
            scope: dict[str, Any] = {} if name == "root" else {"account": _one_or_all(names)}
            self._group(scope, keys, HOLD)
        own: dict[tuple[str, str], list[str]] = {}
        for values in (keys.values for keys in users):
            if values.get("partition"):
                own.setdefault((values["account"], values["user"]), []).append(values["partition"])
        for keys in users:
            values = keys.values
            scope = {"user": values["user"], "account": values["account"]}
            apart = own.get((values["account"], values["user"]), [])
            if values.get("partition"):
                scope["queue"] = values["partition"]
            elif apart and partitions:  # the association of a partition takes the place of this one
                others = [name for name in partitions if name not in apart]
                if not others:
                    continue
                scope["queue"] = _one_or_all(others)
            self._group(scope, keys, HOLD)
            self._maximums(scope, {**scope, "level": USER}, keys, USER)
        for name, keys in accounts.items():
            if name == "root":
                self._maximums({}, {"each": ["user", "account"], "level": ROOT}, keys, ROOT)
                continue
            for above in self._line(name):  # of a value of several accounts, that of the nearest counts
                if above in accounts and above != "root":
                    scope = {"account": name}
                    each = {**scope, "each": "user", "level": ACCOUNT}
                    self._maximums(scope, each, accounts[above], ACCOUNT)

    def _maximums(self, scope: dict[str, Any], each: dict[str, Any], keys: Keys, level: int) -> None:
        self._limits.number(each, "running-jobs", keys.values.get("maxjobs"), keys.where)
        self._limits.number(each, "submitted-jobs", keys.values.get("maxsubmit"), keys.where, REJECT)
        self._single({**scope, "level": level}, keys, HOLD)

    def _group(self, scope: dict[str, Any], keys: Keys, over: str) -> None:
        """Add the limits on all jobs of a scope together."""
        values, where = keys.values, keys.where
        self._limits.number(scope, "running-jobs", values.get("grpjobs"), where, over)
        self._limits.number(scope, "submitted-jobs", values.get("grpsubmit"), where, REJECT)
        self._limits.tres(scope, values.get("grptres", ""), where, over)
        self._limits.minutes(scope, values.get("grptresmins", ""), where, "", over)
        self._limits.minutes(scope, values.get("grptresrunmins", ""), where, "running-", over)

    def _single(self, scope: dict[str, Any], keys: Keys, over: str) -> None:
        """Add the limits on each job of a scope."""
        job = {**scope, "each": "job"}
        self._limits.tres(job, keys.values.get("maxtres", ""), keys.where, over)
        self._limits.minutes(job, keys.values.get("maxtresmins", ""), keys.where, "", over)
        wall = keys.values.get("maxwall", "")
        seconds = None if wall.lower() in UNLIMITED else keys.read(time_limit, "maxwall", wall, "MaxWall")
        if seconds is not None and seconds < inf:
            self._limits.add(job, "duration", format_duration(seconds), over)


def _one_or_all(names: list[str]) -> str | list[str]:
    """Return the names of a scope as a table of limits has them."""
    return names if len(names) > 1 else names[0]


def _leave_out(keys: Keys, meanings: Mapping[str, tuple[str, str]]) -> None:
    for key, (name, meaning) in meanings.items():
        value = keys.values.get(key, "")
        if value.lower() not in UNLIMITED and value.strip("0.") != "":
            keys.left_out(f"{name}={clip(value)} ({meaning})", cause=key)


def _plain(keys: Keys, key: str, usual: float) -> float:
    """Return a value of a QOS that is a number of 0 or more."""
    text = keys.values.get(key, "")
    if text.lower() in UNLIMITED:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if 0 <= number < MOST:
        return number
    keys.fault(f"{key} {clip(text)!r} is not a number", "a number of 0 or more")
    return usual


MAX_WEIGHT = 2**32
MAX_WORDS = 1000
"""The most features or partitions of a node."""


def facts_of(parts: Sequence[SlurmRecords], *, strict: bool = False) -> SiteFacts:
    """Return the facts that the records of these files state together.

    strict : the first fault is an error, as it is if one of the files was read so.
    """
    whole, nodes = joined(parts)
    whole.notes.strict |= strict
    return _Understanding(whole, nodes).facts(", ".join(dict.fromkeys(part.form for part in parts)))


class _Understanding:
    """The understanding of joined records; short-lived."""

    def __init__(self, records: SlurmRecords, lists: Sequence[tuple[str, Mapping[str, Line]]]) -> None:
        self.notes = records.notes
        self.settings = records.settings
        self.reader = records.reader
        self.partitions = {
            name: Keys(values, self.notes, where) for name, (values, where) in records.partitions.items()
        }
        self._records = records
        self._kinds: dict[tuple[tuple[str, str], ...], tuple[NodeGroup, int]] = {}
        self._groups: dict[NodeGroup, NodeGroup] = {}
        self._read: dict[tuple[int, str], Node | None] = {}
        self._planned: set[str] = set()
        self.nodes = joined_nodes([(form, self._nodes(lines)) for form, lines in lists], self.notes)
        for hosts, state, where in records.down:  # DownNodes give nodes another state
            status = status_of(state)
            for host in hosts:
                if host not in self.nodes and host not in self._planned:
                    self.notes.fault(f"there is no node {host!r}", where, cause="DownNodes")
                elif status is not None and host not in self._planned:
                    self.nodes[host].status = status
        self.switches = records.switches.tree(self.nodes) if self.nodes else None
        plugin = self.settings.get("topologyplugin")
        flat = ("", "topology/default", "topology/flat", "topology/none")
        if not records.switches.hosts and plugin not in flat:
            self.settings.at("topologyplugin").left_out(f"TopologyPlugin={plugin}: no topology.conf was read")

    def _nodes(self, lines: Mapping[str, Line]) -> dict[str, Node]:
        """Return the nodes of one file, without those that it or an earlier one only plans."""
        found = {}
        for host, line in lines.items():
            node = None if host in self._planned else self._node(host, line)
            if node is None:
                self._planned.add(host)
            else:
                found[host] = node
        return found

    def _node(self, host: str, line: Line) -> Node | None:
        """Return a node, None if it is only planned; nodes of one record are one object."""
        values, where = line
        gres = self._records.gres.typed(host, values.get("gres", ""), where)
        place = id(values), gres
        if place in self._read:
            return self._read[place]
        state = stated(values, "state")
        status = status_of(state) if state else "up"
        node = None
        if status is None:
            text = f"nodes in the state {state.upper()} are only planned and not in the graph"
            self.notes.left_out(text, where, cause="future nodes")
        else:
            if "CLOUD" in state.upper():
                self.notes.assumed("nodes in the cloud are up; the time to start them is left out", where)
            kind, cpus_per_core = self._kind({**values, "gres": gres}, where)
            features = self._words(stated(values, "features", "feature").replace(" ", ""), where, "features")
            partitions = self._words(stated(values, "partitions"), where, "partitions")
            weight = Keys(values, self.notes, where).number("weight", most=MAX_WEIGHT)
            weight = 1 if weight is None else weight
            node = Node(kind, features, status, weight, partitions, cpus_per_core)
        self._read[place] = node
        return node

    def _words(self, text: str, where: str, key: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(comma_parts(text)))
        if len(words) > MAX_WORDS:
            self.notes.fault(f"{key}: {len(words):,} names", where, f"at most {MAX_WORDS:,}", cause=key)
        return words[:MAX_WORDS]

    def _kind(self, values: Mapping[str, str], where: str) -> tuple[NodeGroup, int]:
        """Return the inside of nodes with these keys; equal ones are one object."""
        inside = tuple(sorted((key, value) for key, value in values.items() if key in INSIDE))
        found = self._kinds.get(inside)
        if found is None:
            # TmpDisk is the size of the directory TmpFS
            path = stated(self.settings.values, "tmpfs") or "/tmp"  # noqa: S108 - a path on the nodes of the site
            group, cpus_per_core = node_kind(Keys(dict(inside), self.notes, where), path)
            if not self.settings.counts_memory:
                group = replace(group, pools=tuple(pool for pool in group.pools if pool.type != "memory"))
            group = self._groups.setdefault(group, group)
            found = self._kinds[inside] = (group, cpus_per_core)
        return found

    def facts(self, form: str) -> SiteFacts:
        members = self._members()
        for node in self.nodes.values():
            names = (*map(property_name, node.properties), *node.kind.properties)
            node.properties = tuple(dict.fromkeys(names))
        places = {name: keys.where for name, keys in self.partitions.items()}
        placed = {name: (hosts, places.get(name, "")) for name, hosts in members.items()}
        properties = name_queues(placed, self.nodes, self.notes)
        pools, nodes = self.settings.licences(), self._in_order()
        limits = SlurmLimits(self._records, self.notes)
        config = self._config(members, properties, limits)
        counted = {node.cpus_per_core for node in self.nodes.values()}
        if len(counted) > 1:
            numbers = ", ".join(map(str, sorted(counted)))
            text = f"nodes differ in the CPUs per core ({numbers}): the CPUs of a log are taken as cores"
            self.notes.left_out(text)
        cpus_per_core = counted.pop() if len(counted) == 1 else 1
        if pools:
            config["licenses"] = {pool.type: pool.amount.size for pool in pools}
        if self._records.reservations:
            config["reservations"] = list(self._records.reservations.values())
        tables = limits.tables(cpus_per_core, list(members))
        if tables:
            config["limits"] = tables
        typed = any("gpu-type" in table for table in tables) and config.get("match-policy") == WHOLE_NODES
        if typed and any(len(node.kind.properties) > 1 for node in self.nodes.values()):
            text = "jobs with whole nodes count all gpus of these for a limit on one type of gpus"
            self.notes.assumed(text)
        self.settings.note_unused()
        return SiteFacts(
            form=form,
            notes=self.notes,
            nodes=nodes,
            config=config,
            cpus_per_core=cpus_per_core,
            name=stated(self.settings.values, "clustername") or None,
            pools=pools,
            network=self.switches,
        )

    def _members(self) -> dict[str, list[str]]:
        """Return the nodes of each partition: those of its own record, or else those that name it."""
        named: dict[str, list[str]] = {}
        for host, node in self.nodes.items():
            for name in node.queues:
                named.setdefault(name, []).append(host)
        found = {}
        for name, keys in self.partitions.items():
            text = keys.stated("nodes")
            hosts = self._resolved(name, text, keys) if text else named.get(name, [])
            if not hosts:
                keys.assumed(f"the partition {clip(name)} has no nodes: its jobs never start")
            found[name] = hosts
        missing = [name for name in named if name not in found]
        if missing:
            text = f"the limits of the partitions {', '.join(missing)}, which no file states"
            self.notes.left_out(text)
        return {**found, **{name: named[name] for name in missing}}

    def _resolved(self, name: str, text: str, keys: Keys) -> list[str]:
        """Return the nodes of a partition, each once; unknown ones are noted."""
        found: dict[str, None] = {}
        unknown: list[str] = []
        for part in dict.fromkeys(comma_parts(",".join(text.split()))):  # Slurm takes blanks as commas here
            if part.lower() == EVERY_NODE:
                self.reader.count(len(self.nodes), keys.where)
                found.update(dict.fromkeys(self.nodes or (EVERY_NODE,)))
                continue
            is_set = part in self._records.node_sets
            hosts = self._set(part) if is_set else self.reader.names(part, keys.where, "nodes")
            for host in hosts:
                if host in self.nodes or not self.nodes:
                    found[host] = None
                elif host not in self._planned:
                    unknown.append(host)
        if unknown:
            text = f"partition {clip(name)}: there is no node {clip(encode_hosts(unknown))}"
            keys.fault(text, "a NodeName before it", cause="partition of unknown nodes")
        return list(found)

    def _set(self, name: str) -> list[str]:
        """Return the nodes of a NodeSet: those that it lists, and those with its feature."""
        facts = self._records.node_sets[name]
        self.reader.count(len(self.nodes), facts.where)
        text, feature = stated(facts.values, "nodes"), stated(facts.values, "feature", "features")
        every = text.lower() == EVERY_NODE
        found = dict.fromkeys(self.nodes if every else self.reader.names(text, facts.where, "nodes"))
        if feature:
            found |= dict.fromkeys(host for host, node in self.nodes.items() if feature in node.properties)
        return list(found)

    def _in_order(self) -> dict[str, Node]:
        """Return the nodes, those of a lower weight first, and those that are alike together."""
        if len({node.weight for node in self.nodes.values()}) > 1:
            text = "nodes of a lower Weight come first: the match policy first prefers them, as Slurm does"
            self.notes.assumed(text)
        alike: dict[tuple[int, tuple[str, ...]], dict[str, Node]] = {}
        for host, node in sorted(self.nodes.items(), key=lambda item: item[1].weight):
            alike.setdefault((id(node.kind), node.properties), {})[host] = node
        return {host: node for nodes in alike.values() for host, node in nodes.items()}

    def _config(self, members: dict[str, list[str]], words: dict[str, str], limits: SlurmLimits) -> Table:
        """Return the run options and the queues; `words` has the property of each."""
        factors: dict[str, float] = {}
        for name, keys in self.partitions.items():
            factor = keys.number("priority", "priorityjobfactor")
            factors[name] = 1 if factor is None else factor
        config = self.settings.run_options(factors, limits.qos)
        queues: dict[str, dict[str, Any]] = {}
        defaults: list[str] = []
        for name, hosts in members.items():
            keys = self.partitions.get(name, Keys({}, self.notes, ""))
            nodes: dict[str, Any] = {"requires": [words[name]]}
            if hosts and not self.nodes:
                nodes = {"hosts": EVERY_NODE if EVERY_NODE in hosts else encode_hosts(hosts)}
            queues[name] = nodes | queue_of(name, keys)
            self._note_unmet(name, keys, hosts)
            if keys.read(yes, "default", keys.values.get("default", "NO")):
                defaults.append(name)
        tiers = {name: queue["priority"] for name, queue in queues.items()}
        preemption = preemption_of(self.settings, tiers, self.partitions, limits.qos)
        if preemption:
            config["preemption"] = preemption
        for name, tier in tiers.items():
            if preemption and preemption.get("by") != "qos" and tier > min(tiers.values()):
                queues[name]["preempts"] = True
            if len(set(tiers.values())) == 1:
                del queues[name]["priority"]
        exclusive = [name for name, keys in self.partitions.items() if is_exclusive(keys)]
        if exclusive and "match-policy" not in config:
            if len(exclusive) == len(self.partitions):
                config["match-policy"] = WHOLE_NODES
                text = "all partitions are exclusive: match-policy = firstnodex gives whole nodes"
                self.notes.assumed(text)
            else:
                text = f"the partitions {', '.join(exclusive)} give whole nodes (OverSubscribe=EXCLUSIVE)"
                self.notes.left_out(text, self.partitions[exclusive[0]].where)
        if len(defaults) > 1:
            text = f"the partitions {', '.join(defaults)} are all the default; the last one counts"
            self.notes.fault(text, self.partitions[defaults[-1]].where)
        if self.partitions and not defaults and self._records.without_default:
            text = "the default partition, which this JSON does not state"
            self.notes.left_out(text, self._records.without_default)
        if defaults:
            config["policy"] = {"jobspec": {"defaults": {"system": {"queue": defaults[-1]}}}}
        if queues:
            config["queues"] = queues
        return config

    def _note_unmet(self, name: str, keys: Keys, hosts: Sequence[str]) -> None:
        """Note values of a partition that none of its nodes can meet."""
        nodes = [self.nodes[host] for host in hosts if host in self.nodes]
        least, memory = keys.stated("minnodes"), keys.stated("defmempernode")
        if nodes and least.isdecimal() and len(least) < 16 and int(least) > len(nodes):
            text = f"partition {clip(name)}: MinNodes={least} of {len(nodes):,} nodes: no job can run"
            keys.assumed(text, cause="minnodes")
        pools = [pool.amount.size for node in nodes for pool in node.kind.pools if pool.type == "memory"]
        if pools and memory.isdecimal() and len(memory) < 16 and int(memory) > max(pools):
            text = f"partition {clip(name)}: DefMemPerNode={memory}, which none of its nodes has"
            keys.assumed(text, cause="defmempernode")


# --- partitions -------------------------------------------------------------------------------------

EXCLUSIVE = "exclusive"
CLOSED = [["0s", "inf"]]
"""The windows of a queue of which no job starts."""
MOST_NODES = 2**31 - 1

PARTITION_ALONE = {
    "overtimelimit": "the time that a job may run beyond its limit",
    "cpubind": "how tasks are bound to CPUs",
    "disablerootjobs": "whether root may submit to it",
    "hidden": "whether users see it",
    "powerdownonidle": "nodes are switched off when they are idle",
    "selecttypeparameters": "its own consumable resources",
    "suspendtime": "the time after which idle nodes are switched off",
    "topology": "its own topology",
    "tresbillingweights": "the weights of resources in usage, which counts cores here",
}
"""Keys of partitions that are not held, and that the whole cluster does not have in this sense."""
_NO_EFFECT = frozenset({"all", "no", "0", "default", *notation.UNLIMITED})


def queue_of(name: str, keys: Keys) -> dict[str, Any]:
    """Return the queue of a partition without its nodes; ``priority`` is always present."""
    # slurmctld takes Priority for the tier and the factor, whatever else is stated
    tier = keys.number("priority", "prioritytier")
    longest, usual = _minutes(keys, "maxtime"), _minutes(keys, "defaulttime")
    sizes = dict[str, Any]()
    for key, side, trivial in (("maxnodes", "max", -1), ("minnodes", "min", 1)):
        unlimited = keys.stated(key).lower() in notation.UNLIMITED
        number = None if unlimited else keys.number(key, most=MOST_NODES)
        if number is not None and number > trivial:  # a minimum of one node is not a limit
            sizes[side] = {"nnodes": number}
            text = "MaxNodes and MinNodes count the nodes of a request, and one for a request of cores alone"
            keys.assumed(text)
    if usual is not None and longest is not None and usual > longest:
        # Slurm gives such a job MaxTime; a default above a limit refuses it, as in Flux
        given = keys.stated("defaulttime")
        keys.assumed(f"partition {name}: DefaultTime={given} is above MaxTime, which is the default")
        usual = longest
    queue: dict[str, Any] = {"priority": 1 if tier is None else tier}
    policy = policy_of(longest, sizes, usual)
    if policy:
        queue["policy"] = policy
    state = keys.stated("state").upper()
    if state and state != "UP":
        queue["closed"] = CLOSED
        keys.assumed(f"partition {name} is {state}: none of its jobs start")
    of = f"partition {name}: "  # keys with an effect that a queue does not hold: one note for each
    for key, meaning in {**LEFT_OUT, **PARTITION_ALONE}.items():
        value = keys.stated(key)
        if value and value.lower() not in _NO_EFFECT:
            keys.left_out(f"{of}{PARTITION_KEYS[key]}={value} ({meaning})", cause=f"partition {key}")
    holders = {"user": "exclusiveuser", "topo": "exclusivetopo"}
    kind = keys.stated("exclusive").lower()
    if kind in holders:
        text = f"{of}Exclusive={kind.upper()} ({LEFT_OUT[holders[kind]]})"
        keys.left_out(text, cause=f"partition {holders[kind]}")
    elif kind not in ("", "no", "node"):
        keys.fault(f"{of}Exclusive={clip(kind)}", "NO, NODE, USER or TOPO")
    sharing, _, jobs = _sharing(keys).partition(":")
    if sharing in ("yes", "force") and jobs != "1":
        text = f"{of}OverSubscribe={_sharing(keys).upper()} (jobs share cores; here each core has one job)"
        keys.left_out(text, cause="partition oversubscribe")
    return queue


def _minutes(keys: Keys, key: str) -> float | None:
    """Return the seconds of a time limit as slurmctld keeps it: in whole minutes, rounded up."""
    seconds = keys.time(key)
    return seconds if seconds is None or seconds == inf else -(-seconds // 60) * 60


def is_exclusive(keys: Keys) -> bool:
    """Return whether each job of a partition has whole nodes; ``Exclusive`` replaces the older keys."""
    kind = keys.stated("exclusive").lower()
    if kind in ("node", "topo", "no"):
        return kind != "no"
    topology = keys.stated("exclusivetopo").lower() not in ("", "no")
    return topology or _sharing(keys).partition(":")[0] == EXCLUSIVE


def _sharing(keys: Keys) -> str:
    return keys.stated("oversubscribe", "shared").lower()
