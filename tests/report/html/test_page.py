"""The HTML page as text: whole, self-contained, and safe with any name."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from simsched.report.data.series import curve
from simsched.report.html import markup
from simsched.report.html import page as html
from simsched.report.run_views import load_run

pytest.importorskip("bokeh")

EVIL = '</script><script>alert("x")</script><!-- & \'"'


@pytest.fixture(scope="module")
def runs(tmp_path_factory, writer_in, make_schedule, make_records):
    jobs = make_schedule(4)
    write_run = writer_in(tmp_path_factory.mktemp("html"))
    return [load_run(write_run(n, jobs, records=make_records(jobs))) for n in ("easy", "fcfs")]


@pytest.fixture(scope="module")
def both(runs):
    """The page of two runs."""
    return html.page(runs)


def page_data(page: str):
    return json.loads(re.search(r'id="page-data">(.*?)</script>', page, re.DOTALL).group(1))


def own(page: str) -> str:
    """The page without BokehJS, which names addresses in its comments and messages."""
    longest = max(re.findall(r"<script>.*?</script>", page, re.DOTALL), key=len)
    return page.replace(longest, "")


def test_nothing_is_loaded_from_elsewhere(both):
    page = own(both)
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#|data:)[^\"']*", page)
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)
    assert "default-src 'none'" in page
    assert "connect-src" not in page


def test_one_run_has_a_section_and_several_are_compared(runs, both):
    alone = html.page(runs[:1])
    assert 'id="comparison"' not in alone
    assert 'id="comparison"' in both
    assert [c["title"] for c in page_data(both)["charts"]] == ["comparison", "easy", "fcfs"]


def test_what_runs_share_is_there_once(both):
    """Both runs have the same jobs, at the same times: one element for each kind of columns."""
    islands = [chart["time"]["islands"] for chart in page_data(both)["charts"][1:]]
    assert len(islands) == 2
    assert islands[0] == islands[1]
    waits = [chart["time"]["waits"]["data"] for chart in page_data(both)["charts"][1:]]
    assert waits[0] == waits[1]
    assert sorted([*islands[0].values(), waits[0]]) == re.findall(
        r'<script type="application/octet-stream" id="([\w-]+)"', both
    )


@pytest.mark.slow
def test_jobs_that_run_at_other_times_are_still_shared(write_run, make_schedule, make_records):
    jobs = make_schedule(4)
    later = jobs.assign(start=jobs["start"] + 600, end=jobs["end"] + 600)
    found = [load_run(write_run(n, j, records=make_records(j))) for n, j in (("a", jobs), ("b", later))]
    first, second = (chart["time"]["islands"] for chart in page_data(html.page(found))["charts"][1:])
    assert [name for name in first if first[name] == second[name]] == ["jobs", "results", "ids"]


def test_every_chart_and_table_has_a_download_and_every_place_a_chart(both):
    page = both
    places = {p for c in page_data(page)["charts"] for p in c["places"]}
    assert places == set(re.findall(r'data-save="([\w-]+)"', page))
    assert places == set(re.findall(r'<div class="plot" id="([^"]+)"', page))
    assert set(re.findall(r'<table id="([^"]+)"', page)) == set(
        re.findall(r'data-save-table="([^"]+)"', page)
    )


def test_names_cannot_break_out(write_run, make_schedule, make_records):
    jobs = make_schedule(4).assign(user=EVIL, queue=EVIL, result="FAILED", reason=EVIL)
    jobs["id"] = [f"{EVIL}{i}" for i in range(len(jobs))]
    folder = write_run(
        "evil", jobs, records=make_records(jobs), cluster={"name": EVIL, "totals": {"core": 16}}
    )
    page = html.page([load_run(folder, name=EVIL), load_run(folder, name="b")])
    assert 'alert("x")' not in re.sub(r'type="application/json".*?</script>', "", page, flags=re.DOTALL)
    assert page.count("<script") == page.count("</script>")
    assert EVIL in json.dumps(page_data(page)).encode().decode("unicode_escape")


def test_a_run_without_allocations_says_so(write_run, story):
    page = html.page([load_run(write_run("bare", story))])
    assert "made without its allocations" in page
    assert "jobs are packed from the bottom" in page
    assert 'id="r0-gantt"' in page
    assert "needs 5 nodes of 4" in page


def test_a_run_in_which_nothing_ran_has_a_page(write_run, make_jobs, make_timeline):
    jobs = make_jobs([{"result": "INFEASIBLE", "reason": "needs 9 nodes", "cores": 0}])
    empty = make_timeline(make_jobs([{"start": 0, "end": 1}]), {"core": 16}).head(0)
    run = load_run(write_run("never", jobs, empty))
    page = html.page([run])
    assert "No job of this run started and ended" in page
    assert "needs 9 nodes" in page
    assert html.page([run, run])


def test_the_curve_of_a_distribution_keeps_its_ends(story):
    from simsched.report.metrics.metrics import ran, wait

    points = curve(wait(ran(story)), 1.0)
    assert points["value"].tolist() == [1, 80, 90]
    assert points["share"].tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert curve(wait(story).head(0), None).empty


def plain(page):
    """A page without the ids of its models."""
    return re.sub(r'"?p\d{4,}"?|[0-9a-f-]{36}', "id", page)


def test_the_same_runs_give_the_same_page_but_for_model_ids(runs, both):
    assert plain(html.page(runs)) == plain(both)


@pytest.mark.parametrize("made", [9_900, 9_300])
def test_a_page_does_not_depend_on_how_many_models_were_made_before(runs, both, made, monkeypatch):
    monkeypatch.setattr("bokeh.util.serialization._simple_id", made)
    assert plain(html.page(runs)) == plain(both)


def test_long_tables_say_what_they_leave_out():
    rows = [[i, i] for i in range(markup.MAX_ROWS + 5)]
    made = markup.table("t", "T", (("n", ""), ("v", "s")), rows)
    assert made.count("<tr>") == markup.MAX_ROWS + 1
    assert "5 more rows" in made


@pytest.fixture(scope="module")
def racked(tmp_path_factory):
    import simsched as ss

    run = ss.simulate(ss.load_cluster("racked"), ss.load_workload("slurm-day"))
    return run.save(tmp_path_factory.mktemp("runs") / "racked")


def test_the_machine_has_a_map_and_tables_of_its_parts(racked):
    page = html.page([load_run(racked)])
    for part in ("r0-map", "r0-by-property", "r0-by-rack", "r0-by-chassis", "r0-locality"):
        assert f'id="{part}"' in page
    assert "Jain index of the nodes" in page
    assert '<td class="text">bigmem</td><td data-v="32">32</td>' in page
    assert "434,176 memory" in page


def test_types_that_divide_the_machine_alike_are_told_of_once():
    import pandas as pd

    from simsched.report.metrics.machine_use import distinct_places

    nodes = pd.DataFrame({"in_rack": ["a", "a", "b"], "in_pdu": ["x", "x", "y"], "in_row": ["x", "y", "y"]})
    assert distinct_places(nodes) == ["rack", "row"]


def test_more_rows_than_can_be_held_leave_the_machine_out(racked, monkeypatch):
    from simsched.report.data import allocations

    monkeypatch.setattr(allocations, "MAX_ROWS", 3)
    page = html.page([load_run(racked)])
    assert "No tables of the machine" in page


@pytest.mark.parametrize(("most", "chosen"), [(3, "use"), (10_000, "job")])
def test_many_boxes_are_first_shown_as_use(runs, monkeypatch, most, chosen):
    monkeypatch.setattr("simsched.report.html.time_section.MAX_JOBS_SHOWN", most)
    assert re.findall(r'<option value="(\w+)" selected', html.page(runs[:1])) == [chosen]


def test_the_heat_map_has_the_waits_in_its_cells_and_times_at_its_scale(runs):
    """One text per cell that has jobs, and no bare seconds at the colours."""
    from simsched import human
    from simsched.report.html.charts import heat_chart

    waits = pd.DataFrame({"short": [30.0, 7200.0], "long": [np.nan, 90000.0]}, index=["1", "2"])
    chart = heat_chart(waits, "run time", "cores", "mean wait", "s")
    texts = [one.data_source.data["text"] for one in chart.renderers if "text" in one.data_source.data]
    assert [sorted(column) for column in texts] == [sorted(map(human.seconds, (30.0, 7200.0, 90000.0)))]
    bar = next(part for part in chart.right if type(part).__name__ == "ColorBar")
    assert dict(bar.major_label_overrides) == {60: "1 min", 600: "10 min", 3600: "1 h", 21600: "6 h",
                                               86400: "1 d"}  # fmt: skip


def test_records_that_were_ignored_do_not_stretch_the_time_of_a_page(write_run, make_jobs):
    """A slice of a log has the ignored records of the whole log, long before its first job."""
    rows = [{"id": f"j{n}", "submit": 90_000 + n, "start": 90_000 + n, "end": 90_600} for n in range(3)]
    far = {"id": "x", "submit": 0, "result": "DROPPED", "reason": "no record"}
    page = html.page([load_run(write_run("cut", make_jobs([far, *rows])))])
    time = page_data(page)["charts"][0]["time"]
    assert time["end"] * time["unit_seconds"] == pytest.approx(600)
    assert re.search(r"Jobs run</dt><dd>3<small>of 3 jobs<", page)


def test_a_head_names_its_unit_once(runs):
    heads = re.findall(r'<th scope="col"[^>]*><button>([^<]*)</button>', html.page(runs[:1]))
    assert "core hours" in heads
    assert not [head for head in heads if re.search(r"hours \(h\)", head)]


def test_a_page_of_a_large_run_is_bounded_and_says_what_is_left_out(write_run, make_jobs, monkeypatch):
    """The largest jobs are drawn; figures and tables are those of all jobs."""
    from simsched.report.html import run_section, time_section

    for module in (time_section, run_section):
        monkeypatch.setattr(module, "MOST_JOBS", 20)
    monkeypatch.setattr(time_section, "MOST_ROWS", 30)
    rows = [{"id": str(n), "submit": n, "start": n, "end": n + 1 + n % 50, "cores": 1} for n in range(200)]
    run = load_run(write_run("large", make_jobs(rows)))
    shown, sentence = time_section.largest_jobs(run)
    assert len(shown.jobs) == 20
    assert shown.jobs["id"].tolist() == [str(n) for n in range(200) if n % 50 >= 45]
    assert run.jobs["id"].tolist() == [str(n) for n in range(200)]
    text = html.page([run])
    assert "This run has 200 jobs. The chart of the nodes has the 20 that held most cores" in text
    assert sentence in text
    assert len(text) < len(html.page([load_run(run.path)])) + 1000
    assert html.page([run]).count("<table") == text.count("<table")


def test_more_changes_of_causes_than_a_page_holds_are_left_out_and_named(runs, monkeypatch):
    from simsched.report.html import job_section

    monkeypatch.setattr(job_section, "MOST_CHANGES", 1)
    text = html.page(runs[:1])
    assert "and a page has room for 1: see <code>simsched why RUN JOB</code>" in text
    assert "Choose a job to see its wait." not in text


def test_the_comparison_has_its_notes_at_their_chart(both):
    head, _, rest = both.partition("<h2>In words</h2>")
    assert "Left of 0" not in head
    assert "Left of 0" in rest


def test_a_thinned_timeline_keeps_means_and_the_longest_queue(monkeypatch):
    from simsched.report.html import time_section

    monkeypatch.setattr(time_section, "MOST_ROWS", 6)
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 1000, 100)).astype(float)
    line = pd.DataFrame({"time": time, "used_core": rng.integers(0, 9, 100), "queued_jobs": np.arange(100)})
    thin = time_section.thinned(line)
    area = float((line["used_core"].to_numpy()[:-1] * np.diff(time)).sum())
    assert len(thin) == 6
    assert float((thin["used_core"].to_numpy()[:-1] * np.diff(thin["time"])).sum()) == pytest.approx(area)
    for low, high, longest in zip(thin["time"], thin["time"][1:], thin["queued_jobs"], strict=False):
        first = np.flatnonzero(time <= low)[-1]
        assert longest == line["queued_jobs"][first:][time[first:] < high].max()
    assert time_section.thinned(line.head(6)) is not None
