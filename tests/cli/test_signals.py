"""Signals: what Ctrl-C, SIGTERM and SIGHUP leave of each verb, once and many times, ignored or not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simsched.cli.support.signals import FURTHER, Stopped, interruptible, stopping

pytestmark = pytest.mark.integration

NODES = {"groups": [{"name": "n", "count": 8, "cores": 1}]}
#: more work than the machine can do: the queue grows, and a policy that plans for all of it takes long
JOBS = "".join(
    f'{{"id": {n}, "submit": {n}, "shape": "slot={1 + n % 3}/core", "runtime": 6}}\n' for n in range(8000)
)
STUDY = {
    "cluster": "c.json",
    "workload": "jobs.jsonl",
    "axes": {"order": ["fifo", "sjf", "ljf"]},
    "config": {"queue-policy": "conservative"},
}
TARGETS = ["--target", "max_wait<=1s", "--queue-policy", "conservative"]
LONG = {
    "run": ["run", "c.json", "jobs.jsonl", "-o", "out", "--queue-policy", "conservative"],
    "sweep": ["sweep", "study.json", "-o", "out", "--workers", "2", "--no-report"],
    "size": ["size", "c.json", "jobs.jsonl", *TARGETS, "--workers", "2", "-o", "out", "--runs"],
    "headroom": ["headroom", "c.json", "jobs.jsonl", *TARGETS, "--workers", "0", "-o", "out"],
    "forecast": ["forecast", "c.json", "jobs.jsonl", "--at", "7000", "--queue-policy", "conservative"],
}


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(NODES))
    (tmp_path / "jobs.jsonl").write_text(JOBS)
    (tmp_path / "study.json").write_text(json.dumps(STUDY))
    return tmp_path


def under_way(folder, verb):
    """Whether a verb has begun to simulate, as far as that can be seen."""
    if verb == "run":
        return any(folder.glob(".out.*/allocations.jsonl"))
    if verb == "sweep":
        return any((folder / "out" / "runs").glob(".*.writing"))
    if verb == "size":
        return any(folder.glob(".out.*.writing/runs/.*.writing"))
    return True


def started(folder, verb, *, ignored=()):
    """A process of a verb that is under way; signals are `ignored` when it starts, as a shell does it."""

    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    command = [sys.executable, "-m", "simsched", *LONG[verb]]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=ignore,  # noqa: PLW1509 - no threads here
    )
    deadline = time.monotonic() + 120
    while not under_way(folder, verb):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if verb in {"headroom", "forecast"}:
        _wait_until_it_takes_signals(process)
    return process


def _wait_until_it_takes_signals(process):
    """Its own handlers are there once the mask of caught signals of the process holds SIGTERM."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with Path(f"/proc/{process.pid}/status").open() as status:
            caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.02)
    raise AssertionError("no handler")


def hidden(folder):
    return sorted(str(path) for path in folder.rglob("*.writing"))


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks at /proc")
@pytest.mark.parametrize(
    ("verb", "number", "ignored"),
    [
        *((verb, signal.SIGINT, (signal.SIGINT,)) for verb in ("run", "headroom", "forecast")),
        *((verb, signal.SIGTERM, ()) for verb in ("run", "sweep")),
        *(
            pytest.param(verb, signal.SIGINT, (signal.SIGINT,), marks=pytest.mark.slow)
            for verb in ("sweep", "size")
        ),
        pytest.param("size", signal.SIGTERM, (), marks=pytest.mark.slow),
        *(pytest.param(verb, signal.SIGHUP, (), marks=pytest.mark.slow) for verb in ("run", "sweep")),
    ],
)
def test_a_signal_ends_every_verb_in_order(heard, inputs, verb, number, ignored):
    """The status is 128 and the signal's number; nothing half-written stays.

    SIGINT is sent to a process that was started with it ignored, as a shell starts what it runs in
    the background.
    """
    process = started(inputs, verb, ignored=ignored)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    assert hidden(inputs) == []
    assert out == ""
    if verb == "run":
        assert json.loads((inputs / "out.partial" / "run.json").read_text())["complete"] is False
    if verb != "sweep":
        assert not (inputs / "out").exists()


@pytest.mark.slow
def test_a_run_that_is_to_outlive_its_terminal_does(inputs):
    """Under nohup SIGHUP is ignored, and stays so."""
    process = started(inputs, "run", ignored=(signal.SIGHUP,))
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert json.loads((inputs / "out" / "run.json").read_text())["complete"] is True


def test_further_signals_do_not_drop_what_is_being_kept(inputs):
    process = started(inputs, "run")
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        process.send_signal(number)
        time.sleep(0.05)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    lines = err.splitlines()
    assert lines[0] == "interrupted: the run is ending and its results so far are being written"
    lines.remove("interrupted; the results so far are in out.partial")  # a later signal may find it written
    for left, line in zip(range(FURTHER - 1, 0, -1), lines[1:], strict=False):
        assert line == f"the results so far are being written; {left} more interruptions to end at once"
    assert (inputs / "out.partial" / "jobs.parquet").is_file()
    assert hidden(inputs) == []


