"""Classes of jobs: size, run time, day, hour of the week.

Most functions return an ordered category aligned with the jobs, for `metrics.by` or ``groupby``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.report.metrics.metrics import run_time, size

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from simsched.formats.rfc.clock import Clock
    from simsched.report.metrics.plain_columns import Table

#: upper bounds of the run-time classes, seconds, and their names
RUN_TIME_CLASSES = ((60.0, "≤ 1 min"), (600.0, "≤ 10 min"), (3600.0, "≤ 1 h"), (6 * 3600.0, "≤ 6 h"),
                    (86400.0, "≤ 1 d"), (float("inf"), "> 1 d"))  # fmt: skip
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def size_class(jobs: pd.DataFrame) -> pd.Series[str]:
    """Return powers of two of a job's processors: ``1``, ``2``, ``3-4``, ``5-8`` …; ``0`` for none."""
    import pandas as pd

    names, places = size_classes(jobs)
    codes: list[int] = places.tolist()
    values = pd.Categorical.from_codes(codes, pd.Index(names), ordered=True)
    return pd.Series(values, index=jobs.index, name="size")


def size_classes(jobs: Table) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the names of `size_class` that occur, and the place of each job's class in them."""
    values = np.asarray(size(jobs))
    powers = np.ceil(np.log2(np.maximum(values, 1))).astype(int)
    powers[values < 1] = -1
    names = {-1: "0", 0: "1", 1: "2"} | {p: f"{2 ** (p - 1) + 1}-{2**p}" for p in range(2, 64)}
    kinds = sorted(set(powers.tolist()))
    return [names[kind] for kind in kinds], np.searchsorted(kinds, powers)


def run_time_class(jobs: pd.DataFrame) -> pd.Series[str]:
    """Return classes of run time from a minute to a day."""
    import pandas as pd

    bounds, names = zip(*RUN_TIME_CLASSES, strict=True)
    edges = [-1.0, *bounds]
    times: pd.Series[float] = run_time(jobs)
    return pd.cut(times, edges, labels=list(names), ordered=True).rename("run time")


def day(jobs: pd.DataFrame, origin: float | None = None) -> pd.Series[int]:
    """Return the whole days between `origin` (the first submission's) and each submission."""
    start = float(jobs["submit"].min()) if origin is None else origin
    return ((jobs["submit"] - start) // 86400).astype("int64").rename("day")


def weekdays(clock: Clock | None) -> tuple[str, ...]:
    """Return the names of the seven days of a week: real ones only if the dates are known."""
    return tuple(f"day {i}" for i in range(1, 8)) if clock is None else WEEKDAYS


def weekday_hour(seconds: pd.Series[float], clock: Clock | None) -> pd.DataFrame:
    """Return the day of the week (0 is Monday) and the hour of times of a run, on the local clock.

    Without a clock, day 0 is the first day of the trace.
    """
    import pandas as pd

    times = seconds.to_numpy(dtype=np.float64)
    local = pd.Series(times if clock is None else clock.local_seconds(times), index=seconds.index)
    hours = (local // 3600).astype("int64")
    offset = 0 if clock is None else 3
    return pd.DataFrame({"weekday": (hours // 24 + offset) % 7, "hour": hours % 24})
