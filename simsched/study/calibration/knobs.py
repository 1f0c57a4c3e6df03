"""`KNOBS`: the one table of what calibration tries.

A knob is a choice that a site makes and that its log does not record.  Each of its settings changes the
options of a run (the document of ``--config``).  A new option of a run that may explain waits, such as a
limit per user or a weight of a priority, joins as one more row: a name, a meaning, and a function that
returns the settings for a log, or the reason why none is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.errors import ConfigError, did_you_mean
from simsched.formats.rfc.idset import Idset

if TYPE_CHECKING:
    from simsched.study.calibration.log_facts import LogFacts

Options: TypeAlias = Mapping[str, Any]
Settings: TypeAlias = "Callable[[LogFacts, Options], Sequence[KnobSetting] | str]"

QUEUE_POLICY, POLICY_OPTIONS = "queue-policy", "policy-options"


@dataclass(frozen=True, slots=True)
class KnobSetting:
    """One setting of a knob: its name, and the options of the run that it replaces.

    Options of the queue policy are added to those that the run has, unless the setting is of another
    policy; outages are added to those of the run.
    """

    label: str
    options: Options

    def applied(self, options: Options) -> dict[str, Any]:
        """Return the options of a run with this setting."""
        mine = dict(self.options)
        kept = dict(options.get(POLICY_OPTIONS, {}))
        if QUEUE_POLICY in mine:  # another policy does not have the options of this one
            kept = {name: value for name, value in kept.items() if name == "queue_depth"}
        kept |= mine.pop(POLICY_OPTIONS, {})
        outages = [*options.get("outages", []), *mine.pop("outages", [])]
        found = {**options, **mine, POLICY_OPTIONS: kept, "outages": outages}
        return {name: value for name, value in found.items() if value or name not in _EMPTY}


_EMPTY = (POLICY_OPTIONS, "outages")


@dataclass(frozen=True, slots=True)
class Knob:
    """A choice that a log does not record: its name, its meaning, and its settings for a log."""

    name: str
    meaning: str
    settings: Settings


def _policies(_: LogFacts, options: Options) -> Sequence[KnobSetting]:
    tried: Sequence[tuple[str, str, Options]] = (
        ("fcfs", "fcfs", {}),
        ("easy", "easy", {}),
        ("easy without a reservation", "easy", {"reservation": "none"}),
        ("hybrid, 4 reservations", "hybrid", {"depth": 4}),
        ("hybrid, 16 reservations", "hybrid", {"depth": 16}),
        ("conservative", "conservative", {}),
    )
    plain = {k: v for k, v in options.get(POLICY_OPTIONS, {}).items() if k != "queue_depth"}
    now = (options.get(QUEUE_POLICY, "easy"), plain)
    return [
        KnobSetting(label, {QUEUE_POLICY: name, POLICY_OPTIONS: own})
        for label, name, own in tried
        if (name, own) != now
    ]


def _depths(_: LogFacts, options: Options) -> Sequence[KnobSetting]:
    now = options.get(POLICY_OPTIONS, {}).get("queue_depth")
    return [
        KnobSetting(f"the first {depth} jobs", {POLICY_OPTIONS: {"queue_depth": depth}})
        for depth in (5, 20, 50, 100)
        if depth != now
    ]


def _orders(facts: LogFacts, options: Options) -> Sequence[KnobSetting]:
    names = ["fifo", "sjf", "ljf", "smallest-area", "largest-area", "wfp3", "unicef"]
    names += ["fairshare"] * (facts.users > 1) + ["priority"] * (facts.urgencies > 1)
    now = options.get("order", "fifo")
    return [KnobSetting(name, {"order": name}) for name in names if name != now]


def _queue_priorities(facts: LogFacts, options: Options) -> Sequence[KnobSetting] | str:
    if options.get("queues"):
        return "the configuration has queues"
    if len(facts.queues) < 2:
        return "the log does not have several queues"
    order = sorted(facts.queues, key=lambda name: (-facts.queues[name], name))
    queues = {name: {"priority": at} for at, name in enumerate(order)}
    label = " before ".join(reversed(order)) if len(order) < 4 else f"{order[-1]} first, {order[0]} last"
    return [KnobSetting(label, {"queues": queues})]


def _overruns(facts: LogFacts, options: Options) -> Sequence[KnobSetting] | str:
    if not facts.overruns:
        return "no job of the log ran beyond its limit"
    now = options.get("overrun", "timeout")
    return [KnobSetting(value, {"overrun": value}) for value in ("timeout", "allow") if value != now]


def _epilogs(_: LogFacts, options: Options) -> Sequence[KnobSetting]:
    now = str(options.get("epilog", 0))
    return [KnobSetting(value, {"epilog": value}) for value in ("30s", "2m", "5m", "15m") if value != now]


def _capacities(facts: LogFacts, _: Options) -> Sequence[KnobSetting] | str:
    found = []
    for share in (0.02, 0.05, 0.1, 0.2):
        number = round(facts.targets * share)
        if number and facts.largest <= 1 - number / facts.targets:
            ranks = str(Idset.from_ids(facts.ranks[-number:]))
            outage = {"ranks": ranks, "start": 0, "kind": "failure", "note": "capacity by calibration"}
            found.append(KnobSetting(f"{share:.0%} of the nodes down", {"outages": [outage]}))
    return found or "the largest job of the log needs nearly the whole machine"


KNOBS: tuple[Knob, ...] = (
    Knob("queue-policy", "the queue policy and its reservations", _policies),
    Knob("depth", "the number of waiting jobs that are considered", _depths),
    Knob("order", "the order of waiting jobs", _orders),
    Knob("queue-priority", "priorities of the queues, by their waits in training", _queue_priorities),
    Knob("overrun", "whether jobs are ended at their limit", _overruns),
    Knob("epilog", "the time between two jobs on a node", _epilogs),
    Knob("capacity", "nodes that are never available", _capacities),
)


def knobs_named(names: Sequence[str]) -> tuple[Knob, ...]:
    """Return the knobs of these names in the order of the table; all of them without names.

    Raises
    ------
    ConfigError
        For a name that is not in the table.
    """
    known = [knob.name for knob in KNOBS]
    for name in names:
        if name not in known:
            raise ConfigError(
                f"unknown knob {name!r}{did_you_mean(name, known)}",
                where="--knobs",
                expected=", ".join(known),
            )
    return tuple(knob for knob in KNOBS if not names or knob.name in names)
