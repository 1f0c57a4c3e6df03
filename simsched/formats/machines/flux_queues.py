"""Queues, limits and scheduler options of a Flux configuration, as the document of ``--config``."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.machines.shared.node_values import usable_properties
from simsched.formats.rfc.duration import parse_time
from simsched.formats.text.excerpts import clip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from simsched.formats.machines.shared.note_collector import NoteCollector

QUEUE_KEYS = ("requires", "policy", "parent")
SIZES = ("nnodes", "ncores", "ngpus")
QMANAGER_KEYS = (
    "queue-policy", "queue-params", "policy-params", "queues", "queue-policy-per-queue",
    "queue-params-per-queue", "policy-params-per-queue", "feasibility-timeout",
)  # fmt: skip
RESOURCE_KEYS = (
    "match-policy", "match-format", "load-allowlist", "load-file", "load-format", "reserve-vtx-vec",
    "prune-filters", "update-interval", "traverser", "queue-policy",
)  # fmt: skip
QUEUE_POLICIES = ("fcfs", "easy", "conservative", "hybrid")
MATCH_POLICIES = ("first", "low", "high", "lonode", "hinode", "firstnodex", "lonodex", "hinodex")
QUEUE_DEPTH, RESERVATION_DEPTH = 32, 64
"""Fluxion's defaults of queue-depth and reservation-depth (flux-config-sched-fluxion-qmanager(5))."""
MOST = 2**31
"""Sizes are below this number."""
PARAMETERS = {
    "queue-params": ("queue-depth", "max-queue-depth"),
    "policy-params": ("reservation-depth", "max-reservation-depth"),
}
"""The parameters of Fluxion by their table."""


def queue_config(document: dict[str, Any], notes: NoteCollector, at: Callable[[str], str]) -> dict[str, Any]:
    """Return the configuration of queues and of the scheduler; `at(path)` is a place in the files."""
    config = {**_qmanager(document, notes, at), **_match_policy(document, notes, at)}
    return config | _Queues(notes, at).read(document.get("queues"), document.get("policy"))


