"""`Job`, `Skip` and `Workload`: the values that every reader and every model returns; job arrays.

All three are frozen.  Times are seconds; whole numbers of a trace stay ``int``.  Equal
requests of one workload share *one* `Jobspec` object, so that compiled requests
can be cached by identity.

A job array is many jobs of one submission, which differ in a number.  The notation is Slurm's (sbatch(1),
``--array``): ``0-15``, ``0,6,16-32``, ``0-15:4`` and ``1-100%5``, where at most 5 tasks run at a time.  A
task is written ``123_4``: task 4 of the array 123.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from simsched.arguments import check, wrong
from simsched.errors import WorkloadError

# A Struct's own signature evaluates its annotations, so these are imported at run time.
from simsched.formats.jobspec.jobspec import Jobspec  # noqa: TC001
from simsched.formats.jobspec.validation_rules import KEY
from simsched.formats.rfc.clock import Clock, clock_of
from simsched.formats.rfc.dependency import Dependency  # noqa: TC001
from simsched.formats.text.immutable import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.jobspec.vertex import ResourceVertex


MOST_INDEX = 4_000_000
"""Indices of tasks are less than this in all configurations of Slurm (slurm.conf(5), MaxArraySize)."""

MOST_TASKS = 1_000_000
"""The most tasks of one array: a line of text should not take minutes and gigabytes."""

_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")
_TASK = re.compile(r"(?s)(.+)_(\d{1,7})(?:%(\d{1,9}))?")
_OPTION = re.compile(r"(?:^|\s)(?:--array[= ]\s*|-a\s*=?\s*)[\"']?([\d,:-]+)%(\d{1,9})(?=[\"'\s]|$)")


class ArrayTask(msgspec.Struct, frozen=True, gc=False, order=True):
    """The place of a job in a job array: the array's id, its own index, and the most tasks at a time.

    `limit` is the most tasks of the array that run at a time; None: all that fit.

    >>> ArrayTask.parse("123_4%2"), str(ArrayTask("sim", 0))
    (ArrayTask(array='123', index=4, limit=2), 'sim_0')
    """

    array: str
    index: int
    limit: int | None = None

    @staticmethod
    def parse(text: str, where: str | None = None) -> ArrayTask:
        """Return the task of ``ARRAY_INDEX`` or ``ARRAY_INDEX%LIMIT``.  Raises `WorkloadError`."""
        check("text", text, str, "a text")
        found = _TASK.fullmatch(text)
        if found is None or int(found[2]) >= MOST_INDEX or found[3] == "0":
            raise WorkloadError(
                f"{text[:80]!r} is not a task of a job array",
                where=where,
                expected="such as 123_4 or 123_4%2",
            )
        return ArrayTask(found[1], int(found[2]), None if found[3] is None else int(found[3]))

    def __str__(self) -> str:
        return f"{self.array}_{self.index}" + ("" if self.limit is None else f"%{self.limit}")


def parse_tasks(text: object, where: str | None = None) -> tuple[list[int], int | None]:
    """Return the indices of the tasks of an array in order, and the most that run at a time (None: all).

    Raises
    ------
    WorkloadError
        for another notation, a range that runs backwards, an index given twice, and a limit of 0.

    >>> parse_tasks("0-7:2,1%3")
    ([0, 1, 2, 4, 6], 3)
    """
    expected = "such as 0-15, 1,3,5-7, 0-15:4 or 1-100%5"
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise WorkloadError(f"{text!r} is not the tasks of a job array", where=where, expected=expected)
    body, percent, most = str(text).replace(" ", "").partition("%")
    if percent and (not re.fullmatch(r"\d{1,9}", most) or int(most) == 0):
        raise WorkloadError(
            f"{most[:40]!r} is not a limit of tasks at a time", where=where, expected="a whole number above 0"
        )
    indices: list[int] = []
    for part in body.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise WorkloadError(f"{part[:40]!r} is not a range of tasks", where=where, expected=expected)
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if last < first or not step:
            expected = "first-last:step, with a step above 0"
            raise WorkloadError(f"the range {part} of tasks is empty", where=where, expected=expected)
        if last >= MOST_INDEX:
            expected = f"less than {MOST_INDEX:,}"
            raise WorkloadError(f"there is no task {last:,}", where=where, expected=expected)
        indices += range(first, last + 1, step)
        if len(indices) > MOST_TASKS:
            raise WorkloadError(f"more than {MOST_TASKS:,} tasks of one array", where=where)
    if len(set(indices)) < len(indices):
        raise WorkloadError(f"a task of {body[:80]!r} is given twice", where=where, expected="each task once")
    return sorted(indices), int(most) if percent else None


def limit_of_line(line: str) -> int | None:
    """Return the most tasks at a time that a command line of sbatch asks for, or None.

    >>> limit_of_line("sbatch --array=0-99%5 job.sh"), limit_of_line("sbatch -a 1-3 job.sh")
    (5, None)
    """
    found = _OPTION.search(line)
    return int(found[2]) if found is not None and int(found[2]) else None


MAX_JOBS = 10_000_000
"""The most jobs that a document, a model or a transform makes."""

#: Records of one reason that an error message or a table names by place.
FIRST_PLACES = 3
FIRST_JOBS = 10
"""Jobs that a notebook shows."""


class Job(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One job as its user submitted it, with the outcome that a trace recorded.

    `submit`, `runtime`, `duration`, `think_time`, `cancel_at`, `deadline` and `wait` are seconds.
    `duration` is the requested limit (None: unlimited), `runtime` the actual run time
    (None: unknown, it runs to its limit).  `procs` and `nodes` are the flat counts of the
    trace, `memory` is KB per processor, `energy` the energy that it used, in whole J; only the `jobspec` is
    matched.  `wait`, `status` and `nodelist` (the hosts on which it ran, as an RFC 29 hostlist) are the
    trace's own outcome; they are compared with a run, and the queue policy ``recorded`` plays them.
    `job.preceding`
    and `think_time` are columns 17 and 18 of SWF 2.2.  The value of a ``begin-time``
    dependency and the `deadline` (by when the job should have ended; the order ``edf`` goes by it,
    nothing enforces it) are on the same clock as `submit`.  `priority` comes from another scheduler.
    `array_task` is the job's place in a job array.
    """

    id: int | str
    submit: int | float
    jobspec: Jobspec
    runtime: int | float | None = None
    duration: int | float | None = None
    user: str | None = None
    group: str | None = None
    queue: str | None = None
    bank: str | None = None
    name: str | None = None
    urgency: int = 16
    priority: int | None = None
    dependencies: tuple[Dependency, ...] = ()
    preceding: int | str | None = None
    think_time: int | float | None = None
    procs: int | None = None
    hold: bool = False
    cancel_at: float | None = None
    deadline: int | float | None = None
    nodes: int | None = None
    memory: int | None = None
    energy: int | None = None
    partition: str | None = None
    wait: int | float | None = None
    status: str | None = None
    qos: str | None = None
    nodelist: str | None = None
    array_task: ArrayTask | None = None

    def _repr_html_(self) -> str:
        """Return what is known of the job as a table, for a notebook."""
        from simsched.text_table import html_table

        known = {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}
        known["jobspec"] = self.jobspec.to_shape()
        return html_table(f"job {self.id}", [(name, str(value)) for name, value in known.items()])


