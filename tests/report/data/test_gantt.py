"""Rectangles of the Gantt chart: by hand, and their area against the jobs' node-seconds."""

from __future__ import annotations

import pytest

from simsched.report.data.gantt import bands, rectangles, rows_of
from simsched.report.run_views import load_run


def record(id_, event, time, ranks, ids="0-3", **other):
    lite = [{"rank": ranks, "children": {"core": ids, **other}}]
    document = {"version": 1, "execution": {"R_lite": lite, "nodelist": ["n[0-3]"], "starttime": time}}
    return {"id": id_, "event": event, "time": time, "R": document}


@pytest.fixture
def rects(write_run, story):
    def load(*records):
        run = load_run(write_run("easy", story, records=list(records)))
        return rectangles(run).values.tolist()

    return load


def test_whole_nodes_are_one_rectangle_a_range(rects):
    got = rects(record("b", "alloc", 1, "0-1,3", gpu="0"), record("b", "release", 5, "0-1,3", gpu="0"))
    assert got == [[1, 1, 5, 0, 2], [1, 1, 5, 3, 4]]


def test_cores_of_a_node_are_a_part_of_its_row(rects):
    got = rects(record("a", "alloc", 0, "2", "1-2"), record("a", "release", 5, "2", "1-2"))
    assert got == [[0, 0, 5, 2.25, 2.75]]


def test_a_shard_that_comes_back_early_is_shorter(rects):
    got = rects(
        record("a", "alloc", 0, "0-1"), record("a", "release", 3, "1"), record("a", "release", 9, "0")
    )
    assert sorted(got) == [[0, 0, 3, 1, 2], [0, 0, 9, 0, 1]]


def test_a_job_that_runs_twice_is_drawn_twice(rects):
    got = rects(
        record("a", "alloc", 0, "0"),
        record("a", "release", 3, "0"),
        record("a", "alloc", 10, "1"),
        record("a", "release", 12, "1"),
    )
    assert got == [[0, 0, 3, 0, 1], [0, 10, 12, 1, 2]]


def test_what_is_still_held_lasts_until_the_end(rects):
    assert rects(record("a", "alloc", 7, "0")) == [[0, 7, 140, 0, 1]]


def test_a_job_that_is_in_no_table_is_not_drawn(rects):
    assert rects(record("stranger", "alloc", 7, "0")) == []


def test_bands_of_several_ranges():
    assert bands("4", "0,3", 4) == ((4.0, 4.25), (4.75, 5.0))
    assert bands("4", "", 4) == ((4.0, 5.0),)
    assert bands("", "0", 4) == ()


def test_area_of_random_runs_is_their_node_seconds(write_run, make_schedule, make_records):
    jobs = make_schedule(5)
    run = load_run(write_run("random", jobs, records=make_records(jobs)))
    drawn = rectangles(run)
    area = ((drawn["end"] - drawn["start"]) * (drawn["high"] - drawn["low"])).sum()
    assert area == pytest.approx(((jobs["end"] - jobs["start"]) * jobs["nodes"]).sum())
    assert rows_of(run, drawn) == 4


def test_no_allocations_no_rectangles(write_run, story):
    run = load_run(write_run("none", story))
    assert rectangles(run).empty
    assert rows_of(run, rectangles(run)) == 4
