"""Under every queue policy and with every feature of a run, causes of waits add up to the waits exactly."""

from __future__ import annotations

import random

import numpy as np
import pytest

import simsched as ss
from simsched.errors import ConfigError
from simsched.report.metrics.causes import NEVER, REJECTED
from simsched.report.run_views import load_run
from simsched.report.waiting.job_wait import why
from simsched.report.waiting.wait_totals import totals_by, wait_table
from tests.simulation.licences.test_licences import licensed
from tests.simulation.reservations.test_reservations import within
from tests.simulation.simworld import job, machine, run

POLICIES = ["fcfs", "easy", "easy+", "easy++", "conservative", "hybrid", "selective", "slack", "slurm"]
SHAPES = [
    "slot=1/core",
    "slot=3/core",
    "slot=2/core=2",
    "slot=2/node",
    "slot=2/[core=2;gpu]",
    "slot=3/core=3",
]
QUEUES = {"q": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 9, "preempts": True}}
FEATURES = {
    "plain": {},
    "limits": {
        "limits": [
            {"each": "user", "running-jobs": 2},
            {"each": "user", "submitted-jobs": 5, "over": "hold"},
            {"each": "user", "cores": 9},
        ]
    },
    "licences": {"licenses": {"matlab": 2}},
    "reservations": {
        "queues": QUEUES,
        "reservations": [
            {"name": "r", "start": 30, "duration": 40, "nodes": 1},
            {"name": "s", "announced": 20, "duration": 25, "nodes": 2, "users": ["a"]},
        ],
    },
    "arrays": {},
    "outages": {"failures": "mtbf=200,mttr=15", "outages": [
        {"ranks": "1", "start": 20, "end": 50, "kind": "drain"},
        {"ranks": "0-3", "start": 60, "end": 75, "kind": "maintenance"},
    ]},
    **{mode: {"queues": QUEUES, "preemption": {"mode": mode}} for mode in ("requeue", "suspend", "cancel")},
}  # fmt: skip


def random_jobs(rng, feature):
    """Jobs that use a feature; times are whole seconds, so that sums of them are exact."""
    jobs = []
    for number in range(24):
        at, length, shape = rng.randint(0, 60), rng.randint(1, 12), rng.choice(SHAPES)
        limit = max(1, length + rng.randint(-2, 8))
        queue = rng.choice(["q", "q", "urgent"]) if "queues" in FEATURES[feature] else "q"
        more = {"user": rng.choice("abc"), "queue": queue}
        if feature == "arrays" and number % 6 == 0:
            first = job(f"v{number}", at, "slot=2/core", length, limit, **more)
            jobs += ss.job_array(first, f"0-3%{rng.randint(1, 2)}")
        elif feature == "licences" and rng.random() < 0.5:
            jobs.append(
                licensed(f"j{number}", at, shape, length, {"matlab": rng.randint(1, 2)}, limit, **more)
            )
        elif feature == "reservations" and rng.random() < 0.3:
            jobs.append(within(f"j{number}", at, shape, length, rng.choice("rs"), limit, **more))
        else:
            jobs.append(job(f"j{number}", at, shape, length, limit, **more))
    return jobs


def waits_of(jobs, last):
    """Return the jobs that waited for resources, and their waits: to their start, or to their end."""
    kept = jobs[~(jobs["result"].isin(NEVER) | jobs["reason"].astype(str).str.startswith(REJECTED))]
    end = kept["start"].fillna(kept["end"]).fillna(last)
    return dict(zip(kept["id"], np.maximum(end - kept["submit"], 0.0), strict=True))


@pytest.mark.parametrize(
    ("feature", "policy"),
    [  # a suspended job has no predicted end
        (feature, policy)
        for feature in FEATURES
        for policy in POLICIES
        if feature != "suspend" or policy not in ("easy+", "easy++")
    ],
)
def test_the_causes_of_all_jobs_and_of_each_job_add_up_to_the_waits(tmp_path, policy, feature):
    for seed in range(2):
        rng = random.Random(f"{policy} {feature} {seed}")
        cluster, jobs = machine(4, cores=4, gpus=1), random_jobs(rng, feature)
        found = run(cluster, *jobs, policy=policy, seed=seed, **FEATURES[feature])
        read = load_run(found.save(tmp_path / f"run{seed}"))
        expected = waits_of(read.jobs, float(read.timeline["time"].iloc[-1]))
        table = wait_table(read)
        assert dict(zip(read.jobs["id"][table.index], table.sum(axis=1), strict=True)) == expected
        assert (table.to_numpy() >= 0).all()
        for key in (None, "queue", "user"):
            hours = totals_by(read, table, key).to_numpy().sum()
            assert hours == pytest.approx(sum(expected.values()) / 3600, rel=1e-12)
        assert any(expected.values())
        for name in read.jobs["id"]:
            if name not in expected:
                with pytest.raises(ConfigError, match="never waited"):
                    why(read, name, cluster, found.workload)
                continue
            answer = why(read, name, cluster, found.workload)
            assert answer.wait == expected[name], (name, answer)
            assert sum(answer.by_cause().values()) == expected[name]
            assert [part.start for part in answer.periods[1:]] == [part.end for part in answer.periods[:-1]]
            assert not answer.periods or answer.periods[0].start == answer.submit
