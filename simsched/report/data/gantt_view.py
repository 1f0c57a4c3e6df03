"""`GanttView`: the part of a Gantt chart that is drawn, by time, node, user and queue.

A view of a month of jobs on a whole machine is too small for single jobs, so a view that holds
more than `MAX_JOBS_SHOWN` rectangles is drawn as the use of each node over time (`use_of_cells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import ConfigError, RunError, did_you_mean
from simsched.formats.rfc.clock import DateText, parse_when, seconds_on
from simsched.formats.rfc.hostlist import Hostlist
from simsched.formats.rfc.idset import Idset
from simsched.report.columns import COLOURS
from simsched.report.data.gantt import chart
from simsched.report.metrics.classes import size_class
from simsched.report.metrics.metrics import span

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pandas as pd

    from simsched.formats.rfc.clock import When
    from simsched.report.data.gantt import Chart
    from simsched.report.data.tables import RunTables

MAX_JOBS_SHOWN = 1500
"""More rectangles than this are drawn as the use of cells, unless a colour is chosen."""
MAX_NODES = 1_000_000
"""Most hosts of a view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GanttView:
    """The part that is drawn; the default is all of it.

    Attributes
    ----------
    start, end : seconds since the first submission, or dates; `end` None: until the last job has ended.
    nodes : ranks (``0-15``) or hosts (``n[0-15]``); None: all.
    users, queues : only these jobs; empty: all.
    colour : one of `COLOURS`; None: by job, and of more than `MAX_JOBS_SHOWN` rectangles the use of nodes.
    names : whether jobs bear their ids; None: where there are few of them.
    waits : whether a thin bar leads from the submission of a job to its start.
    """

    start: When = 0.0
    end: When | None = None
    nodes: str | None = None
    users: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    colour: str | None = None
    names: bool | None = None
    waits: bool = False

    def __post_init__(self) -> None:
        """Refuse a colour that is not known, and an end before the start."""
        if self.colour is not None and self.colour not in COLOURS:
            raise ConfigError(f"colours cannot stand for {self.colour!r}", expected=", ".join(COLOURS))
        times = (self.start, self.end)
        if all(isinstance(time, int | float) for time in times) and times[1] <= times[0]:  # type: ignore[operator]
            raise ConfigError("the view ends before it begins", expected="an end after the start")


def view_of(
    start: When | str | None = None,
    end: When | str | None = None,
    *,
    users: str | Sequence[str] | None = None,
    queues: str | Sequence[str] | None = None,
    where: tuple[str, str] = ("start", "end"),
    **more: Any,
) -> GanttView | None:
    """Return the view of the fields that are given, times also as texts; None without any.

    `where` names the two times in messages, and `more` are the other fields.
    """
    times = (parse_when(time, at) if isinstance(time, str) else time
             for time, at in zip((start, end), where, strict=True))  # fmt: skip
    several = ((one,) if isinstance(one, str) else tuple(map(str, one or ())) for one in (users, queues))
    names = ("start", "end", "users", "queues")
    chosen = {**dict(zip(names, (*times, *several), strict=True)), **more}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value not in (None, ())}
    return GanttView(**given) if given else None


@dataclass(frozen=True, slots=True)
class GanttPart:
    """A view of a chart: its rectangles in the coordinates of the picture.

    Attributes
    ----------
    boxes : as those of `Chart`; `start` and `end` are seconds since the first submission within the
        view, `low` and `high` count the rows of the view from below.
    labels : the name of each row, by host where hosts are known; empty for a packed chart.
    window : first and last second of the view since the first submission.
    """

    boxes: pd.DataFrame
    rows: int
    labels: tuple[str, ...]
    window: tuple[float, float]


