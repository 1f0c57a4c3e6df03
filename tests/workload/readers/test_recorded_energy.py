"""Recorded energy: from logs and tables, through the formats of workloads, to the tables of a run."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from simsched.cli import main
from simsched.report.metrics.metrics import by
from simsched.report.run_views import load_run
from simsched.workload.load import load_workload

HEAD = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS"
DAY = "2026-03-02T0"


def dump(tmp_path, energies, column="ConsumedEnergyRaw"):
    rows = [
        f"{number}|u{number % 2}|batch|COMPLETED|{DAY}8:00:00|{DAY}8:05:00|{DAY}9:05:00|3600|120|1|{energy}"
        for number, energy in enumerate(energies, 1)
    ]
    path = tmp_path / "log.sacct"
    path.write_text("\n".join([f"{HEAD}|{column}", *rows]) + "\n")
    return path


def energies(workload):
    return [job.energy for job in workload.jobs]


def test_sacct_has_joules_and_0_is_not_a_measurement(tmp_path):
    found = load_workload(dump(tmp_path, ["3600000", "0", "", "18446744073709551614", "1.25M"]))
    assert energies(found) == [3_600_000, None, None, None, 1_250_000]


def test_the_shortened_column_is_read_where_the_raw_one_is_missing(tmp_path):
    assert energies(load_workload(dump(tmp_path, ["4.50K"], "ConsumedEnergy"))) == [4500]


def test_sacct_json_has_the_energy_among_the_allocated_tres(tmp_path):
    job = {
        "job_id": 1,
        "time": {"submission": 100, "start": 200, "end": 300, "elapsed": 100, "limit": 5},
        "state": {"current": ["COMPLETED"]},
        "tres": {"allocated": [{"type": "cpu", "count": 4}, {"type": "energy", "count": 7200}]},
    }
    (tmp_path / "log.json").write_text(json.dumps({"jobs": [job]}))
    assert energies(load_workload(tmp_path / "log.json")) == [7200]


@pytest.mark.parametrize(("unit", "joules"), [(None, 2), ("kJ", 2000), ("Wh", 7200), ("kWh", 7_200_000)])
def test_a_table_has_energies_in_the_unit_of_its_map(unit, joules):
    frame = pd.DataFrame({"t": [0, 1, 2], "s": [10, 10, 10], "n": [1, 1, 1], "e": ["2", "none", "-5"]})
    entry = "e" if unit is None else {"column": "e", "unit": unit}
    columns = {"submit": "t", "runtime": "s", "cores": "n", "energy": entry}
    found = load_workload(frame, map={"columns": columns})
    assert energies(found) == [joules, None, None]


def test_a_preset_reads_a_table_without_its_column_of_energy(tmp_path):
    day = "2021-04-01 00"
    row = {"jid": "j1", "usr": "u", "jnam": "n", "elpl": 600.0, "nnumr": 2, "cnumr": 96}
    times = {"adt": f"{day}:00:00", "sdt": f"{day}:10:00", "edt": f"{day}:20:00"}
    frame = pd.DataFrame([{**row, **times}])
    assert energies(load_workload(frame, map="f-data")) == [None]
    assert energies(load_workload(frame.assign(econ=[1.5]), map="f-data")) == [5400]


def test_jobs_yaml_and_json_lines_keep_the_energy(tmp_path):
    given = load_workload(dump(tmp_path, ["500", "0"]))
    for form in ("jobs", "jsonl"):
        out = tmp_path / f"out.{form}"
        assert main(["workload", "convert", str(tmp_path / "log.sacct"), "--to", form, "-o", str(out)]) == 0
        assert energies(load_workload(out)) == energies(given)


@pytest.mark.slow
def test_a_run_has_recorded_energy_and_sums_it_by_user(tmp_path, capsys):
    log = dump(tmp_path, ["3600000", "1800000", "0"])
    assert main(["run", "tiny", str(log), "-o", str(tmp_path / "run"), "--quiet", "--audit"]) == 0
    jobs = load_run(tmp_path / "run").jobs
    assert jobs["recorded_energy"].fillna(-1).tolist() == [3_600_000, 1_800_000, -1]
    assert by(jobs, "user")["recorded_kwh"].to_dict() == {"u0": 0.5, "u1": 1.0}
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run"), "--by", "user"]) == 0
    assert "recorded kwh" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "run.html")]) == 0
    assert "recorded kWh" in (tmp_path / "run.html").read_text()


def test_a_log_without_energy_leaves_no_trace_of_it(tmp_path, capsys):
    log = dump(tmp_path, ["0", ""])
    assert main(["run", "tiny", str(log), "-o", str(tmp_path / "run"), "--quiet"]) == 0
    assert "recorded_energy" not in load_run(tmp_path / "run").jobs
    assert main(["report", str(tmp_path / "run"), "--by", "queue"]) == 0
    assert "kwh" not in capsys.readouterr().out
