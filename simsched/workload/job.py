"""`Job`, `Skip` and `Workload`: the values that every reader and every model returns.

All three are frozen.  Times are seconds; whole numbers of a trace stay ``int``.  Equal
requests of one workload share *one* `Jobspec` object, so that compiled requests
can be cached by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from simsched.arguments import check, wrong
from simsched.errors import WorkloadError
from simsched.formats.jobspec.jobspec import Jobspec  # noqa: TC001
from simsched.formats.rfc.clock import clock_of

# A Struct's own signature evaluates its annotations, so these are imported at run time.
from simsched.formats.rfc.dependency import Dependency  # noqa: TC001
from simsched.workload.arrays.array_tasks import ArrayTask  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.formats.rfc.clock import Clock

MAX_JOBS = 10_000_000
"""The most jobs that a document, a model or a transform makes."""

#: Records of one reason that an error message or a table names by place.
FIRST_PLACES = 3
FIRST_JOBS = 10
"""Jobs that a notebook shows."""


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
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
            reader = import_module("simsched.workload.readers.jobs_yaml")  # it imports this module
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
    if len(set(ids)) < len(ids) or len(set(map(type, ids))) > 1:
        kept = _without_repeats(kept, skips, source)
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


def _without_repeats(jobs: tuple[Job, ...], skips: Skips, source: str) -> tuple[Job, ...]:
    seen: set[str] = set()  # 7 and "7" are one id in every table
    kept = []
    for job in jobs:
        if str(job.id) in seen:
            skips.add(Skip(f"{source}: job {job.id}", "job id occurs twice", "", job.id, job.submit))
        else:
            seen.add(str(job.id))
            kept.append(job)
    return tuple(kept)
