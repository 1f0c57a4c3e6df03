"""`Run`: the answers, figures and views of a run that Python users and notebooks ask for."""

from __future__ import annotations

import re
import shutil

import pandas as pd
import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import SimschedError
from simsched.report.run_views import ARROW_TABLES
from tests.simulation import simworld


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    run = ss.simulate("tiny", "first-steps", "easy")
    run.save(folder)
    return run, folder


def test_the_page_is_a_text(saved):
    with pytest.raises(SimschedError, match=r"write_text\(run.page\(\)\) writes the page"):
        saved[0].page("x.html")


def waited(run):
    return [job for job, wait in waits_of(run).items() if wait > 0]


def waits_of(run):
    jobs = run.jobs[run.jobs["start"].notna()]
    return dict(zip(jobs["id"].astype(str), jobs["start"] - jobs["submit"], strict=True))


def test_why_is_the_same_for_the_run_in_memory_and_from_its_folder(saved):
    run, folder = saved
    loaded = ss.load_run(folder)
    jobs = waited(run)
    assert jobs
    for job in jobs:
        answer = loaded.why(job)
        assert answer == run.why(job)
        assert answer.wait == waits_of(run)[job]
        assert str(answer).startswith(f"job {job} ")


def test_why_reads_the_inputs_of_a_command_as_the_command_did(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "tiny", "first-steps", "-o", "run", "-t", "shift(1h)", "--quiet"]) == 0
    run = ss.load_run("run")
    job = waited(run)[0]
    assert run.why(job).submit >= 3600
    assert run.why(job).wait == waits_of(run)[job]


