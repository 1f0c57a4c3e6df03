"""Tables of groups, and figures without warm-up and drain."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simsched.errors import RunError
from simsched.report import groups, text_report
from simsched.report.metrics import metrics as m
from simsched.report.metrics.summary import summarise
from simsched.report.run_views import load_run


@pytest.fixture
def run(write_run, story):
    return load_run(write_run("easy", story))


def test_groups_as_text(run):
    assert groups.FORMATS["text"]([run], "queue") == (
        "queue  jobs   mean wait  median wait    p95 wait  mean bounded slowdown  core hours   share\n"
        "batch     2        40 s         40 s  1 min 16 s                      2       0.489  95.7 %\n"
        "debug     1  1 min 30 s   1 min 30 s  1 min 30 s                     10      0.0222  4.35 %\n"
    )


@pytest.mark.parametrize("key", ["queue", "user", "bank", "size", "runtime", "day", "result"])
def test_every_key_gives_every_job_that_ran_once(run, key):
    rows = list(csv.DictReader(io.StringIO(groups.FORMATS["csv"]([run, run], key))))
    assert sum(int(row["jobs"]) for row in rows) == 2 * 3
    assert {row["run"] for row in rows} == {"easy"}
    assert json.loads(groups.FORMATS["json"]([run], key))[0]["jobs"] >= 1
    assert groups.FORMATS["markdown"]([run, run], key).startswith("| run | ")


def test_figures_between_warm_up_and_drain(make_jobs, make_timeline):
    # jobs of 10 s on 1 of 2 cores, submitted at 0, 100, 200, 300; the last waits 5 s
    jobs = make_jobs([{"submit": s, "start": s, "end": s + 10} for s in (0, 100, 200)])
    late = make_jobs([{"id": "9", "submit": 300, "start": 305, "end": 315}])
    import pandas as pd

    jobs = pd.concat([jobs, late], ignore_index=True)
    timeline = make_timeline(jobs, {"core": 2})
    whole = summarise(jobs, timeline, {"core": 2})
    steady = summarise(jobs, timeline, {"core": 2}, warm_up=100, drain=100)
    assert whole["jobs"] == 4
    assert steady["jobs"] == 2
    assert steady["max_wait"] == 0
    assert steady["utilisation_core"] == pytest.approx(10 / (2 * 100))  # from 100 to 200
    assert steady["goodput"] == pytest.approx(10 / (2 * 100))


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.floats(0, 900), st.floats(0, 900))
def test_steady_figures_are_those_of_the_jobs_between(make_schedule, make_timeline, seed, warm_up, drain):
    jobs = make_schedule(seed)
    timeline = make_timeline(jobs, {"node": 4, "core": 16})
    figures = summarise(jobs, timeline, {"node": 4, "core": 16}, warm_up=warm_up, drain=drain)
    low, high = jobs["submit"].min() + warm_up, jobs["submit"].max() - drain
    kept = jobs[(jobs["submit"] >= low) & (jobs["submit"] <= high)]
    assert figures["jobs"] == len(kept)
    if len(kept) and high > low:
        assert figures["mean_wait"] == pytest.approx(m.wait(kept).mean())
        assert 0 <= figures["goodput"] + figures["badput"] <= 1 + 1e-9
        assert figures["goodput"] + figures["badput"] == pytest.approx(figures["utilisation_core"])


def test_a_steady_run_has_a_page_and_an_empty_one_is_refused(run, write_run, make_schedule, make_records):
    jobs = make_schedule(2)
    steady = load_run(write_run("r", jobs, records=make_records(jobs))).steady(300, 300)
    assert len(steady.jobs) < len(jobs)
    assert text_report.page(steady).startswith("r · ")
    from simsched.report.data.gantt import rectangles

    assert set(rectangles(steady)["job"]) <= set(range(len(steady.jobs)))
    with pytest.raises(RunError, match="no job was submitted between"):
        run.steady(1e9, 0)
