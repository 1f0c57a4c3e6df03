"""`GrowingTable`: a job table to which jobs are added while a run goes on.

The arrays are longer than the table and are doubled when they are full.  Policies index them by job number,
so they never see the part behind the last job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.schedule.job_table import JobTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.match.requests.request import Content, Request

FIRST = 256
"""Jobs that the arrays have place for at first."""

_FLOATS = ("submits", "durations_array", "judged_array", "deadlines")
_INTEGERS = ("kinds_array", "priorities", "sizes", "users", "banks", "tiers", "partitions")


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


class GrowingTable(JobTable):
    """The jobs that have arrived so far.

    Parameters
    ----------
    judged_apart : whether candidates are judged by other seconds than the requested ones.
    tiered : whether jobs are in queues with priorities.
    partition_targets : that of `JobTable`.

    Attributes
    ----------
    by_kind : kind → its request; None if it can never be met.
    kind_sizes : kind → the size of its jobs.
    kind_demand : the columns of `demand` by kind.
    accounts : how many users and banks there are.
    plans : the same jobs with predicted seconds as their durations; None: plans go by the requested ones.
    """

    __slots__ = ("_banks", "_users", "by_kind", "kind_demand", "kind_sizes", "plans")
    __setattr__ = object.__setattr__  # that of a frozen class with slots fails in a subclass

    def __init__(
        self,
        *,
        judged_apart: bool = False,
        tiered: bool = False,
        partition_targets: Sequence[npt.NDArray[np.bool_]] = (),
    ) -> None:
        durations: list[float] = []
        floats: npt.NDArray[np.float64] = np.zeros(FIRST)
        integers: npt.NDArray[np.int64] = np.zeros(FIRST, dtype=np.int64)
        super().__init__(
            requests=[],
            kinds=[],
            submits=floats,
            durations=durations,
            judged=[] if judged_apart else durations,
            judged_array=floats.copy(),
            priorities=integers,
            types=(),
            demand=np.zeros((0, FIRST), dtype=np.int64),
            sizes=integers.copy(),
            tiers=integers.copy() if tiered else None,
            partitions=integers.copy() if tiered else None,
            partition_targets=partition_targets,
            users=integers.copy(),
            banks=integers.copy(),
        )
        self._set("durations_array", floats.copy())
        self._set("kinds_array", integers.copy())
        self.by_kind: list[Request | None] = []
        self.kind_sizes: list[int] = []
        self.kind_demand: npt.NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
        self._users: dict[str | None, int] = {}
        self._banks: dict[str | None, int] = {}
        self.plans: GrowingTable | None = None

    def with_predictions(self) -> GrowingTable:
        """Return a table that grows with this one and whose durations may become predicted seconds.

        Its `limits` are the durations of this table, and candidates are judged by the predictions.
        """
        self.plans = made = GrowingTable(
            tiered=self.tiers is not None, partition_targets=self.partition_targets
        )
        made._set("judged_array", made.durations_array)
        made._set("limits", self.durations)
        made.by_kind, made.kind_sizes = self.by_kind, self.kind_sizes
        return made

    def _set(self, name: str, value: Any) -> None:
        """Replace a column of the frozen base; those who read it take it from the table each time."""
        object.__setattr__(self, name, value)

    @property
    def accounts(self) -> tuple[int, int]:
        """The number of users, and of banks."""
        return len(self._users), len(self._banks)

    def requests_by_kind(self) -> list[Request | None]:
        """Return the request of each kind; None if it can never be met."""
        return self.by_kind

    def add_kind(self, request: Request | None, size: int, units: int) -> None:
        """Add a kind of which each job needs `units` of the one counted type."""
        self.by_kind.append(request)
        self.kind_sizes.append(size)
        column = np.array([[units]], dtype=np.int64)
        self.kind_demand = np.hstack((self.kind_demand, column))
        if self.plans is not None:  # it has the same lists
            self.plans.kind_demand = self.kind_demand

    def recount(
        self,
        single: str | None,
        content: Content | None,
        types: tuple[str, ...],
        demand: npt.NDArray[np.int64],
    ) -> None:
        """Count what jobs need otherwise from now on; the arguments are the fields of `JobTable`, by kind."""
        jobs = len(self)
        self.kind_demand = demand
        wide = np.zeros((len(types), self.capacity), dtype=np.int64)
        if jobs:
            wide[:, :jobs] = demand[:, self.kinds_array[:jobs]]
        self._set("single", single)
        self._set("content", content)
        self._set("types", types)
        self._set("demand", wide)
        # The list is that of the supplies, which look units up without the table.
        self.units[:] = wide[0, :jobs].tolist() if single else []
        if self.plans is not None:
            self.plans.recount(single, content, types, demand)

    def add(self, job: NewJob) -> bool:
        """Add a job of a known kind; its number is the next one.  Return whether the arrays were doubled."""
        number = len(self.kinds)
        doubled = number == len(self.kinds_array)
        if doubled:
            self._double()
        kind = job.kind
        self.requests.append(self.by_kind[kind])  # type: ignore[attr-defined]
        self.kinds.append(kind)
        self.durations.append(job.duration)
        if self.judged is not self.durations:
            self.judged.append(job.judged)
        self.kinds_array[number] = kind
        self.submits[number] = job.submit
        self.durations_array[number] = job.duration
        self.judged_array[number] = job.judged
        self.priorities[number] = job.priority
        self.sizes[number] = self.kind_sizes[kind]
        self.demand[:, number] = self.kind_demand[:, kind]
        if self.single is not None:
            self.units.append(int(self.kind_demand[0, kind]))
        self._add_accounts(number, job)
        if self.plans is not None:
            self.plans.add(job)
        return doubled

    def _add_accounts(self, number: int, job: NewJob) -> None:
        users, banks = self._users, self._banks
        assert self.users is not None
        assert self.banks is not None
        self.users[number] = users.setdefault(job.user, len(users))
        self.banks[number] = banks.setdefault(job.bank, len(banks))
        if self.tiers is not None:
            self.tiers[number] = job.tier
        if self.partitions is not None:
            self.partitions[number] = job.partition
        if job.deadline is not None and self.deadlines is None:
            self._set("deadlines", np.full(self.capacity, np.inf))
        if self.deadlines is not None:
            self.deadlines[number] = np.inf if job.deadline is None else job.deadline

    def change_duration(self, job: int, duration: float, judged: float) -> None:
        """Change the requested seconds of a job."""
        self.durations[job] = self.durations_array[job] = duration
        self.judged[job] = self.judged_array[job] = judged

    def _double(self) -> None:
        for name in (*_FLOATS, *_INTEGERS):
            column = getattr(self, name)
            if column is not None:
                fill = np.inf if name == "deadlines" else 0
                self._set(name, np.concatenate([column, np.full_like(column, fill)]))
        if self.limits is not self.durations:
            self._set("judged_array", self.durations_array)
        self._set("demand", np.hstack([self.demand, np.zeros_like(self.demand)]))