def part_of(run: RunTables, drawn: Chart, view: GanttView) -> GanttPart:
    """Return the part of a chart that a view shows.

    Raises
    ------
    ConfigError
        if a user, a queue, a rank or a host is not known, or the view begins after the last job.
    RunError
        if nodes are chosen and the run has no allocations, or no job ran.
    """
    origin, last = span(run.jobs)
    if last <= origin:
        raise RunError("no job ran, so there is nothing to draw", where=run.name)
    window = _window(run, view)[1]
    boxes = drawn.boxes[_chosen_jobs(run, view)[drawn.boxes["job"].to_numpy(dtype=np.int64)]]
    boxes = boxes.assign(start=boxes["start"] - origin, end=boxes["end"] - origin)
    boxes = boxes[(boxes["end"] > window[0]) & (boxes["start"] < window[1])]
    boxes = boxes.assign(start=boxes["start"].clip(*window), end=boxes["end"].clip(*window))
    if drawn.row != "rank" and view.nodes is None:
        return GanttPart(boxes, drawn.rows, (), window)
    ranks = ranks_of(run, drawn, view.nodes)
    host_of = dict(zip(run.nodes["rank"].tolist(), run.nodes["host"].astype(str), strict=True))
    labels = tuple(host_of.get(rank, str(rank)) for rank in ranks.tolist())
    return GanttPart(at_rows(boxes, ranks), len(ranks), labels, window)


def window_of(run: RunTables, view: GanttView) -> tuple[float, float]:
    """Return the first and last second of a view on the clock of the run; errors as `part_of`."""
    origin, (low, high) = _window(run, view)
    return low + origin, high + origin


def jobs_of_view(run: RunTables, view: GanttView) -> npt.NDArray[np.int64]:
    """Return the rows of the jobs that ran within a view; errors as `part_of`."""
    origin, (low, high) = _window(run, view)
    start = run.jobs["start"].to_numpy(dtype=np.float64) - origin
    end = run.jobs["end"].fillna(np.inf).to_numpy(dtype=np.float64) - origin
    shown = _chosen_jobs(run, view) & (start < high) & (end > low)
    rows: npt.NDArray[np.int64] = np.flatnonzero(shown)
    if view.nodes is None or not len(rows):
        return rows
    drawn = chart(run.of_jobs(rows))
    on_nodes = at_rows(drawn.boxes, ranks_of(run, drawn, view.nodes))["job"]
    kept: npt.NDArray[np.int64] = rows[np.unique(on_nodes.to_numpy(dtype=np.int64))]
    return kept


def _window(run: RunTables, view: GanttView) -> tuple[float, tuple[float, float]]:
    """Return the first submission (s), and the first and last second of a view since then."""
    clock, (origin, last) = run.clock, span(run.jobs)
    start, end = (
        seconds_on(time, clock, where) - (origin if isinstance(time, DateText) else 0)
        for time, where in ((view.start, "--from"), (np.inf if view.end is None else view.end, "--until"))
    )
    window = (max(start, 0.0), min(last - origin, end))
    if window[1] > window[0]:
        return origin, window
    at = f"{last - origin:g} s" if clock is None else clock.text(last)
    if start >= last - origin:
        raise ConfigError(f"the view begins after the last job has ended, at {at}", where=run.name)
    if 0 < end <= start:
        raise ConfigError("the view ends before it begins", expected="an end after the start")
    begin = "0 s" if clock is None else clock.text(origin)
    raise ConfigError(f"the view ends before the first submission, at {begin}", where=run.name)


def _chosen_jobs(run: RunTables, view: GanttView) -> npt.NDArray[np.bool_]:
    """Return, for each job of the run, whether the view shows it."""
    chosen = np.ones(len(run.jobs), dtype=bool)
    for column, wanted in (("user", view.users), ("queue", view.queues)):
        values = run.jobs[column].astype(str)
        known = values.dropna().unique().tolist()
        for name in wanted:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ConfigError(f"no job of this run has the {column} {name!r}{hint}", where=run.name)
        if wanted:
            chosen &= values.isin(wanted).to_numpy()
    return chosen


