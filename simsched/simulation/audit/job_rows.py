"""Rules of the audit for the table of jobs: each row against its job, and columns against each other."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from simsched.errors import SimschedError
from simsched.simulation.audit.tolerance import differs, known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.workload.job import Job

#: Columns that are equal to the workload: column → field of `Job`.
AS_SUBMITTED = {
    "name": "name",
    "user": "user",
    "bank": "bank",
    "urgency": "urgency",
    "submit": "submit",
    "procs": "procs",
    "recorded_state": "status",
    "recorded_wait": "wait",
    "recorded_energy": "energy",
}
#: Columns of units, which are 0 for a job without an allocation.
UNITS = ("nodes", "cores", "gpus", "slots")
#: Queue policies that mark every job that starts before an earlier one as ``backfilled``.
TELL_BACKFILLS = (
    *("fcfs", "easy", "easy+", "easy++", "conservative", "hybrid", "selective", "slack", "slurm"),
)


def wrong_row(
    recorded: RecordedRun, job: Job, row: Mapping[str, Any], shapes: dict[int, str | None]
) -> Iterator[str]:
    """Yield the columns of a row that differ from its job; `shapes` caches the shapes of requests."""
    expected = {column: getattr(job, name) for column, name in AS_SUBMITTED.items()}
    expected["queue"] = _queue(recorded, job, row)
    expected["shape"] = _shape(job, shapes)
    expected["array_task"] = None if job.array_task is None else str(job.array_task)
    expected["depends"] = ",".join(map(str, job.dependencies)) or None
    expected["recorded_start"] = None if job.wait is None else job.submit + job.wait
    if job.duration is not None or not recorded.queues:  # otherwise its queue may have a default
        expected["duration"] = inf if job.duration is None else job.duration
    for column, value in expected.items():
        if column in row and _unlike(known(row[column]), value):
            yield f"the table has {column} {known(row[column])!r}, the workload {value!r}"
    yield from _spans(row)


def _unlike(found: Any, expected: Any) -> bool:
    if expected is None or found is None or isinstance(expected, str) or isinstance(found, str):
        return bool(found != expected)
    return float(found) != float(expected)


def _queue(recorded: RecordedRun, job: Job, row: Mapping[str, Any]) -> str | None:
    """Return the expected queue: a job without one may be in any queue of the run."""
    own = job.queue
    given = row.get("queue")
    return given if own is None and given in recorded.queues else own


def _shape(job: Job, shapes: dict[int, str | None]) -> str | None:
    key = id(job.jobspec)
    if key not in shapes:
        try:
            shapes[key] = job.jobspec.to_shape()
        except SimschedError:  # resources that no shape can express
            shapes[key] = None
    return shapes[key]


def _spans(row: Mapping[str, Any]) -> Iterator[str]:
    for column, name, first, last in (
        ("runtime", "run time", "start", "end"),
        ("wait", "wait", "submit", "start"),
    ):
        begin, end, given = (known(row.get(name)) for name in (first, last, column))
        took = None if begin is None or end is None else end - begin
        if column in row and (
            (took is None) != (given is None) or (took is not None and differs(took, given))
        ):
            yield f"the table has a {name} of {given} s, from {first} to {last} it is {took} s"


def wrong_zeros(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the units in the row of a job without an allocation."""
    for column in UNITS:
        if known(row.get(column)):
            yield f"is {row['result']} and has {row[column]} {column}"
    if row.get("backfilled"):
        yield f"is {row['result']} and backfilled"


def wrong_backfills(
    recorded: RecordedRun,
    jobs: Sequence[Job],
    rows: Mapping[str, Mapping[str, Any]],
    firsts: Mapping[str, float],
) -> Iterator[tuple[str, str]]:
    """Yield the jobs (id, fault) that are backfilled but passed no job, or passed one and are not backfilled.

    A backfilled job started while another job waited.  The reverse is checked if the queue has one
    constant order (``fifo``, one queue, one pass per instant).  `firsts` is the first start of each job.
    """
    # the order of a queue: submission, then urgency, then the place in the workload
    order = sorted(range(len(jobs)), key=lambda at: (jobs[at].submit, -jobs[at].urgency, at))
    ordered = [jobs[at] for at in order]
    place = {str(job.id): number for number, job in enumerate(ordered)}
    started = [row for row in rows.values() if known(row["start"]) is not None and str(row["id"]) in place]
    started.sort(key=lambda row: row["start"])
    waits = sorted(_waits(ordered, rows))
    yield from _passed_no_job(waits, started, place)
    if (
        recorded.order == "fifo"
        and not recorded.each_event
        and not recorded.queues
        and not recorded.reservations  # each has a queue of its own
        and not recorded.limits  # a job that waits for a limit is passed by others
        and not any(job.array_task is not None and job.array_task.limit is not None for job in jobs)
        and recorded.queue_policy in TELL_BACKFILLS
        and recorded.preemption is None  # the job that took its nodes has not passed it
    ):
        yield from _passed_a_job(waits, started, place, ordered, firsts)


def _waits(
    ordered: Sequence[Job], rows: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[float, float, int]]:
    """Yield (from, until, place) of each job's wait for resources."""
    for number, job in enumerate(ordered):
        row = rows.get(str(job.id), {})
        eligible, left = known(row.get("eligible")), known(row.get("start"))
        if left is None:
            left = inf if job.cancel_at is None else job.cancel_at
        if eligible is not None:
            yield eligible, left, number


def _passed_no_job(
    waits: Sequence[tuple[float, float, int]], started: Sequence[Mapping[str, Any]], place: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    held: list[tuple[float, int]] = []
    at = 0
    for row in started:
        name, now = str(row["id"]), row["start"]
        while at < len(waits) and waits[at][0] <= now:
            heappush(held, (-waits[at][1], waits[at][2]))
            at += 1
        if row.get("backfilled") and not _another(held, now, place[name]):
            yield name, f"is backfilled, but no other job waited at {now:g}"


def _passed_a_job(
    waits: Sequence[tuple[float, float, int]],
    started: Sequence[Mapping[str, Any]],
    place: Mapping[str, int],
    ordered: Sequence[Job],
    firsts: Mapping[str, float],
) -> Iterator[tuple[str, str]]:
    queue: list[tuple[int, float]] = []  # (place, when it first left the queue)
    at = 0
    for row in started:
        name, now = str(row["id"]), row["start"]
        while at < len(waits) and waits[at][0] < now:  # a job of this instant may come after the pass
            _, left, number = waits[at]
            job = ordered[number]
            if not (job.hold or job.urgency == 0):  # a held job never starts, and others may pass it
                heappush(queue, (number, min(left, firsts.get(str(job.id), inf))))
            at += 1
        while queue and queue[0][1] <= now:
            heappop(queue)
        if queue and queue[0][0] < place[name] and not row.get("backfilled"):
            yield name, f"started at {now:g} before job {ordered[queue[0][0]].id}, but is not backfilled"


def _another(held: list[tuple[float, int]], now: float, mine: int) -> bool:
    """Whether another job waits at least until `now`; `held` is ordered by the time at which jobs leave."""
    best = [item for item in held[:3] if item[1] != mine]  # the job that leaves last is among the first three
    return any(-leaves >= now for leaves, _ in best)
