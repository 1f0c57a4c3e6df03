"""`LimitRule`: one table ``[[limits]]`` of a configuration.

A rule says which jobs it is about (``user``, ``account``, ``queue``, ``qos`` and ``array``, each a name or a
list of names; without any of them all jobs), whether it counts them together or apart (``each``), and how
much they may use::

    [[limits]]
    queue = "debug"
    each = "user"              # one count per user; a list such as ["user", "account"]; or "job"
    running-jobs = 2
    cores = 64
    over = "hold"              # of jobs that exceed it by themselves or at submission; default "reject"
    blocks = false             # whether a job that waits for this limit blocks the jobs behind it

-1 means no limit.  Of rules about the same kind of scope, such as users in a queue, that with the most names
counts for a job: ``user = "alice"`` goes before ``each = "user"``.  Of rules with a ``level`` that limit the
same quantity of single jobs, or of users, or of accounts, that with the lowest level counts: Slurm's
hierarchy of QOS and associations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import msgspec

from simsched.declare.kinds import ValueKind, kind_of, listed, names, whole
from simsched.declare.table import Declared
from simsched.errors import ConfigError, did_you_mean
from simsched.simulation.limits.limit_kinds import KINDS, NAMES, NO_LIMIT, RUNNING, SUBMITTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GPU_TYPE = "gpu-type"
DIMENSIONS = ("user", "account", "queue", "qos", "array", GPU_TYPE)
"""The properties of jobs by which limits distinguish them; `GPU_TYPE` is that of the gpus they request."""

ANY = "*"
"""A name in a dimension that is not known: any user, any account."""

JOB = "job"
"""The value of ``each`` for limits on single jobs."""


def _scopes(value: Any, where: str) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    known = (*DIMENSIONS, JOB)
    if not isinstance(given, list | tuple):
        raise ConfigError(f"{value!r} is not a scope", where=where, expected=", ".join(known))
    for name in given:
        if name not in known:
            text = f"unknown scope {name!r}{did_you_mean(str(name), known)}"
            raise ConfigError(text, where=where, expected=", ".join(known))
    if JOB in given and len(set(given)) > 1:
        raise ConfigError("a limit per job counts nothing else apart", where=where, expected='each = "job"')
    return tuple(name for name in known if name in given)


def _field(key: str) -> str:
    return key.replace("-", "_")


def _written(given: tuple[str, ...]) -> str | list[str]:
    return given[0] if len(given) == 1 else list(given)


_NAMES = replace(names(), write=_written)
Names = Annotated[tuple[str, ...], _NAMES]


class JobScope(Declared, frozen=True):
    """The jobs that a rule is about, and which of them it counts apart.

    user, account, queue, qos, array, gpu_type : its jobs have one of these names.
    each : the dimensions that are counted apart; ``job`` for limits on single jobs.
    """

    nullable: ClassVar[bool] = False

    user: Names = ()
    account: Names = ()
    queue: Names = ()
    qos: Names = ()
    array: Names = ()
    gpu_type: Names = ()
    each: Annotated[tuple[str, ...], ValueKind(_scopes, _NAMES.schema, _written)] = ()


_MOST = {"type": ["number", "string"]}

if TYPE_CHECKING:
    _Limits = JobScope
else:  # a field for each kind of limit; None: the rule does not limit it
    _Limits = msgspec.defstruct(
        "_Limits",
        [
            (_field(name), Annotated[float | str | None, ValueKind(kind.read, _MOST)], None)
            for name, kind in KINDS.items()
        ],
        bases=(JobScope,),
        namespace={"__doc__": "\n".join(f"{_field(name)} : {kind.meaning}" for name, kind in KINDS.items())},
        frozen=True,
    )


class LimitRule(_Limits, frozen=True, dict=True):
    """One rule: the jobs that it is about, how much they may use, and what it does.

    Attributes
    ----------
    level : its place in a hierarchy, where the lowest level counts; without one it counts beside all others.
    over : whether jobs that exceed it at submission are rejected or held.
    blocks : whether a waiting job that is over it blocks the jobs behind it in its queue.
    """

    level: Annotated[int | None, whole(what="a level", expected="a number from 0 on")] = None
    over: Literal["reject", "hold"] = "reject"
    blocks: bool = False
    where: str = "limits"

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Dimension → the names, one of which its jobs have, in the order of `DIMENSIONS`."""
        return {name: given for name in DIMENSIONS if (given := getattr(self, _field(name)))}

    @cached_property
    def most(self) -> dict[str, float | str]:
        """Quantity → the most units, jobs or hours, or seconds of a duration; -1: no limit.

        Memory may be a text with a unit.
        """
        given = ((name, getattr(self, _field(name))) for name in KINDS)
        return {name: most for name, most in given if most is not None}

    @cached_property
    def scope(self) -> tuple[str, ...]:
        """The dimensions that the rule names or counts apart, in the order of `DIMENSIONS`."""
        return tuple(name for name in DIMENSIONS if name in self.names or name in self.each)

    def scope_of(self, names: Mapping[str, str | None]) -> tuple[tuple[str, str], ...] | None:
        """Return the scope in which a job with these names is counted, or None if the rule is not about it.

        The jobs of several names that are given together are counted together.
        """
        found = []
        for dimension in self.scope:
            name, known = names[dimension], self.names.get(dimension)
            if name is None or (known is not None and name not in known):
                return None
            found.append((dimension, name if known is None or len(known) == 1 else ", ".join(known)))
        return tuple(found)

    def may_be_about(self, names: Mapping[str, str | None]) -> bool:
        """Whether the rule is about some job with these names, of which some may be `ANY`."""
        return all(
            names[name] == ANY
            or (names[name] is not None and names[name] in self.names.get(name, (names[name],)))
            for name in self.scope
        )

    def is_single(self, quantity: str) -> bool:
        """Whether a limit of the rule is on each single job."""
        return self.per_job or not KINDS[quantity].of_several

    def goes_before(self, other: LimitRule, quantity: str) -> bool:
        """Whether a limit of this rule takes the place of the same limit of another rule about one job."""
        if self.level is None or other.level is None or self.level == other.level:
            before = len(self.names) > len(other.names) and self.scope == other.scope
            before = before and (self.level is None) == (other.level is None)
        else:
            owners = {"user", "account"} & {*self.scope} & {*other.scope}
            before = self.level < other.level and (bool(owners) or self.is_single(quantity))
        alike = self.is_single(quantity) == other.is_single(quantity)
        return before and alike and quantity in self.most

    @property
    def place(self) -> str:
        """Its place in its document, such as ``limits[2]``."""
        return self.where.rpartition(": ")[2]

    @property
    def per_job(self) -> bool:
        """Whether the rule limits single jobs."""
        return self.each == (JOB,)

    def checked(self, where: str) -> Self:
        """Return the rule; ConfigError for keys that contradict each other."""
        named = next((name for name in self.names if name in self.each), None)
        alone = [name for name, kind in KINDS.items() if kind.of_one_job]
        counted = next((key for key in self.most if self.per_job and key not in alone), None)
        size, running = float(self.most.get(SUBMITTED, inf)), float(self.most.get(RUNNING, 0))
        wrong = (
            ("", not self.most, "the table limits nothing", ", ".join(KINDS)),
            (".each", named, f"the rule is about one {named} and counts each {named} apart",
             f"{named} or each, not both"),
            (f".{counted}", counted, f"{counted} is not a limit on single jobs", ", ".join(alone)),
            (".blocks", self.per_job and self.blocks, "a limit on single jobs blocks nothing", "false"),
            (f".{RUNNING}", 0 <= size < running,
             f"{RUNNING} is {running:g}, but only {size:g} jobs may be submitted", f"at most {SUBMITTED}"),
        )  # fmt: skip
        for key, is_wrong, fault, expected in wrong:
            if is_wrong:
                raise ConfigError(fault, where=f"{where}{key}", expected=expected)
        return self


