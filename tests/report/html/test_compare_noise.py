"""A comparison calls a difference within noise where its interval contains zero, and only there."""

from __future__ import annotations

import re

import numpy as np
import pytest

from simsched.report.compare import WITH_INTERVAL, compare_runs
from simsched.report.data.tables import RunTables
from simsched.report.html.compare_section import comparison
from simsched.report.text_report import comparison as text_comparison
from simsched.simulation.simulate import simulate
from tests.study.search.loglab import machine_and_log


@pytest.fixture(scope="module")
def runs():
    cluster, log = machine_and_log(jobs=900, days=28)
    made = []
    for policy, options in (("easy", {}), ("hybrid", {"depth": 2}), ("fcfs", {})):
        rules = {"queue_policy": policy, "queue_options": options}
        run = RunTables.from_result(simulate(cluster, log, allocations=False, **rules))
        run.name = policy
        made.append(run)
    return made


def test_the_words_follow_the_intervals(runs):
    near, far = (compare_runs(runs[0], run) for run in runs[1:])
    assert near.wait.holds(0)
    assert far.wait.low > 0
    assert (near.verdict, far.verdict) == ("within noise", "waits more")
    text = text_comparison(runs)
    assert "hybrid against easy, 900 jobs paired: within noise" in text
    assert "fcfs against easy, 900 jobs paired: waits more" in text
    page = comparison(runs, [])
    assert "<strong>hybrid</strong> against easy: within noise." in page
    assert "<strong>fcfs</strong> against easy: waits more." in page


def test_figures_with_an_interval_are_marked_in_the_table(runs):
    table = re.search(r'<table id="cmp-figures">.*?</table>', comparison(runs, []), re.DOTALL).group()
    pairs = [compare_runs(runs[0], run) for run in runs[1:]]
    seen = set()
    for figure, name in WITH_INTERVAL.items():
        row = re.search(rf">{figure.replace('_', ' ')}</td>(.*?)</tr>", table).group(1)
        cells = row.split("</td>")[1:3]
        for cell, found in zip(cells, pairs, strict=True):
            marked = getattr(found, name).holds(0)
            assert ("within noise" in cell) == marked
            assert ('class="better"' in cell or 'class="worse"' in cell) == (not marked)
            seen.add(marked)
    assert seen == {True, False}


def test_equal_runs_are_within_noise(runs):
    found = compare_runs(runs[0], runs[0])
    assert found.wait.estimate == 0
    assert found.verdict == "within noise"
    assert np.isfinite(found.wait.low)
