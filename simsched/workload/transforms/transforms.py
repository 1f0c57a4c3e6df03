"""Transforms: pure functions from a workload to a workload; each adds a line to its history.

Seconds are counted from the first submission of the original workload.  If a transform removes a
job, dependencies on it are removed as well, since they could never be met.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.rfc.clock import clock_header, later_header
from simsched.formats.rfc.dependency import JOB_SCHEMES, Dependency
from simsched.formats.rfc.duration import format_duration, whole
from simsched.workload.dependencies import begin_moved, with_known_dependencies
from simsched.workload.job import MAX_JOBS, Job, Workload, change, work_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy as np


# ------------------------------------------------------------ which jobs


def time_slice(workload: Workload, begin: float = 0, end: float = float("inf")) -> Workload:
    """Keep the jobs submitted from `begin` up to but not at `end` seconds; times stay as they are."""
    if begin > end:
        raise ConfigError(
            f"the slice from {begin:g} s to {end:g} s is not valid", expected="the earlier time first"
        )
    first = workload.span[0]
    kept = (job for job in workload.jobs if begin <= job.submit - first < end)
    found = workload.with_jobs(_closed(kept), f"submitted from {begin:g} s to {end:g} s")
    return _without_skips(found, lambda submit: begin <= submit - first < end)


def _without_skips(workload: Workload, within: Callable[[float], bool]) -> Workload:
    """Return a workload without the ignored records that were submitted outside of a part of the time."""
    out = [skip for skip in workload.skipped if skip.submit is not None and not within(skip.submit)]
    if not out:
        return workload
    counts = dict(workload.skipped_counts)
    for skip in out:
        counts[skip.reason] -= 1
    left = {id(skip) for skip in out}
    return replace(
        workload,
        skipped=tuple(skip for skip in workload.skipped if id(skip) not in left),
        skipped_counts={reason: count for reason, count in counts.items() if count > 0},
    )


def keep(workload: Workload, predicate: Callable[[Job], bool], note: str = "filtered") -> Workload:
    """Keep the jobs for which the predicate holds."""
    return workload.with_jobs(_closed(filter(predicate, workload.jobs)), note)


def where(workload: Workload, query: str) -> Workload:
    """Keep the jobs that a query such as ``procs >= 64 and user == alice`` names (see `query`)."""
    from simsched.workload.transforms.query import parse_query

    return keep(workload, parse_query(query), f"where {query}")


def thin(workload: Workload, share: float, rng: np.random.Generator) -> Workload:
    """Keep each job with probability `share`, independently."""
    if not 0 <= share <= 1:
        raise ConfigError(f"a share of {share:g} is out of range", expected="0 to 1")
    drawn = rng.random(len(workload)) < share
    kept = (job for job, stays in zip(workload.jobs, drawn.tolist(), strict=True) if stays)
    return workload.with_jobs(_closed(kept), f"thinned to {share:g}")


def first(workload: Workload, number: int) -> Workload:
    """Keep the first `number` jobs."""
    if number < 0:
        raise ConfigError(f"a number of {number} jobs is out of range", expected="0 or more")
    return workload.with_jobs(_closed(workload.jobs[:number]), f"the first {number} jobs")


def release(workload: Workload) -> Workload:
    """Lift the holds: every job may start as soon as it is submitted."""
    jobs = (change(job, hold=False) if job.hold else job for job in workload.jobs)
    return workload.with_jobs(jobs, "holds lifted")


# ------------------------------------------------------------ when, and how long


def shift(workload: Workload, seconds: float) -> Workload:
    """Move every submission by `seconds`; none may fall before 0."""
    seconds = whole(seconds)
    if workload.jobs and workload.jobs[0].submit + seconds < 0:
        raise ConfigError(f"after a shift by {seconds:g} s the first job is submitted before 0")
    return workload.with_jobs((_moved(job, seconds) for job in workload.jobs), f"shifted by {seconds:g} s")


def rebase(workload: Workload) -> Workload:
    """Move the first submission to 0; its date stays, so second 0 of the header's clock moves to it."""
    moved = shift(workload, -workload.span[0])
    return replace(moved, header=later_header(moved.header, workload.span[0]))