def read_limits(value: Any, where: str) -> tuple[LimitRule, ...]:
    """Read the rules of a configuration: a list of tables, one table, or rules.

    Raises
    ------
    ConfigError, FormatError
        for an unknown key, a value of a wrong type, options that contradict each other, and a limit that is
        given twice.
    """
    single = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
    if isinstance(single, Mapping | LimitRule):  # one table has no number
        return (LimitRule.read(single, where),)
    rules: tuple[LimitRule, ...] = listed(kind_of(LimitRule), expected="[[limits]]").read(value, where)
    _refuse_repeats(rules)
    return rules


def _refuse_repeats(rules: Sequence[LimitRule]) -> None:
    seen: dict[tuple[Any, ...], str] = {}
    for rule in rules:
        for key in rule.most:
            each = () if rule.is_single(key) else rule.each
            place = (tuple(rule.names.items()), each, rule.is_single(key), key, rule.level)
            if place in seen:
                raise ConfigError(
                    f"{key} is given twice", where=rule.where, expected=f"once, as in {seen[place]}"
                )
            seen[place] = rule.where


def limits_on(
    rules: Sequence[LimitRule], names: Mapping[str, str | None]
) -> Iterator[tuple[LimitRule, tuple[tuple[str, str], ...], str, float | str, bool]]:
    """Yield (rule, scope, quantity, most, whether it binds) for each limit that counts a job.

    Several rules may limit one quantity in one scope: then all of them bind.  Where a rule with a lower level
    takes the place of another for a job, the other does not bind it, and counts it: the job uses up what is
    left for the jobs that it does bind.  With `ANY` among the names, a limit does not bind if another that
    allows more may take its place for some job.
    """
    about = [(rule, scope) for rule in rules if (scope := rule.scope_of(names)) is not None]
    if ANY in names.values():
        others = [(rule, rule.scope_of(names)) for rule in rules if rule.may_be_about(names)]
    else:
        others = list(about)
    for rule, scope in about:
        for quantity, most in rule.most.items():
            before = [
                other
                for other, place in others
                if other.goes_before(rule, quantity)
                and (other.level != rule.level or place is None or place == scope)
                and (place is not None or _allows_more(other.most[quantity], most))
            ]
            if all(other.level != rule.level for other in before):
                yield rule, scope, quantity, most, not before


def _allows_more(most: float | str, than: float | str) -> bool:
    """Whether a limit allows more than another, or may: an amount of memory may have a unit."""
    if isinstance(most, str) or isinstance(than, str):
        return most != than
    return than != NO_LIMIT and (most == NO_LIMIT or most > than)


def refuse_closed(rules: Sequence[LimitRule]) -> None:
    """Raise a `ConfigError` for a limit under which no job of any user can run."""
    for rule in rules:
        for key, most in rule.most.items():
            if KINDS[key].reads == NAMES and most == 0 and not rule.scope:
                where, expected = f"{rule.place}.{key}", "1 or more, or -1 for no limit"
                raise ConfigError(f"{key} = 0 allows no job", where=where, expected=expected)
