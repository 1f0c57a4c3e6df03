"""`RunConfig`: every choice that makes one run differ from another, and the one reader of them.

The fields are the table of all options.  The command line, configuration files, studies, checkpoints
and Python callers all go through it: `from_document` reads plain data, `make_config` reads the
arguments of Python callers, and both use the same reader for each option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from simsched.declare.kinds import ANYTHING, ValueKind, by_name, kind_of, listed
from simsched.declare.table import fields_of, read_keys, table_of
from simsched.errors import ConfigError, SimschedError
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.formats.rfc.idset import Idset
from simsched.match.named_targets import targets_of
from simsched.plugins.plugin_errors import name_of
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.schedule.orders.priority_rules import PriorityRules
from simsched.simulation.licences.licence_pools import LICENCES
from simsched.simulation.limits.limit_rules import LimitRule, read_limits, refuse_closed
from simsched.simulation.options.plain_options import PlainOptions
from simsched.simulation.outages.outages import Outage, read_outages
from simsched.simulation.preemption.checkpoint_rules import CheckpointRules
from simsched.simulation.preemption.preemption_rules import PreemptionRules, refuse_idle_rules
from simsched.simulation.queues import QUEUE, Queues
from simsched.simulation.reservations.reservation_rules import AdvanceReservation, read_reservations

if TYPE_CHECKING:
    from simsched.formats.rfc.clock import Clock
    from simsched.graph.index.index import Index
    from simsched.schedule.pass_context import QueuePolicy

POLICY, POLICY_OPTIONS = "queue-policy", "policy-options"
"""Keys of a document: the queue policy, and the options of queue policies."""
BY_NAME = ("queue_policy", "match_policy", "order", "predictor")
"""Fields that may hold an object of a program's own; ``run.json`` has its name."""
DEFAULT_POLICY = "easy"
RECORDED = "recorded"
"""The queue policy that plays the starts of a log."""
SLURM = "slurm"
"""The queue policy that schedules as Slurm does."""


def _policy_options(value: Any, where: str) -> dict[str, Any]:
    """Return options of queue policies: plain ones, and a table for each policy that has its own.

    Names of options are spelt with ``-`` or ``_``; the policy reads texts.
    """
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ConfigError(
            f"{value!r} is not a mapping of options of a queue policy", where=where, expected="name → value"
        )
    return {
        **{name.replace("-", "_"): item for name, item in value.items() if not isinstance(item, Mapping)},
        **{
            name: _policy_options(item, f"{where}.{name}")
            for name, item in value.items()
            if isinstance(item, Mapping)
        },
    }


def _queues(value: Any, where: str) -> Queues:
    return value if isinstance(value, Queues) else Queues.from_dict(value, where=where)


def _list(read: Any, item: ValueKind, alone: ValueKind) -> ValueKind:
    """Return the kind of a list of tables, in place of which there may be one table `alone`."""
    return ValueKind(
        read,
        lambda: {"anyOf": [{"type": "array", "items": item.schema}, alone.schema]},
        lambda rules: [rule.to_dict() for rule in rules],
    )


PolicyOptions = ValueKind(_policy_options, {"type": "object"}, dict)
NamedQueues = ValueKind(
    _queues, by_name(QUEUE).described, lambda queues: queues and list(map(str, queues.queues))
)
_OUTAGES = table_of({"outages": listed(kind_of(Outage))})
IF_USED = {
    *("predictor", "kill_grace", "limits", "priority", "preemption", "job_checkpoints", "licenses"),
    "reservations",
}
"""Options that ``run.json`` has only if they are used."""


