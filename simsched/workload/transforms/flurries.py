"""Flurries: surges of activity of single users, against the background of a log, and the log without them.

A day is *heavy* for a user who submits at least the median number of jobs of a day of the log (of all
users), and more jobs than all other users together.  Heavy days of a user that are at most `JOINED` apart
are one flurry if they have at least `LEAST` times the jobs of a median day.  Feitelson and Tsafrir find
flurries by eye in plots of weekly activity; the thresholds are ours.

References
----------
.. [Feitelson06] D. Feitelson, D. Tsafrir, "Workload sanitation for performance evaluation", ISPASS 2006.
.. [Tsafrir06] D. Tsafrir, D. Feitelson, "Instability in parallel job scheduling simulation: the role of
   workload flurries", IPDPS 2006.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from simsched.declare.answers import extended
from simsched.errors import ConfigError
from simsched.workload.job import work_of
from simsched.workload.transforms.resample import DAY
from simsched.workload.transforms.transforms import _closed

if TYPE_CHECKING:
    from simsched.workload.job import Job, Workload

LEAST = 7.0
"""A flurry has at least this many times the jobs of a median day, by default: those of a usual week."""
JOINED = 7
"""Days from one heavy day to the next of one flurry, at most."""
PAUSE = 3600
"""A flurry goes on beyond its heavy days until the user submits no job for more than this time (s)."""
FEWEST_DAYS = 14
"""The background is known from this many days with jobs on."""


@dataclass(frozen=True, slots=True)
class Flurry:
    """The jobs of a user in a burst.

    Attributes
    ----------
    user : the user.
    begin, end : first and last submission (s).
    jobs : number of the user's jobs in this time.
    share : their share of the jobs of the log.
    at_the_time : their share of all jobs submitted in this time.
    equal : the share of the most frequent request and limit among them.
    work : processor-seconds.
    members : places of the jobs in the workload.
    """

    user: str
    begin: float
    end: float
    jobs: int
    share: float
    at_the_time: float
    equal: float
    work: float
    members: tuple[int, ...]


FlurryAnswer: Any = extended("FlurryAnswer", Flurry, without=["members"])


class FlurriesAnswer(TypedDict):
    """The flurries of a log.

    jobs : number of jobs of the log.
    median_day : jobs of a median day.
    """

    jobs: int
    median_day: float
    flurries: list[FlurryAnswer]


def median_day(workload: Workload) -> float:
    """Return the median number of jobs of the days that have jobs.

    Raises
    ------
    ConfigError
        if no job has a user, or the log has jobs on too few days.
    """
    from statistics import median

    if not any(job.user is not None for job in workload.jobs):
        raise ConfigError("no job has a user", where=workload.source or None, expected="a log with users")
    counts = Counter(_day(job, workload) for job in workload.jobs)
    if len(counts) < FEWEST_DAYS:
        raise ConfigError(
            f"days with jobs: {len(counts)}, which are too few to know the usual activity",
            where=workload.source or None,
            expected=f"at least {FEWEST_DAYS} days",
        )
    return float(median(counts.values()))


def flurries(workload: Workload, least: float = LEAST) -> list[Flurry]:
    """Return the flurries of a log, the one with the most jobs first; errors as `median_day`."""
    if not 0 < least < float("inf"):
        raise ConfigError(f"{least:g} median days are out of range", expected="a number above 0")
    usual = median_day(workload)
    of_all = Counter(_day(job, workload) for job in workload.jobs)
    places: dict[str, list[int]] = {}
    for place, job in enumerate(workload.jobs):
        if job.user is not None:
            places.setdefault(job.user, []).append(place)
    found = [
        _flurry(workload, user, group)
        for user, mine in places.items()
        for group in _bursts(workload, mine, of_all, usual)
        if len(group) >= least * usual
    ]
    return sorted(found, key=lambda one: (-one.jobs, one.begin, one.user))


def without_flurries(workload: Workload, least: float = LEAST) -> Workload:
    """Return the workload without the jobs of its flurries; errors as `median_day`."""
    if not workload.jobs:  # as where the steps of a study are tried before its jobs are read
        return workload
    found = flurries(workload, least)
    gone = {place for one in found for place in one.members}
    kept = (job for place, job in enumerate(workload.jobs) if place not in gone)
    users = ", ".join(dict.fromkeys(one.user for one in found))
    of_users = f" of the users {users}" if found else ""
    return workload.with_jobs(
        _closed(kept), f"{len(gone):,} jobs of {len(found)} flurries left out{of_users}"
    )


def _day(job: Job, workload: Workload) -> int:
    return int((job.submit - workload.span[0]) // DAY)


def _bursts(workload: Workload, mine: list[int], of_all: Counter[int], usual: float) -> list[list[int]]:
    """Return the places of a user's jobs in each run of heavy days."""
    by_day: dict[int, list[int]] = {}
    for place in mine:
        by_day.setdefault(_day(workload.jobs[place], workload), []).append(place)
    heavy = [day for day, own in by_day.items() if len(own) >= usual and 2 * len(own) > of_all[day]]
    runs: list[tuple[int, int]] = []
    for day in heavy:
        if runs and day - runs[-1][1] <= JOINED:
            runs[-1] = (runs[-1][0], day)
        else:
            runs.append((day, day))
    return [_to_pauses(workload, mine, by_day[low][0], by_day[high][-1]) for low, high in runs]


def _to_pauses(workload: Workload, mine: list[int], first: int, last: int) -> list[int]:
    """Return the places from the first to the last, and those around them up to the next pause of the user.

    A burst does not end at the limit of a day.
    """
    low, high = mine.index(first), mine.index(last)
    jobs = workload.jobs
    while low > 0 and jobs[mine[low]].submit - jobs[mine[low - 1]].submit <= PAUSE:
        low -= 1
    while high + 1 < len(mine) and jobs[mine[high + 1]].submit - jobs[mine[high]].submit <= PAUSE:
        high += 1
    return mine[low : high + 1]


def _flurry(workload: Workload, user: str, members: list[int]) -> Flurry:
    jobs = [workload.jobs[place] for place in members]
    kinds = Counter((id(job.jobspec), job.duration) for job in jobs)
    around = members[-1] - members[0] + 1  # jobs are in order of submission
    return Flurry(
        user=user,
        begin=jobs[0].submit,
        end=jobs[-1].submit,
        jobs=len(jobs),
        share=len(jobs) / len(workload),
        at_the_time=len(jobs) / around,
        equal=max(kinds.values()) / len(jobs),
        work=sum(map(work_of, jobs)),
        members=tuple(members),
    )
