"""`JobTable`: the facts about jobs that a queue policy may use, as columns indexed by job number.

The number of a job is its place in the workload's submit order. The engine makes the table once, and
policies only read it. Run times are not in it: no scheduler knows them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from simsched.match.requests.request import Content, Request

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JobTable:
    """Columns over all jobs of a workload; times are in seconds.

    Most columns are arrays, which take an array of jobs as an index.  `requests`, `kinds`, `durations`,
    `judged`, `limits` and `units` are lists.

    Attributes
    ----------
    requests : the compiled request of each job; None if the job can never run, and so never waits.
    kinds, kinds_array : the number of each job's request; equal requests have equal numbers.
    submits : submit time.
    durations, durations_array : requested seconds, by which plans are made; inf if unlimited. Under a
        predictor they are the predicted seconds.
    limits : the seconds after which a job is ended: the requested ones, also under a predictor.
    judged, judged_array : the seconds by which a backfill candidate is judged: the requested ones or, as
        in CQSim, the actual ones.
    priorities : greater goes first (RFC 21 urgency unless the queue has a priority for the job).
    types : the resource types in the requests.
    demand : the least units of each type that a job needs, shape (types, jobs).
    sizes : the size of each job for orders and fair share: its cores, those of whole nodes included. If
        the machine has no cores, its requested units, or its nodes.
    single : the type of which every request of the workload is a plain number of units, or None. If there
        is one, counts alone decide whether a job fits. It is ``slot`` where every request is a number of
        copies of one slot, `content`.
    content : the content of that slot on a target. Equal copies add up: a target with room for k copies
        has room for k - j beside j of them. So it does not matter on which targets the copies are.
    units : units of `single` that each job needs; empty without it.
    tiers : the priority of each job's queue: greater goes first, whatever the order. None: all are equal.
    deadlines : the time by which each job should end, inf without a deadline. None: no job has one.
    partitions : the number of the queue of each job. None: there are no named queues.
    partition_targets : partition → which targets it has; empty unless the policy needs that.
    starts : when a log started each job (s), NaN if it did not; None unless the policy plays the log.
    places : job → the targets on which the log ran it, as ordinals, for jobs whose targets are known.
    users, banks : numbers of the user and of the bank (the account) of each job, for fair share.
    """

    requests: Sequence[Request | None]
    kinds: list[int]
    submits: Floats
    durations: list[float]
    judged: list[float]
    judged_array: Floats
    priorities: Integers
    types: tuple[str, ...]
    demand: Integers
    sizes: Integers
    single: str | None = None
    content: Content | None = None
    units: list[int] = field(default_factory=list)
    tiers: Integers | None = None
    deadlines: Floats | None = None
    users: Integers | None = None
    banks: Integers | None = None
    partitions: Integers | None = None
    partition_targets: Sequence[Bools] = ()
    limits: list[float] = field(default_factory=list)
    starts: Floats | None = None
    places: Mapping[int, Integers] = field(default_factory=dict)
    durations_array: Floats = field(init=False)
    kinds_array: Integers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "durations_array", np.array(self.durations, dtype=np.float64))
        if not self.limits:
            object.__setattr__(self, "limits", self.durations)
        object.__setattr__(self, "kinds_array", np.fromiter(self.kinds, np.int64, len(self.kinds)))

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def capacity(self) -> int:
        """How many jobs the arrays have place for: all jobs, or more if the table grows."""
        return len(self.kinds_array)

    def requests_by_kind(self) -> list[Request | None]:
        """Return the request of each kind; None if it can never be met."""
        found = dict(zip(self.kinds, self.requests, strict=True))
        return [found.get(kind) for kind in range(max(found, default=-1) + 1)]


class ShownTable:
    """A `JobTable` for a plug-in, which cannot change it: its arrays are read-only, its lists copies."""

    def __init__(self, table: JobTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._table, name)
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return list(value) if isinstance(value, list) else value
