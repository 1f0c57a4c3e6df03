"""Named queues after RFC 33: their targets, limits, defaults and priorities.

A queue names the targets that it may use (``requires``: properties, or ``hosts``), limits and
defaults.  A virtual queue has a ``parent``, whose targets and limits it has unless it has its
own.  A queue's constraint is and-ed to the job's.  Queues whose targets overlap are scheduled
as one, those of higher priority first; queues on disjoint targets are scheduled each by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc import constraint as rfc31
from simsched.formats.rfc.duration import format_duration, parse_time
from simsched.formats.rfc.hostlist import Hostlist
from simsched.workload.job import Job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.constraint import Constraint
    from simsched.graph.index.index import Index

KEYS = ("requires", "hosts", "parent", "priority", "policy", "closed", "preempts")
WHERE = ("requires", "hosts")
DEFAULTS = ("duration", "queue")
"""Attributes that a queue, or all queues, may set for jobs that do not set them."""

INF = float("inf")
MOST = 2**31
"""Whole numbers in a configuration are less than this."""

_SIZES = {"nnodes": "nodes", "ncores": "cores", "ngpus": "gpus"}


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue.

    Attributes
    ----------
    constraint : the targets it may use; None: all.
    priority : between queues; greater goes first, whatever the job order.
    longest : most seconds that a job may request; jobs without a duration may get it (see `admit`).
    most, least : resource type → most and least units that a job may request.
    default_duration : seconds for jobs without a duration.
    closed : times (stop, start) between which nothing of the queue starts.
    preempts : whether its jobs may preempt running jobs that are preemptible.
    """

    name: str
    constraint: Constraint | None = None
    priority: int = 0
    longest: float = INF
    most: Mapping[str, int] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    default_duration: float | None = None
    closed: tuple[tuple[float, float], ...] = ()
    preempts: bool = False


@dataclass(frozen=True, slots=True)
class Queues:
    """All queues of a cluster by name, and the one for jobs that name none."""

    queues: Mapping[str, Queue]
    default: str | None = None

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        *,
        default: str | None = None,
        policy: Mapping[str, Any] | None = None,
        where: str = "queues",
    ) -> Queues:
        """Read ``queues.NAME`` of a configuration (RFC 33); `policy` is that of queues without their own.

        Raises
        ------
        ConfigError, FormatError
            For unknown keys, a parent or a default queue that does not exist, and values of a wrong type.
        """
        if not isinstance(document, dict) or not document:
            raise ConfigError("no queues", where=where, expected="queues.NAME = {requires, hosts, policy …}")
        made: dict[str, Queue] = {}
        common = _with_policy(Queue(""), policy or {}, "policy")
        for name in document:
            _make(name, document, made, (), where, common)
        if default is not None and default not in made:
            raise ConfigError(
                f"the default queue {default!r} does not exist", where=where, expected=", ".join(made)
            )
        return cls(made, default)


def _make(
    name: str,
    document: Mapping[str, Any],
    made: dict[str, Queue],
    above: tuple[str, ...],
    where: str,
    common: Queue,
) -> Queue:
    if name in made:
        return made[name]
    place = f"{where}.{name}"
    entry = document[name]
    if not isinstance(entry, dict):
        raise ConfigError("a queue is a table", where=place, expected=", ".join(KEYS))
    _refuse_unknown(entry, KEYS, place)
    base = replace(common, name=name)
    parent = entry.get("parent")
    if parent is not None:
        if not isinstance(parent, str) or parent not in document or parent in (*above, name):
            raise ConfigError(
                f"the parent {parent!r} is not another queue", where=place, expected="another queue's name"
            )
        base = replace(_make(parent, document, made, (*above, name), where, common), name=name)
    made[name] = _with_policy(
        replace(
            base,
            constraint=base.constraint if entry.keys().isdisjoint(WHERE) else _constraint(entry, place),
            priority=_integer(entry.get("priority", base.priority), f"{place}.priority"),
            preempts=_flag(entry.get("preempts", base.preempts), f"{place}.preempts"),
            closed=_windows(entry["closed"], f"{place}.closed") if "closed" in entry else base.closed,
        ),
        entry.get("policy", {}),
        f"{place}.policy",
    )
    return made[name]


