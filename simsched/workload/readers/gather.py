"""The common parts of log readers, from records with absolute times to a workload from second 0."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import floor, isfinite
from sys import intern
from typing import TYPE_CHECKING

from simsched.workload.arrays.array_tasks import ArrayTask
from simsched.workload.job import Job, Skip, Skips, Workload, assemble
from simsched.workload.mapping import DEFAULT_TEMPLATE, GPU_TEMPLATE, Flat, MissingValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.constraint import Constraint
    from simsched.formats.rfc.dependency import Dependency
    from simsched.workload.log_record import LogRecord
    from simsched.workload.mapping import JobMap, ReadOptions

NOT_A_RECORD = "not an accounting record"
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
    from simsched.formats.rfc.dependency import Dependency

    return (Dependency("begin-time", f"{eligible:.15g}"),)


@dataclass(slots=True)
class Gather:
    """Collects the jobs of one log; `finish` moves its first submission to second 0."""

    reading: ReadOptions
    kind: str
    default: str = DEFAULT_TEMPLATE
    skips: Skips = field(init=False)
    rows: list[LogRecord] = field(default_factory=list)
    job_map: JobMap = field(init=False)
    jobspec_of: Callable[..., Jobspec] = field(init=False)
    seen: set[str] = field(default_factory=set)
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
        self.job_map = self.reading.job_map(self.default, with_gpus=GPU_TEMPLATE)
        self.jobspec_of = self.job_map.jobspec

    @property
    def full(self) -> bool:
        """Whether the requested number of records has been read."""
        limit = self.reading.limit
        return limit is not None and len(self.rows) + len(self.skips.records) >= limit

    def lines(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield (number, line) of the lines that are not blank, until enough records have been read."""
        for number, line in enumerate(lines, 1):
            if self.full:
                return
            if line.strip():
                yield str(number), line

    def skip(self, where: str | int, reason: str, text: str = "", id_: int | str | None = None) -> None:
        """Leave one record out."""
        self.skips.add(Skip(f"{self.reading.source}:{where}", reason, text[:200], id_))

    def add(self, where: str | int, row: LogRecord) -> None:
        """Add one record; a record that cannot be a job is ignored, with the reason."""
        reason = _fault(row)
        if reason is None:
            self.rows.append(row)
        else:
            self.skip(where, reason, id_=row.id)

    def unread(self, where: str | int, key: str, value: str, effect: str) -> None:
        """Remember a value that could not be read, or was not used; `effect` is how it counts now."""
        values = self.unread_values.setdefault((key, effect), {})
        first, count = values.get(value[:60], (str(where), 0))
        values[value[:60]] = first, count + 1

    def _unread(self) -> Iterator[str]:
        """Yield one sentence per effect: the first values of each key with their first places."""
        effects = dict.fromkeys(effect for _, effect in self.unread_values)
        for effect in effects:
            keys = {key: values for (key, of), values in self.unread_values.items() if of == effect}
            named = [
                f"{key}={value} ({self.reading.source}:{first})"
                for key, values in keys.items()
                for value, (first, _) in list(values.items())[: _NAMED if len(keys) == 1 else 1]
            ]
            more = sum(count for values in keys.values() for _, count in values.values()) - len(named)
            yield f"{', '.join(named)}{f' and {more:,} more' if more else ''}: {effect}"

    def add_part(self, where: str | int, row: LogRecord, leader: str, number: int) -> None:
        """Add the record of one part of a heterogeneous job; `finish` puts the parts together."""
        place = len(self.rows)
        self.add(where, row)
        if len(self.rows) > place:
            self.parts.setdefault(leader, []).append((number, place))

    def _join_parts(self) -> None:
        from simsched.workload.heterogeneous_rows import JOINED, join_rows

        self.rows, joined = join_rows(self.rows, self.parts)
        self.skips.count(JOINED, joined)
        self.notes.append(
            f"heterogeneous jobs: {len(self.parts):,}; all parts of such a job start at the same time, "
            "and it lasts until the last of them ends"
        )

    def request(
        self, flat: Flat, *, queue: str | None, partition: str | None, features: str = ""
    ) -> Jobspec | str:
        """Return the jobspec of a record's counts, or the reason why it has none."""
        if not flat.procs:
            return NO_PROCESSORS
        return self.sized_request(flat, queue=queue, partition=partition, features=features)

    def sized_request(
        self, flat: Flat, *, queue: str | None, partition: str | None, features: str = ""
    ) -> Jobspec | str:
        """Return what `request` returns, also for a record that has nodes or gpus and no processors."""
        self._see(flat, queue, partition, features)
        constraint, key = None, ""
        if self.reading.constrain:
            key = f"{partition}\0{features}"
            if key not in self.constraints:
                self.constraints[key] = self._constraint(partition, features)
            constraint = self.constraints[key]
            if constraint is None and features and "features" in self.reading.constrain:
                return NO_FEATURES
        try:
            return self.jobspec_of(flat, queue, partition, constraint=constraint, key=key)
        except MissingValueError as error:
            return error.message

    def _constraint(self, partition: str | None, features: str) -> Constraint | None:
        from simsched.formats.rfc.constraint import And, Properties
        from simsched.workload.readers.slurm_values import features as parse_features

        parts: list[Constraint] = []
        if "features" in self.reading.constrain and features:
            wanted = parse_features(features)
            if wanted is None:
                return None
            parts.append(wanted)
        if "partition" in self.reading.constrain and partition:
            parts.append(Properties((partition,)))
        return And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None

    def _see(self, flat: Flat, queue: str | None, partition: str | None, features: str) -> None:
        """Remember which parts of requests the log has, and whether the map leaves gpus out."""
        parts = {"nodes": flat.nodes, "memory": flat.memory, "partitions": partition, "features": features}
        self.seen.update(name for name, value in parts.items() if value)
        if flat.gpu_type and flat.gpu_type.lower() not in self.job_map.gpu_types:
            self.other_types[flat.gpu_type] += 1
        if flat.gpus and not self.job_map.asks("gpus", queue, partition):
            self.seen.add("gpus")

    def unused(self) -> Iterator[str]:
        """Yield one sentence per part that the log has and the requests leave out."""
        left = [text for name, text in _UNUSED.items() if name in self.seen and not self._uses(name)]
        if left:
            yield f"{LEAVES_OUT}{self.job_map.default.text}) leave out: {', '.join(left)}"

    def _uses(self, name: str) -> bool:
        if name == "partitions":
            return "partition" in self.reading.constrain or bool(self.job_map.by_queue)
        if name == "features":
            return "features" in self.reading.constrain
        return name != "gpus" and self.job_map.asks_anywhere(name)

    def finish(self, header: dict[str, str] | None = None) -> Workload:
        """Return the workload; ``UnixStartTime`` of its header is the time that became second 0."""
        if self.parts:
            self._join_parts()
        self._note_arrays()
        base = floor(min((row.submit or 0 for row in self.rows), default=0))
        header = {**(header or {}), "UnixStartTime": str(base)}
        return assemble(
            self._jobs(base),
            self.skips,
            source=self.reading.source,
            name=self.reading.name,
            kind=self.kind,
            header=header,
            notes=(*self.notes, *self._unknown(), *self._unread(), *self._types(), *self.unused()),
        )

    def _note_arrays(self) -> None:
        """Note how many job arrays there are, and of how many the tasks at a time are limited."""
        if self.has_tasks and self.array_limits:
            arrays = Counter(row.task[0] for row in self.rows if row.task is not None)
            limited = sum(array in self.array_limits for array in arrays)
            self.notes.append(
                f"job arrays: {len(arrays):,} with {arrays.total():,} tasks; the log shows a limit of tasks "
                f"at a time for {limited:,} of them"
            )

    def _types(self) -> Iterator[str]:
        """Yield one sentence on the types of gpus that requests do not name."""
        if self.other_types:
            listed = ", ".join(f"{name} ({count:,})" for name, count in self.other_types.items())
            why = "a run with --site requests them" if self.reading.on_site is None else "the site has none"
            yield f"any gpu serves requests for gpus of these types: {listed}; {why}"

    def _unknown(self) -> Iterator[str]:
        """Yield one sentence on the states that mean no result."""
        if self.unknown_states:
            listed = ", ".join(f"{word!r} ({count:,})" for word, count in self.unknown_states.items())
            yield f"states that are not known, so that the jobs have no recorded result: {listed}"

    def _jobs(self, base: int) -> Iterator[Job]:
        """Yield the jobs, and let go of each row as soon as its job is made."""
        self.rows.reverse()
        on_site = self.reading.on_site
        while self.rows:
            row = self.rows.pop()
            (id_, submit, jobspec, start, runtime, duration, user, group, queue, bank, name, partition,
             procs, nodes, memory, status, urgency, after, energy, nodelist, qos, task) = row  # fmt: skip
            assert submit is not None  # rows without a submit time were ignored
            assert not isinstance(jobspec, str)
            if duration is None and on_site is not None:
                duration = on_site.limit(queue)
            at, wait = submit - base, None if start is None else start - submit
            if type(at) is not int or type(wait) is not int:
                at, wait = moved(submit, base), None if start is None else moved(start, submit)
            yield Job(
                id=id_, submit=at, jobspec=jobspec, runtime=runtime, duration=duration,
                user=user, group=group, queue=queue, bank=bank, name=name, partition=partition, procs=procs,
                nodes=nodes, memory=memory, status=status, urgency=urgency, energy=energy,
                wait=wait, nodelist=nodelist, qos=qos,
                dependencies=tuple(_on_our_clock(item, base) for item in after) if after else (),
                array_task=None if task is None else ArrayTask(*task, self.array_limits.get(task[0])),
            )  # fmt: skip


def _on_our_clock(item: Dependency, base: float) -> Dependency:
    """Return a begin-time after second 0; other dependencies as they are."""
    if item.scheme != "begin-time":
        return item
    from simsched.formats.rfc.dependency import Dependency

    return Dependency(item.scheme, f"{max(0.0, moved(float(item.value), base)):.15g}", item.params)


def _fault(row: LogRecord) -> str | None:
    """Return why a record is not a job, or None."""
    if row.submit is None or not 0 <= row.submit < LATEST:
        return NO_SUBMIT
    if isinstance(row.jobspec, str):
        return row.jobspec
    if row.runtime is not None and not (isfinite(row.runtime) and row.runtime >= 0):
        return BACKWARDS
    if row.start is not None and row.start < row.submit:
        return EARLY
    return None


def moved(time: float, base: float) -> float:
    """Return an absolute time after `base`, to the microsecond, whole where it is whole."""
    after = time - base
    return after if isinstance(after, int) else whole(round(after, 6))


def whole(seconds: float) -> float:
    """Return whole seconds as int, others as they are."""
    return int(seconds) if float(seconds).is_integer() else seconds
