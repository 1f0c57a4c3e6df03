"""``run --again RUN``: the same run from its record."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main

JOBS = """\
- {id: A, shape: slot=12/core, duration: 100s, user: ann}
- {id: B, shape: slot=16/core, duration: 50s, submit: 1s, user: bob}
- {id: C, shape: slot=4/core, duration: 50s, submit: 2s, user: ann}
"""


def record(path):
    return json.loads((path / "run.json").read_text())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "down.yaml").write_text("- {ranks: '0', start: 10s, end: 3m, kind: failure}\n")
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--queue-policy", "slurm", "--option", "interval=5", "--eventlog", "--outages", "down.yaml"],
        [
            "--failures",
            "mtbf=10m,mttr=1m",
            "--seed",
            "7",
            "-t",
            "load(0.9)",
            "--until",
            "140s",
            "--from",
            "1s",
        ],
        ["--match-policy", "random", "--no-allocations", "--order", "sjf"],
    ],
    ids=lambda options: " ".join(options[:2]),
)
def test_a_run_is_repeated_to_the_byte(folder, options, capsys):
    assert main(["run", "tiny", "jobs.yaml", *options, "-o", "first", "--quiet"]) == 0
    assert main(["run", "--again", "first", "--quiet"]) == 0
    first, again = record(folder / "first"), record(folder / "first-again")
    assert again["files"] == first["files"]
    assert again["sha256"] == first["sha256"]
    assert main(["run", "--again", "first-again", "-o", "third", "--quiet"]) == 0
    assert record(folder / "third")["sha256"] == first["sha256"]


def test_what_cannot_be_repeated_is_one_error(folder, capsys):
    assert main(["run", "tiny", "jobs.yaml", "-o", "first", "--quiet"]) == 0
    capsys.readouterr()

    def error(*more):
        assert main(["run", "--again", *more]) == 2
        return capsys.readouterr().err.removeprefix("simsched: error: ").strip()

    assert error("nothing").startswith("nothing: this is not a run directory (expected")
    assert error("first", "--order", "sjf").startswith("--order: a run directory has its own options")
    assert error("first", "tiny").startswith("--again: a run is repeated with its own inputs")
    (folder / "jobs.yaml").write_text(JOBS + "# changed\n")
    assert error("first") == "jobs.yaml: the file has changed since first was made"
    (folder / "jobs.yaml").unlink()
    assert error("first").startswith("jobs.yaml: the workload of first is missing: it was moved, or the run")
