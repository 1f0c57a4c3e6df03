"""Forecasts of the past: what would have been predicted at many times of a run, beside the real starts.

The run is played as always, and at regular times the start of every waiting job is predicted as by
`start_times`, without changing the run.  In a run of a log under the queue policy ``recorded`` the machine
and the starts are those of the log.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from simsched.schedule.policies.conservative import Conservative
from simsched.schedule.policies.limited import Limited
from simsched.schedule.profile import end_of
from simsched.schedule.profiles.gap import NEVER
from simsched.simulation.environment import LAST

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from simsched.arrays import Floats, Integers
    from simsched.simulation.engine import Engine
    from simsched.simulation.queue_groups import QueueGroup


EVERY = 3600.0
"""Least seconds between two times of forecasts."""
MOST_TIMES = 10_000
"""Times of forecasts, from which on they are farther apart."""
MOST_FORECASTS = 300_000
"""Forecasts from which on every second time is dropped, and times are twice as far apart."""


@dataclass(frozen=True, slots=True, eq=False)
class PastForecasts:
    """Forecasts of the past, one per waiting job and time, in order of time.

    Attributes
    ----------
    times : when the forecast was made (s).
    horizons : the predicted start less that time (s).
    waits : the real start less that time (s); for a job that has not started by the `end`, the time until
        then, and `started` is false.
    places : the place of the job in the queue, from 1.
    sizes : the size of the job, in cores (see `schedule.job_table`).
    begin, end : the time that was played (s).
    """

    times: Floats
    horizons: Floats
    waits: Floats
    started: npt.NDArray[np.bool_]
    places: Integers
    sizes: Floats
    begin: float
    end: float

    def __len__(self) -> int:
        return len(self.times)

    def kept(self, rows: npt.NDArray[np.bool_]) -> PastForecasts:
        """Return some of the forecasts."""
        columns = ("times", "horizons", "waits", "started", "places", "sizes")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def known_at(self, time: float) -> PastForecasts:
        """Return the forecasts before a time (s), and the starts up to then."""
        found = self.kept(self.times < time)
        left = time - found.times
        started = found.started & (found.waits <= left)
        return replace(found, waits=np.minimum(found.waits, left), started=started, end=min(self.end, time))


class ForecastSampler:
    """Predicts the starts of all waiting jobs at regular times of a run."""

    def __init__(self, engine: Engine, begin: float, end: float) -> None:
        self._engine = engine
        self._begin, self._end = begin, end
        self._every = max(EVERY, (end - begin) / MOST_TIMES)
        self._rows = array("d")
        engine.future.handle("forecast", self._on_forecast)
        self._enter(begin + self._every)

    def _enter(self, time: float) -> None:
        if time < self._end:
            self._engine.future.at(time, LAST, "forecast", time)

    def _on_forecast(self, now: float) -> None:
        for group in self._engine.queues:
            for job, place, start in predicted(group, now):
                if start != NEVER:
                    self._rows.extend((now, job, place, start))
        if len(self._rows) > 4 * MOST_FORECASTS:
            self._thin_out()
        if not self._engine.is_over:
            self._enter(now + self._every)

    def _thin_out(self) -> None:
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 4)
        number = np.round((rows[:, 0] - self._begin) / self._every).astype(np.int64)
        self._rows = array("d", rows[number % 2 == 0].ravel())
        self._every *= 2

    def found(self) -> PastForecasts:
        """Return the forecasts with the starts of the run so far; jobs that ended without a start are out."""
        end = self._engine.now
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, 4)
        recorder = self._engine.recorder
        starts, ends = np.array(recorder.start), np.array(recorder.end)
        sizes = np.array(self._engine.prepared.sizes, dtype=np.float64)
        jobs = rows[:, 1].astype(np.int64)
        gone = np.isnan(starts[jobs]) & ~np.isnan(ends[jobs])
        rows, jobs = rows[~gone], jobs[~gone]
        times = rows[:, 0]
        started = starts[jobs] <= end
        return PastForecasts(
            times,
            rows[:, 3] - times,
            np.where(started, starts[jobs], end) - times,
            started,
            rows[:, 2].astype(np.int64),
            sizes[jobs],
            self._begin,
            end,
        )


def predicted(group: QueueGroup, now: float) -> Iterator[tuple[int, int, float]]:
    """Yield each waiting job of a group, its place, and its predicted start; the group stays as it is."""
    context = group.context
    if not group.queue:
        return
    context.now = context.supply.now = now
    if not group.queue.static:
        group.queue.sort(now)
    policy = group.policy.inner if isinstance(group.policy, Limited) else group.policy
    profile = context.supply.ahead()
    starts = dict(policy.starts) if isinstance(policy, Conservative) else {}
    if isinstance(policy, Conservative) and len(starts) < len(group.queue):
        for job, place in policy.places().items():
            profile.put(job, starts[job], place)
    for place, job in enumerate(group.queue, start=1):
        start = starts.get(job, NEVER)
        if job not in starts:
            start = profile.earliest(job)
            if start != NEVER:
                profile.reserve(job, start)
        yield job, place, now if start <= end_of(now, 0) else start
