"""The machine room over time: use, outages and fragmentation of each node and of each rack, switch ….

Time is cut into equal bins.  Everything is a time average in a bin and exact: the state of each node
between two changes is added to the bins that it covers, so nothing shorter than a bin is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from simsched.errors import RunError
from simsched.report.metrics import machine_use

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from simsched.arrays import Floats, Integers
    from simsched.report.data.tables import RunTables


MOST_CELLS = 3_000_000
"""Nodes times bins of a room, at most: a larger machine has longer bins."""
BINS = 240
LEAST_BINS = 24
BLOCK = "block of ranks"
"""The level of a machine without levels: neighbouring ranks."""
STATES = ("failure", "drain", "maintenance", "down")
"""Reasons why a node is unavailable; ``down`` is one that was down when the run began."""


@dataclass(frozen=True, slots=True)
class RoomLevel:
    """One level above the nodes: its type (``rack``), the names of its groups, the group of each node."""

    name: str
    groups: tuple[str, ...]
    of_node: Integers

    def sums(self, values: Floats) -> Floats:
        """Return the sums over the nodes (rows) of each group."""
        found = np.zeros((len(self.groups), values.shape[1]))
        known = self.of_node >= 0
        np.add.at(found, self.of_node[known], values[known])
        return found


@dataclass(frozen=True, slots=True)
class MachineRoom:
    """Use, outages and fragmentation of a machine over time.

    Attributes
    ----------
    kind : the type whose use is shown: cores, else gpus, else whole nodes.
    levels : the levels above the nodes, coarsest first; blocks of ranks where there are none.
    edges : seconds of the bins, one more than bins.
    units : units of the type on each node.
    used, free, broken : mean units of each node (row) in each bin: in use, free, and free beside used ones.
    out : state of `STATES` that occurs → share of each bin that each node spends in it.
    """

    nodes: pd.DataFrame
    kind: str
    levels: tuple[RoomLevel, ...]
    edges: Floats
    units: Floats
    used: Floats
    free: Floats
    broken: Floats
    out: Mapping[str, Floats]

    def use(self, level: RoomLevel | None = None) -> Floats:
        """Return the share (0 to 1) in use of each node, or of each group of a level; NaN without units."""
        units = np.repeat(self.units[:, None], self.used.shape[1], axis=1)
        return self._ratio(self.used, units, level)

    def fragmentation(self, level: RoomLevel) -> Floats:
        """Return the share of the free units that are on partly used nodes; NaN without free units.

        This is `metrics.fragmentation` of the nodes of each group, weighted by the free units.
        """
        return self._ratio(self.broken, self.free, level)

    def unavailable(self, level: RoomLevel, state: str) -> Floats:
        """Return the share of node time that the nodes of each group spend in a state."""
        return self._ratio(self.out[state], np.ones_like(self.used), level)

    @staticmethod
    def _ratio(part: Floats, whole: Floats, level: RoomLevel | None) -> Floats:
        if level is not None:
            part, whole = level.sums(part), level.sums(whole)
        # less than a millionth of a unit is rounding
        found: Floats = np.where(whole > 1e-6, part / np.where(whole > 1e-6, whole, 1), np.nan)
        return np.clip(found, 0, 1)


def room_of(run: RunTables) -> MachineRoom:
    """Return the machine room of a run.

    Raises
    ------
    RunError
        if the run has no allocations, no table of its nodes, or no job ran.
    """
    low, high = run.window
    if not high > low:
        raise RunError("no job ran, so there is nothing to draw", where=run.name)
    if run.nodes.empty or not run.has_allocations:
        raise RunError("the nodes of jobs are not known: the run lacks its nodes or its allocations",
                       where=run.name, expected="nodes.parquet and allocations.jsonl")  # fmt: skip
    nodes = run.nodes
    kind = machine_use.main_kind(nodes)
    bins = int(min(BINS, max(LEAST_BINS, MOST_CELLS // len(nodes))))
    edges = np.linspace(low, high, bins + 1)
    units = np.ones(len(nodes)) if kind == "node" else nodes[f"total_{kind}"].to_numpy(dtype=np.float64)
    outages = _outages(run, nodes)
    used, free, broken = _states(_changes(run.allocations, nodes, kind, high), outages, units, edges)
    out = {}
    for state in STATES:
        rows = outages[outages["state"] == state]
        if len(rows):
            share = _spread(rows["node"], rows["start"], rows["end"], np.ones(len(rows)), len(nodes), edges)
            out[state] = np.clip(share, 0, 1)
    return MachineRoom(nodes, kind, levels_of(nodes), edges, units, used, free, broken, out)


def levels_of(nodes: pd.DataFrame) -> tuple[RoomLevel, ...]:
    """Return the levels above the nodes, those with the fewest groups first."""
    found = []
    for place in machine_use.distinct_places(nodes):
        codes, names = nodes[f"in_{place}"].astype("object").factorize()
        if 1 < len(names) < len(nodes):
            found.append(RoomLevel(place, tuple(map(str, names)), codes.astype(np.int64)))
    return tuple(sorted(found, key=lambda level: len(level.groups))) or (_blocks(nodes),)


def _blocks(nodes: pd.DataFrame) -> RoomLevel:
    """Return blocks of neighbouring ranks; n ranks become about √n blocks."""
    wide = ceil(sqrt(len(nodes)))
    ranks = nodes["rank"].to_numpy(dtype=np.int64)
    order = np.argsort(np.argsort(ranks, kind="stable"), kind="stable")
    ascending = np.sort(ranks)
    firsts = range(0, len(nodes), wide)
    names = (f"{ascending[at]}-{ascending[min(at + wide, len(nodes)) - 1]}" for at in firsts)
    return RoomLevel(BLOCK, tuple(names), order // wide)


def _changes(held: pd.DataFrame, nodes: pd.DataFrame, kind: str, high: float) -> pd.DataFrame:
    """Return the changes of the units in use: node (row of `nodes`), time, units."""
    if kind == "node":  # one unit, however many jobs share the node
        held = held.drop_duplicates(["id", "attempt", "rank"]).assign(units=1)
    else:
        held = held[held["type"] == kind]
    row = pd.Series(np.arange(len(nodes)), index=nodes["rank"].to_numpy())
    node = held["rank"].map(row)
    held = held[node.notna()]
    at = node[node.notna()].to_numpy(dtype=np.int64)
    units = held["units"].to_numpy(dtype=np.float64)
    ends = held["release"].fillna(high).to_numpy(dtype=np.float64)
    return pd.DataFrame(
        {
            "node": np.concatenate([at, at]),
            "time": np.concatenate([held["alloc"].to_numpy(dtype=np.float64), ends]),
            "units": np.concatenate([units, -units]),
        }
    )


def _outages(run: RunTables, nodes: pd.DataFrame) -> pd.DataFrame:
    """Return one row per node and outage: node (row of `nodes`), start, end (s), state."""
    row = pd.Series(np.arange(len(nodes)), index=nodes["rank"].to_numpy())
    known = run.outages
    known = known[known["rank"].isin(row.index)]
    down = np.flatnonzero(~nodes["up"].to_numpy(dtype=bool))
    first = pd.DataFrame({"node": down, "start": -np.inf, "end": np.inf, "state": "down"})
    later = known.assign(node=known["rank"].map(row).astype("int64")).rename(columns={"kind": "state"})
    parts = [part for part in (later[list(first.columns)], first) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else first  # pandas 2 warns of empty parts


def _states(
    changes: pd.DataFrame, outages: pd.DataFrame, units: Floats, edges: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the mean units in use, free, and free beside used ones: one row per node, one column per bin."""
    low, high = edges[0], edges[-1]
    count = len(units)
    node = np.concatenate([np.arange(count), changes["node"], outages["node"], outages["node"]])
    starts, ends = (outages[name].to_numpy(dtype=np.float64) for name in ("start", "end"))
    time = np.concatenate([np.full(count, low), changes["time"], starts, ends]).clip(low, high)
    still = np.zeros(count + 2 * len(outages))
    used = np.concatenate([still[:count], changes["units"], still[count:]])
    closed = np.ones(len(outages))
    out = np.concatenate([np.zeros(count + len(changes)), closed, -closed])
    order = np.lexsort((time, node))
    node, time = node[order].astype(np.int64), time[order]
    # all changes of a node add up to nothing only at its end, so sums start anew at each node
    used, out = (_sums(values[order], node) for values in (used, out))
    until = np.append(time[1:], high)
    until[np.append(node[1:] != node[:-1], True)] = high
    whole = units[node]
    used = np.minimum(used, whole)
    free = np.where(out > 0.5, 0.0, whole - used)
    parts = (used, free, np.where(used > 0, free, 0.0))
    lasting = until > time
    return tuple(  # type: ignore[return-value]
        _spread(node[lasting], time[lasting], until[lasting], part[lasting], count, edges) for part in parts
    )


