"""Job Objects are read, checked and written; unknown parts are treated by their awareness policy (R12).

Defaults are merged into jobs, task groups and tasks.  The results of a run are written into its Job Objects:
State, StartTime, EndTime and Delivered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from simsched.errors import FormatError, clip
from simsched.formats.sss import vocabulary
from simsched.formats.sss.expressions import group_signs
from simsched.formats.text.xml_tree import Element, local_name, parse_xml, write_xml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.formats.rfc.hostlist import Hostlist


LATEST = 2**32 - 1
"""The last second that a DateTime or a Duration can hold (32 bits)."""

MAX_NUMBER = 100
"""The most characters of a number; a double has at most 17 digits and an exponent."""

ROOTS = ("Job", "JobGroup", "Data")
"""The root elements: a job, a group of jobs, or several of both in SSSRMAP's Data."""


@dataclass(frozen=True, slots=True)
class Document:
    """A Job Object document: its elements by their 3.1 names, and the warnings of reading it.

    Unknown elements (under Warn or Ignore) are kept.  Comments and the space between elements are not.
    """

    root: Element
    warnings: tuple[FormatError, ...] = ()

    def to_xml(self) -> str:
        """The document as XML; reading it gives an equal root."""
        return write_xml(self.root)


def read_document(data: bytes | str, where: str | None = None) -> Document:
    """Read a Job Object document and check it against SSS Job Object 3.1.0.

    Raises FormatError for the first fault: not XML, an element or attribute that is unknown
    under the policy Reject (the default), a value of the wrong type, a required part missing.
    """
    checker = _Checker(where)
    root = checker.root(parse_xml(data, where))
    if checker.faults:
        raise checker.faults[0]
    return Document(root, tuple(checker.warnings))


def check_document(data: bytes | str, where: str | None = None) -> list[FormatError]:
    """List every fault of a Job Object document, in the order of the text."""
    try:
        checker = _Checker(where)
        checker.root(parse_xml(data, where))
    except FormatError as error:
        return [error]
    return checker.faults


def report(
    element: Element,
    message: str,
    where: str | None,
    warnings: list[FormatError],
    expected: str | None = None,
) -> FormatError | None:
    """Treat an unknown or unsupported part by the awareness policy of its element.

    Reject returns the error to raise; Warn adds it to `warnings`; Ignore does nothing.
    """
    fault = FormatError(message, where=element.at(where), expected=expected)
    if element.policy == "Reject":
        return fault
    if element.policy == "Warn":
        warnings.append(fault)
    return None


