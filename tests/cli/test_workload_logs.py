"""``simsched workload fit`` and ``flurries``, and a model as the workload of a run, as a user meets them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from simsched.cli import main
from simsched.workload.load import load_workload

DAY = 86_400


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Six weeks of a log in SWF with a burst of user 9."""
    rng = np.random.default_rng(0)
    rows = [(int(at), int(rng.integers(1, 9)), 600) for at in rng.integers(0, 42 * DAY, 1200)]
    rows += [(20 * DAY + 60 * n, 9, 30) for n in range(300)]
    lines = ["; MaxProcs: 16", "; UnixStartTime: 1704067200"]
    for number, (at, user, run) in enumerate(sorted(rows), 1):
        lines.append(f"{number} {at} 0 {run} 2 -1 -1 2 3600 -1 1 {user} 1 -1 1 -1 -1 -1")
    path = tmp_path_factory.mktemp("log") / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_fit_writes_a_model_that_runs(trace, tmp_path, capsys):
    model = tmp_path / "model.yaml"
    assert main(["workload", "fit", str(trace), "-o", str(model)]) == 0
    out, err = capsys.readouterr()
    assert "log: 1,500 jobs in 41 d" in out
    assert "unseen quarter" in out
    assert f"written: {model}" in err
    cluster = tmp_path / "c.yaml"
    assert main(["cluster", "make", "--nodes", "16", "--cores", "1", "-o", str(cluster)]) == 0
    runs = [str(tmp_path / name) for name in ("a", "b")]
    for run, seed in zip(runs, ("3", "4"), strict=True):
        command = ["run", str(cluster), str(model), "--seed", seed, "-o", run, "--quiet", "--audit"]
        assert main(command) == 0
    capsys.readouterr()
    assert main(["report", runs[0], "--audit"]) == 0  # the jobs are drawn again with the recorded seed
    assert "clean" in capsys.readouterr().out
    assert main(["report", *runs]) == 0  # equal ids are not equal jobs if the seeds differ
    assert "have no job in common" in capsys.readouterr().out
    assert len(load_workload(model, seed=3)) != len(load_workload(model, seed=4))


def test_fit_as_json(trace, capsys):
    assert main(["workload", "fit", str(trace), "--format", "json", "--classes", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"log", "unseen", "itself", "per_week"}
    assert found["log"]["size"]["ks"] == 0


def test_a_model_from_the_end_begins_where_the_log_ends(trace, tmp_path):
    path = tmp_path / "m.yaml"
    assert main(["workload", "fit", str(trace), "-o", str(path), "--from-end"]) == 0
    assert 'start: "2024-02-1' in path.read_text()


def test_flurries_are_listed(trace, capsys):
    assert main(["workload", "flurries", str(trace)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("9 ")]
    assert [row[:4] for row in rows] == [["9", "2024-01-21T00:00:00", "2024-01-21T04:59:00", "300"]]


def test_a_log_without_flurries(trace, capsys):
    command = ["workload", "flurries", str(trace), "-t", "flurries(out)", "--format", "json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["flurries"] == []


@pytest.mark.slow
def test_users_and_sessions_are_units_of_resampling(trace, tmp_path, capsys):
    cluster = tmp_path / "c.yaml"
    assert main(["cluster", "make", "--nodes", "16", "--cores", "1", "-o", str(cluster)]) == 0
    for unit in ("users", "sessions"):
        words = [
            "size",
            str(cluster),
            str(trace),
            "--target",
            "p95_wait<=1h",
            "--seeds",
            "2",
            "--workers",
            "1",
        ]
        assert main([*words, "--workers", "1", "-t", "first(150)", "--block", unit]) == 0
        assert f"the workload as it is and 1 resample of its {unit}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "first-steps"], "is too short for a model"),
        (["fit", "month", "--classes", "0"], "--classes: 0 classes are out of range"),
        (["flurries", "first-steps"], "too few to know the usual activity"),
        (["flurries", "month", "--least", "-1"], "out of range"),
    ],
)
def test_refusals(words, message, capsys):
    assert main(["workload", *words]) == 2
    assert message in capsys.readouterr().err
