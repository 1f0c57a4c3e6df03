"""`JobTable`: the facts about jobs that a queue policy may use, as columns indexed by job number.

The number of a job is its place in the workload's submit order. All jobs of a closed run are in the table
from the beginning; an open run adds each job when it arrives. Policies only read the table. Run times are not
in it: no scheduler knows them.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import numpy.typing as npt

    from simsched.match.requests.request import Content, Request

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

LEAST = 256
"""Jobs that the arrays of a table have place for when it begins to grow."""


class Counting(NamedTuple):
    """How the requests of a run are counted; the fields are those of `JobTable`, but `demand` is by kind."""

    single: str | None
    content: Content | None
    types: tuple[str, ...]
    demand: Integers


class NewJob(NamedTuple):
    """The facts about a job that is added; the fields are those of `JobTable`."""

    kind: int
    submit: float
    duration: float
    judged: float
    priority: int
    user: str | None
    bank: str | None
    tier: int
    partition: int
    deadline: float | None


class JobTable:
    """Columns over the jobs of a run; times are in seconds.

    Most columns are arrays, which take an array of jobs as an index. Once jobs are added, the arrays are
    longer than the table; no job has the numbers behind its end. `requests`, `kinds`, `durations`, `judged`,
    `limits` and `units` are lists.

    Attributes
    ----------
    by_kind : kind → its compiled request; None if it can never be met.
    kind_sizes : kind → the size of its jobs.
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

    def __init__(
        self,
        *,
        by_kind: list[Request | None],
        kind_sizes: list[int],
        counting: Counting,
        kinds: list[int],
        submits: Floats,
        durations: list[float],
        judged: list[float],
        priorities: Integers,
        users: Sequence[Hashable],
        banks: Sequence[Hashable],
        tiers: Integers | None = None,
        deadlines: Floats | None = None,
        partitions: Integers | None = None,
        partition_targets: Sequence[Bools] = (),
        starts: Floats | None = None,
        places: Mapping[int, Integers] | None = None,
    ) -> None:
        self.by_kind, self.kind_sizes = by_kind, kind_sizes
        self.kinds, self.kinds_array = kinds, np.array(kinds, dtype=np.int64)
        self.requests = list(map(by_kind.__getitem__, kinds))
        self.sizes: Integers = np.array(kind_sizes, dtype=np.int64)[self.kinds_array]
        self.submits = submits
        self.durations, self.durations_array = durations, np.array(durations, dtype=np.float64)
        self.limits = durations
        self.judged = judged
        self.judged_array = self.durations_array
        if judged is not durations:
            self.judged_array = np.array(judged, dtype=np.float64)
        self.priorities, self.tiers, self.deadlines = priorities, tiers, deadlines
        self.partitions, self.partition_targets = partitions, partition_targets
        self.starts, self.places = starts, {} if places is None else places
        self._users: dict[Hashable, int] = {}
        self._banks: dict[Hashable, int] = {}
        self.users, self.banks = _numbered(users, self._users), _numbered(banks, self._banks)
        self._predicted: JobTable | None = None
        self.units: list[int] = []
        self.recount(counting)

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def capacity(self) -> int:
        """How many jobs the arrays have place for: all jobs, or more once jobs were added."""
        return len(self.kinds_array)

    @property
    def accounts(self) -> tuple[int, int]:
        """The number of users, and of banks."""
        return len(self._users), len(self._banks)

    def recount(self, counting: Counting) -> None:
        """Count the needs of jobs like this from now on."""
        self.single, self.content, self.types, self._kind_demand = counting
        self.demand: Integers = np.zeros((len(self.types), self.capacity), dtype=np.int64)
        self.demand[:, : len(self)] = self._kind_demand[:, self.kinds_array[: len(self)]]
        # The list is that of the supplies, which look units up without the table.
        self.units[:] = self.demand[0, : len(self)].tolist() if self.single else []
        if self._predicted is not None:
            self._predicted.recount(counting)

    def add_kind(self, request: Request | None, size: int, units: int) -> None:
        """Add a kind of which each job needs `units` of the one counted type."""
        self.by_kind.append(request)
        self.kind_sizes.append(size)
        self._kind_demand = np.hstack((self._kind_demand, [[units]]))
        if self._predicted is not None:  # it has the same lists
            self._predicted._kind_demand = self._kind_demand

    def add(self, job: NewJob) -> bool:
        """Add a job of a known kind; its number is the next one.  Return whether the arrays were replaced."""
        number, kind = len(self.kinds), job.kind
        full = number == self.capacity
        if full:
            self._lengthen(max(number, LEAST))
        self.kinds.append(kind)
        self.requests.append(self.by_kind[kind])
        self.durations.append(job.duration)
        if self.judged is not self.durations:
            self.judged.append(job.judged)
        if self.single is not None:
            self.units.append(int(self._kind_demand[0, kind]))
        self.kinds_array[number] = kind
        self.submits[number] = job.submit
        self.durations_array[number] = job.duration
        self.judged_array[number] = job.judged
        self.priorities[number] = job.priority
        self.sizes[number] = self.kind_sizes[kind]
        self.demand[:, number] = self._kind_demand[:, kind]
        self.users[number] = self._users.setdefault(job.user, len(self._users))
        self.banks[number] = self._banks.setdefault(job.bank, len(self._banks))
        if self.tiers is not None:
            self.tiers[number] = job.tier
        if self.partitions is not None:
            self.partitions[number] = job.partition
        if job.deadline is not None and self.deadlines is None:
            self.deadlines = np.full(self.capacity, np.inf)
        if self.deadlines is not None:
            self.deadlines[number] = np.inf if job.deadline is None else job.deadline
        if self._predicted is not None:
            self._predicted.add(job)
        return full

    def _lengthen(self, more: int) -> None:
        """Give each array place for `more` jobs."""
        shared = self.judged_array is self.durations_array
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray) and name != "_kind_demand":
                fill = np.full((*column.shape[:-1], more), np.inf if name == "deadlines" else 0, column.dtype)
                setattr(self, name, np.concatenate((column, fill), axis=-1))
        if shared:
            self.judged_array = self.durations_array

    def change_duration(self, job: int, duration: float, judged: float) -> None:
        """Change the requested seconds of a job."""
        self.durations[job] = self.durations_array[job] = duration
        self.judged[job] = self.judged_array[job] = judged

    def with_predictions(self) -> JobTable:
        """Return a table that grows with this one and whose durations may become predicted seconds.

        Candidates are judged by the predictions; the limits are the durations of this table.
        """
        made = copy(self)
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(made, name, column.copy())
        made.kinds, made.requests, made.units = list(self.kinds), list(self.requests), list(self.units)
        made.durations = made.judged = list(self.durations)
        made.judged_array = made.durations_array
        made._users, made._banks = dict(self._users), dict(self._banks)
        self._predicted = made
        return made


def _numbered(names: Sequence[Hashable], numbers: dict[Hashable, int]) -> Integers:
    """Return a number for each name, in order of first appearance; None counts as a name."""
    numbers.update((name, number) for number, name in enumerate(dict.fromkeys(names)))
    return np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))


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
