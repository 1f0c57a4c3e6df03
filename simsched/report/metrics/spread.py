"""Distribution of a run's load over the machine: balance between nodes, locality, cost of failures.

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
    """Return the unit-seconds of type `kind` held on each rank; pools never released do not count."""
    held = allocations[allocations["type"] == kind]
    seconds = (held["release"] - held["alloc"]) * held["units"]
    return seconds.groupby(held["rank"]).sum().rename("unit_seconds")


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance between nodes: Jain index (1 is even), coefficient of variation, number of unused nodes."""

    jain: float
    variation: float
    unused: int


def node_balance(allocations: pd.DataFrame, targets: int, kind: str = "core") -> Balance:
    """Compare the nodes' unit-seconds; `targets` is the number of nodes of the cluster [Jain84]."""
    used = node_seconds(allocations, kind).to_numpy()
    return balance(pd.Series(np.concatenate([used, np.zeros(max(targets - len(used), 0))])))


def balance(loads: pd.Series[float]) -> Balance:
    """Compare loads, one per node [Jain84]."""
    mean = float(loads.mean()) if len(loads) else 0.0
    variation = float(loads.std(ddof=0) / mean) if mean else float("nan")
    return Balance(jain(loads), variation, int((loads == 0).sum()))


def spanned(allocations: pd.DataFrame, group_of: Mapping[Any, str]) -> pd.Series[int]:
    """Return the number of groups (racks, switches …) with nodes of each job [Pascual09].

    `group_of` maps a rank to its rack or switch; all other ranks count as one further group.
    """
    groups = allocations["rank"].map(group_of).fillna("?")
    return groups.groupby(allocations["id"], sort=False).nunique().rename("spanned")


def excess_span(allocations: pd.DataFrame, group_of: Mapping[Any, str]) -> pd.Series[float]:
    """Return the groups that each job spans over the fewest that its nodes need; 1 is optimal."""
    largest = pd.Series(group_of).value_counts().to_numpy()
    capacity = np.cumsum(np.sort(largest)[::-1])
    nodes = allocations.groupby("id", sort=False)["rank"].nunique()
    least = np.searchsorted(capacity, nodes.to_numpy()) + 1
    return (spanned(allocations, group_of) / least).rename("excess_span")


@dataclass(frozen=True, slots=True)
class FailureCost:
    """Cost of failures: unit-seconds of jobs that failed and of attempts that were repeated."""

    lost_by_failed_jobs: float
    lost_by_restarts: float
    jobs_failed: int
    jobs_restarted: int


def failure_cost(jobs: pd.DataFrame, allocations: pd.DataFrame, kind: str = "core") -> FailureCost:
    """Return the lost work [Schroeder06]: of FAILED jobs, and of all but the last attempt of each job."""
    failed = ran(jobs)
    failed = failed[failed["result"] == "FAILED"]
    early = allocations[allocations["type"] == kind]
    if len(early):
        early = early[early["attempt"] < early.groupby("id", sort=False)["attempt"].transform("max")]
    seconds = float(((early["release"] - early["alloc"]) * early["units"]).sum())
    return FailureCost(float(area(failed).sum()), seconds, len(failed), int(early["id"].nunique()))
