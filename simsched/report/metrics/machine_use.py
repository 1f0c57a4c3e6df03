"""Use of the parts of the machine in a run: nodes, property groups, racks and switches.

Pure functions on the frames `Run.nodes` and `Run.allocations`; the formulas are those of
`metrics` and `spread`, taken over the nodes of a part.  A window is (from, until) in
seconds; capacity is that of the nodes that were up when the run began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched.report.metrics.spread import Balance, balance, excess_span, spanned

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.arrays import Floats
    from simsched.report.metrics.metrics import Window

#: the name of the part with all nodes, in `use_by`
ALL = "all nodes"
#: before a type: the share of its capacity in use
USE = "utilisation_"


def places(nodes: pd.DataFrame) -> list[str]:
    """Return the types that divide the machine: rack, switch and the like."""
    return [str(c).removeprefix("in_") for c in nodes.columns if str(c).startswith("in_")]


def distinct_places(nodes: pd.DataFrame) -> list[str]:
    """Return the types that divide the machine; of types that divide it equally, the first."""
    found: dict[bytes, str] = {}
    for place in places(nodes):
        found.setdefault(nodes[f"in_{place}"].factorize()[0].tobytes(), place)
    return list(found.values())


def kinds(nodes: pd.DataFrame) -> list[str]:
    """Return ``node`` and the pool types that some node has."""
    pools = [str(c).removeprefix("total_") for c in nodes.columns if str(c).startswith("total_")]
    return ["node", *(kind for kind in pools if nodes[f"total_{kind}"].any())]


def main_kind(nodes: pd.DataFrame) -> str:
    """Return the type whose use is shown: cores, else gpus, else whole nodes."""
    known = kinds(nodes)
    return next(kind for kind in ("core", "gpu", "node") if kind in known)


def capacity(nodes: pd.DataFrame, kind: str) -> pd.Series[int]:
    """Return the units of a type on each node that was up at first; a node is one unit of ``node``."""
    units = nodes["up"].astype("int64") if kind == "node" else nodes[f"total_{kind}"] * nodes["up"]
    return units.set_axis(pd.Index(nodes["rank"])).rename(kind)


def unit_seconds(allocations: pd.DataFrame, kind: str, window: Window) -> pd.Series[float]:
    """Return the unit-seconds of a type held on each rank in the window; of ``node``: held by any job.

    Units that were never released are held until the window ends.
    """
    low, high = window
    if kind == "node":
        return _occupied(allocations, window)
    held = allocations[allocations["type"] == kind]
    inside = held["release"].fillna(high).clip(upper=high) - held["alloc"].clip(lower=low)
    return (inside.clip(lower=0) * held["units"]).groupby(held["rank"]).sum().rename(kind)


def _occupied(allocations: pd.DataFrame, window: Window) -> pd.Series[float]:
    """Return the seconds of the window in which any job held units of each rank."""
    low, high = window
    begin = allocations["alloc"].clip(low, high).to_numpy(dtype=np.float64)
    end = allocations["release"].fillna(high).clip(low, high).to_numpy(dtype=np.float64)
    rank = allocations["rank"].to_numpy(dtype=np.int64)
    # intervals of one rank may overlap, because jobs share nodes: count only the part after all earlier ends
    order = np.lexsort((begin, rank))
    rank, begin, end = rank[order], begin[order], end[order]
    until = pd.Series(end).groupby(rank).cummax()  # the end of all that began so far
    before = until.groupby(rank).shift(fill_value=low).to_numpy()
    fresh = (end - np.maximum(begin, before)).clip(min=0)
    return pd.Series(fresh).groupby(rank).sum().rename_axis("rank").rename("node")


def node_use(nodes: pd.DataFrame, allocations: pd.DataFrame, window: Window) -> pd.DataFrame:
    """Return one row per node: host, number of jobs, and ``utilisation_T`` of each type T of `kinds`.

    That of ``node`` is the share of time in which any unit of the node was held.
    """
    ranks = pd.Index(nodes["rank"])
    served = allocations.groupby("rank")["id"].nunique().reindex(ranks, fill_value=0)
    table = {"host": nodes["host"].to_numpy(), "jobs": served.to_numpy(dtype=np.int64)}
    for kind in kinds(nodes):
        used = unit_seconds(allocations, kind, window).reindex(ranks, fill_value=0.0)
        table[USE + kind] = _shares(
            used.to_numpy(np.float64), capacity(nodes, kind).to_numpy(np.float64), window
        )
    return pd.DataFrame(table, index=ranks)


def _shares(used: npt.NDArray[Any], units: npt.NDArray[Any], window: Window) -> Floats:
    """Return used / (units · span), NaN without capacity."""
    whole = units * (window[1] - window[0])
    return used / np.where(whole > 0, whole, np.nan)


def parts(nodes: pd.DataFrame, key: str) -> Iterator[tuple[str, pd.Index[Any]]]:
    """Yield the parts of the machine and their ranks: one per property, or one per vertex of the type `key`.

    Property groups may overlap.  The vertices of a type are in the order of their first node.
    """
    ranks = pd.Series(nodes["rank"].to_numpy())
    if key == "property":
        flat = nodes["properties"].explode()
        named = pd.Series(nodes["rank"].to_numpy(), index=nodes.index).loc[flat.index]
        groups = named.groupby(flat.to_numpy(), sort=True)
    else:
        groups = ranks.groupby(nodes[f"in_{key}"].astype("object").to_numpy(), sort=False)
    for name, members in groups:
        yield str(name), pd.Index(members)


def use_by(nodes: pd.DataFrame, allocations: pd.DataFrame, window: Window, key: str) -> pd.DataFrame:
    """Return one row per part of the machine, after one for all nodes: its nodes, jobs and use.

    `key` is ``property`` or one of `places`.  Columns: nodes, jobs (that held units there), and
    ``utilisation_T``, the share of the capacity of each type of `kinds` in use [Feitelson97 in `metrics`].
    """
    used = {kind: unit_seconds(allocations, kind, window) for kind in kinds(nodes)}
    units = {kind: capacity(nodes, kind) for kind in used}
    touched = allocations[["rank", "id"]].drop_duplicates()
    rows = []
    named = [(ALL, pd.Index(nodes["rank"])), *parts(nodes, key)]
    for _, ranks in named:
        jobs = touched.loc[touched["rank"].isin(ranks), "id"].nunique()
        held = np.array([used[kind].reindex(ranks).sum() for kind in used], dtype=np.float64)
        had = np.array([units[kind].loc[ranks].sum() for kind in used], dtype=np.float64)
        shares = zip((USE + kind for kind in used), _shares(held, had, window).tolist(), strict=True)
        rows.append({"nodes": len(ranks), "jobs": jobs, **dict(shares)})
    return pd.DataFrame(rows, index=pd.Index([name for name, _ in named], name=key))


def use_balance(nodes: pd.DataFrame, allocations: pd.DataFrame, window: Window, kind: str) -> Balance:
    """Return how evenly the nodes with units of a type were used, each by the share of its own capacity."""
    shares = node_use(nodes, allocations, window)[USE + kind]
    return balance(shares[capacity(nodes, kind) > 0])


def place_of(nodes: pd.DataFrame, place: str) -> pd.Series[str]:
    """Return the rack (switch …) of each rank that is in one."""
    found = nodes[f"in_{place}"].astype("object").set_axis(pd.Index(nodes["rank"]))
    return found[found.notna()].rename(place)


def locality(nodes: pd.DataFrame, allocations: pd.DataFrame) -> pd.DataFrame:
    """Return one row per type that divides the machine: how far jobs on several nodes spread over it.

    Columns: places, jobs (on several nodes), mean_spanned (places per job), mean_excess (over the
    fewest that its nodes need), share_local (of the jobs without excess) [Pascual09 in `spread`].  If a
    job started several times, the last attempt counts.
    """
    last = allocations.groupby("id", sort=False)["attempt"].transform("max")
    held = allocations[allocations["attempt"] == last]
    touched = held.groupby("id", sort=False)["rank"].nunique()
    several = held[held["id"].isin(touched.index[touched > 1])]
    rows = {}
    for place in places(nodes):
        group_of = place_of(nodes, place).to_dict()
        excess = excess_span(several, group_of)
        rows[place] = {
            "places": len(set(group_of.values())),
            "jobs": len(excess),
            "mean_spanned": spanned(several, group_of).mean(),
            "mean_excess": excess.mean(),
            "share_local": (excess <= 1).mean() if len(excess) else np.nan,
        }
    columns = ["places", "jobs", "mean_spanned", "mean_excess", "share_local"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("place")
