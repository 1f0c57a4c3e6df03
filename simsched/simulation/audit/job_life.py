"""Rules of the audit for the life of a job: when it may start, on which targets, and how it ends.

They follow from ``run.json`` and the jobs, without the engine.
"""

from __future__ import annotations

from collections import Counter
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.simulation.audit.tolerance import differs, known, later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from simsched.formats.rfc.dependency import Dependency
    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.workload.job import Job

INF = float("inf")
NAN = float("nan")
#: Results of jobs that ran for their whole time.
DONE = ("COMPLETED", "TIMEOUT")
#: Results of jobs that ended early.
INTERRUPTED = ("CANCELED", "FAILED")
_AFTER_END = ("afterany", "afterok", "afternotok", "aftercorr")


class AllocationSpan(NamedTuple):
    """The start, first release and last release of a job's last allocation (s)."""

    start: float
    first: float = NAN
    last: float = NAN


def runs_for(job: Job, recorded: RecordedRun) -> float:
    """Return the seconds for which a job runs without interruption."""
    limit = INF if job.duration is None else job.duration
    runtime = limit if job.runtime is None else job.runtime
    return runtime if recorded.overrun == "allow" else min(runtime, limit + recorded.kill_grace)


def out_of_reach(recorded: RecordedRun, job: Job, time: float, ranks: set[int]) -> Iterator[str]:
    """Yield the outages during which a job was allocated targets, or into which it would run."""
    limit = INF if job.duration is None else job.duration
    for outage in recorded.outages:
        until = time + limit if outage.kind == "maintenance" else time
        # a pass may precede it at its instant: one after each event, or before a program drains a target
        begun = outage.start == time and not (recorded.each_event or recorded.live)
        inside = time < outage.end and (later(until, outage.start) or begun)
        if inside and not outage.ranks.isdisjoint(ranks):
            yield f"is allocated rank {min(outage.ranks & ranks)} despite its {outage}"


def survived(recorded: RecordedRun, start: float, time: float, ranks: set[int]) -> Iterator[str]:
    """Yield the failures of targets through which a job ran."""
    if recorded.epilog:
        return  # a job that is in cleanup when its target fails continues
    for rank in sorted(ranks & recorded.failures.keys()):
        failure = next((at for at in recorded.failures[rank] if start < at < time), None)
        if failure is not None:
            yield f"ran through the failure of rank {rank} at {failure:g}"


def was_interrupted(recorded: RecordedRun, job: Job, span: AllocationSpan) -> bool:
    """Whether a job's last attempt ended early, as attempts of requeued jobs do."""
    seconds = runs_for(job, recorded)
    return not isnan(span.last) and (span.last - span.start < seconds or not seconds)


