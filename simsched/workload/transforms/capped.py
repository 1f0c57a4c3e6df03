"""``cap``: what if no job may have a longer limit than this?  Longer jobs are cut, split or dropped."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import msgspec

from simsched.errors import ConfigError
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.rfc.duration import format_duration
from simsched.workload.job import MAX_JOBS
from simsched.workload.transforms.transforms import keep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.workload.job import Job, Workload

CUT, SPLIT, DROP = "cut", "split", "drop"
WAYS = (CUT, SPLIT, DROP)
INF = float("inf")

change = msgspec.structs.replace


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
    after = tuple(_redirected(item, names) for item in job.dependencies)
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


def _redirected(item: Dependency, names: Mapping[str, list[str]]) -> Dependency:
    """Return a dependency on the part that it means: the first for a start, the last for an end."""
    own = names.get(item.value)
    if own is None:
        return item
    return Dependency(item.scheme, own[0 if item.scheme == "after" else -1], item.params)
