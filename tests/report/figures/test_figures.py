"""Static figures: every kind draws its data, twice the same, and refuses data that it cannot draw."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from simsched.errors import ConfigError, RunError
from simsched.report.data.gantt import chart
from simsched.report.data.gantt_view import GanttView, part_of, use_of_cells
from simsched.report.figures import figures
from simsched.report.run_views import load_run

matplotlib = pytest.importorskip("matplotlib")
NODES = pd.DataFrame(
    {"rank": range(4), "host": [f"n{rank}" for rank in range(4)], "up": True, "total_core": 4,
     "in_rack": ["a", "a", "b", "b"]}
)  # fmt: skip


@pytest.fixture
def runs(write_run, make_schedule, make_records):
    jobs = make_schedule(4)
    later = jobs.assign(start=jobs["start"] + 600, end=jobs["end"] + 600)
    return [
        load_run(write_run("easy", jobs, records=make_records(jobs), nodes=NODES)),
        load_run(write_run("fcfs", later, records=make_records(later), nodes=NODES)),
    ]


@pytest.mark.quick(4)
@pytest.mark.parametrize("kind", figures.KINDS)
def test_every_kind_is_drawn_with_its_units(runs, tmp_path, kind):
    shown = runs if figures.KINDS[kind].several else runs[:1]
    figures.save(kind, shown, tmp_path / "p.png", dpi=50)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    figure = figures.draw(kind, shown, dark=True)
    if kind not in ("reasons", "compare"):
        assert figure.axes[0].get_xlabel() or figure.axes[0].get_ylabel()
    assert figure.axes[0].get_title(loc="left") or kind == "reasons"


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_same_run_gives_the_same_bytes(runs, tmp_path, ending):
    files = [tmp_path / f"{i}{ending}" for i in (1, 2)]
    for file in files:
        figures.save("gantt", runs[:1], file, dpi=60)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_gantt_has_a_rectangle_a_job_and_range(runs):
    axes = figures.draw("gantt", runs[:1]).axes[0]
    assert len(axes.collections[0].get_paths()) == len(runs[0].jobs)
    assert axes.get_ylim() == (0, 4)


def test_a_large_gantt_is_an_image_inside_a_vector_figure(runs, tmp_path, monkeypatch):
    figures.save("gantt", runs[:1], tmp_path / "v.svg")
    assert "<image" not in (tmp_path / "v.svg").read_text()
    monkeypatch.setattr("simsched.report.figures.gantt_figure.MAX_VECTORS", 10)
    figures.save("gantt", runs[:1], tmp_path / "r.svg")
    assert "<image" in (tmp_path / "r.svg").read_text()


def test_the_wait_curve_ends_at_100_percent_of_the_longest_wait(runs):
    axes = figures.draw("wait", runs).axes[0]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["easy", "fcfs"]
    x, y = axes.lines[0].get_data()
    assert (x[-1], y[-1]) == (runs[0].summary["max_wait"], 100)


def test_the_map_has_a_cell_a_node_and_its_share_of_time(write_run, make_jobs):
    jobs = make_jobs([{"id": "a", "start": 0, "end": 50, "cores": 4}, {"id": "b", "start": 0, "end": 100}])
    lite = [{"rank": "2", "children": {"core": "0-3"}}]
    document = {"version": 1, "execution": {"R_lite": lite, "nodelist": ["n2"]}}
    records = [{"id": "a", "event": e, "time": t, "R": document} for e, t in (("alloc", 0), ("release", 50))]
    run = load_run(write_run("map", jobs, records=records))
    shares = figures.draw("map", [run]).axes[0].images[0].get_array().compressed()
    assert shares.tolist() == [0, 0, 50, 0]


def test_reasons_are_bars_or_a_sentence(write_run, story, runs):
    axes = figures.draw("reasons", [load_run(write_run("story", story))]).axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == [
        "infeasible: needs 5 nodes of 4",
        "dropped: 0 processors",
    ]
    assert figures.draw("reasons", runs[:1]).axes[0].texts[0].get_text() == "Every job ran."


def test_unknown_kinds_endings_and_too_many_runs(runs, tmp_path):
    with pytest.raises(ConfigError, match=r"unknown kind of figure 'pie' \(expected gantt, "):
        figures.draw("pie", runs)
    with pytest.raises(ConfigError, match="gantt shows one run, not 2"):
        figures.draw("gantt", runs)
    with pytest.raises(ConfigError, match=r"expected \.png, \.svg, \.pdf"):
        figures.save("wait", runs, tmp_path / "p.gif")
    with pytest.raises(ConfigError, match="0 dots per inch"):
        figures.save("wait", runs, tmp_path / "p.png", dpi=0)


@pytest.mark.parametrize("kind", ["map"])
def test_figures_of_nodes_need_allocations(write_run, story, kind):
    with pytest.raises(RunError, match="made without its allocations"):
        figures.draw(kind, [load_run(write_run("bare", story))])


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", [k for k in figures.KINDS if k not in ("reasons", "gantt", "map")])
def test_a_run_in_which_nothing_ran_cannot_be_drawn(write_run, make_jobs, make_timeline, kind):
    empty = make_timeline(make_jobs([{"start": 0, "end": 1}]), {"core": 16}).head(0)
    run = load_run(write_run("never", make_jobs([{"result": "INFEASIBLE", "cores": 0}]), empty))
    with pytest.raises(RunError, match="no job ran"):
        figures.draw(kind, [run])


def test_use_of_a_machine_of_unknown_size_cannot_be_drawn(write_run, story):
    run = load_run(write_run("lost", story, cluster={"name": "lost"}))
    with pytest.raises(RunError, match="does not record the size of the cluster"):
        figures.draw("utilisation", [run])


def test_cells_of_the_heat_map_hold_the_waits_that_their_colours_show(write_run, make_schedule):
    run = load_run(write_run("easy", make_schedule(3)))
    figure = figures.draw("heatmap", [run])
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert cells
    assert sum(int(cell.split("\n")[1].split()[0].replace(",", "")) for cell in cells) == len(
        run.jobs["start"].dropna()
    )
    units = re.compile(r"\d.* (s|min|h|d)\n")
    assert all(units.match(cell) for cell in cells)


def test_ranks_are_whole_numbers(write_run, story):
    figure = figures.draw("gantt", [load_run(write_run("easy", story))])
    assert all(float(tick).is_integer() for tick in figure.axes[0].get_yticks())


def shown(figure):
    return {text.get_text() for text in figure.axes[0].texts}


def test_a_part_of_a_gantt_has_names_waits_and_a_legend(runs):
    run = runs[0]
    view = GanttView(start=0, end=1800, colour="user", waits=True)
    figure = figures.draw("gantt", [run], view=view)
    assert shown(figure) <= set(run.jobs["id"])
    assert shown(figure)
    users = {text.get_text() for text in figure.legends[0].get_texts()}
    assert users <= set(run.jobs["user"])
    lines = figure.axes[0].collections[1].get_segments()
    waited = {round((x - w) * 60) for (w, _), (x, _) in lines}  # the axis is in minutes
    assert waited <= {round(wait) for wait in (run.jobs["start"] - run.jobs["submit"])}
    assert not shown(figures.draw("gantt", [run], view=GanttView(names=False)))


def test_too_many_jobs_are_drawn_as_the_use_of_nodes(runs, monkeypatch):
    monkeypatch.setattr("simsched.report.figures.gantt_figure.MAX_JOBS_SHOWN", 3)
    axes = figures.draw("gantt", runs[:1]).axes[0]
    part = part_of(runs[0], chart(runs[0]), GanttView())
    assert np.asarray(axes.images[0].get_array()) / 100 == pytest.approx(use_of_cells(part, 4, 600))
    assert axes.get_title(loc="left") == f"easy: {len(runs[0].jobs)} jobs on toy, share in use"
    chosen = figures.draw("gantt", runs[:1], view=GanttView(colour="job")).axes[0]
    assert not chosen.images


@pytest.mark.quick(2)
@pytest.mark.parametrize("kind", figures.KINDS)
def test_figures_in_grey_have_no_colour(runs, tmp_path, kind):
    figure = figures.draw(kind, runs[: 1 + figures.KINDS[kind].several], grey=True, paper="double")
    figure.savefig(tmp_path / "g.png", dpi=60)
    pixels = matplotlib.image.imread(tmp_path / "g.png")[..., :3]
    # text is bluish black, and grid lines bluish grey
    assert (pixels.max(axis=2) - pixels.min(axis=2)).max() < 0.12


def test_lines_of_a_grey_figure_differ_by_dashes_as_their_keys_do(runs):
    figure = figures.draw("wait", runs, grey=True)
    axes = figure.axes[0]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert [key.get_linestyle() for key in axes.get_legend().legend_handles] == ["-", "--"]


def test_paper_sets_the_width_and_refuses_what_does_not_fit(runs):
    assert figures.draw("queue", runs, paper="single").get_size_inches()[0] == 3.5
    assert figures.draw("queue", runs, paper="8.5cm").get_size_inches()[0] == pytest.approx(8.5 / 2.54)
    for odd in ("8.5", "8.5 km", "0cm", "9999in"):
        with pytest.raises(ConfigError, match="is not the width of a figure"):
            figures.draw("queue", runs, paper=odd)
    with pytest.raises(ConfigError, match=r"compare does not fit into one column \(expected double, or 5 in"):
        figures.draw("compare", runs, paper="single")
    with pytest.raises(ConfigError, match=r"'a4' is not the width of a figure \(expected single, double"):
        figures.draw("queue", runs, paper="a4")
    with pytest.raises(ConfigError, match=r"a part of a run cannot be chosen for queue \(expected gantt\)"):
        figures.draw("queue", runs, view=GanttView(start=5))


def test_filled_steps_stay_filled_in_grey(runs):
    """The areas of waits by cause are steps; as lines without an edge they would vanish."""
    plain, grey = (figures.draw("waits", runs[:1], paper="double", grey=grey) for grey in (False, True))
    for figure in (plain, grey):
        areas = figure.axes[0].patches
        assert areas
        assert all(area.get_fill() and area.get_facecolor()[3] == 1 for area in areas)
        assert all(np.ptp(area.get_facecolor()[:3]) == 0 for area in grey.axes[0].patches)


def test_the_scale_of_waits_has_times_in_grey_too(runs):
    for grey in (False, True):
        figure = figures.draw("heatmap", runs[:1], grey=grey)
        figure.canvas.draw()
        labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
        assert labels
        assert all(re.fullmatch(r"\d+ (s|min|h|d)( \d+ (s|min|h))?", label) for label in labels), labels


def test_no_value_of_a_grey_image_has_the_colour_of_the_paper(runs):
    image = figures.draw("heatmap", runs[:1], grey=True).axes[0].images[0]
    assert max(image.get_cmap()(1.0)[:3]) < 0.95


def test_the_room_names_its_groups_and_charts(runs):
    figure = figures.draw("room", runs[:1])
    charts = [axes for axes in figure.axes if axes.images]
    # the jobs of this run hold whole nodes, so no free core is on a partly used one
    assert [axes.get_title(loc="left") for axes in charts] == ["cores in use"]
    assert [label.get_text() for label in charts[0].get_yticklabels()] == ["a", "b"]
    assert charts[0].get_ylabel() == "rack"
    assert charts[0].images[0].get_array().shape == (2, 240)


def test_the_names_of_nodes_do_not_touch(write_run, make_jobs):
    """On a low figure only so many nodes are named as have room."""
    jobs = make_jobs([{"start": 0, "end": 10, "cores": 1, "nodes": 1}])
    document = {"version": 1, "execution": {"R_lite": [{"rank": "0", "children": {"core": "0"}}],
                                            "nodelist": ["n0"]}}  # fmt: skip
    records = [{"id": "1", "event": event, "time": at, "R": document} for event, at in
               (("alloc", 0), ("release", 10))]  # fmt: skip
    nodes = pd.DataFrame({"rank": range(200), "host": [f"n{n}" for n in range(200)], "up": True,
                          "total_core": 1})  # fmt: skip
    totals = {"node": 200, "core": 200}
    run = load_run(write_run("many", jobs, records=records, nodes=nodes, totals=totals))
    figure = figures.draw("gantt", [run], paper="double")
    named = len(figure.axes[0].get_yticklabels())
    assert 5 < named <= 72 * figure.get_size_inches()[1] / 8.5


@pytest.mark.quick(3)
@pytest.mark.parametrize("paper", [None, "single", "double"])
@pytest.mark.parametrize("kind", ["utilisation", "queue", "gantt", "waits"])
def test_no_legend_is_cut_or_covers_data(runs, kind, paper):
    if kind == "waits" and paper == "single":
        pytest.skip("waits need two columns")
    for number, run in enumerate(runs):
        run.name = f"a run with a longer name {number}"
    view = GanttView(colour="user") if kind == "gantt" else None
    several = figures.KINDS[kind].several
    figure = figures.draw(kind, runs if several else runs[:1], view=view, paper=paper)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box, drawn = legend.get_window_extent(), figure.axes[0].get_window_extent()
    assert not box.overlaps(drawn)
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.bbox.y1
    assert drawn.width > 0.5 * figure.bbox.width


@pytest.mark.parametrize("paper", [None, "single"])
@pytest.mark.parametrize("number", [1, 12])
def test_reasons_leave_room_for_their_bars_and_no_empty_area(write_run, make_jobs, paper, number):
    rows = [{"id": f"j{n}", "result": "INFEASIBLE",
             "reason": f"node: {'x' * (n + 1)} needed, and the idle cluster holds fewer of them"}
            for n in range(number)]  # fmt: skip
    run = load_run(write_run("r", make_jobs([*rows, {"id": "ran", "start": 0, "end": 5}])))
    figure = figures.draw("reasons", [run], paper=paper)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_window_extent().width > 0.4 * figure.bbox.width
    labels = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert min(label.x0 for label in labels) >= 0
    assert not any(a.overlaps(b) for a, b in pairwise(labels))
    assert figure.get_size_inches()[1] < 2 + 0.5 * number


def test_waits_in_a_gantt_begin_at_the_submissions_although_records_were_ignored(write_run, make_jobs):
    jobs = make_jobs([{"id": "old", "submit": 0, "result": "DROPPED", "reason": "no record"},
                      {"id": "a", "submit": 9000, "start": 9060, "end": 9120}])  # fmt: skip
    figure = figures.draw("gantt", [load_run(write_run("cut", jobs))], view=GanttView(waits=True))
    assert figure.axes[0].collections[1].get_segments()[0][:, 0].tolist() == [0, 60]