def ranks_of(run: RunTables, drawn: Chart, text: str | None) -> npt.NDArray[np.int64]:
    """Return the ranks that a view of a chart names, ascending; all of them for None."""
    rows = drawn.rows
    if drawn.row != "rank":
        raise RunError("the nodes of jobs are not known: this run was made without its allocations",
                       where=run.name)  # fmt: skip
    if text is None:
        return np.arange(rows, dtype=np.int64)
    if text[:1].isdigit():
        found = set(Idset.parse(text, where="nodes"))
    else:
        rank_of = dict(zip(run.nodes["host"].astype(str), run.nodes["rank"].tolist(), strict=True))
        hosts = Hostlist.parse(text, where="nodes").expand(MAX_NODES)
        unknown = next((host for host in hosts if host not in rank_of), None)
        if unknown is not None:
            hint = did_you_mean(unknown, rank_of)
            raise ConfigError(f"the cluster of this run has no host {unknown!r}{hint}", where=run.name)
        found = {rank_of[host] for host in hosts}
    if max(found, default=rows) >= rows:
        raise ConfigError(
            f"the cluster of this run has no rank {max(found, default=0)}",
            where=run.name,
            expected=f"0 to {rows - 1}",
        )
    return np.array(sorted(found), dtype=np.int64)


def at_rows(boxes: pd.DataFrame, ranks: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return the rectangles with the chosen ranks as rows 0, 1, 2 …, cut where ranks are missing."""
    import pandas as pd

    gaps = np.flatnonzero(np.diff(ranks) > 1) + 1
    parts = []
    for block in np.split(np.arange(len(ranks)), gaps):
        first, beyond, shift = ranks[block[0]], ranks[block[-1]] + 1, block[0] - ranks[block[0]]
        part = boxes[(boxes["high"] > first) & (boxes["low"] < beyond)]
        low, high = part["low"].clip(first, beyond) + shift, part["high"].clip(first, beyond) + shift
        parts.append(part.assign(low=low, high=high))
    rows: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return rows


def colours_of(run: RunTables, by: str) -> pd.Series[str]:
    """Return, for each job of the run, the value that its colour stands for, as text."""
    jobs = run.jobs
    if by == "size":
        return size_class(jobs).astype(str)
    return jobs["id" if by == "job" else by].astype(str)


def use_of_cells(part: GanttPart, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """Return the share (0 to 1) of each cell that jobs cover: `rows` bands of nodes, `columns` of time.

    Exact: the covered area is added up in the corners of the rectangles and integrated in both
    directions, so nothing smaller than a cell is lost.
    """
    boxes, (low, high) = part.boxes, part.window
    x = (boxes[["start", "end"]].to_numpy() - low) / (high - low) * columns
    y = boxes[["low", "high"]].to_numpy() / part.rows * rows
    area = np.zeros((rows + 1, columns + 1))
    for sign, across, up in ((1, 0, 0), (-1, 0, 1), (-1, 1, 0), (1, 1, 1)):
        _add_corner(area, sign, x[:, across], y[:, up])
    covered = area.cumsum(axis=0).cumsum(axis=1)
    shares: npt.NDArray[np.float64] = np.clip(covered[:rows, :columns], 0.0, 1.0)
    return shares


def _add_corner(
    area: npt.NDArray[np.float64], sign: int, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
) -> None:
    """Add the quadrant beyond (x, y): the cell of the corner is covered in part, all beyond it whole.

    After sums in both directions a unit in cell (r, c) counts for all cells from there on.  The
    four cells around the corner get the shares that give the corner's cell the covered part.
    """
    column, row = (
        np.minimum(x.astype(np.int64), area.shape[1] - 1),
        np.minimum(y.astype(np.int64), area.shape[0] - 1),
    )
    right, top = 1 - (x - column), 1 - (y - row)
    for beside, share_x in ((0, right), (1, 1 - right)):
        for above, share_y in ((0, top), (1, 1 - top)):
            inside = (column + beside < area.shape[1]) & (row + above < area.shape[0])
            values = sign * share_x * share_y
            np.add.at(area, (row[inside] + above, column[inside] + beside), values[inside])
