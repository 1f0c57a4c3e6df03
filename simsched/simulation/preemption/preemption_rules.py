"""`PreemptionRules`: the table ``[preemption]`` of a configuration.

It says which jobs preempt which, and what becomes of the victims::

    [preemption]
    by = "queue"               # or "qos", the default if there is a table qos
    mode = "requeue"           # cancel, suspend, checkpoint, off
    grace = "2m"               # between the decision and the end of a victim
    exempt = "10m"             # a job is not preempted before it has run for this time
    order = "priority"         # of victims; or "youngest"

    [preemption.queues.scavenger]
    mode = "cancel"

    [preemption.qos.high]
    preempts = ["low", "normal"]

The tables of queues or QoS hold the values for victims in them; the others have the common ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.duration import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUE, QOS = "queue", "qos"
REQUEUE, CANCEL, SUSPEND, CHECKPOINT, OFF = "requeue", "cancel", "suspend", "checkpoint", "off"
MODES: Mapping[str, str] = {
    REQUEUE: "the victim is queued again and starts over, or goes on from its last checkpoint",
    CANCEL: "the victim ends",
    SUSPEND: "the victim stops and goes on later on the same resources",
    CHECKPOINT: "the victim writes a checkpoint, is queued again, and goes on from it",
    OFF: "the job is not preempted",
}
"""Mode → what becomes of a victim."""
ORDERS = ("priority", "youngest")
VICTIM_KEYS = ("mode", "grace", "exempt")
KEYS = ("by", "order", *VICTIM_KEYS, "queues", "qos")


@dataclass(frozen=True, slots=True)
class VictimRule:
    """What becomes of the jobs of one queue or QoS, if they are preempted.

    Attributes
    ----------
    mode : one of `MODES`.
    grace : seconds for which a victim keeps running; a suspended job has none.
    exempt : seconds that a job has run at least before it is preempted.
    """

    mode: str = REQUEUE
    grace: float = 0
    exempt: float = 0


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """Which jobs preempt which, and how.

    Attributes
    ----------
    by : ``queue``: jobs of queues that preempt take the place of jobs in queues of lower priority;
        ``qos``: jobs of a QoS take the place of jobs of those that its ``preempts`` names.
    order : of the possible victims: those of the lowest ``priority`` first, of equals the ``youngest``;
        or the youngest alone, which are those that started last.
    common : the rule for victims without their own.
    named : queue or QoS → its own rule.
    preempts : QoS → the QoS whose jobs it may preempt, the first to be preempted first.
    """

    by: str = QUEUE
    order: str = ORDERS[0]
    common: VictimRule = field(default_factory=VictimRule)
    named: tuple[tuple[str, VictimRule], ...] = ()
    preempts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def rule_of(self, name: str | None) -> VictimRule:
        """Return the rule for victims in a queue or QoS."""
        return dict(self.named).get(name or "", self.common)

    @property
    def suspends(self) -> bool:
        """Whether jobs may be suspended."""
        return SUSPEND in (self.common.mode, *(rule.mode for _, rule in self.named))

    @property
    def checkpoints(self) -> bool:
        """Whether jobs may be preempted with a checkpoint."""
        return CHECKPOINT in (self.common.mode, *(rule.mode for _, rule in self.named))

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a document has it."""
        preempts = dict(self.preempts)
        names = dict.fromkeys((*dict(self.named), *preempts))
        found: dict[str, Any] = {"by": self.by, "order": self.order, **_plain(self.common)}
        tables = {name: _plain(self.rule_of(name)) for name in names}
        for name, others in preempts.items():
            tables[name]["preempts"] = list(others)
        return found | ({self.by if self.by == QOS else "queues": tables} if tables else {})


def _plain(rule: VictimRule) -> dict[str, Any]:
    return {"mode": rule.mode, "grace": rule.grace, "exempt": rule.exempt}


