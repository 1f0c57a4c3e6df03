"""``pass=event``: the schedules of pyss and, with ``candidates=actual``, of CQSim, job by job."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.simulation.options.run_config import make_config
from tests.reference.naive import Job
from tests.reference.one_pass_per_event import CQSIM, PYSS, schedule

KINDS = {"requested": PYSS, "actual": CQSIM}
rows = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, 5), st.integers(1, 8))
queues = st.lists(rows, max_size=24).map(
    lambda found: [Job(n, s, r, r + more, c) for n, (s, r, more, c) in enumerate(sorted(found))]
)


def ours(jobs, processors, candidates):
    execution = {"R_lite": [{"rank": "0", "children": {"core": f"0-{processors - 1}"}}], "nodelist": ["n"]}
    cluster = ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}))
    shapes = {}
    made = []
    for job in jobs:
        asked = (job.copies, job.requested)
        spec = shapes.setdefault(
            asked, ss.Jobspec.from_shape(f"slot={job.copies}/core", duration=job.requested)
        )
        made.append(
            ss.Job(id=job.id, submit=job.submit, runtime=job.runtime, duration=job.requested, jobspec=spec)
        )
    workload = ss.Workload(jobs=tuple(made), name="made")
    run = ss.simulate(cluster, workload, passes="event", candidates=candidates, allocations=False)
    return dict(zip(run.jobs["id"].astype(int), run.jobs["start"], strict=True))


@pytest.mark.parametrize("candidates", KINDS)
@given(jobs=queues)
def test_small_queues(candidates, jobs):
    assert ours(jobs, 8, candidates) == schedule(jobs, 8, KINDS[candidates])


@pytest.mark.parametrize(
    ("options", "passes", "candidates"),
    [
        ({}, "instant", "requested"),
        ({"candidates": "actual"}, "event", "actual"),
        ({"candidates": "actual", "passes": "instant"}, "instant", "actual"),
        ({"pass": "event"}, "event", "requested"),
        ({"queue_options": {"pass": "event", "extra": False}}, "event", "requested"),
        ({"queue_options": {"candidates": "actual"}}, "event", "actual"),
    ],
)
def test_the_variations_may_stand_among_the_policys_options(options, passes, candidates):
    config = make_config(**options)
    assert (config.passes, config.candidates) == (passes, candidates)
    assert set(config.queue_options) <= {"extra"}


@pytest.mark.slow
@pytest.mark.parametrize("candidates", KINDS)
@pytest.mark.parametrize(
    ("file", "processors"),
    [("KTH-SP2-1996-2.1-cln.swf.gz", 100), ("SDSC-SP2-1998-4.2-cln.swf.gz", 128)],
)
def test_whole_traces(traces, file, processors, candidates):
    jobs = normalised(traces / file)
    assert ours(jobs, processors, candidates) == schedule(jobs, processors, KINDS[candidates])


def normalised(path):
    """Jobs that ran, no longer than they asked for: what both programs accept."""
    jobs = []
    with gzip.open(path, "rt", encoding="latin-1") as lines:
        for line in lines:
            if line.strip() and not line.startswith(";"):
                fields = [int(float(field)) for field in line.split()[:9]]
                number, submit, _, runtime, allocated, _, _, asked, requested = fields
                copies = asked if asked > 0 else allocated
                if runtime > 0 and copies > 0:
                    requested = requested if requested > 0 else runtime
                    jobs.append(Job(number, submit, runtime, requested, copies))
    return sorted(jobs, key=lambda job: job.submit)
