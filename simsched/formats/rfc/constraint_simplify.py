"""Shorter constraints that mean the same on every cluster."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from simsched.formats.rfc.constraint import ANY, NONE, And, Constraint, Hosts, Not, Or, Properties, Ranks
from simsched.formats.rfc.hostlist import Hostlist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Terms: TypeAlias = list[Constraint]

_MAX_HOSTS = 100_000
_WORDS = re.compile(r"[0-9]+|[^0-9]+")
_ROUNDS = 10


def simplify(constraint: Constraint) -> Constraint:
    """Return a constraint that holds for the same targets, with less in it.

    Nested `and` and `or` are flattened, doubles and what always or never holds are dropped,
    properties of one `and` and ranks and hosts of one `or` are gathered, `not not` vanishes, a
    term and its negation become nothing (in `and`) or everything (in `or`), and a term
    absorbs those that contain it.

    >>> from simsched.formats.rfc.constraint_text import parse_constraint
    >>> str(simplify(parse_constraint("a and (b and () and a) and not not (rank:1 | rank:2)")))
    'a and b and rank:1-2'
    """
    for _ in range(_ROUNDS):
        simpler = _once(constraint)
        if simpler == constraint:
            break
        constraint = simpler
    return constraint


def _once(constraint: Constraint) -> Constraint:
    match constraint:
        case Properties() | Hosts() | Ranks():
            return _leaf(constraint)
        case Not(arg):
            return _negated(_once(arg))
        case And(args):
            return _gathered(args, And, ANY, NONE, _merge_and)
        case Or(args):
            return _gathered(args, Or, NONE, ANY, _merge_or) if args else ANY
    return constraint


def _leaf(constraint: Properties | Hosts | Ranks) -> Constraint:
    if isinstance(constraint, Properties):
        names = tuple(dict.fromkeys(constraint.names))
        return Properties(names) if names else ANY
    if isinstance(constraint, Ranks):
        return constraint if constraint.idset else NONE
    if not constraint.hostlist:
        return NONE
    small = len(constraint.hostlist) <= _MAX_HOSTS
    return Hosts(_sorted(constraint.hostlist)) if small else constraint


def _sorted(hosts: Iterable[str]) -> Hostlist:
    """Return the hosts as a set is written: each once, numbers in the order of numbers."""
    return Hostlist.from_hosts(sorted(set(hosts), key=_natural))


def _natural(host: str) -> tuple[tuple[bool, int, str], ...]:
    return tuple(
        (word.isdecimal(), int(word) if word.isdecimal() else 0, word) for word in _WORDS.findall(host)
    )


def _negated(arg: Constraint) -> Constraint:
    if isinstance(arg, Not):
        return arg.arg
    if arg == ANY:
        return NONE
    return ANY if arg == NONE else Not(arg)


def _gathered(
    args: Iterable[Constraint],
    join: type[And | Or],
    neutral: Constraint,
    final: Constraint,
    merge: Callable[[Terms], Terms],
) -> Constraint:
    """Return the simplified `and` or `or` of the arguments; `final` settles it, `neutral` adds nothing."""
    terms: Terms = []
    for arg in map(_once, args):
        terms += arg.args if isinstance(arg, join) else [arg]
    terms = [term for term in dict.fromkeys(merge(terms)) if term != neutral]
    if final in terms or any(_negated(term) in terms for term in terms):
        return final
    if join is And and _clash(terms):
        return NONE
    terms = [term for term in terms if not _absorbed(term, terms, join)]
    if not terms:
        return neutral
    return terms[0] if len(terms) == 1 else join(tuple(terms))


def _absorbed(term: Constraint, terms: Terms, join: type[And | Or]) -> bool:
    """Whether `term` adds nothing beside one of its neighbours."""
    others = [other for other in terms if other is not term]
    if join is And:  # a and (a or b)
        return isinstance(term, Or) and any(_implies(other, arg) for other in others for arg in term.args)
    parts = term.args if isinstance(term, And) else (term,)  # a or (a and b)
    return any(_implies(part, other) for other in others for part in parts)


def _implies(first: Constraint, second: Constraint) -> bool:
    """Whether it is plain to see that `second` holds wherever `first` does."""
    if isinstance(first, Properties) and isinstance(second, Properties):
        return set(first.names) >= set(second.names)
    return first == second


def _clash(terms: Terms) -> bool:
    wanted = {name for term in terms if isinstance(term, Properties) for name in term.names}
    return any(
        isinstance(term, Not) and isinstance(term.arg, Properties) and wanted.issuperset(term.arg.names)
        for term in terms
    )


def _merge_and(terms: Terms) -> Terms:
    """Return the terms of an `and`, its properties in one and its ranks in one, at their first place."""
    names = tuple(dict.fromkeys(n for term in terms if isinstance(term, Properties) for n in term.names))
    ranks = [term.idset for term in terms if isinstance(term, Ranks)]
    merged: Terms = []
    for term in terms:
        if isinstance(term, Properties):
            merged.append(Properties(names))
        elif isinstance(term, Ranks):
            common = ranks[0]
            for ids in ranks[1:]:
                common = common & ids
            merged.append(Ranks(common) if common else NONE)
        else:
            merged.append(term)
    return merged


def _merge_or(terms: Terms) -> Terms:
    """Return the terms of an `or`, its ranks in one and its hosts in one, at their first place."""
    ranks = [term.idset for term in terms if isinstance(term, Ranks)]
    hosts = [term.hostlist for term in terms if isinstance(term, Hosts)]
    few = sum(map(len, hosts)) <= _MAX_HOSTS
    merged: Terms = []
    for term in terms:
        if isinstance(term, Ranks):
            union = ranks[0]
            for ids in ranks[1:]:
                union = union | ids
            merged.append(Ranks(union))
        elif isinstance(term, Hosts) and few:
            merged.append(Hosts(_sorted(host for part in hosts for host in part)))
        else:
            merged.append(term)
    return merged
