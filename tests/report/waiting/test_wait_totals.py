"""Waits of all jobs by cause: the causes of a job add up to its wait, and agree with a naive count."""

from __future__ import annotations

import numpy as np
import pytest

from simsched.errors import RunError
from simsched.report.run_views import load_run
from simsched.report.waiting.wait_totals import binding, run_document, run_text, totals_by, wait_table
from simsched.simulation.simulate import simulate
from tests.simulation.simworld import job, machine, workload


@pytest.fixture
def run(tmp_path):
    """A month's worth of waits in small: cores, gpus and whole nodes, one job for another."""
    rng = np.random.default_rng(7)
    shapes = ["slot=2/core", "slot=5/core", "slot=2/[core=2;gpu]", "slot=2/node", "slot=3/node"]
    jobs = [
        job(str(n), int(t), shapes[int(k)], int(r), int(r) + 2, user=f"u{k}", queue="ab"[n % 2])
        for n, (t, k, r) in enumerate(
            zip(
                np.sort(rng.integers(0, 200, 80)),
                rng.integers(0, 5, 80),
                rng.integers(1, 20, 80),
                strict=True,
            )
        )
    ]
    simulate(machine(4, cores=4, gpus=1), workload(*jobs), "easy").save(tmp_path / "run")
    return load_run(tmp_path / "run")


def test_the_causes_of_each_job_add_up_to_its_wait(run):
    table = wait_table(run)
    waits = run.jobs["start"] - run.jobs["submit"]
    assert table.sum(axis=1).tolist() == waits.tolist()
    assert (table.to_numpy() >= 0).all()
    assert totals_by(run, table).loc["all"].sum() == pytest.approx(waits.sum() / 3600)


@pytest.mark.slow
def test_shortages_agree_with_a_count_second_by_second(run):
    table, jobs, total = wait_table(run), run.jobs, {"node": 4, "core": 16, "gpu": 4}
    for row in jobs.itertuples():
        short = dict.fromkeys(total, 0)
        for second in range(int(row.eligible), int(row.start)):
            held = jobs[(jobs["start"] <= second) & (jobs["end"] > second)]
            idle = run.timeline[run.timeline["time"] <= second].iloc[-1]
            assert idle["free_core"] == 16 - held["cores"].sum()
            needs = {"core": row.cores, "gpu": row.gpus, "node": row.nodes * (row.cores == 4 * row.nodes)}
            lacks = {type_: (needs[type_] - idle[f"free_{type_}"]) / total[type_] for type_ in total}
            worst = max(lacks, key=lambda type_: (lacks[type_], type_ == "node"))
            if lacks[worst] > 0:
                short[worst] += 1
        assert {type_: table.loc[row.Index, f"short of {type_}"] for type_ in total} == short, row.id


def test_groups_and_the_types_to_buy(run):
    table = wait_table(run)
    by_user = totals_by(run, table, "user")
    assert set(by_user.index) == set(run.jobs["user"])
    assert by_user.to_numpy().sum() == pytest.approx(table.to_numpy().sum() / 3600)
    assert list(by_user.sum(axis=1)) == sorted(by_user.sum(axis=1), reverse=True)
    short = binding(table)
    assert short["job_hours"].is_monotonic_decreasing
    assert short.loc["core", "jobs"] == (table["short of core"] > 0).sum()
    assert run_document(run, table)["hours"]["short of core"] == pytest.approx(short.loc["core", "job_hours"])
    assert f"{short.loc['core', 'job_hours']:,.1f} h" in run_text(run, table, 96)


def test_jobs_that_did_not_wait_and_timelines_without_units(write_run, make_jobs):
    still = load_run(
        write_run("still", make_jobs([{"id": "a", "submit": 3, "start": 3, "end": 5, "cores": 4}]))
    )
    assert run_text(still, wait_table(still), 96) == "still: 1 job waited 0.0 hours in all"
    bare = load_run(still.path)
    bare.__dict__["timeline"] = still.timeline[["time", "queued_jobs"]]
    with pytest.raises(RunError, match="no free units of any type"):
        wait_table(bare)