def read_preemption(value: Any, where: str) -> PreemptionRules | None:
    """Read the table of a configuration, or rules.

    Raises
    ------
    ConfigError, FormatError
        for an unknown key or value, and tables that contradict ``by``.
    """
    if isinstance(value, PreemptionRules | None):
        return value
    table = _table(value, KEYS, where)
    by = table.get("by", QOS if "qos" in table else QUEUE)
    if by not in (QUEUE, QOS):
        raise ConfigError(f"unknown value {by!r}", where=f"{where}.by", expected=f"{QUEUE} or {QOS}")
    order = table.get("order", ORDERS[0])
    if order not in ORDERS:
        raise ConfigError(f"unknown value {order!r}", where=f"{where}.order", expected=" or ".join(ORDERS))
    mine, other = ("qos", "queues") if by == QOS else ("queues", "qos")
    if other in table:
        raise ConfigError(
            f"a table of {other}, but preemption goes by {by}", where=f"{where}.{other}", expected=mine
        )
    common = _victims(table, VictimRule(), where)
    tables = _table(table.get(mine, {}), None, f"{where}.{mine}")
    keys = (*VICTIM_KEYS, "preempts") if by == QOS else VICTIM_KEYS
    named, preempts = [], []
    for name, item in tables.items():
        place = f"{where}.{mine}.{name}"
        own = _table(item, keys, place)
        named.append((name, _victims(own, common, place)))
        if "preempts" in own:
            preempts.append((name, _names(own["preempts"], name, f"{place}.preempts")))
    if by == QOS and not preempts:
        expected = 'preempts = ["low"] of a QoS'
        raise ConfigError("no QoS preempts another", where=f"{where}.qos", expected=expected)
    return PreemptionRules(by, order, common, tuple(named), tuple(preempts))


def _table(value: Any, keys: tuple[str, ...] | None, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError("not a table", where=where, expected=", ".join(keys or ("names",)))
    for key in value if keys is not None else ():
        if key not in keys:  # type: ignore[operator]
            hint = did_you_mean(str(key), keys)  # type: ignore[arg-type]
            raise ConfigError(f"unknown key {key!r}{hint}", where=where, expected=", ".join(keys or ()))
    return {str(key): item for key, item in value.items()}


def _victims(table: Mapping[str, Any], common: VictimRule, where: str) -> VictimRule:
    """Read the values for victims over those that are common to all."""
    mode = table.get("mode", common.mode)
    if not isinstance(mode, str) or mode not in MODES:
        hint = did_you_mean(str(mode), tuple(MODES))
        raise ConfigError(f"unknown value {mode!r}{hint}", where=f"{where}.mode", expected=", ".join(MODES))
    rule = replace(common, mode=mode)
    for key in ("grace", "exempt"):
        if key in table:
            seconds = parse_time(table[key], where=f"{where}.{key}")
            if seconds == inf:
                raise ConfigError("the time has no end", where=f"{where}.{key}", expected="a time such as 2m")
            rule = replace(rule, grace=seconds) if key == "grace" else replace(rule, exempt=seconds)
    return rule


def _names(value: Any, name: str, where: str) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
        raise ConfigError(f"{value!r} is not a list of QoS", where=where, expected='["low"]')
    if name in given:
        raise ConfigError(f"{name!r} preempts itself", where=where, expected="other QoS")
    return tuple(dict.fromkeys(given))


def refuse_idle_rules(rules: PreemptionRules, queues: Mapping[str, Any] | None) -> None:
    """Raise a `ConfigError` for rules by queue that no queue follows; `queues` is name → queue."""
    if rules.by != QUEUE:
        return
    known = dict(queues or {})
    for name in _unknown(rules, known):
        hint = did_you_mean(name, tuple(known))
        place = f"preemption.queues.{name}"
        raise ConfigError(f"there is no queue {name!r}{hint}", where=place, expected=", ".join(known) or None)
    if not any(queue.preempts for queue in known.values()):
        expected = 'preempts = true of a queue, or by = "qos"'
        raise ConfigError("no queue preempts another", where="preemption", expected=expected)


def _unknown(rules: PreemptionRules, known: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, _ in rules.named if name not in known)
