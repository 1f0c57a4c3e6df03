"""Which jobs the queues accept: the one home of these rules, for runs and for `feasibility`.

A rule returns a `Reason` against one job, or None.  `Admission` applies them to the jobs of a run one by one,
with the defaults and the constraints of their queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from simsched.formats.jobspec.heterogeneous import part_queues, with_part_constraints
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.duration import format_duration
from simsched.match.explain.reason_codes import Reason
from simsched.simulation.queues import INF, SIZES
from simsched.simulation.reservations.reservation_rules import reservation_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from simsched.arrays import Bools
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.index.index import Index
    from simsched.simulation.options.run_config import RunConfig
    from simsched.simulation.queues import Queue, Queues
    from simsched.simulation.reservations.reservation_rules import AdvanceReservation
    from simsched.workload.job import Job


# --- the rules -----------------------------------------------------------------------------------


def unknown_queue(name: str) -> Reason:
    """Return the reason against a job that names a queue which does not exist."""
    return Reason("queue-unknown", f"there is no queue {name!r}", queue=name)


def disabled_queue(queue: Queue) -> Reason | None:
    """Return the reason against every job of a queue that accepts none."""
    if queue.enabled:
        return None
    return Reason("queue-disabled", f"queue {queue.name} accepts no jobs", queue=queue.name)


def too_long(queue: Queue, duration: float | None, requested: float | None) -> Reason | None:
    """Return the reason against a job of this duration (seconds; None: no limit).

    A job that has `requested` none has the default of its queue.
    """
    seconds = INF if duration is None else duration
    if seconds <= queue.longest:
        return None
    asked = "no limit" if duration is None else format_duration(duration)
    by_default = queue.default_duration is not None and requested in (None, INF)
    who = "and the default duration is" if by_default else "the job asks for"
    text = f"queue {queue.name} allows {format_duration(queue.longest)}, {who} {asked}"
    return Reason("limit-duration", text, queue.name, queue.longest, duration)


def wrong_sizes(queue: Queue, sizes: Mapping[str, int]) -> Iterator[Reason]:
    """Yield a reason for each limit on the size that is not met; `sizes` are nnodes, ncores, ngpus."""
    for limits, code, verb in ((queue.most, "max", "allows"), (queue.least, "min", "requires")):
        for key, limit in limits.items():
            asked, word = sizes.get(key, 0), SIZES[key]
            if asked > limit if code == "max" else asked < limit:
                text = f"queue {queue.name} {verb} {limit} {word}, the job asks for {asked}"
                yield Reason(f"limit-{word}-{code}", text, queue.name, limit, asked)


# --- queue, defaults and constraint --------------------------------------------------------------


def name_of_queue(own: str | None, jobspec: Jobspec, queues: Queues) -> str | None:
    """Return the name of a job's queue: its `own`, its jobspec's, or the default; None if there is none."""
    return own if own is not None else jobspec.queue or queues.default


def duration_in(queue: Queue, requested: float | None, no_limit: str) -> float | None:
    """Return the duration (seconds) of a job in a queue, None for unlimited.

    A job without one gets the queue's default, even one above the limit, which then refuses the job, as in
    Flux (a partition of Slurm has a default of at most its MaxTime from the start).  Without a default it
    gets the limit, as Slurm's MaxTime is, unless `no_limit` has it rejected.
    """
    if requested is not None and requested != INF:
        return requested
    given = INF
    if queue.default_duration is not None:
        given = queue.default_duration
    elif no_limit == "queue":
        given = queue.longest
    return None if given == INF else given


def constrained(spec: Jobspec, queue: Queue, others: Queues | None = None) -> Jobspec:
    """Return the jobspec with the queue's constraint and-ed to its own.

    The parts of a heterogeneous job that have queues of their own get the constraints of these.
    """
    if others is not None and (named := part_queues(spec)):
        apart = [others.queues.get(name or "", queue) for name in named]
        return with_part_constraints(spec, [one.constraint for one in apart])
    if queue.constraint is None:
        return spec
    mine = spec.constraint
    both = queue.constraint if mine is None else rfc31.And((mine, queue.constraint))
    return spec.with_system(constraints=rfc31.to_json(both))


# --- the jobs of a run -----------------------------------------------------------------------------


class Admission:
    """The jobs of a run as their queues and advance reservations admit them, by job number.

    Attributes
    ----------
    jobs : the jobs with the constraint and default duration of their queue.
    rejected : job → the reason why it is rejected at submission.
    tiers : the priority of each job's queue.
    partitions : the number of each job's queue (`partition_numbers`).
    of : the queue of each job, or None.
    groups : the group of queues of each job: queues of one group share targets.  The jobs of a reservation
        are in a group of its own, behind those of the queues.
    ordinary : how many groups the queues have.
    """

    def __init__(
        self,
        queues: Queues | None,
        index: Index,
        reservations: Sequence[AdvanceReservation] = (),
        *,
        no_limit: str = "queue",
        together: bool = False,
    ) -> None:
        """Begin without jobs; the first that `extend` admits decide how the queues are grouped.

        `no_limit` is for a job without a duration in a queue that has a limit and no default: it gets the
        limit of the ``queue``, or a ``reject``.  With `together` all queues are one group.
        """
        self._queues, self._index, self._no_limit, self._together = queues, index, no_limit, together
        self._reserved = {one.name: (at, one) for at, one in enumerate(reservations)}
        self._numbers = partition_numbers(queues)
        self._specs: dict[tuple[int, str], tuple[Jobspec, Jobspec]] = {}
        self._linked: dict[tuple[str, ...], None] = {}  # queues of the parts of a job
        self._group_of: dict[str, int] = {}
        self.jobs: list[Job] = []
        self.rejected: dict[int, str] = {}
        self.tiers: list[int] = []
        self.partitions: list[int] = []
        self.groups: list[int] = []
        self.of: list[Queue | None] = []
        self.ordinary = 1

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return self.ordinary + len(self._reserved)

    def extend(self, jobs: Sequence[Job]) -> list[Job]:
        """Admit the next jobs, and return them as their queues have them.

        Raises
        ------
        ConfigError
            for an attribute of a job that is not a name.
        """
        first = len(self.jobs)
        for job in jobs:
            self._place(job)
        new = range(first, len(self.jobs))
        if self._queues is not None and (self.ordinary > 1 or not self._group_of):
            # a job that is in no queue may run on the targets of all
            roams = any(self.of[number] is None and number not in self.rejected for number in new)
            if not self._group_of:
                self._group_of, self.ordinary = groups_of_queues(
                    self._queues, self._index, anywhere=self._together or roams, linked=self._linked
                )
            elif roams:
                self.groups[:] = [max(0, group - self.ordinary + 1) for group in self.groups]
                self._group_of, self.ordinary = dict.fromkeys(self._group_of, 0), 1
        self.groups += map(self._group, new)
        return self.jobs[first:]

    def _group(self, number: int) -> int:
        reserved = self._reserved.get(reservation_of(self.jobs[number]) or "") if self._reserved else None
        if reserved is not None:
            return self.ordinary + reserved[0]
        queue = self.of[number]
        return 0 if queue is None else self._group_of[queue.name]

    def _place(self, job: Job) -> None:
        """Put a job into its queue, and note the first reason against it.

        A job that names no queue goes into the default one; without a default it is in no queue and may use
        every target.
        """
        number, queue, placed, faults = len(self.of), None, job, list[str]()
        if self._queues is not None:
            queues = self._queues.queues
            name = name_of_queue(job.queue, job.jobspec, self._queues)
            queue = None if name is None else queues.get(name)
            parts = [part for part in part_queues(job.jobspec) if part is not None]
            odd = [part for part in parts if part not in queues]
            if name is not None and queue is None:
                odd.insert(0, name)
            faults += [rejection(unknown_queue(one)) for one in odd]
            if queue is not None:
                placed = self._in_queue(job, queue)
                if not faults:
                    self._linked.update(dict.fromkeys((queue.name, part) for part in parts))
                    faults += self._faults(placed, job.duration, dict.fromkeys((queue.name, *parts)))
        if self._reserved:
            faults += self._unreserved(placed)
        if faults:
            self.rejected[number] = faults[0]
        self.of.append(queue)
        self.jobs.append(placed)
        self.tiers.append(0 if queue is None else queue.priority)
        self.partitions.append(self._numbers[None if queue is None else queue.name])

    def _in_queue(self, job: Job, queue: Queue) -> Job:
        assert self._queues is not None
        key = (id(job.jobspec), queue.name)
        known = self._specs.get(key)
        if known is None:  # with the jobspec that is known by its id, so that this is not freed
            known = self._specs[key] = (constrained(job.jobspec, queue, self._queues), job.jobspec)
        duration = duration_in(queue, job.duration, self._no_limit)
        return replace(job, jobspec=known[0], queue=queue.name, duration=duration)

    def _faults(self, job: Job, requested: float | None, names: Iterable[str]) -> Iterator[str]:
        """Yield the reasons of its queues against a job."""
        assert self._queues is not None
        for name in names:
            queue = self._queues.queues[name]
            reason = disabled_queue(queue) or too_long(queue, job.duration, requested)
            if reason is not None:
                yield rejection(reason)

    def _unreserved(self, job: Job) -> Iterator[str]:
        """Yield the reason against a job that names a reservation which it may not use."""
        name = reservation_of(job)
        if name is not None:
            known = self._reserved.get(name)
            fault = f"there is no reservation {name!r}" if known is None else known[1].fault_of(job)
            if fault is not None:
                yield rejection_text(fault)


def admission_to(config: RunConfig, index: Index) -> Admission | None:
    """Return the admission of jobs under a configuration; None if there are no queues and no reservations."""
    if config.queues is None and not config.reservations:
        return None
    together, no_limit = config.schedules_as_slurm, config.no_limit
    return Admission(config.queues, index, config.reservations, no_limit=no_limit, together=together)


def rejection(reason: Reason) -> str:
    """Return a reason as the tables of a run have it."""
    return rejection_text(reason.text)


def rejection_text(text: str) -> str:
    """Return why a job was rejected, as the tables of a run have it."""
    return f"rejected: {text}"


def size_fault(queue: Queue, sizes: Mapping[str, int]) -> str | None:
    """Return the first limit on the size of a job that is not met, as the tables of a run have it."""
    return next(map(rejection, wrong_sizes(queue, sizes)), None)


def partition_numbers(queues: Queues | None) -> dict[str | None, int]:
    """Return a number for each queue by its name, and one for no queue."""
    names: list[str | None] = [None] if queues is None else [*queues.queues, None]
    return {name: number for number, name in enumerate(names)}


def partition_targets(queues: Queues | None, index: Index) -> tuple[Bools, ...]:
    """Return the targets of each queue in the order of `partition_numbers`."""
    constraints = [] if queues is None else [queue.constraint for queue in queues.queues.values()]
    return tuple(index.targets_matching(constraint) for constraint in (*constraints, None))


def groups_of_queues(
    queues: Queues, index: Index, *, anywhere: bool, linked: Collection[tuple[str, ...]] = ()
) -> tuple[dict[str, int], int]:
    """Group the queues whose targets overlap, directly or through a third.

    They are one group if there are jobs in no queue, which may run `anywhere`.  Queues that are `linked` by
    the parts of a heterogeneous job are in one group.
    """
    if anywhere:
        return dict.fromkeys(queues.queues, 0), 1
    groups: list[tuple[Any, list[str]]] = []
    for name, queue in queues.queues.items():
        mine, names = index.targets_matching(queue.constraint), [name]
        apart = []
        for targets, others in groups:
            pairs = {(a, b) for a in others for b in names} if linked else set()
            if (targets & mine).any() or any(pair in pairs or pair[::-1] in pairs for pair in linked):
                mine, names = targets | mine, [*others, *names]
            else:
                apart.append((targets, others))
        groups = [*apart, (mine, names)]
    groups.sort(key=lambda group: min(list(queues.queues).index(name) for name in group[1]))
    group_of = {name: number for number, (_, names) in enumerate(groups) for name in names}
    return group_of, len(groups)
