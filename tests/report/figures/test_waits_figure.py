"""Figures of waits: the areas are the hours waited, the bars are the periods of the job."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import ConfigError, RunError
from simsched.report.figures import figures
from simsched.report.run_views import load_run
from simsched.report.waiting.wait_totals import wait_table, waits_over_time
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, workload

pytest.importorskip("matplotlib")


@pytest.fixture
def world(tmp_path):
    """One node of 4 cores: a holds 3 of them until 60, so b waits 50 s for cores; c passes b."""
    load = workload(
        job("a", 0, "slot=3/core", 60, 60, user="ann"),
        job("b", 10, "slot=4/core", 20, 20, user="bob"),
        job("c", 20, "slot=1/core", 30, 30, user="cid"),
    )
    cluster = machine(1, cores=4)
    simulate(cluster, load, "easy").save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    return run, cluster, load


@pytest.mark.parametrize("parts", [1, 3, 7, 40])
def test_hours_over_time_add_up_to_the_totals(world, parts):
    run = world[0]
    edges = np.linspace(0.0, 90.0, parts + 1)
    table, totals = waits_over_time(run, edges), wait_table(run).sum() / 3600
    assert table.sum().to_dict() == pytest.approx(totals.to_dict())
    assert (table.to_numpy() >= 0).all()


def test_hours_over_time_are_those_of_each_part(world):
    table = waits_over_time(world[0], np.array([0.0, 10.0, 30.0, 60.0, 80.0]))
    assert (table["short of core"] * 3600).round(6).tolist() == [0, 20, 30, 0]


def test_the_figure_of_a_run_names_causes_with_their_hours(world):
    figure = figures.draw("waits", [world[0]])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["short of core: 0.0 h"]


def test_the_figure_of_a_job_has_its_periods_and_the_holders(world):
    run, cluster, load = world
    axes = figures.draw_job(run, run.why("b", cluster, load)).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["short of core  50 s", "held: 3 by job a (ann)", "held: 1 by job c (cid)"]
    spans = [path.get_extents() for one in axes.collections for path in one.get_paths()]
    assert [(box.x0, box.x1) for box in spans] == [(0, 50), (0, 50), (10, 40)]


def test_a_job_that_did_not_wait_has_no_figure(world):
    run, cluster, load = world
    with pytest.raises(RunError, match="job a did not wait"):
        figures.draw_job(run, run.why("a", cluster, load))
    with pytest.raises(ConfigError, match="'wide' is not the width"):
        figures.draw_job(run, run.why("b", cluster, load), paper="wide")


def test_a_job_on_paper_in_grey_has_no_colour(world):
    run, cluster, load = world
    figure = figures.draw_job(run, run.why("b", cluster, load), paper="single", grey=True)
    colours = [tuple(colour[:3]) for one in figure.axes[0].collections for colour in one.get_facecolor()]
    assert len(set(colours)) == 2
    assert all(red == green == blue for red, green, blue in colours)
