"""Which jobs the queues accept: the one home of these rules, for runs and for `feasibility`.

A rule returns a `Reason` against one job, or None.  `admit` applies them to all jobs of a run, with the
defaults and the constraints of their queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simsched.formats.jobspec.heterogeneous import part_queues, with_part_constraints
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.duration import format_duration
from simsched.match.explain.reason_codes import Reason
from simsched.simulation.queues import INF, SIZES
from simsched.workload.job import Job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.graph.index.index import Index
    from simsched.graph.index.types import Bools
    from simsched.simulation.queues import Queue, Queues


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
    return Reason("limit-duration", text, queue.name, queue.longest, seconds)


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


# --- all jobs of a run ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admission:
    """The jobs as their queues admit them.

    Attributes
    ----------
    jobs : the jobs with the constraint and default duration of their queue.
    rejected : job → the reason why it is rejected at submission.
    tiers : the priority of each job's queue.
    groups : the group of queues of each job: queues of one group share targets.
    group_count : how many groups there are.
    of : the queue of each job, or None.
    """

    jobs: tuple[Job, ...]
    rejected: Mapping[int, str]
    tiers: list[int]
    groups: list[int]
    group_count: int
    of: list[Queue | None]


def admit(
    jobs: Sequence[Job], queues: Queues, index: Index, *, no_limit: str = "queue", together: bool = False
) -> Admission:
    """Put every job into its queue: constraint, default duration, limits, and group.

    A job that names no queue goes into the default one; without a default it is in no queue and
    may use every target.  `no_limit` is for a job without a duration in a queue that has a limit and no
    default: it gets the limit of the ``queue``, or a ``reject``. With `together` all queues are one group.
    """
    made: list[Job] = []
    rejected: dict[int, str] = {}
    of: list[Queue | None] = []
    known: dict[tuple[int, str], Jobspec] = {}
    linked: dict[tuple[str, ...], None] = {}  # queues of the parts of a job
    for number, job in enumerate(jobs):
        name = name_of_queue(job.queue, job.jobspec, queues)
        queue = queues.queues.get(name) if name is not None else None
        if name is not None and queue is None:
            rejected[number] = rejection(unknown_queue(name))
        for other in part_queues(job.jobspec):
            if other is not None and other not in queues.queues:
                rejected.setdefault(number, rejection(unknown_queue(other)))
            elif other is not None and queue is not None:
                linked[queue.name, other] = None
        of.append(queue)
        made.append(job if queue is None else _placed(job, queue, known, queues, no_limit))
    anywhere = any(queue is None and number not in rejected for number, queue in enumerate(of))
    group_of, count = groups_of_queues(queues, index, anywhere=anywhere or together, linked=linked)
    groups = [0 if queue is None else group_of[queue.name] for queue in of]
    for number, (job, queue) in enumerate(zip(made, of, strict=True)):
        if queue is None or number in rejected:
            continue
        mine = (queue.name, *part_queues(job.jobspec))
        for one in dict.fromkeys(name or queue.name for name in mine):
            reason = disabled_queue(queues.queues[one])
            reason = reason or too_long(queues.queues[one], job.duration, jobs[number].duration)
            if reason is not None:
                rejected.setdefault(number, rejection(reason))
    tiers = [0 if queue is None else queue.priority for queue in of]
    return Admission(tuple(made), rejected, tiers, groups, count, of)


def rejection(reason: Reason) -> str:
    """Return a reason as the tables of a run have it."""
    return rejection_text(reason.text)


def rejection_text(text: str) -> str:
    """Return why a job was rejected, as the tables of a run have it."""
    return f"rejected: {text}"


def size_fault(queue: Queue, sizes: Mapping[str, int]) -> str | None:
    """Return the first limit on the size of a job that is not met, as the tables of a run have it."""
    return next(map(rejection, wrong_sizes(queue, sizes)), None)


def _placed(
    job: Job, queue: Queue, known: dict[tuple[int, str], Jobspec], queues: Queues, no_limit: str
) -> Job:
    spec = known.get((id(job.jobspec), queue.name))
    if spec is None:
        spec = known[id(job.jobspec), queue.name] = constrained(job.jobspec, queue, queues)
    duration = duration_in(queue, job.duration, no_limit)
    fields = {name: getattr(job, name) for name in job.__struct_fields__}
    return Job(**{**fields, "jobspec": spec, "queue": queue.name, "duration": duration})


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
