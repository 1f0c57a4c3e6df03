"""What a notebook or a debugger shows of a value is short and says what it is."""

from __future__ import annotations

import inspect

import pytest

import simsched as ss


@pytest.fixture(scope="module")
def tiny():
    return ss.load_cluster("tiny")


def test_outcomes_show_the_allocation_or_the_first_reason(tiny):
    matcher = ss.Matcher(tiny)
    one = matcher.match(ss.Jobspec.from_shape("slot=1/node"))
    assert repr(one) == "<Matched 1: rank0/core[0-3]>"
    busy = matcher.match(ss.Jobspec.from_shape("slot=4/node"))
    assert repr(busy).startswith("<Busy: slot/node: 4 needed, 3 available")
    never = matcher.match(ss.Jobspec.from_shape("slot=1/gpu=9"))
    assert repr(never).startswith("<Infeasible: ")
    assert "gpu" in repr(never)
    assert repr(matcher) == "<Matcher on 'tiny': policy first, 1 allocations>"


def test_reprs_are_one_short_line(tiny):
    workload = ss.load_workload("month")
    assert repr(workload) == f"<Workload {workload.name!r}: {len(workload):,} jobs>"
    run = ss.simulate(tiny, ss.load_workload("first-steps"))
    for value in (workload, tiny, run, ss.Matcher(tiny)):
        assert len(repr(value)) < 100
        assert "\n" not in repr(value)


def test_a_value_of_the_wrong_type_is_not_quoted_whole(tiny):
    workload = ss.load_workload("month")
    with pytest.raises(ss.ConfigError) as error:
        ss.simulate(workload, tiny)
    assert len(str(error.value)) < 200


# A run makes the contexts of its passes and its jobs itself; where they are compiled, they show no signature.
@pytest.mark.parametrize("name", sorted({*ss.__all__} - {"PassContext", "LiveJob"}))
def test_everything_public_has_a_signature(name):
    value = getattr(ss, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.signature(value) is not None


def test_what_a_notebook_shows_of_each_value(tiny, tmp_path):
    """Clusters, workloads, answers of the matcher with the funnel, runs, comparisons, answers, studies."""
    workload = ss.load_workload("first-steps")
    easy, fcfs = (ss.simulate(tiny, workload, policy) for policy in ("easy", "fcfs"))
    matcher = ss.Matcher(tiny)
    answer = ss.size("flat240", ss.load_workload("month", limit=20), "max_wait<=1d", seeds=1, workers=0,
                     least=239, most=240)  # fmt: skip
    study = ss.study_from_dict({"cluster": "tiny", "workload": "first-steps"})
    shown = [
        (tiny, ("tiny", "core", "16")),
        (workload, ("18 jobs", "slot=", "limit")),
        (matcher.match(ss.Jobspec.from_shape("slot=4/node")), ("matched 1", "rank")),
        (matcher.match(ss.Jobspec.from_shape("slot=1/node")), ("busy", "1 needed", "4 exist")),
        (matcher.match(ss.Jobspec.from_shape("slot=9/node")), ("9 needed", "would fit with: slot=4")),
        (easy, ("tiny", "makespan", "jobs")),
        (fcfs.compare(easy), ("jobs in both", "verdict", "sooner")),
        (answer, ("max_wait",)),
        (ss.sweep(study, tmp_path / "study", workers=0), ("1 of 1 runs", "mean_wait")),
    ]
    for value, words in shown:
        html = value._repr_html_()
        assert html.startswith("<")
        assert html.count("<table") == html.count("</table")
        for word in words:
            assert word in html, (value, word)


def test_sites_and_studies_have_short_reprs(tmp_path):
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL\n")
    site = ss.import_site(tmp_path / "slurm.conf")
    assert repr(site) == f"<Site {site.name!r}: 1 queues, {len(site.notes)} notes>"
    study = ss.study_from_dict({"cluster": "tiny", "workload": "first-steps", "axes": {"order": ["sjf"]}})
    assert repr(study) == "<Study 'study': order; 1 seeds>"


def test_an_open_simulation_shows_its_time_and_its_jobs():
    sim = ss.Simulation("tiny", queue_policy="fcfs")
    for _ in range(3):
        sim.submit("slot=2/node", duration=100)
    sim.run(until=30)
    assert repr(sim) == "<Simulation fcfs on 'tiny': at 30 s, 1 waiting, 2 running>"
    html = sim._repr_html_()
    assert html.count("<table") == html.count("</table") == 3
    for word in ("2 running", "1 waiting", "slot=2/node", "free"):
        assert word in html
    job = sim.queue[0]._repr_html_()
    assert "SCHED" in job
    assert "1 min 40 s" in job


def test_requests_jobs_sites_and_figures_are_tables(tiny, tmp_path):
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-4] CPUs=8\nPartitionName=batch Nodes=ALL\n")
    spec = ss.Jobspec.from_shape("slot=2/core", duration="1h", queue="<b>")
    run = ss.simulate(tiny, [{"id": "<i>", "jobspec": spec, "runtime": 5}])
    shown = [
        (spec, ("slot=2/core", "1 h", "&lt;b&gt;")),
        (ss.Workload([{"shape": "core", "runtime": 5, "user": "ann"}]).jobs[0], ("runtime", "ann")),
        (ss.import_site(tmp_path / "slurm.conf"), ("batch", "queue policy")),
        (ss.Matcher(tiny), ("idle nodes", "core", "16")),
        (run.summary, ("mean wait", "meaning")),
    ]
    for value, words in shown:
        html = value._repr_html_()
        assert html.count("<table") == html.count("</table") >= 1
        for word in words:
            assert word in html, (value, word)


def test_a_notebook_shows_a_figure_and_a_program_saves_it(tiny, tmp_path):
    from matplotlib.figure import Figure

    figure = ss.simulate(tiny, ss.load_workload("first-steps")).plot("gantt", dark=True)
    assert isinstance(figure, Figure)
    shown = figure._repr_png_()
    assert shown.startswith(b"\x89PNG")
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes() == shown
