"""`RunConfig`: every choice that makes one run differ from another, and the one reader of them.

`OPTIONS` is the table of all options.  The command line, configuration files, studies, checkpoints
and Python callers all go through it: `from_document` reads plain data, `make_config` reads the
arguments of Python callers, and both use the same reader for each option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.arguments import check_whole
from simsched.errors import ConfigError, SimschedError, did_you_mean
from simsched.formats.rfc.duration import MAX_SECONDS, parse_time
from simsched.formats.rfc.idset import Idset
from simsched.match.named_targets import targets_of
from simsched.plugins.plugin_errors import name_of
from simsched.schedule.orders.priority_rules import NAME as MULTIFACTOR
from simsched.schedule.orders.priority_rules import read_rules
from simsched.simulation.licences.licence_pools import Licences, read_licences
from simsched.simulation.limits.limit_rules import LimitRule, read_limits, refuse_closed
from simsched.simulation.outages.outages import Failures, Outage, read_outages
from simsched.simulation.preemption.checkpoint_rules import CheckpointRules, read_checkpoints
from simsched.simulation.preemption.preemption_rules import (
    PreemptionRules,
    read_preemption,
    refuse_idle_rules,
)
from simsched.simulation.queues import Queues
from simsched.simulation.reservations.reservation_rules import AdvanceReservation, read_reservations

if TYPE_CHECKING:
    from collections.abc import Callable

    from simsched.formats.rfc.clock import Clock
    from simsched.graph.index.index import Index
    from simsched.match.policies.policy import MatchPolicy
    from simsched.schedule.orders.priority_rules import PriorityRules
    from simsched.schedule.orders.ranking import JobOrder
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.schedule.predictors.predictor import RunTimePredictor

POLICY, POLICY_OPTIONS = "queue-policy", "policy-options"
"""Keys of a document: the queue policy, and the options of queue policies."""
BY_NAME = ("queue_policy", "match_policy", "order", "predictor")
"""Fields that may hold an object of a program's own; ``run.json`` has its name."""
DEFAULT_POLICY = "easy"
RECORDED = "recorded"
"""The queue policy that plays the starts of a log."""
SLURM = "slurm"
"""The queue policy that schedules as Slurm does."""
CHOICES = {
    "overrun": ("timeout", "allow"),
    "passes": ("instant", "event"),
    "candidates": ("requested", "actual"),
    "think_times": ("ignore", "honour"),
    "on_failure": ("requeue", "fail"),
    "no_limit": ("queue", "reject"),
}


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The rules of one run.

    Attributes
    ----------
    queue_policy, queue_options : the policy, by name or as an object, and its own options.
    order : the job order, by name or as an object.
    match_policy : which of several possible matches is taken, by name or as an object.
    seed : of every random choice.
    overrun : ``timeout`` ends a job at its requested duration; ``allow`` lets it run on; None: ``allow``
        under the queue policy ``recorded``, which plays the ends of the log too, and ``timeout`` otherwise.
    kill_grace : seconds for which a job may run on beyond its requested duration before ``timeout`` ends it
        (Slurm's ``OverTimeLimit``). Plans go by the requested duration.
    passes : ``instant``: one scheduling pass after all events of an instant; ``event``: one
        after each event; None: ``event`` if candidates are judged by their ``actual`` durations,
        as in CQSim, and ``instant`` otherwise.
    candidates : the durations by which backfill candidates are judged: the ``requested`` ones, or the
        ``actual`` ones that no scheduler can know.
    think_times : ``honour`` lets a job become eligible only its think time after the end of the
        job that precedes it (SWF columns 17 and 18).
    epilog : least and most seconds that a target needs to clean up after a job; each target that
        is done gives back its shard of the job's resources at once.
    queues : named queues after RFC 33; None: one queue for all.
    outages : times at which targets fail, are drained or are kept free for maintenance.
    failures : how targets fail by chance, or None.
    on_failure : whether a job on a target that fails is queued again or ends there.
    predictor : the run times by which plans are made: the ``limit`` of each job, or predictions, by name or
        as an object (see `schedule.predictors`). Limits end jobs under each predictor.
    no_limit : whether a job without a requested duration gets the limit of its ``queue``, if that
        has one and no default, or a ``reject``.
    limits : limits of users, accounts, queues, QoS and all jobs.
    priority : the factors of the order ``multifactor``; other orders do not use them.
    preemption : which jobs preempt others, and what becomes of the victims; None: only jobs with
        ``preemptible-after`` are preempted, and start over. None under the queue policy ``recorded``.
    job_checkpoints : the checkpoints from which jobs go on that were preempted or whose nodes failed.
    licenses : counted resources that are not on nodes.
    reservations : nodes that are kept at a time for the jobs that name them; none under ``recorded``.
    """

    queue_policy: str | QueuePolicy = DEFAULT_POLICY
    match_policy: str | MatchPolicy = "first"
    order: str | JobOrder = "fifo"
    seed: int = 0
    overrun: str | None = None
    passes: str | None = None
    candidates: str = "requested"
    think_times: str = "ignore"
    epilog: tuple[float, float] = (0, 0)
    queues: Queues | None = None
    outages: tuple[Outage, ...] = ()
    failures: Failures | None = None
    on_failure: str = "requeue"
    no_limit: str = "queue"
    predictor: str | RunTimePredictor = "limit"
    queue_options: Mapping[str, Any] = field(default_factory=dict)
    limits: tuple[LimitRule, ...] = ()
    priority: PriorityRules | None = None
    preemption: PreemptionRules | None = None
    job_checkpoints: CheckpointRules | None = None
    licenses: Licences | None = None
    reservations: tuple[AdvanceReservation, ...] = ()
    kill_grace: float = 0

    def __post_init__(self) -> None:
        if self.plays_log:  # its starts had to do with both; a site is played as it is
            object.__setattr__(self, "preemption", None)
            object.__setattr__(self, "reservations", ())
        if self.overrun is None:
            object.__setattr__(self, "overrun", "allow" if self.plays_log else "timeout")
        if self.passes is None:
            object.__setattr__(self, "passes", "event" if self.candidates == "actual" else "instant")
        for option, accepted in CHOICES.items():
            value = getattr(self, option)
            if value not in accepted:
                meant = did_you_mean(value, accepted) if isinstance(value, str) else ""
                raise ConfigError(f"unknown value {value!r} of {option}{meant}", expected=", ".join(accepted))
        if self.candidates == "actual" and self.predictor != "limit":
            raise ConfigError(
                f"candidates=actual with the predictor {name_of(self.predictor)}", expected="one of the two"
            )
        self._refuse_times()

    def _refuse_times(self) -> None:
        """Raise a `ConfigError` for times and a seed that are out of range."""
        least, most = self.epilog
        if not 0 <= least <= most <= MAX_SECONDS:
            raise ConfigError(
                f"an epilog from {least} to {most} s", expected=f"0 <= least <= most <= {MAX_SECONDS:g} s"
            )
        if not 0 <= self.kill_grace <= MAX_SECONDS:
            raise ConfigError(
                f"a kill grace of {self.kill_grace} s", expected=f"0 to {MAX_SECONDS:g} s, such as 5m"
            )
        for outage in self.outages:
            if not -MAX_SECONDS <= outage.start < outage.end or MAX_SECONDS < outage.end < float("inf"):
                raise ConfigError(
                    f"an outage from {outage.start} to {outage.end} s",
                    expected=f"an end after the start, at most {MAX_SECONDS:g} s, or inf",
                )
        if least < most and ceil(least) > floor(most):
            raise ConfigError(f"no whole second from {least} to {most} s", where="epilog")

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
        return replace(self, outages=outages, queues=queues, reservations=reservations)

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
        return replace(self, outages=outages) if outages != self.outages else self

    @property
    def plays_log(self) -> bool:
        """Whether jobs start when the log says, and not when a scheduler decides."""
        return self.queue_policy == RECORDED

    @property
    def schedules_as_slurm(self) -> bool:
        """Whether all queues are one, and reservations are for whole targets, as in Slurm."""
        return self.queue_policy == SLURM

    @property
    def suspends(self) -> bool:
        """Whether jobs may be suspended."""
        return self.preemption is not None and self.preemption.suspends

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, for ``run.json``."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["queue_options"] = dict(self.queue_options)
        plain.update((name, name_of(plain[name])) for name in BY_NAME)
        if self.predictor == "limit":
            del plain["predictor"]  # as before there were predictors
        plain["priority"] = self.priority and self.priority.to_dict()
        if plain["priority"] is None:
            del plain["priority"]
        for name in ("preemption", "job_checkpoints", "licenses"):
            rules = plain.pop(name)
            if rules is not None:
                plain[name] = rules.to_dict()
        plain["reservations"] = [one.to_dict() for one in self.reservations]
        if not self.reservations:
            del plain["reservations"]
        if not self.kill_grace:
            del plain["kill_grace"]  # likewise
        plain["queues"] = self.queues and [str(name) for name in self.queues.queues]
        plain["limits"] = [rule.to_dict() for rule in self.limits]
        if not self.limits:  # as in the records of runs before there were limits
            del plain["limits"]
        plain["failures"] = self.failures and asdict(self.failures)
        plain["outages"] = [outage.to_dict() for outage in self.outages]
        return plain


# -- the readers of single options: plain data, or a value that is one already ----------------------


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


def read_epilog(value: Any, where: str) -> tuple[float, float]:
    """Read ``30s``, or ``10s..2m`` or two values for whole seconds drawn from that range.

    Raises
    ------
    ConfigError, FormatError
        For a text of neither form.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        first, last = (parse_time(one, where=where) for one in value)
    else:
        least, dots, most = str(value).partition("..")
        first = parse_time(least, where=where)
        last = parse_time(most, where=where) if dots else first
    if not first <= last < float("inf"):
        raise ConfigError(f"{value!r} is not a valid epilog", where=where, expected="30s, or 10s..2m")
    return first, last


def _kill_grace(value: Any, where: str) -> float:
    if isinstance(value, bool):
        raise ConfigError(f"{value!r} is not a duration", where=where, expected="a duration, such as 5m")
    return parse_time(value, where=where)


def _failures(value: Any, where: str) -> Failures | None:
    if isinstance(value, Failures | None):
        return value
    if not isinstance(value, str):
        raise ConfigError("failures is not a text", where=where, expected="mtbf=30d,mttr=4h")
    return Failures.parse(value)


def _queues(value: Any, where: str) -> Queues | None:
    return value if isinstance(value, Queues | None) else Queues.from_dict(value, where=where)


class RunOption(NamedTuple):
    """One option: its field of `RunConfig`, its type in a document, and its reader if it needs one."""

    field: str
    kind: type = str
    read: Callable[[Any, str], Any] | None = None


#: Key in a document → option; keys may also be spelt with ``_``.
OPTIONS: dict[str, RunOption] = {
    "queue-policy": RunOption("queue_policy"),
    "match-policy": RunOption("match_policy"),
    "order": RunOption("order"),
    "seed": RunOption("seed", int),
    "overrun": RunOption("overrun"),
    "pass": RunOption("passes"),
    "passes": RunOption("passes"),
    "candidates": RunOption("candidates"),
    "kill-grace": RunOption("kill_grace", object, _kill_grace),
    "think-times": RunOption("think_times"),
    "on-failure": RunOption("on_failure"),
    "no-limit": RunOption("no_limit"),
    "predictor": RunOption("predictor"),
    "policy-options": RunOption("queue_options", dict, _policy_options),
    "epilog": RunOption("epilog", object, read_epilog),
    "failures": RunOption("failures", object, _failures),
    "outages": RunOption("outages", object, read_outages),
    "limits": RunOption("limits", object, read_limits),
    "queues": RunOption("queues", object, _queues),
    "priority": RunOption("priority", object, read_rules),
    "preemption": RunOption("preemption", object, read_preemption),
    "reservations": RunOption("reservations", object, read_reservations),
    "licenses": RunOption("licenses", object, read_licences),
    "job-checkpoints": RunOption("job_checkpoints", object, read_checkpoints),
}
CALIBRATION = "calibration"
"""The table of a configuration that `calibrate` wrote: its log and its error. No run depends on it."""
KEYS = (*OPTIONS, "policy")
"""The keys of a document; ``policy`` holds the settings common to all `queues`."""
_READERS = {option.field: option.read for option in OPTIONS.values() if option.read is not None}
#: Key among the options of a queue policy → field of `RunConfig`: variations of EASY that change the run.
_LIFTED = {"pass": "passes", "passes": "passes", "candidates": "candidates", "predictor": "predictor"}


def from_document(document: Mapping[str, Any], where: str = "config") -> dict[str, Any]:
    """Return the fields of `RunConfig` in a document of plain data.

    Raises
    ------
    ConfigError, FormatError
        For a key that does not exist, or a value that its option does not take.
    """
    found: dict[str, Any] = {}
    names = {str(key).replace("_", "-"): key for key in document}
    for name, key in names.items():
        if name in ("policy", "queues", CALIBRATION):  # the first two are read together, below
            continue
        option = OPTIONS.get(name)
        if option is None:
            meant = did_you_mean(name, KEYS)
            raise ConfigError(f"unknown key {key!r}{meant}", where=where, expected=", ".join(KEYS))
        value = document[key]
        if not isinstance(value, option.kind) or (option.kind is int and isinstance(value, bool)):
            raise ConfigError(
                f"{value!r} is not a value of {name}", where=where, expected=option.kind.__name__
            )
        found[option.field] = value if option.read is None else option.read(value, f"{where}: {name}")
    if "queue_policy" in found and "queue_options" in found:
        owned = _owned({POLICY: found["queue_policy"], POLICY_OPTIONS: found["queue_options"]})
        found["queue_options"] = owned[POLICY_OPTIONS]
    if found.get("priority") is not None:
        found.setdefault("order", MULTIFACTOR)
    if "queues" in names:
        policy = document.get("policy", {})
        found["queues"] = Queues.from_dict(document["queues"], policy=policy, where=f"{where}: queues")
    elif "policy" in names:
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

    known = [field.name for field in fields(RunConfig)]
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
        if name in _READERS:
            options[name] = _READERS[name](options[name], name)
    if options.get("priority") is not None:
        options.setdefault("order", MULTIFACTOR)
    if "seed" in options:
        check_whole("seed", options["seed"])
        options["seed"] = int(options["seed"])
    config = RunConfig(**options)
    policy = find_policy(config.match_policy)
    if not isinstance(config.match_policy, str):
        config = replace(config, match_policy=policy)  # a function becomes a policy once, not in each place
    config = replace(config, queue_options=known_options(config.queue_policy, config.queue_options))
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
