"""The key ``attributes.system.resource-parts`` of heterogeneous jobs, and its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "resource-parts"
"""The key of ``attributes.system`` for parts with constraints or queues of their own."""


def part_faults(value: Any, resources: int) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield (path, message, expected) for each fault of ``attributes.system.resource-parts``."""
    if not isinstance(value, list | tuple) or not value:
        yield (), "resource-parts is not a list of objects", "one object per part of a heterogeneous job"
        return
    covered = 0
    for number, part in enumerate(value):
        if not isinstance(part, dict):
            yield (number,), "a part is not an object", "resources, constraints, queue"
            return
        size = part.get("resources")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            yield (number, "resources"), f"{size!r} is not a number of resources", "1 or more"
            return
        covered += size
        for key in part:
            if key not in {"resources", "constraints", "queue"}:
                yield (number, key), f"unknown key {key!r}", "resources, constraints, queue"
        if "queue" in part and not isinstance(part["queue"], str):
            yield (number, "queue"), f"{part['queue']!r} is not the name of a queue", "a string"
    if covered != resources:
        yield (), f"the parts have {covered} resources, and the jobspec has {resources}", "equal numbers"
