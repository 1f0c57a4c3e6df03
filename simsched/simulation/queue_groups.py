"""`QueueGroups`: the jobs that wait for resources in a run, by groups of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.schedule.orders.fairshare import FairShare
from simsched.schedule.orders.order import job_order
from simsched.schedule.pass_context import PassContext
from simsched.schedule.policies.registry import queue_policy
from simsched.schedule.queue import WaitingQueue
from simsched.simulation.memory import memory_of, recall

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from simsched.schedule.growing_table import GrowingTable
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.schedule.profiles.plan import Plan
    from simsched.simulation.admission import Admission
    from simsched.simulation.jobs.prepare import Prepared
    from simsched.simulation.options.run_config import RunConfig


class QueueGroup(NamedTuple):
    """Queues that share targets: their waiting jobs, the context of their passes, and their policy."""

    queue: WaitingQueue
    context: PassContext
    policy: QueuePolicy


class QueueGroups:
    """All groups, and the jobs of queues that are stopped.

    Attributes
    ----------
    groups : the groups; without named queues there is one.
    parked : stopped queue → its jobs, which keep their places in the order of arrival.
    queued_cores : the sum of the sizes of the jobs that wait for resources.
    """

    def __init__(
        self,
        prepared: Prepared,
        plan: Plan,
        config: RunConfig,
        calendar: Calendar,
        rng: np.random.Generator,
        admission: Admission | None,
    ) -> None:
        self._prepared = prepared
        self._config = config
        self.parked: dict[str, list[int]] = {}
        self.queued_cores = 0
        self._admission = admission if admission is not None and admission.group_count else None
        self.groups: list[QueueGroup] = []
        for _ in range(admission.group_count if admission else 1):
            queue = WaitingQueue(prepared.table, job_order(config.order))
            context = PassContext(prepared.table, plan, queue, config.match_policy, rng, calendar)
            policy = queue_policy(config.queue_policy, config.queue_options)
            self.groups.append(QueueGroup(queue, context, policy))
        orders = [group.queue.order for group in self.groups]
        self.shares = [order for order in orders if isinstance(order, FairShare)]
        """The orders that charge jobs for their use."""

    def __iter__(self) -> Iterator[QueueGroup]:
        return iter(self.groups)

    @property
    def waiting(self) -> int:
        """How many jobs wait for resources, those of stopped queues left out."""
        return sum(len(group.queue.ranks) for group in self.groups)

    def add(self, job: int) -> None:
        """Let a job wait for resources in the queue that it belongs to."""
        group = self.groups[0]
        if self._admission is not None:
            named = self._admission.of[job]
            if named is not None and named.name in self.parked:
                self.parked[named.name].append(job)
                return
            group = self.groups[self._admission.groups[job]]
        group.queue.add(job)
        self.queued_cores += self._prepared.sizes[job]

    def enroll(self, job: int, table: GrowingTable, accounts: tuple[int, int]) -> None:
        """Give a job that the table got a place in the orders; before it there were so many `accounts`."""
        for group in self.groups:
            group.queue.enroll(job)
        if table.accounts != accounts:
            for order in self.shares:
                order.enlarge(table)

    def merge(self) -> None:
        """Put all jobs into one group, because a job that is in no queue may run anywhere."""
        assert self._admission is not None
        first, *others = self.groups
        for group in others:
            for job in sorted(group.queue):
                first.queue.add(job)
        self._admission.groups[:] = [0] * len(self._admission.groups)
        self.groups = [first]
        self.shares = self.shares[:1]
        self.touch(released=True)

    def remove(self, job: int) -> None:
        """Take out a job that was cancelled, if it waits for resources."""
        queue = self.groups[0 if self._admission is None else self._admission.groups[job]].queue
        if job in queue:
            queue.remove(job)
            self.queued_cores -= self._prepared.sizes[job]
            self.touch(released=True)  # the job behind it may be the first now
        for parked in self.parked.values():
            if job in parked:
                parked.remove(job)

    def stop(self, name: str) -> None:
        """Stop a queue: none of its jobs start until `resume`."""
        assert self._admission is not None
        of = self._admission.of
        parked = self.parked.setdefault(name, [])
        for group in self.groups:
            for job in list(group.queue):
                named = of[job]
                if named is not None and named.name == name:
                    group.queue.remove(job)
                    self.queued_cores -= self._prepared.sizes[job]
                    parked.append(job)
        self.touch(released=True)

    def resume(self, name: str) -> None:
        """Let the jobs of a stopped queue start again."""
        for job in self.parked.pop(name, []):
            self.add(job)
        self.touch(released=True)

    def touch(self, *, released: bool, moved: bool = True) -> None:
        """Note that reservations may have `moved` and, if `released`, that more may fit."""
        for _, context, _ in self.groups:
            if released:
                context.released = True
            if moved:
                context.moved = True

    def charge(self, job: int, seconds: float, now: float) -> None:
        """Charge the use of a job to its user and bank in every group, whichever queue it was in."""
        for order in self.shares:
            order.charge(self._prepared.table, job, seconds, now)

    def state(self) -> dict[str, Any]:
        """Return the waiting and parked jobs, and what contexts, policies and orders remember."""
        return {
            "parked": self.parked,
            "queued_cores": self.queued_cores,
            "groups": [
                {
                    "queue": group.queue.state(),
                    "context": group.context.state(),
                    "policy": memory_of(group.policy, self._fresh_policy()),
                    "order": {} if group.queue.static else memory_of(group.queue.order, self._fresh_order()),
                }
                for group in self.groups
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the state of equal groups."""
        self.parked = state["parked"]
        self.queued_cores = state["queued_cores"]
        for group, saved in zip(self.groups, state["groups"], strict=True):
            group.queue.restore(saved["queue"])
            group.context.restore(saved["context"])
            recall(group.policy, saved["policy"])
            recall(group.queue.order, saved["order"])

    def _fresh_policy(self) -> QueuePolicy:
        return queue_policy(self._config.queue_policy, self._config.queue_options)

    def _fresh_order(self) -> Any:
        return job_order(self._config.order)