def scale_arrivals(workload: Workload, factor: float) -> Workload:
    """Multiply the offered load by making every gap between submissions `factor` times shorter.

    Days become shorter as well (18.5 h at 1.3); run times, limits and windows of time do not change:
    E. Frachtenberg, D. Feitelson, "Pitfalls in parallel job scheduling evaluation", JSSPP 2005.
    `resample` has ways that keep days.
    """
    _positive(factor)
    start = workload.span[0]

    def scaled(job: Job) -> Job:
        submit = start + (job.submit - start) / factor
        return change(_moved(job, submit - job.submit), submit=_like(job.submit, submit))

    return workload.with_jobs(
        map(scaled, workload.jobs), f"arrivals {factor:g} times as dense: a day takes {24 / factor:.3g} h"
    )


def scale_run_times(workload: Workload, factor: float) -> Workload:
    """Multiply run times and limits by `factor`; whole seconds stay whole."""
    _positive(factor)

    def scaled(job: Job) -> Job:
        return change(
            job, runtime=_times(job.runtime, factor, least=0), duration=_times(job.duration, factor, least=1)
        )

    return workload.with_jobs(map(scaled, workload.jobs), f"run times times {factor:g}")


def repeat(workload: Workload, times: int, period: float | None = None) -> Workload:
    """Submit the whole workload `times` times, one `period` (s) after another.

    The default period is the span plus the mean gap.  Copies get ids of their own.
    """
    if times < 1:
        raise ConfigError(f"{times} repetitions are out of range", expected="1 or more")
    if times * max(1, len(workload)) > MAX_JOBS:
        raise ConfigError(
            f"{times:,} times {len(workload):,} jobs are too many",
            expected=f"at most {MAX_JOBS:,} jobs in all",
        )
    begin, end = workload.span
    if period is None:
        period = end - begin + round((end - begin) / max(1, len(workload) - 1))
    copies = [shift(workload, copy * period).jobs for copy in range(times if workload.jobs else 0)]
    return workload.with_jobs(_joined(copies), f"{times} times, every {period:g} s")


def merge(workloads: Sequence[Workload]) -> Workload:
    """Put workloads on one time line; ids that occur in more than one are made unique.

    Where all their dates are known, on clocks of one zone, each job keeps its date. Otherwise all begin at
    their own second 0, and the whole has no dates; a note says so.
    """
    if not workloads:
        return Workload(())
    head = workloads[0]
    workloads, header, note = _on_one_clock(workloads) if len(workloads) > 1 else (workloads, head.header, "")
    counts = Counter[str]()
    for part in workloads:
        counts.update(part.skipped_counts)
    merged = replace(
        head,
        name="+".join(part.name for part in workloads),
        source="+".join(part.source for part in workloads),
        skipped=tuple(skip for part in workloads for skip in part.skipped),
        skipped_counts=dict(counts),
        total_records=sum(part.total_records for part in workloads),
        notes=tuple(
            dict.fromkeys([*(one for part in workloads for one in part.notes), *filter(None, [note])])
        ),
        header=header,
    )
    return merged.with_jobs(_joined([part.jobs for part in workloads]), f"merged {len(workloads)} workloads")


