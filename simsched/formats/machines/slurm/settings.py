"""The settings of a whole cluster as run options (``--config``): policy, order, preemption, licences.

Settings that affect the schedule and have no counterpart are noted.  ``SchedulerParameters`` become options
of the queue policy ``slurm``, and the lines on priority the options ``order`` and ``priority``
(slurm.conf(5)).  The formulas are those of the plugin priority/multifactor: a sum of weighted factors, cut to
a whole number of at least 1, computed again every PriorityCalcPeriod.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import FormatError, did_you_mean
from simsched.formats.cluster.recipe import Amount, PoolSpec
from simsched.formats.machines.slurm.config_lines import GLOBAL
from simsched.formats.machines.slurm.node_records import NOT_POOLS
from simsched.formats.machines.slurm.notation import (
    MAX_COUNT,
    UNLIMITED,
    comma_parts,
    stated,
    time_limit,
    whole_number,
    yes,
)
from simsched.formats.rfc.duration import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.formats.machines.description import NoteCollector, QosRow


class Parameter(NamedTuple):
    """The option of the policy that a parameter states, its unit in seconds, and its least value.

    With `zero` a value of 0 does not bound anything, and the option is left out.
    """

    option: str
    unit: int = 1
    least: int = 0
    zero: bool = False


PARAMETERS = {
    "bf_interval": Parameter("interval", least=1),
    "bf_window": Parameter("window", unit=60, least=1),
    "bf_resolution": Parameter("resolution", least=1),
    "bf_max_job_test": Parameter("max-job-test", least=1),
    "bf_max_job_start": Parameter("max-job-start", zero=True),
    "bf_max_job_user": Parameter("max-job-user", zero=True),
    "bf_max_job_part": Parameter("max-job-part", zero=True),
    "bf_min_age_reserve": Parameter("min-age-reserve", zero=True),
}
"""Parameter → option of the policy; bf_window is in minutes, the other times are in seconds."""
WITHOUT_EFFECT = frozenset(
    {"bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "bf_yield_rpc_cnt", "max_rpc_cnt"}
    | {"sched_max_job_start", "sched_min_interval", "batch_sched_delay", "build_queue_timeout"}
)
"""Parameters for passes that take time: a pass of a simulation takes none."""
SCHED_INTERVAL = 60
"""Slurm's default of sched_interval, in seconds."""
MOST_SECONDS = 10 * 366 * 86_400


