"""How a run's load lies on the machine: balance between nodes, locality, what failures cost.

References
----------
.. [Jain84] as in `fairness`.
.. [Pascual09] J. Pascual, J. Navaridas, J. Miguel-Alonso, "Effects of topology-aware allocation
   policies on scheduling performance", JSSPP 2009 (how far an allocation spreads).
.. [Schroeder06] B. Schroeder, G. Gibson, "A large-scale study of failures in high-performance
   computing systems", DSN 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simsched.report.metrics.fairness import jain
from simsched.report.metrics.metrics import area, ran

if TYPE_CHECKING:
    from collections.abc import Mapping


def node_seconds(allocations: pd.DataFrame, kind: str = "core") -> pd.Series[float]:
    """Unit-seconds of type `kind` that each rank was held; a pool not yet given back counts nothing."""
    held = allocations[allocations["type"] == kind]
    seconds = (held["release"] - held["alloc"]) * held["units"]
    return seconds.groupby(held["rank"]).sum().rename("unit_seconds")


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly the nodes were used: Jain index (1 is even), coefficient of variation, nodes never used."""

    jain: float
    variation: float
    unused: int


def node_balance(allocations: pd.DataFrame, targets: int, kind: str = "core") -> Balance:
    """Compare the nodes' unit-seconds; `targets` is the number of nodes of the cluster [Jain84]."""
    used = node_seconds(allocations, kind).to_numpy()
    return balance(pd.Series(np.concatenate([used, np.zeros(max(targets - len(used), 0))])))


def balance(loads: pd.Series[float]) -> Balance:
    """Compare loads, one a node [Jain84]."""
    mean = float(loads.mean()) if len(loads) else 0.0
    variation = float(loads.std(ddof=0) / mean) if mean else float("nan")
    return Balance(jain(loads), variation, int((loads == 0).sum()))


def spanned(allocations: pd.DataFrame, group_of: Mapping[Any, str]) -> pd.Series[int]:
    """Number of groups (racks, switches …) that each job's nodes lie in [Pascual09].

    `group_of` maps a rank to its rack or switch; ranks that it does not name count as one
    group of their own.
    """
    groups = allocations["rank"].map(group_of).fillna("?")
    return groups.groupby(allocations["id"], sort=False).nunique().rename("spanned")


def excess_span(allocations: pd.DataFrame, group_of: Mapping[Any, str]) -> pd.Series[float]:
    """Groups that a job spans over the fewest that its number of nodes needs; 1 is as local as can be."""
    largest = pd.Series(group_of).value_counts().to_numpy()
    capacity = np.cumsum(np.sort(largest)[::-1])
    nodes = allocations.groupby("id", sort=False)["rank"].nunique()
    least = np.searchsorted(capacity, nodes.to_numpy()) + 1
    return (spanned(allocations, group_of) / least).rename("excess_span")


def utilisation_of_ranks(
    allocations: pd.DataFrame,
    ranks: set[int],
    capacity: float,
    window: tuple[float, float],
    kind: str = "core",
) -> float:
    """Unit-seconds of a group of nodes held inside `window` over `capacity` units · span.

    The group is that of a property, a rack, a queue; its utilisation as in [Feitelson97].
    """
    low, high = window
    held = allocations[(allocations["type"] == kind) & allocations["rank"].isin(ranks)]
    inside = (held["release"].fillna(high).clip(upper=high) - held["alloc"].clip(lower=low)).clip(lower=0)
    whole = capacity * (high - low)
    return float((inside * held["units"]).sum()) / whole if whole else float("nan")


@dataclass(frozen=True, slots=True)
class FailureCost:
    """What failures took: unit-seconds lost by jobs that failed and by attempts that were repeated."""

    lost_by_failed_jobs: float
    lost_by_restarts: float
    jobs_failed: int
    jobs_restarted: int


def failure_cost(jobs: pd.DataFrame, allocations: pd.DataFrame, kind: str = "core") -> FailureCost:
    """Work to do again [Schroeder06]: of FAILED jobs, and of all but each job's last attempt."""
    failed = ran(jobs)
    failed = failed[failed["result"] == "FAILED"]
    again = allocations[allocations["type"] == kind] if len(allocations) else allocations
    last = (
        again.groupby("id", sort=False)["attempt"].transform("max")
        if len(again)
        else pd.Series([], dtype=int)
    )
    early = again[again["attempt"] < last] if len(again) else again
    seconds = ((early["release"] - early["alloc"]) * early["units"]).sum() if len(early) else 0.0
    restarted = int(early["id"].nunique()) if len(early) else 0
    return FailureCost(float(area(failed).sum()), float(seconds), len(failed), restarted)