def _sums(values: Floats, node: Integers) -> Floats:
    """Return running sums that start at 0 for each node; `node` is ascending."""
    total = np.cumsum(values)
    first = np.append(True, node[1:] != node[:-1])
    before = np.where(first, total - values, 0.0)
    result: Floats = total - before[np.flatnonzero(first)][np.cumsum(first) - 1]
    return result


def _spread(
    node: npt.ArrayLike,
    start: npt.ArrayLike,
    end: npt.ArrayLike,
    weight: npt.ArrayLike,
    count: int,
    edges: Floats,
) -> Floats:
    """Return, per node and bin, the sum of the weights of intervals times the share of the bin they cover."""
    bins = len(edges) - 1
    width = (edges[-1] - edges[0]) / bins
    cells = np.zeros(count * (bins + 2))
    row = np.asarray(node, dtype=np.int64) * (bins + 2)
    heavy = np.asarray(weight, dtype=np.float64)
    for sign, times in ((1.0, start), (-1.0, end)):
        x = ((np.asarray(times, dtype=np.float64) - edges[0]) / width).clip(0, bins)
        column = x.astype(np.int64)
        beyond = x - column  # of the bin that holds the time, this share is before it
        for step, share in ((0, 1 - beyond), (1, beyond)):
            cells += np.bincount(row + column + step, sign * heavy * share, minlength=len(cells))
    found: Floats = cells.reshape(count, bins + 2).cumsum(axis=1)[:, :bins]
    return found
