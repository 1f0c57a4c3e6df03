"""Runs compared over seeds: pairs of equal demand, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import simsched as ss
from simsched.cli import main
from simsched.simulation.simulate import simulate
from simsched.study.stats import paired_difference
from simsched.workload.save import save_workload
from simsched.workload.transforms.resample import shake
from tests.study.search.loglab import machine_and_log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    cluster, log = machine_and_log(jobs=200, days=12)
    (folder / "m.json").write_text(json.dumps(cluster.to_dict("jgf", dialect="as-read")))
    save_workload(log, folder / "log.jsonl")
    for name, policy in (("easy", "easy"), ("fcfs", "fcfs"), ("again", "easy")):
        command = [
            "run",
            str(folder / "m.json"),
            str(folder / "log.jsonl"),
            "-o",
            str(folder / name),
            "--quiet",
        ]
        assert main([*command, "--queue-policy", policy, "--no-allocations"]) == 0
    return folder


def compared(folder, *options, names=("easy", "fcfs")):
    return main(["report", *(str(folder / name) for name in names), "--workers", "0", *options])


def test_differences_are_those_of_runs_by_hand(folder, capsys):
    assert compared(folder, "--seeds", "3", "--shake", "1m", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    cluster, log = ss.load_cluster(str(folder / "m.json")), ss.load_workload(str(folder / "log.jsonl"))
    means = {}
    for policy in ("easy", "fcfs"):
        copies = [log, *(shake(log, 60.0, np.random.default_rng(seed)) for seed in (1, 2))]
        tables = [simulate(cluster, copy, queue_policy=policy, allocations=False).jobs for copy in copies]
        means[policy] = [float((table["start"] - table["submit"]).mean()) for table in tables]
    assert [run["mean_wait"] for run in found["runs"]] == [pytest.approx(means[p]) for p in ("easy", "fcfs")]
    by_hand = paired_difference(means["easy"], means["fcfs"])
    row = next(row for row in found["differences"] if row["figure"] == "mean_wait")
    assert row["difference"][0] == pytest.approx(by_hand.interval.estimate)
    assert row["verdict"] == by_hand.verdict


@pytest.mark.parametrize(
    "options", [["--shake", "1m"], ["--block", "1d"], ["--block", "users"], ["--block", "sessions"]]
)
def test_every_kind_of_seeds(folder, options, capsys):
    assert compared(folder, "--seeds", "3", *options, names=("easy", "fcfs", "again")) == 0
    text = capsys.readouterr().out
    assert "over 3 seeds" in text
    assert "fcfs against easy" in text
    again = text[text.index("again against easy") :]
    assert again.count("same") == 4


def test_seeds_of_each_run_are_described(folder, capsys):
    """A log whose jobs come at one instant cannot be resampled: only the other run has other demands."""
    lines = (folder / "log.jsonl").read_text().splitlines()
    burst = [json.dumps({**json.loads(line), "submit": 0}) for line in lines[:40]]
    (folder / "burst.jsonl").write_text("\n".join(burst))
    inputs = [str(folder / "m.json"), str(folder / "burst.jsonl")]
    assert main(["run", *inputs, "-o", str(folder / "burst"), "--quiet", "--no-allocations"]) == 0
    assert compared(folder, "--seeds", "2", "--format", "json", names=("easy", "burst")) == 0
    easy, burst = json.loads(capsys.readouterr().out)["seeds"].split("; ")
    assert easy.startswith("2 seeds: the workload as it is and 1 resample in blocks of ")
    assert easy.endswith(" (easy)")
    assert burst == "2 seeds: all jobs are submitted at one instant: there is nothing to resample (burst)"


@pytest.mark.parametrize(
    ("options", "names", "message"),
    [
        (["--seeds", "1"], ("easy", "fcfs"), "1 seeds are out of range"),
        (["--seeds", "3"], ("easy",), "nothing to compare with"),
        (["--shake", "1m", "--block", "1d"], ("easy", "fcfs"), "either resampled or shaken"),
        (["--shake", "soon"], ("easy", "fcfs"), "soon"),
        (["--block", "400d"], ("easy", "fcfs"), "block"),
        (["--seeds", "3", "--format", "csv"], ("easy", "fcfs"), "no table --seeds in the format csv"),
    ],
)
def test_wrong_options(folder, options, names, message, capsys):
    assert compared(folder, *options, names=names) == 2
    assert message in capsys.readouterr().err


def test_a_run_of_a_program_and_a_changed_input_are_refused(folder, tmp_path, capsys):
    cluster, log = machine_and_log(jobs=60)
    simulate(cluster, log, allocations=False).save(tmp_path / "python")
    assert main(["report", str(folder / "easy"), str(tmp_path / "python"), "--seeds", "2"]) == 2
    assert "does not record its command" in capsys.readouterr().err
    file = folder / "log.jsonl"
    before = file.read_text()
    file.write_text(before + "\n")
    assert compared(folder, "--seeds", "2") == 2
    file.write_text(before)
    assert "has changed since" in capsys.readouterr().err
