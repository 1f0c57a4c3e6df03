"""Rules of the audit for ``nodes.parquet``, ``timeline.parquet`` and ``run.json`` against the machine.

The timeline is also checked against the R documents: running jobs and used units after each instant.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.simulation.audit.inventory import ExecutionTarget, Inventory
    from simsched.simulation.audit.recorded_run import RecordedRun

UNITS = ("core", "gpu")
"""Types whose units R lists by id."""


def wrong_totals(recorded: RecordedRun, inventory: Inventory) -> Iterator[str]:
    """Yield the numbers of ``run.json`` that differ from the machine."""
    expected = {"node": len(inventory.targets)}
    for type_ in UNITS:
        if type_ in inventory.unit_types:
            expected[type_] = sum(
                target.usable.get(type_, 0).bit_count() for target in inventory.targets.values()
            )
    for type_, number in expected.items():
        if recorded.totals is not None and recorded.totals.get(type_) != number:
            yield f"run.json has {recorded.totals.get(type_)} of type {type_}, the cluster has {number}"
    if recorded.targets is not None and recorded.targets != len(inventory.targets):
        yield f"run.json has {recorded.targets} targets, the cluster has {len(inventory.targets)}"


def wrong_nodes(inventory: Inventory, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the faults in ``nodes.parquet``: ranks, hosts, properties, units."""
    found = {row["rank"]: row for row in rows}
    if len(found) != len(rows) or found.keys() != inventory.targets.keys():
        yield "the nodes are not the ranks of the cluster"
        return
    for rank, row in found.items():
        target = inventory.targets[rank]
        if row["host"] != target.host:
            yield f"rank {rank} has host {row['host']!r} instead of {target.host!r}"
        if set(row["properties"] or ()) != target.properties:
            yield f"rank {rank} has other properties than in the cluster"
        yield from _wrong_units(rank, target, row)


def _wrong_units(rank: int, target: ExecutionTarget, row: Mapping[str, Any]) -> Iterator[str]:
    for type_ in UNITS:
        number = target.units.get(type_, 0).bit_count()
        if row.get(f"total_{type_}", number) != number:
            yield f"rank {rank} has {row[f'total_{type_}']} of type {type_} instead of {number}"
    if target.usable and not row["up"]:
        yield f"rank {rank} is not up, but it is in the cluster"


class UseOverTime:
    """The number of jobs with resources and the units that they hold, over time, from the allocations."""

    def __init__(self) -> None:
        self.changes: list[tuple[float, int, dict[str, tuple[int, int]]]] = []
        """(time, jobs, type → least and most units): the change by each alloc and last release."""

    def add(self, time: float, sign: int, sizes: Sequence[tuple[int, int, int]]) -> None:
        """Record that a job got (1) or released (-1) its resources: each possible (nodes, cores, gpus)."""
        parts = {type_: [size[at] for size in sizes] for at, type_ in enumerate(UNITS, start=1)}
        self.changes.append(
            (time, sign, {type_: (sign * min(n), sign * max(n)) for type_, n in parts.items()})
        )

    def wrong(
        self, recorded: RecordedRun, inventory: Inventory, rows: Sequence[Mapping[str, Any]], *, vague: bool
    ) -> Iterator[str]:
        """Yield the faults in the timeline; if `vague`, R does not determine the number of held units."""
        yield from _wrong_in_itself(recorded, inventory, rows)
        times = {row["time"] for row in rows}
        lacking = [time for time, _, _ in self.changes if float(time) not in times]
        if lacking and recorded.complete:
            yield f"has no row at {lacking[0]:g}, when a job starts or ends"
        if recorded.complete:
            # in an epilog, units are in use by jobs that have ended: the sums of R do not show them
            yield from self._wrong_use(rows, units=not vague and not recorded.epilog)

    def _wrong_use(self, rows: Sequence[Mapping[str, Any]], *, units: bool) -> Iterator[str]:
        at, jobs = 0, 0
        least, most = dict.fromkeys(UNITS, 0), dict.fromkeys(UNITS, 0)
        for row in rows:
            while at < len(self.changes) and self.changes[at][0] <= row["time"]:
                _, sign, held = self.changes[at]
                at, jobs = at + 1, jobs + sign
                for type_, (low, high) in held.items():
                    least[type_] += low
                    most[type_] += high
            if row["running_jobs"] != jobs:
                yield f"{row['running_jobs']} jobs run at {row['time']:g}, {jobs} by their R"
            for type_ in UNITS if units else ():
                used = row.get(f"used_{type_}")
                if used is not None and not least[type_] <= used <= most[type_]:
                    yield f"{used} of type {type_} in use at {row['time']:g}, {most[type_]} by R"


def _wrong_in_itself(
    recorded: RecordedRun, inventory: Inventory, rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the rows that are out of order, do not add up, or have units down without an outage.

    Targets that are down in the cluster itself need no outage.  Their units are not in the totals.
    """
    down = {"node": sum(not target.up for target in inventory.targets.values())}
    for before, after in pairwise(rows):
        if not before["time"] < after["time"]:
            yield f"the row at {after['time']:g} comes after that at {before['time']:g}"
    for type_, total in (recorded.totals or {}).items():
        states = [f"{state}_{type_}" for state in ("free", "used", "down")]
        for row in rows:
            if not all(state in row for state in states):
                break
            if sum(row[state] for state in states) != total or any(row[state] < 0 for state in states):
                yield f"units of type {type_} at {row['time']:g} do not add up to {total}"
            elif row[states[2]] != down.get(type_, 0) and not recorded.disrupted:
                yield f"{row[states[2]]} of type {type_} are down at {row['time']:g} without an outage"
