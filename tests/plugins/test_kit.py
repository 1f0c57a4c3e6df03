"""docs/examples/simsched-kit: a plug-in of each kind, used from the command line and from Python."""

from __future__ import annotations

import importlib
import json
import sys
import tomllib

import pytest

import simsched as ss
from simsched.cli import main
from simsched.match.policies import policy as match_policies
from tests import REPOSITORY
from tests.manual.installs import install

PROJECT = REPOSITORY / "docs" / "examples" / "simsched-kit"
GROUPS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    install(PROJECT, folder)
    return folder


@pytest.fixture
def kit(site, monkeypatch):
    """The module of the package, which is installed for the test."""
    monkeypatch.syspath_prepend(str(site))
    match_policies._plugged_in.cache_clear()
    yield importlib.import_module("simsched_kit")
    sys.modules.pop("simsched_kit", None)
    match_policies._plugged_in.cache_clear()


def job(name, submit, cores, runtime=100, **more):
    jobspec = ss.Jobspec.from_shape(f"slot={cores}/core")
    return ss.Job(
        **{"id": name, "submit": submit, "jobspec": jobspec, "duration": 100, "runtime": runtime} | more
    )


def starts(*jobs, **options):
    run = ss.simulate("tiny", ss.Workload(jobs), **options)
    return run.jobs.set_index("id")["start"].to_dict()


@pytest.fixture
def line(tmp_path, kit):
    """Runs the command line on a bundled workload; the run directory comes back."""

    def run(*more):
        assert main(["run", "tiny", "first-steps", "-o", str(tmp_path / "run"), "--quiet", *more]) == 0
        return ss.load_run(tmp_path / "run")

    return run


