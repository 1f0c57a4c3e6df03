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
from graphlib import CycleError, TopologicalSorter
from math import inf
from typing import Annotated, Any, Literal, Self

from simsched.declare.kinds import choice, names
from simsched.declare.table import Declared, inherited
from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.declared import seconds

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
Seconds = Annotated[float, seconds("a time such as 2m")]


class VictimRule(Declared, frozen=True):
    """What becomes of the jobs of one queue or QoS, if they are preempted.

    Attributes
    ----------
    mode : one of `MODES` (slurm.conf(5), PreemptMode).
    grace : seconds for which a victim keeps running; a suspended job has none (slurm.conf(5), GraceTime).
    exempt : seconds that a job has run at least before it is preempted (slurm.conf(5), PreemptExemptTime).
    """

    complete = True

    mode: Annotated[str, choice(*MODES)] = REQUEUE
    grace: Seconds = 0
    exempt: Seconds = 0


class QosRule(VictimRule, frozen=True):
    """What becomes of the jobs of one QoS, and which it preempts.

    Attributes
    ----------
    preempts : the QoS whose jobs it may preempt, the first to be preempted first.
    """

    preempts: Annotated[tuple[str, ...], names("a list of QoS", '["low"]', empty=True)] = ()


class PreemptionRules(VictimRule, frozen=True):
    """Which jobs preempt which, and how; its own mode and times are those of victims without a table.

    Attributes
    ----------
    by : ``queue``: jobs of queues that preempt take the place of jobs in queues of lower priority;
        ``qos``: jobs of a QoS take the place of jobs of those that its ``preempts`` names.
    order : of the possible victims: those of the lowest ``priority`` first, of equals the ``youngest``;
        or the youngest alone, which are those that started last.
    queues : queue → the rule for victims in it.
    qos : QoS → the rule for victims of it, and which it preempts.
    """

    by: Literal["queue", "qos"] = "queue"
    order: Literal["priority", "youngest"] = "priority"
    queues: Mapping[str, VictimRule] = {}
    qos: Mapping[str, QosRule] = {}

    @property
    def tables(self) -> Mapping[str, VictimRule]:
        """Queue or QoS → its own rule."""
        return self.qos if self.by == QOS else self.queues

    def rule_of(self, name: str | None) -> VictimRule:
        """Return the rule for victims in a queue or QoS."""
        return self.tables.get(name or "", self)

    @property
    def preempts(self) -> dict[str, tuple[str, ...]]:
        """QoS → the QoS whose jobs it may preempt."""
        return {name: rule.preempts for name, rule in self.qos.items() if rule.preempts}

    def victims_of(self, queues: Mapping[str, Any]) -> dict[str, dict[str | None, int]]:
        """Return queue or QoS → those whose jobs it may preempt, with their places in the order of victims.

        `queues` is name → queue; jobs that are in none, None, are like those of a queue of priority 0.
        """
        if self.by == QOS:
            return {name: {one: at for at, one in enumerate(some)} for name, some in self.preempts.items()}
        places: dict[str | None, int] = {None: 0} | {name: queue.priority for name, queue in queues.items()}
        return {
            name: {other: place for other, place in places.items() if place < queue.priority}
            for name, queue in queues.items()
            if queue.preempts
        }

    @property
    def suspends(self) -> bool:
        """Whether jobs may be suspended."""
        return any(rule.mode == SUSPEND for rule in (self, *self.tables.values()))

    @property
    def checkpoints(self) -> bool:
        """Whether jobs may be preempted with a checkpoint."""
        return any(rule.mode == CHECKPOINT for rule in (self, *self.tables.values()))

    @classmethod
    def read(cls, value: Any, where: str, base: Self | None = None) -> Self:
        """Read the table of a configuration, or rules; errors as `Declared.read`."""
        if isinstance(value, Mapping):
            value = {"by": QOS if "qos" in value else QUEUE, **inherited(value, VictimRule, "queues", "qos")}
        return super().read(value, where, base)

    def checked(self, where: str) -> Self:
        """Return the rules; ConfigError for tables that contradict ``by``, and QoS that preempt no other."""
        mine, other = ("qos", "queues") if self.by == QOS else ("queues", "qos")
        if getattr(self, other):
            text = f"a table of {other}, but preemption goes by {self.by}"
            raise ConfigError(text, where=f"{where}.{other}", expected=mine)
        for name, others in self.preempts.items():
            if name in others:
                place = f"{where}.qos.{name}.preempts"
                raise ConfigError(f"{name!r} preempts itself", where=place, expected="other QoS")
        victims = {
            name: [one for one in others if self.rule_of(one).mode != OFF]
            for name, others in self.preempts.items()
        }
        try:
            TopologicalSorter(victims).prepare()
        except CycleError as error:
            loop = " preempts ".join(map(repr, reversed(error.args[1])))
            expected = "QoS of which none can be preempted by those that it preempts"
            raise ConfigError(f"{loop}, and so on", where=f"{where}.qos", expected=expected) from None
        if self.by == QOS and not self.preempts:
            expected = 'preempts = ["low"] of a QoS'
            raise ConfigError("no QoS preempts another", where=f"{where}.qos", expected=expected)
        return self


PLAIN = PreemptionRules(exempt=inf, order="youngest")
"""The rules without a table: only jobs with ``preemptible-after`` may be preempted, the latest first."""


def read_preemption(value: Any, where: str) -> PreemptionRules | None:
    """Read the table of a configuration, or rules; errors as `Declared.read`."""
    return None if value is None else PreemptionRules.read(value, where)


def refuse_idle_rules(rules: PreemptionRules, queues: Mapping[str, Any] | None) -> None:
    """Raise a `ConfigError` for rules by queue that no queue follows; `queues` is name → queue."""
    if rules.by != QUEUE:
        return
    known = dict(queues or {})
    for name in (name for name in rules.queues if name not in known):
        hint = did_you_mean(name, tuple(known))
        place = f"preemption.queues.{name}"
        raise ConfigError(f"there is no queue {name!r}{hint}", where=place, expected=", ".join(known) or None)
    if not any(queue.preempts for queue in known.values()):
        expected = 'preempts = true of a queue, or by = "qos"'
        raise ConfigError("no queue preempts another", where="preemption", expected=expected)
