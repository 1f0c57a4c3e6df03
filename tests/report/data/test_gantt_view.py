"""Parts of a Gantt chart: clipped rectangles, chosen rows, and the share of cells in use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import ConfigError, RunError
from simsched.report.data.gantt import chart
from simsched.report.data.gantt_view import GanttPart, GanttView, colours_of, part_of, use_of_cells
from simsched.report.run_views import load_run


@pytest.fixture
def run(write_run, make_jobs):
    """Job a on ranks 0 to 2 at 0 to 100 s, job b on rank 3 at 50 to 200 s after a wait."""
    jobs = make_jobs(
        [
            {"id": "a", "submit": 0, "start": 0, "end": 100, "user": "ann", "queue": "batch"},
            {"id": "b", "submit": 10, "start": 50, "end": 200, "user": "bob", "queue": "debug"},
        ]
    )
    records = []
    for name, ranks, start, end in (("a", "0-2", 0, 100), ("b", "3", 50, 200)):
        lite = [{"rank": ranks, "children": {"core": "0-3"}}]
        document = {"version": 1, "execution": {"R_lite": lite, "nodelist": ["n[0-3]"]}}
        records += [
            {"id": name, "event": e, "time": t, "R": document}
            for e, t in (("alloc", start), ("release", end))
        ]
    return load_run(write_run("two", jobs, records=records))


def rows(part: GanttPart) -> list[tuple[float, ...]]:
    return sorted(part.boxes[["start", "end", "low", "high"]].itertuples(index=False, name=None))


def test_the_default_view_is_the_whole_chart(run):
    part = part_of(run, chart(run), GanttView())
    assert rows(part) == [(0, 100, 0, 3), (50, 200, 3, 4)]
    assert (part.window, part.rows, part.labels) == ((0, 200), 4, ("0", "1", "2", "3"))


def test_a_window_cuts_rectangles_and_leaves_out_those_beside_it(run):
    assert rows(part_of(run, chart(run), GanttView(start=60, end=90))) == [(60, 90, 0, 3), (60, 90, 3, 4)]
    assert rows(part_of(run, chart(run), GanttView(start=100))) == [(100, 200, 3, 4)]


def test_chosen_ranks_are_rows_one_above_the_other(run):
    part = part_of(run, chart(run), GanttView(nodes="1,3"))
    assert rows(part) == [(0, 100, 0, 1), (50, 200, 1, 2)]
    assert part.labels == ("1", "3")


def test_users_and_queues_choose_jobs(run):
    assert rows(part_of(run, chart(run), GanttView(users=("bob",)))) == [(50, 200, 3, 4)]
    assert rows(part_of(run, chart(run), GanttView(queues=("batch", "debug"), users=("ann",)))) == [
        (0, 100, 0, 3)
    ]


def test_a_run_without_users_has_no_job_of_a_user(run):
    run.jobs["user"] = float("nan")
    with pytest.raises(ConfigError, match="no job of this run has the user 'bob'"):
        part_of(run, chart(run), GanttView(users=("bob",)))


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ({"users": ("bo",)}, "no job of this run has the user 'bo'; did you mean bob?"),
        ({"nodes": "2-9"}, "has no rank 9 (expected 0 to 3)"),
        ({"nodes": "x[1-2]"}, "has no host 'x1'"),
        ({"start": 200}, "the view begins after the last job has ended"),
        ({"start": 5, "end": 5}, "the view ends before it begins"),
        ({"colour": "shape"}, "colours cannot stand for 'shape' (expected job, user, queue, result, size)"),
    ],
)
def test_views_that_show_nothing_are_refused(run, view, message):
    with pytest.raises(ConfigError) as caught:
        part_of(run, chart(run), GanttView(**view))
    assert message in str(caught.value)


def test_nodes_cannot_be_chosen_without_allocations(write_run, make_jobs):
    bare = load_run(write_run("bare", make_jobs([{"id": "a", "start": 0, "end": 9}])))
    with pytest.raises(RunError, match="made without its allocations"):
        part_of(bare, chart(bare), GanttView(nodes="0"))


def test_a_colour_stands_for_a_fact_of_the_job(run):
    assert colours_of(run, "user").tolist() == ["ann", "bob"]
    assert colours_of(run, "job").tolist() == ["a", "b"]


box = st.tuples(*[st.floats(0, 10).map(lambda v: round(v, 2))] * 2, *[st.integers(0, 8)] * 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(box, max_size=6), st.integers(1, 5), st.integers(1, 7))
def test_the_share_of_a_cell_is_the_area_that_rectangles_cover(boxes, cells, columns):
    """Against the overlap of each rectangle with each cell; rectangles of distinct rows do not overlap."""
    table = [
        (min(a, b), max(a, b), 8 * n + min(c, d), 8 * n + max(c, d)) for n, (a, b, c, d) in enumerate(boxes)
    ]
    high = 8 * max(len(boxes), 1)
    frame = pd.DataFrame(table, columns=["start", "end", "low", "high"], dtype=np.float64)
    found = use_of_cells(GanttPart(frame, high, (), (0.0, 10.0)), cells, columns)
    for row in range(cells):
        for column in range(columns):
            x, y = (
                (column * 10 / columns, (column + 1) * 10 / columns),
                (row * high / cells, (row + 1) * high / cells),
            )
            area = sum(
                max(0.0, min(end, x[1]) - max(start, x[0])) * max(0.0, min(top, y[1]) - max(low, y[0]))
                for start, end, low, top in table
            )
            assert found[row, column] == pytest.approx(area / ((x[1] - x[0]) * (y[1] - y[0])), abs=1e-9)
