"""`QueueGroups`: the jobs that wait for resources in a run, by groups of queues.

The memory of queue policies and job orders: their attributes, as `copy` and `pickle` see them.

A policy of another package needs no method of its own: `__getstate__` of Python's copy protocol
gives its attributes, and it may define `__getstate__` and `__setstate__` to keep fewer.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from simsched.match.policies.policy import find_policy
from simsched.schedule.orders.fair_share import FairShare
from simsched.schedule.orders.multifactor import Multifactor
from simsched.schedule.orders.order import job_order
from simsched.schedule.orders.ranking import Order
from simsched.schedule.pass_context import PassContext, StartLimits
from simsched.schedule.policies.registry import queue_policy
from simsched.schedule.queue import WaitingQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from simsched.match.state.selection import Selection
    from simsched.schedule.maintenance import Calendar
    from simsched.schedule.pass_context import QueuePolicy
    from simsched.schedule.predictors.predictions import Predictions
    from simsched.schedule.profiles.plan import Plan
    from simsched.simulation.jobs.prepare import Joined, Prepared
    from simsched.simulation.options.run_config import RunConfig


def memory_of(value: Any, fresh: Any) -> dict[str, dict[str, Any]]:
    """Return class name → the attributes in which a policy or an order differs from a fresh one.

    Only differences are kept, because options and helpers of a policy need not be writable.  The
    memory of a policy inside another one is a memory in turn.
    """
    if isinstance(value, Order):  # a function and its name
        return {}
    known = attributes_of(fresh)
    found = {}
    for name, item in attributes_of(value).items():
        same = known.get(name)
        if _is_policy(item):
            found[name] = memory_of(item, same)
        elif not isinstance(item, Order):
            # arrays are not compared, and are always written
            comparable = not isinstance(item, np.ndarray) and type(same) is type(item)
            if not (comparable and same == item):
                found[name] = item
    return {type(value).__qualname__: found}


def recall(value: Any, memory: dict[str, dict[str, Any]]) -> None:
    """Give a fresh policy or order the memory of an equal one.

    Raises
    ------
    LookupError
        If it is the memory of another class.
    """
    if not memory:
        return
    attributes = memory[type(value).__qualname__]
    known = attributes_of(value)
    for name in [name for name in attributes if _is_policy(known.get(name))]:
        recall(known[name], attributes.pop(name))
    if hasattr(value, "__setstate__"):
        value.__setstate__(attributes)
        return
    for name, item in attributes.items():
        setattr(value, name, item)


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in slots too."""
    if is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    state = value.__getstate__()
    slots: dict[str, Any] = {}
    if isinstance(state, tuple):
        state, slots = state
    return {**(state or {}), **slots}


def _is_policy(value: Any) -> bool:
    return callable(getattr(value, "run_pass", None))


class QueueGroup(NamedTuple):
    """Queues that share targets: their waiting jobs, the context of their passes, and their policy."""

    queue: WaitingQueue
    context: PassContext
    policy: QueuePolicy


class WaitingLimits(StartLimits, Protocol):
    """Keeps waiting jobs that are over a limit out of view."""

    def add(self, job: int, group: QueueGroup) -> None:
        """Let a job wait in its group, in view or barred."""

    def forget(self, job: int, group: QueueGroup) -> None:
        """Forget a waiting job that was cancelled or whose queue was stopped."""

    def over_until(
        self,
        job: int,
        selection: Selection,
        time: float,
        gone: Collection[int] = (),
        before: Iterable[tuple[int, Selection]] = (),
    ) -> float | None:
        """Return until when (s) a waiting job with this allocation is over a limit at a time, or None."""

    def is_blocked(self, job: int) -> bool:
        """Whether a job of the same queue waits for a limit that blocks the jobs behind it."""

    def reason_of(self, job: int) -> str | None:
        """Return which limit a job waits for and who uses it; None if it waits for none."""


