"""The lines of ``allocations.jsonl`` as the audit reads them, and the keys of R (RFC 20) besides its units.

``version``, ``nslots``, ``properties`` and ``attributes`` follow from the request, the machine and
the configuration of the run.  What an R states of the machine, its `RPlacement`, occurs again and again:
it is read and compared with the machine once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.formats.rfc.hostlist import Hostlist
from simsched.simulation.audit.inventory import ids_of, lowest, mask_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from simsched.simulation.audit.inventory import Inventory
    from simsched.simulation.audit.recorded_run import RecordedRun


R_VERSION = 1
PLACEMENTS = 8192
"""Placements that are kept: a machine of many nodes has large ones."""


class AllocationLine(msgspec.Struct, gc=False):
    """One line; `R` is read only where it differs from that of the job's allocation."""

    id: str | int
    event: str
    time: int | float
    R: msgspec.Raw


class Execution(msgspec.Struct, gc=False):
    """The key ``execution`` of R."""

    R_lite: msgspec.Raw
    nodelist: msgspec.Raw
    nslots: Any = None
    starttime: int | float = 0
    expiration: int | float = 0
    properties: msgspec.Raw = msgspec.Raw(b"{}")


class RGroup(msgspec.Struct):
    """One entry of ``R_lite``."""

    rank: str | int
    children: dict[str, str] = {}


class Scheduler(msgspec.Struct, frozen=True):
    """``attributes.system.scheduler`` of R."""

    queue: Any = None
    policy: Any = None
    queue_policy: Any = None


class _System(msgspec.Struct, frozen=True):
    scheduler: Scheduler = Scheduler()


class _Attributes(msgspec.Struct, frozen=True):
    system: _System = _System()


class RDocument(msgspec.Struct, gc=False):
    """R."""

    execution: Execution
    version: Any = None
    attributes: _Attributes = _Attributes()
    scheduling: msgspec.Raw = msgspec.Raw(b"{}")


class _Scheduling(msgspec.Struct):
    pools: dict[str, Any] = {}


read_line = msgspec.json.Decoder(AllocationLine).decode
read_document = msgspec.json.Decoder(RDocument).decode


@dataclass(frozen=True, slots=True)
class RPlacement:
    """What an R states of the machine.

    Attributes
    ----------
    units : rank → type → ids, as bit masks.
    amounts : containment path → the number of units, of pools on targets with very many units.
    outside : name → units of pools outside targets, such as licences: a number, or ids as text.
    all : `units` and, as some units, `amounts`.
    alike : ((class of target, (type, number) …), targets): equal for placements that differ in ids alone.
    faults : in what it disagrees with the machine (A2).
    """

    units: dict[int, dict[str, int]]
    amounts: dict[str, int]
    outside: dict[str, Any]
    all: dict[int, dict[str, int]]
    alike: frozenset[Any]
    faults: tuple[str, ...]


def placement_reader(inventory: Inventory) -> Callable[[bytes, bytes, bytes, bytes], RPlacement]:
    """Return the function that reads R_lite, nodelist, properties and scheduling of an R."""

    @lru_cache(maxsize=PLACEMENTS)
    def read(lite: bytes, nodelist: bytes, properties: bytes, scheduling: bytes) -> RPlacement:
        faults: list[str] = []
        units: dict[int, dict[str, int]] = dict(
            _units(inventory, msgspec.json.decode(lite, type=list[RGroup]), faults)
        )
        hosts = list(Hostlist.parse(msgspec.json.decode(nodelist)))
        if hosts != [inventory.targets[rank].host for rank in sorted(units)]:
            faults.append(f"nodelist {nodelist.decode()} is not the hosts of its ranks")
        stated = msgspec.json.decode(properties, type=dict[str, str | int])
        faults += _wrong_properties(inventory, stated, units.keys())
        pools = msgspec.json.decode(scheduling, type=_Scheduling).pools
        amounts = {path: n for path, n in pools.items() if path in inventory.pools}
        outside = {path.rpartition("/")[2]: n for path, n in pools.items() if path not in inventory.pools}
        both: dict[int, dict[str, int]] = {r: dict(masks) for r, masks in units.items()} if amounts else units
        for path, amount in amounts.items():
            rank, type_, all_ = inventory.pools[path]
            here = both.setdefault(rank, {})
            here[type_] = here.get(type_, 0) | lowest(all_, amount)
        return RPlacement(units, amounts, outside, both, _alike(inventory, both), tuple(faults))

    return read


def _units(
    inventory: Inventory, groups: list[RGroup], faults: list[str]
) -> Iterator[tuple[int, dict[str, int]]]:
    for group in groups:
        children = {type_: mask_of(ids) for type_, ids in group.children.items()}
        for rank in ids_of(str(group.rank)):
            target = inventory.targets.get(rank)
            if target is None:
                faults.append(f"rank {rank} does not exist")
                continue
            for type_, mask in children.items():
                if mask & ~target.usable.get(type_, 0):
                    why = "unknown ids" if mask & ~target.units.get(type_, 0) else "it is down"
                    faults.append(f"rank {rank} has no such {type_}: {why}")
            yield rank, children


def _alike(inventory: Inventory, units: Mapping[int, Mapping[str, int]]) -> frozenset[Any]:
    found: dict[Any, int] = {}
    counts: dict[int, Any] = {}
    for rank, masks in units.items():
        key = id(masks)
        if key not in counts:
            counts[key] = tuple((type_, mask.bit_count()) for type_, mask in masks.items())
        place = inventory.alike[rank], counts[key]
        found[place] = found.get(place, 0) + 1
    return frozenset(found.items())


def _wrong_properties(inventory: Inventory, given: Mapping[str, str | int], ranks: Any) -> Iterator[str]:
    """Yield the properties whose ranks in R differ from those of the machine."""
    expected: dict[str, set[int]] = {}
    for rank in ranks if inventory.written else ():
        for name in inventory.targets[rank].properties & inventory.written:
            expected.setdefault(name, set()).add(rank)
    stated = {name: set(ids_of(str(text))) for name, text in given.items()}
    for name in sorted(stated.keys() | expected.keys()):
        if stated.get(name, set()) != expected.get(name, set()):
            yield f"its R has other ranks with the property {name!r} than the machine"


def wrong_envelope(recorded: RecordedRun, document: RDocument) -> Iterator[str]:
    """Yield the faults in the version and the attributes of R, which do not depend on the job."""
    if document.version != R_VERSION:
        yield f"its R has version {document.version!r} instead of {R_VERSION}"
    stated = document.attributes.system.scheduler
    if recorded.match_policy not in (None, stated.policy):
        yield f"its R has the policy {stated.policy!r} instead of {recorded.match_policy!r}"
    if recorded.queue_policy not in (None, stated.queue_policy):
        yield f"its R has the queue_policy {stated.queue_policy!r} instead of {recorded.queue_policy!r}"
