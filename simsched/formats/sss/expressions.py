"""The requested properties as one expression of op, conj, group and preference, and as a constraint.

Reading R11: properties are combined from left to right with explicit groups; ``Nand`` is
"and not", ``Nor`` is "or not".  The document's own example opens its group with -1 and closes
it with 1; so if the signs would close a group before one is open, all of them are negated.

Feature, Node, Architecture, OpSys, NetworkType and Partition become an RFC 31 constraint.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from simsched.errors import FormatError, LimitError, clip
from simsched.formats.rfc.constraint import ANY, NONE, And, Constraint, Hosts, Not, Or, Properties
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.formats.sss import vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.text.xml_tree import Element


ENDLESS = 10**9
"""Stands for no upper bound in a set of acceptable numbers."""

CONSTRAINTS = ("Feature", "Node", "Architecture", "OpSys", "NetworkType", "Partition")
"""Properties that constrain the nodes."""

CREDENTIALS = ("User", "Project", "Group", "GlobalUser", "Queue", "QualityOfService", "Machine")
"""Properties of which one value is taken; of alternatives, the first."""

MAX_GROUPS = 50
"""The most levels of nested groups."""

MAX_PROPERTIES = 200
"""The most properties of one request."""

MAX_DIGITS = 40
"""Up to this length a decimal number is taken exactly."""

IN_SLOT = "in the slot:"
"""The beginning of the topic of a Resource that each task has for itself."""


@dataclass(frozen=True, slots=True)
class Term:
    """One property."""

    element: Element


@dataclass(frozen=True, slots=True)
class Junction:
    """All of the parts (`every`) or one of them."""

    every: bool
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """Not this."""

    part: Tree


Tree: TypeAlias = Term | Junction | Negation


def expression(elements: Iterable[Element], where: str | None = None) -> Tree | None:
    """Return the expression of a sequence of requested properties; None for an empty one.

    Alternatives with positive preferences of one topic are an "or", heaviest first; those
    with negative preferences restrict nothing.  FormatError where groups do not balance.
    """
    kept = list(elements)
    if len(kept) > MAX_PROPERTIES:
        message = f"{len(kept)} requested properties are too many"
        raise LimitError(message, where=kept[-1].at(where), expected=f"{MAX_PROPERTIES}")
    signs = group_signs(kept, where)
    weighted: dict[str, list[Element]] = {}
    for element in kept:
        if _weight(element) > 0:
            weighted.setdefault(topic(element), []).append(element)
    stack: list[tuple[Tree | None, str]] = [(None, "And")]
    for element, sign in zip(kept, signs, strict=True):
        leaf: Tree | None = Term(element)
        if _weight(element):
            others = weighted.pop(topic(element), None) if _weight(element) > 0 else None
            others = sorted(others or (), key=_weight, reverse=True)
            terms = tuple(Term(other) for other in others)
            leaf = Junction(False, terms) if len(terms) > 1 else next(iter(terms), None)
        conj = element.attribute("conj") or "And"
        for _ in range(sign):
            stack.append((None, conj))
            conj = "And"
        tree, outer = stack.pop()
        stack.append((_combined(tree, conj, leaf), outer))
        for _ in range(-sign):
            inner, outer = stack.pop()
            tree, before = stack.pop()
            stack.append((_combined(tree, outer, inner), before))
    return stack[0][0]


def _weight(element: Element) -> int:
    return int(element.attribute("preference") or 0)


def group_signs(elements: Sequence[Element], where: str | None) -> list[int]:
    """Return the group attribute of each element: it opens (+) or closes (-) that many groups.

    Raises FormatError where the groups do not balance.
    """
    # The example of the specification opens its group with -1, so both directions are tried (reading R11).
    signs = [int(e.attribute("group") or 0) for e in elements]
    for direction in (1, -1):
        depth, lowest = 0, 0
        for sign in signs:
            depth += direction * sign
            lowest = min(lowest, depth)
        if depth == 0 and lowest == 0 and all(abs(sign) <= MAX_GROUPS for sign in signs):
            return [direction * sign for sign in signs]
    first = next(e for e in elements if e.attribute("group"))
    message, expected = "the group attributes do not balance", "each opened group closed"
    raise FormatError(message, where=first.at(where), expected=expected)


def _combined(left: Tree | None, conj: str, right: Tree | None) -> Tree | None:
    if right is None:
        return left
    if conj in ("Nand", "Nor"):
        right = Negation(right)
    if left is None:
        return right
    every = conj in ("And", "Nand")
    if isinstance(left, Junction) and left.every == every:
        return Junction(every, (*left.parts, right))
    return Junction(every, (left, right))


# -- by topic -------------------------------------------------------------------------


def topic(element: Element) -> str:
    """Return the topic of a property: all constraints on nodes are one topic, each resource is its own."""
    if element.name in CONSTRAINTS:
        return "constraint"
    if element.name == "Resource":
        kind = slot_type(element)
        named = f"{IN_SLOT} {kind}" if kind else f"Resource {element.attribute('name')}"
        return f"{named} {element.attribute('type') or ''}"
    return element.name


def slot_type(element: Element) -> str | None:
    """Return the vertex type of a Resource that each task has for itself (a gpu), None for any other."""
    return vocabulary.IN_SLOT.get((element.attribute("name") or "").lower())


def is_per_task(name: str) -> bool:
    """Return whether a topic of the job applies to each task of its task groups."""
    return name in vocabulary.SIZES or name.startswith(IN_SLOT)


def amount(element: Element) -> Fraction:
    """Return the number of a property, exactly as written, or as a float where it has very many digits.

    An exponent is resolved by the float: `Fraction("1e-999999999")` would build its denominator.
    """
    text = element.text.strip()
    plain = len(text) <= MAX_DIGITS and "e" not in text.lower()
    return Fraction(text) if plain else Fraction(repr(float(text)))


def leaves(tree: Tree) -> Iterator[Element]:
    """The properties of an expression, in order."""
    if isinstance(tree, Term):
        yield tree.element
    elif isinstance(tree, Negation):
        yield from leaves(tree.part)
    else:
        for part in tree.parts:
            yield from leaves(part)


def by_topic(tree: Tree | None, mixed: Callable[[Element], None]) -> dict[str, Tree]:
    """Split an expression into one for each topic, all of which must hold.

    A jobspec cannot tie alternatives of different topics together ("8 processors and 2 GB,
    or 16 and 1"): there the first alternative is taken and `mixed` is called with its first
    property, unless all are credentials.
    """
    found: dict[str, Tree] = {}
    pending = [tree] if tree is not None else []
    while pending:
        part = pending.pop(0)
        topics = {topic(element) for element in leaves(part)}
        if len(topics) == 1:
            name = topics.pop()
            found[name] = Junction(True, (found[name], part)) if name in found else part
        elif isinstance(part, Junction) and part.every:
            pending[:0] = part.parts
        elif isinstance(part, Negation):  # which is pushed one level down
            tree = part.part
            if isinstance(tree, Junction):
                tree = Junction(not tree.every, tuple(Negation(inner) for inner in tree.parts))
            else:
                tree = tree.part if isinstance(tree, Negation) else part
            pending.insert(0, tree)
        elif isinstance(part, Junction):
            if not topics <= set(CREDENTIALS):
                mixed(next(leaves(part)))
            pending.insert(0, part.parts[0])
    return found


def number_set(tree: Tree, value: Callable[[Element], Fraction]) -> Idset:
    """The whole numbers from 1 to `ENDLESS` that an expression on one number accepts.

    A fraction counts as the next whole number: a request of 1.5 needs 2.
    """
    if isinstance(tree, Term):
        return accepted(tree.element.attribute("op") or "EQ", value(tree.element))
    if isinstance(tree, Negation):
        return EVERYTHING - number_set(tree.part, value)
    sets = [number_set(part, value) for part in tree.parts]
    result = sets[0]
    for other in sets[1:]:
        result = result & other if tree.every else result | other
    return result


def accepted(op: str, value: Fraction) -> Idset:
    """The whole numbers that one comparison accepts.

    >>> from fractions import Fraction
    >>> str(accepted("LT", Fraction(4))), str(accepted("NE", Fraction(2)))
    ('1-3', '1,3-1000000000')
    """
    up, down = math.ceil(value), math.floor(value)
    low, high = {
        "GE": (up, ENDLESS),
        "GT": (down + 1, ENDLESS),
        "LE": (1, down),
        "LT": (1, up - 1),
    }.get(op, (up, up))
    chosen = Idset.from_range(max(low, 1), min(high, ENDLESS))
    return EVERYTHING - chosen if op == "NE" else chosen


EVERYTHING = Idset(((1, ENDLESS),))
"""Every number that a count can be."""


def first_value(tree: Tree) -> str | None:
    """The first value that an expression on one text accepts."""
    if isinstance(tree, Term):
        return tree.element.text.strip() if tree.element.attribute("op") in (None, "EQ") else None
    if isinstance(tree, Junction):
        return next((found for part in tree.parts if (found := first_value(part)) is not None), None)
    return None


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
    text = element.text.strip()
    if _aggregation(element) != "List":
        return [text] if text else []
    return [item.strip() for item in text.split(element.attribute("delimiter") or ",") if item.strip()]


def _hosts(element: Element, names: Names | None, where: str | None) -> Constraint:
    spot = element.at(where)
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
    spot = element.at(where)
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
