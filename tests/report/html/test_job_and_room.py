"""The wait of one job and the machine room in a real browser, against the tables of the run."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from simsched.cli import main
from simsched.report.data.machine_room import room_of
from simsched.report.html import page as html
from simsched.report.run_views import load_run
from tests.report.html.browser_page import IN_A_BROWSER

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The first 400 jobs of the bundled month on eight racks, with outages of both kinds."""
    folder = tmp_path_factory.mktemp("job")
    outages = [{"ranks": "0-7", "start": "2h", "end": "9h", "kind": "drain"}]
    (folder / "out.json").write_text(json.dumps(outages))
    cluster, done = str(folder / "racks.json"), str(folder / "run")
    assert main(["cluster", "make", "--nodes", "64", "--cores", "4", "--racks", "8", "-o", cluster]) == 0
    assert main(["run", cluster, "month", "-o", done, "--quiet", "--limit", "400", "--outages",
                 str(folder / "out.json"), "--failures", "mtbf=4d,mttr=6h"]) == 0  # fmt: skip
    return load_run(done)


@pytest.fixture(scope="module")
def opened(browser, run):
    """The browser with the page of the run."""
    file = run.path.parent / "report.html"
    file.write_text(html.page([run]), encoding="utf-8")
    browser.open(file)
    return browser


def test_the_causes_of_every_job_are_those_of_the_table_of_waits(opened, run):
    table = run.waits()
    found = opened.js(
        "const w = asked.get('r0-job'), found = {};"
        "for (const id of arguments[0]) {"
        "  const row = w.rowOf(id), wait = w.data.wait[row];"
        "  found[id] = wait && wait !== NEVER ? Object.fromEntries(w.byCause(w.periods(row))) : {};"
        "} return found",
        run.jobs["id"].tolist(),
    )
    tick = opened.js("return asked.get('r0-job').charts.spec.tick")
    ids = run.jobs["id"].astype(str)
    waited = table[table.sum(axis=1) > 0]
    assert len(waited) > 100
    assert (table > 0).any().sum() >= 2
    for row, causes in table.iterrows():
        expected = {cause: seconds for cause, seconds in causes.items() if seconds > 0}
        got = {cause: ticks * tick for cause, ticks in found[ids[row]].items()}
        assert got == pytest.approx(expected, abs=1.0), ids[row]


def test_a_link_in_the_longest_waits_shows_the_job(opened, run):
    opened.click("#r0-longest tbody a")
    opened.settle()
    longest = run.jobs.assign(wait=run.jobs["start"] - run.jobs["submit"]).nlargest(1, "wait")
    job = str(longest["id"].iloc[0])
    answer = opened.js("return document.getElementById('r0-answer').innerText")
    assert f"Job {job}" in answer
    assert "short of core" in answer
    assert f"simsched why run {job}" in answer
    assert opened.js("return location.hash") == f"#r0-job={job}"
    assert opened.js("return document.activeElement.id") == "r0-job"


def test_a_click_in_the_gantt_chart_shows_the_job(opened):
    opened.js(
        "const boxes = asked.get('r0-job').charts.model('boxes');"
        "boxes.selected.indices = [boxes.data.id.indexOf('7')]"
    )
    assert "Job 7" in opened.js("return document.getElementById('r0-answer').innerText")


def test_an_unknown_job_is_named(opened):
    opened.js(
        "document.getElementById('r0-id').value = 'x17';"
        "document.getElementById('r0-ask').dispatchEvent(new Event('submit', {cancelable: true}))"
    )
    said = opened.js("return document.getElementById('r0-answer').textContent")
    assert said == "The run has no job x17."


def test_the_slider_shows_the_nodes_of_that_time(opened, run):
    room = room_of(run)
    bins = len(room.edges) - 1
    inside = (room.edges[:-1] >= 7200) & (room.edges[1:] <= 32400)  # within the drain
    at = int(np.flatnonzero(inside)[0])
    opened.js(
        "const s = document.getElementById('r0-room-at'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'))",
        at,
    )
    opened.click('[data-save="r0-room"]')
    model = "Bokeh.documents.map(d => d.get_model_by_name('r0-room-nodes')).find(m => m)"
    use = opened.js(f"return Array.from({model}.data.use)")
    assert use == np.rint(100 * room.use()[:, at]).tolist()
    state = opened.js(f"return {model}.data.state")
    assert state[:8] == ["drained"] * 8
    assert opened.js("return document.getElementById('r0-room-at').max") == str(bins - 1)
    assert "to" in opened.js("return document.getElementById('r0-room-at').getAttribute('aria-valuetext')")


def test_the_table_of_the_room_is_that_of_the_run(opened, run):
    opened.js("window.saveAs = save; window.kept = null; save = (name, text) => { window.kept = text; }")
    opened.click('[data-save="r0-roomtime"]')
    rows = list(csv.DictReader(io.StringIO(opened.js("return window.kept"))))
    opened.js("save = window.saveAs")
    room = room_of(run)
    (level,) = room.levels
    assert len(rows) == len(level.groups) * (len(room.edges) - 1)
    use = np.array([float(row["use"]) for row in rows]).reshape(len(level.groups), -1)
    assert use == pytest.approx(100 * room.use(level), abs=0.51)
    out = sum(room.unavailable(level, state) for state in room.out)
    got = np.array([float(row["unavailable"]) for row in rows]).reshape(out.shape)
    assert got == pytest.approx(100 * np.clip(out, 0, 1), abs=0.51)


def test_levels_and_facts_can_be_chosen_without_complaints(opened):
    for fact in ("out", "broken", "use"):
        opened.js(
            "const s = document.getElementById('r0-room-fact'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'))",
            fact,
        )
        opened.settle()
    assert opened.js("return window.simsched.errors") == []
    assert opened.complaints() == []
