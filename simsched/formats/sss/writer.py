"""Jobspecs are written as Job Objects; an error names the part of a request that the format lacks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from simsched.errors import RequestError
from simsched.formats.rfc.constraint import And, Constraint, Hosts, Not, Or, Properties
from simsched.formats.sss.records import CONDITIONS
from simsched.formats.sss.requirements import UNITS
from simsched.formats.sss.vocabulary import IN_SLOT
from simsched.formats.text.xml_tree import Element

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.count import Count

_FROM_UNIT = {written: unit for unit, written in UNITS.items()}
_BY_SCHEME = {scheme: condition for condition, scheme in CONDITIONS.items()}
_POOLS = {"memory": "Memory", "disk": "Disk", "swap": "Swap"}


def job_element(
    jobspec: Jobspec,
    id_: str,
    *,
    submit: float | None = None,
    user: str | None = None,
    group: str | None = None,
    qos: str | None = None,
    priority: int | None = None,
    deadline: float | None = None,
    hold: bool = False,
) -> Element:
    """The Job Object of a jobspec; `job_records` reads an equal request back.

    Raises RequestError with the part that a Job Object cannot express: other resources in a slot than
    cores, gpus, memory, disk and swap; whole-node slots; exclusive nodes; racks and switches.
    """
    system = jobspec.system
    values = {
        "Id": id_,
        "Name": jobspec.name,
        "SubmitTime": None if submit is None else str(round(submit)),
        "User": user,
        "Group": group,
        "Project": system.get("bank"),
        "Queue": jobspec.queue,
        "QualityOfService": qos,
        "Priority": None if priority is None else str(priority),
        "Deadline": None if deadline is None else str(round(deadline)),
        "Hold": "User" if hold else None,
        "InitialWorkingDirectory": system.get("cwd"),
    }
    children = [Element(name, (), str(text)) for name, text in values.items() if text is not None]
    children += _dependencies(jobspec)
    if variables := system.get("environment"):
        inner = tuple(Element("Variable", (("name", key),), str(value)) for key, value in variables.items())
        children.append(Element("Environment", (), "", inner))
    requested: list[Element] = []
    if jobspec.duration:
        requested.append(Element("Duration", (), str(int(-(-jobspec.duration // 1)))))
    if jobspec.constraint is not None:
        requested += constraint_elements(jobspec.constraint)
    scopes = [vertex for vertex in jobspec.resources if vertex.type in ("node", "slot")]
    if not scopes:
        raise _cannot("a request without a slot")
    requested += [_resource(vertex) for vertex in jobspec.resources if vertex.type not in ("node", "slot")]
    if len(scopes) == 1:
        more, counts = _scope(jobspec, scopes[0], alone=True)
        children += more
        requested += counts
    else:
        for scope in scopes:
            more, counts = _scope(jobspec, scope, alone=False)
            inner = (*more, Element("Requested", (), "", tuple(counts)))
            children.append(Element("TaskGroup", (), "", inner))
    if requested:
        children.append(Element("Requested", (), "", tuple(requested)))
    return Element("Job", (), "", tuple(children))


def _scope(jobspec: Jobspec, vertex: ResourceVertex, *, alone: bool) -> tuple[list[Element], list[Element]]:
    """The properties and the requested counts of a slot, or of nodes with a slot each."""
    nodes, slot = (
        (vertex, vertex.with_[0] if vertex.with_ else None) if vertex.type == "node" else (None, vertex)
    )
    if slot is None or slot.type != "slot" or (len(vertex.with_) != 1 and nodes is not None):
        raise _cannot("a node without exactly one slot")
    if vertex.exclusive or slot.exclusive is False:
        raise _cannot("exclusive on a node, or a shared slot")
    cores = next((child for child in slot.with_ if child.type == "core"), None)
    if cores is None or cores.with_ or cores.id is not None or not cores.count.is_fixed:
        raise _cannot("a slot without a fixed number of cores")
    pools = [_pool(child) for child in slot.with_ if child is not cores]
    more = [] if alone else [Element("Name", (), slot.label or "task")]
    more += _command(jobspec, slot.label)
    each = cores.count.min
    counts: list[Element] = []
    if nodes is not None:
        counts += _numbers("NodeCount", nodes.count)
        if nodes.id is not None:
            more.append(Element("Node", (("aggregation", "Range"),), nodes.id))
        if not slot.count.is_fixed:
            raise _cannot("a range of slots on a node")
        more.append(Element("TaskDistribution", (("type", "TasksPerNode"),), str(slot.count.min)))
        if not nodes.count.is_fixed:
            if each != 1:
                raise _cannot("a range of nodes with several cores per task")
            return more, counts + pools
        tasks = nodes.count.min * slot.count.min
        counts.append(Element("TaskCount", (), str(tasks)))
        counts.append(Element("Processors", (), str(tasks * each if alone else each)))
    elif slot.count.is_fixed:
        counts.append(Element("TaskCount", (), str(slot.count.min)))
        counts.append(Element("Processors", (), str(slot.count.min * each if alone else each)))
    else:
        if each != 1 and alone:
            raise _cannot("a range of slots with several cores each")
        counts += _numbers("TaskCount", slot.count)
        counts += [] if alone else [Element("Processors", (), str(each))]
    return more, counts + pools


def _cannot(what: str) -> RequestError:
    return RequestError(
        f"a Job Object cannot express {what}", expected="slots of cores, gpus, memory, disk and swap"
    )


def _numbers(name: str, count: Count) -> list[Element]:
    """The requested properties that accept exactly the numbers of a count."""
    if count.is_fixed:
        return [Element(name, (), str(count.min))]
    if count.ids is None and count.operator == "+" and count.operand == 1:
        low = [Element(name, (("op", "GE"),), str(count.min))]
        return low if count.max is None else [*low, Element(name, (("op", "LE"),), str(count.max))]
    numbers = list(count.values(101))
    if len(numbers) > 100 or count.max is None:
        raise _cannot(f"the count {count}")
    last = len(numbers) - 1
    elements = []
    for position, number in enumerate(numbers):
        attributes = [("conj", "Or")] if position else []
        if position in (0, last):
            attributes.append(("group", "1" if not position else "-1"))
        elements.append(Element(name, tuple(attributes), str(number)))
    return elements


def _pool(vertex: ResourceVertex) -> Element:
    """Memory, disk or swap."""
    if vertex.type in IN_SLOT.values():
        return _resource(vertex)
    if vertex.type not in _POOLS or not vertex.count.is_fixed or vertex.with_ or vertex.id is not None:
        raise _cannot(f"{vertex.type} in a slot")
    unit = _FROM_UNIT.get(vertex.unit or "")
    if unit is None:
        raise _cannot(f"the unit {vertex.unit}")
    return Element(_POOLS[vertex.type], (("units", unit),), str(vertex.count.min))


def _resource(vertex: ResourceVertex) -> Element:
    if vertex.with_ or not vertex.count.is_fixed or vertex.unit is not None or vertex.exclusive is not None:
        raise _cannot(f"{vertex.type} with more than a number")
    attributes = [("name", vertex.type)]
    if vertex.id is not None:
        attributes.append(("type", vertex.id))
    return Element("Resource", tuple(attributes), str(vertex.count.min))


def _command(jobspec: Jobspec, label: str | None) -> list[Element]:
    task = next((task for task in jobspec.tasks if task.slot == label), None)
    if task is None or not task.command:
        return []
    found = [Element("Executable", (), task.command[0])]
    if len(task.command) > 1:
        found.append(Element("Arguments", (), shlex.join(task.command[1:])))
    return found


def _dependencies(jobspec: Jobspec) -> Iterable[Element]:
    found = []
    for dependency in jobspec.dependencies:
        if dependency.scheme == "begin-time":
            found.append(Element("EligibleTime", (), str(round(float(dependency.value)))))
        elif dependency.scheme in _BY_SCHEME:
            attributes = [("condition", _BY_SCHEME[dependency.scheme])]
            if "code" in dependency.params:
                attributes = [("condition", "OnExit"), ("code", str(dependency.params["code"]))]
            found.append(Element("Dependency", tuple(attributes), dependency.value))
        else:
            raise _cannot(f"the dependency {dependency}")
    return found


# -- constraints ----------------------------------------------------------------------


def constraint_elements(constraint: Constraint) -> list[Element]:
    """The requested properties of a constraint; RequestError for one on ranks or on nothing."""
    return [
        Element(element.name, (*element.attributes, *attributes.items()), element.text)
        for element, attributes in _sequence(constraint, "And")
    ]


def _sequence(constraint: Constraint, conj: str) -> Iterator[tuple[Element, dict[str, str]]]:
    """Leaves in order with op, conj and group; every junction is a group of its own.

    Negations are pushed down to the leaves first, because the conj of an element that opens
    several groups belongs to the outermost of them.
    """
    own = {} if conj == "And" else {"conj": conj}
    if isinstance(constraint, Not):
        if isinstance(constraint.arg, Hosts) or (
            isinstance(constraint.arg, Properties) and len(constraint.arg.names) == 1
        ):
            ((element, attributes),) = _sequence(constraint.arg, conj)
            yield element, {"op": "NE", **attributes}
        else:
            yield from _sequence(_denied(constraint.arg), conj)
    elif isinstance(constraint, (And, Or)):
        inner = "And" if isinstance(constraint, And) else "Or"
        parts = [
            pair
            for number, part in enumerate(constraint.args)
            for pair in _sequence(part, inner if number else "And")
        ]
        first, last = parts[0][1], parts[-1][1]
        first.update(own)
        first["group"] = str(int(first.get("group", 0)) + 1)
        last["group"] = str(int(last.get("group", 0)) - 1)
        yield from parts
    elif isinstance(constraint, Properties):
        aggregated = (("aggregation", "List"),) if len(constraint.names) > 1 else ()
        yield Element("Feature", aggregated, ",".join(constraint.names)), own
    elif isinstance(constraint, Hosts):
        yield Element("Node", (("aggregation", "Range"),), str(constraint.hostlist)), own
    else:
        raise _cannot(f"the constraint {constraint}")


def _denied(constraint: Constraint) -> Constraint:
    """The opposite of a constraint that is more than one leaf."""
    if isinstance(constraint, Not):
        return constraint.arg
    if isinstance(constraint, Properties):
        return Or(tuple(Not(Properties((name,))) for name in constraint.names))
    if isinstance(constraint, (And, Or)):
        parts = tuple(Not(arg) for arg in constraint.args)
        return Or(parts) if isinstance(constraint, And) else And(parts)
    raise _cannot(f"not {constraint}")
