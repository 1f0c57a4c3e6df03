"""Licences, reservations, checkpoints and QoS in the logs that people have: tables and jobs.yaml."""

from __future__ import annotations

import re

import pytest

from simsched import load_workload, simulate
from simsched.errors import WorkloadError
from tests.simulation.simworld import machine, starts

TABLE = """id,t,run,n,lic,res,every,qos
a,0,10,1,x:2,,,high
b,0,10,1,x,,600,low
c,0,5,1,,r,0,
"""
COLUMNS = {
    "id": "id",
    "submit": "t",
    "runtime": "run",
    "cores": "n",
    "licenses": "lic",
    "reservation": "res",
    "checkpoint_interval": "every",
    "qos": "qos",
}


def test_a_table(tmp_path):
    (tmp_path / "log.csv").write_text(TABLE)
    found = load_workload(tmp_path / "log.csv", map={"columns": {**COLUMNS, "limit": "run"}})
    attributes = {job.id: dict(job.jobspec.system) for job in found.jobs}
    assert [job.qos for job in found.jobs] == ["high", "low", None]
    assert attributes["a"]["licenses"] == "x:2"
    assert attributes["b"]["checkpoint"] == {"interval": "600"}
    assert "checkpoint" not in attributes["c"]
    rules = {"name": "r", "start": 30, "duration": 10, "nodes": 1}
    run = simulate(machine(4), found, licenses={"x": 2}, reservations=rules, job_checkpoints={})
    assert starts(run) == {"a": 0, "b": 10, "c": 30}


def test_jobs_yaml(tmp_path):
    text = """
- {id: a, shape: slot=1/core, duration: 10, licenses: {x: 2}}
- {id: b, shape: slot=1/core, duration: 10, licenses: x}
- {id: c, shape: slot=1/core, duration: 5, reservation: r, checkpoint: {interval: 2, cost: 1}}
"""
    (tmp_path / "jobs.yaml").write_text(text)
    found = load_workload(tmp_path / "jobs.yaml")
    rules = {"name": "r", "start": 30, "duration": 10, "nodes": 1}
    run = simulate(machine(4), found, licenses={"x": 2}, reservations=rules, job_checkpoints={})
    assert starts(run) == {"a": 0, "b": 10, "c": 30}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("licenses: 3", "licenses: 3 is not a text or a mapping"),
        ("reservation: [r]", "reservation: ['r'] is not a text"),
        ("checkpoint: 1h", "checkpoint: '1h' is not a mapping"),
    ],
)
def test_wrong_entries(tmp_path, entry, message):
    (tmp_path / "jobs.yaml").write_text(f"- {{id: a, shape: slot=1/core, duration: 10, {entry}}}\n")
    with pytest.raises(WorkloadError, match=re.escape(message)):
        load_workload(tmp_path / "jobs.yaml")


def test_sacct(tmp_path):
    text = """JobIDRaw|Submit|Start|ElapsedRaw|TimelimitRaw|ReqCPUS|Licenses|Reservation|State
1|2024-01-01T00:00:00|2024-01-01T00:00:00|60|1|1|x@server:2||COMPLETED
2|2024-01-01T00:00:00|2024-01-01T00:00:00|60|1|1|x:1||COMPLETED
3|2024-01-01T00:00:00|2024-01-01T00:00:00|60|1|1|(null)|r|COMPLETED
"""
    (tmp_path / "log.sacct").write_text(text)
    found = load_workload(tmp_path / "log.sacct")
    rules = {"name": "r", "start": 300, "duration": 60, "nodes": 1}
    run = simulate(machine(4), found, licenses={"x": 2}, reservations=rules)
    assert starts(run) == {"1": 0, "2": 60, "3": 300}
