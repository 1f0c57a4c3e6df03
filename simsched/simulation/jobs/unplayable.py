"""Checks of jobs that Python callers made; readers refuse such jobs with their place."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import WorkloadError
from simsched.formats.rfc.duration import MAX_SECONDS
from simsched.workload.job import refuse_odd_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from simsched.workload.job import Job

INF = float("inf")


def refuse_odd_jobs(jobs: Sequence[Job]) -> None:
    """Raise a `WorkloadError` for invalid times, jobs out of order, ids that occur twice, and odd arrays."""
    submits = _refuse("submit", [job.submit for job in jobs], jobs, finite=True)
    _refuse("duration", [job.duration for job in jobs], jobs)
    _refuse("runtime", [job.runtime for job in jobs], jobs)
    _refuse("cancel_at", [job.cancel_at for job in jobs], jobs)
    _refuse("deadline", [job.deadline for job in jobs], jobs)
    following = [job for job in jobs if job.preceding is not None]
    # SWF writes an unknown time as -1
    times = [None if job.think_time == -1 else job.think_time for job in following]
    _refuse("think_time", times, following, finite=True)
    later = np.flatnonzero(np.diff(submits) < 0)
    if len(later):
        expected = "jobs in submit order, as simsched.workload.job.in_submit_order gives them"
        place = _name(jobs[later[0] + 1])
        raise WorkloadError("it is submitted before the previous job", where=place, expected=expected)
    if len({job.id for job in jobs}) < len(jobs):
        ((name, _),) = Counter(job.id for job in jobs).most_common(1)
        raise WorkloadError("its id occurs twice", where=f"job {name}")
    refuse_odd_arrays(jobs)


def _refuse(
    name: str, times: Sequence[float | None], jobs: Sequence[Job], *, finite: bool = False
) -> npt.NDArray[np.float64]:
    """Return the known times; raise if one is not a number of seconds from 0 to `MAX_SECONDS`."""
    unknown = times.count(None)
    if unknown == len(times):  # most traces have none of the rarer times
        return np.empty(0)
    known = [time for time in times if time is not None] if unknown else times
    values = np.array(known, dtype=np.float64)
    sound = (values >= 0) & (values <= MAX_SECONDS)
    if not finite:
        sound |= values == INF
    if not sound.all():
        at = [number for number, time in enumerate(times) if time is not None][int(np.argmin(sound))]
        what, place = f"{name} is {times[at]!r}", _name(jobs[at])
        raise WorkloadError(what, where=place, expected=f"seconds from 0 to {MAX_SECONDS:g}")
    return values


def _name(job: Job) -> str:
    return f"job {job.id}"