def scheduler_options(
    given: Mapping[str, str], notes: NoteCollector, where: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the policy ``slurm`` that parameters state, and the parameters left out.

    The options are empty if no parameter of backfill is stated. Values that are not valid are faults.
    """
    options: dict[str, Any] = dict(_stated(given, notes, where))
    if "defer" in given and options:
        options["sched-interval"] = _seconds(given, notes, where)
    held = {*PARAMETERS, *WITHOUT_EFFECT, *({"defer", "sched_interval"} if options else ())}
    idle = [name for name in given if name in WITHOUT_EFFECT]
    if options:
        stated = ", ".join(f"{name}={value}" for name, value in options.items())
        text = f"SchedulerParameters: queue-policy = slurm with {stated}"
        if idle:
            text += f"; {', '.join(idle)} without effect, since a pass takes no time"
        notes.assumed(text, where)
    left = [f"{name}={value}" if value else name for name, value in given.items() if name not in held]
    if not options:
        left = [f"{name}={given[name]}" if given[name] else name for name in given if name not in PARAMETERS]
    return options, left


def _stated(given: Mapping[str, str], notes: NoteCollector, where: str) -> Iterator[tuple[str, int]]:
    for name, parameter in PARAMETERS.items():
        if name not in given:
            continue
        value = _whole(given[name], parameter, notes, where, name)
        if value is not None and (value or not parameter.zero):
            yield parameter.option, value * parameter.unit


def _whole(text: str, of: Parameter, notes: NoteCollector, where: str, name: str) -> int | None:
    most = MOST_SECONDS // of.unit if of.unit > 1 or not of.option.startswith("max") else MAX_COUNT
    return notes.attempt(lambda value: whole_number(value, least=of.least, most=most), text, where, name)


def _seconds(given: Mapping[str, str], notes: NoteCollector, where: str) -> int:
    """Return the seconds between two passes of the main scheduler, which ``defer`` takes away from events."""
    found = given.get("sched_interval")
    value = None if found is None else _whole(found, Parameter("", least=1), notes, where, "sched_interval")
    return SCHED_INTERVAL if value is None else value


BASIC, MULTIFACTOR = "priority/basic", "priority/multifactor"
FACTORS = {
    "age": "age",
    "fairshare": "fair-share",
    "jobsize": "size",
    "partition": "queue",
    "qos": "qos",
    "assoc": "account",
}
"""The end of PriorityWeight… → the factor of simsched."""
TRES = {"cpu": "cores", "node": "nodes", "mem": "memory", "gres/gpu": "gpus"}
"""The resources of PriorityWeightTRES → the factor of simsched."""
RESETS = {
    "daily": 86400,
    "weekly": 7 * 86400,
    "monthly": 30 * 86400,
    "quarterly": 91 * 86400,
    "yearly": 365 * 86400,
}
MOST_WEIGHT = 2**32 - 1
_FLAGS = {
    "accrue_always": "", "fair_tree": "", "no_fair_tree": "", "small_relative_to_time": "",
    "no_normal_all": "", "no_normal_assoc": "", "no_normal_part": "", "no_normal_qos": "",
    "no_normal_tree": "", "no_normal_tres": "", "calculate_running": "",
    "depth_oblivious": "the classic factor counts the depth of an account",
    "incr_only": "priorities may decrease",
    "max_tres": "usage is that of cores",
    "max_tres_gres": "usage is that of cores",
}  # fmt: skip
"""Flags in lower case → the effect of leaving them out; empty: it is held, or has no effect here."""
_WEIGHT = re.compile(r"\s*([A-Za-z/:_0-9]+)\s*=\s*(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})\s*")


class PriorityLines:
    """The lines of one configuration: `values` by key in lower case, `where` the place of a key.

    `qos` has the priorities and usage factors of QOS, which are in the accounting database.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        notes: NoteCollector,
        where: Callable[[str], str],
        qos: Sequence[QosRow] = (),
    ) -> None:
        self._values = values
        self._notes = notes
        self._where = where
        self._qos_rows = qos
        self._flags = self._read_flags()

    def options(self, partitions: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Return ``order`` and ``priority``; empty if jobs go by submission.

        partitions : the PriorityJobFactor of each partition.
        """
        kind = self._text("prioritytype").lower()
        if kind == BASIC:
            return {}
        if kind not in ("", MULTIFACTOR):
            self._left_out(f"PriorityType={kind}: jobs are ordered by submission", "prioritytype")
            return {}
        factors = self._factors(partitions or {})
        self._note_qos(factors)
        if not factors:
            return {}
        self._assume(factors)
        return self._with(factors)

    def _with(self, factors: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``order`` and ``priority`` with these factors."""
        priority: dict[str, Any] = {
            "period": format_duration(self._time("prioritycalcperiod", 300.0)),
            "rounding": "down",
            "least": 1,
            "most": MOST_WEIGHT,
            "factors": factors,
        }
        if "accrue_always" in self._flags:
            priority["age-from"] = "submit"
        if "fair-share" in factors:
            priority["fair-share"] = self._fair_share()
        return {"order": "multifactor", "priority": priority}

    # -- factors ----------------------------------------------------------------------------------

    def _factors(self, partitions: Mapping[str, float]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, name in FACTORS.items():
            weight: float = self._whole(f"priorityweight{key}")
            if weight:
                found[name] = {"weight": weight, **getattr(self, f"_{key}")(partitions)}
        for name, weight in self._tres().items():
            plain = "no_normal_tres" in self._flags or "no_normal_all" in self._flags
            found[name] = {"weight": weight, "of": "nothing" if plain else "queue"}
        if not found.get("qos", {"values": True})["values"]:
            del found["qos"]
        return found

    def _age(self, _: Mapping[str, float]) -> dict[str, Any]:
        longest = self._time("prioritymaxage", 7 * 86400.0, least=1)
        return {"max": format_duration(longest)}

    def _fairshare(self, _: Mapping[str, float]) -> dict[str, Any]:
        return {}

    def _jobsize(self, _: Mapping[str, float]) -> dict[str, Any]:
        text = self._text("priorityfavorsmall") or "no"
        small = self._notes.attempt(yes, text, self._where("priorityfavorsmall"), "priorityfavorsmall")
        found: dict[str, Any] = {"favour": "small" if small else "large"}
        if "small_relative_to_time" in self._flags:
            found["relative-to-time"] = True
        return found

    def _partition(self, partitions: Mapping[str, float]) -> dict[str, Any]:
        return {"values": dict(partitions), "default": 0, "normalise": self._normalises("part")}

    def _qos(self, _: Mapping[str, float]) -> dict[str, Any]:
        values = {row.name: row.priority for row in self._qos_rows}
        if not values:
            text = (
                "PriorityWeightQOS: the priorities of QOS are in the accounting database; import the output "
                "of sacctmgr show qos -P as well, or give them as priority.factors.qos.values"
            )
            self._left_out(text, "priorityweightqos")
        elif any(values.values()):
            shown = ", ".join(f"{name} {value}" for name, value in values.items())
            weight = self._whole("priorityweightqos")
            text = f"QOS factor with the weight {weight:g}, of the priorities {shown}"
            self._notes.assumed(text, self._qos_rows[0].where.rpartition(":")[0])
        else:
            values = {}  # all are equal
        return {"values": values, "default": 0, "normalise": self._normalises("qos")}

    def _note_qos(self, factors: Mapping[str, Any]) -> None:
        """Note the values of QOS that the priority does not use."""
        where = self._qos_rows[0].where.rpartition(":")[0] if self._qos_rows else ""
        if any(row.priority for row in self._qos_rows) and "qos" not in factors:
            text = "the priorities of QOS: no slurm.conf gives them a weight (PriorityWeightQOS)"
            self._notes.left_out(text, where)
        used = {row.name: row.usage_factor for row in self._qos_rows if row.usage_factor != 1}
        if used and "fair-share" in factors:
            shown = ", ".join(f"{name} {value:g}" for name, value in used.items())
            self._notes.assumed(f"usage counts with the UsageFactor of its QOS: {shown}", where)
        elif used:
            self._notes.left_out("UsageFactor of QOS: the priority of jobs has no fair share", where)

    def _assoc(self, _: Mapping[str, float]) -> dict[str, Any]:
        return {"normalise": self._normalises("assoc")}

    def _normalises(self, kind: str) -> bool:
        return not {f"no_normal_{kind}", "no_normal_all"} & self._flags

    def _tres(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for part in comma_parts(self._text("priorityweighttres")):
            pair = _WEIGHT.fullmatch(part)
            if pair is None:
                self._fault(
                    f"PriorityWeightTRES: {part!r} is not a weight", "priorityweighttres", "TYPE=NUMBER"
                )
                continue
            kind = pair[1].lower()
            if kind not in TRES:
                self._left_out(f"PriorityWeightTRES: {part.strip()}", "priorityweighttres")
            elif float(pair[2]):
                found[TRES[kind]] = float(pair[2])
        return found

    # -- fair share -------------------------------------------------------------------------------

    def _fair_share(self) -> dict[str, Any]:
        classic = {"no_fair_tree", "depth_oblivious"} & self._flags
        found: dict[str, Any] = {"method": "classic" if classic else "fair-tree"}
        half_life = self._time("prioritydecayhalflife", 7 * 86400.0)
        found["half-life"] = "inf" if half_life in (0, inf) else format_duration(half_life)
        if classic and self._text("fairsharedampeningfactor"):
            found["dampening"] = self._whole("fairsharedampeningfactor", least=1) or 1
        used = {row.name: row.usage_factor for row in self._qos_rows if row.usage_factor != 1}
        if used:
            found["qos-usage"] = used
        found.update(self._reset())
        return found

    def _reset(self) -> dict[str, Any]:
        text = self._text("priorityusageresetperiod").lower()
        if text in ("", "none"):
            return {}
        key = "priorityusageresetperiod"
        if text in RESETS:
            reset = format_duration(RESETS[text])
            note = (
                f"PriorityUsageResetPeriod={text.upper()}: every {reset} from second 0, whatever the calendar"
            )
            self._notes.assumed(note, self._where(key))
            return {"reset": reset}
        if text == "now":
            self._left_out("PriorityUsageResetPeriod=NOW: usage counts as it is given", key)
        else:
            expected = "NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY"
            self._fault(f"PriorityUsageResetPeriod: {text!r} is not a period", key, expected)
        return {}

    def _assume(self, factors: Mapping[str, Any]) -> None:
        key = next(
            f"priorityweight{key}"
            for key, name in (*FACTORS.items(), ("tres", ""))
            if self._text(f"priorityweight{key}")
        )
        shown = ", ".join(f"{name} {factor['weight']:g}" for name, factor in factors.items())
        where = self._where("prioritytype") or self._where(key)
        self._notes.assumed(f"order = multifactor, with the weights {shown}", where)
        if "fair-share" in factors:
            text = "fair share: accounts and shares are in the accounting database; without priority.accounts all are equal"  # noqa: E501
            self._notes.assumed(text, where)

    # -- values -----------------------------------------------------------------------------------

    def _read_flags(self) -> set[str]:
        found = {part.strip().lower() for part in comma_parts(self._text("priorityflags"))}
        for flag in sorted(found - _FLAGS.keys()):
            hint = did_you_mean(flag, _FLAGS)
            self._fault(f"PriorityFlags: unknown flag {flag.upper()!r}{hint}", "priorityflags", None)
        for flag in sorted(found & _FLAGS.keys()):
            if _FLAGS[flag]:
                self._left_out(f"PriorityFlags={flag.upper()}: {_FLAGS[flag]}", "priorityflags")
        return found

    def _text(self, key: str) -> str:
        return stated(self._values, key)

    def _time(self, key: str, usual: float, least: float = 0) -> float:
        text = self._text(key)
        if not text:
            return usual

        def read(value: str) -> float:
            found = time_limit(value)
            if found < least:
                raise FormatError(f"{value!r} is too short", expected=f"at least {format_duration(least)}")
            return found

        found = self._notes.attempt(read, text, self._where(key), GLOBAL[key])
        return usual if found is None else found

    def _whole(self, key: str, least: int = 0) -> int:
        text = self._text(key)
        if not text:
            return 0

        def read(value: str) -> int:
            try:
                return whole_number(value, least=least, most=MOST_WEIGHT)
            except FormatError:
                expected = f"a whole number from {least} to {MOST_WEIGHT:,}"
                raise FormatError(f"{value!r} is not a weight", expected=expected) from None

        return self._notes.attempt(read, text, self._where(key), GLOBAL[key]) or 0

    def _left_out(self, text: str, key: str) -> None:
        self._notes.left_out(text, self._where(key))

    def _fault(self, text: str, key: str, expected: str | None) -> None:
        self._notes.fault(text, self._where(key), expected)


BY_PARTITION, BY_QOS = "preempt/partition_prio", "preempt/qos"
YOUNGEST = "preempt_youngest_first"
"""The word of SchedulerParameters for the order of preempted jobs."""
WHOLE_NODES = "firstnodex"
"""The match policy that gives whole idle nodes."""
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

#: Keys of partitions, and of the whole cluster for all of them, that are not held → what they state.
LEFT_OUT = {
    "allocnodes": "the nodes from which jobs are submitted",
    "allowaccounts": "the accounts that may use it",
    "allowgroups": "the groups that may use it",
    "allowqos": "the QOS that may use it",
    "alternate": "the partition that takes its jobs when it is drained",
    "defcpupergpu": "the default CPUs per gpu",
    "defmempercpu": "the default memory per CPU",
    "defmempergpu": "the default memory per gpu",
    "defmempernode": "the default memory per node",
    "denyaccounts": "the accounts that may not use it",
    "denyqos": "the QOS that may not use it",
    "exclusiveuser": "nodes are given to one user at a time",
    "exclusivetopo": "switches are given to one job at a time",
    "lln": "the least loaded nodes are used first",
    "maxcpuspernode": "the most CPUs of a node",
    "maxcpuspersocket": "the most CPUs of a socket",
    "maxmempercpu": "the most memory per CPU",
    "maxmempernode": "the most memory per node",
    "overtimelimit": "the time that a job may run beyond its limit",
    "reqresv": "jobs need a reservation of Slurm",
    "rootonly": "only root submits to it",
}

#: Keys that affect the schedule, and are not held → what they state.
_OTHERS = {
    "burstbuffertype": "burst buffers",
    "completewait": "the time that resources wait for other jobs to be complete",
    "jobsubmitplugins": "plugins that change jobs at submission",
    "resvoverrun": "the time that jobs may run beyond a reservation of Slurm",
    "suspendprogram": "nodes that are switched off while they are idle",
    "fastschedule": "whether nodes count as they are or as they are configured: as configured here",
    "inactivelimit": "the time after which jobs without a client end",
    "killwait": "the time between the signals TERM and KILL at the end of a limit",
    "maxarraysize": "the largest index of a job array",
    "maxjobcount": "the jobs that the controller holds",
    "schedulertimeslice": "the turns of jobs that share nodes",
    "prioritysitefactorplugin": "a priority that a plugin of the site computes",
}


_CONSUMABLE = frozenset(
    {"cr_core", "cr_core_memory", "cr_cpu", "cr_cpu_memory", "cr_memory", "cr_socket", "cr_socket_memory"}
)
_SELECTION = {
    "cr_socket": "jobs have whole sockets; here they share them",
    "cr_socket_memory": "jobs have whole sockets; here they share them",
    "cr_one_task_per_core": "each task has a core of its own",
    "cr_memory": "cores are not counted, and jobs share them; here each core has one job",
}
"""Words of SelectTypeParameters, in lower case → the part of their meaning that is not held."""


class _Read(dict[str, str]):
    """Values by key, which remember the keys that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, key: str, default: str = "") -> str:  # type: ignore[override]
        self.asked.add(key)
        return super().get(key, default)


@dataclass(slots=True)
class Settings:
    """Keys of the whole cluster, in lower case, with their places; of a key twice, the last one counts."""

    notes: NoteCollector
    values: _Read = field(default_factory=_Read)
    places: dict[str, str] = field(default_factory=dict)
    lists_all: bool = False
    """Whether a person chose the keys, so that each of them is named if it is not used."""

    def add(self, values: Mapping[str, str], where: str) -> None:
        """Add the keys of a line."""
        self.values.update(values)
        self.places.update(dict.fromkeys(values, where))

    def get(self, key: str) -> str:
        """Return the value of a key in lower case; empty if it is not set."""
        return stated(self.values, key).lower()

    def where(self, key: str) -> str:
        """Return the place of a key."""
        return self.places.get(key, "")

    @property
    def tmp_path(self) -> str:
        """The directory whose size is TmpDisk."""
        return stated(self.values, "tmpfs") or "/tmp"  # noqa: S108 - a path on the nodes of the site

    @property
    def are_stated(self) -> bool:
        """Whether a file has the settings of the cluster, beyond its name."""
        return bool(self.values.keys() - {"clustername"})

    @property
    def counts_memory(self) -> bool:
        """Whether memory is a consumable resource (SelectTypeParameters, slurm.conf(5)).

        Without parameters it is one of select/cons_tres, whose default is CR_Core_Memory, and of a slurm.conf
        that does not state its SelectType.
        """
        parameters = self.get("selecttypeparameters")
        if self.get("selecttype") == "select/linear":
            return "memory" in parameters
        named = [word for word in comma_parts(parameters) if word in _CONSUMABLE]
        return not named or any("memory" in word for word in named)

    def run_options(
        self, partitions: Mapping[str, float] | None = None, qos: Sequence[QosRow] = ()
    ) -> dict[str, Any]:
        """Return the run options that the settings state, without the queues.

        partitions : the PriorityJobFactor of each partition.
        """
        if not self.values:
            return {}
        config = self._policy()
        config.update(PriorityLines(self.values, self.notes, self.where, qos).options(partitions))
        if self.get("selecttype") == "select/linear":
            config["match-policy"] = WHOLE_NODES
            text = "select/linear gives whole nodes to each job: match-policy = firstnodex"
            self.notes.assumed(text, self.where("selecttype"))
        if self.get("jobrequeue") == "0":
            config["on-failure"] = "fail"
        if self.get("overtimelimit") in UNLIMITED - {"-1"}:
            config["overrun"] = "allow"
        self._note_selection()
        self._note_others()
        return config

    def licences(self) -> tuple[PoolSpec, ...]:
        """Return a pool of the cluster for each licence; its type is the name of the licence."""
        found: dict[str, PoolSpec] = {}
        where = self.where("licenses")
        for part in comma_parts(stated(self.values, "licenses").replace(";", ",")):
            name, _, number = part.replace("*", ":").partition(":")
            count = self.notes.attempt(whole_number, number or "1", where, "licenses")
            if name in NOT_POOLS or _TYPE.fullmatch(name) is None:
                text = f"the licence {name!r}: the name is not a type that a request can have"
                self.notes.left_out(text, where, cause="licence")
            elif count:
                found[name] = PoolSpec(type=name, amount=Amount(count))
        return tuple(found.values())

    # --- the schedule

    def _policy(self) -> dict[str, Any]:
        kind, where = self.get("schedulertype"), self.where("schedulertype")
        if kind == "sched/builtin":
            parameters = self._parameters().items()
            self._note_parameters([f"{name}={value}" if value else name for name, value in parameters])
            return {"queue-policy": "fcfs"}
        if kind not in ("", "sched/backfill"):
            self.notes.left_out(f"SchedulerType={self.values['schedulertype']}", where)
        place = self.where("schedulerparameters")
        options, left = scheduler_options(self._parameters(), self.notes, place)
        self._note_parameters(left)
        if options:
            return {"queue-policy": "slurm", "policy-options": {"slurm": options}}
        text = (
            "queue-policy = easy: it reserves for the first waiting job; Slurm's backfill plans a start for "
            "each of the jobs that it tests, which is closer to slurm, hybrid or conservative"
        )
        self.notes.assumed(text, where)
        return {"queue-policy": "easy"}

    def _parameters(self) -> dict[str, str]:
        parts = stated(self.values, "schedulerparameters").split(",")
        return {
            name.strip().lower(): value for name, _, value in (part.partition("=") for part in parts) if name
        }

    def _note_parameters(self, left: list[str]) -> None:
        if self.get("preempttype") in (BY_PARTITION, BY_QOS):
            left = [name for name in left if name != YOUNGEST]
        if left:
            self.notes.left_out(f"SchedulerParameters: {', '.join(left)}", self.where("schedulerparameters"))

    # --- notes

    def _note_selection(self) -> None:
        parameters = self.get("selecttypeparameters")
        where = self.where("selecttypeparameters") or self.where("selecttype")
        if not self.counts_memory:
            what = parameters.upper() or self.get("selecttype")
            text = (
                f"memory is not in the machine, and jobs do not request it: Slurm does not count it ({what}) "
                "and only keeps a job from nodes with less RealMemory than its --mem"
            )
            self.notes.assumed(text, where)
        for word, meaning in _SELECTION.items():
            if word in comma_parts(parameters) and self.get("selecttype") != "select/linear":
                self.notes.left_out(f"SelectTypeParameters={word.upper()}: {meaning}", where)
        for word in ("cr_lln", "cr_pack_nodes"):
            if word in parameters:
                better = "worstfit" if word == "cr_lln" else "bestfit"
                text = f"{word.upper()}: the order in which nodes are used, near to match-policy = {better}"
                self.notes.left_out(text, where)

    def _note_others(self) -> None:
        for key, meaning in (*_OTHERS.items(), *LEFT_OUT.items()):
            value = stated(self.values, key)
            if value.strip("0:") and value.lower() not in ("no", *UNLIMITED):
                self.notes.left_out(f"{GLOBAL.get(key, key)}={value} ({meaning})", self.where(key))
        if self.get("enforcepartlimits") in ("", "no"):
            text = "jobs beyond a limit are rejected; Slurm keeps them waiting (EnforcePartLimits=NO)"
            self.notes.assumed(text, self.where("enforcepartlimits"))

    def note_unused(self) -> None:
        """Note the keys that nothing has asked for, once all is understood."""
        left = [key for key in self.values if key not in self.values.asked and key in GLOBAL]
        if left and self.lists_all:
            names = ", ".join(GLOBAL[key] for key in left)
            plural = "settings that do" if len(left) > 1 else "setting that does"
            text = f"{len(left)} {plural} not affect the schedule here: {names}"
            self.notes.left_out(text, self.where(left[0]).rpartition(":")[0])
