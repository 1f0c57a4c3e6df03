"""Heterogeneous jobs: several requests that start together, as one jobspec.

The resources of the parts are joined, so a scheduler matches all of them at once or none.  RFC 14 has one
constraint and one queue per jobspec.  If those of the parts differ, ``attributes.system.resource-parts`` has
them: a list of objects, each for the next `resources` entries of the jobspec's ``resources``::

    resource-parts:
      - { resources: 1, constraints: { properties: [big] }, queue: large }
      - { resources: 2, queue: small }

The constraint of the jobspec itself holds for every part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from simsched.formats.jobspec.validation_rules import KEY
from simsched.formats.rfc.count import Count
from simsched.formats.text.immutable import FrozenDict, freeze

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.formats.jobspec.jobspec import Jobspec, Task
    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.formats.rfc.constraint import Constraint


def joined(parts: Sequence[Jobspec], queues: Sequence[str | None] | None = None) -> Jobspec:
    """Return one jobspec for all the parts; `queues` are their queues (default: those of the parts).

    Its attributes are those of the first part.  Equal slots of fixed numbers become one slot, so that parts
    such as ``slot=4/core`` and ``slot=8/core`` are the plain request ``slot=12/core``.

    >>> from simsched.formats.jobspec.jobspec import Jobspec
    >>> shapes = ("slot=4/core", "slot=8/core"), ("slot=1/[core=2;gpu]", "slot=8/core")
    >>> [joined([Jobspec.from_shape(shape) for shape in pair]).to_shape() for pair in shapes]
    ['slot=12/core', '[slot{default}/[core=2;gpu];slot=8{default-1}/core]']
    """
    first = parts[0]
    named = [part.queue for part in parts] if queues is None else list(queues)
    rules = [part.system.get("constraints") for part in parts]
    if len(parts) == 1:
        return first
    if named[0] is not None and named[0] != first.queue and all(name == named[0] for name in named):
        first = first.with_system(queue=named[0])
    alike = all(rule == rules[0] for rule in rules) and all(name == named[0] for name in named)
    total = _total(parts) if alike else None
    if total is not None:
        return replace(first, resources=(total,))
    labels: set[str] = set()
    resources: list[ResourceVertex] = []
    tasks: list[Task] = []
    for part in parts:
        words = _new_labels(part, labels)
        resources += [_relabelled(vertex, words) for vertex in part.resources]
        tasks += [replace(task, slot=words.get(task.slot, task.slot)) for task in part.tasks]
    whole = replace(first, resources=tuple(resources), tasks=tuple(tasks), version=999)
    if alike:
        return whole
    described = []
    for part, rule, name in zip(parts, rules, named, strict=True):
        facts = {"resources": len(part.resources), "constraints": rule, "queue": name}
        described.append(FrozenDict({key: value for key, value in facts.items() if value is not None}))
    return whole.with_system(constraints=None, **{KEY: tuple(described)})


def _total(parts: Sequence[Jobspec]) -> ResourceVertex | None:
    """Return one slot for parts that are all copies of it, or None."""
    first = parts[0].resources[0]
    if not first.is_slot or not all(len(part.resources) == 1 for part in parts):
        return None
    one = replace(first, count=Count.fixed(1), label=None)
    for part in parts:
        slot = part.resources[0]
        if not slot.count.is_fixed or replace(slot, count=one.count, label=None) != one:
            return None
    return replace(first, count=Count.fixed(sum(part.resources[0].count.min for part in parts)))


def _new_labels(part: Jobspec, taken: set[str]) -> dict[str, str]:
    """Return label → the same, or another that no earlier part has; note them as taken."""
    found: dict[str, str] = {}
    for vertex in (vertex for top in part.resources for vertex in top.walk()):
        label = vertex.label
        if label is not None:
            tries = (label, *(f"{label}-{number}" for number in range(1, len(taken) + 2)))
            found[label] = next(word for word in tries if word not in taken)
            taken.add(found[label])
    return found


def _relabelled(vertex: ResourceVertex, words: dict[str, str]) -> ResourceVertex:
    label = None if vertex.label is None else words[vertex.label]
    return replace(vertex, label=label, with_=tuple(_relabelled(child, words) for child in vertex.with_))


def part_constraints(jobspec: Jobspec) -> list[Constraint | None] | None:
    """Return the constraint of each entry of a jobspec's resources; None if it has no parts of their own.

    A constraint of the whole jobspec is and-ed to each.
    """
    parts = jobspec.system.get(KEY)
    if parts is None:
        return None
    from simsched.formats.rfc.constraint import And, from_json

    found: list[Constraint | None] = []
    whole = jobspec.constraint
    for part in parts:
        rule = part.get("constraints")
        own = None if rule is None else from_json(rule, f"attributes.system.{KEY}")
        both = And((own, whole)) if own is not None and whole is not None else own or whole
        found += [both] * part["resources"]
    return found


def part_queues(jobspec: Jobspec) -> tuple[str | None, ...]:
    """Return the queue of each part; empty if the jobspec has no parts of their own."""
    return tuple(part.get("queue") for part in jobspec.system.get(KEY, ()))


def with_part_constraints(jobspec: Jobspec, rules: Sequence[Constraint | None]) -> Jobspec:
    """Return the jobspec with a constraint and-ed to each part, where it is not None."""
    from simsched.formats.rfc.constraint import And, from_json, to_json

    parts = []
    for part, rule in zip(jobspec.system[KEY], rules, strict=True):
        if rule is None:
            parts.append(part)
            continue
        own = part.get("constraints")
        both = rule if own is None else And((from_json(own), rule))
        parts.append(freeze({**part, "constraints": to_json(both)}))
    return jobspec.with_system(**{KEY: tuple(parts)})
