"""Runs compared by queue, user and class: means of both, and differences that agree with a count by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from simsched.report.compare import change_texts, changes
from simsched.report.run_views import load_run


@pytest.fixture
def pair(write_run, make_jobs):
    """Twelve jobs of ann that wait 10 s longer in the second run, and two of bob in another queue."""
    rows = [
        {"id": f"a{n}", "submit": 100 * n, "start": 100 * n, "end": 100 * n + 50, "user": "ann"}
        for n in range(12)
    ]
    rows += [
        {"id": f"b{n}", "submit": 30, "start": 40, "end": 50, "user": "bob", "queue": "debug"}
        for n in range(2)
    ]
    jobs = make_jobs(rows)
    later = jobs.assign(start=jobs["start"] + 10.0 * (jobs["user"] == "ann"))
    return [load_run(write_run("one", jobs)), load_run(write_run("two", later))]


@pytest.mark.parametrize(("key", "names"), [("user", ["ann", "bob"]), ("queue", ["batch", "debug"])])
def test_means_of_both_and_the_difference(pair, key, names):
    table = changes(*pair, key)
    assert list(table.index) == names
    assert table["jobs_first"].tolist() == table["jobs_second"].tolist() == [12, 2]
    assert table[["wait_first", "wait_second", "difference"]].to_numpy().tolist() == [
        [0, 10, 10],
        [10, 10, 0],
    ]
    assert table["low"].iloc[0] == table["high"].iloc[0] == 10
    assert math.isnan(table["low"].iloc[1])  # two jobs are too few


def test_groups_of_one_run_only_are_named(pair, write_run, make_jobs):
    other = load_run(write_run("other", make_jobs([{"submit": 5, "start": 9, "end": 20, "user": "cid"}])))
    table = changes(pair[0], other, "user")
    assert table.loc["cid", "jobs_first"] == 0
    assert table.loc["cid", "wait_second"] == 4
    assert table["difference"].isna().all()
    assert pd.isna(table["low"]).all()


def test_the_text_has_signs_and_no_table_of_the_machine(pair):
    text = change_texts(pair, "user")
    assert "two against one: mean waits" in text
    assert "+10 s" in text
    assert change_texts(pair, "place") == ""
    assert change_texts(pair[:1], "user") == ""
    assert "| user" in change_texts(pair, "user", markdown=True)
