"""The plan of the last pass is used at this one, and does not change a start."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.schedule.count_supply import CountSupply
from simsched.schedule.profiles.kept_plan import KeptPlan
from simsched.schedule.profiles.protocols import Known
from simsched.simulation.outages.outages import Failures


def machine(nodes, cores, gpus=0):
    children = {"core": f"0-{cores - 1}"} | ({"gpu": f"0-{gpus - 1}"} if gpus else {})
    lite = [{"rank": f"0-{nodes - 1}", "children": children}]
    execution = {"R_lite": lite, "nodelist": [f"n[0-{nodes - 1}]"], "starttime": 0, "expiration": 0}
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))


def crowd(seed, jobs=100):
    """Jobs that mostly end early; some are due to the second, instant, unlimited or cancelled."""
    rng = random.Random(seed)
    made, now = [], 0
    for number in range(jobs):
        now += rng.choice([0, 0, 1, rng.randint(1, 60)])
        runtime = rng.choice([0, 1, rng.randint(1, 100), rng.randint(1, 400)])
        duration = rng.choice([None, max(1, runtime), runtime + 1, 60, 600, 600, 3600])
        jobspec = ss.Jobspec.from_shape(f"slot={rng.choice([1, 1, 2, 3, 5, 8, 16])}/core", duration=duration)
        cancel = now + rng.randint(0, 500) if rng.random() < 0.05 else None
        made.append(
            ss.Job(
                id=number, submit=now, runtime=runtime, duration=duration, jobspec=jobspec, cancel_at=cancel
            )
        )
    return ss.Workload(jobs=tuple(made), name="crowd")


REPLAN = {"queue_policy": "conservative", "queue_options": {"compress": "replan"}}
CASES = {
    "conservative": REPLAN,
    "hybrid": {"queue_policy": "hybrid", "queue_options": {"depth": 3, "compress": "replan"}},
    "deep": {"queue_policy": "conservative", "queue_options": {"queue_depth": 7, "compress": "replan"}},
    "shortest first": {**REPLAN, "order": "sjf"},
    "by age": {**REPLAN, "order": "wfp3"},
    "overruns": {**REPLAN, "overrun": "allow"},
    "each event": {**REPLAN, "passes": "event"},
    "failures": {**REPLAN, "failures": Failures(mtbf=3000, mttr=200)},
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_that_is_new_at_each_pass_starts_the_same_jobs(case, monkeypatch):
    cluster, taken_up, searched = machine(16, 1), 0, 0
    plan_ahead = CountSupply.plan_ahead

    def watched(supply, jobs):
        nonlocal taken_up, searched
        found = plan_ahead(supply, jobs)
        taken_up, searched = taken_up + len(found.jobs), searched + len(jobs) - len(found.jobs)
        return found

    def forgetful(supply, jobs):
        supply.kept_plan = None
        return plan_ahead(supply, jobs)

    for seed in range(2):
        monkeypatch.setattr(CountSupply, "plan_ahead", watched)
        run = ss.simulate(cluster, crowd(seed), seed=seed, **CASES[case])
        monkeypatch.setattr(CountSupply, "plan_ahead", forgetful)
        again = ss.simulate(cluster, crowd(seed), seed=seed, **CASES[case])
        assert run.jobs.equals(again.jobs)
    assert taken_up > 0 or case == "overruns", f"{taken_up} of {taken_up + searched} were known"


def test_reservations_in_another_order_are_known_up_to_there():
    class Nothing:
        def settle(self, known):
            return len(known.jobs)

    kept_plan = KeptPlan(Nothing(), Known([3, 1, 2], [5.0, 6.0, 7.0], 0))
    assert kept_plan.known([3, 1, 4], 9).starts == [5.0, 6.0]
    assert kept_plan.known([1, 3], 9).jobs == []
