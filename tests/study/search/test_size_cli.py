"""``simsched size`` and ``simsched headroom`` as their users meet them."""

from __future__ import annotations

import csv
import json

import pytest

from simsched.cli import main

LINE = '{{"id": {id}, "submit": 0, "runtime": 600, "duration": 600, "shape": "slot=1/core"}}\n'
MACHINE = "groups:\n  - {name: n, count: 3, cores: 1}\n"


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """A machine of three nodes and twelve jobs of ten minutes, all at once."""
    (tmp_path / "machine.yaml").write_text(MACHINE)
    (tmp_path / "jobs.jsonl").write_text("".join(LINE.format(id=n) for n in range(1, 13)))
    (tmp_path / "empty.swf").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def size(*arguments, cluster="machine.yaml", workload="jobs.jsonl", verb="size"):
    return main([verb, cluster, workload, "--workers", "0", *arguments])


def test_the_answer_is_printed_and_the_status_is_0(inputs, capsys):
    assert size("--target", "max_wait<=10m") == 0
    out, err = capsys.readouterr()
    assert out.startswith("6 nodes: max_wait is 10 min (target at most 10 min). 5 nodes: max_wait is 20 min ")
    assert out.splitlines()[3] == "nodes  max_wait  meets      why"
    assert err == ""


def test_none_in_the_range_is_status_1(inputs, capsys):
    assert size("--target", "max_wait<=0", "--max", "11") == 1
    assert capsys.readouterr().out.startswith(
        "None of the sizes tried (3, 4, 6 and 9 to 11 nodes) meets max_wait<=0d; at 11 nodes max_wait is "
    )


def test_headroom_is_status_0_and_none_is_status_1(inputs, capsys):
    assert size("--target", "max_wait<=1h", "--by", "runtime", verb="headroom") == 0
    assert capsys.readouterr().out.startswith("The machine takes 2 times the load: max_wait is 1 h ")
    assert size("--target", "max_wait<=15m", "--by", "runtime", "--step", "0.1", verb="headroom") == 1
    said = capsys.readouterr().out
    assert said.startswith("No headroom: under today's load the machine does not meet max_wait<=15m. ")


def test_headroom_is_status_1_where_today_misses_what_more_load_helps(inputs, capsys):
    jobs = "".join(LINE.format(id=n).replace('"submit": 0', f'"submit": {n * 600}') for n in range(1, 30))
    (inputs / "jobs.jsonl").write_text(jobs)
    targets = ("--target", "utilisation>=60%", "--target", "max_wait<=0", "--by", "runtime", "--step", "0.5")
    assert size(*targets, "--seeds", "1", verb="headroom") == 1
    assert " Today's load is too low: utilisation is 33." in capsys.readouterr().out
    assert size(*targets, "--seeds", "1", "--load", "2", verb="headroom") == 0


