"""The recorded beside the simulated schedule in reports."""

import csv
import io
import json

import pytest

from simsched.cli import main
from simsched.formats.rfc.clock import Clock
from simsched.report.recorded_waits import calibration_note, replay_sentences

LOG = """\
- {id: 1, submit: 0, shape: slot=4/node, duration: 1h, runtime: 30m, wait: 10m, status: COMPLETED, user: ann}
- {id: 2, submit: 60, shape: slot=4/node, duration: 1h, runtime: 30m, wait: 45m, status: COMPLETED, user: bob}
- {id: 3, submit: 90, shape: slot=1/node, duration: 10m, runtime: 5m, wait: 45m, status: FAILED, user: bob}
"""


@pytest.fixture(name="log")
def a_log(tmp_path):
    path = tmp_path / "log.yaml"
    path.write_text("jobs:\n" + LOG)
    return path


def played(tmp_path, log, policy):
    folder = tmp_path / policy
    command = ["run", "tiny", str(log), "-o", str(folder), "--quiet", "--audit", "--queue-policy", policy]
    assert main(command) == 0
    return folder


def test_the_page_has_the_log_beside_the_run(tmp_path, log, capfd):
    folder = played(tmp_path, log, "recorded")
    capfd.readouterr()
    assert main(["report", str(folder)]) == 0
    page = capfd.readouterr().out
    assert "waits of 3 jobs" in page
    assert "days differ by" not in page  # a single day shows nothing that the means above do not
    assert "the run plays the recorded starts of 3 jobs; 1 of them (33.3 %) start later" in page
    assert "the log uses at most 20 of 16 cores at 0:46:30, and more than the machine has for 5 min" in page


def test_a_comparison_says_how_near_each_run_is_to_the_log(tmp_path, log, capfd):
    folders = [str(played(tmp_path, log, policy)) for policy in ("easy", "recorded")]
    capfd.readouterr()
    assert main(["report", *folders]) == 0
    lines = capfd.readouterr().out.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("against the log"))
    assert lines[head + 1].split()[0] == "easy"
    assert lines[head + 2].split()[:3] == ["recorded", "33", "min"]
    assert lines[head + 3] == (
        "easy: not calibrated to the log; `simsched calibrate` looks for settings that come nearer to it"
    )


@pytest.mark.slow
def test_tables_by_group_in_every_format(tmp_path, log, capfd):
    folder = str(played(tmp_path, log, "easy"))
    capfd.readouterr()
    assert main(["report", folder, "--recorded", "user", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert [(row["user"], row["jobs"]) for row in rows] == [("ann", "1"), ("bob", "2")]
    assert float(rows[1]["recorded_mean_wait"]) == 2700
    assert main(["report", folder, "--recorded", "--format", "json"]) == 0
    (whole,) = json.loads(capfd.readouterr().out)
    assert whole["jobs"] == 3
    for key in ("queue", "size", "hour", "day"):
        assert main(["report", folder, "--recorded", key]) == 0
        assert main(["report", folder, "--recorded", key, "--format", "markdown"]) == 0


def test_wrong_uses_are_refused(tmp_path, log, capfd):
    folder = str(played(tmp_path, log, "easy"))
    assert main(["report", folder, "--recorded", "users"]) == 2
    assert "unknown group 'users'; did you mean user?" in capfd.readouterr().err
    assert main(["report", folder, "--recorded", "-o", str(tmp_path / "x.html")]) == 2
    log.write_text("jobs: [{submit: 0, shape: node, duration: 1h}]")
    folder = str(played(tmp_path, log, "fcfs"))
    assert main(["report", folder, "--recorded"]) == 2
    assert "no job of the run has a recorded start" in capfd.readouterr().err


def test_sentences_on_the_log_have_its_dates_and_the_number_of_jobs():
    replay = {
        "jobs": 3, "late": 0, "unit": "core", "peak": 20, "capacity": 16, "peak_time": 2790.0, "over": 300.0,
        "named": 2, "elsewhere": 1, "missing_nodes": {}, "missing_node_count": 0, "without_start": 0,
        "before_submission": 0,
    }  # fmt: skip
    assert "the log uses at most 20 of 16 cores at 0:46:30, and" in "\n".join(replay_sentences(replay))
    dated = "\n".join(replay_sentences(replay, Clock(1_704_067_200, "Europe/Rome")))
    assert "the log uses at most 20 of 16 cores at 2024-01-01T01:46:30, and" in dated
    assert "the log names the nodes of 2 jobs; 1 of them runs on others" in dated
    assert "2 of them run on others" in "\n".join(replay_sentences({**replay, "elsewhere": 2}))
    assert "1 job is left out: the log has no start of it" in replay_sentences({**replay, "without_start": 1})


@pytest.mark.slow
def test_pages_have_what_the_text_says_of_the_log(tmp_path, log, capfd):
    folders = [str(played(tmp_path, log, policy)) for policy in ("easy", "recorded")]
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    assert main(["report", folders[1], "-o", str(pages[0])]) == 0
    assert main(["report", *folders, "-o", str(pages[1])]) == 0
    one, two = (page.read_text() for page in pages)
    assert "The run plays the recorded starts of 3 jobs; 1 of them (33.3 %) start later" in one
    assert "the log uses at most 20 of 16 cores" in one
    assert ">Against the log<" in two
    assert "easy: not calibrated to the log; `simsched calibrate` looks for settings" in two
    assert ">Against the log<" not in one


def test_a_calibration_within_chance_is_called_that():
    found = {"log": "log.swf", "error": 1.16, "error_before": 1.24, "held_out": "18 days", "helps": False}
    before = "calibrated on log.swf: error 1.16 on 18 days that were held out, 1.24 before"
    assert calibration_note(found) == f"{before}, which is within chance"
    assert calibration_note({**found, "helps": True}) == before
    assert calibration_note({**found, "error": 1.24}).endswith("1.24 before")  # no setting was chosen