def _on_one_clock(workloads: Sequence[Workload]) -> tuple[Sequence[Workload], Mapping[str, str], str]:
    """Return the workloads on the clock of the earliest of them, its header, and a note on their dates."""
    clocks = [part.clock for part in workloads if part.jobs]
    known = [clock for clock in clocks if clock is not None]
    if not known:
        return workloads, {}, ""
    if len(known) < len(clocks):
        name = next(part.name for part in workloads if part.jobs and part.clock is None)
        return workloads, {}, f"the merged logs have no dates: those of {name} are not known"
    zones = list(dict.fromkeys(clock.zone for clock in known))
    if len(zones) > 1:
        return workloads, {}, f"the merged logs have no dates: their time zones are {' and '.join(zones)}"
    origin = min(clock.origin for clock in known)
    moved = [
        part if part.clock is None or part.clock.origin == origin else shift(part, part.clock.origin - origin)
        for part in workloads
    ]
    header = clock_header(origin, None if all(clock.assumed for clock in known) else zones[0])
    if len({clock.origin for clock in known}) == 1:
        return moved, header, ""
    days = (max(clock.origin for clock in known) - origin) / 86400
    note = (
        f"the logs are merged by their dates; the last of them begins {days:,.6g} days after the first "
        "(--start-date lets all begin at one date)"
    )
    return moved, header, note


# ------------------------------------------------------------ users, and the limits they request


def anonymise(workload: Workload) -> Workload:
    """Replace users, groups, banks and names by numbered ones, in order of first appearance."""
    known: dict[str, dict[str, str]] = {}

    def masked(job: Job) -> Job:
        found = {}
        for field in ("user", "group", "bank", "name"):
            value = getattr(job, field)
            if value is not None:
                names = known.setdefault(field, {})
                found[field] = names.setdefault(value, f"{field}{len(names) + 1}")
        return change(job, **found)

    return workload.with_jobs(map(masked, workload.jobs), "anonymised")


def factor_estimates(workload: Workload, factor: float) -> Workload:
    """Set every limit to `factor` times the run time of the job (at least one second)."""
    _positive(factor)

    def estimated(job: Job) -> Job:
        return job if job.runtime is None else change(job, duration=_times(job.runtime, factor, least=1))

    note = "exact estimates" if factor == 1 else f"estimates {factor:g} times the run time"
    return workload.with_jobs(map(estimated, workload.jobs), note)


def uniform_estimates(workload: Workload, factor: float, rng: np.random.Generator) -> Workload:
    """Set every limit to the run time times a number drawn evenly from 1 to `factor`, of each job.

    The f-model of Mu'alem & Feitelson 2001, "Utilization, predictability, workloads, and user runtime
    estimates in scheduling the IBM SP2 with backfilling". Whole seconds stay whole; a limit is at least 1 s.
    """
    if not 1 <= factor < float("inf"):
        raise ConfigError(f"a factor of {factor:g} is out of range", expected="1 or more")
    drawn = iter(rng.uniform(1.0, factor, len(workload)).tolist())

    def estimated(job: Job, times: float) -> Job:
        # No limit is shorter than the run time: a limit that ends the job would not be an estimate of it.
        if job.runtime is None:
            return job
        return change(job, duration=max(_times(job.runtime, times, least=1) or 1, job.runtime))

    note = f"estimates 1 to {factor:g} times the run time"
    return workload.with_jobs((estimated(job, next(drawn)) for job in workload.jobs), note)


def tsafrir_estimates(workload: Workload, max_estimate: float, rng: np.random.Generator) -> Workload:
    """Replace the limits by estimates of Tsafrir's model up to `max_estimate` seconds."""
    import numpy as np

    from simsched.workload.models.tsafrir import assign, estimates

    known = [index for index, job in enumerate(workload.jobs) if job.runtime is not None]
    run = np.array([np.ceil(workload.jobs[index].runtime or 0) for index in known], dtype=np.int64)
    drawn = estimates(len(known), int(max_estimate), rng).draw(len(known), rng)
    given = dict(zip(known, assign(run, drawn, rng).tolist(), strict=True)) if known else {}
    jobs = (
        change(job, duration=given[index]) if index in given else job
        for index, job in enumerate(workload.jobs)
    )
    return workload.with_jobs(jobs, f"Tsafrir estimates up to {max_estimate:g} s")


# ------------------------------------------------------------ identifiers


def offered_work(jobs: Iterable[Job]) -> float:
    """Return the processor-seconds that the jobs run (to their limit where the run time is unknown)."""
    return sum(map(work_of, jobs))


def _like(old: float, new: float) -> float:
    """Return `new` as the kind of number that `old` is."""
    return round(new) if isinstance(old, int) else new