class _Queues:
    """Reads the tables ``queues`` and ``policy``; values that ``--config`` would refuse are faults."""

    def __init__(self, notes: NoteCollector, at: Callable[[str], str]) -> None:
        self.notes, self.at = notes, at

    def read(self, queues: Any, policy: Any) -> dict[str, Any]:
        """Return the keys ``queues`` and ``policy`` of a configuration."""
        common = {} if policy is None else self._policy(policy, "policy", whole=True)
        if queues is not None and not isinstance(queues, dict):
            self.notes.fault("queues is not a table of queues", self.at("queues"), "[queues.batch]")
        if not isinstance(queues, dict) or not queues:
            if not common:
                return {}
            # Flux's one queue has no name, and simsched needs one for its limits
            self.notes.assumed(
                "the limits and defaults are those of a queue named default", self.at("policy")
            )
            queues = {"default": {}}
            system = {**_system(common), "queue": "default"}
            common["jobspec"] = {"defaults": {"system": system}}
        rows = {name: self._queue(name, row) for name, row in queues.items()}
        found = {name: row for name, row in rows.items() if row is not None}
        for name, row in found.items():
            if row.get("parent") is not None and (row["parent"] not in found or row["parent"] == name):
                self.notes.fault("the parent is not another queue", self.at(f"queues.{name}.parent"))
                del row["parent"]
        default = _system(common).get("queue")
        if default is not None and default not in found:
            place = self.at("policy.jobspec.defaults.system.queue")
            self.notes.fault(f"the default queue {clip(default)!r} does not exist", place, ", ".join(found))
            del _system(common)["queue"]
        if not found:
            return {}
        limited = any(
            "duration" in row.get("policy", {}).get("limits", {})
            for row in (*found.values(), {"policy": common})
        )
        for name, row in found.items():
            self._note_default(name, (row.get("policy", {}), common))
        # Flux refuses a job that has neither a duration nor a default where there is a limit
        strict = {"no-limit": "reject"} if limited else {}
        return {**strict, "queues": found, **({"policy": common} if common else {})}

    def _note_default(self, name: str, policies: Sequence[dict[str, Any]]) -> None:
        """Note a default duration above the limit; the first policy that states one counts for each."""
        limits = [one["limits"]["duration"] for one in policies if "duration" in one.get("limits", {})]
        usual = [_system(one)["duration"] for one in policies if "duration" in _system(one)]
        if limits and usual and (parse_time(usual[0]) or inf) > parse_time(limits[0]):
            above = f"the default duration {usual[0]} is above the limit {limits[0]}"
            text = f"queue {clip(name)}: {above}: jobs without a duration are rejected"
            self.notes.assumed(text, self.at(f"queues.{name}"))

    def _queue(self, name: str, row: Any) -> dict[str, Any] | None:
        path = f"queues.{name}"
        if not isinstance(row, dict):
            self.notes.fault("this queue is not a table", self.at(path))
            return None
        self._refuse_unknown(row, QUEUE_KEYS, path)
        found: dict[str, Any] = {}
        requires = row.get("requires")
        if isinstance(requires, list) and all(isinstance(item, str) for item in requires):
            found["requires"] = list(usable_properties(requires, self.at(f"{path}.requires"), self.notes))
        elif requires is not None:
            place = self.at(f"{path}.requires")
            self.notes.fault("requires is not a list of properties", place, '["batch"]')
        if isinstance(row.get("parent"), str):
            found["parent"] = row["parent"]
        policy = self._policy(row.get("policy", {}), f"{path}.policy")
        return {**found, "policy": policy} if policy else found

    def _refuse_unknown(self, table: dict[str, Any], known: tuple[str, ...], path: str) -> None:
        for key in table:
            if key not in known:
                self.notes.unknown(key, known, self.at(f"{path}.{key}"))

    def _policy(self, value: Any, path: str, *, whole: bool = False) -> dict[str, Any]:
        """Return the limits and defaults; `whole` allows the default queue."""
        if not isinstance(value, dict):
            self.notes.fault("policy is not a table", self.at(path))
            return {}
        self._refuse_unknown(value, ("limits", "jobspec", "access", "scheduler"), path)
        for key in ("access", "scheduler"):
            if key in value:
                self.notes.left_out(f"{key} of a policy", self.at(f"{path}.{key}"))
        limits = self._limits(value.get("limits", {}), f"{path}.limits")
        inner = f"{path}.jobspec.defaults.system"
        known = ("duration", "queue") if whole else ("duration",)
        given = _system(value)
        self._refuse_unknown(given, known, inner)
        defaults: dict[str, Any] = {}
        if "duration" in given and self._seconds(given["duration"], f"{inner}.duration") is not None:
            defaults["duration"] = given["duration"]
        if whole and isinstance(given.get("queue"), str):
            defaults["queue"] = given["queue"]
        found: dict[str, Any] = {"limits": limits} if limits else {}
        return {**found, "jobspec": {"defaults": {"system": defaults}}} if defaults else found

    def _seconds(self, value: Any, path: str) -> float | None:
        """Return the seconds of a duration; None where it is not understood."""
        try:
            return parse_time(value, self.at(path))
        except FormatError as error:
            self.notes.error(error)
            return None

    def _limits(self, value: Any, path: str) -> dict[str, Any]:
        """Return limits; Flux writes an unlimited duration as 0 and an unlimited size as -1."""
        if not isinstance(value, dict):
            self.notes.fault("limits is not a table", self.at(path))
            return {}
        self._refuse_unknown(value, ("duration", "job-size"), path)
        found: dict[str, Any] = {}
        if "duration" in value:
            seconds = self._seconds(value["duration"], f"{path}.duration")
            if seconds is not None:
                found["duration"] = value["duration"] if seconds else "inf"
        size = value.get("job-size", {})
        if not isinstance(size, dict):
            self.notes.fault("job-size is not a table", self.at(f"{path}.job-size"), "max, min")
            return found
        self._refuse_unknown(size, ("max", "min"), f"{path}.job-size")
        sides = {side: self._sizes(size.get(side, {}), f"{path}.job-size.{side}") for side in ("max", "min")}
        sizes = {side: numbers for side, numbers in sides.items() if numbers}
        return {**found, "job-size": sizes} if sizes else found

    def _sizes(self, value: Any, path: str) -> dict[str, int]:
        if not isinstance(value, dict):
            self.notes.fault("this is not a table", self.at(path), ", ".join(SIZES))
            return {}
        self._refuse_unknown(value, SIZES, path)
        found = {}
        for key in SIZES:
            number = value.get(key)
            if number is None:
                continue
            if not isinstance(number, int) or isinstance(number, bool) or not -1 <= number < MOST:
                place = self.at(f"{path}.{key}")
                self.notes.fault(
                    f"{clip(repr(number))} is not a number of units", place, "-1 (unlimited) or more"
                )
            elif number >= 0 or path.startswith("queues."):
                found[key] = number
        return found


