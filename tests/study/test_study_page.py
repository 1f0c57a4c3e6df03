"""The report of a study: what it says of settings, seeds and failures, and that it stands alone."""

from __future__ import annotations

import sys

import pytest

from simsched.study.grid import Grid, best_setting
from simsched.study.study_page import write_page
from simsched.study.sweep import sweep
from tests.study.studyworld import small

pytest.importorskip("bokeh")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    axes = {"queue-policy": ["fcfs", "easy"], "load": [0.8, 1.2], "overrun": ["timeout", "allow"]}
    study = small(axes=axes, seeds=3, description="Waits & <slowdowns>")
    return sweep(study, tmp_path_factory.mktemp("page") / "s", workers=0, report=False)


def test_the_grid_takes_means_over_seeds(result):
    grid = Grid(result)
    assert (grid.x, grid.series, grid.rest) == ("load", "queue-policy", ["overrun"])
    rows = grid.rows(["mean_wait"], 300)
    assert len(rows) == 8
    runs = result.runs[(result.runs["queue_policy"] == "fcfs") & (result.runs["load"] == 0.8)]
    mean = runs[runs["overrun"] == "timeout"]["mean_wait"].mean()
    assert rows[0][:4] == ["fcfs", 0.8, "timeout", 3]
    assert rows[0][4] == pytest.approx(mean)
    assert rows[0][5] >= 0


def test_the_charts_of_the_grid(result):
    facets = Grid(result).facets("mean_wait")
    assert [title for title, _, _ in facets] == ["overrun timeout", "overrun allow"]
    assert [line.name for line in facets[0][1]] == ["fcfs", "easy"]
    assert facets[0][1][0].at == (0.8, 1.2)
    assert all(line.low[n] <= line.mean[n] <= line.high[n] for line in facets[0][1] for n in (0, 1))


def test_settings_are_compared_seed_by_seed(result):
    (said,) = Grid(result).verdicts("mean_wait")
    assert (said.label, said.base) == ("queue-policy easy", "queue-policy fcfs")
    assert sum(said.counts.values()) == 4
    assert said.counts["lower"] + said.counts["within noise"] == 4


@pytest.mark.slow
def test_the_answer_is_the_setting_with_the_least_mean(result):
    found = best_setting(Grid(result), "mean_wait")
    means = result.runs.groupby("queue_policy")["mean_wait"].mean()
    assert next(iter(found.means)) == means.idxmin()
    assert {label: one.estimate for label, one in found.means.items()} == pytest.approx(means.to_dict())
    seeds = result.runs.pivot_table(index="seed", columns="queue_policy", values="mean_wait")
    gaps = (seeds[means.idxmax()] - seeds[means.idxmin()]).tolist()
    (pair,) = found.pairs
    assert pair.difference.interval.estimate == pytest.approx(sum(gaps) / 3)
    assert (found.seeds, found.combinations) == (3, 4)
    assert ("within noise" in found.sentence) == pair.difference.within_noise
    write_page(result)
    text = (result.path / "report.html").read_text()
    assert text.index("<h2>Answer</h2>") < text.index("<h2>In words</h2>") < text.index('class="plot"')
    assert 'id="pairs"' in text


@pytest.mark.slow
def test_all_pairs_of_three_settings_the_best_first(tmp_path):
    study = small(axes={"queue-policy": ["fcfs", "easy", "conservative"]}, seeds=2)
    found = best_setting(Grid(sweep(study, tmp_path / "s", workers=0, report=False)), "mean_wait")
    order = list(found.means)
    pairs = [(one.better, one.worse) for one in found.pairs]
    assert pairs == [(order[0], order[1]), (order[0], order[2]), (order[1], order[2])]
    assert all(one.difference.interval.estimate >= 0 for one in found.pairs)
    assert best_setting(Grid(sweep(small(axes=None), tmp_path / "one", workers=0)), "mean_wait") is None


def test_a_handful_is_compared_job_by_job(result):
    plan = result.record["plan"]
    chosen = [plan[number]["settings"] for number in Grid(result).handful(4)]
    assert chosen == [
        {"queue-policy": policy, "load": 1.2, "overrun": "allow", "seed": 0} for policy in ("fcfs", "easy")
    ]


