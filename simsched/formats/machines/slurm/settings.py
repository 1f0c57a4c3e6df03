"""The settings of a whole cluster as run options (``--config``): policy, order, preemption, licences.

Settings that affect the schedule and have no counterpart are noted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.formats.cluster.recipe import Amount, PoolSpec
from simsched.formats.machines.slurm.keys import GLOBAL
from simsched.formats.machines.slurm.node_records import NOT_POOLS
from simsched.formats.machines.slurm.notation import (
    UNLIMITED,
    comma_parts,
    stated,
    whole_number,
)
from simsched.formats.machines.slurm.partition_records import LEFT_OUT
from simsched.formats.machines.slurm.priority_lines import PriorityLines
from simsched.formats.machines.slurm.scheduler_parameters import scheduler_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.machines.description import QosRow
    from simsched.formats.machines.shared.note_collector import NoteCollector

BY_PARTITION, BY_QOS = "preempt/partition_prio", "preempt/qos"
YOUNGEST = "preempt_youngest_first"
"""The word of SchedulerParameters for the order of preempted jobs."""
WHOLE_NODES = "firstnodex"
"""The match policy that gives whole idle nodes."""
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

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
        """Return the queue policy for SchedulerType and SchedulerParameters."""
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