class RunConfig(PlainOptions, frozen=True, kw_only=True):
    """The rules of one run.

    Attributes
    ----------
    queue_options : options of the queue policy, and a table for each other policy that has its own; those of
        a site belong to the queue policy of the site.
    queues : named queues with their limits and constraints (RFC 33); None: one queue for all.
    outages : times at which targets fail, are drained or are kept free for maintenance.
    limits : limits of users, accounts, queues, QoS and all jobs.
    priority : the factors of the order ``multifactor``; other orders do not use them.
    preemption : which jobs preempt others, and what becomes of the victims; None: only jobs with
        ``preemptible-after`` are preempted, and start over. None under the queue policy ``recorded``.
    job_checkpoints : the checkpoints from which jobs go on that were preempted or whose nodes failed.
    licenses : counted resources that are not on nodes.
    reservations : nodes that are kept at a time for the jobs that name them; none under ``recorded``.
    """

    queue_options: Annotated[Mapping[str, Any], PolicyOptions] = msgspec.field(
        name=POLICY_OPTIONS, default_factory=dict
    )
    queues: Annotated[Queues | None, NamedQueues] = None
    outages: Annotated[tuple[Outage, ...], _list(read_outages, kind_of(Outage), _OUTAGES)] = ()
    limits: Annotated[tuple[LimitRule, ...], _list(read_limits, *[kind_of(LimitRule)] * 2)] = ()
    priority: PriorityRules | None = None
    preemption: PreemptionRules | None = None
    job_checkpoints: CheckpointRules | None = None
    licenses: Annotated[Mapping[str, int] | None, LICENCES] = None
    reservations: Annotated[
        tuple[AdvanceReservation, ...], _list(read_reservations, *[kind_of(AdvanceReservation)] * 2)
    ] = ()

    def __post_init__(self) -> None:
        found: dict[str, Any] = {}
        if self.plays_log:  # its starts had to do with both; a site is played as it is
            found = {"preemption": None, "reservations": ()}
        if self.overrun is None:
            found["overrun"] = "allow" if self.plays_log else "timeout"
        if self.passes is None:
            found["passes"] = "event" if self.candidates == "actual" else "instant"
        for name, value in found.items():
            msgspec.structs.force_setattr(self, name, value)
        if self.candidates == "actual" and self.predictor != "limit":
            raise ConfigError(
                f"candidates=actual with the predictor {name_of(self.predictor)}", expected="one of the two"
            )
        for outage in self.outages:
            if not -MAX_SECONDS <= outage.start < outage.end or MAX_SECONDS < outage.end < float("inf"):
                raise ConfigError(
                    f"an outage from {outage.start} to {outage.end} s",
                    expected=f"an end after the start, at most {MAX_SECONDS:g} s, or inf",
                )

    def refuse_contradictions(self) -> None:
        """Raise a `ConfigError` for options that exclude each other, or need another one.

        A study reads its options one by one, so that this is asked of the configuration of a run alone.
        """
        if self.preemption is not None:
            refuse_idle_rules(self.preemption, None if self.queues is None else self.queues.queues)
        refuse_closed(self.limits)
        if self.order == MULTIFACTOR and self.priority is None:
            expected = "priority = {factors: {age: 1000, …}} in the configuration, or a preset"
            raise ConfigError(f"the order {MULTIFACTOR} has no factors", where="order", expected=expected)
        if self.job_checkpoints is not None and self.candidates == "actual":
            raise ConfigError("job-checkpoints with candidates=actual", expected="one of the two")

    def on_clock(self, clock: Clock | None) -> RunConfig:
        """Return the configuration with the dates of outages and queues as seconds of the run.

        Raises
        ------
        ConfigError
            For dates without a clock, dates that the zone does not have, and ends before their starts.
        """
        outages = tuple(found for outage in self.outages if (found := outage.on_clock(clock)) is not None)
        queues = None if self.queues is None else self.queues.on_clock(clock)
        reservations = tuple(one for given in self.reservations if (one := given.on_clock(clock)) is not None)
        if outages == self.outages and queues is self.queues and reservations == self.reservations:
            return self
        return self.replace(outages=outages, queues=queues, reservations=reservations)

    def on_machine(self, index: Index) -> RunConfig:
        """Return the configuration with the hosts of outages as ranks of a machine.

        Raises
        ------
        ConfigError
            For ranks and hosts that the machine does not have.
        """
        outages = tuple(
            one.replace(ranks=Idset.from_ids(index.ranks[found].tolist()), hosts="")
            if one.hosts and (found := targets_of(index, one.ranks, one.hosts))
            else one
            for one in self.outages
        )
        return self.replace(outages=outages) if outages != self.outages else self

    @property
    def plays_log(self) -> bool:
        """Whether jobs start when the log says, and not when a scheduler decides."""
        return bool(self.queue_policy == RECORDED)

    @property
    def schedules_as_slurm(self) -> bool:
        """Whether all queues are one, and reservations are for whole targets, as in Slurm."""
        return bool(self.queue_policy == SLURM)

    @property
    def preempts(self) -> bool:
        """Whether jobs may take the resources of running ones."""
        queues = {} if self.queues is None or self.plays_log else self.queues.queues
        return self.preemption is not None or any(queue.preempts for queue in queues.values())

    @property
    def suspends(self) -> bool:
        """Whether jobs may be suspended."""
        return self.preemption is not None and self.preemption.suspends

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, for ``run.json``."""
        return {
            one.name: one.kind.write(getattr(self, one.name))
            for one in OPTIONS.values()
            if one.name not in IF_USED or getattr(self, one.name) != one.default
        }


def _check_other_policies(policy: str | QueuePolicy | None, options: Mapping[str, Any]) -> None:
    """Raise ConfigError for a table of an unknown policy, or with an option that its policy does not have."""
    from simsched.schedule.policies.registry import known_options

    for name, table in options.items():
        if isinstance(table, Mapping) and name != _name_of(policy):
            try:
                known_options(name, {key: value for key, value in table.items() if key not in _LIFTED})
            except SimschedError as error:
                raise error.at(f"{POLICY_OPTIONS}.{name}") from None


def options_in_use(policy: str | QueuePolicy | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of one policy: plain ones, and those of its own table that these do not replace."""
    name = _name_of(policy)
    own = options.get(name) if name is not None else None
    plain = {key: value for key, value in options.items() if not isinstance(value, Mapping)}
    return {**(own if isinstance(own, Mapping) else {}), **plain}