def test_the_page_stands_alone_and_says_it(result):
    assert write_page(result) is True
    text = (result.path / "report.html").read_text()
    assert "Waits &amp; &lt;slowdowns&gt;" in text
    assert "24 of 24 runs · 3 seeds" in text
    assert "<strong>queue-policy easy</strong> against queue-policy fcfs" in text
    _, _, compared = text.partition('id="comparison"')
    head, _, _ = compared.partition("<h2>")
    assert "2 of the 24 runs of the study: " in head
    assert "default-src 'none'" in text  # whatever BokehJS mentions, nothing is loaded


@pytest.mark.slow
def test_one_seed_is_said_to_tell_nothing_of_chance(tmp_path):
    sweep(small(seeds=None), tmp_path / "s", workers=0)
    assert "One seed: the effect of chance is unknown" in (tmp_path / "s" / "report.html").read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": None, "seeds": None},
        {"axes": {"load": [0.9]}, "seeds": None},
        {"axes": {"load": [0.8, 1.0]}, "keep": "figures", "seeds": None},
        {"axes": {"order": ["fifo", "sjf"], "load": [0.8, 1.2]}, "exclude": [{"order": "sjf", "load": 1.2}]},
        {"axes": {"workload": [{"label": "none", "jobs": []}, {"label": "one", "jobs": [
            {"shape": "slot=1/core", "runtime": 5}]}]}, "workload": "first-steps", "seeds": None},
    ],
)  # fmt: skip
def test_every_kind_of_study_has_a_page(tmp_path, changes):
    found = sweep(small(**changes), tmp_path / "s", workers=0)
    text = (tmp_path / "s" / "report.html").read_text()
    assert f"{found.record['counts']['runs']} of" in text


def test_failures_are_in_the_page(tmp_path):
    edits = [{"label": "good", "value": []}, {"label": "bad", "value": ["remove(n[0-3])"]}]
    sweep(small(axes={"edits": edits}, seeds=None), tmp_path / "s", workers=0)
    text = (tmp_path / "s" / "report.html").read_text()
    assert "Runs without a result" in text
    assert "edits bad" in text


def test_without_bokeh_there_is_no_page(result, monkeypatch):
    import simsched.report.html.charts  # noqa: F401 (it is taken away again)

    monkeypatch.delattr("simsched.report.html.charts")
    monkeypatch.setitem(sys.modules, "simsched.report.html.charts", None)
    assert write_page(result) is False


@pytest.mark.slow
def test_labels_of_both_kinds_are_found(tmp_path):
    """A column holds texts if one label is a text; the charts and the verdicts look for those."""
    axes = {"thin": [False, 0.5], "queue-policy": ["fcfs", "easy"]}
    grid = Grid(sweep(small(axes=axes), tmp_path / "s", workers=0, report=False))
    assert grid.labels["thin"] == ["no", "0.5"]
    assert [[line.at for line in lines] for _, lines, _ in grid.facets("mean_wait")] == [
        [("fcfs", "easy"), ("fcfs", "easy")]
    ]
    (said,) = grid.verdicts("mean_wait")
    assert (said.label, sum(said.counts.values())) == ("thin 0.5", 2)


@pytest.mark.slow
def test_seeds_that_change_nothing_give_no_interval(tmp_path):
    """Without chance all seeds are one, and an interval of no width would be false certainty."""
    study = small(axes={"queue-policy": ["fcfs", "easy"]}, seeds=3, workload={"file": "first-steps"})
    result = sweep(study, tmp_path / "s", workers=0, report=False)
    assert result.runs["mean_wait"].nunique() == 2
    grid = Grid(result)
    found = best_setting(grid, "mean_wait")
    assert not grid.several
    assert found.seeds == 1
    assert found.sentence.endswith("Every seed gave the same result: the effect of chance is unknown")
    assert write_page(result)
    page = (result.path / "report.html").read_text()
    assert "95 % between" not in page.partition('id="comparison"')[0]
    assert "±" not in page
