"""Long verbs say now and then on standard error how far they are; standard output stays clean."""

from __future__ import annotations

import re
import shutil
import time

import pytest

from simsched.cli import main
from simsched.cli.support import heartbeat

JOB = '{{"id": {id}, "submit": {at}, "runtime": 600, "duration": 600, "shape": "slot=1/core"}}\n'
STUDY = "cluster: machine.yaml\nworkload: jobs.jsonl\naxes: {queue-policy: [fcfs, easy]}\n"
VERBS = {
    "size": ["size", "machine.yaml", "jobs.jsonl", "--target", "max_wait<=10m", "--workers", "0"],
    "headroom": ["headroom", "machine.yaml", "jobs.jsonl", "--target", "max_wait<=10m", "--workers", "0"],
    "sweep": ["sweep", "study.yaml", "-o", "out", "--workers", "0", "--no-report"],
    "forecast": ["forecast", "machine.yaml", "jobs.jsonl", "--at", "2000"],
}


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """A machine, forty jobs, a study of them; simulations that take their time; and no patience."""
    (tmp_path / "machine.yaml").write_text("groups:\n  - {name: n, count: 3, cores: 1}\n")
    (tmp_path / "jobs.jsonl").write_text("".join(JOB.format(id=n, at=60 * n) for n in range(1, 41)))
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)


def slow(monkeypatch):
    """Let every run take a little longer than the time between two lines."""
    from simsched.simulation import simulate

    class Late(simulate.Engine):
        def run(self, *arguments, **options):
            found = super().run(*arguments, **options)
            if "reports" in self.parts:
                self.parts["reports"].report(self)
            time.sleep(0.05)
            return found

    monkeypatch.setattr(simulate, "Engine", Late)


@pytest.mark.quick(1)
@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("verb", VERBS)
def test_a_line_now_and_then_and_a_clean_output(verb, capsys, monkeypatch):
    quiet = (main([*VERBS[verb], "--quiet"]), *capsys.readouterr())
    assert quiet[2] == ""
    slow(monkeypatch)
    shutil.rmtree("out", ignore_errors=True)  # a study that is there is not run again
    status = main(VERBS[verb])
    out, err = capsys.readouterr()
    assert status == quiet[0], err
    assert verb == "sweep" or out == quiet[1]
    lines = [line for line in err.splitlines() if not line.startswith("written")]
    assert lines
    assert all(re.fullmatch(rf"simsched {verb}: .* so far, .+", line) for line in lines), err
    if verb in ("size", "headroom"):
        assert any(" values, at least " in line for line in lines), err
    if verb == "sweep":
        assert any(" of 2 runs done" in line for line in lines), err
    if verb == "forecast":
        assert any(re.search(r"simulated .* of 2,000 s of the workload", line) for line in lines), err


def test_nothing_is_written_before_its_time(capsys):
    with heartbeat.heartbeat("size", lambda _: "nothing"):
        pass
    assert capsys.readouterr().err == ""


def test_an_error_ends_the_lines(capsys, monkeypatch):
    monkeypatch.setattr(heartbeat, "EVERY", 0.01)
    with pytest.raises(ValueError, match="wrong"), heartbeat.heartbeat("size", lambda _: "working"):
        raise ValueError("wrong")
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_of_minutes_says_so_after_the_first_seconds(capsys, monkeypatch, terminal):
    """80 passes take 0.02 s each; the first jobs have ended after 0.4 s, and a rest of 0.1 s is long here."""
    from simsched.cli import run
    from simsched.schedule.policies.easy import Easy

    run_pass = Easy.run_pass
    monkeypatch.setattr(Easy, "run_pass", lambda *given: (time.sleep(0.02), run_pass(*given)))
    monkeypatch.setattr(run, "MINUTE", 0.1)
    monkeypatch.setattr(run, "FIRST", 0.4)
    monkeypatch.setattr(heartbeat, "EVERY", 60.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    line = r"simsched run: 0 s so far, \d+ of 40 jobs ended, \d+ jobs/s, about \d+ s more"
    assert main(["run", "machine.yaml", "jobs.jsonl", "-o", "done"]) == 0
    assert re.search(line, capsys.readouterr().err)
    assert main(["run", "machine.yaml", "jobs.jsonl", "-o", "done", "--quiet"]) == 0
    assert "so far" not in capsys.readouterr().err
    monkeypatch.setattr(run, "MINUTE", 60.0)
    assert main(["run", "machine.yaml", "jobs.jsonl", "-o", "done"]) == 0
    assert "so far" not in capsys.readouterr().err
