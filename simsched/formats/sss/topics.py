"""The request of one scope of a Job Object (a job, a task group, a task), topic by topic."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

from simsched.errors import FormatError
from simsched.formats.jobspec.vertex import ResourceVertex
from simsched.formats.rfc.constraint import ANY, Constraint
from simsched.formats.sss import vocabulary
from simsched.formats.sss.document import report
from simsched.formats.sss.expressions import (
    ENDLESS,
    Junction,
    Tree,
    amount,
    by_topic,
    expression,
    leaves,
    number_set,
    slot_type,
)
from simsched.formats.sss.feature_constraints import Names, UnexpandedError, constraint_of
from simsched.formats.sss.vertices import count_of
from simsched.formats.text.excerpts import clip, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.rfc.idset import Idset
    from simsched.formats.text.xml_tree import Element

_SCALE: dict[str, int] = {unit: 1024**power for power, unit in enumerate(vocabulary.VALUES["units"])}
UNITS = dict(
    zip(
        vocabulary.VALUES["units"],
        ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"),
        strict=False,
    )
)


GRAIN = Fraction(1, 1000)
"""The share of an amount that rounding up may add before a smaller unit is used."""


class ScopeReader:
    """Reads the request of one job, task group or task, topic by topic; `task_groups` combines scopes.

    It knows the file and the cluster's names, and collects warnings.
    """

    def __init__(
        self,
        where: str | None,
        cluster: Names | None,
        warnings: list[FormatError],
        unexpanded: list[FormatError] | None = None,
    ) -> None:
        self.where = where
        self.cluster = cluster
        self.warnings = warnings
        self.unexpanded = unexpanded

    def unsupported(self, element: Element, message: str, expected: str | None = None) -> None:
        """Treat an unsupported part by its awareness policy: raise an error, add a warning or do nothing."""
        error = report(element, message, self.where, self.warnings, expected)
        if error:
            raise error

    def at(self, element: Element, error: FormatError) -> FormatError:
        """The error at the element's place."""
        spot = place(self.where, element.line, element.column)
        return type(error)(error.message, where=spot, expected=error.expected)

    def topics(self, scope: Element) -> dict[str, Tree]:
        """The request of a job, task group or task, by topic, without the delivered properties."""
        blocks = [[child for child in part.children if _is_request(child)] for part in _blocks(scope)]
        for element in (element for block in blocks for element in block):
            self.refuse(element)
        found = (expression(block, self.where) for block in blocks)
        parts = tuple(tree for tree in found if tree is not None)
        tree = Junction(True, parts) if len(parts) > 1 else parts[0] if parts else None
        return by_topic(
            tree,
            lambda e: self.unsupported(
                e,
                f"alternatives of {e.name} and something else cannot be tied together",
                "conj within one topic",
            ),
        )

    def refuse(self, element: Element) -> None:
        """Report the unsupported parts of a requested property."""
        known = vocabulary.JOB_PROPERTIES[element.name]
        if known.use == "refused":
            self.unsupported(element, f"{element.name}: {known.to}")
        if element.attribute("context") == "Configured":
            self.unsupported(element, "context Configured: only available resources are matched")
        if element.attribute("performanceFactor") is not None:
            self.unsupported(element, "performanceFactor: no start time is traded for resources")
        if vocabulary.truth(element.attribute("dynamic")):
            self.unsupported(element, "dynamic: an allocation does not grow or shrink")
        op = element.attribute("op") or "EQ"
        numeric = known.kind != "String"
        if (numeric and op == "Match") or (not numeric and op not in ("EQ", "NE", "Match")):
            self.unsupported(element, f"op {op} has no meaning for {element.name}")

    def numbers(self, topics: dict[str, Tree], name: str) -> Idset | None:
        """The acceptable numbers of a count, None if it is not requested; FormatError if no number is."""
        tree = topics.get(name)
        if tree is None:
            return None
        found = number_set(tree, amount)
        if not found:
            first = next(leaves(tree))
            raise self.at(
                first, FormatError(f"no number of {name} satisfies the request", expected="1 or more")
            )
        return found

    def pools(self, topics: dict[str, Tree]) -> tuple[ResourceVertex, ...]:
        """The gpus of one task; its memory, disk and swap, each in a unit in which the amount is whole."""
        devices = [tree for tree in topics.values() if slot_type(next(leaves(tree)))]
        result = [vertex for tree in devices for vertex in self._extra(tree, 1)]
        for name in vocabulary.SIZES:
            if (tree := topics.get(name)) is None:
                continue
            unit = self._fitting_unit(tree)
            found = number_set(tree, partial(_amount, unit=unit))
            beyond = next((e for e in leaves(tree) if _amount(e, unit=unit) > ENDLESS), None)
            if beyond is not None:
                message = f"{name} {clip(beyond.text.strip(), 30)} is too large"
                raise self.at(beyond, FormatError(message, expected=f"at most {ENDLESS:,} {unit}"))
            if found:
                result.append(ResourceVertex(name.lower(), count_of(found), unit=UNITS[unit]))
        return tuple(result)

    def _fitting_unit(self, tree: Tree) -> str:
        """Return the largest unit, of those named and smaller ones, in which every amount is a whole number.

        Without such a unit, it is the first in which rounding up adds at most a `GRAIN` of the amount, and
        the rounding is a warning unless the policy is Ignore.
        """
        smallest = min((_unit(e) for e in leaves(tree)), key=_SCALE.__getitem__)
        units = [unit for unit in reversed(UNITS) if _SCALE[unit] <= _SCALE[smallest]]
        countable = [unit for unit in units if all(_amount(e, unit=unit) <= ENDLESS for e in leaves(tree))]
        amounts = {u: [_amount(e, unit=u) for e in leaves(tree)] for u in countable or units[:1]}
        fitting = (
            unit
            for grain in (Fraction(0), GRAIN)
            for unit, found in amounts.items()
            if all(ceil(amount) - amount <= amount * grain for amount in found)
        )
        unit = next(fitting, list(amounts)[-1])
        for element, found in zip(leaves(tree), amounts[unit], strict=True):
            own = element.attribute("units") or "MB"
            text = f"{element.name} {element.text.strip()} {own}, in {UNITS[unit]},"
            self._warn_rounded(element, found, text)
        return unit

    def _warn_rounded(self, element: Element, amount: Fraction, what: str) -> None:
        """Warn that a fraction of an indivisible resource is rounded up, unless the policy is Ignore."""
        if amount.denominator != 1 and element.policy != "Ignore":
            message = f"{what} is rounded up to {ceil(amount)}"
            self.warnings.append(FormatError(message, where=place(self.where, element.line, element.column)))

    def extras(self, topics: dict[str, Tree], copies: int) -> tuple[ResourceVertex, ...]:
        """Resource elements as top-level vertices: the name is the type, the type an id of that type."""
        others = [tree for tree in topics.values() if slot_type(next(leaves(tree))) is None]
        return tuple(vertex for tree in others for vertex in self._extra(tree, copies))

    def _extra(self, tree: Tree, copies: int) -> Iterator[ResourceVertex]:
        """Yield the vertex of one Resource, requested `copies` times; nothing for another element or 0."""
        element = next(leaves(tree))
        if element.name != "Resource":
            return
        found = number_set(tree, lambda e: amount(e) * copies)
        for each in leaves(tree):
            text = f"{each.attribute('name') or 'Resource'} {clip(each.text.strip(), 30)}"
            self._warn_rounded(each, amount(each) * copies, text)
        if found:
            kind = slot_type(element) or element.attribute("name") or "Resource"
            if kind == "slot":
                raise self.at(
                    element, FormatError("a Resource cannot have the name slot", expected="another name")
                )
            yield ResourceVertex(kind, count_of(found), id=element.attribute("type"))

    def constraint(self, topics: dict[str, Tree]) -> Constraint:
        """The constraint on nodes."""
        tree = topics.get("constraint")
        if tree is None:
            return ANY
        try:
            return constraint_of(tree, self.cluster, self.where)
        except UnexpandedError as error:
            if self.unexpanded is not None:
                self.unexpanded.append(error)
                return ANY
            self.unsupported(next(leaves(tree)), error.message, error.expected)
            return ANY


def _blocks(scope: Element) -> tuple[Element, ...]:
    """Return the elements with requested properties: the scope and each Requested, each with its own conj."""
    return (scope, *scope.all("Requested"))


def _is_request(child: Element) -> bool:
    """Whether a property is a part of the request, and not of the resources used."""
    known = vocabulary.JOB_PROPERTIES.get(child.name)
    return (
        known is not None
        and (known.category or known.use == "refused")
        and child.attribute("context") != "Used"
    )


def _unit(element: Element) -> str:
    """The unit of a size, one that jobspecs have too."""
    unit = element.attribute("units") or "MB"
    return unit if unit in UNITS else "YB" if unit in _SCALE else "MB"


def _amount(element: Element, *, unit: str) -> Fraction:
    """A size in another unit."""
    own = element.attribute("units") or "MB"
    factor = Fraction(_SCALE.get(own, _SCALE["MB"]), _SCALE[unit])
    return amount(element) * factor
