"""RFC 25, jobspec version 1: the constructs of a request that it does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.jobspec.tasks import Task
    from simsched.formats.jobspec.vertex import ResourceVertex

Misfit: TypeAlias = tuple[str, str, str]
"""The path of a construct, its description, and the construct that V1 has in its place."""


def misfit(
    resources: tuple[ResourceVertex, ...], tasks: tuple[Task, ...], system: Mapping[str, Any]
) -> Misfit | None:
    """Return the first construct that RFC 25 does not have, or None."""
    for fault in _resource_misfits(resources):
        return fault
    if len(tasks) != 1:
        return "tasks", f"{len(tasks)} tasks", "exactly one"
    task = tasks[0]
    if "per_resource" in task.count:
        return "tasks[0].count", "per_resource", "per_slot or total"
    if task.attributes:
        return "tasks[0].attributes", "attributes of a task", "command, slot and count"
    if task.distribution is not None:
        return "tasks[0].distribution", "a distribution", "command, slot and count"
    if "duration" not in system:
        return "attributes.system", "no duration", "duration, in seconds"
    return None


def resources_fit_v1(resources: tuple[ResourceVertex, ...]) -> bool:
    """Whether a resources list is one of RFC 25's enumerated graphs.

    >>> from simsched.formats.jobspec.shape import parse_shape
    >>> resources_fit_v1(parse_shape("node/slot=2/core")), resources_fit_v1(parse_shape("slot/node"))
    (True, False)
    """
    return next(_resource_misfits(resources), None) is None


def _resource_misfits(resources: tuple[ResourceVertex, ...]) -> Iterator[Misfit]:
    """Yield the faults of a resources list against RFC 25's enumerated graphs."""
    if len(resources) != 1 or resources[0].type not in {"node", "slot"}:
        yield "resources", "several resources, or none", "exactly one, a node or a slot"
        return
    slot, path = resources[0], "resources[0]"
    if slot.type == "node":
        yield from _vertex_misfits(slot, path, {"exclusive"})
        if len(slot.with_) != 1 or slot.with_[0].type != "slot":
            yield path + ".with", "a node without a slot", "exactly one slot in the node"
            return
        slot, path = slot.with_[0], path + ".with[0]"
    yield from _vertex_misfits(slot, path, {"exclusive", "label"})
    types = [child.type for child in slot.with_]
    if sorted(types) not in (["core"], ["core", "gpu"]):
        yield path + ".with", f"a slot of {', '.join(types) or 'nothing'}", "core, or core and gpu"
        return
    for i, child in enumerate(slot.with_):
        yield from _vertex_misfits(child, f"{path}.with[{i}]", set())
        if child.with_:
            yield f"{path}.with[{i}].with", f"resources in a {child.type}", "nothing"


def _vertex_misfits(vertex: ResourceVertex, path: str, allowed: set[str]) -> Iterator[Misfit]:
    if not vertex.count.is_fixed:
        yield path + ".count", f"the count {vertex.count}", "an integer"
    for key in ("exclusive", "label", "id"):
        if getattr(vertex, key) is not None and key not in allowed:
            yield f"{path}.{key}", f"{key!r} on a {vertex.type}", "type, count and unit"
