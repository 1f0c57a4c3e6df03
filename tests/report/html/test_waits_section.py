"""The waits of a page: the hours by cause add up, and each long wait has its causes and its command."""

from __future__ import annotations

import re

import pytest

from simsched.report.run_views import load_run
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, workload

pytest.importorskip("bokeh")
from simsched.report.html import page as html


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Job b waits 50 s for cores that a holds."""
    folder = tmp_path_factory.mktemp("waits") / "my run"
    load = workload(
        job("a", 0, "slot=3/core", 60, 60, user="ann"), job("b", 10, "slot=4/core", 20, 20, user="bob")
    )
    simulate(machine(1, cores=4), load, "easy").save(folder)
    return html.page([load_run(folder)])


def cells(page, name):
    table = re.search(f'<table id="r0-{name}">(.*?)</table>', page, re.DOTALL).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)[1:]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_hours_by_cause_and_user(page):
    assert cells(page, "causes") == [["short of core", "0.0139", "100 %", "1"]]
    assert [row[0] for row in cells(page, "causes-user")] == ["bob", "ann"]
    assert cells(page, "short") == [["core", "0.0139", "1", "100 %"]]


def test_the_longest_waits_have_their_causes_and_the_command(page):
    first, second = cells(page, "longest")
    assert first[0] == '<a href="#r0-job=b">b</a>'
    assert first[4] == "short of core 100 %"
    assert first[-1] == "simsched why &#x27;my run&#x27; b"
    assert second[4] == "-"


def test_a_run_without_free_units_has_its_longest_waits(write_run, story):
    run = load_run(write_run("story", story))
    run.__dict__["timeline"] = run.timeline[["time", "queued_jobs", "running_jobs"]]
    from simsched.report.html.run_section import waits_tables
    from simsched.report.metrics.metrics import measured

    text = waits_tables(run, measured(run.jobs), "r0")
    assert 'id="r0-longest"' in text
    assert 'id="r0-causes"' not in text