class _Checker:
    """Walks one document; collects faults and warnings."""

    def __init__(self, where: str | None) -> None:
        self.where = where
        self.faults: list[FormatError] = []
        self.warnings: list[FormatError] = []

    def fault(self, element: Element, message: str, expected: str | None = None) -> None:
        self.faults.append(FormatError(message, where=element.at(self.where), expected=expected))

    def unknown(self, element: Element, message: str, expected: str | None = None) -> None:
        """Treat an element, attribute or value that the specification does not define."""
        error = report(element, message, self.where, self.warnings, expected)
        if error:
            self.faults.append(error)

    def root(self, element: Element) -> Element:
        """The document's root."""
        name = local_name(element.name)
        if name not in ROOTS:
            self.fault(element, f"<{clip(element.name)}> is not a Job Object", " or ".join(ROOTS))
            return element
        if element.is_reference and name in vocabulary.REFERENCES:
            shown = clip(element.text.strip(), 30)
            self.fault(element, f"<{name}> holds the text {shown!r}: it only names a {name}", "elements")
            return element
        return self.container(replace(element, name=name), "Reject")

    def container(self, element: Element, policy: str) -> Element:
        """A containment element: Job, JobGroup, TaskGroup, Task, their defaults, Data."""
        element = self.policed(element, policy)
        self.attributes(element, ())
        if element.is_reference:
            if element.name not in vocabulary.REFERENCES:
                self.holds_text(element)
            return element
        properties, inner = vocabulary.CONTAINERS[element.name]
        children = []
        for raw in element.children:
            child = _modern(raw, element)
            if child.name in vocabulary.CATEGORIES and child.name in inner:
                children.append(self.category(child, element))
            elif child.name in inner:
                children.append(self.container(child, element.policy))
            elif child.name in properties:
                children.append(self.property(child, properties[child.name], element.policy, ()))
            else:
                children.append(self.stranger(raw, element))
        element = replace(element, children=tuple(children))
        self.repeated(element, properties)
        self.not_empty(element)
        self.rules(element)
        return element

    def rules(self, element: Element) -> None:
        """The rules of one containment element."""
        name = element.name
        if name in ("Job", "JobGroup") and not element.value("Id"):
            self.fault(element, f"a {name} without Id", "the element Id")
        if name == "JobGroup" and element.first("Job") is None:
            self.fault(element, "a JobGroup without jobs", "one Job or more")
        kind = _INSIDE.get(name.removesuffix("Defaults"))
        seen: set[str] = set()
        for child in element.all(kind) if kind and name != "JobGroupDefaults" else ():
            own = child.value("Id")
            if own is not None and own in seen:
                self.fault(child, f"{kind} id {clip(own)!r} occurs twice", "ids that differ")
            seen.add(own or "")
        if name == "Data":
            for group in element.all("JobGroup"):
                found = {own: job for job in group.all("Job") if (own := job.value("Id"))}
                for own in found.keys() & seen:
                    self.fault(found[own], f"Job id {clip(own)!r} occurs twice", "ids that differ")
                seen |= found.keys()
        if name in ("Job", "JobDefaults"):
            start, end = element.first("StartTime"), element.first("EndTime")
            times = [child.text.strip() for child in (start, end) if child is not None]
            if len(times) < 2 or any(_misfit(time, "DateTime") for time in times):  # a fault of its own
                return
            if int(times[1]) < int(times[0]):
                message = f"EndTime {times[1]} is before StartTime {times[0]}"
                self.fault(end or element, message, "a later time")

    def category(self, element: Element, parent: Element) -> Element:
        """Requested or Delivered."""
        properties, _ = vocabulary.CONTAINERS[parent.name]
        element = self.policed(element, parent.policy)
        self.attributes(element, ())
        if element.is_reference:
            self.holds_text(element)
        else:
            self.not_empty(element)
        before = len(self.faults)
        children = []
        for raw in element.children:
            child = _modern(raw, parent)
            known = properties.get(child.name)
            if known and known.category:
                more = vocabulary.CATEGORIES[element.name]
                children.append(self.property(child, known, element.policy, more))
            else:
                children.append(self.stranger(raw, element))
        if element.name == "Delivered" and len(self.faults) == before:
            try:
                group_signs(children, self.where)  # they have to balance; they are kept and not evaluated
            except FormatError as error:
                self.faults.append(error)
        return replace(element, children=tuple(children))

    def holds_text(self, element: Element) -> None:
        """Report text in an element that may contain elements only."""
        shown = clip(element.text.strip(), 30)
        self.fault(element, f"<{element.name}> holds the text {shown!r}", "elements")

    def not_empty(self, element: Element) -> None:
        """Report an element without properties where the specification requires one or more."""
        if element.name in vocabulary.NOT_EMPTY and not element.children:
            self.fault(element, f"<{element.name}> without properties", "one property or more")

    def stranger(self, element: Element, parent: Element) -> Element:
        """Report an element that is not allowed in its parent."""
        element = self.policed(element, parent.policy)
        self.unknown(element, f"<{clip(element.name)}> is not known in <{parent.name}>")
        return element

    def policed(self, element: Element, policy: str) -> Element:
        """The element with the awareness policy that holds for it: its own, or the enclosing one's."""
        own = element.attribute("awarenessPolicy")
        if own is not None and own not in vocabulary.VALUES["awarenessPolicy"]:
            self.fault(
                element, f"awarenessPolicy {clip(own)!r}", ", ".join(vocabulary.VALUES["awarenessPolicy"])
            )
            own = None
        return replace(element, policy=own or policy)

    def property(
        self, element: Element, known: vocabulary.Property, policy: str, more: tuple[str, ...]
    ) -> Element:
        """A property: its attributes, its content."""
        element = self.policed(element, policy)
        self.attributes(element, (*known.attributes, *more))
        if element.name == "Environment":
            if element.is_reference:
                self.holds_text(element)
            variables = [self.variable(child, element) for child in element.children]
            return replace(element, children=tuple(variables))
        if element.children:
            self.unknown(element, f"<{element.name}> holds elements", known.kind)
        elif fault := _misfit(element.text.strip(), known.kind):
            self.fault(element, f"{element.name} {fault}", _KINDS[known.kind])
        elif element.name in vocabulary.COUNTS and int(element.text) < (
            least := more != vocabulary.DELIVERED
        ):
            self.fault(element, f"{element.name} {element.text.strip()}", f"at least {int(least)}")
        self.words(element, element.name, element.text)
        return element

    def variable(self, raw: Element, environment: Element) -> Element:
        """An environment variable."""
        element = self.policed(replace(raw, name=local_name(raw.name)), environment.policy)
        if element.name != "Variable":
            self.unknown(element, f"<{clip(element.name)}> is not known in <Environment>", "Variable")
        else:
            self.attributes(element, ("name",))
        return element

    def attributes(self, element: Element, known: tuple[str, ...]) -> None:
        """The attributes of an element: known, and of known values."""
        for name, value in element.attributes:
            # `policed` has checked the value of the policy
            if name in ("xmlns", "awarenessPolicy") or name.startswith(("xmlns:", "xsi:", "xml:")):
                continue
            if name not in known:
                hint = "this attribute inside Requested" if name in vocabulary.REQUESTED else None
                self.unknown(element, f"attribute {clip(name)} is not known in <{element.name}>", hint)
                continue
            other, wanted = vocabulary.ONLY_WITH.get(name, ("", ""))
            unitless = name == "units" and element.name in vocabulary.UNITLESS
            if unitless or (other and element.attribute(other) != wanted):
                reason = ", which is counted" if unitless else f" without {other}={wanted}"
                self.unknown(element, f"attribute {name} has no meaning in <{element.name}>{reason}")
                continue
            self.words(element, f"{element.name}.{name}", value)
            allowed = vocabulary.VALUES.get(f"{element.name}.{name}") or vocabulary.VALUES.get(name)
            if element.name == "Charge" and name == "units":
                allowed = None  # a currency
            if allowed and value not in allowed:
                message = f"{name} {clip(value)!r} is not known in <{element.name}>"
                self.unknown(element, message, ", ".join(allowed))
            elif fault := _misfit(value.strip(), vocabulary.KINDS.get(name, "String")):
                self.fault(element, f"{name} of {element.name} {fault}", _KINDS[vocabulary.KINDS[name]])
        needed = vocabulary.NEEDED.get(element.name)
        if needed and not element.attribute(needed):
            self.fault(element, f"<{element.name}> without {needed}", f"the attribute {needed}")

    def words(self, element: Element, key: str, text: str) -> None:
        """The words of a list that the specification enumerates."""
        allowed = vocabulary.WORDS.get(key)
        if allowed is None or not text.strip():
            return
        for word in text.split(","):
            if word.strip() not in allowed:
                named = " of ".join(reversed(key.split(".")))
                message = f"{clip(word.strip(), 40)!r} is not known in {named}"
                self.unknown(element, message, ", ".join(allowed))

    def repeated(self, element: Element, properties: dict[str, vocabulary.Property]) -> None:
        """A property outside Requested and Delivered occurs once."""
        seen: set[str] = set()
        for child in element.children:
            known = properties.get(child.name)
            once = known is not None and not known.many
            if child.name in seen and (once or child.name.endswith("Defaults")):
                self.fault(child, f"<{child.name}> occurs twice in <{element.name}>", "one")
            seen.add(child.name)


