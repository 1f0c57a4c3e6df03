"""More or less load on the same days: users or jobs are omitted, or copied to other weeks of the trace.

Denser arrivals make the days of a trace shorter while run times, limits and windows of time stay
as they are, and longer run times give jobs that users do not submit [Frachtenberg05].  To omit or
copy whole users [Zakay14], or single jobs, keeps days, weeks and jobs as they are.

References
----------
.. [Frachtenberg05] E. Frachtenberg, D. Feitelson, "Pitfalls in parallel job scheduling evaluation",
   JSSPP 2005 (pitfall 28: how load is scaled).
.. [Zakay14] N. Zakay, D. Feitelson, "Workload resampling for performance evaluation of parallel job
   schedulers", Concurrency and Computation 26(12), 2014 (load by the number of users).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError
from simsched.workload.flat_counts import procs_of
from simsched.workload.transforms.resample import DAY, HOUR, WEEK
from simsched.workload.transforms.transforms import _closed, _joined, _moved, change, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from simsched.workload.job import Job, Workload

#: the most jobs that a workload is copied to
MAX_JOBS = 20_000_000


def scale_users(workload: Workload, factor: float, rng: np.random.Generator) -> Workload:
    """Multiply the offered load by leaving out users, or by users that are copies of them.

    Users are drawn in random order, without replacement until each was drawn, until their
    work (processors times seconds) is nearest to the change of load.  A copy submits the jobs
    of its user a random whole number of weeks later (days or hours, of a trace shorter than two
    weeks or days), round the end of the trace to its beginning.  A job without a user counts as
    a user of its own.  The users drawn for a smaller change are among those of a larger one.

    Raises
    ------
    ConfigError
        for a factor that is not above 0 or needs too many jobs, or jobs without users.
    """
    groups: dict[Any, list[int]] = {}
    for number, job in enumerate(workload.jobs):
        groups.setdefault(job.user if job.user is not None else number, []).append(number)
    if workload.jobs and not any(isinstance(user, str) for user in groups):
        raise ConfigError("no job has a user", expected="copies(FACTOR), which does not need users")
    return _scaled(workload, factor, list(groups.values()), rng, "users")


def scale_copies(workload: Workload, factor: float, rng: np.random.Generator) -> Workload:
    """Multiply the offered load by leaving out single jobs, or by copies of them at other times.

    As `scale_users` with each job a user of its own; copies keep the user.  Sessions of a user's
    jobs are thinned out or mixed, which whole users would keep.
    """
    return _scaled(workload, factor, [[number] for number in range(len(workload))], rng, "jobs")


def _scaled(
    workload: Workload, factor: float, groups: Sequence[list[int]], rng: np.random.Generator, what: str
) -> Workload:
    if not 0 < factor < float("inf"):
        raise ConfigError(f"a factor of {factor:g} is out of range", expected="a number above 0")
    if factor * len(workload) > MAX_JOBS:
        raise ConfigError(
            f"{factor:g} times {len(workload):,} jobs are too many", expected=f"at most {MAX_JOBS:,}"
        )
    note = f"{factor:g} times the load by {what}"
    if not workload.jobs:  # as where the steps of a study are tried before its jobs are read
        return workload
    work = _work(workload, groups)
    period, turns = _period(workload)
    drawn = _nearest(_draws(len(groups), turns, rng), work, abs(factor - 1) * float(work.sum()))
    if factor <= 1:
        gone = {number for draw in drawn for number in groups[draw.group]}
        kept = (job for number, job in enumerate(workload.jobs) if number not in gone)
        return workload.with_jobs(_closed(kept), note)
    names = _Names(workload, renamed=what == "users")
    parts = [workload.jobs]
    for draw in drawn:
        jobs = tuple(names.copied(workload.jobs[number], draw.copy) for number in groups[draw.group])
        parts += _turned(jobs, workload.span[0], draw.turns * period, turns * period)
    return workload.with_jobs(_joined(parts), note)


def _work(workload: Workload, groups: Sequence[list[int]]) -> np.ndarray[Any, Any]:
    """Return the work of each group, in processors times seconds; its number of jobs if there is no work."""
    each = np.array(
        [procs_of(job.procs, job.jobspec) * seconds_of(job) for job in workload.jobs], dtype=float
    )
    each = each if each.sum() > 0 else np.ones(len(each))
    return np.array([each[group].sum() for group in groups])


@dataclass(frozen=True, slots=True)
class _Draw:
    """A drawn group, the number of its copy (2 or more), and the number of cycles by which it is shifted."""

    group: int
    copy: int
    turns: int


def _draws(groups: int, turns: int, rng: np.random.Generator) -> Iterator[_Draw]:
    """Draw the groups in random order, again and again, all of them in each round.

    How much is drawn does not depend on how many of the draws are used.
    """
    copy = 2
    while True:
        order = rng.permutation(groups).tolist()
        later = rng.integers(1, turns, groups).tolist() if turns > 1 else [0] * groups
        yield from (_Draw(group, copy, by) for group, by in zip(order, later, strict=True))
        copy += 1


def _nearest(draws: Iterator[_Draw], work: np.ndarray[Any, Any], wanted: float) -> list[_Draw]:
    """Return the first draws whose total work is nearest to the target."""
    found: list[_Draw] = []
    total = 0.0
    while total < wanted:
        draw = next(draws)
        more = float(work[draw.group])
        if wanted - total <= total + more - wanted:
            break
        found.append(draw)
        total += more
    return found


def _period(workload: Workload) -> tuple[float, int]:
    """Return the longest cycle that a trace holds at least twice, and how often; (0, 1) if it holds none."""
    begin, end = workload.span
    for length in (WEEK, DAY, HOUR, 1):
        if end - begin >= 2 * length:
            return length, int((end - begin) // length)
    return 0, 1


class _Names:
    """The names of copied users: new ones, or those of the jobs that are copied."""

    def __init__(self, workload: Workload, *, renamed: bool) -> None:
        self.renamed = renamed
        self.taken = {job.user for job in workload.jobs}
        self.given: dict[tuple[str, int], str] = {}

    def copied(self, job: Job, copy: int) -> Job:
        """Return the job as submitted by the copy of its user with this number."""
        if not self.renamed or job.user is None:
            return job
        return change(job, user=self._name(job.user, copy))

    def _name(self, user: str, copy: int) -> str:
        if (user, copy) not in self.given:
            number = copy
            while f"{user}.{number}" in self.taken:
                number += 1
            self.given[user, copy] = f"{user}.{number}"
            self.taken.add(f"{user}.{number}")
        return self.given[user, copy]


def _turned(jobs: Sequence[Job], begin: float, shift: float, length: float) -> list[tuple[Job, ...]]:
    """Return jobs later by `shift`, those beyond `length` moved to the beginning, as parts of their own.

    Jobs after the last whole turn stay where they are.  Parts are closed each for itself: no job
    depends on one that comes after it.
    """
    parts: dict[float, list[Job]] = {}
    for job in jobs:
        at = job.submit - begin
        by = 0 if at >= length else shift if at + shift < length else shift - length
        parts.setdefault(by, []).append(job)
    return [tuple(_moved(job, by) if by else job for job in _closed(part)) for by, part in parts.items()]
