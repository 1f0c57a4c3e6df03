"""The settings of a whole cluster as run options (``--config``): policy, order, preemption, licences.

Settings that affect the schedule and have no counterpart are noted.  ``SchedulerParameters`` become options
of the queue policy ``slurm``, and the lines on priority the options ``order`` and ``priority``
(slurm.conf(5)).  The formulas are those of the plugin priority/multifactor: a sum of weighted factors, cut to
a whole number of at least 1, computed again every PriorityCalcPeriod.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import FormatError, did_you_mean
from simsched.formats.cluster.recipe import Amount, PoolSpec
from simsched.formats.machines.slurm.config_keys import GLOBAL
from simsched.formats.machines.slurm.node_records import NOT_POOLS
from simsched.formats.machines.slurm.notation import (
    MAX_COUNT,
    UNLIMITED,
    Keys,
    comma_parts,
    stated,
    time_limit,
    whole_number,
    yes,
)
from simsched.formats.rfc.duration import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.description import NoteCollector, QosRow, Table


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
DAY = 86_400
RESETS = {"daily": DAY, "weekly": 7 * DAY, "monthly": 30 * DAY, "quarterly": 91 * DAY, "yearly": 365 * DAY}
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

    def at(self, key: str) -> Keys:
        """Return the settings with the place of a key, for notes on it."""
        return Keys(self.values, self.notes, self.where(key))

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

    def run_options(self, partitions: Mapping[str, float], qos: Sequence[QosRow]) -> Table:
        """Return the run options that the settings state, without the queues.

        partitions : the PriorityJobFactor of each partition.
        """
        if not self.values:
            return {}
        config = self._policy()
        config.update(self.priority(partitions, qos))
        if self.get("selecttype") == "select/linear":
            config["match-policy"] = WHOLE_NODES
            text = "select/linear gives whole nodes to each job: match-policy = firstnodex"
            self.at("selecttype").assumed(text)
        if self.get("jobrequeue") == "0":
            config["on-failure"] = "fail"
        if self.get("overtimelimit") in UNLIMITED - {"-1"}:
            config["overrun"] = "allow"
        elif minutes := self.notes.whole(
            self.get("overtimelimit") or "0", "OverTimeLimit", self.where("overtimelimit")
        ):
            config["kill-grace"] = f"{minutes}m"
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
        kind, key = self.get("schedulertype"), "schedulerparameters"
        # Slurm looks for each name anywhere in the text: SchedulerParameters==bf_window=60 states the window.
        parts = (part.strip(" =").partition("=") for part in stated(self.values, key).split(","))
        given = {name.strip().lower(): value for name, _, value in parts if name}
        if kind not in ("", "sched/backfill", "sched/builtin"):
            self.at("schedulertype").left_out(f"SchedulerType={self.values['schedulertype']}")
        options = {} if kind == "sched/builtin" else self._scheduler_options(given)
        held = {*PARAMETERS, *WITHOUT_EFFECT, "defer", "sched_interval"} if options else {*PARAMETERS}
        held = set() if kind == "sched/builtin" else held
        held |= {YOUNGEST} if self.get("preempttype") in (BY_PARTITION, BY_QOS) else set()
        left = [f"{name}={value}" if value else name for name, value in given.items() if name not in held]
        if left:
            self.at(key).left_out(f"SchedulerParameters: {', '.join(left)}")
        if kind == "sched/builtin":
            return {"queue-policy": "fcfs"}
        if options:
            return {"queue-policy": "slurm", "policy-options": {"slurm": options}}
        text = (
            "queue-policy = easy: it reserves for the first waiting job; Slurm's backfill plans a start for "
            "each of the jobs that it tests, which is closer to slurm, hybrid or conservative"
        )
        self.at("schedulertype").assumed(text)
        return {"queue-policy": "easy"}

    def _scheduler_options(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the options of the policy ``slurm``; empty if no parameter of backfill is stated."""

        def number(name: str, of: Parameter) -> int | None:
            bounded = of.unit > 1 or not of.option.startswith("max")
            most = MOST_SECONDS // of.unit if bounded else MAX_COUNT
            read = partial(whole_number, least=of.least, most=most)
            return self.notes.attempt(read, given[name], self.where("schedulerparameters"), name)

        options: dict[str, Any] = {}
        for name, parameter in PARAMETERS.items():
            value = number(name, parameter) if name in given else None
            if value is not None and (value or not parameter.zero):
                options[parameter.option] = value * parameter.unit
        if "defer" in given and options:  # it takes the main scheduler away from events
            interval = "sched_interval"
            value = number(interval, Parameter("", least=1)) if interval in given else None
            options["sched-interval"] = SCHED_INTERVAL if value is None else value
        if options:
            shown = ", ".join(f"{name}={value}" for name, value in options.items())
            text = f"SchedulerParameters: queue-policy = slurm with {shown}"
            idle = [name for name in given if name in WITHOUT_EFFECT]
            if idle:
                text += f"; {', '.join(idle)} without effect, since a pass takes no time"
            self.at("schedulerparameters").assumed(text)
        return options

    # --- the priority of jobs

    def priority(self, partitions: Mapping[str, float], qos: Sequence[QosRow]) -> Table:
        """Return ``order`` and ``priority``; empty if jobs go by submission.

        partitions : the PriorityJobFactor of each partition.
        qos : the priorities and usage factors of QOS, which are in the accounting database.
        """
        keys, given = self.at("priorityflags"), comma_parts(self.get("priorityflags"))
        flags = {part.strip() for part in given}
        for flag in sorted(flags - _FLAGS.keys()):
            keys.fault(f"PriorityFlags: unknown flag {flag.upper()!r}{did_you_mean(flag, _FLAGS)}")
        for flag in sorted(flag for flag in flags if _FLAGS.get(flag)):
            keys.left_out(f"PriorityFlags={flag.upper()}: {_FLAGS[flag]}")
        kind = self.get("prioritytype")
        if kind not in ("", BASIC, MULTIFACTOR):
            self.at("prioritytype").left_out(f"PriorityType={kind}: jobs are ordered by submission")
        if kind not in ("", MULTIFACTOR):
            return {}
        factors = self._factors(flags, partitions, qos)
        usage = {row.name: row.usage_factor for row in qos if row.usage_factor != 1}
        where = qos[0].where.rpartition(":")[0] if qos else ""
        if any(row.priority for row in qos) and "qos" not in factors:
            text = "the priorities of QOS: no slurm.conf gives them a weight (PriorityWeightQOS)"
            self.notes.left_out(text, where)
        if usage and "fair-share" in factors:
            shown = ", ".join(f"{name} {value:g}" for name, value in usage.items())
            self.notes.assumed(f"usage counts with the UsageFactor of its QOS: {shown}", where)
        elif usage:
            self.notes.left_out("UsageFactor of QOS: the priority of jobs has no fair share", where)
        if not factors:
            return {}
        stating = ("prioritytype", *(f"priorityweight{key}" for key in (*FACTORS, "tres")))
        keys = self.at(next(key for key in stating if self.get(key)))
        shown = ", ".join(f"{name} {factor['weight']:g}" for name, factor in factors.items())
        keys.assumed(f"order = multifactor, with the weights {shown}")
        priority: dict[str, Any] = {
            "period": format_duration(self._time("prioritycalcperiod", 300.0)),
            "rounding": "down",
            "least": 1,
            "most": MOST_WEIGHT,
            "factors": factors,
        }
        if "accrue_always" in flags:
            priority["age-from"] = "submit"
        if "fair-share" in factors:
            usual = "without priority.accounts all are equal"
            keys.assumed(f"fair share: accounts and shares are in the accounting database; {usual}")
            priority["fair-share"] = self._fair_share(flags, usage)
        return {"order": "multifactor", "priority": priority}

    def _factors(self, flags: set[str], partitions: Mapping[str, float], qos: Sequence[QosRow]) -> Table:
        def normalises(kind: str) -> bool:
            return not {f"no_normal_{kind}", "no_normal_all"} & flags

        found: dict[str, Any] = {}
        for key, name in FACTORS.items():
            weight = self._whole(f"priorityweight{key}")
            if not weight:
                continue
            options: dict[str, Any] = {}
            if name == "age":
                options = {"max": format_duration(self._time("prioritymaxage", 7 * 86400.0, least=1))}
            elif name == "size":
                text = stated(self.values, "priorityfavorsmall") or "no"
                small = self.at("priorityfavorsmall").read(yes, "priorityfavorsmall", text)
                options = {"favour": "small" if small else "large"}
                if "small_relative_to_time" in flags:
                    options["relative-to-time"] = True
            elif name == "queue":
                options = {"values": dict(partitions), "default": 0, "normalise": normalises("part")}
            elif name == "qos":
                values = self._of_qos(weight, qos)
                if not values:
                    continue
                options = {"values": values, "default": 0, "normalise": normalises("qos")}
            elif name == "account":
                options = {"normalise": normalises("assoc")}
            found[name] = {"weight": weight, **options}
        key = "priorityweighttres"
        for part in comma_parts(stated(self.values, key)):
            pair = _WEIGHT.fullmatch(part)
            if pair is None:
                self.at(key).fault(f"PriorityWeightTRES: {part!r} is not a weight", "TYPE=NUMBER")
            elif pair[1].lower() not in TRES:
                self.at(key).left_out(f"PriorityWeightTRES: {part.strip()}")
            elif float(pair[2]):
                of = "queue" if normalises("tres") else "nothing"
                found[TRES[pair[1].lower()]] = {"weight": float(pair[2]), "of": of}
        return found

    def _of_qos(self, weight: int, qos: Sequence[QosRow]) -> dict[str, int]:
        """Return the priorities of QOS; empty if all are 0, or not in the files."""
        values = {row.name: row.priority for row in qos}
        if not values:
            self.at("priorityweightqos").left_out(
                "PriorityWeightQOS: the priorities of QOS are in the accounting database; import the output "
                "of sacctmgr show qos -P as well, or give them as priority.factors.qos.values"
            )
        if not any(values.values()):
            return {}
        shown = ", ".join(f"{name} {value}" for name, value in values.items())
        text = f"QOS factor with the weight {weight:g}, of the priorities {shown}"
        self.notes.assumed(text, qos[0].where.rpartition(":")[0])
        return values

    def _fair_share(self, flags: set[str], usage: Mapping[str, float]) -> dict[str, Any]:
        classic = {"no_fair_tree", "depth_oblivious"} & flags
        found: dict[str, Any] = {"method": "classic" if classic else "fair-tree"}
        half_life = self._time("prioritydecayhalflife", 7 * 86400.0)
        found["half-life"] = "inf" if half_life in (0, inf) else format_duration(half_life)
        if classic and self.get("fairsharedampeningfactor"):
            found["dampening"] = self._whole("fairsharedampeningfactor", least=1) or 1
        if usage:
            found["qos-usage"] = usage
        keys, name = self.at("priorityusageresetperiod"), "PriorityUsageResetPeriod"
        text = self.get("priorityusageresetperiod")
        if text in RESETS:
            found["reset"] = reset = format_duration(RESETS[text])
            keys.assumed(f"{name}={text.upper()}: every {reset} from second 0, whatever the calendar")
        elif text == "now":
            keys.left_out(f"{name}=NOW: usage counts as it is given")
        elif text != "":
            expected = "NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY"
            keys.fault(f"{name}: {text!r} is not a period", expected)
        return found

    def _time(self, key: str, usual: float, least: float = 0) -> float:
        def read(value: str) -> float:
            found = time_limit(value)
            if found < least:
                raise FormatError(f"{value!r} is too short", expected=f"at least {format_duration(least)}")
            return found

        found = self.at(key).read(read, key, name=GLOBAL[key]) if self.get(key) else None
        return usual if found is None else found

    def _whole(self, key: str, least: int = 0) -> int:
        def read(value: str) -> int:
            try:
                return whole_number(value, least=least, most=MOST_WEIGHT)
            except FormatError:
                expected = f"a whole number from {least} to {MOST_WEIGHT:,}"
                raise FormatError(f"{value!r} is not a weight", expected=expected) from None

        return self.at(key).read(read, key, name=GLOBAL[key]) or 0 if self.get(key) else 0

    # --- notes

    def _note_selection(self) -> None:
        parameters = self.get("selecttypeparameters")
        where = self.where("selecttypeparameters") or self.where("selecttype")
        if not self.get("selecttype") and self.lists_all:
            text = (
                "no SelectType: jobs share nodes (select/cons_tres), the default of newer versions; "
                "that of Slurm 22.05 and before is select/linear, which gives whole nodes"
            )
            self.notes.assumed(text, where)
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
                self.at(key).left_out(f"{GLOBAL.get(key, key)}={value} ({meaning})")
        if self.get("enforcepartlimits") in ("", "no"):
            text = "jobs beyond a limit are rejected; Slurm keeps them waiting (EnforcePartLimits=NO)"
            self.at("enforcepartlimits").assumed(text)

    def note_unused(self) -> None:
        """Note the keys that nothing has asked for, once all is understood."""
        left = [key for key in self.values if key not in self.values.asked and key in GLOBAL]
        if left and self.lists_all:
            names = ", ".join(GLOBAL[key] for key in left)
            plural = "settings that do" if len(left) > 1 else "setting that does"
            text = f"{len(left)} {plural} not affect the schedule here: {names}"
            self.notes.left_out(text, self.where(left[0]).rpartition(":")[0])
