"""The arrays that an agent sees: the first waiting jobs and the machine, every number from 0 to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from simsched.rl.chosen_jobs import Choice

    Floats = npt.NDArray[np.float32]
    Doubles = npt.NDArray[np.float64]

JOB_FEATURES = ("waits", "wait", "requested time", "size", "fits")
"""The columns of ``jobs``: 1 for a job (0 for a free row), wait, requested time, size, 1 if it fits now."""

HORIZONS = (60, 600, 3600, 6 * 3600, 24 * 3600)
"""Seconds from now for which ``machine`` has the share that is expected to be free."""

MACHINE_FEATURES = ("free", "waiting", "demand", *(f"free in {seconds} s" for seconds in HORIZONS))
"""The entries of ``machine``: free share, waiting jobs, the sum of the visible sizes."""

LONGEST = 30 * 86400
"""Seconds that count as 1; times are on a logarithmic scale, log(1 + t) / log(1 + LONGEST)."""
MOST = 10_000
"""Waiting jobs that count as 1, on a logarithmic scale."""
_SCALE = 1 / np.log1p(LONGEST)
_TYPES = {"jobs": np.float32, "machine": np.float32}


def shapes(visible: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array."""
    return {"jobs": (visible, len(JOB_FEATURES)), "machine": (len(MACHINE_FEATURES),)}


class Observer:
    """Makes the arrays of an episode.

    Parameters
    ----------
    visible : how many waiting jobs the agent sees.
    jobs : how many jobs the episode has.
    total : the size of the machine, in the units of the sizes of jobs.
    """

    def __init__(self, visible: int, jobs: int, total: float) -> None:
        self._shapes = shapes(visible)
        self._total = total
        self._ends = np.zeros(jobs)
        self._horizons = np.array(HORIZONS, dtype=np.float64)

    def note_start(self, job: int, end: float) -> None:
        """Note when a job that starts is expected to end, in seconds."""
        self._ends[job] = end

    def nothing(self) -> dict[str, Floats]:
        """Return the arrays of a moment without a choice."""
        return {name: np.zeros(shape, dtype=_TYPES[name]) for name, shape in self._shapes.items()}

    def observe(self, choice: Choice) -> dict[str, Floats]:
        """Return the arrays of a choice."""
        found = self.nothing()
        context, jobs = choice.context, choice.jobs
        table, now = context.table, context.now
        shares = table.sizes[jobs] / self._total
        rows = found["jobs"]
        count = len(jobs)
        rows[:count, 0] = 1
        times = np.empty((2, count))
        np.subtract(now, table.submits[jobs], out=times[0])
        times[1] = table.durations_array[jobs]
        np.minimum(times, LONGEST, out=times)
        np.log1p(times, out=times)
        rows[:count, 1:3] = times.T * _SCALE
        rows[:count, 3] = np.minimum(shares, 1)
        rows[:count, 4] = choice.fits
        machine = found["machine"]
        held = np.fromiter(context.plan.claimants, dtype=np.int64)
        ends = self._ends[held] - now
        taken = table.sizes[held] / self._total
        machine[0] = free = max(0.0, 1.0 - float(taken.sum()))
        machine[1] = np.log1p(len(context.queue)) / np.log1p(MOST)
        machine[2] = shares.sum() / (1 + shares.sum())
        last = len(HORIZONS)
        ending = np.bincount(np.searchsorted(self._horizons, ends), weights=taken, minlength=last + 1)
        machine[3:] = free + ending.cumsum()[:last]
        np.minimum(machine, 1, out=machine)
        return found
