"""Feature, Node, Architecture, OpSys, NetworkType and Partition as an RFC 31 constraint."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.formats.rfc.constraint import ANY, NONE, And, Constraint, Hosts, Not, Or, Properties
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.sss.expressions import Junction, Negation, Term, Tree
from simsched.formats.text.excerpts import clip, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.formats.text.xml_tree import Element

MAX_PATTERN = 200
"""The longest pattern, in characters."""

MAX_REPEATS = 3
"""How many unbounded repeats a pattern may have, none inside another: so that matching stays quick."""


@dataclass(frozen=True, slots=True)
class Names:
    """The hosts and properties of a cluster, against which patterns are matched."""

    hosts: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()


class UnexpandedError(FormatError):
    """A pattern cannot be expanded without a cluster."""


def constraint_of(tree: Tree, names: Names | None, where: str | None = None) -> Constraint:
    """The constraint of an expression on nodes.

    Of nodes that are named one by one and joined by And, each may serve: no node is two.

    Raises FormatError for a bad pattern or host list, `UnexpandedError` for a pattern
    when `names` is None.
    """
    if isinstance(tree, Negation):
        inner = constraint_of(tree.part, names, where)
        return NONE if inner == ANY else ANY if inner == NONE else Not(inner)
    if isinstance(tree, Junction):
        hosts, others = _hosts_apart(tree)
        parts = [constraint_of(part, names, where) for part in others]
        return joined([Hosts(Hostlist.from_hosts(hosts)), *parts] if hosts else parts, every=tree.every)
    element = tree.element
    found = _hosts(element, names, where) if element.name == "Node" else _properties(element, names, where)
    return (NONE if found == ANY else ANY if found == NONE else Not(found)) if _op(element) == "NE" else found


def _hosts_apart(tree: Junction) -> tuple[list[str], list[Tree]]:
    """The nodes that an And of several names one by one, and its other parts."""
    if not tree.every:
        return [], list(tree.parts)
    parts = list(_flat(tree))
    hosts = {part: part.element.text.strip() for part in parts if isinstance(part, Term) and _is_host(part)}
    if len(hosts) < 2:
        return [], parts
    return list(dict.fromkeys(hosts.values())), [part for part in parts if part not in hosts]


def _flat(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, Junction) and tree.every:
        for part in tree.parts:
            yield from _flat(part)
    else:
        yield tree


def _is_host(leaf: Term) -> bool:
    element = leaf.element
    plain = element.name == "Node" and _op(element) == "EQ" and element.attribute("aggregation") is None
    return plain and bool(element.text.strip())


def joined(parts: Iterable[Constraint], *, every: bool) -> Constraint:
    """Return the conjunction or disjunction of the constraints, without those that change nothing."""
    neutral, decisive = (ANY, NONE) if every else (NONE, ANY)
    kept = tuple(dict.fromkeys(part for part in parts if part != neutral))
    if decisive in kept:
        return decisive
    if len(kept) > 1:
        return And(kept) if every else Or(kept)
    return kept[0] if kept else neutral


def _op(element: Element) -> str:
    return element.attribute("op") or "EQ"


def _aggregation(element: Element) -> str | None:
    return "Pattern" if _op(element) == "Match" else element.attribute("aggregation")


def _list(element: Element) -> list[str]:
    """The items of a list, or the one value."""
    text = element.text.strip()
    if _aggregation(element) != "List":
        return [text] if text else []
    return [item.strip() for item in text.split(element.attribute("delimiter") or ",") if item.strip()]


def _hosts(element: Element, names: Names | None, where: str | None) -> Constraint:
    """One of the nodes named."""
    spot = place(where, element.line, element.column)
    if _aggregation(element) == "Pattern":
        chosen = _matching(element, None if names is None else names.hosts, spot)
        return Hosts(Hostlist.from_hosts(chosen)) if chosen else NONE
    if _aggregation(element) == "Range":
        hosts = Hostlist.parse(element.text.strip(), where=spot)
    else:
        hosts = Hostlist.from_hosts(_list(element))
    return Hosts(hosts) if hosts else ANY


def _properties(element: Element, names: Names | None, where: str | None) -> Constraint:
    """Every feature of a list; one of those that match a pattern."""
    spot = place(where, element.line, element.column)
    if _aggregation(element) == "Pattern":
        chosen = _matching(element, None if names is None else names.properties, spot)
        return joined((Properties((name,)) for name in chosen), every=False)
    from simsched.formats.rfc.names import check_property

    features = tuple(_list(element))
    for feature in features:
        check_property(feature, spot)
    return Properties(features) if features else ANY


def _matching(element: Element, candidates: Iterable[str] | None, spot: str) -> list[str]:
    """The candidates that the element's pattern matches whole (R11)."""
    pattern = compiled(element.text.strip(), spot)
    if candidates is None:
        raise UnexpandedError(
            f"pattern {clip(pattern.pattern)!r} needs a cluster", where=spot, expected="hosts to match"
        )
    return [name for name in candidates if pattern.fullmatch(name)]


def compiled(text: str, spot: str | None = None) -> re.Pattern[str]:
    """Compile a pattern; FormatError for a wrong one, and for one that could run for hours.

    >>> compiled("fr15n.*").fullmatch("fr15n07") is not None
    True
    """
    if len(text) > MAX_PATTERN:
        raise FormatError(
            f"a pattern of {len(text)} characters is too long", where=spot, expected=f"at most {MAX_PATTERN}"
        )
    try:
        pattern = re.compile(text)
        repeats = _repeats(re._parser.parse(text))  # type: ignore[attr-defined]
    except (re.error, OverflowError, RecursionError) as error:
        message = f"{clip(text)!r} is not a regular expression: {error}"
        raise FormatError(message, where=spot, expected="such as node.*") from None
    if repeats > MAX_REPEATS:
        raise FormatError(
            f"pattern {clip(text)!r} has too many repeats",
            where=spot,
            expected=f"at most {MAX_REPEATS} repeats, none inside another",
        )
    return pattern


def _repeats(parsed: Any, inside: bool = False) -> int:
    """The number of repeats without a small bound; one inside another counts as too many."""
    total = 0
    for code, argument in parsed:
        name = str(code)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = argument
            wide = most > 9
            total += (MAX_REPEATS + 1 if inside else 1) if wide else 0
            total += _repeats(body, inside or wide)
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            total += MAX_REPEATS + 1
        else:
            total += sum(_repeats(body, inside) for body in _bodies(argument))
    return total


def _bodies(argument: Any) -> list[Any]:
    """The patterns inside a construct's argument."""
    if hasattr(argument, "getwidth"):
        return [argument]
    if isinstance(argument, (tuple, list)):
        return [body for part in argument for body in _bodies(part)]
    return []