_INSIDE = {"Data": "Job", "JobGroup": "Job", "Job": "TaskGroup", "TaskGroup": "Task"}
"""The elements of which several in one element need ids that differ."""

_KINDS = {
    "String": "text",
    "Integer": "a whole number",
    "Float": "a number, 0 or more",
    "Boolean": "true or false",
    "DateTime": f"seconds since the epoch, at most {LATEST}",
    "Duration": f"seconds, at most {LATEST}",
}


def _misfit(text: str, kind: vocabulary.Kind) -> str | None:
    """Return the fault of `text` as a value of `kind`, or None."""
    shown = f"{clip(text, 40)!r}"
    if kind == "Boolean":
        return None if text.lower() in ("true", "false", "1", "0") else f"{shown} is not a truth value"
    if kind in ("Integer", "DateTime", "Duration"):
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not (digits.isascii() and digits.isdigit()):
            return f"{shown} is not a whole number"
        if len(digits) > 18:
            return f"{shown} has more than 18 digits"
        if kind != "Integer" and not 0 <= int(text) <= LATEST:
            return f"{shown} is not a time"
    if kind == "Float":
        if len(text) > MAX_NUMBER:
            return f"{shown} has more than {MAX_NUMBER} characters"
        try:
            number = float(text)
        except ValueError:
            return f"{shown} is not a number"
        if not (math.isfinite(number) and number >= 0) or "_" in text:
            return f"{shown} is not an amount"
    return None


