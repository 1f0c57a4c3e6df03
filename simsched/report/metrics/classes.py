"""Groups of jobs: by a column, by classes of size and run time, by hour of the week, day, week and month.

Most functions return an ordered category aligned with the jobs, for `metrics.by` or ``groupby``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simsched.errors import ConfigError
from simsched.report.metrics.metrics import NO_KEY, run_time, size

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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


def day(jobs: pd.DataFrame) -> pd.Series[int]:
    """Return the whole days between the first submission and each submission."""
    return ((jobs["submit"] - float(jobs["submit"].min())) // 86400).astype("int64").rename("day")


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


def hour_of_week(jobs: pd.DataFrame, clock: Clock | None = None) -> pd.Series[str]:
    """Return the local weekday and hour of each submission: ``Mon 09``; without dates ``day 1 09``."""
    import pandas as pd

    times = weekday_hour(jobs["submit"], clock)
    labels = [f"{name} {hour:02d}" for name in weekdays(clock) for hour in range(24)]
    codes: list[int] = (times["weekday"] * 24 + times["hour"]).tolist()
    kinds = pd.Categorical.from_codes(codes, pd.Index(labels), ordered=True).remove_unused_categories()
    return pd.Series(kinds, index=jobs.index, name="hour")


def week(jobs: pd.DataFrame, clock: Clock | None) -> pd.Series[Any]:
    """Return the ISO week of each submission, such as ``2024-W09``; without dates, weeks since the first."""
    if clock is None:
        return (day(jobs) // 7).rename("week")
    return _dated(jobs, clock, "%G-W%V", "week")


def month(jobs: pd.DataFrame, clock: Clock | None) -> pd.Series[Any]:
    """Return the month of each submission, such as ``2024-03``, on the local clock.

    Raises
    ------
    ConfigError
        if the dates of the workload are not known.
    """
    if clock is None:
        raise ConfigError("the workload has no dates, so there are no months", expected="week or day")
    return _dated(jobs, clock, "%Y-%m", "month")


def _dated(jobs: pd.DataFrame, clock: Clock, form: str, name: str) -> pd.Series[Any]:
    import pandas as pd

    local = clock.local_seconds(jobs["submit"].to_numpy(dtype=np.float64)).astype("datetime64[s]")
    return pd.Series(pd.DatetimeIndex(local).strftime(form), index=jobs.index, name=name)


def _column(name: str) -> Callable[[pd.DataFrame, Clock | None], pd.Series[Any]]:
    return lambda jobs, _: jobs[name]


GROUPS: dict[str, Callable[[pd.DataFrame, Clock | None], pd.Series[Any]]] = {
    "all": lambda jobs, _: jobs["submit"].map(lambda _: "all"),
    "queue": _column("queue"),
    "user": _column("user"),
    "account": _column("bank"),
    "bank": _column("bank"),
    "size": lambda jobs, _: size_class(jobs),
    "runtime": lambda jobs, _: run_time_class(jobs),
    "hour": hour_of_week,
    "day": lambda jobs, _: day(jobs),
    "week": week,
    "month": month,
    "result": _column("result"),
}
"""Key → the group of each job: the one list of the groups that tables can have.  A bank is an account."""


def group_of(jobs: pd.DataFrame, key: str, clock: Clock | None) -> pd.Series[Any]:
    """Return the group of each job by a key of `GROUPS`; `NO_KEY` for a job without one."""
    keys = GROUPS[key](jobs, clock)
    return keys.astype("object").fillna(NO_KEY) if keys.hasnans else keys
