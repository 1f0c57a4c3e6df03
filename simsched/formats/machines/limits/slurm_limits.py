"""`SlurmLimits`: the QOS and associations of Slurm's accounting database as rules and priorities.

sacctmgr(1), "SPECIFICATIONS FOR ASSOCIATIONS" and "FOR QOS", and the page resource_limits. A value of an
account's Max… is that of each of its users, and its Grp… counts all of its users and of the accounts below
it. Of the other limits, the first one that is defined counts: partition QOS, QOS of the job (before that of
the partition with OverPartQOS), user, account, accounts above, root. Each rule has the place in this order as
its `level`; Grp limits all count, and have none. A job over MaxSubmit is refused; one over another limit
waits, unless the QOS has the flag DenyOnLimit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.formats.machines.description import QosRow
from simsched.formats.machines.limits.limit_tables import HOLD, REJECT, UNLIMITED, LimitTables
from simsched.formats.machines.slurm.notation import comma_parts, stated, time_limit
from simsched.formats.machines.slurm.preemption_lines import grace_time, mode_of, note_words
from simsched.formats.rfc.duration import format_duration
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.shared.note_collector import NoteCollector
    from simsched.formats.machines.slurm.slurm_records import Line, SlurmRecords

OVER_PARTITION, PARTITION, QOS, USER, ACCOUNT, ROOT = range(1, 7)
"""The levels of the hierarchy."""
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
    account adminlevel cluster comment coordinators defaultaccount defaultwckey defqos description descr
    fairshare flags gracetime
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
        self._qos: dict[str, Line] = {}
        for line in records.qos:  # of a QOS in two files, the first counts
            self._qos.setdefault(line.values["name"], line)
        self.qos = tuple(self._row(name, *line) for name, line in self._qos.items())
        self._associations = self._of_this_cluster()
        self._parents = self._accounts_above()

    def tables(self, cpus_per_core: int, partitions: Sequence[str]) -> list[dict[str, Any]]:
        """Return the tables ``[[limits]]``; of Slurm's CPUs, `cpus_per_core` are a core."""
        for line in (*self._qos.values(), *self._associations):
            for key, (name, meaning) in _LEFT_OUT.items():
                self._leave_out(line, key, name, meaning)
            for key, value in line.values.items():
                if key not in _USED and key not in _LEFT_OUT and value.lower() not in UNLIMITED:
                    self._notes.left_out(f"{key}={clip(value)}: not known", line.where, cause=key)
        for line in self._associations:
            for key, (name, meaning) in _DATABASE.items():
                self._leave_out(line, key, name, meaning)
        with_qos: dict[str, list[str]] = {}
        for name, line in self._records.partitions.items():
            of = stated(line.values, "qos")
            if of and of in self._qos:
                with_qos.setdefault(of, []).append(name)
            elif of:
                text = f"partition {clip(name)}: QOS={clip(of)} (the limits of its QOS, which no file states)"
                self._notes.left_out(text, line.where, cause="partition qos")
        for name, (values, where) in self._qos.items():
            flags = self._flags(values, where)
            over = REJECT if {"denyonlimit", "denylimit"} & flags else HOLD
            before = bool({"overpartqos", "overridepartitionqos"} & flags)
            if name in with_qos:
                queues = with_qos[name]
                scope: dict[str, Any] = {"queue": queues if len(queues) > 1 else queues[0]}
                self._of_qos(scope, PARTITION, values, where, over)
                both = f"the jobs of {clip(', '.join(queues))}, and the jobs with this QOS, apart"
                text = f"limits of QOS {clip(name)} count {both}; Slurm counts them together"
                self._notes.assumed(text, where, cause="partition qos apart")
            self._of_qos({"qos": name}, OVER_PARTITION if before else QOS, values, where, over)
        self._of_associations(partitions)
        tables = [_in_cores(table, cpus_per_core) for table in self._limits.tables()]
        given = self._records.settings.get("accountingstorageenforce")
        if given and not tables:
            text = f"AccountingStorageEnforce={given}: no file states limits of associations and QOS"
            self._notes.left_out(text, self._records.settings.where("accountingstorageenforce"))
        return self._levelled(tables) if tables and self._are_enforced(tables) else []

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
            owners = {
                f"{kind} {', '.join([table[kind]] if isinstance(table[kind], str) else table[kind])}": None
                for table in tables
                for kind in ("qos", "queue", "user", "account")
                if kind in table
            }
            more = f" and {len(owners) - MOST_NAMES} more" if len(owners) > MOST_NAMES else ""
            names = ", ".join([*owners][:MOST_NAMES]) + more if owners else "all jobs"
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

    def _levelled(self, tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the tables, without levels if all have the same."""
        levels = {table.get("level") for table in tables} - {None}
        if len(levels) > 1:
            text = (
                "of the limits that are not Grp limits, the first one that is defined counts: partition QOS, "
                "QOS, user, account, root (the key level)"
            )
            self._notes.assumed(text)
            return tables
        return [{key: value for key, value in table.items() if key != "level"} for table in tables]

    def _leave_out(self, line: Line, key: str, name: str, meaning: str) -> None:
        value = line.values.get(key, "")
        if value.lower() not in UNLIMITED and value.strip("0.") != "":
            self._notes.left_out(f"{name}={clip(value)} ({meaning})", line.where, cause=key)

    # --- QOS ---------------------------------------------------------------------------------

    def _row(self, name: str, values: Mapping[str, str], where: str) -> QosRow:
        priority = self._plain(values, "priority", 0, where)
        used = self._plain(values, "usagefactor", 1, where)
        if self._plain(values, "limitfactor", 1, where) not in (0, 1):
            text = f"LimitFactor={values['limitfactor']} of QOS {name} (it multiplies limits of associations)"
            self._notes.left_out(text, where, cause="limitfactor")
        preempts = tuple(
            dict.fromkeys(part.strip() for part in values.get("preempt", "").split(",") if part.strip())
        )
        return QosRow(name, round(priority), used, where, preempts, self._victims(values, where))

    def _flags(self, values: Mapping[str, str], where: str) -> set[str]:
        found = set()
        for flag in comma_parts(values.get("flags", "").replace("+", ",")):
            word = flag.strip().lower().replace("_", "")
            found.add(word)
            if word and word not in _FLAGS:
                self._notes.left_out(f"Flags={clip(flag.strip())} of QOS {values['name']}: not known", where)
            elif meaning := _FLAGS.get(word):
                self._notes.left_out(f"Flags={flag.strip()} of QOS {values['name']} ({meaning})", where)
        return found

    def _of_qos(
        self, scope: dict[str, Any], level: int, values: Mapping[str, str], where: str, over: str
    ) -> None:
        self._group(scope, values, where, over)
        for suffix, long, dimension in (("pu", "user", "user"), ("pa", "account", "account")):
            each = {**scope, "each": dimension, "level": level}
            self._limits.number(each, "running-jobs", values.get(f"maxjobs{suffix}"), where, over)
            self._limits.number(each, "submitted-jobs", values.get(f"maxsubmit{suffix}"), where, REJECT)
            self._limits.tres(each, values.get(f"maxtres{suffix}", ""), where, over)
            self._limits.minutes(each, values.get(f"maxtresrunminsper{long}", ""), where, "running-", over)
        self._single({**scope, "level": level}, values, where, over)

    def _victims(self, values: Mapping[str, str], where: str) -> dict[str, Any]:
        """Return what becomes of preempted jobs of a QOS, as far as it states that."""
        found: dict[str, Any] = {}
        text = values.get("preemptmode", "").lower()
        note_words(self._notes, text, where, "PreemptMode of QOS")
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
            seconds = self._notes.attempt(read, given, where, key)
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
        self._notes.fault(f"{key} {clip(text)!r} is not a number", where, "a number of 0 or more")
        return usual

    # --- associations ------------------------------------------------------------------------

    def _of_this_cluster(self) -> list[Line]:
        """Return the associations of the cluster: one accounting database may have those of several.

        Of a value that two files state, the first counts.
        """
        lines = self._records.associations
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
            text = f"associations of clusters other than {name}: {clip(names)} ({len(others):,})"
            self._notes.left_out(text, others[0].where)
            lines = [line for line in lines if line.values.get("cluster", "").lower() in ("", name)]
        found: dict[tuple[str, str, str], Line] = {}
        for line in lines:
            values, place = line.values, line.where
            key = values["account"], values["user"], values.get("partition", "")
            if key in found:
                known, place = found[key]
                before = {name: value for name, value in known.items() if value.lower() not in UNLIMITED}
                values = {**known, **values, **before}
            found[key] = line._replace(values=values, where=place)
        return list(found.values())

    def _accounts_above(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for values, _ in self._associations:
            if values.get("parentname"):
                found.setdefault(values["account"], values["parentname"])
            elif not values["user"]:
                found.setdefault(values["account"], "")
        return found

    def _line(self, name: str) -> list[str]:
        """Return an account and the accounts above it."""
        found = [name]
        while (above := self._parents.get(found[-1])) and above not in found:
            found.append(above)
        return found

    def _of_associations(self, partitions: Sequence[str]) -> None:
        accounts = {line.values["account"]: line for line in self._associations if not line.values["user"]}
        users = [line for line in self._associations if line.values["user"]]
        below: dict[str, list[str]] = {}
        for name in self._parents:
            for above in self._line(name):
                below.setdefault(above, []).append(name)
        if len(accounts.keys() - {"root"}) > 1 and not any(self._parents.values()):
            text = "no file states which accounts are above others, as sacctmgr dump or show assoc tree does"
            text = f"the limits of an account are those of its own users: {text}"
            self._notes.assumed(text)
        for name, (values, where) in accounts.items():
            names = below.get(name, [name])
            scope = {} if name == "root" else {"account": names if len(names) > 1 else names[0]}
            self._group(scope, values, where, HOLD)
        own: dict[tuple[str, str], list[str]] = {}
        for values, _ in users:
            if values.get("partition"):
                own.setdefault((values["account"], values["user"]), []).append(values["partition"])
        for values, where in users:
            scope = {"user": values["user"], "account": values["account"]}
            apart = own.get((values["account"], values["user"]), [])
            if values.get("partition"):
                scope["queue"] = values["partition"]
            elif apart and partitions:  # the association of a partition takes the place of this one
                others = [name for name in partitions if name not in apart]
                if not others:
                    continue
                scope["queue"] = others if len(others) > 1 else others[0]
            self._group(scope, values, where, HOLD)
            self._maximums(scope, {**scope, "level": USER}, values, where, USER)
        for name, (values, where) in accounts.items():
            if name == "root":
                self._maximums({}, {"each": ["user", "account"], "level": ROOT}, values, where, ROOT)
                continue
            for above in self._line(name):  # of a value of several accounts, that of the nearest counts
                if above in accounts and above != "root":
                    scope = {"account": name}
                    each = {**scope, "each": "user", "level": ACCOUNT}
                    self._maximums(scope, each, *accounts[above], ACCOUNT)

    def _maximums(
        self, scope: dict[str, Any], each: dict[str, Any], values: Mapping[str, str], where: str, level: int
    ) -> None:
        self._limits.number(each, "running-jobs", values.get("maxjobs"), where)
        self._limits.number(each, "submitted-jobs", values.get("maxsubmit"), where, REJECT)
        self._single({**scope, "level": level}, values, where, HOLD)

    def _group(self, scope: dict[str, Any], values: Mapping[str, str], where: str, over: str) -> None:
        """Add the limits on all jobs of a scope together."""
        self._limits.number(scope, "running-jobs", values.get("grpjobs"), where, over)
        self._limits.number(scope, "submitted-jobs", values.get("grpsubmit"), where, REJECT)
        self._limits.tres(scope, values.get("grptres", ""), where, over)
        self._limits.minutes(scope, values.get("grptresmins", ""), where, "", over)
        self._limits.minutes(scope, values.get("grptresrunmins", ""), where, "running-", over)

    def _single(self, scope: dict[str, Any], values: Mapping[str, str], where: str, over: str) -> None:
        """Add the limits on each job of a scope."""
        job = {**scope, "each": "job"}
        self._limits.tres(job, values.get("maxtres", ""), where, over)
        self._limits.minutes(job, values.get("maxtresmins", ""), where, "", over)
        wall = values.get("maxwall", "")
        if wall.lower() not in UNLIMITED:
            seconds = self._notes.attempt(time_limit, wall, where, "MaxWall")
            if seconds is not None and seconds < float("inf"):
                self._limits.add(job, "duration", format_duration(seconds), over)


def _in_cores(table: Mapping[str, Any], cpus_per_core: int) -> dict[str, Any]:
    """Return a table with cores in the place of hardware threads."""
    if cpus_per_core == 1:
        return dict(table)
    return {
        key: value // cpus_per_core
        if key == "cores"
        else value / cpus_per_core
        if key.endswith("core-hours")
        else value
        for key, value in table.items()
    }
