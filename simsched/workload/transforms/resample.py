"""Other workloads like this one: a trace cut into blocks of time, which are drawn with replacement.

A trace is one draw of what its users might have done.  Blocks drawn from it with replacement make
further traces.  Within a block every gap, size, run time and burst stays as it is.  Which blocks are
drawn, and how often, is random.

References
----------
.. [Kunsch89] H. Künsch, "The jackknife and the bootstrap for general stationary observations",
   Annals of Statistics 17(3), 1989 (blocks keep the dependence of neighbours).
.. [Politis01] D. Politis, "Resampling time series with seasonal components", Computing Science and
   Statistics 33, 2001 (blocks are drawn from the same season).
.. [Tsafrir07] D. Tsafrir, K. Ouaknine, D. Feitelson, "Reducing performance evaluation sensitivity and
   variability by input shaking", MASCOTS 2007.
.. [Zakay14] N. Zakay, D. Feitelson, "Workload resampling for performance evaluation of parallel job
   schedulers", Concurrency and Computation 26(12), 2014 (why and how for logs of parallel machines).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from simsched.errors import ConfigError
from simsched.formats.rfc.dependency import JOB_SCHEMES
from simsched.workload.transforms.transforms import _closed, _joined, _moved

if TYPE_CHECKING:
    import numpy as np

    from simsched.workload.job import Job, Workload

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
        new = max(job.submit + by, 0, *(at.get(name, 0) for name in _before(job)))
        moved = _later(job, new - job.submit)
        at[str(job.id)] = moved.submit
        if job.array_task is not None:
            array = job.array_task.array
            at[array] = max(at.get(array, 0), moved.submit)
        jobs.append(moved)
    return workload.with_jobs(jobs, f"submissions moved by up to {seconds:g} s")


def _before(job: Job) -> list[str]:
    """Return the ids of the jobs that a job depends on or follows."""
    found = [item.value for item in job.dependencies if item.scheme in JOB_SCHEMES]
    return found if job.preceding is None else [*found, str(job.preceding)]


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