def test_formats_and_the_directory(inputs, capsys):
    few = ("--target", "max_wait<=10m", "-o", "out", "--checks", "1")
    assert size(*few, "--runs", "--format", "json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["answer"] == 6
    assert (inputs / "out" / "answer.json").read_text() == out
    assert err.splitlines() == [
        "written: out/answer.png",
        "written: out/trials.csv",
        "written: out/answer.json",
    ]
    rows = list(csv.DictReader((inputs / "out" / "trials.csv").read_text().splitlines()))
    assert {int(row["nodes"]): float(row["max_wait"]) for row in rows} == {
        3: 1800,
        4: 1200,
        5: 1200,
        6: 600,
        7: 600,
    }
    for row in rows:
        assert (inputs / "out" / "runs" / row["run"] / "run.json").is_file()
    assert size(*few, "--format", "csv") == 0
    out, err = capsys.readouterr()
    assert out == (inputs / "out" / "trials.csv").read_text()
    assert err.startswith("note: replaced the earlier answer in out\n")
    assert not (inputs / "out" / "runs").exists()
    (inputs / "out" / "notes.txt").write_text("mine")
    assert size(*few) == 2
    assert "'notes.txt' is not part of the answer in this directory" in capsys.readouterr().err
    assert sorted(path.name for path in (inputs / "out").iterdir()) == [
        "answer.json", "answer.png", "notes.txt", "trials.csv"
    ]  # fmt: skip


def test_the_rules_of_the_simulation_count(inputs, capsys):
    """Under `sjf` a short job goes first: its wait needs no larger machine."""
    (inputs / "jobs.jsonl").write_text(
        "".join(LINE.format(id=n) for n in range(1, 7)) + LINE.format(id=7).replace("600", "60")
    )
    assert size("--target", "p1_wait[runtime < 2m]<=0", "--min", "1") == 0
    assert capsys.readouterr().out.startswith("7 nodes: ")
    (inputs / "rules.toml").write_text('order = "sjf"\n')
    assert size("--target", "p1_wait[runtime < 2m]<=0", "--config", "rules.toml") == 0
    assert capsys.readouterr().out.startswith("1 node: ")
    assert size("--target", "p1_wait[runtime < 2m]<=0", "--order", "sjf", "-t", "where(id != 3)") == 0
    assert capsys.readouterr().out.startswith("1 node: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required: --target"),
        (("--target", "p95_weight<=1h"), "unknown figure 'p95_weight'"),
        (("--target", "mean_wat<=1h"), "unknown figure 'mean_wat'; did you mean mean_wait? (expected "),
        (("--target", "makespam<=1h"), "unknown figure 'makespam'; did you mean makespan?"),
        (("--target", "p95_wait<=1x"), "  p95_wait<=1x\n            ^"),
        (("--target", "max_wait<=0", "--seeds", "0"), "--seeds: 0 is out of range"),
        (("--target", "max_wait<=0", "--seeds", "many"), "not a whole number"),
        (("--target", "max_wait<=0", "--load", "nan"), "--load: nan is out of range"),
        (("--target", "max_wait<=0", "--min", "9", "--max", "3"), "the range 9 to 3 is empty"),
        (("--target", "max_wait<=0", "--max", "99999999"), "--max: a size of 99,999,999"),
        (("--target", "max_wait<=0", "--grow", "racks"), "'racks' does not name anything that can grow"),
        (("--target", "max_wait<=0", "--queue-policy", "lifo"), "unknown queue policy 'lifo'"),
        (("--target", "max_wait<=0", "--option", "extra"), "'extra' is not an option"),
        (("--target", "max_wait<=0", "--config", "nowhere.toml"), "nowhere.toml"),
        (("--target", "max_wait<=0", "--warm-up", "soon"), "--warm-up"),
        (("--target", "max_wait<=0", "--runs"), "--runs: there is no directory for the runs"),
        (("--target", "max_wait[user=zed]<=0"), "zed]<=0d: no job of the workload matches the query"),
        (
            ("--target", "max_wait<=0", "-o", "jobs.jsonl/x"),
            "x: cannot be written: Not a directory",
        ),
        (("--target", "max_wait<=0", "-o", "."), "this cannot be an answer directory"),
        (("--target", "max_wait<=0", "-o", "jobs.jsonl"), "this is a file"),
        (("--target", "max_wait<=0", "-t", "turn(1)"), "unknown transform"),
        (
            ("--target", "max_wait<=0", "--scheduler", "here", "--workers", "1"),
            "more than one kind of workers is given",
        ),
    ],
)
def test_wrong_input_is_status_2(inputs, capsys, arguments, message):
    assert size(*arguments) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert "Traceback" not in err
    assert out == ""


def test_a_search_that_fails_leaves_no_directory(inputs, capsys):
    assert size("--target", "max_wait<=0", "-o", "new", workload="empty.swf") == 2
    assert not (inputs / "new").exists()


def test_empty_input_is_status_2(inputs, capsys):
    assert size("--target", "max_wait<=0", workload="empty.swf") == 2
    assert "empty.swf" in capsys.readouterr().err
    assert size("--target", "max_wait<=0", cluster="empty.swf") == 2
    assert size("--target", "max_wait<=0", "--step", "0", verb="headroom") == 2
    assert size("--target", "max_wait<=0", "--min", "2", verb="headroom") == 2


def test_standard_input_is_read(inputs, capsys, monkeypatch):
    import io
    import sys

    class Stdin:
        buffer = io.BytesIO((inputs / "jobs.jsonl").read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert size("--target", "max_wait<=10m", workload="-") == 0
    assert capsys.readouterr().out.startswith("6 nodes: ")
