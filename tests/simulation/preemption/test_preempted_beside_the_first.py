"""EASY on a mixed machine: a job that was let pass the first one is preempted, and starts again in order."""

from __future__ import annotations

import numpy as np
import pytest

import simsched as ss


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "site.yaml"
    path.write_text(
        "groups:\n"
        "  - {name: a, count: 5, cores: 4}\n"
        "  - {name: g, count: 1, cores: 4, gpus: 1, properties: [gpu]}\n"
    )
    return ss.load_cluster(path)


def job(name, submit, shape, duration, runtime=None, queue="low"):
    spec = ss.Jobspec.from_shape(shape, duration=duration, constraint=None if "gpu" in shape else "-gpu")
    runtime = duration if runtime is None else runtime
    return ss.Job(id=name, submit=submit, runtime=runtime, duration=duration, queue=queue, jobspec=spec)


def starts(site):
    jobs = (
        job("three", 0, "slot=3/node", 1000),
        job("short", 0, "slot=1/node", 900, runtime=500),
        job("gpu", 0, "slot=1/[core;gpu]", 10),
        job("first", 1, "slot=4/node", 10_000),  # it could start at 1000
        job("beside", 60, "slot=1/node", 2000),
        job("urgent", 100, "slot=1/node", 30, queue="high"),  # preempts `beside` until 130
        job("late", 400, "slot=1/node", 5000),
    )
    queues = {"high": {"priority": 1, "preempts": True}, "low": {"priority": 0}}
    run = ss.simulate(
        site,
        ss.Workload(jobs=jobs, name="preempted"),
        queue_policy="easy",
        order="wfp3",
        queues=queues,
        preemption={"mode": "requeue"},
    )
    return dict(zip(run.jobs["id"], np.asarray(run.jobs["start"], float), strict=True))


def test_its_second_claim_counts_at_the_shadow_time(site):
    """While it runs again, no other job may take the last node that the first job needs at 1000."""
    kept = starts(site)
    assert kept["first"] == 1000
    assert kept["late"] > 1000
