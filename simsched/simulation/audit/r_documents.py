"""Rules of the audit for the keys of R (RFC 20) besides its units.

``version``, ``nslots``, ``properties`` and ``attributes`` follow from the request, the machine and
the configuration of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.simulation.audit.inventory import ids_of
from simsched.simulation.audit.request_check import SLOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.audit.recorded_run import RecordedRun

R_VERSION = 1


def wrong_envelope(recorded: RecordedRun, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults in the version and the attributes of R, which do not depend on the job."""
    if document.get("version") != R_VERSION:
        yield f"its R has version {document.get('version')!r} instead of {R_VERSION}"
    stated = scheduler_of(document)
    for key, expected in (("policy", recorded.match_policy), ("queue_policy", recorded.queue_policy)):
        if expected is not None and stated.get(key) != expected:
            yield f"its R has the {key} {stated.get(key)!r} instead of {expected!r}"


def scheduler_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``attributes.system.scheduler`` of R: its queue and the policies."""
    found: Any = document
    for key in ("attributes", "system", "scheduler"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def wrong_properties(
    inventory: Inventory, execution: Mapping[str, Any], ranks: Iterable[int]
) -> Iterator[str]:
    """Yield the properties whose ranks in R differ from those of the machine."""
    expected: dict[str, set[int]] = {}
    for rank in ranks:
        for name in inventory.targets[rank].properties & inventory.written:
            expected.setdefault(name, set()).add(rank)
    stated = {name: set(ids_of(str(text))) for name, text in execution.get("properties", {}).items()}
    for name in sorted(stated.keys() | expected.keys()):
        if stated.get(name, set()) != expected.get(name, set()):
            yield f"its R has other ranks with the property {name!r} than the machine"


def wrong_slots(
    resources: Sequence[ResourceVertex], execution: Mapping[str, Any], targets: int
) -> str | None:
    """Return the fault in the number of slots of R, or None; without a slot it is the number of targets."""
    slots = execution.get("nslots")
    least, most = _slots(resources, 0), _slots(resources, 1)
    if most == 0:
        least = most = targets
    if not isinstance(slots, int) or isinstance(slots, bool) or not least <= slots <= most:
        return f"its R has {slots!r} slots, the request {least if least == most else f'{least} to {most}'}"
    return None


def _slots(vertices: Sequence[ResourceVertex], end: int) -> float:
    """Return the fewest (`end` 0) or most (`end` 1) slots that satisfy a request."""
    total: float = 0
    for vertex in vertices:
        count = (vertex.count.min, vertex.count.max)[end]
        number = float("inf") if count is None else count
        if vertex.type == SLOT:
            total += number
        else:
            below = _slots(vertex.with_, end)
            total += number * below if below else 0
    return total


def without(
    units: Mapping[int, Mapping[str, int]], shard: Mapping[int, Mapping[str, int]]
) -> dict[int, dict[str, int]]:
    """Return the units that remain after the release of a shard."""
    left: dict[int, dict[str, int]] = {}
    for rank, masks in units.items():
        gone = shard.get(rank)
        if gone is None:
            left[rank] = dict(masks)
            continue
        rest = {type_: mask & ~gone.get(type_, 0) for type_, mask in masks.items()}
        rest = {type_: mask for type_, mask in rest.items() if mask}
        if rest:
            left[rank] = rest
    return left
