"""What the audit checks of an R document besides the units it names: RFC 20's other keys.

``version``, ``nslots``, ``properties`` and ``attributes`` follow from the request, the machine and
the rules of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.simulation.audit.inventory import ids_of
from simsched.simulation.audit.request_check import SLOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.formats.jobspec.vertex import ResourceVertex
    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.audit.job_life import Told

R_VERSION = 1


def wrong_envelope(told: Told, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the version and the attributes of R, whatever the job."""
    if document.get("version") != R_VERSION:
        yield f"its R has version {document.get('version')!r} instead of {R_VERSION}"
    said = scheduler_of(document)
    for key, expected in (("policy", told.match_policy), ("queue_policy", told.queue_policy)):
        if expected is not None and said.get(key) != expected:
            yield f"its R names the {key} {said.get(key)!r} instead of {expected!r}"


def scheduler_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``attributes.system.scheduler`` of R: its queue and the policies."""
    found: Any = document
    for key in ("attributes", "system", "scheduler"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def wrong_properties(
    inventory: Inventory, execution: Mapping[str, Any], ranks: Iterable[int]
) -> Iterator[str]:
    """Yield the properties that R gives to other targets than those that have them."""
    expected: dict[str, set[int]] = {}
    for rank in ranks:
        for name in inventory.targets[rank].properties & inventory.written:
            expected.setdefault(name, set()).add(rank)
    stated = {name: set(ids_of(str(text))) for name, text in execution.get("properties", {}).items()}
    for name in sorted(stated.keys() | expected.keys()):
        if stated.get(name, set()) != expected.get(name, set()):
            yield f"its R gives the property {name!r} to other ranks than the machine does"


def wrong_slots(
    resources: Sequence[ResourceVertex], execution: Mapping[str, Any], targets: int
) -> str | None:
    """Return what is wrong with the number of slots in R; without a slot it is the number of targets."""
    said = execution.get("nslots")
    least, most = _slots(resources, 0), _slots(resources, 1)
    if most == 0:
        least = most = targets
    if not isinstance(said, int) or isinstance(said, bool) or not least <= said <= most:
        return f"its R has {said!r} slots, the request {least if least == most else f'{least} to {most}'}"
    return None


def _slots(vertices: Sequence[ResourceVertex], end: int) -> float:
    """Return the fewest (`end` 0) or most (`end` 1) copies of slots that a request can stand for."""
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