def _modern(element: Element, parent: Element) -> Element:
    """Return an element of a containment element with the name that 3.1 has for it, without a prefix."""
    name = local_name(element.name)
    return replace(element, name=vocabulary.OLDER[parent.name].get(name, name))


_BY_NAME = ("Resource", "Extension", "ResourceLimit", "Variable")
_APART = ("Requested", "Delivered", "TaskGroup", "TaskGroupDefaults", "Task", "TaskDefaults", "Environment")


def merged(own: Element, defaults: Element | None) -> Element:
    """Return the element with the properties of its defaults that it does not have itself.

    A property overrides its default, whether it is in Requested or outside; variables of the
    environment and resources override one by one; Delivered is separate from the request.

    >>> from simsched.formats.text.xml_tree import Element
    >>> job = Element("Job", (), "", (Element("Id", (), "1"),))
    >>> print(merged(job, Element("JobDefaults", (), "", (Element("User", (), "ann"),))).value("User"))
    ann
    """
    if defaults is None:
        return own
    own_keys = {_key(child) for child in (*own.children, *_inside(own, "Requested"))}
    children = [
        c for c in defaults.children if c.name not in _APART and c.name != "Id" and _key(c) not in own_keys
    ]
    children += [child for child in own.children if child.name not in _APART]
    for category in ("Requested", "Delivered"):
        mine = _inside(own, category)
        keys = own_keys if category == "Requested" else {_key(child) for child in mine}
        older = [child for child in _inside(defaults, category) if _key(child) not in keys]
        model = own.first(category) or defaults.first(category)
        if model is not None and (older or mine):
            children.append(replace(model, children=(*older, *mine)))
    inner, outer = own.first("Environment"), defaults.first("Environment")
    if inner is not None and outer is not None:
        keys = {_key(child) for child in inner.children}
        older = [child for child in outer.children if _key(child) not in keys]
        inner = replace(inner, children=(*older, *inner.children))
    children += [part for part in (inner or outer,) if part is not None]
    for kind in ("TaskGroup", "Task"):
        # the defaults for inner elements: those of the element over those of its own defaults
        inner, outer = own.first(f"{kind}Defaults"), defaults.first(f"{kind}Defaults")
        children += [part for part in (outer if inner is None else merged(inner, outer),) if part is not None]
        children += list(own.all(kind)) or list(defaults.all(kind))
    return replace(own, children=tuple(children))


