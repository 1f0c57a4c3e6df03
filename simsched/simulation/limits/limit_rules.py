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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simsched.declare.kinds import SWITCH, ValueKind, choice, listed, names, whole
from simsched.declare.table import read_keys
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


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One rule.

    Attributes
    ----------
    names : dimension → the names of which a job must have one, in the order of `DIMENSIONS`.
    each : the dimensions that are counted apart; ``("job",)`` for limits on single jobs.
    most : quantity → the most units, jobs or hours, or seconds of a duration; -1: no limit.  Memory may be a
        text with a unit.
    over : whether jobs that exceed it at submission are rejected or held.
    blocks : whether a waiting job that is over it blocks the jobs behind it in its queue.
    level : its place in a hierarchy, of which the lowest level counts; None: it counts beside all others.
    where : its place in the configuration.
    """

    names: tuple[tuple[str, tuple[str, ...]], ...]
    each: tuple[str, ...]
    most: tuple[tuple[str, float | str], ...]
    over: str = "reject"
    blocks: bool = False
    level: int | None = None
    where: str = field(default="limits", compare=False, repr=False)

    @property
    def scope(self) -> tuple[str, ...]:
        """The dimensions that the rule names or counts apart, in the order of `DIMENSIONS`."""
        named = dict(self.names)
        return tuple(name for name in DIMENSIONS if name in named or name in self.each)

    def scope_of(self, names: Mapping[str, str | None]) -> tuple[tuple[str, str], ...] | None:
        """Return the scope in which a job with these names is counted, or None if the rule is not about it.

        The jobs of several names that are given together are counted together.
        """
        given = dict(self.names)
        found = []
        for dimension in self.scope:
            name, known = names[dimension], given.get(dimension)
            if name is None or (known is not None and name not in known):
                return None
            found.append((dimension, name if known is None or len(known) == 1 else ", ".join(known)))
        return tuple(found)

    def may_be_about(self, names: Mapping[str, str | None]) -> bool:
        """Whether the rule is about some job with these names, of which some may be `ANY`."""
        given = dict(self.names)
        return all(
            names[name] == ANY or (names[name] is not None and names[name] in given.get(name, (names[name],)))
            for name in self.scope
        )

    def is_single(self, quantity: str) -> bool:
        """Whether a limit of the rule is on each single job."""
        return self.per_job or not KINDS[quantity].of_several

    def goes_before(self, other: LimitRule, quantity: str) -> bool:
        """Whether a limit of this rule takes the place of the same limit of another rule about one job."""
        single = self.is_single(quantity)
        if quantity not in dict(self.most) or single != other.is_single(quantity):
            return False
        if self.level is not None and other.level is not None and self.level != other.level:
            owners = {"user", "account"}
            return self.level < other.level and (single or bool(owners & {*self.scope} & {*other.scope}))
        alike = self.scope == other.scope and (self.level is None) == (other.level is None)
        return alike and len(self.names) > len(other.names)

    @property
    def place(self) -> str:
        """Its place in its document, such as ``limits[2]``."""
        return self.where.rpartition(": ")[2]

    @property
    def per_job(self) -> bool:
        """Whether the rule limits single jobs."""
        return self.each == (JOB,)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a document has it."""
        found: dict[str, Any] = {
            name: given[0] if len(given) == 1 else list(given) for name, given in self.names
        }
        if self.each:
            found["each"] = self.each[0] if len(self.each) == 1 else list(self.each)
        found |= dict(self.most)
        if self.level is not None:
            found["level"] = self.level
        if self.over != "reject":
            found["over"] = self.over
        return found | ({"blocks": True} if self.blocks else {})


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


_NAMES = names()
_MOST = {"type": ["number", "string"]}
KEYS: dict[str, ValueKind] = {
    **dict.fromkeys(DIMENSIONS, _NAMES),
    "each": ValueKind(_scopes, _NAMES.schema),
    **{key: ValueKind(kind.read, _MOST | {"description": kind.meaning}) for key, kind in KINDS.items()},
    "level": whole(what="a level", expected="a number from 0 on"),
    "over": choice("reject", "hold"),
    "blocks": SWITCH,
}
"""Key of a table → its kind."""


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
        return (_rule(single, where),)
    rules: tuple[LimitRule, ...] = listed(ValueKind(_rule), expected="[[limits]]").read(value, where)
    _refuse_repeats(rules)
    return rules


def _rule(item: Any, where: str) -> LimitRule:
    if isinstance(item, LimitRule):
        return item
    table = read_keys(item, where, KEYS)
    named = tuple((key, table.pop(key)) for key in DIMENSIONS if key in table)
    most = tuple((key, table.pop(key)) for key in KINDS if key in table)
    rule = LimitRule(named, table.pop("each", ()), most, **table, where=where)
    _refuse_contradictions(rule)
    return rule


def _refuse_contradictions(rule: LimitRule) -> None:
    quantities = dict(rule.most)
    if not quantities:
        raise ConfigError("the table limits nothing", where=rule.where, expected=", ".join(KINDS))
    named = next((name for name, _ in rule.names if name in rule.each), None)
    if named is not None:
        text = f"the rule is about one {named} and counts each {named} apart"
        raise ConfigError(text, where=f"{rule.where}.each", expected=f"{named} or each, not both")
    if rule.per_job:
        for key in quantities:
            if not KINDS[key].of_one_job:
                raise ConfigError(
                    f"{key} is not a limit on single jobs",
                    where=f"{rule.where}.{key}",
                    expected=", ".join(name for name, kind in KINDS.items() if kind.of_one_job),
                )
        if rule.blocks:
            raise ConfigError(
                "a limit on single jobs blocks nothing", where=f"{rule.where}.blocks", expected="false"
            )
    size, running = quantities.get(SUBMITTED), quantities.get(RUNNING)
    if size is not None and running is not None and 0 <= float(size) < float(running):
        raise ConfigError(
            f"{RUNNING} is {running:g}, but only {size:g} jobs may be submitted",
            where=f"{rule.where}.{RUNNING}",
            expected=f"at most {SUBMITTED}",
        )


def _refuse_repeats(rules: Sequence[LimitRule]) -> None:
    seen: dict[tuple[Any, ...], str] = {}
    for rule in rules:
        for key, _ in rule.most:
            each = () if rule.is_single(key) else rule.each
            place = (rule.names, each, rule.is_single(key), key, rule.level)
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
        for quantity, most in rule.most:
            before = [
                other
                for other, place in others
                if other.goes_before(rule, quantity)
                and (other.level != rule.level or place is None or place == scope)
                and (place is not None or _allows_more(dict(other.most)[quantity], most))
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
        for key, most in rule.most:
            if KINDS[key].reads == NAMES and most == 0 and not rule.scope:
                where, expected = f"{rule.place}.{key}", "1 or more, or -1 for no limit"
                raise ConfigError(f"{key} = 0 allows no job", where=where, expected=expected)