def test_why_refuses_inputs_that_changed_and_takes_given_ones(tmp_path):
    log = tmp_path / "log.swf"
    lines = [f"{n} {n} -1 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 9)]
    log.write_text("\n".join(lines))
    ss.simulate("tiny", log).save(tmp_path / "run")
    run = ss.load_run(tmp_path / "run")
    before = run.why(8)
    workload = ss.load_workload(log)
    log.write_text("\n".join(lines[:4]))
    with pytest.raises(ss.RunError, match="has changed since"):
        run.why(8)
    assert run.why(8, ss.load_cluster("tiny"), workload) == before


def test_why_of_a_run_whose_inputs_are_not_recorded_says_so(tmp_path):
    cluster, workload = ss.load_cluster("tiny"), ss.load_workload("first-steps")
    ss.simulate(cluster, workload).save(tmp_path / "run")
    loaded = ss.load_run(tmp_path / "run")
    with pytest.raises(ss.RunError, match="does not say how the inputs"):
        loaded.why("3")


def test_waits_add_up_to_the_wait_of_each_job(saved):
    run, _ = saved
    sums = run.waits().sum(axis=1)
    started = run.jobs["start"].notna()
    assert sums[started].tolist() == pytest.approx(list(waits_of(run).values()))


def test_plot_takes_a_part_of_a_gantt_chart_and_several_runs(saved):
    pytest.importorskip("matplotlib")
    run, _ = saved
    assert run.plot("gantt", start="10m", end=3600, nodes="0-1").axes
    assert run.plot("queue", ss.simulate("tiny", "first-steps", "fcfs"), grey=True).axes
    assert run.plot("gantt").axes[0].texts
    assert not run.plot("gantt", names=False).axes[0].texts
    with pytest.raises(ss.ConfigError, match="the view ends before it begins"):
        run.plot("gantt", end=0)
    with pytest.raises(ss.ConfigError, match="unknown option 'node'; did you mean nodes"):
        run.plot("gantt", node="0")
    with pytest.raises(ss.ConfigError, match="unknown kind of figure 'gannt'; did you mean"):
        run.plot("gannt")


@pytest.mark.slow
def test_a_page_of_one_run_and_of_two(saved):
    pytest.importorskip("bokeh")
    run, folder = saved
    assert 'id="comparison"' not in run.page()
    assert 'id="comparison"' in run.page(ss.load_run(folder, name="again"))


def test_steady_keeps_the_kind_of_run(saved):
    run, folder = saved
    part = run.steady(warm_up=600)
    assert type(part) is type(run)
    assert len(part.jobs) < len(run.jobs)
    assert part.summary == ss.load_run(folder).steady(warm_up=600).summary
    assert len(run.jobs) == 18


def test_notebooks_show_tables_with_escaped_text(saved):
    run, _ = saved
    assert '<th scope="row">makespan</th>' in run._repr_html_()
    cluster = ss.load_cluster("tiny")
    assert '<th scope="row">core</th><td>16</td>' in cluster._repr_html_()
    workload = ss.load_workload("first-steps")
    shown = workload._repr_html_()
    assert len(re.findall("<tr>", shown)) == 11
    never = ss.feasible(cluster, "slot=3/[core=4;gpu]")._repr_html_()
    assert "<strong>infeasible</strong>" in never
    assert "would fit with: slot=2 instead of 3" in never
    assert "→ 2 fit [core=4;gpu]" in never
    odd = ss.Workload((), name="<b>&")
    assert "&lt;b&gt;&amp;" in odd._repr_html_()


def test_jobs_without_a_queue_or_user_are_a_group_of_a_saved_run(tmp_path):
    """The names of a saved run are categories in order, those of a run in memory are texts."""
    queues, users = ["q", None, "p", None], [None, "ann", "bob", "ann"]
    rows = zip(queues, users, strict=True)
    jobs = [
        simworld.job(f"j{at}", at, "slot=1/core", 30 * (at + 1), queue=queue, user=user)
        for at, (queue, user) in enumerate(rows)
    ]
    simworld.run(simworld.machine(2), *jobs).save(tmp_path / "run")
    found = ss.load_run(tmp_path / "run")
    assert found.queues["jobs"].to_dict() == {"-": 2, "p": 1, "q": 1}
    assert found.queues["share"].round(3).to_dict() == {"-": 0.6, "p": 0.3, "q": 0.1}
    assert found.users["jobs"].to_dict() == {"ann": 2, "bob": 1, "-": 1}
    assert ">By queue<" in found.page()


#: what a run must do without a file of its own, by name; every public name of `Run` is here or below
ASKED = {
    "arrow": lambda run: [duckdb_rows(run.arrow(table)) for table in ARROW_TABLES],
    "compare": lambda run: run.compare(run),
    "inputs": lambda run: [(type(one).__name__, len(one.index) if i == 0 else one.jobs) for i, one in
                           enumerate(run.inputs())],
    "job_arrays": lambda run: pd.DataFrame(run.job_arrays(["id", "user", "submit", "start", "result"])),
    "metric": lambda run: run.metric("mean_wait"),
    "of_jobs": lambda run: len(run.of_jobs([0, 1, 2]).jobs),
    "page": lambda run: re.sub(OF_THE_COMMAND, "", run.page()),
    "plot": lambda run: [pixels(run.plot(kind)) for kind in ("gantt", "room", "map", "waits", "users")],
    "plot_wait": lambda run: pixels(run.plot_wait(waited(run)[0])),
    "section": lambda run: run.section(Lines()),
    "timeline_arrays": lambda run: pd.DataFrame(run.timeline_arrays())[list(run.timeline)],
    "steady": lambda run: run.steady(60, 60).summary,
    "waits": lambda run: run.waits(),
    "why": lambda run: [run.why(job) for job in waited(run)],
}  # fmt: skip
#: what a page says of the folder, the command that explains a wait; and the numbers of Bokeh's models
OF_THE_COMMAND = re.compile(
    r"""<td[^>]*>simsched\ why[^<]*</td> | <th[^>]*><button[^>]*>explained\ by</button></th>
    | \ The\ command\ in\ the\ last\ column[^<]* | "command":\ ?"[^"]*" | "p[0-9]{4,}" """,
    re.VERBOSE,
)
#: how a run is made, and what names its folder
OF_A_FOLDER = {"folder", "load", "from_columns", "from_result", "path", "save", "result", "name"}


class Lines:
    def __call__(self, run, width):
        return f"{len(run.allocations)} {len(run.shards)}"


def duckdb_rows(table):
    import duckdb

    found = duckdb.from_arrow(table).fetchall()
    return str(found)  # NaN equals NaN in a text


def pixels(figure):
    return figure._repr_png_()  # what a notebook shows


def equal(one, other):
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return one.equals(other) if hasattr(one, "equals") else one == other


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"failures": "mtbf=4h,mttr=10m", "seed": 3}])
def test_a_run_in_memory_answers_all_that_its_folder_does(tmp_path, options):
    """Every public name: a new one has to be added to `ASKED`, or is compared as a value."""
    run = ss.simulate("tiny", "first-steps", "easy", **options)
    ss.simulate("tiny", "first-steps", "easy", **options).save(tmp_path / "easy on tiny")
    loaded = ss.load_run(tmp_path / "easy on tiny")
    run.meta |= {name: loaded.meta[name] for name in ("files", "sha256", "created", "wall_seconds",
                                                      "jobs_per_second")}  # fmt: skip
    for name in dir(loaded):
        if name.startswith("_") or name in OF_A_FOLDER:
            continue
        ask = ASKED.get(name, lambda run, name=name: getattr(run, name))
        assert equal(ask(run), ask(loaded)), name
    assert run.path is None
    assert len(run.outages) > 0 or not options


@pytest.mark.slow
def test_the_files_of_a_run_in_memory_end_with_it():
    import gc

    run = ss.simulate("tiny", "first-steps")
    folder = run.folder
    assert (folder / "allocations.jsonl").is_file()
    del run
    gc.collect()
    assert not folder.exists()


def test_a_saved_run_whose_folder_is_gone_still_has_its_allocations(tmp_path):
    run = ss.simulate("tiny", "first-steps")
    run.save(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    assert len(run.allocations) == 26


def test_a_run_without_allocations_has_none_in_memory_either(tmp_path):
    run = ss.simulate("tiny", "first-steps", allocations=False)
    assert not run.has_allocations
    assert run.allocations.empty
    with pytest.raises(ss.RunError, match="made without its allocations"):
        run.why("12")


def test_allocations_that_went_to_a_file_of_the_program_are_those_of_the_run(tmp_path):
    with (tmp_path / "lines.jsonl").open("w+b") as sink:
        run = ss.simulate("tiny", "first-steps", sink=sink)
        run.save(tmp_path / "run")
        assert run.why("12").wait == ss.simulate("tiny", "first-steps").why("12").wait
        sink.seek(0)
        assert (tmp_path / "run" / "allocations.jsonl").read_bytes() == sink.read()