def in_use(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the options of its own policy alone."""
    if not document.get(POLICY_OPTIONS):
        return dict(document)
    tables = _policy_options(_owned(document)[POLICY_OPTIONS], POLICY_OPTIONS)
    return {**document, POLICY_OPTIONS: options_in_use(document.get(POLICY), tables)}


def options_note(policy: str | QueuePolicy | None, options: Mapping[str, Any]) -> str | None:
    """Return a sentence if only other policies than the one in use have options of their own."""
    tables = {name: value for name, value in options.items() if isinstance(value, Mapping) and value}
    name = name_of(DEFAULT_POLICY if policy is None else policy).partition(":")[0]
    if not tables or name in tables:
        return None
    theirs = "; ".join(f"{other}: {', '.join(table).replace('_', '-')}" for other, table in tables.items())
    return f"options of other queue policies do not apply to {name}, which has its own defaults ({theirs})"


def _name_of(policy: str | QueuePolicy | None) -> str | None:
    if policy is None:
        return DEFAULT_POLICY
    return policy.partition(":")[0] if isinstance(policy, str) else None


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document overridden by another; tables are merged key by key, and None takes a key out.

    Options belong to the policy of their document: under another policy they are kept in a table of the
    first one. `queue-depth` belongs to all policies.

    >>> merged({"order": "sjf", "policy-options": {"extra": False}}, {"policy-options": {"refresh": "x"}})
    {'order': 'sjf', 'policy-options': {'extra': False, 'refresh': 'x'}}
    >>> site = {"queue-policy": "slurm", "policy-options": {"interval": 60}}
    >>> merged(site, {"queue-policy": "easy"})
    {'queue-policy': 'easy', 'policy-options': {'slurm': {'interval': 60}}}
    """
    mine, theirs = base.get(POLICY), over.get(POLICY)
    if theirs is not None and mine is not None and _name_of(mine) != _name_of(theirs):
        base = _owned(base)
    return _deep(base, over)


def _owned(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document with the plain options of its policy in the table of this policy."""
    name, options = _name_of(document.get(POLICY)), document.get(POLICY_OPTIONS)
    if name is None or POLICY not in document or not isinstance(options, Mapping):
        return document
    shared = {key: value for key, value in options.items() if str(key).replace("-", "_") == "queue_depth"}
    tables = {key: value for key, value in options.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in options.items() if key not in shared and key not in tables}
    if plain:
        tables[name] = {**tables.get(name, {}), **plain}
    return {**document, POLICY_OPTIONS: {**shared, **tables}}


def _deep(base: Mapping[str, Any], over: Mapping[str, Any], *, nested: bool = False) -> dict[str, Any]:
    made = dict(base)
    for key, value in over.items():
        if nested and value is None:
            made.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(made.get(key), Mapping):
            made[key] = _deep(made[key], value, nested=nested or key != POLICY_OPTIONS)
        else:
            made[key] = value
    return made


OPTIONS = fields_of(RunConfig)
"""Key in a document → option; keys may also be spelt with ``_``."""
CALIBRATION = "calibration"
"""The table of a configuration that `calibrate` wrote: its log and its error. No run depends on it."""
KEYS = (*OPTIONS, "policy")
"""The keys of a document; ``policy`` holds the settings common to all `queues`."""
#: Key among the options of a queue policy → field of `RunConfig`: variations of EASY that change the run.
_LIFTED = {"pass": "passes", "passes": "passes", "candidates": "candidates", "predictor": "predictor"}


def from_document(document: Mapping[str, Any], where: str = "config") -> dict[str, Any]:
    """Return the fields of `RunConfig` in a document of plain data.

    Raises
    ------
    ConfigError, FormatError
        For a key that does not exist, or a value that its option does not take.
    """
    plain = {"passes" if key == "pass" else key: value for key, value in document.items()}
    kinds = {key: one.kind for key, one in OPTIONS.items()}
    kinds |= {"policy": ANYTHING, CALIBRATION: ANYTHING}
    kinds["queues"] = replace(ANYTHING, optional=True)  # they are read together with their policy
    given = read_keys(plain, where, kinds, ": ")
    found = {OPTIONS[key].name: value for key, value in given.items() if key in OPTIONS}
    if "queue_policy" in found and "queue_options" in found:
        owned = _owned({POLICY: found["queue_policy"], POLICY_OPTIONS: found["queue_options"]})
        found["queue_options"] = owned[POLICY_OPTIONS]
    if found.get("priority") is not None:
        found.setdefault("order", MULTIFACTOR)
    if "queues" in given:
        policy = given.get("policy", {})
        found["queues"] = Queues.from_dict(given["queues"], policy=policy, where=f"{where}: queues")
    elif "policy" in given:
        raise ConfigError("a policy for queues, but no queues", where=f"{where}: policy")
    return found


def make_config(**options: Any) -> RunConfig:
    """Return the configuration with these fields of `RunConfig`, as Python callers give them.

    Queues, outages and failures may be plain data as in a document, an epilog a number or text.
    The variations of EASY that change the simulation (``pass``, ``candidates``) may be among the
    `queue_options`, and ``passes`` may be called ``pass``.

    Raises
    ------
    ConfigError, FormatError
        For an option, a policy or an order that does not exist, or a value it does not take.
    """
    from simsched.match.policies.policy import find_policy
    from simsched.schedule.orders.order import job_order
    from simsched.schedule.policies.registry import PRESETS, known_options, queue_policy, split_options
    from simsched.schedule.predictors.predictor import find_predictor

    known = {one.name: one.kind for one in OPTIONS.values()}
    options = {name: value for name, value in options.items() if value is not None}
    given = options.get("queue_options") or {}
    if isinstance(options.get("queue_policy"), str) and isinstance(given, Mapping):
        name, own = split_options(options["queue_policy"])
        if own:
            given = {**own, **given}
            options |= {"queue_policy": name, "queue_options": given}
    if "queue_options" in options:
        tables = _policy_options(given, "queue_options")
        _check_other_policies(options.get("queue_policy"), tables)
        options["queue_options"] = options_in_use(options.get("queue_policy"), tables)
    options = _lifted(options)
    if isinstance(options.get("queue_policy"), str):
        options = {**PRESETS.get(options["queue_policy"], {}), **options}
    for name in options:
        if name not in known:
            raise ConfigError(f"unknown option {name!r}", expected=", ".join(known))
        if isinstance(options[name], Iterator):
            options[name] = tuple(options[name])
        if name not in BY_NAME:
            options[name] = known[name].read(options[name], name)
    if options.get("priority") is not None:
        options.setdefault("order", MULTIFACTOR)
    config = RunConfig(**options)
    policy = find_policy(config.match_policy)
    if not isinstance(config.match_policy, str):
        config = config.replace(match_policy=policy)  # a function becomes a policy once, not in each place
    config = config.replace(queue_options=known_options(config.queue_policy, config.queue_options))
    queue_policy(config.queue_policy, config.queue_options)
    job_order(config.order)
    find_predictor(config.predictor)
    return config


def _lifted(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with those of the simulation taken out of the policy's own."""
    policy = options.get("queue_options") or {}
    if not isinstance(policy, dict):
        return options
    lifted = {_LIFTED[key]: value for key, value in policy.items() if key in _LIFTED}
    plain = {_LIFTED.get(key, key): value for key, value in options.items()}
    own = {key: value for key, value in policy.items() if key not in _LIFTED}
    return {**lifted, **plain, **({"queue_options": own} if "queue_options" in options else {})}