def _refuse_unknown(entry: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    if not isinstance(entry, dict):
        raise ConfigError("not a table", where=place, expected=", ".join(known))
    odd = next((key for key in entry if key not in known), None)
    if odd is not None:
        raise ConfigError(f"unknown key {odd!r}", where=place, expected=", ".join(known))


def _constraint(entry: Mapping[str, Any], place: str) -> Constraint | None:
    requires, hosts = entry.get("requires"), entry.get("hosts")
    parts: list[Constraint] = []
    if requires is not None:
        if not isinstance(requires, list) or not all(isinstance(name, str) for name in requires):
            raise ConfigError("requires is a list of properties", where=f"{place}.requires")
        parts.append(rfc31.from_json({"properties": requires}, f"{place}.requires"))
    if hosts is not None and hosts != "all":
        parts.append(rfc31.Hosts(Hostlist.parse(str(hosts), where=f"{place}.hosts")))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else rfc31.And(tuple(parts))


def _integer(value: Any, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{value!r} is not a whole number", where=place)
    if abs(value) >= MOST:
        raise ConfigError("the number is too large", where=place, expected=f"less than {MOST}")
    return value


def _flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{value!r} is not true or false", where=place)
    return value


def _windows(value: Any, place: str) -> tuple[tuple[float, float], ...]:
    found = []
    if not isinstance(value, list | tuple):
        raise ConfigError("not a list of windows", where=place, expected='[["8h", "18h"], …]')
    for item in value:
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise ConfigError("not a window", where=place, expected='[["8h", "18h"], …]')
        stop, start = (parse_time(text, where=place) for text in item)
        if not stop < start:
            raise ConfigError(f"the window {item} ends before it begins", where=place)
        found.append((stop, start))
    return tuple(_merged(sorted(found)))


def _merged(windows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return windows, given in order, joined where they overlap or touch."""
    apart: list[tuple[float, float]] = []
    for stop, start in windows:
        if apart and stop <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(start, apart[-1][1]))
        else:
            apart.append((stop, start))
    return apart


def _with_policy(queue: Queue, policy: Mapping[str, Any], place: str) -> Queue:
    """Read limits and defaults: ``limits.duration``, ``limits.job-size.max.nnodes`` and the like."""
    _refuse_unknown(policy, ("limits", "jobspec", "access"), place)
    limits = policy.get("limits", {})
    _refuse_unknown(limits, ("duration", "job-size"), f"{place}.limits")
    if "duration" in limits:
        queue = replace(queue, longest=parse_time(limits["duration"], where=f"{place}.limits.duration"))
    size = limits.get("job-size", {})
    _refuse_unknown(size, ("max", "min"), f"{place}.limits.job-size")
    most = _sizes(size.get("max", {}), f"{place}.limits.job-size.max")
    least = _sizes(size.get("min", {}), f"{place}.limits.job-size.min")
    queue = replace(queue, most={**queue.most, **most}, least={**queue.least, **least})
    system = policy
    for key, known in (("jobspec", ("defaults",)), ("defaults", ("system",)), ("system", DEFAULTS)):
        system = system.get(key, {})
        place = f"{place}.{key}"
        _refuse_unknown(system, known, place)
    if "duration" in system:
        seconds = parse_time(system["duration"], where=f"{place}.duration")
        queue = replace(queue, default_duration=seconds)
    return queue


def _sizes(value: Mapping[str, Any], place: str) -> dict[str, int]:
    _refuse_unknown(value, tuple(_SIZES), place)
    return {key: _integer(number, f"{place}.{key}") for key, number in value.items()}


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


def admit(jobs: Sequence[Job], queues: Queues, index: Index, *, no_limit: str = "queue") -> Admission:
    """Put every job into its queue: constraint, default duration, limits, and group.

    A job that names no queue goes into the default one; without a default it is in no queue and
    may use every target.  `no_limit` is for a job without a duration in a queue that has a limit and no
    default: it gets the limit of the ``queue``, or a ``reject``.
    """
    made: list[Job] = []
    rejected: dict[int, str] = {}
    of: list[Queue | None] = []
    known: dict[tuple[int, str], Jobspec] = {}
    for number, job in enumerate(jobs):
        name = job.queue if job.queue is not None else job.jobspec.queue or queues.default
        queue = queues.queues.get(name) if name is not None else None
        if name is not None and queue is None:
            rejected[number] = f"rejected: there is no queue {name!r}"
        of.append(queue)
        made.append(job if queue is None else _placed(job, queue, known, no_limit))
    anywhere = any(queue is None and number not in rejected for number, queue in enumerate(of))
    group_of, count = _groups(queues, index, anywhere=anywhere)
    groups = [0 if queue is None else group_of[queue.name] for queue in of]
    for number, (job, queue) in enumerate(zip(made, of, strict=True)):
        if queue is not None and queue.longest < (INF if job.duration is None else job.duration):
            asked = "no limit" if job.duration is None else format_duration(job.duration)
            limit = format_duration(queue.longest)
            rejected[number] = f"rejected: queue {queue.name} allows {limit}, the job asks for {asked}"
    tiers = [0 if queue is None else queue.priority for queue in of]
    return Admission(tuple(made), rejected, tiers, groups, count, of)


def _given_duration(queue: Queue, no_limit: str) -> float | None:
    """Return the duration of jobs that request none, None for unlimited.

    It is the queue's default, at most its limit, as Slurm's DefaultTime is; without a default it is
    the limit, as Slurm's MaxTime is, unless such jobs are rejected.
    """
    if queue.default_duration is not None:
        return min(queue.default_duration, queue.longest)
    return queue.longest if queue.longest < INF and no_limit == "queue" else None


def _placed(job: Job, queue: Queue, known: dict[tuple[int, str], Jobspec], no_limit: str) -> Job:
    spec = known.get((id(job.jobspec), queue.name))
    if spec is None:
        spec = known[id(job.jobspec), queue.name] = _constrained(job.jobspec, queue)
    asked = None if job.duration is None or job.duration == INF else job.duration
    duration = _given_duration(queue, no_limit) if asked is None else asked
    fields = {name: getattr(job, name) for name in job.__struct_fields__}
    return Job(**{**fields, "jobspec": spec, "queue": queue.name, "duration": duration})


def _constrained(spec: Jobspec, queue: Queue) -> Jobspec:
    """Return the jobspec with the queue's constraint and-ed to its own."""
    if queue.constraint is None:
        return spec
    mine = spec.constraint
    both = queue.constraint if mine is None else rfc31.And((mine, queue.constraint))
    return spec.with_system(constraints=rfc31.to_json(both))


def size_fault(queue: Queue, sizes: Mapping[str, int]) -> str | None:
    """Return the limit on the size of a job that is not met; `sizes` are nnodes, ncores, ngpus."""
    for key, most in queue.most.items():
        if sizes.get(key, 0) > most:
            return f"rejected: queue {queue.name} allows {most} {_SIZES[key]}, the job asks for {sizes[key]}"
    for key, least in queue.least.items():
        if sizes.get(key, 0) < least:
            asked = sizes.get(key, 0)
            return f"rejected: queue {queue.name} requires {least} {_SIZES[key]}, the job asks for {asked}"
    return None


def _groups(queues: Queues, index: Index, *, anywhere: bool) -> tuple[dict[str, int], int]:
    """Group the queues whose targets overlap, directly or through a third.

    They are one group if there are jobs in no queue, which may run `anywhere`.
    """
    if anywhere:
        return dict.fromkeys(queues.queues, 0), 1
    groups: list[tuple[Any, list[str]]] = []
    for name, queue in queues.queues.items():
        mine, names = index.targets_matching(queue.constraint), [name]
        apart = []
        for targets, others in groups:
            if (targets & mine).any():
                mine, names = targets | mine, [*others, *names]
            else:
                apart.append((targets, others))
        groups = [*apart, (mine, names)]
    groups.sort(key=lambda group: min(list(queues.queues).index(name) for name in group[1]))
    group_of = {name: number for number, (_, names) in enumerate(groups) for name in names}
    return group_of, len(groups)