class QueueGroups:
    """All groups, and the jobs of queues that are stopped.

    Attributes
    ----------
    groups : the groups; without named queues there is one.
    parked : stopped queue → its jobs, which keep their places in the order of arrival.
    queued_cores : the sum of the sizes of the jobs that wait for resources.
    admission : which queue and group each job is in; None without queues and reservations.
    limits : what keeps jobs that are over a limit out of view; None without limits.
    barred : how many jobs wait for a limit.
    magnets : group of a magnetic reservation in a window → whether a job of other groups waits there, too.
    taken : job that runs in a magnetic reservation → the group of this.
    """

    def __init__(
        self,
        prepared: Prepared,
        plan: Plan,
        config: RunConfig,
        calendar: Calendar,
        predictions: Predictions | None = None,
    ) -> None:
        self._prepared = prepared
        self._predictions = predictions
        planned = prepared.table if predictions is None else predictions.table
        self._config = config
        self.parked: dict[str, list[int]] = {}
        self.queued_cores = 0
        self.limits: WaitingLimits | None = None
        self.barred = 0
        self.magnets: dict[int, Callable[[int], bool]] = {}
        self.taken: dict[int, int] = {}
        self.admission = admission = prepared.admission
        self.groups: list[QueueGroup] = []
        self.priority = None if prepared.priority is None else Multifactor(prepared.priority, prepared.table)
        """The order ``multifactor``, which all groups share; None under any other order."""
        steady = find_policy(config.match_policy).is_steady
        rng = None if steady else np.random.default_rng(config.seed)  # numpy.random takes 6 ms to import
        for _ in range(1 if admission is None else admission.group_count):
            queue = WaitingQueue(prepared.table, self.priority or job_order(config.order))
            context = PassContext(planned, plan, queue, config.match_policy, rng, calendar)
            policy = queue_policy(config.queue_policy, config.queue_options)
            self.groups.append(QueueGroup(queue, context, policy))
        orders = [group.queue.order for group in self.groups]
        self.shares: list[FairShare | Multifactor] = [o for o in orders if isinstance(o, FairShare)]
        """The orders that charge jobs for their use."""
        self._begins = self.priority if self.priority is not None and self.priority.charges else None
        if self._begins is not None:
            self.shares.append(self._begins)

    def __iter__(self) -> Iterator[QueueGroup]:
        return iter(self.groups)

    @property
    def waiting(self) -> int:
        """How many jobs wait for resources, those of stopped queues and those over a limit left out."""
        if len(self.groups) == 1:  # the usual case, and needed after each pass
            return len(self.groups[0].queue)
        all_ = sum(len(group.queue) for group in self.groups)
        return all_ - sum(map(len, map(self._guests, self.magnets)))

    def group_of(self, job: int) -> QueueGroup:
        """Return the group in which a job waits."""
        return self.groups[0 if self.admission is None else self.admission.groups[job]]

    def inside(self, job: int) -> int:
        """Return the number of the group in which a job started."""
        own = 0 if self.admission is None else self.admission.groups[job]
        return self.taken.get(job, own)

    @property
    def in_turn(self) -> list[QueueGroup]:
        """The groups in the order of their passes: those that others wait in, too, come first."""
        first = [self.groups[at] for at in self.magnets]
        return [*first, *(group for at, group in enumerate(self.groups) if at not in self.magnets)]

    def _guests(self, at: int) -> list[int]:
        group = self.groups[at]
        return [job for job in group.queue if self.group_of(job) is not group]

    def magnetize(self, at: int, attracts: Callable[[int], bool] | None) -> None:
        """Let waiting jobs of other groups wait in the group of a reservation, too; None: no longer."""
        if attracts is None:
            if self.magnets.pop(at, None) is not None:
                for job in self._guests(at):
                    self.groups[at].queue.remove(job)
        elif at not in self.magnets:
            self.magnets[at] = attracts
            queue = self.groups[at].queue
            waiting = sorted(job for group in self.groups for job in group.queue if job not in queue)
            for job in waiting:
                if attracts(job):
                    queue.add(job)

    def _leave_others(self, started: Iterable[tuple[int, Any, bool]]) -> None:
        """Take jobs that started in one group out of the queues of the others in which they waited."""
        for job, _, _ in started:
            own = self.group_of(job)
            for at in self.magnets:
                if job in self.groups[at].queue:
                    self.groups[at].queue.remove(job)
                elif job in own.queue and self.magnets[at](job):
                    self.taken[job] = at
            if job in own.queue:
                own.queue.remove(job)
                own.context.released = own.context.moved = True

    def name_of(self, job: int) -> str | None:
        """Return the name of a job's queue, or None."""
        named = None if self.admission is None else self.admission.of[job]
        return None if named is None else named.name

    def limit(self, limits: WaitingLimits) -> None:
        """Let the jobs of all groups wait and start under limits."""
        self.limits = limits
        for _, context, _ in self.groups:
            context.limits = limits

    @property
    def elsewhere(self) -> list[int]:
        """The jobs that a run that plays a log started on other nodes than the log names."""
        policies = (getattr(group.policy, "inner", group.policy) for group in self.groups)
        return [job for policy in policies for job in getattr(policy, "elsewhere", ())]

    def add(self, job: int) -> None:
        """Let a job wait for resources in the queue that it belongs to."""
        group = self.groups[0]
        if self.admission is not None:
            named = self.admission.of[job]
            if named is not None and named.name in self.parked:
                self.parked[named.name].append(job)
                return
            group = self.groups[self.admission.groups[job]]
        if self._predictions is not None:
            self._predictions.expect(job)
        self.queued_cores += self._prepared.sizes[job]
        if self.taken:
            self.taken.pop(job, None)
        if self.limits is None:
            queue = group.queue  # of a C type where this is compiled
            queue.add(job)
            if self.magnets:
                for at, attracts in self.magnets.items():
                    if attracts(job):
                        self.groups[at].queue.add(job)
        else:
            self.limits.add(job, group)

    def enroll(self, joined: Joined) -> None:
        """Give jobs that the table got a place in the orders."""
        table, first = self._prepared.table, joined.first
        if self.admission is not None and self.admission.group_count < len(self.groups):
            self._merge()
        if self.priority is not None and joined.priority is not None:
            self.priority.enroll(first, table.submits[first : len(table)], joined.priority)
        for queue, _, _ in self.groups:
            queue.enroll(first)
        for order in self.shares:
            if isinstance(order, FairShare):  # an open simulation refuses the other
                order.enlarge(table)

    def _merge(self) -> None:
        """Put the jobs of all queues into one group, because a job that is in no queue may run anywhere."""
        assert self.admission is not None
        ordinary = len(self.groups) - self.admission.group_count + self.admission.ordinary
        first, *others = self.groups[:ordinary]
        for group in others:
            for job in sorted(group.queue):
                first.queue.add(job)
        self.groups = [first, *self.groups[ordinary:]]
        self.shares = self.shares[:1]
        self.touch(released=True)

    def remove(self, job: int) -> None:
        """Take out a job that was cancelled, if it waits for resources."""
        group = self.group_of(job)
        if job in group.queue or job in group.queue.barred:
            self._take_out(job, group)
            self.touch(released=True)  # the job behind it may be the first now
        for parked in self.parked.values():
            if job in parked:
                parked.remove(job)

    def _take_out(self, job: int, group: QueueGroup) -> None:
        if job in group.queue:
            group.queue.remove(job)
        for at in self.magnets:
            if job in self.groups[at].queue:
                self.groups[at].queue.remove(job)
        self.queued_cores -= self._prepared.sizes[job]
        if self.limits is not None:
            self.limits.forget(job, group)

    def stop(self, name: str) -> None:
        """Stop a queue: none of its jobs start until `resume`."""
        assert self.admission is not None
        of = self.admission.of
        parked = self.parked.setdefault(name, [])
        for group in self.groups:
            for job in [*group.queue, *sorted(group.queue.barred)]:
                named = of[job]
                if named is not None and named.name == name and self.group_of(job) is group:
                    self._take_out(job, group)
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

    def expect_later(self) -> None:
        """Note that a running job is expected to end later."""
        for _, context, _ in self.groups:
            context.expect_later()

    def charge(self, job: int, seconds: float, now: float) -> None:
        """Charge the use of a job to its user and bank in every group, whichever queue it was in."""
        for order in self.shares:
            order.charge(self._prepared.table, job, seconds, now)

    def begin(self, started: Iterable[tuple[int, Any, bool]], now: float) -> None:
        """Note that jobs (the first of each tuple) start now, for orders and other queues that have them."""
        if self.magnets:
            self._leave_others(started)
        if self._begins is not None:
            for job, _, _ in started:
                self._begins.begin(job, now)

    def eligible(self, job: int, now: float) -> None:
        """Note that a job became eligible now, for orders that know its age."""
        if self.priority is not None:
            self.priority.eligible(job, now)

    def state(self) -> dict[str, Any]:
        """Return the waiting and parked jobs, and what contexts, policies and orders remember."""
        config, prepared = self._config, self._prepared
        policy, order = queue_policy(config.queue_policy, config.queue_options), job_order(config.order)
        if prepared.priority is not None:
            order = Multifactor(prepared.priority, prepared.table)
        return {
            "parked": self.parked,
            "queued_cores": self.queued_cores,
            "groups": [
                {
                    "queue": group.queue.state(),
                    "context": group.context.state(),
                    "policy": memory_of(group.policy, policy),
                    "order": {} if group.queue.static else memory_of(group.queue.order, order),
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
