"""`simsched sweep` as its users see it: output, messages, exit status."""

from __future__ import annotations

import json
import re
import sys

import pytest

from simsched.cli import main

STUDY = """\
name: waits
cluster: {recipe: {groups: [{name: n, count: 4, cores: 4}]}}
workload: {lublin: {machine: 16, jobs: 40, load: 0.9}}
axes:
  queue-policy: [fcfs, easy]
seeds: 2
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


@pytest.mark.usefixtures("study")
def test_a_dry_run_shows_the_runs(capsys):
    assert main(["sweep", "study.yaml", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == ["run", "key", "queue-policy", "seed"]
    assert [line.split()[2:] for line in lines[1:5]] == [
        ["fcfs", "0"],
        ["fcfs", "1"],
        ["easy", "0"],
        ["easy", "1"],
    ]
    assert lines[5] == "4 runs, 160 jobs in total"
    basis = r"\(estimated from the first jobs of \d+ runs?; longer if queues grow later\)"
    assert re.fullmatch(rf"about .* on \d+ workers? of this machine {basis}", lines[6])
    assert err == ""


def test_a_long_plan_is_cut(study, capsys):
    (study / "study.yaml").write_text(STUDY.replace("seeds: 2", "seeds: 50"))
    assert main(["sweep", "study.yaml", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[51] == "… 40 more runs …"
    assert lines[1].split()[0] == "0"
    assert lines[61].split()[0] == "99"


def test_a_sweep_prints_means_and_is_silent_in_a_pipe(study, capsys):
    assert main(["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("queue-policy")
    assert out.splitlines()[-1] == "waits: 4 of 4 runs, means of 2 seeds (± half the 95 % interval)"
    assert err == "written: out\n"
    assert json.loads((study / "out" / "study.json").read_text())["complete"] is True
    assert main(["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "note: replaced the earlier study in out\n")
    record = json.loads((study / "out" / "study.json").read_text())
    (study / "out" / "study.json").write_text(json.dumps({**record, "complete": False}))
    assert main(["sweep", "study.yaml", "-o", "out", "--workers", "0"]) == 2
    assert capsys.readouterr().err == (
        "simsched: error: out: the directory holds an unfinished study "
        "(expected --resume, or another directory)\n"
    )
    assert main(["sweep", "study.yaml", "-o", "out", "--workers", "0", "--resume", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_runs_that_fail_give_status_1(study, capsys):
    (study / "study.yaml").write_text(
        STUDY.replace("axes:\n", 'axes:\n  edits: ["resize(all, 2)", "remove(n9)"]\n')
    )
    status = main(["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report"])
    out, err = capsys.readouterr()
    assert status == 2  # an edit that cannot be made is found before anything is run
    assert out == ""
    assert "no execution target is called 'n9'" in err
    assert not (study / "out").exists()


def test_a_run_that_fails_later_gives_status_1(study, capsys, monkeypatch):
    def fail(task, *_):
        return {"row": None, "error": "MemoryError: too much"}

    monkeypatch.setattr("simsched.study.runs.dispatch.work", fail)
    assert main(["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report"]) == 1
    out, err = capsys.readouterr()
    assert out == "waits: none of 4 runs has a result\n"
    assert err.splitlines()[0] == "failed: run 0 (queue-policy fcfs, seed 0): MemoryError: too much"
    failures = json.loads((study / "out" / "failures.json").read_text())
    assert [f["run"] for f in failures] == [0, 1, 2, 3]


@pytest.mark.usefixtures("study")
def test_the_progress_line_is_for_terminals(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report"]) == 0
    assert "4 of 4 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.yaml", "-o", "out"], "nowhere.yaml: no such file"),
        (["study.yaml", "-o", "."], ".: this directory holds something that is not a study"),
        (["study.yaml", "-o", "study.yaml"], "study.yaml: this is a file"),
        (["study.yaml", "-o", "out", "--scheduler", "host"], "--scheduler: 'host' is not the address"),
        (
            ["study.yaml", "-o", "out", "--workers", "5000"],
            "5000 workers are out of range (expected 0 to 1024)",
        ),
    ],
)
def test_one_message_and_status_2(study, capsys, arguments, said):
    assert main(["sweep", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"simsched: error: {said}")
    assert err.count("\n") == 1
    assert not (study / "out").exists()


def test_an_unknown_system_names_the_known_ones(study, capsys):
    assert main(["sweep", "study.yaml", "-o", "out", "--hpc", "sge"]) == 2
    assert "--hpc: invalid choice: 'sge' (choose from flux, slurm)" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "# nothing\n", "null\n", "[]\n", "a: b: c\n", "\0"])
def test_a_file_that_is_no_study(study, capsys, content):
    (study / "study.yaml").write_text(content)
    assert main(["sweep", "study.yaml", "--dry-run"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("simsched: error: study.yaml")
    assert err.count("\n") == 1


def test_an_unreachable_scheduler(study, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("simsched.study.runs.dask_workers.CONNECT", 0.3)
    assert main(["sweep", "study.yaml", "-o", "out", "--scheduler", "tcp://127.0.0.1:9"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("simsched: error: tcp://127.0.0.1:9: no Dask scheduler answers")
    assert err.count("\n") == 1
    assert not (study / "out").exists()
