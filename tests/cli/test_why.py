"""``simsched why``, as it is typed."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main

JOBS = """\
- {id: A, submit: 0, runtime: 600, duration: 600, shape: slot=3/node, user: ann}
- {id: B, submit: 60, runtime: 300, duration: 300, shape: slot=4/node, user: bob}
- {id: C, submit: 120, runtime: 60, duration: 900, shape: slot/node, user: ann}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    assert main(["run", "tiny", "jobs.yaml", "-o", "run", "--quiet"]) == 0
    return tmp_path


def typed(capsys, *words):
    capsys.readouterr()
    status = main(["why", *words])
    return status, *capsys.readouterr()


def test_the_life_of_a_job(place, capsys):
    status, out, err = typed(capsys, "run", "C")
    assert (status, err) == (0, "")
    assert (
        out
        == """\
job C (user ann): slot/node, limit 15 min
submitted at 0:02:00, started at 0:15:00, waited 13 min

8 min  61.5 %  reservation    it fits, but might delay a job with a reservation
5 min  38.5 %  short of node  fewer units of a type are free than it requests

  from     for    cause
  0:02:00  8 min  fitted, but might have delayed job B, which had the reservation
  0:10:00  5 min  short of node

resources that were short were held by
  job  user  units  unit hours  until
  B    bob       4         0.3  0:15:00

at its submission 1 job waited before it, requesting 0.3 node hours
1 job ran, with 0.4 node hours left by their limits
it would have fitted sooner
  at 0:02:00: with a limit of at most 8 min
"""
    )


def test_the_whole_run_and_json(place, capsys):
    status, out, _ = typed(capsys, "run")
    assert status == 0
    assert out.startswith("run: 3 jobs waited 0.4 hours in all\n")
    _, out, _ = typed(capsys, "run", "--format", "json")
    hours = json.loads(out)["hours"]
    assert sum(hours.values()) == pytest.approx((540 + 780) / 3600)
    _, out, _ = typed(capsys, "run", "B", "C", "--format", "json")
    first, second = json.loads(out)
    assert (first["id"], first["wait"], second["by_cause"]) == (
        "B",
        540,
        {"reservation": 480.0, "short of node": 300.0},
    )
    assert typed(capsys, "run", "-o", "answer.txt")[2] == "written: answer.txt\n"


def test_wrong_inputs(place, capsys):
    assert typed(capsys, "run", "D")[::2] == (2, "simsched: error: run: the run has no job 'D'\n")
    (place / "jobs.yaml").write_text(JOBS.replace("300", "301"))
    status, _, err = typed(capsys, "run", "B")
    assert status == 2
    assert "jobs.yaml has changed since the run was made" in err
    assert typed(capsys, "nowhere")[0] == 2


def test_an_input_that_is_not_here_is_named(place, capsys, monkeypatch):
    monkeypatch.chdir(place.parent)
    status, _, err = typed(capsys, str(place / "run"), "B")
    assert status == 2
    assert "is not here (expected the directory in which the run was made" in err


def test_the_outage_in_the_way_is_named(tmp_path, capsys, monkeypatch):
    """Job 13 needs all of node 3: of the nodes with gpus, only this one is for batch jobs."""
    from simsched.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "o.json").write_text('[{"ranks": "3", "start": 0, "end": 700, "kind": "drain"}]')
    assert main(["run", "tiny", "first-steps", "-o", "run", "--outages", "o.json", "--quiet"]) == 0
    status, out, _ = typed(capsys, "run", "13")
    assert status == 0
    assert (
        "nodes that were unavailable\n  ranks  cause  from     until\n  3      drain  0:00:00  0:11:40" in out
    )
    answer = json.loads(typed(capsys, "run", "13", "--format", "json")[1])[0]
    assert answer["outages"] == [{"ranks": "3", "kind": "drain", "start": 0, "end": 700}]


def test_jobs_without_a_queue_or_user_are_a_group_of_their_own(tmp_path, capsys):
    jobs = [
        {"shape": "slot=4/node", "duration": "1h", "runtime": "1h", **more}
        for more in ({"user": "ann"}, {"user": "ann"}, {}, {"queue": "q"})
    ]
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": jobs}))
    run = str(tmp_path / "run")
    assert main(["run", "tiny", str(tmp_path / "jobs.yaml"), "-o", run, "--quiet"]) == 0
    assert main(["why", run, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {queue: sum(hours.values()) for queue, hours in found["by_queue"].items()} == {"-": 3, "q": 3}
    assert {user: sum(hours.values()) for user, hours in found["by_user"].items()} == {"-": 5, "ann": 1}
    assert main(["report", run, f"again={run}", "--by", "user"]) == 0
    assert capsys.readouterr().out.count("\n-  ") == 1
