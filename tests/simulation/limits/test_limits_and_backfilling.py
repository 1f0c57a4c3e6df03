"""Limits under variations of backfilling, predictors and priorities."""

from __future__ import annotations

import random

import numpy as np
import pytest

import simsched as ss
from simsched.schedule.policies.slack import Slack
from tests.reference import backfilling as naive
from tests.simulation.simworld import job, machine, workload
from tests.simulation.test_against_backfilling import CASES, starts, workload_of
from tests.simulation.test_against_naive import cluster_of

# Of a few random jobs, none may be of the user or QoS that a limit is about.
pytestmark = pytest.mark.filterwarnings("ignore::simsched.errors.InputWarning")

SCOPES = {
    "each user": ({"each": "user"}, lambda job: job.user),
    "all": ({}, lambda job: "all"),
    "one user": ({"user": "user1"}, lambda job: "1" if job.user == 1 else None),
}


#: A limit of one user replaces that of each user, so the two are not drawn together.
TOGETHER = (["each user"], ["all"], ["each user", "all"], ["one user", "all"])


def some_jobs(rng):
    """Up to 40 jobs of three users that crowd on 8 processors, in whole seconds."""
    jobs = []
    for number in range(1, rng.randint(5, 40)):
        runtime = rng.randint(1, 60)
        limit = rng.choice([runtime, runtime + 1, 2 * runtime, runtime + rng.randint(0, 100)])
        submit = rng.choice([0, rng.randint(0, 60), rng.randint(0, 300)])
        size, user, queue = rng.randint(1, 8), rng.randint(1, 3), rng.randint(0, 1)
        jobs.append(naive.Job(number, submit, runtime, limit, size, user, queue))
    return sorted(jobs, key=lambda job: job.submit)


def some_limits(rng):
    """Rules of a configuration, and the same limits for the naive scheduler."""
    rules, limits = [], []
    for name in rng.choice(TOGETHER):
        table, scope = SCOPES[name]
        quantity, key, most = rng.choice(
            [
                ("jobs", "running-jobs", rng.randint(1, 3)),
                ("processors", "cores", rng.choice([8, 9, 12]) if name == "all" else 8),
                ("ahead", "running-core-hours", rng.randint(1300, 2000)),  # core-seconds; no job needs more
            ]
        )
        rules.append({**table, key: most / 3600 if quantity == "ahead" else most})
        limits.append(naive.Limit(scope, quantity, most))
    return rules, limits


@pytest.mark.quick(8)
@pytest.mark.parametrize("case", CASES)
def test_starts_are_those_of_the_naive_scheduler(case):
    options, policy, predictor = CASES[case]
    cluster = cluster_of([(1, 0)] * 8)
    for seed in range(5):
        rng = random.Random(f"limits {case} {seed}")
        jobs, (rules, limits) = some_jobs(rng), some_limits(rng)
        expected = naive.schedule(jobs, 8, policy(), predictor, limits)
        run = ss.simulate(cluster, workload_of(jobs), allocations=False, limits=rules, **options)
        found = starts(run)
        differ = [(job, found.get(job.id)) for job in jobs if found.get(job.id) != expected[job.id]]
        assert not differ, f"seed {seed}, {rules}: {differ[:3]}"


def test_a_reservation_out_of_view_keeps_its_latest_start():
    """A limit takes jobs out of view that have reservations; `_try_first` asks for their latest starts."""
    out_of_view = []

    class Watched(Slack):
        def run_pass(self, context):
            super().run_pass(context)
            out_of_view.extend(self.starts.keys() - set(context.queue))
            assert self.starts.keys() <= self.latest.keys()

    rng = np.random.default_rng(0)
    jobs = [
        job(str(n), n // 3, f"slot={rng.integers(1, 5)}/core", int(rng.integers(2, 31)), user="ab"[n % 2])
        for n in range(20)
    ]
    ss.simulate(
        machine(4),
        workload(*jobs),
        Watched(1.0),
        limits=[{"each": "user", "running-jobs": 2, "blocks": True}],
    )
    assert out_of_view