# --- flat counts of a request, for formats and figures that have nothing else


@dataclass(frozen=True, slots=True)
class Demand:
    """The least that a request takes: units per type over all its copies."""

    nodes: int
    slots: int
    cores: int
    gpus: int

    @property
    def procs(self) -> int:
        """Processors as flat formats count them: cores, else slots, else nodes, at least 1."""
        return self.cores or self.slots or self.nodes or 1


@lru_cache(maxsize=65536)
def demand(jobspec: Jobspec) -> Demand:
    """Return the least that a request takes; `nodes` is 0 if it has no node vertex.

    >>> from simsched.formats.jobspec.jobspec import Jobspec
    >>> demand(Jobspec.from_shape("node=2/slot=3/[core=4;gpu]"))
    Demand(nodes=2, slots=6, cores=24, gpus=6)
    """
    found = {"node": 0, "slot": 0, "core": 0, "gpu": 0}
    for kind, units in _units(jobspec.resources, 1):
        if kind in found:
            found[kind] += units
    return Demand(found["node"], found["slot"], found["core"], found["gpu"])


def _units(vertices: tuple[ResourceVertex, ...], copies: int) -> Iterator[tuple[str, int]]:
    for vertex in vertices:
        units = copies * vertex.count.min
        yield vertex.type, units
        yield from _units(vertex.with_, units)