def test_each_kind_has_an_example(capsys, kit):
    assert len(GROUPS) == 9
    assert main(["policies", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    entries = {entry["name"]: entry for kind in listed.values() for entry in kind["entries"]}
    for points in GROUPS.values():
        for name in points:
            assert len(entries[name]["text"]) > 10
    assert entries["most-free"]["options"] == "of=core"
    assert entries["narrow"] == {
        "name": "narrow",
        "text": "FCFS in which jobs of at most `width` units may pass the first that does not fit",
        "options": "width=1",
    }
    assert entries["short"]["options"] == "separator=;"


def test_match_policy(kit, capsys):
    cluster = ss.load_cluster("tiny")  # nodes 2 and 3 have gpus
    mine = ss.MatchPolicy(name="mine", says="", order=lambda found: kit.most_free(found, of="gpu"))
    for policy in ("most-free:of=gpu", mine):
        matcher = ss.Matcher(cluster, policy=policy)
        assert str(matcher.match(ss.Jobspec.from_shape("slot/node/core")).R.ranks) == "2"
    assert (
        main(["match", "tiny", "slot/core=2", "slot/core", "--policy", "most-free", "--format", "table"]) == 0
    )
    assert [row.split()[3] for row in capsys.readouterr().out.splitlines()[1:3]] == ["node0", "node1"]


def test_job_order(kit, line):
    jobs = [job("first", 0, 16), job("long", 1, 16, duration=200), job("short", 2, 16)]
    short_first = {"first": 0, "short": 100, "long": 200}
    assert starts(*jobs, order="patience") == starts(*jobs, order=kit.patience()) == short_first
    waited = {"first": 0, "long": 100, "short": 200}
    assert starts(*jobs, order="patience:hours=0.01") == starts(*jobs, order=kit.patience(0.01)) == waited
    assert line("--order", "patience:hours=2").config["order"] == "patience:hours=2"


def test_queue_policy(kit, line):
    jobs = [job("first", 0, 12), job("wide", 1, 16), job("four", 2, 4), job("one", 3, 1)]
    one = {"first": 0, "one": 3, "wide": 103, "four": 203}
    four = {"first": 0, "four": 2, "one": 100, "wide": 200}
    assert starts(*jobs, queue_policy="narrow") == starts(*jobs, queue_policy=kit.Narrow()) == one
    for policy in ("narrow:width=4", kit.Narrow(4)):
        assert starts(*jobs, queue_policy=policy) == four
    assert starts(*jobs, queue_policy="narrow", queue_options={"width": "4"}) == four
    config = line("--queue-policy", "narrow:width=4").config
    assert (config["queue_policy"], config["queue_options"]) == ("narrow", {"width": 4})


def test_priority_factor(kit, line, tmp_path):
    jobs = [job("first", 0, 16), job("other", 1, 16, bank="soil"), job("ours", 2, 16, bank="climate")]
    expected = {"first": 0, "ours": 100, "other": 200}
    by_name = {"weight": 10, "kind": "project", "banks": "ice climate"}
    by_object = {"weight": 10, "kind": lambda job: kit.project(job, banks="climate")}
    for factor in (by_name, by_object):
        assert starts(*jobs, priority={"factors": {"project": factor}}) == expected
    assert starts(*jobs, priority={"factors": {"project": 10}}) == {"first": 0, "other": 100, "ours": 200}
    (tmp_path / "rules.toml").write_text('[priority.factors]\nproject = {weight = 5, banks = "climate"}\n')
    (factor,) = line("--config", str(tmp_path / "rules.toml")).config["priority"]["factors"]
    assert (factor["kind"], factor["options"]) == ("project", [["banks", "climate"]])


def test_predictor(kit, line):
    """The second user's job is expected to end early, as its predecessor did, so a third may not pass."""
    jobs = [job("a", 0, 16, 20, user="u"), job("b", 30, 12, 20, user="u"), job("c", 31, 16, user="v"),
            job("d", 32, 4, 60, user="v", duration=60)]  # fmt: skip
    limit = {"a": 0, "b": 30, "d": 32, "c": 92}
    predicted = {"a": 0, "b": 30, "c": 50, "d": 150}
    assert starts(*jobs) == limit
    assert starts(*jobs, predictor="smoothed") == starts(*jobs, predictor=kit.Smoothed()) == predicted
    assert line("--predictor", "smoothed:share=0.3").config["predictor"] == "smoothed:share=0.3"


def test_metric(kit, line, tmp_path, capsys):
    run = line()
    waits = (run.jobs["start"] - run.jobs["submit"]).dropna()
    assert run.summary["prompt"] == pytest.approx((waits <= 60).mean(), rel=1e-9)
    half = (waits <= 1800).mean()
    assert run.metric("prompt:within=1800") == run.metric(
        lambda jobs, timeline, totals: kit.prompt(jobs, timeline, totals, within=1800)
    ) == half  # fmt: skip
    assert main(["report", str(tmp_path / "run"), "--metric", "prompt:within=1800"]) == 0
    out = capsys.readouterr().out
    assert f"prompt:within=1800 {half:.1%}".replace("%", " %") in out or f"{100 * half:.1f} %" in out
    assert main(["report", str(tmp_path / "run"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"]["prompt"] == {
        "unit": "share", "meaning": "Share of the jobs that started which waited at most some seconds"
    }  # fmt: skip


def test_a_metric_is_a_target(kit):
    found = ss.size("flat240", ss.load_workload("month", limit=40), "prompt>=0.5", seeds=1, workers=0,
                    least=200, most=240)  # fmt: skip
    assert "prompt" in str(found)


@pytest.fixture
def log(tmp_path):
    (tmp_path / "jobs.log").write_text("short\n0;16;100;50\n10;4;60;30\n")
    return tmp_path / "jobs.log"


def test_workload_reader(kit, log, tmp_path):
    bars = tmp_path / "bars.txt"
    bars.write_text(log.read_text().replace(";", "|"))
    expected = [(1, 0, "slot=16/core", 100, 50), (2, 10, "slot=4/core", 60, 30)]
    for workload in (
        ss.load_workload(log),
        ss.load_workload(log, as_="short"),
        ss.load_workload(log, as_=kit.ShortLog()),
        ss.load_workload(bars, as_="short:separator=|"),
        ss.load_workload(bars, as_=kit.ShortLog("|")),
    ):
        found = [(j.id, j.submit, j.jobspec.to_shape(), j.duration, j.runtime) for j in workload.jobs]
        assert found == expected
    assert main(["run", "tiny", str(log), "-o", str(tmp_path / "run"), "--quiet", "--audit"]) == 0
    assert main(["workload", "show", str(log), "--as", "short"]) == 0


def test_a_fault_in_a_log_is_the_readers_own_message(kit, log, capsys):
    log.write_text("short\n0;x\n")
    assert main(["workload", "show", str(log)]) == 2
    assert "jobs.log:2: not a line of four numbers (expected 0;4;60;30)" in capsys.readouterr().err


def test_cluster_reader(kit, tmp_path, capsys):
    (tmp_path / "machine.txt").write_text("machine: 4 nodes of 16 cores\n")
    cluster = ss.load_cluster(tmp_path / "machine.txt")
    assert cluster.index.totals["core"] == 64
    (tmp_path / "other.txt").write_text("machine: 2 nodes of 8 cores\n")
    assert ss.load_cluster(tmp_path / "other.txt", reader=kit.Machine()).index.totals["core"] == 16
    assert main(["feasible", str(tmp_path / "machine.txt"), "slot=4/core=16"]) == 0
    (tmp_path / "bad.txt").write_text("machine: 2\n")
    assert main(["feasible", str(tmp_path / "bad.txt"), "slot=4/core=16"]) == 2
    assert "not a machine (expected machine: 4 nodes of 16 cores)" in capsys.readouterr().err


def test_report_section(kit, line, tmp_path, capsys):
    run = line()
    text = run.section("longest:jobs=2")
    assert text.splitlines()[0] == "longest waits: 2 jobs"
    assert len(text.splitlines()) == 3
    assert run.section(kit.longest).splitlines()[0] == "longest waits: 3 jobs"
    assert main(["report", str(tmp_path / "run"), "--section", "longest:jobs=2"]) == 0
    assert capsys.readouterr().out.endswith(text + "\n")
    assert main(["report", str(tmp_path / "run"), "--section", "longest", "--format", "json"]) == 2
    assert "expected a report as text or html" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "run"), "--section", "longest", "-o", str(page)]) == 0
    assert "<h2>longest of run</h2><pre>longest waits: 3 jobs" in page.read_text()