def _system(policy: Any) -> dict[str, Any]:
    """Return ``jobspec.defaults.system`` of a policy; empty where it is not a table."""
    found = policy
    for key in ("jobspec", "defaults", "system"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


# -- Fluxion -----------------------------------------------------------------------------


def _fluxion(
    document: dict[str, Any],
    table: str,
    known: tuple[str, ...],
    notes: NoteCollector,
    at: Callable[[str], str],
) -> dict[str, Any] | None:
    found = document.get(table)
    if found is None:
        return None
    if not isinstance(found, dict):
        notes.fault("this is not a table", at(table))
        return None
    for key in found:
        if key not in known:
            notes.unknown(key, known, at(table))
    return found


def _qmanager(document: dict[str, Any], notes: NoteCollector, at: Callable[[str], str]) -> dict[str, Any]:
    """Return the queue policy with its options."""
    table = "sched-fluxion-qmanager"
    found = _fluxion(document, table, QMANAGER_KEYS, notes, at)
    if found is None:
        return {}
    policy = _policy_name(found, notes, at(table))
    queue = _parameters(found.get("queue-params"), notes, at(f"{table}.queue-params"))
    plan = _parameters(found.get("policy-params"), notes, at(f"{table}.policy-params"))
    for key, given in (("queue-params", queue), ("policy-params", plan)):
        for name in [name for name in given if name not in PARAMETERS[key]]:
            other = next((one for one, names in PARAMETERS.items() if name in names), "")
            belongs = f", which belongs to {other}" if other else ""
            notes.left_out(f"the parameter {name}{belongs}", at(f"{table}.{key}"))
    if "max-reservation-depth" in plan and policy != "hybrid":
        notes.left_out("max-reservation-depth: every job that waits may have a reservation", at(table))
    for key in ("queue-params-per-queue", "policy-params-per-queue"):
        if key in found:
            notes.left_out(f"{key}: all queues have the same parameters", at(table))
    options: dict[str, Any] = {}
    if policy != "fcfs" or "queue-depth" in queue:
        if "queue-depth" not in queue:
            notes.assumed(f"queue-depth = {QUEUE_DEPTH}, the default of Fluxion", at(table))
        depth = queue.get("queue-depth", QUEUE_DEPTH)
        options["queue-depth"] = max(1, min(depth, queue.get("max-queue-depth", depth)))
    if policy == "hybrid":
        if "reservation-depth" not in plan:
            notes.assumed(f"reservation-depth = {RESERVATION_DEPTH}, the default of Fluxion", at(table))
        depth = plan.get("reservation-depth", RESERVATION_DEPTH)
        options["hybrid"] = {"depth": min(depth, plan.get("max-reservation-depth", depth))}
    return {"queue-policy": policy, **({"policy-options": options} if options else {})}


def _policy_name(found: dict[str, Any], notes: NoteCollector, where: str) -> str:
    """Return the one queue policy of all queues."""
    name = found.get("queue-policy")
    each = [item.rpartition(":") for item in str(found.get("queue-policy-per-queue", "")).split()]
    names = list(dict.fromkeys(policy for _, _, policy in each))
    if name is None and len(names) == 1:
        name = names[0]
    elif names:
        notes.left_out(f"queue-policy-per-queue ({', '.join(names)}): all queues have one policy", where)
    if name is None:
        notes.assumed("queue-policy = fcfs, the default of Fluxion", where)
        return "fcfs"
    if name not in QUEUE_POLICIES:
        notes.fault(f"unknown queue policy {clip(str(name))!r}", where, ", ".join(QUEUE_POLICIES))
        return "fcfs"
    return str(name)


def _parameters(value: Any, notes: NoteCollector, where: str) -> dict[str, int]:
    """Return parameters of Fluxion: a table, or ``name=number`` with commas between."""
    if value is None:
        return {}
    if isinstance(value, dict):
        pairs = [(str(name), str(number)) for name, number in value.items()]
    else:
        pairs = [(name.strip(), number.strip()) for name, _, number in
                 (item.partition("=") for item in str(value).split(",") if item.strip())]  # fmt: skip
    found = {}
    for name, number in pairs:
        if re.fullmatch(r"[0-9]{1,9}", number):
            found[name] = int(number)
        else:
            notes.fault(f"{clip(number)!r} is not a value of {clip(name)}", where, "a whole number")
    return found


def _match_policy(document: dict[str, Any], notes: NoteCollector, at: Callable[[str], str]) -> dict[str, Any]:
    table = "sched-fluxion-resource"
    found = _fluxion(document, table, RESOURCE_KEYS, notes, at)
    if found is None:
        return {}
    where = at(f"{table}.match-policy")
    name = found.get("match-policy", "first")
    if name in MATCH_POLICIES:
        return {"match-policy": name}
    custom = _custom(str(name))
    if custom is None:
        notes.fault(f"unknown match policy {clip(str(name))!r}", where, ", ".join(MATCH_POLICIES))
        return {}
    notes.assumed(f"match-policy = {custom} for {clip(str(name))!r}", where)
    return {"match-policy": custom}


def _custom(text: str) -> str | None:
    """Return the policy nearest to one that is put together from attributes; None if it is not one.

    >>> _custom("policy=high node_exclusive=true set_stop_on_1_matches=true")
    'hinodex'
    """
    given = dict(part.partition("=")[::2] for part in text.split())
    if not given or not given.keys() <= {"policy", "node_centric", "node_exclusive", "set_stop_on_1_matches"}:
        return None
    order = given.get("policy", "low")
    if order not in ("low", "high"):
        return None
    whole = given.get("node_exclusive") == "true"
    if given.get("set_stop_on_1_matches") == "true" and order == "low":
        return "firstnodex" if whole else "first"
    if not whole and given.get("node_centric") != "true":
        return order
    return f"{order.removesuffix('w').removesuffix('gh')}node{'x' if whole else ''}"