def bare(jobspec: Jobspec) -> Jobspec:
    """Return the request alone, without the attributes that a `Job` has itself (limit, queue, name …).

    So equal requests share one jobspec, whatever their users.
    """
    kept = {key: jobspec.system[key] for key in ("constraints", KEY) if key in jobspec.system}
    return replace(jobspec, attributes=FrozenDict(system=FrozenDict(duration=0.0, **kept)))


def procs_of(job: Job) -> int:
    """Return the trace's own processor count, or the request's."""
    return job.procs if job.procs is not None else demand(job.jobspec).procs


def seconds_of(job: Job) -> float:
    """Return how long the job runs: its run time, or its limit, or 0 where neither is known."""
    return job.runtime if job.runtime is not None else (job.duration or 0)


def work_of(job: Job) -> float:
    """Return the processor-seconds that the job runs (to its limit where the run time is unknown)."""
    return procs_of(job) * seconds_of(job)


class Skip(msgspec.Struct, frozen=True, gc=False):
    """A record that did not become a job: its place, the reason and its text (cut short)."""

    where: str
    reason: str
    text: str = ""
    id: int | str | None = None
    submit: int | float | None = None


class Skips:
    """Collects skipped records while a reader runs; `job_records` are kept one by one.

    Lines that never were jobs (the steps of a Slurm job) are counted, and only the first
    few of a reason are kept.
    """

    __slots__ = ("counts", "records", "strict")

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.records: list[Skip] = []
        self.counts: dict[str, int] = {}

    def add(self, skip: Skip, *, listed: bool = True) -> None:
        """Count one ignored record; under ``strict`` it is a `WorkloadError`."""
        if self.strict and listed:
            text = f": {skip.text.strip()!r}" if skip.text.strip() else ""
            raise WorkloadError(f"record refused: {skip.reason}{text}", where=skip.where)
        seen = self.counts.get(skip.reason, 0)
        self.counts[skip.reason] = seen + 1
        if listed or seen < FIRST_PLACES:
            self.records.append(skip)

    def count(self, reason: str, number: int) -> None:
        """Count `number` lines that never were jobs, without a place each."""
        if number:
            self.counts[reason] = self.counts.get(reason, 0) + number