def wrong_end(recorded: RecordedRun, job: Job, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults in the end of a job: its result and its run time."""
    start, end, result = row["start"], row["end"], row["result"]
    if result == "RUNNING":
        if recorded.cut is None:
            yield "is RUNNING, and the run was not cut short"
        elif start + runs_for(job, recorded) <= recorded.cut:
            yield f"is RUNNING at {recorded.cut:g}, and should have ended"
        return
    if end is None:
        yield f"is {result} and has no end"
        return
    ran = end - start
    if result in DONE:
        limit = _expected(recorded, job, result)
        if limit is not None and differs(start + limit, end):
            yield f"{result} after {ran} s instead of {limit} s"
        if recorded.overrun is not None and (result == "TIMEOUT") != _times_out(recorded, job):
            yield f"is {result}: its limit is {job.duration} s, its run time {job.runtime} s"
    elif result in INTERRUPTED and later(end, start + runs_for(job, recorded)):
        yield f"{result} after {ran} s, though it would have ended after {runs_for(job, recorded)} s"


def _expected(recorded: RecordedRun, job: Job, result: str) -> float | None:
    """Return the seconds after which an uninterrupted job ends; None if they are unknown."""
    if recorded.overrun is not None:
        return runs_for(job, recorded)
    return job.duration if result == "TIMEOUT" else job.runtime


def _times_out(recorded: RecordedRun, job: Job) -> bool:
    known = job.runtime is not None and job.duration is not None
    most = (job.duration or 0) + recorded.kill_grace
    return recorded.overrun == "timeout" and known and (job.runtime or 0) > most


def arrays_of(jobs: Mapping[str, Job]) -> dict[str, dict[int, str]]:
    """Return job array → index → the name of the job."""
    found: dict[str, dict[int, str]] = {}
    for name, job in jobs.items():
        if job.array_task is not None:
            found.setdefault(job.array_task.array, {})[job.array_task.index] = name
    return found


class JobStarts(NamedTuple):
    """The jobs of a run by name: their rows and first starts (s), and the tasks of each job array."""

    rows: Mapping[str, Mapping[str, Any]]
    firsts: Mapping[str, float]
    arrays: Mapping[str, Mapping[int, str]]


def too_soon(job: Job, row: Mapping[str, Any], others: JobStarts) -> Iterator[str]:
    """Yield the conditions that a job did not wait for: its submission, a time, another job."""
    start, eligible = row["start"], row.get("eligible")
    if later(job.submit, start):
        yield f"starts at {start}, submitted at {job.submit}"
    eligible = known(eligible)
    if eligible is not None and (later(job.submit, eligible) or later(eligible, start)):
        yield f"starts at {start}, eligible at {eligible}, submitted at {job.submit}"
    if job.hold or job.urgency == 0:
        yield f"starts at {start} and is held"
    for dependency in job.dependencies:
        if dependency.scheme == "begin-time" and later(float(dependency.value), start):
            yield f"starts at {start}, before {dependency}"
        names = _antecedents(dependency, job, others)
        antecedents = [others.rows[name] for name in names]
        if dependency.scheme == "after":
            begun = [others.firsts.get(name) for name in names]
            if any(time is None or later(time + dependency.delay, start) for time in begun):
                yield f"starts at {start}, before {dependency} is met"
        elif antecedents and dependency.scheme in _AFTER_END:
            fine = [other["result"] == "COMPLETED" for other in antecedents]
            good = not all(fine) if dependency.scheme == "afternotok" else all(fine)
            if any(
                other["result"] in ("PENDING", "RUNNING")
                or (other["end"] is not None and later(other["end"], start))
                for other in antecedents
            ):
                yield f"starts at {start}, before {dependency} is met"
            elif dependency.scheme != "afterany" and not good:
                yield f"starts at {start}, and {dependency} was never met"


def wrong_eligible(
    recorded: RecordedRun, job: Job, row: Mapping[str, Any], others: JobStarts
) -> Iterator[str]:
    """Yield the fault of a job that is eligible at another time than that at which its conditions are met."""
    eligible = known(row.get("eligible"))
    waits_outside = any("submitted-jobs" in dict(rule.most) for rule in recorded.limits)
    if eligible is None or job.preceding is not None or waits_outside or recorded.live:
        return
    times: list[float | None] = [job.submit]
    for dependency in job.dependencies:
        names = _antecedents(dependency, job, others)
        if dependency.scheme == "begin-time":
            times.append(float(dependency.value))
        elif dependency.scheme == "after" and names:
            begun = [others.firsts.get(name) for name in names]
            times += [None if time is None else time + dependency.delay for time in begun]
        elif dependency.scheme in _AFTER_END and names:
            times += [known(others.rows[name]["end"]) for name in names]
        else:
            return  # what it waits for is not in the table
    met = [time for time in times if time is not None]
    if len(met) == len(times) and differs(max(met), eligible):
        yield f"is eligible at {eligible:g}, and its conditions are met at {max(met):g}"


def while_closed(recorded: RecordedRun, row: Mapping[str, Any], starts: Iterable[float]) -> Iterator[str]:
    """Yield the attempts of a job that start while its queue is closed."""
    queue = row.get("queue")
    for stop, opens in recorded.stops.get(str(queue), ()):
        for start in starts:
            if later(start, stop) and later(opens, start):
                yield f"starts at {start:g}, and queue {queue} is closed from {stop:g} until {opens:g}"


def wrong_interruptions(
    recorded: RecordedRun,
    row: Mapping[str, Any],
    attempts: Sequence[tuple[float, float]],
    ranks: Mapping[float, frozenset[int]],
) -> Iterator[str]:
    """Yield the attempts, as (start, end), that end otherwise than failures of nodes make them.

    `ranks` are those of each attempt by its start.  Only for runs in which nothing else ends an attempt.
    """
    *before, last = attempts
    for start, end in before:
        if recorded.on_failure == "fail":
            yield f"was queued again at {end:g}, though a failure fails a job"
        elif not _fails(recorded, ranks.get(start, frozenset()), end):
            yield f"was queued again at {end:g}, and none of its nodes failed then"
    if row["result"] == "FAILED" and recorded.on_failure == "requeue" and len(attempts) <= MOST_ATTEMPTS:
        yield f"failed at {last[1]:g}, though a failure queues a job again"
    elif row["result"] == "FAILED" and not _fails(recorded, ranks.get(last[0], frozenset()), last[1]):
        yield f"failed at {last[1]:g}, and none of its nodes failed then"


MOST_ATTEMPTS = 100
"""Attempts after which a job that is queued again fails."""


def _fails(recorded: RecordedRun, ranks: Iterable[int], time: float) -> bool:
    return any(not differs(failure, time) for rank in ranks for failure in recorded.failures.get(rank, ()))


def _antecedents(dependency: Dependency, job: Job, others: JobStarts) -> list[str]:
    """Return the names of the jobs that a dependency names: of a job, a task, or all tasks of an array."""
    rows, _, arrays = others
    tasks = arrays.get(dependency.value)
    array, _, index = dependency.value.rpartition("_")
    if dependency.scheme == "aftercorr":
        names = [tasks[job.array_task.index]] if tasks is not None and job.array_task is not None else []
    elif tasks is not None:
        names = list(tasks.values())
    elif dependency.value not in rows and index.isdigit() and int(index) in arrays.get(array, {}):
        names = [arrays[array][int(index)]]
    else:
        names = [dependency.value]
    return [name for name in names if name in rows]


def before_log(recorded: RecordedRun, job: Job, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fault of a job that a run which plays the log starts before the log does."""
    if recorded.queue_policy != "recorded":
        return
    if job.wait is None:
        yield f"starts at {row['start']}, and the log has no start of it"
    elif later(job.submit + job.wait, row["start"]):
        yield f"starts at {row['start']}, before the log starts it at {job.submit + job.wait}"


def miscounted(recorded: RecordedRun, table: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the numbers of ``run.json`` that differ from the table."""
    found = Counter(str(row["result"]).lower() for row in table)
    found["jobs"] = len(table)
    found["run"] = sum(known(row["start"]) is not None for row in table)
    found["unfinished"] = found["pending"] + found["running"]
    if recorded.seeds[0] != recorded.seeds[1]:
        yield f"run.json has the seed {recorded.seeds[0]}, and {recorded.seeds[1]} in its configuration"
    if not recorded.complete and found["jobs"] and not found["unfinished"]:
        yield "run.json records an interrupted run, but every job has ended"
    for name, number in recorded.counts.items():
        if number != found[name]:
            yield f"run.json counts {number} {name}, the table has {found[name]}"
