"""Sessions of users: think times extracted from a log, and users or sessions drawn anew.

The *think time* of a job is the time from the recorded end of the user's job before it to its submission.
A job that is submitted before that end belongs to the same *batch*.  A think time of at most the threshold
continues the *session* with a new batch, which reacts to that end; a longer one begins a new session.

References
----------
.. [Zakay13] N. Zakay, D. Feitelson, "On identifying user session boundaries in parallel workload logs",
   JSSPP 2012, LNCS 7698, 2013 (batches and sessions by think times; 20 minutes).
.. [Zakay14] N. Zakay, D. Feitelson, "Workload resampling for performance evaluation of parallel job
   schedulers", Concurrency and Computation 26(12), 2014 (users are drawn with their weeks).
.. [Zakay14b] N. Zakay, D. Feitelson, "Preserving user behavior characteristics in trace-based simulation of
   parallel job scheduling", MASCOTS 2014 (batches wait for the batch before, in place of recorded times).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.workload.transforms.resample import _later
from simsched.workload.transforms.rescale import _Names, _period, _turned
from simsched.workload.transforms.transforms import _closed, _joined, _like, change, seconds_of

if TYPE_CHECKING:
    import numpy as np

    from simsched.workload.job import Job, Workload

THINK = 20 * 60
"""The longest think time (s) within a session, by default."""


def sessions_of(workload: Workload, think: float = THINK) -> dict[str, list[list[list[Job]]]]:
    """Return the sessions of each user, each a list of batches of jobs, in order of submission.

    A job whose wait is not known counts as started at once.

    Raises
    ------
    ConfigError
        for a threshold below 0, or if no job has a user.
    """
    if not 0 <= think < float("inf"):
        raise ConfigError(f"a think time of {think:g} s is out of range", expected="0 or more")
    if workload.jobs and not any(job.user is not None for job in workload.jobs):
        raise ConfigError("no job has a user", expected="a log with users")
    found: dict[str, list[list[list[Job]]]] = {}
    before: dict[str, Job] = {}
    for job in workload.jobs:
        if job.user is None:
            continue
        sessions = found.setdefault(job.user, [])
        last = before.get(job.user)
        passed = float("inf") if last is None else job.submit - _end(last)
        if passed > think:
            sessions.append([[job]])
        elif passed >= 0:
            sessions[-1].append([job])
        else:
            sessions[-1][-1].append(job)
        before[job.user] = job
    return found


def _end(job: Job) -> float:
    """Return the recorded end of a job."""
    return job.submit + (job.wait or 0) + seconds_of(job)


def with_think_times(workload: Workload, think: float = THINK) -> Workload:
    """Return the workload whose jobs follow the batch before theirs, with their think times.

    Each job of a later batch of a session gets the last job of the batch before as `preceding`, and the
    time since its recorded end as `think_time`.  Jobs that begin a session have neither.

    Raises
    ------
    ConfigError
        as `sessions_of`, and if no job has a recorded wait, so that no end is known.
    """
    if workload.jobs and all(job.wait is None for job in workload.jobs):
        raise ConfigError("no job has a recorded wait, so the ends of jobs are not known", expected="a log")
    follows: dict[int | str, Job] = {}
    number = 0
    for sessions in sessions_of(workload, think).values():
        number += len(sessions)
        for batches in sessions:
            for earlier, batch in itertools.pairwise(batches):
                follows.update((job.id, earlier[-1]) for job in batch)

    def linked(job: Job) -> Job:
        if job.user is None:
            return job
        last = follows.get(job.id)
        if last is None:
            return job if job.preceding is None else change(job, preceding=None, think_time=None)
        pause = _like(job.submit, job.submit - _end(last))
        return change(job, preceding=last.id, think_time=max(0, pause))

    note = f"{len(follows):,} jobs follow another in {number:,} sessions, with think times up to {think:g} s"
    return workload.with_jobs(map(linked, workload.jobs), note)


def resample_sessions(workload: Workload, rng: np.random.Generator, think: float = THINK) -> Workload:
    """Return the workload with each session replaced by one of the same user, drawn with replacement.

    A drawn session begins when the one that it replaces began, with the jobs and gaps that it had.
    Jobs without a user stay.  Errors as `sessions_of`.
    """
    parts = [tuple(job for job in workload.jobs if job.user is None)]
    for sessions in sessions_of(workload, think).values():
        flat = [[job for batch in batches for job in batch] for batches in sessions]
        for slot, place in enumerate(rng.integers(0, len(flat), len(flat)).tolist()):
            by = flat[slot][0].submit - flat[place][0].submit
            parts.append(tuple(_later(job, by) for job in _closed(flat[place])))
    return workload.with_jobs(_joined(parts), f"sessions resampled, with think times up to {think:g} s")


def resample_users(workload: Workload, rng: np.random.Generator) -> Workload:
    """Return the workload with the same number of users, drawn with replacement, at other weeks [Zakay14].

    A drawn user submits the jobs of the log a random whole number of weeks later (days or hours, of a log
    shorter than two weeks or days), round its end to its beginning.  A user who is drawn again has a new
    name.  Jobs without a user stay.

    Raises
    ------
    ConfigError
        if no job has a user.
    """
    users = {
        user: tuple(job for batches in sessions for batch in batches for job in batch)
        for user, sessions in sessions_of(workload).items()
    }
    if not users:
        return workload
    period, turns = _period(workload)
    drawn = rng.integers(0, len(users), len(users)).tolist()
    later = rng.integers(0, turns, len(users)).tolist() if turns > 1 else [0] * len(users)
    names, given, copies = _Names(workload, renamed=True), list(users), dict.fromkeys(users, 0)
    parts = [tuple(job for job in workload.jobs if job.user is None)]
    for place, by in zip(drawn, later, strict=True):
        user = given[place]
        copies[user] += 1
        jobs = users[user]
        if copies[user] > 1:
            jobs = tuple(names.copied(job, copies[user]) for job in jobs)
        parts += _turned(jobs, workload.span[0], by * period, turns * period)
    return workload.with_jobs(_joined(parts), f"{len(users):,} users drawn with replacement")
