"""One partition as a queue of a configuration (RFC 33's words): limits, defaults, priority."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import clip
from simsched.formats.machines.slurm.config_lines import PARTITION
from simsched.formats.machines.slurm.notation import UNLIMITED, number_of, stated, time_limit, yes
from simsched.formats.rfc.duration import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.machines.description import NoteCollector

EXCLUSIVE = "exclusive"
CLOSED = [["0s", "inf"]]
"""The windows of a queue of which no job starts."""
MOST_NODES = 2**31 - 1

#: Keys that affect which jobs start, and are not held → what they state.
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
PARTITION_ALONE = {
    "cpubind": "how tasks are bound to CPUs",
    "disablerootjobs": "whether root may submit to it",
    "hidden": "whether users see it",
    "powerdownonidle": "nodes are switched off when they are idle",
    "selecttypeparameters": "its own consumable resources",
    "suspendtime": "the time after which idle nodes are switched off",
    "topology": "its own topology",
    "tresbillingweights": "the weights of resources in usage, which counts cores here",
}
"""The same for keys that the whole cluster does not have, or has in another sense."""
_NO_EFFECT = frozenset({"all", "no", "0", "default", *UNLIMITED})


def queue_of(name: str, values: Mapping[str, str], notes: NoteCollector, where: str) -> dict[str, Any]:
    """Return the queue of a partition without its nodes; ``priority`` is always present."""
    tier = number_of(values, notes, where, "prioritytier", "priority")
    queue: dict[str, Any] = {"priority": 1 if tier is None else tier}
    policy: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    longest = _time(values, "maxtime", notes, where)
    if longest is not None and longest < inf:
        limits["duration"] = format_duration(longest)
    sizes = _sizes(values, notes, where)
    if sizes:
        limits["job-size"] = sizes
    if limits:
        policy["limits"] = limits
    usual = _time(values, "defaulttime", notes, where)
    if usual is not None and longest is not None and usual > longest:
        # Slurm gives such a job MaxTime; a default above a limit refuses it, as in Flux
        given = stated(values, "defaulttime")
        notes.assumed(f"partition {name}: DefaultTime={given} is above MaxTime, which is the default", where)
        usual = longest
    if usual is not None:
        policy["jobspec"] = {"defaults": {"system": {"duration": format_duration(usual)}}}
    if policy:
        queue["policy"] = policy
    state = stated(values, "state").upper()
    if state and state != "UP":
        queue["closed"] = CLOSED
        notes.assumed(f"partition {name} is {state}: none of its jobs start", where)
    _note_the_rest(name, values, notes, where)
    return queue


def is_default(values: Mapping[str, str], notes: NoteCollector, where: str) -> bool:
    """Return whether jobs that name no partition go to this one."""
    return bool(notes.attempt(yes, values.get("default", "NO"), where, "default"))


def is_exclusive(values: Mapping[str, str]) -> bool:
    """Return whether each job of a partition has whole nodes; ``Exclusive`` replaces the older keys."""
    kind = stated(values, "exclusive").lower()
    if kind in ("node", "topo", "no"):
        return kind != "no"
    topology = stated(values, "exclusivetopo").lower() not in ("", "no")
    return topology or _sharing(values).partition(":")[0] == EXCLUSIVE


def job_factor(values: Mapping[str, str], notes: NoteCollector, where: str) -> int:
    """Return the PriorityJobFactor of a partition: the value of the factor ``queue`` for its jobs."""
    found = number_of(values, notes, where, "priorityjobfactor", "priority")
    return 1 if found is None else found


def _sharing(values: Mapping[str, str]) -> str:
    return stated(values, "oversubscribe", "shared").lower()


def _time(values: Mapping[str, str], key: str, notes: NoteCollector, where: str) -> float | None:
    text = stated(values, key)
    return notes.attempt(time_limit, text, where, key) if text else None


def _sizes(values: Mapping[str, str], notes: NoteCollector, where: str) -> dict[str, Any]:
    """Return the limits on nodes; a minimum of one node is not a limit."""
    found: dict[str, Any] = {}
    for key, side, trivial in (("maxnodes", "max", -1), ("minnodes", "min", 1)):
        if stated(values, key).lower() in UNLIMITED:
            continue
        number = number_of(values, notes, where, key, most=MOST_NODES)
        if number is not None and number > trivial:
            found[side] = {"nnodes": number}
            text = "MaxNodes and MinNodes count the nodes of a request, and one for a request of cores alone"
            notes.assumed(text, where)
    return found


def _note_the_rest(name: str, values: Mapping[str, str], notes: NoteCollector, where: str) -> None:
    """Note the keys with an effect that a queue does not hold; one note for each key."""
    for key, meaning in {**LEFT_OUT, **PARTITION_ALONE}.items():
        value = stated(values, key)
        if value and value.lower() not in _NO_EFFECT:
            text = f"partition {name}: {PARTITION[key]}={value} ({meaning})"
            notes.left_out(text, where, cause=f"partition {key}")
    _note_exclusive(name, values, notes, where)
    kind, _, jobs = _sharing(values).partition(":")
    if kind in ("yes", "force") and jobs != "1":
        text = (
            f"partition {name}: OverSubscribe={_sharing(values).upper()} (jobs share cores; here each core "
            "has one job)"
        )
        notes.left_out(text, where, cause="partition oversubscribe")


def _note_exclusive(name: str, values: Mapping[str, str], notes: NoteCollector, where: str) -> None:
    """Note what ``Exclusive`` states beyond whole nodes."""
    holders = {"user": "exclusiveuser", "topo": "exclusivetopo"}
    kind = stated(values, "exclusive").lower()
    if kind in holders:
        text = f"partition {name}: Exclusive={kind.upper()} ({LEFT_OUT[holders[kind]]})"
        notes.left_out(text, where, cause=f"partition {holders[kind]}")
    elif kind not in ("", "no", "node"):
        notes.fault(f"partition {name}: Exclusive={clip(kind)}", where, "NO, NODE, USER or TOPO")
