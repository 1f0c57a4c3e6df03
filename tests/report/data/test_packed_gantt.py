"""Gantt charts of runs without allocations: rows by packing, against taking them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.report.data.gantt import FreeRows, chart, packed
from simsched.report.run_views import load_run


def test_jobs_take_the_lowest_free_rows(write_run, story):
    # a: 0-100 on 16; then b on 8 and c on 4 from 100 on; d and e never ran
    found = chart(load_run(write_run("easy", story)))
    assert found.boxes.values.tolist() == [[0, 0, 100, 0, 16], [1, 100, 110, 0, 8], [2, 100, 140, 8, 12]]
    assert (found.rows, found.row, found.label) == (16, "core", "cores in use, packed")


def test_with_allocations_rows_are_ranks(write_run, story, make_records):
    found = chart(load_run(write_run("easy", story, records=make_records(story))))
    assert (found.rows, found.row) == (4, "rank")


def test_a_job_goes_around_what_is_taken():
    start, end, units = np.array([0.0, 0, 0, 5]), np.array([9.0, 4, 9, 8]), np.array([1, 2, 1, 4])
    rows = packed(start, end, units).values.tolist()
    assert rows == [[0, 0, 9, 0, 1], [1, 0, 4, 1, 3], [2, 0, 9, 3, 4], [3, 5, 8, 1, 3], [3, 5, 8, 4, 6]]


def test_jobs_that_still_run_last_until_the_end(write_run, make_jobs):
    jobs = make_jobs([{"submit": 0, "start": 0, "end": 50}, {"submit": 0, "start": 10, "result": "RUNNING"}])
    boxes = chart(load_run(write_run("cut", jobs))).boxes
    assert boxes[["start", "end"]].values.tolist() == [[0, 50], [10, 50]]


def test_nodes_where_nobody_held_cores(write_run, make_jobs):
    jobs = make_jobs([{"start": 0, "end": 5, "cores": 0, "nodes": 2}])
    assert chart(load_run(write_run("nodes", jobs))).row == "node"


def test_nothing_ran(write_run, make_jobs):
    found = chart(load_run(write_run("idle", make_jobs([{"result": "INFEASIBLE", "cores": 0, "nodes": 0}]))))
    assert found.boxes.empty
    assert found.rows == 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9), st.integers(0, 6)), max_size=25))
def test_every_job_has_the_lowest_rows_that_were_free(jobs):
    """Row by row: a job takes the lowest rows that no running job has, and as many as it holds units."""
    start, length, units = (np.array([j[i] for j in jobs], dtype=float) for i in range(3))
    found = packed(start, start + length, units.astype(np.int64))
    running: dict[int, set[int]] = {}
    for job in np.argsort(start, kind="stable").tolist():
        busy = set().union(*(rows for other, rows in running.items()
                             if start[other] + length[other] > start[job]))  # fmt: skip
        free = (row for row in range(1000) if row not in busy)
        running[job] = {next(free) for _ in range(int(units[job]))}
    for job, rows in running.items():
        mine = found[found["job"] == job]
        assert {r for low, high in mine[["low", "high"]].values for r in range(int(low), int(high))} == rows
        assert (mine["end"] == start[job] + length[job]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 8), max_size=40))
def test_rows_that_are_given_back_are_free_again(steps):
    """Positive steps take so many rows, negative ones give back what was taken so many takes ago."""
    free, taken = FreeRows(), []
    for step in steps:
        if step > 0:
            taken.append(free.take(step))
        elif taken:
            free.give(taken.pop(step % len(taken)))
        free._check()
        rows = [row for ranges in taken for low, high in ranges for row in range(low, high)]
        assert len(rows) == len(set(rows))


@pytest.mark.parametrize("count", [1, 5])
def test_the_first_rows_are_taken_first(count):
    assert FreeRows().take(count) == [(0, count)]
