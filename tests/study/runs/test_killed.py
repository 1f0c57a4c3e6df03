"""The client dies or is interrupted in the middle of a sweep: what is kept, and what resuming gives."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simsched.study.spec.study_file import study_from_dict
from simsched.study.study_folder import StudyFolder, load_study_result
from simsched.study.sweep import sweep
from tests.study.studyworld import RECIPE, dataset, left_over

pytestmark = pytest.mark.integration

CONTENT = {
    "name": "killed",
    "cluster": {"recipe": RECIPE},
    "workload": {"lublin": {"machine": 16, "jobs": 100, "load": 0.9}},
    "axes": {"queue-policy": ["fcfs", "easy", "conservative"], "load": [0.8, 1.0, 1.2]},
    "seeds": 3,
}
RUNS = 27
SWEEP = [sys.executable, "-m", "simsched", *["sweep", "study.json", "-o", "out", "--no-report"]]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "study"
    sweep(study_from_dict(CONTENT), folder, workers=0, report=False)
    return dataset(folder)


def started(tmp_path):
    """A sweep in a process of its own, when it has done some runs and not all."""
    (tmp_path / "study.json").write_text(json.dumps(CONTENT))
    process = subprocess.Popen(
        [*SWEEP, "--workers", "2"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120  # on a busy machine it takes long to begin
    while time.monotonic() < deadline:
        done = [name for name in _names(tmp_path / "out" / "runs") if not name.startswith(".")]
        if len(done) >= 5:
            return process
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.005)
    process.kill()
    raise AssertionError("the sweep never got going")


def _names(folder):
    return [place.name for place in folder.iterdir()] if folder.is_dir() else []


PROCESSES = Path("/proc")


def _stat(pid):
    """State and parent of a process; None if there is none."""
    try:
        words = (PROCESSES / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return words[0], int(words[1])


def children_of(pid):
    """The processes that a process has started."""
    every = [int(place.name) for place in PROCESSES.iterdir() if place.name.isdigit()]
    return [one for one in every if (stat := _stat(one)) is not None and stat[1] == pid]


def gone(pid):
    stat = _stat(pid)
    return stat is None or stat[0] == "Z"


def check_unfinished(tmp_path):
    record = StudyFolder(tmp_path / "out").record()
    assert record is None or not record["complete"]
    assert not (tmp_path / "out" / "runs.parquet").exists()


@pytest.mark.skipif(not (PROCESSES / "self").is_dir(), reason="looks for processes in /proc")
def test_a_client_that_is_killed(tmp_path, reference):
    """SIGKILL leaves no workers behind and nothing that looks finished; resuming gives the same dataset."""
    process = started(tmp_path)
    workers = children_of(process.pid)
    assert workers
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 20
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(map(gone, workers))
    check_unfinished(tmp_path)
    states = []
    result = sweep(study_from_dict(CONTENT), tmp_path / "out", workers=0, resume=True, report=False,
                   progress=states.append)  # fmt: skip
    assert 5 <= states[0].there < RUNS
    assert len(result.runs) == RUNS
    assert left_over(tmp_path / "out") == []
    assert dataset(tmp_path / "out") == reference


def test_ctrl_c_keeps_what_is_done(tmp_path, reference):
    """Status 130 and one line; what was done is there, and resuming does the rest."""
    process = started(tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err == "interrupted; finished runs are kept, and --resume continues\n"
    check_unfinished(tmp_path)
    with pytest.raises(Exception, match="missing"):
        load_study_result(tmp_path / "out").runs  # noqa: B018
    again = subprocess.run([*SWEEP, "--resume"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout.endswith(
        f"killed: {RUNS} of {RUNS} runs, means of 3 seeds (± half the 95 % interval)\n"
    )
    assert dataset(tmp_path / "out") == reference


SCRIPT = """\
import simsched as ss
print("once")
study = ss.study_from_dict({"cluster": "tiny", "workload": "first-steps"})
print(ss.sweep(study, "out", workers=1, report=False))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_script_needs_no_guard(tmp_path, how):
    """Workers do not import the script that started them, so it runs once, wherever it comes from."""
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py" if how == "file" else "-"]
    done = subprocess.run(
        command, cwd=tmp_path, input=SCRIPT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout == "once\n<Study study: 1 of 1 runs>\n"