def _key(child: Element) -> tuple[str | None, ...]:
    """The key that a child overrides: its name, with the name and type of a resource, variable or limit."""
    if child.name in _BY_NAME:
        return child.name, child.attribute("name"), child.attribute("type")
    return (child.name,)


def _inside(element: Element, category: str) -> tuple[Element, ...]:
    """The properties in all elements of one category."""
    return tuple(child for part in element.all(category) for child in part.children)


STATES = {
    "COMPLETED": "Completed",
    "TIMEOUT": "Completed",
    "FAILED": "Completed",
    "CANCELED": "Completed",
    "RUNNING": "Running",
    "PENDING": "Idle",
    "INFEASIBLE": "Hold",
    "DROPPED": "Hold",
}
"""The document's states for the results of a run."""


@dataclass(frozen=True, slots=True)
class DeliveredValues:
    """The result of a job; None: not known.

    `state` is a result of a run (``COMPLETED`` …) or a state of the document's, times are seconds,
    `memory` MB in total, `message` goes into StatusMessage.
    """

    state: str
    start: float | None = None
    end: float | None = None
    processors: int | None = None
    hosts: Hostlist | None = None
    memory: float | None = None
    exit_code: int | None = None
    message: str | None = None


def with_results(document: Document, results: Mapping[str, DeliveredValues]) -> Document:
    """Return the document with the results of its jobs, by id; everything else is unchanged."""
    return replace(document, root=_visited(document.root, results))


def _visited(element: Element, results: Mapping[str, DeliveredValues]) -> Element:
    if element.name == "Job" and not element.is_reference:
        result = results.get(element.value("Id") or "")
        return element if result is None else delivered(element, result)
    if element.name in ("JobGroup", "Data"):
        return replace(element, children=tuple(_visited(child, results) for child in element.children))
    return element


def delivered(job: Element, result: DeliveredValues) -> Element:
    """Return the job with its result in State, StartTime, EndTime, ExitCode, StatusMessage and Delivered.

    >>> job = Element("Job", (), "", (Element("Id", (), "1"),))
    >>> print(delivered(job, DeliveredValues("COMPLETED", 0, 60, 4)).first("Delivered"))
    <Delivered>
      <Processors>4</Processors>
      <Duration>60</Duration>
    </Delivered>
    """
    state = STATES.get(result.state, result.state)
    on_hold = result.state == "PENDING" and (job.value("State") or "").strip() == "Hold"
    values = {
        "State": "Hold" if on_hold else state,  # a job on hold stays on hold
        "StartTime": None if result.start is None else round(result.start),
        "EndTime": None if result.end is None else round(result.end),
        "ExitCode": result.exit_code,
        "StatusMessage": result.message,
    }
    new = [Element(name, (), str(value)) for name, value in values.items() if value is not None]
    names = ("State", "StartTime", "EndTime", "Delivered", *(element.name for element in new))
    found = []
    if result.processors is not None:
        found.append(Element("Processors", (), str(result.processors)))
    if result.hosts:
        found.append(Element("NodeCount", (), str(len(result.hosts))))
        found.append(Element("Node", (("aggregation", "Range"),), str(result.hosts)))
    if result.start is not None and result.end is not None:
        found.append(Element("Duration", (), str(round(result.end) - round(result.start))))
    if result.memory is not None:
        found.append(Element("Memory", (("units", "MB"),), f"{result.memory:g}"))
    if found:
        new.append(Element("Delivered", (), "", tuple(found)))
    return replace(job, children=(*job.without(*names).children, *new))
