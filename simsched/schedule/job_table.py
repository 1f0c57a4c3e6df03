"""`JobTable`: the facts about jobs that a queue policy may use, as columns indexed by job number.

The number of a job is its place in the workload's submit order. A closed run adds all its jobs at the
beginning, an open run those that arrive. Policies only read the table. Run times are not in it: no scheduler
knows them.

Like the kernel this file is plain Python, and is compiled where there is a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.match.kernel import view

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from simsched.arrays import Bools, Floats, Integers
    from simsched.match.requests.request import Content, Request


class Counting(NamedTuple):
    """How the requests of a run are counted; the fields are those of `JobTable`."""

    single: str | None
    content: Content | None
    types: tuple[str, ...]
    demand: Integers


ARRAYS = (
    *("kinds_array", "submits", "durations_array", "judged_array", "sizes", "priorities", "users", "banks"),
    *("tiers", "partitions", "deadlines"),
)
"""The columns that are arrays with a place for each job, or None."""


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
    demand : the least units of each type that a job of each kind needs, shape (types, kinds).
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
        judged_apart: bool = False,
        in_queues: bool = False,
        partition_targets: Sequence[Bools] = (),
    ) -> None:
        """Begin without jobs.

        With `judged_apart` candidates are judged by other seconds than the requested ones; `in_queues`: the
        jobs have tiers and partitions.
        """
        whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
        self.by_kind: list[Request | None] = []
        self.kind_sizes: list[int] = []
        self.kinds: list[int] = []
        self.requests: list[Request | None] = []
        self.durations: list[float] = []
        self.limits = self.durations
        self.judged: list[float] = [] if judged_apart else self.durations
        self.units: list[int] = []
        self.submits: Floats = real
        self.durations_array: Floats = real
        self.judged_array: Floats = real.copy() if judged_apart else real
        self.kinds_array: Integers = whole
        self.sizes: Integers = whole
        self.priorities: Integers = whole
        self.users: Integers = whole
        self.banks: Integers = whole
        self.tiers: Integers | None = whole if in_queues else None
        self.partitions: Integers | None = whole if in_queues else None
        self.partition_targets = partition_targets
        self.deadlines: Floats | None = None
        self.starts: Floats | None = None
        self.places: Mapping[int, Integers] = {}
        self._users: dict[Hashable, int] = {}
        self._banks: dict[Hashable, int] = {}
        self._predicted: JobTable | None = None
        self._view()
        self.recount(Counting(None, None, (), np.zeros((0, 0), dtype=np.int64)))

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
        self.single, self.content, self.types, self.demand = counting
        # The list is that of the supplies, which look units up without the table.
        self.units[:] = self.demand[0, self.kinds_array[: len(self)]].tolist() if self.single else []
        self._kind_units: list[int] = self.demand[0].tolist() if self.single else []
        if self._predicted is not None:
            self._predicted.recount(counting)

    def add_kind(self, request: Request | None, size: int, units: int) -> None:
        """Add a kind of which each job needs `units` of the one counted type."""
        self.by_kind.append(request)
        self.kind_sizes.append(size)
        self._kind_units.append(units)
        self.demand = np.hstack((self.demand, [[units]]))
        if self._predicted is not None:  # it has the same lists
            self._predicted.demand, self._predicted._kind_units = self.demand, self._kind_units

    def make_place(self, more: int) -> bool:
        """Make place for the next jobs; return whether the arrays were replaced."""
        length = len(self.kinds)
        if self._predicted is not None:
            self._predicted.make_place(more)
        place = len(self.kind_of)
        if length + more <= place:
            return False
        self._lengthen(max(length + more - place, length))
        return True

    def add(
        self,
        kind: int,
        submit: float,
        duration: float,
        judged: float,
        priority: int,
        user: Hashable,
        bank: Hashable,
        tier: int = 0,
        partition: int = 0,
        deadline: float | None = None,
    ) -> None:
        """Add the next job, for which there is place; the values are those of the columns."""
        at, users, banks = len(self.kinds), self._users, self._banks
        self.kinds.append(kind)
        self.requests.append(self.by_kind[kind])
        self.durations.append(duration)
        self.kind_of[at], self.submit_of[at], self.duration_of[at] = kind, submit, duration
        self.priority_of[at], self.size_of[at] = priority, self.kind_sizes[kind]
        self.user_of[at] = users.setdefault(user, len(users))
        self.bank_of[at] = banks.setdefault(bank, len(banks))
        if self.judged is not self.durations:
            self.judged.append(judged)
            self.judged_array[at] = judged
        if self.tiers is not None:
            self.tier_of[at], self.partition_of[at] = tier, partition
        if deadline is not None:
            if self.deadlines is None:
                self.deadlines = np.full(self.capacity, np.inf)
            self.deadlines[at] = deadline
        if self.single is not None:
            self.units.append(self._kind_units[kind])
        if self._predicted is not None:
            self._predicted.add(
                kind, submit, duration, judged, priority, user, bank, tier, partition, deadline
            )

    def _lengthen(self, more: int) -> None:
        """Give each array place for `more` jobs."""
        shared = self.judged_array is self.durations_array
        for name in ARRAYS:
            column = getattr(self, name)
            if column is not None:
                fill = np.full(more, np.inf if name == "deadlines" else 0, column.dtype)
                setattr(self, name, np.concatenate((column, fill)))
        if shared:
            self.judged_array = self.durations_array
        self._view()

    def _view(self) -> None:
        """Let single numbers be entered in the arrays, which is cheaper than through NumPy."""
        self.kind_of, self.size_of = view(self.kinds_array), view(self.sizes)
        self.submit_of: Any = view(self.submits)
        self.duration_of: Any = view(self.durations_array)
        self.priority_of = view(self.priorities)
        self.user_of, self.bank_of = view(self.users), view(self.banks)
        if self.tiers is not None and self.partitions is not None:
            self.tier_of, self.partition_of = view(self.tiers), view(self.partitions)

    def change_duration(self, job: int, duration: float, judged: float) -> None:
        """Change the requested seconds of a job."""
        self.durations[job] = self.durations_array[job] = duration
        self.judged[job] = self.judged_array[job] = judged

    def with_predictions(self) -> JobTable:
        """Return a table that grows with this one and whose durations may become predicted seconds.

        Candidates are judged by the predictions; the limits are the durations of this table.
        """
        made = JobTable(in_queues=self.tiers is not None, partition_targets=self.partition_targets)
        made.by_kind, made.kind_sizes, made._kind_units = self.by_kind, self.kind_sizes, self._kind_units
        made.single, made.content = self.single, self.content
        made.types, made.demand = self.types, self.demand
        made.kinds, made.requests, made.units = list(self.kinds), list(self.requests), list(self.units)
        for name in ARRAYS:
            column = getattr(self, name)
            setattr(made, name, None if column is None else column.copy())
        made.durations = made.judged = list(self.durations)
        made.judged_array = made.durations_array
        made.limits, made.starts, made.places = self.durations, self.starts, self.places
        made._users, made._banks = dict(self._users), dict(self._banks)
        made._view()
        self._predicted = made
        return made


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
