"""``simsched forecast CLUSTER PICTURE``, as it is typed."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

from simsched.cli import main

PICTURE = """\
kind: simsched queue
time: 3600
running:
  - id: 41
    start: 600
    expected_end: 7800
    R: {version: 1, execution: {R_lite: [{rank: 0-2, children: {core: 0-3}}], nodelist: ['node[0-2]']}}
waiting:
  - {id: 42, submit: 900, duration: 1h, user: ann, shape: slot=2/node}
  - {id: 43, submit: 1000, duration: 30m, shape: slot=2/core}
  - {id: 44, submit: 1100, duration: 30m, shape: slot=1/core, urgency: 0}
"""
RUNS = {"state": "RUN", "t_submit": 1711580000.4, "t_run": 1711580001.0, "runtime": 59.25, "userid": 7}
WHERE = {"expiration": 1711583601.0, "ncores": 16, "nnodes": 4, "ranks": "[0-3]", "nodelist": "node[0-3]"}
WAITS = {"state": "SCHED", "t_submit": 1711580010.4, "duration": 1800.0, "ncores": 8, "nnodes": 2}
FLUX = {
    "jobs": [
        {"id": 412779566552, "jobid": "ƒBqtvB7V", **RUNS, **WHERE},
        {"id": 44258295808, "jobid": "ƒ2ARxLQf", **WAITS, "username": "ann", "urgency": 16, "priority": 16},
    ]
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "p.yaml").write_text(PICTURE)
    (tmp_path / "f.json").write_text(json.dumps(FLUX))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(capsys, *words):
    """(status, output, errors) of one command line."""
    status = main(["forecast", *words])
    return status, *capsys.readouterr()


def test_a_table(place, capsys):
    status, out, err = typed(capsys, "tiny", "p.yaml")
    assert (status, err) == (0, "")
    held = "held: its urgency is 0 or it was submitted on hold"
    assert out.splitlines() == [
        "       JOB       USER      QUEUE PLACE       SUBMIT        START           IN SHAPE       REASON",
        "        43          -          -     -         1000         3600          0 s slot=2/core",
        "        42        ann          -     1          900         7800   1 h 10 min slot=2/node",
        f"        44          -          -     -         1100      unknown              slot/core   {held}",
    ]


def test_a_time_at_which_no_job_waits(tmp_path, capsys):
    (tmp_path / "jobs.yaml").write_text("jobs:\n- {id: 1, submit: 5, runtime: 9, shape: slot=1/core}\n")
    assert main(["forecast", "tiny", str(tmp_path / "jobs.yaml"), "--at", "7"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "no job waits at that time" in err


def test_rules_apply_and_later_times_count_from_the_picture(place, capsys):
    assert typed(capsys, "tiny", "p.yaml", "--queue-policy", "fcfs")[1].splitlines()[1].split()[:4] == [
        *("42", "ann", "-", "1")
    ]
    said = [typed(capsys, "tiny", "p.yaml", "--at", at, "--format", "json") for at in ("+10m", "70m")]
    assert said[0] == said[1]
    assert [(job["id"], job["start"]) for job in json.loads(said[0][1])] == [("42", 7800), ("44", None)]
    (place / "o.json").write_text('[{"ranks": "3", "start": 0, "end": 9000, "kind": "drain"}]')
    rows = json.loads(typed(capsys, "tiny", "p.yaml", "--outages", "o.json", "--format", "json")[1])
    assert [(job["id"], job["start"], job["place"]) for job in rows] == [
        *(("42", 7800, 1), ("43", 7800, 2), ("44", None, None))
    ]


def test_dates_where_times_count_from_the_epoch(place, capsys):
    _, out, err = typed(capsys, "tiny", "f.json")
    assert out.splitlines()[1].split() == [
        *(
            "ƒ2ARxLQf",
            "ann",
            "-",
            "1",
            "2024-03-27T22:53:30Z",
            "2024-03-27T23:53:21Z",
            *("59", "min", "1", "s"),
            "node=2/slot=4/core",
        )
    ]
    assert (
        err == "1 running job has no R and is placed by the nodes and the number of cores (see --details)\n"
    )
    granted = {
        "version": 1,
        "execution": {"R_lite": [{"rank": "0", "children": {"core": "0"}}], "nodelist": ["node0"]},
    }
    (place / "r.jsonl").write_text(json.dumps({"id": "ƒBqtvB7V", "R": granted}))
    _, out, err = typed(capsys, "tiny", "f.json", "--details", "r.jsonl")
    assert out.splitlines()[1].split()[6:8] == ["0", "s"]
    assert err == ""
    assert "slot=2/node" in typed(capsys, "tiny", "f.json", "--map", "slot={nodes}/node")[1]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_packed_and_from_standard_input(place, capsys, monkeypatch, pack):
    expected = typed(capsys, "tiny", "p.yaml")[1]
    data = pack(PICTURE.encode())
    (place / "p.gz").write_bytes(data)
    assert typed(capsys, "tiny", "p.gz")[1] == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert typed(capsys, "tiny", "-")[1] == expected


def test_a_workload_from_standard_input_is_still_one(place, capsys, monkeypatch):
    jobs = "- {id: 1, shape: slot=4/node, duration: 60}\n- {id: 2, shape: slot=4/node, duration: 60}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(jobs.encode())))
    status, out, _ = typed(capsys, "tiny", "-", "--at", "10")
    assert (status, out.splitlines()[1].split()[:6]) == (0, ["2", "-", "-", "1", "0", "60"])
    finished = {**FLUX["jobs"][0], "state": "INACTIVE", "t_cleanup": 1711580031.0, "result": "COMPLETED"}
    (place / "log.json").write_text(json.dumps({"jobs": [finished]}))
    assert typed(capsys, "tiny", "log.json", "--at", "1")[0] == 0


def test_a_run_of_a_log_with_active_jobs_is_still_a_run(place, capsys):
    """Of a log that `run` played, the active jobs are left out, and `forecast RUN` plays it again."""
    finished = {**FLUX["jobs"][0], "state": "INACTIVE", "t_cleanup": 1711580031.0, "result": "COMPLETED"}
    queued = {**finished, "id": 5, "jobid": "ƒ6", "t_submit": 1711580000.9, "t_run": 1711580031.0,
              "t_cleanup": 1711580032.0}  # fmt: skip
    (place / "log.json").write_text(json.dumps({"jobs": [finished, queued, FLUX["jobs"][1]]}))
    assert main(["run", "tiny", "log.json", "-o", "out", "--quiet"]) == 0
    capsys.readouterr()
    status, out, _ = typed(capsys, "out", "--at", "5")
    assert (status, [line.split()[0] for line in out.splitlines()]) == (0, ["as", "JOB", "5"])
    assert out.startswith("as of 2024-03-27T22:53:25, UTC (assumed")
    assert typed(capsys, "tiny", "log.json", "--as", "flux", "--at", "5")[1] == out
    assert "ƒ2ARxLQf" in typed(capsys, "tiny", "log.json")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["p.yaml", "--limit", "3"], "--limit: the option does not apply to a queue snapshot"),
        (["p.yaml", "-t", "first(1)"], "--transform: the option does not apply to a queue snapshot"),
        (["p.yaml", "--at", "59m"], "a forecast at 3540 s (expected a time of 3600 s or later)"),
        (["p.yaml", "--at", "+soon"], "--at"),
        (["p.yaml", "--failures", "mtbf=1d,mttr=1h"], "random failures cannot be forecast"),
        (["p.yaml", "--details", "none.jsonl"], "none.jsonl: no such file"),
        (["first-steps", "--details", "none.jsonl", "--at", "3"], "--details: there is no queue snapshot"),
        (["first-steps"], "there is no time"),
        (["p.yaml", "--as", "jobs", "--at", "3"], "p.yaml"),
        (["none.yaml"], "none.yaml: no such file"),
        (["-", "--details", "-"], "standard input is given 2 times"),
    ],
)
def test_what_is_wrong_is_one_message(place, capsys, words, said):
    status, out, err = typed(capsys, "tiny", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_picture_of_another_cluster_is_one_message(place, capsys):
    status, _, err = typed(capsys, "flat240", "p.yaml")
    assert status == 2
    assert err == "simsched: error: p.yaml: running[0] (job 41): rank 0 (node0) has no core 1\n"
