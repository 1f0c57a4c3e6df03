"""``run --checkpoint-at``, ``--resume``, ``--from`` and ``forecast --resume``, as they are typed."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main

FILES = ("jobs.parquet", "timeline.parquet", "allocations.jsonl", "eventlog.jsonl", "summary.json")
RUN = ("run", "tiny", "jobs.yaml", "--quiet", "--eventlog")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a small workload on the bundled cluster `tiny`."""
    jobs = [
        {"id": n, "submit": 3 * n, "shape": f"slot={1 + n % 4}/node", "runtime": 10 + n % 7, "duration": 20}
        for n in range(40)
    ]
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": jobs}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_json(path):
    meta = json.loads((path / "run.json").read_text())
    return {k: v for k, v in meta.items() if k not in ("created", "wall_seconds", "jobs_per_second")}


@pytest.mark.parametrize("name", ["state.json", "state.json.gz"])
def test_a_resumed_run_writes_the_same_directory(place, name):
    assert main([*RUN, "-o", "plain", "--checkpoint-at", "1m", name]) == 0
    assert main([*RUN, "-o", "resumed", "--resume", name, "--audit"]) == 0
    for file in FILES:
        assert (place / "plain" / file).read_bytes() == (place / "resumed" / file).read_bytes(), file
    assert run_json(place / "plain") == run_json(place / "resumed")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--limit", "39"], "a checkpoint of another workload"),
        (["--order", "sjf"], "order was 'fifo' and is 'sjf'"),
        (["--option", "extra=no"], "another configuration"),
        (["--until", "30"], "the end of the run at 30 s (expected a time of 60 s or later)"),
    ],
)
def test_a_checkpoint_of_something_else_is_one_message(place, capsys, more, said):
    assert main([*RUN, "-o", "plain", "--checkpoint-at", "60", "state.json"]) == 0
    capsys.readouterr()
    assert main([*RUN, "-o", "other", "--resume", "state.json", *more]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1
    assert not (place / "other").exists()


def test_a_file_that_is_not_a_checkpoint_is_one_message(place, capsys):
    assert main([*RUN, "-o", "other", "--resume", "jobs.yaml"]) == 2
    assert "not a checkpoint" in capsys.readouterr().err
    assert main([*RUN, "-o", "other", "--resume", "nothing.json"]) == 2
    assert "nothing.json" in capsys.readouterr().err
    assert not (place / "other").exists()


def test_a_forecast_from_a_checkpoint_is_that_of_the_run(place, capsys):
    assert main([*RUN, "-o", "plain", "--checkpoint-at", "60", "state.json"]) == 0
    said = []
    for more in (["--at", "60"], ["--resume", "state.json", "--at", "60"], ["--resume", "state.json"]):
        capsys.readouterr()
        assert main(["forecast", "tiny", "jobs.yaml", "--format", "json", *more]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1] == said[2]
    assert said[0]
    assert main(["forecast", "tiny", "jobs.yaml"]) == 2
    assert "there is no time" in capsys.readouterr().err


def test_from_measures_the_jobs_submitted_since(place, capsys):
    assert main([*RUN, "-o", "all"]) == 0
    assert main([*RUN, "-o", "some", "--from", "1m"]) == 0
    figures = {name: json.loads((place / name / "summary.json").read_text()) for name in ("all", "some")}
    assert (figures["all"]["jobs"], figures["some"]["jobs"]) == (40, 20)
    for file in FILES[:4]:  # the machine is as the earlier jobs left it
        assert (place / "all" / file).read_bytes() == (place / "some" / file).read_bytes(), file
    assert run_json(place / "some")["from"] == 60
    assert main([*RUN, "-o", "none", "--from", "1d"]) == 2
    assert "no job is submitted at 86400 s or later" in capsys.readouterr().err
