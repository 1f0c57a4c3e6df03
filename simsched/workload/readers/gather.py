"""The common parts of log readers, from jobs with absolute times to a workload from second 0.

Slurm writes one record per part of a heterogeneous job; the parts are put together.  Licences, reservations
and checkpoints that logs state in columns of their own become attributes of requests.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import compress, pairwise
from math import floor, isfinite
from sys import intern
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import force_setattr, replace

from simsched.errors import SimschedError
from simsched.formats.jobspec.heterogeneous import joined
from simsched.formats.rfc.constraint import And, Constraint, Or, Properties
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import whole
from simsched.workload.dependencies import begin_moved
from simsched.workload.job import Job, Skip, Skips, Workload, assemble, jobs_of
from simsched.workload.mapping import DEFAULT_TEMPLATE, GPU_TEMPLATE, Flat, MissingValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.mapping import JobMap, ReadOptions


T = TypeVar("T")

#: The reason with which the records of further parts are counted.
JOINED = "a part of a heterogeneous job, joined with its first part"


def part_of(text: str) -> tuple[str, int] | None:
    """Return (id of the job, number of the part) of Slurm's ``JobID`` of a part, or None.

    >>> part_of("123+1"), part_of("123"), part_of("123_4")
    (('123', 1), None, None)
    """
    leader, plus, number = text.partition("+")
    is_part = plus and leader.isdecimal() and number.isdecimal() and len(number) < 10
    return (leader, int(number)) if is_part else None


def joined_job(leader: str, parts: Sequence[Job], requests: dict[tuple[Any, ...], Jobspec]) -> Job:
    """Return a whole job; `requests` remembers the joined requests.

    It lasts until its last part has ended, and its limit is the longest.  Counts and energy are sums, and
    the first part that did not end well gives its state.
    """
    first = parts[0]
    id_ = int(leader) if len(leader) < 19 else leader
    if len(parts) == 1:
        return replace(first, id=id_)
    key = tuple((id(part.jobspec), part.queue) for part in parts)
    if key not in requests:
        requests[key] = joined([part.jobspec for part in parts], [part.queue for part in parts])
    starts = [None if part.wait is None else part.submit + part.wait for part in parts]
    start = min((at for at in starts if at is not None), default=None)
    ends = [
        (at if at is not None else start or 0) + (part.runtime or 0)
        for at, part in zip(starts, parts, strict=True)
    ]
    limits = [part.duration for part in parts if part.duration is not None]
    procs = _sum([part.procs for part in parts])
    total = _sum([None if part.memory is None else part.memory * (part.procs or 0) for part in parts])
    hosts = [part.nodelist for part in parts if part.nodelist]
    bad = (part.status for part in parts if part.status != "COMPLETED")
    return replace(
        first,
        id=id_,
        jobspec=requests[key],
        wait=None if start is None else moved(start, first.submit),
        runtime=max(ends) - (start or 0) if first.runtime is not None else None,
        duration=max(limits) if len(limits) == len(parts) else None,
        procs=procs,
        nodes=_sum([part.nodes for part in parts]),
        memory=total // procs if total is not None and procs else None,
        energy=_sum([part.energy for part in parts]),
        nodelist=",".join(hosts) if len(hosts) == len(parts) else None,
        status=next(bad, first.status),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


NOT_A_RECORD = "not an accounting record"
NO_ID = "no job id"
NO_SUBMIT = "no submit time"
CANCELLED = "cancelled before it started"
NEVER_STARTED = "never started"
RUNNING = "still running when the log was taken"
NO_PROCESSORS = "no processors"
NO_RUN_TIME = "no run time"
BACKWARDS = "ends before it starts"
DAMAGED_TIME = "a time that cannot be read"
EARLY = "starts before it is submitted"
NO_FEATURES = "a feature expression that no constraint can express"

#: What requests may leave out → how to use it.
_UNUSED = {
    "nodes": "node counts ({nodes} and {ppn} in --map)",
    "memory": "memory ({mem} or {memn} in --map)",
    "gpus": "gpus ({gpus} or {gpn} in --map)",
    "partitions": "partitions (--constrain partition, or 'PARTITION -> TEMPLATE' in --map)",
    "features": "features (--constrain features)",
}

LEAVES_OUT = "the requests ("
"""The beginning of the note on parts of a log that the requests leave out."""

#: Texts of logs for a job without nodes.
NO_HOSTS = frozenset(("", "None", "None assigned", "(null)", "N/A", "Unknown"))

#: Values of one key that a note names.
_NAMED = 3

#: Latest second that a log may name (year 9999); a later one is refused.
LATEST = 253_402_300_800


def hosts_of(text: str | None) -> str | None:
    """Return the hosts on which a log ran a job, or None for the words that stand for no hosts.

    >>> hosts_of("n[1-4]"), hosts_of("None assigned"), hosts_of(None)
    ('n[1-4]', None, None)
    """
    kept = (text or "").strip()
    return None if kept in NO_HOSTS else intern(kept)


def eligible_at(eligible: float | None, submit: float | None, start: float | None) -> tuple[Dependency, ...]:
    """Return a begin-time dependency for an eligible time after the submission.

    A job that was held, depended on another, or requested a begin time could not have started
    before; the log does not record which of these it was.  A time after the start is ignored.

    >>> [str(d) for d in eligible_at(900, 600, 1000)], eligible_at(600, 600, 1000), eligible_at(None, 0, 1)
    (['begin-time:900'], (), ())
    """
    if eligible is None or submit is None or eligible <= submit or (start is not None and eligible > start):
        return ()
    return (Dependency("begin-time", f"{eligible:.15g}"),)


def features_of(text: str) -> Constraint | None:
    """Return the constraint of Slurm's feature expression: ``a&b|c`` (``&`` and ``,`` bind closer).

    None for an empty one and for one with counts or brackets, which RFC 31 cannot express.

    >>> str(features_of("ib&big|huge")), features_of("[rack1*4]")
    ('ib and big or huge', None)
    """
    if not text or re.search(r"[\[\]*()]", text):
        return None
    either = [re.split(r"[&,]", part.strip()) for part in text.split("|")]
    parts = [Properties(tuple(name.strip() for name in names)) for names in either]
    if not all(name and "!" not in name for part in parts for name in part.names):
        return None
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


@dataclass(slots=True)
class Gather:
    """Collects the jobs of one log; `finish` moves its first submission to second 0."""

    reading: ReadOptions
    kind: str
    default: str = DEFAULT_TEMPLATE
    with_gpus: str | None = GPU_TEMPLATE
    skips: Skips = field(init=False)
    jobs: list[Job] = field(default_factory=list)
    job_map: JobMap = field(init=False)
    seen: set[str] = field(default_factory=set)
    with_keys: dict[tuple[Any, ...], Jobspec] = field(default_factory=dict)
    constraints: dict[str, Constraint | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unknown_states: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    array_limits: dict[str, int] = field(default_factory=dict)
    other_types: Counter[str] = field(default_factory=Counter)
    has_tasks: bool = False
    unread_values: dict[tuple[str, str], dict[str, tuple[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.skips = Skips(strict=self.reading.strict)
        self.job_map = self.reading.job_map(self.default, with_gpus=self.with_gpus)

    @property
    def full(self) -> bool:
        """Whether the requested number of records has been read."""
        limit = self.reading.limit
        return limit is not None and len(self.jobs) + len(self.skips.records) >= limit

    def lines(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield (number, line) of the lines that are not blank, until enough records have been read."""
        for number, line in enumerate(lines, 1):
            if self.full:
                return
            if line.strip():
                yield str(number), line

    def good(self, found: Iterable[tuple[str, T | SimschedError]], fault: str) -> Iterator[tuple[str, T]]:
        """Yield (place, record) of the records that could be read, until enough have been read.

        The others, in whose places there are errors, are left out for the reason `fault`.
        """
        for where, record in found:
            if self.full:
                return
            if isinstance(record, SimschedError):
                self.skip(where, fault, record.message)
            else:
                yield where, record

    def skip(
        self,
        where: str | int,
        reason: str,
        text: str = "",
        id_: int | str | None = None,
        submit: float | None = None,
    ) -> None:
        """Leave one record out."""
        self.skips.add(Skip(f"{self.reading.source}:{where}", reason, text[:200], id_, submit))

    def take(
        self,
        where: str | int,
        flat: Flat,
        *,
        eligible: float | None = None,
        features: str = "",
        **facts: Any,
    ) -> None:
        """Add a job with these counts; `facts` as in `add`."""
        spec = self.request(
            flat, queue=facts.get("queue"), partition=facts.get("partition"), features=features
        )
        after = eligible_at(eligible, facts["submit"], facts.get("start"))
        self.add(
            where, spec, procs=flat.procs, nodes=flat.nodes, memory=flat.memory, dependencies=after, **facts
        )

    def add(
        self,
        where: str | int,
        jobspec: Jobspec | str,
        *,
        submit: float | None,
        start: float | None = None,
        part: tuple[str, int] | None = None,
        **facts: Any,
    ) -> None:
        """Add a job with absolute times; `facts` are fields of `Job`.

        A record that cannot be a job is ignored, with the reason, which may be its `jobspec`.  `part` is the
        heterogeneous job that it is a part of, with the number of the part.
        """
        run = facts["runtime"]
        if facts["id"] == "":
            self.skip(where, NO_ID)
        elif submit is None or not 0 <= submit < LATEST:
            self.skip(where, NO_SUBMIT, id_=facts["id"])
        elif isinstance(jobspec, str):
            self.skip(where, jobspec, id_=facts["id"])
        elif run is not None and not (isfinite(run) and run >= 0):
            self.skip(where, BACKWARDS, id_=facts["id"])
        elif start is not None and start < submit:
            self.skip(where, EARLY, id_=facts["id"])
        else:
            if part is not None:
                self.parts.setdefault(part[0], []).append((part[1], len(self.jobs)))
            wait = None if start is None else moved(start, submit)
            self.jobs.append(Job(jobspec=jobspec, submit=submit, wait=wait, **facts))

    def of_columns(
        self,
        columns: dict[str, Sequence[Any]],
        skip: Callable[[int, str], None],
        gpus: Sequence[int | None],
        *attributes: Sequence[str | None],
    ) -> Iterator[Job]:
        """Return the jobs of whole columns of counts and facts, by field of `Job`.

        `skip` gets the rows of which no request can be made, with the reason; `attributes` are as in
        `attributed`.
        """

        @cache
        def made(*key: Any) -> Jobspec | str:
            devices, procs, nodes, memory = (None if count is None else int(count) for count in key[:4])
            flat = Flat(procs=procs, nodes=nodes, memory=memory, gpus=devices)
            return self.attributed(self.request(flat, queue=key[4], partition=key[5]), *key[6:])

        names = ("procs", "nodes", "memory", "queue", "partition")
        requests = list(map(made, gpus, *(columns[name] for name in names), *attributes))
        found: dict[str, Iterable[Any]] = {**columns, "jobspec": requests}
        if str in map(type, requests):
            for row, request in enumerate(requests):
                if isinstance(request, str):
                    skip(row, request)
            kept = [not isinstance(request, str) for request in requests]
            found = {name: compress(column, kept) for name, column in found.items()}
        return jobs_of(found)

    def unread(self, where: str | int, key: str, value: str, effect: str) -> None:
        """Remember a value that could not be read, or was not used; `effect` is how it counts now."""
        values = self.unread_values.setdefault((key, effect), {})
        first, count = values.get(value[:60], (str(where), 0))
        values[value[:60]] = first, count + 1

    def _join_parts(self) -> None:
        """Put the parts of each job together at the place of its first part."""
        requests: dict[tuple[Any, ...], Jobspec] = {}
        gone: set[int] = set()
        for leader, members in self.parts.items():
            members.sort()
            distinct = [members[0], *(b for a, b in pairwise(members) if a[0] != b[0])]
            first, *others = [place for _, place in distinct]
            self.jobs[first] = joined_job(leader, [self.jobs[at] for at in (first, *others)], requests)
            gone.update(others)
        self.jobs = [job for place, job in enumerate(self.jobs) if place not in gone]
        self.skips.count(JOINED, len(gone))
        self.notes.append(
            f"heterogeneous jobs: {len(self.parts):,}; all parts of such a job start at the same time, "
            "and it lasts until the last of them ends"
        )

    def request(
        self, flat: Flat, *, queue: str | None, partition: str | None, features: str = ""
    ) -> Jobspec | str:
        """Return the jobspec of a record's counts, or the reason why it has none."""
        if not flat.procs and self.kind != "table":  # a row of a table may have nodes or gpus alone
            return NO_PROCESSORS
        parts = {"nodes": flat.nodes, "memory": flat.memory, "partitions": partition, "features": features}
        self.seen.update(name for name, value in parts.items() if value)
        if flat.gpu_type and flat.gpu_type.lower() not in self.job_map.gpu_types:
            self.other_types[flat.gpu_type] += 1
        if flat.gpus and not self.job_map.asks("gpus", queue, partition):
            self.seen.add("gpus")
        constraint, key = None, ""
        if self.reading.constrain:
            key = f"{partition}\0{features}"
            if key not in self.constraints:
                self.constraints[key] = self._constraint(partition, features)
            constraint = self.constraints[key]
            if constraint is None and features and "features" in self.reading.constrain:
                return NO_FEATURES
        try:
            return self.job_map.jobspec(flat, queue, partition, constraint=constraint, key=key)
        except MissingValueError as error:
            return error.message

    def attributed(self, spec: Jobspec | str, *values: str | None) -> Jobspec | str:
        """Return a request with the licences, reservation and seconds between checkpoints of a row, if any.

        Equal requests are one object.
        """
        if isinstance(spec, str) or not any(values):
            return spec
        key = (id(spec), *values)
        if key not in self.with_keys:
            licences, reservation, interval = (*values, None)[:3]
            keys: dict[str, Any] = {"licenses": licences, "reservation": reservation}
            if interval and interval.strip("0."):
                keys["checkpoint"] = {"interval": interval}
            keys = {name: value for name, value in keys.items() if value}
            self.with_keys[key] = spec.with_system(**keys) if keys else spec
        return self.with_keys[key]

    def _constraint(self, partition: str | None, features: str) -> Constraint | None:
        parts: list[Constraint] = []
        if "features" in self.reading.constrain and features:
            wanted = features_of(features)
            if wanted is None:
                return None
            parts.append(wanted)
        if "partition" in self.reading.constrain and partition:
            parts.append(Properties((partition,)))
        return And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None

    def unused(self) -> Iterator[str]:
        """Yield one sentence per part that the log has and the requests leave out."""
        used = {name for name in ("nodes", "memory") if self.job_map.asks_anywhere(name)}
        if "features" in self.reading.constrain:
            used.add("features")
        if "partition" in self.reading.constrain or self.job_map.by_queue:
            used.add("partitions")
        left = [text for name, text in _UNUSED.items() if name in self.seen - used]
        if left:
            yield f"{LEAVES_OUT}{self.job_map.default.text}) leave out: {', '.join(left)}"

    def finish(self) -> Workload:
        """Return the workload; ``UnixStartTime`` of its header is the time that became second 0."""
        if self.parts:
            self._join_parts()
        base = floor(min((job.submit for job in self.jobs), default=0))
        limit_of = None if self.reading.on_site is None else self.reading.on_site.limit
        for job in self.jobs:  # nobody else has them yet
            force_setattr(job, "submit", moved(job.submit, base))
            if job.dependencies:
                after = tuple(begin_moved(item, lambda at: moved(at, base)) for item in job.dependencies)
                force_setattr(job, "dependencies", after)
            if job.array_task is not None and (most := self.array_limits.get(job.array_task.array)):
                force_setattr(job, "array_task", replace(job.array_task, limit=most))
            if job.duration is None and limit_of is not None:
                force_setattr(job, "duration", limit_of(job.queue))
        return assemble(
            self.jobs,
            self.skips,
            source=self.reading.source,
            name=self.reading.name,
            kind=self.kind,
            header={"UnixStartTime": str(base)},
            notes=(*self.notes, *self._counted(), *self.unused()),
        )

    def _counted(self) -> Iterator[str]:
        """Yield sentences on job arrays, and on states, values and types of gpus that were not used."""
        if self.has_tasks and self.array_limits:
            arrays = Counter(job.array_task.array for job in self.jobs if job.array_task is not None)
            limited = sum(array in self.array_limits for array in arrays)
            yield (
                f"job arrays: {len(arrays):,} with {arrays.total():,} tasks; the log shows a limit of tasks "
                f"at a time for {limited:,} of them"
            )
        if self.unknown_states:
            listed = ", ".join(f"{word!r} ({count:,})" for word, count in self.unknown_states.items())
            yield f"states that are not known, so that the jobs have no recorded result: {listed}"
        for effect in dict.fromkeys(effect for _, effect in self.unread_values):
            keys = {key: values for (key, of), values in self.unread_values.items() if of == effect}
            named = [
                f"{key}={value} ({self.reading.source}:{first})"
                for key, values in keys.items()
                for value, (first, _) in list(values.items())[: _NAMED if len(keys) == 1 else 1]
            ]
            more = sum(count for values in keys.values() for _, count in values.values()) - len(named)
            yield f"{', '.join(named)}{f' and {more:,} more' if more else ''}: {effect}"
        if self.other_types:
            listed = ", ".join(f"{name} ({count:,})" for name, count in self.other_types.items())
            why = "a run with --site requests them" if self.reading.on_site is None else "the site has none"
            yield f"any gpu serves requests for gpus of these types: {listed}; {why}"


def moved(time: float, base: float) -> float:
    """Return an absolute time after `base`, to the microsecond, whole where it is whole."""
    after = time - base
    return after if isinstance(after, int) else whole(round(after, 6))
