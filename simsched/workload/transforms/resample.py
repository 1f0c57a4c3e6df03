"""Other workloads like this one: blocks of time, users or sessions drawn anew, and more or less load.

A trace is one draw of what its users might have done.  Blocks drawn from it with replacement make
further traces.  Within a block every gap, size, run time and burst stays as it is.  Which blocks are
drawn, and how often, is random.

Load on the same days changes if users or jobs are omitted, or copied to other weeks of the trace.  Denser
arrivals make the days of a trace shorter while run times, limits and windows of time stay as they are, and
longer run times give jobs that users do not submit [Frachtenberg05].  To omit or copy whole users [Zakay14],
or single jobs, keeps days, weeks and jobs as they are.

The *think time* of a job is the time from the recorded end of the user's job before it to its submission.
A job that is submitted before that end belongs to the same *batch*.  A think time of at most the threshold
continues the *session* with a new batch, which reacts to that end; a longer one begins a new session.

References
----------
.. [Kunsch89] H. Künsch, "The jackknife and the bootstrap for general stationary observations",
   Annals of Statistics 17(3), 1989 (blocks keep the dependence of neighbours).
.. [Politis01] D. Politis, "Resampling time series with seasonal components", Computing Science and
   Statistics 33, 2001 (blocks are drawn from the same season).
.. [Frachtenberg05] E. Frachtenberg, D. Feitelson, "Pitfalls in parallel job scheduling evaluation",
   JSSPP 2005 (pitfall 28: how load is scaled).
.. [Tsafrir07] D. Tsafrir, K. Ouaknine, D. Feitelson, "Reducing performance evaluation sensitivity and
   variability by input shaking", MASCOTS 2007.
.. [Zakay13] N. Zakay, D. Feitelson, "On identifying user session boundaries in parallel workload logs",
   JSSPP 2012, LNCS 7698, 2013 (batches and sessions by think times; 20 minutes).
.. [Zakay14] N. Zakay, D. Feitelson, "Workload resampling for performance evaluation of parallel job
   schedulers", Concurrency and Computation 26(12), 2014 (why and how for logs of parallel machines; load by
   the number of users, who are drawn with their weeks).
.. [Zakay14b] N. Zakay, D. Feitelson, "Preserving user behavior characteristics in trace-based simulation of
   parallel job scheduling", MASCOTS 2014 (batches wait for the batch before, in place of recorded times).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simsched.errors import ConfigError
from simsched.formats.rfc.dependency import JOB_SCHEMES
from simsched.workload.job import Job, Workload, change, seconds_of, work_of
from simsched.workload.transforms.transforms import _closed, _joined, _like, _moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


HOUR, DAY, WEEK = 3600, 86_400, 604_800
#: a block, and how many of them are one turn of the cycle that it is part of
CYCLES: dict[float, int] = {HOUR: 24, DAY: 7}
#: blocks that a trace has to hold for a length to be chosen by itself
ENOUGH = 8
#: blocks of one season that a trace has to hold for blocks to be drawn from their own season
TURNS = 3
#: the most blocks that a workload is cut into
MAX_BLOCKS = 1_000_000


def block_of(workload: Workload) -> float | None:
    """Return a block length (s) for a workload; None if all jobs are submitted at one instant.

    The length is the longest of a week, a day and an hour that fits at least eight times into the
    workload, or else an eighth of the workload.
    """
    begin, end = workload.span
    length = end - begin
    if length <= 0:
        return None
    fitting = [block for block in (WEEK, DAY, HOUR) if length >= ENOUGH * block]
    return fitting[0] if fitting else length / ENOUGH


def resample(workload: Workload, rng: np.random.Generator, block: float | None = None) -> Workload:
    """Return a workload of the same length, made of blocks of this one that are drawn with replacement.

    Every block of the new workload is a whole block of the old one [Kunsch89], with the times
    within it as they were; the last one is cut where the old workload ends.  Blocks of an hour
    are drawn from those of the same hour of the day, and blocks of a day from those of the same day
    of the week, where the workload holds at least three turns of that cycle [Politis01].  A
    repeated job gets an id of its own; a dependency on a job of another block is dropped.

    Parameters
    ----------
    block : length of a block in seconds; `block_of` by default.

    Raises
    ------
    ConfigError
        if the block is not above 0, or the workload holds fewer than two of them, or more than `MAX_BLOCKS`.
    """
    if block is not None and block <= 0:
        raise ConfigError(f"a block of {block:g} s is out of range", expected="a length above 0")
    if not workload.jobs:  # as where the steps of a study are tried before its jobs are read
        return workload
    length = block if block is not None else block_of(workload)
    if length is None:
        return workload.with_jobs(workload.jobs, "nothing to resample: all submitted at one instant")
    begin, end = workload.span
    whole = int((end - begin) // length)
    if whole < 2:
        raise ConfigError(
            f"a workload of {end - begin:g} s is too short for blocks of {length:g} s",
            expected="at least two whole blocks",
        )
    if whole > MAX_BLOCKS:
        raise ConfigError(
            f"{whole:,} blocks of {length:g} s are too many", expected=f"at most {MAX_BLOCKS:,}"
        )
    starts = [job.submit for job in workload.jobs]
    parts = []
    for slot, drawn in enumerate(_drawn(whole, CYCLES.get(length, 1), end - begin > whole * length, rng)):
        low = begin + drawn * length
        last = min(length, end - begin - slot * length)
        high = low + length if last == length else low + last
        jobs = workload.jobs[bisect_left(starts, low) : bisect_left(starts, high)]
        parts.append(tuple(_later(job, (slot - drawn) * length) for job in _closed(jobs)))
    return workload.with_jobs(_joined(parts), f"resampled in blocks of {length:g} s")


def shake(workload: Workload, seconds: float, rng: np.random.Generator) -> Workload:
    """Return the workload with every submission moved by up to `seconds` either way, at random [Tsafrir07].

    Two shaken copies of a trace have the same demand, so a difference between their results is chance.
    Whole seconds stay whole.  No submission moves before 0, or before that of a job that it depends on
    or follows.

    Raises
    ------
    ConfigError
        if the time is not above 0.
    """
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"a shake of up to {seconds:g} s is out of range", expected="a time above 0")
    at: dict[str, float] = {}
    jobs = []
    for job, by in zip(workload.jobs, rng.uniform(-seconds, seconds, len(workload)).tolist(), strict=True):
        before = [item.value for item in job.dependencies if item.scheme in JOB_SCHEMES]
        if job.preceding is not None:
            before.append(str(job.preceding))
        new = max(job.submit + by, 0, *(at.get(name, 0) for name in before))
        moved = _later(job, new - job.submit)
        at[str(job.id)] = moved.submit
        if job.array_task is not None:
            array = job.array_task.array
            at[array] = max(at.get(array, 0), moved.submit)
        jobs.append(moved)
    return workload.with_jobs(jobs, f"submissions moved by up to {seconds:g} s")


def _drawn(whole: int, cycle: int, tail: bool, rng: np.random.Generator) -> list[int]:
    """Draw a block for each slot, of the same season where there are enough turns of the cycle."""
    slots = whole + tail
    if cycle == 1 or whole < TURNS * cycle:
        return [int(n) for n in rng.integers(0, whole, slots)]
    seasons = [range(slot % cycle, whole, cycle) for slot in range(slots)]
    return [int(season[int(rng.integers(len(season)))]) for season in seasons]


def _later(job: Job, seconds: float) -> Job:
    """Return the job so much later; whole seconds stay whole."""
    return _moved(job, round(seconds) if isinstance(job.submit, int) else seconds) if seconds else job


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
    each = np.array([work_of(job) for job in workload.jobs], float)
    each = each if each.sum() > 0 else np.ones(len(each))  # jobs, if there is no work
    work = np.array([each[group].sum() for group in groups])
    period, turns = _period(workload)
    drawn = _nearest(_draws(len(groups), turns, rng), work, abs(factor - 1) * float(work.sum()))
    if factor <= 1:
        gone = {number for draw in drawn for number in groups[draw.group]}
        kept = (job for number, job in enumerate(workload.jobs) if number not in gone)
        return workload.with_jobs(_closed(kept), note)
    renamed = _renaming(workload) if what == "users" else lambda job, _: job
    parts = [workload.jobs]
    for draw in drawn:
        jobs = tuple(renamed(workload.jobs[number], draw.copy) for number in groups[draw.group])
        parts += _turned(jobs, workload.span[0], draw.turns * period, turns * period)
    return workload.with_jobs(_joined(parts), note)


class _Draw(NamedTuple):
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


def _renaming(workload: Workload) -> Callable[[Job, int], Job]:
    """Return the function from a job and the number of a copy of its user to the job under a new name."""
    taken, given = {job.user for job in workload.jobs}, dict[tuple[str, int], str]()

    def renamed(job: Job, copy: int) -> Job:
        if job.user is None:
            return job
        if (job.user, copy) not in given:
            name = next(name for n in itertools.count(copy) if (name := f"{job.user}.{n}") not in taken)
            given[job.user, copy] = name
            taken.add(name)
        return change(job, user=given[job.user, copy])

    return renamed


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
    renamed, given, copies = _renaming(workload), list(users), dict.fromkeys(users, 0)
    parts = [tuple(job for job in workload.jobs if job.user is None)]
    for place, by in zip(drawn, later, strict=True):
        user = given[place]
        copies[user] += 1
        jobs = users[user]
        if copies[user] > 1:
            jobs = tuple(renamed(job, copies[user]) for job in jobs)
        parts += _turned(jobs, workload.span[0], by * period, turns * period)
    return workload.with_jobs(_joined(parts), f"{len(users):,} users drawn with replacement")