RUN_OF = ["run", "c.json", "jobs.jsonl", "-o", "done", "--quiet"]
ANSWERS = {
    "report": ["report", "done"],
    "page": ["report", "done", "-o", "out.html"],
    "export": ["export", "done", "--to", "perfetto", "-o", "out.json"],
    "why": ["why", "done", "7000"],
    "sweep": LONG["sweep"],
    "calibrate": ["calibrate", "c.json", "log.swf", "--workers", "2", "--queue-policy", "easy"],
}
LOG = "".join(f"{n} {600 * n} {n % 50} 6 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 3000))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks at /proc")
@pytest.mark.parametrize("whole_group", [False, True])
@pytest.mark.parametrize("verb", sorted(ANSWERS))
def test_a_signal_at_any_moment_is_one_line_and_its_status(inputs, verb, whole_group):
    """While modules are imported, tables are read, queries run and workers start: never another error."""
    (inputs / "log.swf").write_text("; MaxProcs: 8\n" + LOG)
    subprocess.run([sys.executable, "-m", "simsched", *RUN_OF], cwd=inputs, check=True)
    scratch = inputs / "scratch"
    scratch.mkdir()
    for number, later in (
        (signal.SIGINT, 0.0),
        (signal.SIGTERM, 0.2),
        (signal.SIGTERM, 0.7),
        (signal.SIGINT, 1.2),
    ):
        shutil.rmtree(inputs / "out", ignore_errors=True)  # an interrupted study waits for --resume
        process = subprocess.Popen(
            [sys.executable, "-m", "simsched", *ANSWERS[verb]],
            cwd=inputs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )  # fmt: skip
        _wait_until_it_takes_signals(process)
        time.sleep(later)
        os.killpg(process.pid, number) if whole_group else process.send_signal(number)
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:  # it was done before
            continue
        assert process.returncode == 128 + number, err
        lines = [line for line in err.splitlines() if not line.startswith(("note:", "simsched calibrate:"))]
        assert len(lines) == 1, err
        assert lines[0].startswith("interrupted"), err
        assert hidden(inputs) == []
        assert list(scratch.iterdir()) == []


#: sends SIGTERM to itself between the steps by which a worker starts
HALFWAY = """
import os, signal, sys, threading, time
from multiprocessing import popen_spawn_posix as spawn
from simsched.cli import main

start = spawn.util.spawnv_passfds

def start_and_signal(path, arguments, passed):
    pid = start(path, arguments, passed)
    if any("spawn_main" in str(argument) for argument in arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)  # a thread that took the signal passes it on when this one waits
    return pid

spawn.util.spawnv_passfds = start_and_signal
threading.Thread(target=threading.Event().wait, daemon=True).start()  # as of libraries: it holds no signal
sys.exit(main())
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held")
def test_a_signal_while_a_worker_starts_is_one_line(inputs):
    command = [sys.executable, "-c", HALFWAY, *LONG["sweep"]]
    result = subprocess.run(command, check=False, cwd=inputs, capture_output=True, text=True, timeout=60)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note:")]
    assert (result.returncode, len(lines)) == (143, 1), result.stderr
    assert lines[0].startswith("interrupted; ")


def test_a_signal_behind_the_last_output_changes_nothing(inputs):
    late = "import atexit, os, signal, sys\nfrom simsched.cli import main\n"
    late += "atexit.register(os.kill, os.getpid(), signal.SIGTERM)\nsys.exit(main())"
    command = [sys.executable, "-c", late, "feasible", "c.json", "slot/core"]
    result = subprocess.run(command, check=False, cwd=inputs, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")


# --- the mechanism --------------------------------------------------------------------------


def sent(number, times=1):
    """Send a signal to this process, time and again."""
    for _ in range(times):
        os.kill(os.getpid(), number)
        time.sleep(0.01)


def test_the_first_signal_raises_and_handlers_are_put_back(heard):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        with pytest.raises(Stopped) as found, interruptible(lasting=False):
            sent(number)
        assert found.value.status == 128 + number
    assert {number: signal.getsignal(number) for number in before} == before


def test_so_many_signals_end_at_once(heard, capfd):
    with interruptible(lasting=False), stopping() as stop:
        assert not stop.is_set
        sent(signal.SIGTERM, FURTHER)
        assert stop.is_set
        with pytest.raises(Stopped) as found:
            sent(signal.SIGTERM)
    assert (stop.status, found.value.status) == (143, 143)
    told = capfd.readouterr().err.splitlines()
    assert len(told) == FURTHER
    assert told[1].endswith(f"; {FURTHER - 1} more interruptions to end at once")
    assert told[-1].endswith("; 1 more interruption to end at once")