def _times(value: float | None, factor: float, *, least: int) -> float | None:
    return None if value is None else max(least, _like(value, value * factor))


def _positive(factor: float) -> None:
    if not 0 < factor < 1e12:
        raise ConfigError(f"a factor of {factor:g}", expected="a number above 0")


def _moved(job: Job, seconds: float) -> Job:
    """Return the job moved by `seconds`: submission, cancellation, deadline and begin-time dependencies."""
    new: dict[str, Any] = {"submit": job.submit + seconds}
    if job.cancel_at is not None:
        new["cancel_at"] = job.cancel_at + seconds
    if job.deadline is not None:
        new["deadline"] = max(0, job.deadline + seconds)
    if job.dependencies:
        new["dependencies"] = tuple(begin_moved(item, lambda at: at + seconds) for item in job.dependencies)
    return change(job, **new)


def _closed(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Drop references to jobs that are not among these."""
    kept = tuple(jobs)
    if not any(job.dependencies or job.preceding is not None for job in kept):
        return kept
    ids = {job.id for job in kept}
    kept, _ = with_known_dependencies(kept)
    return tuple(
        job if job.preceding in ids or job.preceding is None else change(job, preceding=None, think_time=None)
        for job in kept
    )


def _joined(parts: Sequence[tuple[Job, ...]]) -> list[Job]:
    """Return all jobs with ids that occur once: numbers go on counting, texts get ``.2``, ``.3``."""
    used: set[str] = set()
    arrays: set[str] = set()
    made: list[Job] = []
    free = 1 + max((job.id for part in parts for job in part if isinstance(job.id, int)), default=0)
    for part in parts:
        ids: dict[str, int | str] = {}
        for job in part:
            new, free = _unused(job.id, used, free)
            used.add(str(new))
            ids[str(job.id)] = new
        names = _new_arrays(part, arrays)
        made.extend(_renamed(job, ids, names) for job in part)
    return made


def _unused(old: int | str, used: set[str], free: int) -> tuple[int | str, int]:
    if str(old) not in used:
        return old, free
    if isinstance(old, int):
        while str(free) in used:
            free += 1
        return free, free + 1
    copy = 2
    while f"{old}.{copy}" in used:
        copy += 1
    return f"{old}.{copy}", free


def _new_arrays(part: Sequence[Job], used: set[str]) -> dict[str, str]:
    """Return array → a name that no other array has; `used` has the names that are taken."""
    found: dict[str, str] = {}
    for job in part:
        if job.array_task is not None and job.array_task.array not in found:
            name, _ = _unused(job.array_task.array, used, 0)
            found[job.array_task.array] = str(name)
            used.add(str(name))
    return found


def _renamed(job: Job, ids: Mapping[str, int | str], arrays: Mapping[str, str]) -> Job:
    new: dict[str, Any] = {"id": ids[str(job.id)]}
    if job.array_task is not None and arrays[job.array_task.array] != job.array_task.array:
        new["array_task"] = change(job.array_task, array=arrays[job.array_task.array])
    if job.preceding is not None:
        new["preceding"] = ids.get(str(job.preceding), job.preceding)
    if job.dependencies:
        new["dependencies"] = tuple(_redirected(item, ids, arrays) for item in job.dependencies)
    return job if new == {"id": job.id} else change(job, **new)


def _redirected(item: Dependency, ids: Mapping[str, int | str], arrays: Mapping[str, str]) -> Dependency:
    if item.scheme not in JOB_SCHEMES:
        return item
    array, _, index = item.value.rpartition("_")
    if item.value in arrays:
        return Dependency(item.scheme, arrays[item.value], item.params)
    if item.value not in ids:
        same = array not in arrays
        return item if same else Dependency(item.scheme, f"{arrays[array]}_{index}", item.params)
    return Dependency(item.scheme, str(ids[item.value]), item.params)


CUT, SPLIT, DROP = "cut", "split", "drop"
WAYS = (CUT, SPLIT, DROP)
INF = float("inf")


def cap_limits(workload: Workload, longest: float, way: str = CUT) -> Workload:
    """Return a workload in which no limit is above `longest` seconds; no limit counts as endless.

    ``cut`` lowers the limit, so that a run ends the job there.  ``split`` puts consecutive jobs in its
    place, ``ID.1``, ``ID.2`` …, each after the one before it, as users with checkpoints do: as many as its
    run time needs (its limit, if the run time is not known).  Jobs that depend on it depend on the last
    part.  A job of which neither is known is cut.  ``drop`` leaves the job out.
    """
    if not 0 < longest < INF:
        raise ConfigError(f"a longest limit of {longest:g} s", expected="a duration above 0")
    if way not in WAYS:
        raise ConfigError(f"unknown word {way!r}", expected="cut, split or drop")
    longest = int(longest) if float(longest).is_integer() else longest
    above = sum(_limit(job) > longest for job in workload.jobs)
    text = f"limits of at most {format_duration(longest)}: {above:,} jobs above were"
    if way == DROP:
        return keep(workload, lambda job: _limit(job) <= longest, f"{text} dropped")
    if way == CUT:
        jobs = (change(job, duration=longest) if _limit(job) > longest else job for job in workload.jobs)
        return workload.with_jobs(jobs, f"{text} cut")
    counts = [_parts(job, longest) for job in workload.jobs]
    if sum(counts) > MAX_JOBS:
        raise ConfigError(
            f"{sum(counts):,} parts of jobs are too many", expected=f"at most {MAX_JOBS:,} jobs"
        )
    taken = {str(job.id) for job in workload.jobs}
    names: dict[str, list[str]] = {}
    for job, count in zip(workload.jobs, counts, strict=True):
        if count > 1:
            names[str(job.id)] = own = [f"{job.id}.{number}" for number in range(1, count + 1)]
            twice = next((name for name in own if name in taken), None)
            if twice is not None:
                raise ConfigError(
                    f"a part of job {job.id} would have the id of job {twice}", expected="other ids"
                )
            taken.update(own)
    jobs = (part for job in workload.jobs for part in _split(job, longest, names))
    return workload.with_jobs(jobs, f"{text} split into {sum(count for count in counts if count > 1):,}")


def _limit(job: Job) -> float:
    return INF if job.duration is None else job.duration


def _parts(job: Job, longest: float) -> int:
    """Return the number of jobs in the place of one."""
    if _limit(job) <= longest:
        return 1
    seconds = _limit(job) if job.runtime is None else min(job.runtime, _limit(job))
    return 1 if seconds == INF else max(1, ceil(seconds / longest))


def _split(job: Job, longest: float, names: Mapping[str, list[str]]) -> Iterator[Job]:
    """Yield the parts of a job, or the job itself, with references to the parts of others."""
    own = names.get(str(job.id))
    # A dependency is on the first part for a start, and on the last for an end.
    after = tuple(
        Dependency(item.scheme, names[item.value][0 if item.scheme == "after" else -1], item.params)
        if item.value in names
        else item
        for item in job.dependencies
    )
    before = names[str(job.preceding)][-1] if str(job.preceding) in names else job.preceding
    if own is None:
        limit = longest if _limit(job) > longest else job.duration
        yield change(job, duration=limit, dependencies=after, preceding=before)
        return
    for number, name in enumerate(own):
        first, last = number == 0, number == len(own) - 1
        done = number * longest
        left = None if job.runtime is None else job.runtime - done
        yield change(
            job,
            id=name,
            duration=min(longest, _limit(job) - done),
            runtime=left if left is None or last else longest,
            dependencies=after if first else (Dependency("afterany", own[number - 1]),),
            preceding=before if first else None,
            think_time=job.think_time if first else None,
            hold=job.hold and first,
            wait=job.wait if first else None,
            energy=None,
            status=job.status if last else None,
            # the dependents of an array wait for its last parts
            array_task=job.array_task if last else None,
        )
