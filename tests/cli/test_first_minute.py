"""The verbs that a newcomer meets first: `tutorial`, `demo`, default names of results, misspelt options."""

from __future__ import annotations

import pytest

from simsched.bundled import bundled
from simsched.cli import main
from simsched.cli.tutorial import STEPS


@pytest.mark.slow
def test_the_tutorial_plays_every_step_and_names_its_results(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["tutorial", "-o", "first"]) == 0
    out = capfd.readouterr().out
    assert all(f"$ simsched {step.command}\n" in out for step in STEPS)
    assert "slot=3/[core=4;gpu]: never" in out
    assert "easy against fcfs" in out
    assert "job 4711" in out
    assert (tmp_path / "first/easy/jobs.parquet").is_file()


def test_the_tutorial_leaves_files_of_others_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tutorial-results/easy").mkdir(parents=True)
    (tmp_path / "tutorial-results/easy/thesis.tex").write_text("mine")
    assert main(["tutorial"]) == 2
    assert "tutorial-results/easy" in capsys.readouterr().err
    assert [path.name for path in tmp_path.glob("tutorial-results/*/*")] == ["thesis.tex"]


@pytest.mark.slow
def test_the_demo_does_not_replace_a_picture_of_others(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    (tmp_path / "queue.png").write_bytes(b"mine")
    assert main(["demo", "-o", str(tmp_path)]) == 0
    assert (tmp_path / "queue.png").read_bytes() == b"mine"
    assert main(["demo", "-o", str(tmp_path / "other")]) == 0
    assert (tmp_path / "other/queue.png").read_bytes().startswith(b"\x89PNG")
    assert "queue.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["tiny", "first-steps"], "tiny-first-steps-easy"),
        (["tiny", "first-steps", "--queue-policy", "fcfs"], "tiny-first-steps-fcfs"),
        ([str(bundled("clusters")["tiny"]), "first-steps"], "tiny-first-steps-easy"),
    ],
)
def test_a_run_without_a_directory_is_named_after_its_inputs(tmp_path, monkeypatch, arguments, name):
    monkeypatch.chdir(tmp_path)
    assert main(["run", *arguments, "--quiet"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_study_without_a_directory_is_named_after_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "name: two policies\ncluster: tiny\nworkload: first-steps\naxes:\n  queue-policy: [fcfs, easy]\n"
    (tmp_path / "study.yaml").write_text(text)
    assert main(["sweep", "study.yaml", "--workers", "0", "--quiet", "--no-report"]) == 0
    assert (tmp_path / "two-policies/runs.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--queue-polcy", "easy"], "simsched run: error: unrecognized arguments: --queue-polcy; did"),
        (
            ["size", "--targt=p95_wait<1h"],
            "simsched size: error: unrecognized arguments: --targt; did you",
        ),
        (["cluster", "make", "--nods", "3"], "simsched cluster make: error: unrecognized arguments: --nods"),
        (["feasibel"], "argument VERB: invalid choice: 'feasibel'; did you mean feasible?\n"),
        (["run", "--bogus", "1"], "simsched run: error: unrecognized arguments: --bogus\n"),
    ],
)
def test_a_misspelt_option_is_named_before_anything_is_missing(capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
