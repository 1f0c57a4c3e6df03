"""`Run`: the answers, figures and views of a run that Python users and notebooks ask for."""

from __future__ import annotations

import re

import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import SimschedError
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
    with pytest.raises(ss.ConfigError, match="unknown option 'node' of a figure"):
        run.plot("gantt", node="0")
    with pytest.raises(ss.ConfigError, match="unknown kind of figure 'gannt'; did you mean"):
        run.plot("gannt")


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