@dataclass(frozen=True, slots=True, repr=False)
class Workload:
    """Jobs in submit order (stable), and an account of the records that did not become jobs.

    ``len(jobs) + sum(skipped_counts.values()) == total_records`` as read; transforms then
    change `jobs` and add a line to `history`.  `notes` are sentences about information of the source
    that the jobs do not hold.  `jobs` may be given as any iterable, in any order, of jobs and of mappings
    with the keys of jobs.yaml.
    """

    jobs: tuple[Job, ...]
    name: str = ""
    source: str = ""
    header: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[Skip, ...] = ()
    skipped_counts: Mapping[str, int] = field(default_factory=dict)
    total_records: int = 0
    kind: str = ""
    history: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    if TYPE_CHECKING:  # what may be given as `jobs` is wider than what they are

        def __init__(
            self,
            jobs: Iterable[Job | Mapping[str, Any]],
            name: str = "",
            source: str = "",
            header: Mapping[str, str] = {},
            skipped: tuple[Skip, ...] = (),
            skipped_counts: Mapping[str, int] = {},
            total_records: int = 0,
            kind: str = "",
            history: tuple[str, ...] = (),
            notes: tuple[str, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.jobs) is not tuple or not set(map(type, self.jobs)) <= {Job}:
            reader = import_module("simsched.workload.readers.jobs")  # it imports this module
            object.__setattr__(self, "jobs", reader.given_jobs(self.jobs))

    def __len__(self) -> int:
        return len(self.jobs)

    def __repr__(self) -> str:
        """Return one line, whatever the number of jobs.

        >>> Workload((), name="empty")
        <Workload 'empty': 0 jobs>
        """
        ignored = sum(self.skipped_counts.values())
        more = f", {ignored:,} records ignored" if ignored else ""
        return f"<Workload {self.name!r}: {len(self.jobs):,} jobs{more}>"

    def _repr_html_(self) -> str:
        """Return the first jobs as a table, for a notebook."""
        from simsched import human
        from simsched.text_table import html_table

        def limit_of(job: Job) -> str:
            return "none" if job.duration is None else human.seconds(job.duration)

        rows = [
            (str(job.id), f"{job.submit:,.0f} s", job.jobspec.to_shape(), limit_of(job))
            for job in self.jobs[:FIRST_JOBS]
        ]
        return html_table(repr(self)[1:-1], rows, ("job", "submitted at", "request", "limit"))

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    @classmethod
    def from_frame(cls, frame: Any, map: Any = None, **options: Any) -> Workload:  # noqa: A002 (as load_workload)
        """Return the workload of a data frame; arguments and errors are `load_workload`'s.

        A frame with our names needs no column map: ``submit``, ``shape`` or ``jobspec``, and any of ``id``,
        ``duration``, ``runtime``, ``user``, ``queue`` …, so that ``run.jobs`` can be run again.
        """
        workload: Workload = import_module("simsched.workload.load").load_workload(frame, map=map, **options)
        return workload

    def stated(self, key: str) -> int | None:
        """Return the whole number with which a value of the header begins; None for another value, or none.

        >>> jobs = Workload((), header={"MaxProcs": "128 (64 nodes)", "MaxNodes": "1,000", "MaxJobs": "1e3"})
        >>> jobs.stated("MaxProcs"), jobs.stated("MaxNodes"), jobs.stated("MaxJobs")
        (128, None, None)
        """
        found = re.match(r"\s*([0-9]{1,11})(?![\w-]|[.,][0-9])", self.header.get(key, ""))
        return int(found[1]) if found else None

    @property
    def span(self) -> tuple[float, float]:
        """First and last submit time in seconds; (0, 0) of an empty workload."""
        return (self.jobs[0].submit, self.jobs[-1].submit) if self.jobs else (0, 0)

    @property
    def clock(self) -> Clock | None:
        """The dates of the workload's seconds; None if they are not known."""
        return clock_of(self.header, self.span[0])

    def with_jobs(self, jobs: Iterable[Job], note: str) -> Workload:
        """Return the same workload with other jobs, put in submit order, and a line of history."""
        check("jobs", jobs, Iterable, "several jobs")
        given = tuple(jobs)
        if not all(isinstance(job, Job) for job in given):
            raise wrong("jobs", jobs, "several jobs")
        return replace(self, jobs=in_submit_order(given), history=(*self.history, note))

    def skip_table(self) -> list[tuple[str, int, str]]:
        """Return (reason, count, first places), most frequent first."""
        places: dict[str, list[str]] = {}
        for skip in self.skipped:
            known = places.setdefault(skip.reason, [])
            if len(known) < FIRST_PLACES:
                known.append(skip.where)
        ranked = sorted(self.skipped_counts.items(), key=lambda item: (-item[1], item[0]))
        return [(reason, count, _together(places.get(reason, []))) for reason, count in ranked]


def _together(places: list[str]) -> str:
    """Return places of one file with its name once.

    >>> _together(["a.swf:7", "a.swf:12"])
    'a.swf:7, 12'
    """
    if not places:
        return ""
    head = places[0].rpartition(":")[0]
    if head and all(place.rpartition(":")[0] == head for place in places):
        return f"{head}:" + ",".join(f" {place[len(head) + 1 :].strip()}" for place in places).removeprefix(
            " "
        )
    return ", ".join(places)


change = msgspec.structs.replace
"""Returns a job with some fields changed."""


def jobs_of(columns: Mapping[str, Iterable[Any]]) -> Iterator[Job]:
    """Return the jobs of whole columns, by field; fields without a column have their defaults."""
    fields = msgspec.structs.fields(Job)
    # By position: a call with many keywords takes up to five times as long.
    return map(Job, *(columns.get(field.name, repeat(field.default)) for field in fields))


def in_submit_order(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Return the jobs by submit time; equal times keep their order."""
    return tuple(sorted(jobs, key=attrgetter("submit")))


def assemble(
    jobs: Iterable[Job],
    skips: Skips,
    *,
    source: str,
    name: str,
    kind: str,
    header: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
) -> Workload:
    """Make the workload of a reader's jobs and skips, and check that no id occurs twice.

    Raises
    ------
    WorkloadError
        Under ``strict``, when two jobs carry one id; otherwise the later one is skipped.
    """
    kept = in_submit_order(jobs)
    ids = [job.id for job in kept]
    if len(set(ids)) < len(ids) or len(set(map(type, ids))) > 1:  # 7 and "7" are one id in every table
        seen = {str(job.id): job for job in reversed(kept)}
        for job in kept:
            if seen[str(job.id)] is not job:
                skips.add(Skip(f"{source}: job {job.id}", "job id occurs twice", "", job.id, job.submit))
        kept = tuple(job for job in kept if seen[str(job.id)] is job)
    return Workload(
        jobs=kept,
        name=name,
        source=source,
        header=dict(header or {}),
        skipped=tuple(skips.records),
        skipped_counts=dict(skips.counts),
        total_records=len(kept) + sum(skips.counts.values()),
        kind=kind,
        notes=tuple(notes),
    )


def job_array(job: Job, tasks: str) -> tuple[Job, ...]:
    """Return the tasks of a job array: copies of a job with the ids ``ID_INDEX``.

    Parameters
    ----------
    job : the job of which every task is a copy; its id is that of the array.
    tasks : Slurm's notation, such as ``0-31%4``: 32 tasks, of which at most 4 run at a time.

    Raises
    ------
    WorkloadError
        if the tasks cannot be read.
    """
    indices, limit = parse_tasks(tasks, "tasks")
    array = str(job.id)
    return tuple(
        change(job, id=f"{array}_{index}", array_task=ArrayTask(array, index, limit)) for index in indices
    )


def tasks_by_array(jobs: Iterable[Job]) -> dict[str, dict[int, Job]]:
    """Return array → index → job, in the order of the jobs."""
    found: dict[str, dict[int, Job]] = {}
    for job in jobs:
        if job.array_task is not None:
            found.setdefault(job.array_task.array, {})[job.array_task.index] = job
    return found


def has_array_limits(jobs: Iterable[Job]) -> bool:
    """Whether a job array of the workload limits its tasks at a time."""
    return any(job.array_task is not None and job.array_task.limit is not None for job in jobs)


KnownTasks: TypeAlias = dict[str, tuple[int | None, set[int]]]
"""Array → its limit of tasks at a time, and the indices of its tasks so far."""


def note_task(job: Job, known: KnownTasks) -> None:
    """Add a task to those so far.

    Raises a `WorkloadError` for a task that occurs twice, and for two limits of one array.
    """
    task: Any = job.array_task
    where = f"job {job.id}"
    if not isinstance(task, ArrayTask) or not _is_task(task):
        raise WorkloadError(
            f"{task!r} is not a task of a job array",
            where=where,
            expected="an ArrayTask with an id, an index of 0 or more and a limit of 1 or more, or None",
        )
    limit, indices = known.get(task.array, (task.limit, set[int]()))
    if task.index in indices:
        raise WorkloadError(f"task {task.index} of array {task.array} occurs twice", where=where)
    if limit != task.limit:
        first, second = ("none" if one is None else one for one in (limit, task.limit))
        raise WorkloadError(
            f"array {task.array} has the limits {first} and {second}",
            where=where,
            expected="one limit for all tasks of an array",
        )
    known.setdefault(task.array, (limit, indices))[1].add(task.index)


def _is_task(task: ArrayTask) -> bool:
    """Whether a program gave the fields of a task values that they can have."""
    numbers = (task.index, 1 if task.limit is None else task.limit)
    whole = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    return isinstance(task.array, str) and bool(task.array) and whole and numbers >= (0,) and numbers[1] > 0
