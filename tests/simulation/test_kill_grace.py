"""A job may run on for the kill grace beyond its limit before it is ended."""

from __future__ import annotations

import pytest

from simsched.cli import main
from simsched.errors import SimschedError
from simsched.live.live_simulation import Simulation
from simsched.simulation.options.run_config import from_document, make_config
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, workload

#: run time, limit → with a grace of 60 s: end after, and result
CASES = {
    "in": (90, 100, 90, "COMPLETED"),
    "edge": (160, 100, 160, "COMPLETED"),
    "beyond": (161, 100, 160, "TIMEOUT"),
}


def ends(**rules):
    jobs = [job(name, 0, "slot=1/core", run, limit) for name, (run, limit, _, _) in CASES.items()]
    table = simulate(machine(4), workload(*jobs), allocations=False, **rules).jobs
    return {
        name: (end, result)
        for name, end, result in zip(table["id"], table["end"], table["result"], strict=True)
    }


def test_jobs_end_at_their_limit_and_the_grace():
    assert ends(kill_grace=60) == {name: (end, result) for name, (_, _, end, result) in CASES.items()}
    assert ends() == {"in": (90, "COMPLETED"), "edge": (100, "TIMEOUT"), "beyond": (100, "TIMEOUT")}
    allowed = ends(overrun="allow", kill_grace=60)
    assert [end for end, _ in allowed.values()] == [90, 160, 161]


def test_plans_go_by_the_limit():
    """B is reserved the end of A's limit; A runs on, and B starts only when A has ended."""
    jobs = [
        job("A", 0, "slot=2/core", 130, 100),
        job("B", 1, "slot=2/core", 10),
        job("C", 2, "slot=2/core", 10),
    ]
    table = simulate(
        machine(2), workload(*jobs), queue_policy="conservative", allocations=False, kill_grace="1m"
    ).jobs
    assert table["start"].tolist() == [0, 130, 140]
    assert table["promised"].tolist() == [0, 100, 110]


@pytest.mark.slow
def test_the_audit_knows_the_grace(tmp_path, capfd):
    command = ["run", "flat240", "month", "-t", "first(300)", "-t", "runtime(3)", "--kill-grace", "10m"]
    folder = str(tmp_path / "run")
    assert main([*command, "-o", folder, "--quiet", "--audit"]) == 0
    assert main(["report", folder, "--audit"]) == 0
    assert "audit: clean" in capfd.readouterr().out
    meta = tmp_path / "run" / "run.json"
    meta.write_text(meta.read_text().replace('"kill_grace": 600', '"kill_grace": 60'))
    assert main(["report", folder, "--audit"]) == 1


def test_a_run_without_grace_has_the_record_of_before():
    assert "kill_grace" not in make_config().to_dict()
    assert make_config(kill_grace="5m").to_dict()["kill_grace"] == 300


@pytest.mark.parametrize("value", [-1, "soon", True, "inf"])
def test_wrong_values(value):
    with pytest.raises(SimschedError):
        make_config(**from_document({"kill-grace": value}))


def test_a_live_run_has_the_same_ends():
    jobs = [job(name, 0, "slot=1/core", run, limit) for name, (run, limit, _, _) in CASES.items()]
    live = Simulation(machine(4), kill_grace=60)
    live.submit_all(workload(*jobs))
    live.run()
    table = live.result().jobs
    found = zip(table["id"], table["end"], table["result"], strict=True)
    assert {str(name): (end, result) for name, end, result in found} == {
        name: (end, result) for name, (_, _, end, result) in CASES.items()
    }
