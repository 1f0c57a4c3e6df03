"""The requested properties as one expression of op, conj, group and preference, split by topic.

Reading R11: properties are combined from left to right with explicit groups; ``Nand`` is
"and not", ``Nor`` is "or not".  The document's own example opens its group with -1 and closes
it with 1; so if the signs would close a group before one is open, all of them are negated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from simsched.errors import FormatError, LimitError
from simsched.formats.rfc.idset import Idset
from simsched.formats.sss import vocabulary
from simsched.formats.text.excerpts import place

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
        spot = place(where, kept[-1].line, kept[-1].column)
        raise LimitError(
            f"{len(kept)} requested properties are too many", where=spot, expected=f"{MAX_PROPERTIES}"
        )
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
            leaf = _alternatives(others) if others else None
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
    spot = place(where, first.line, first.column)
    raise FormatError("the group attributes do not balance", where=spot, expected="each opened group closed")


def _alternatives(elements: list[Element]) -> Tree:
    ordered = sorted(elements, key=_weight, reverse=True)
    return Junction(False, tuple(Term(e) for e in ordered)) if len(ordered) > 1 else Term(ordered[0])


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
        elif isinstance(part, Negation):
            pending.insert(0, _denied(part.part))
        elif isinstance(part, Junction):
            if not topics <= set(CREDENTIALS):
                mixed(next(leaves(part)))
            pending.insert(0, part.parts[0])
    return found


def _denied(tree: Tree) -> Tree:
    """The opposite of an expression, its negations pushed one level down."""
    if isinstance(tree, Junction):
        return Junction(not tree.every, tuple(Negation(part) for part in tree.parts))
    return tree.part if isinstance(tree, Negation) else Negation(tree)


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
