"""Start times under variations of backfilling against the naive scheduler of tests/reference, job by job."""

from __future__ import annotations

import math
import random

import pytest

import simsched as ss
from tests.reference import backfilling as naive
from tests.simulation.test_against_naive import NEVER, cluster_of

TRACES = {"KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100), "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128)}

#: Name → (options of a run, the naive policy, its predictor).
CASES = {
    **{
        f"order {name}": ({"order": name}, lambda name=name: naive.Easy(name), "limit")
        for name in naive.ORDERS
    },
    **{
        f"candidates {name}": (
            {"queue_options": {"backfill-order": name}},
            lambda name=name: naive.Easy(candidates=name),
            "limit",
        )
        for name in ("sjf", "ljf", "lifo", "largest-size", "smallest-area", "lxf", "f1")
    },
    "order fairshare": ({"order": "fairshare"}, naive.FairShare, "limit"),
    "easy+": ({"queue_policy": "easy+"}, naive.Easy, "last-two"),
    "easy++": ({"queue_policy": "easy++"}, lambda: naive.Easy(candidates="sjf"), "last-two"),
    "easy+, doubling": (
        {"queue_policy": "easy+", "predictor": "last-two(doubling)"},
        naive.Easy,
        "last-two(doubling)",
    ),
    "easy++, limit": (
        {"queue_policy": "easy++", "predictor": "last-two(limit)"},
        lambda: naive.Easy(candidates="sjf"),
        "last-two(limit)",
    ),
    "perfect": ({"predictor": "perfect"}, naive.Easy, "perfect"),
    "quantile": ({"predictor": "quantile(0.9, 10)"}, naive.Easy, "quantile"),
    "wfp3 with predictions": (
        {"queue_policy": "easy++", "order": "wfp3"},
        lambda: naive.Easy("wfp3", "sjf"),
        "last-two",
    ),
    "selective": (
        {"queue_policy": "selective", "queue_options": {"threshold": 1.5}},
        lambda: naive.Promises(1.5),
        "limit",
    ),
    "selective, shortest first": (
        {"queue_policy": "selective", "queue_options": {"threshold": 3, "backfill-order": "sjf"}},
        lambda: naive.Promises(3, "sjf"),
        "limit",
    ),
    "hybrid, shortest first": (
        {"queue_policy": "hybrid", "queue_options": {"depth": 2, "backfill-order": "sjf"}},
        lambda: naive.Promises(1, "sjf", 2),
        "limit",
    ),
    "slack 0": ({"queue_policy": "slack", "queue_options": {"factor": 0}}, lambda: naive.Slack(0), "limit"),
    "slack": ({"queue_policy": "slack", "queue_options": {"factor": 0.5}}, lambda: naive.Slack(0.5), "limit"),
    "slurm": ({"queue_policy": "slurm"}, naive.Slurm, "limit"),
    "slurm with bounds": (
        {
            "queue_policy": "slurm",
            "queue_options": {
                "interval": 100,
                "sched_interval": 45,
                "window": "1h",
                "resolution": 500,
                "max_job_test": 5,
                "max_job_user": 2,
                "max_job_start": 1,
                "min_age_reserve": 60,
                "reservation_depth": 2,
            },
        },
        lambda: naive.Slurm(100, 45, 3600, 500, test=5, user=2, start=1, age=60, depth=2),
        "limit",
    ),
    "slurm with predictions": ({"queue_policy": "slurm", "predictor": "last-two"}, naive.Slurm, "last-two"),
    "slurm, two partitions": (
        {"queue_policy": "slurm", "queue_options": {"max-job-part": 2}, "queues": {"q0": {}, "q1": {}}},
        lambda: naive.Slurm(part=2),
        "limit",
    ),
    "starvation": (
        {"queue_options": {"starvation": 30, "backfill_order": "sjf"}},
        lambda: naive.Easy(candidates="sjf", starvation=30),
        "limit",
    ),
}


def workload_of(jobs):
    """The oracle's jobs as a workload."""
    made = [
        ss.Job(
            id=job.id,
            submit=job.submit,
            runtime=job.runtime,
            duration=None if job.limit == math.inf else job.limit,
            jobspec=ss.Jobspec.from_shape(f"slot={job.size}/core=1"),
            user=f"user{job.user}",
            queue=f"q{job.queue}",
            bank=f"bank{job.user % 3}",
            urgency=job.urgency,
            deadline=None if job.deadline == math.inf else job.deadline,
        )
        for job in jobs
    ]
    return ss.Workload(jobs=tuple(sorted(made, key=lambda job: job.submit)), name="made")


def starts(run):
    """{job id: start} of the jobs that ran."""
    rows = zip(run.jobs["id"], run.jobs["start"], run.jobs["result"], strict=True)
    return {int(number): start for number, start, result in rows if result not in NEVER}


def random_jobs(rng):
    """Up to 40 jobs of three users that crowd on 8 processors: ties, instant and unlimited jobs."""
    jobs = []
    for number in range(1, rng.randint(2, 40)):
        runtime = rng.choice([0, 1, rng.randint(1, 200), rng.randint(1, 900), rng.randint(1, 9000)])
        limit = rng.choice([math.inf, runtime + 1, 2 * runtime + 5, rng.randint(1, 20000), max(1, runtime)])
        submit = rng.choice([0, rng.randint(0, 500), rng.randint(0, 20000)])
        jobs.append(
            naive.Job(number, submit, runtime, limit, rng.randint(1, 9), rng.randint(1, 3), rng.randint(0, 1))
        )
    return sorted(jobs, key=lambda job: job.submit)


def with_deadlines(jobs):
    """Jobs with urgencies from 1 to 31, and deadlines for six of seven."""
    return [
        job._replace(
            urgency=1 + job.id * 7919 % 31,
            deadline=job.submit + job.runtime * (1 + job.id % 5) if job.id % 7 else math.inf,
        )
        for job in jobs
    ]


def test_every_order_is_compared():
    """``multifactor`` is compared in test_priorities_against_naive."""
    from simsched.schedule.orders.order import ORDERS

    assert {f"order {name}" for name in ORDERS} <= CASES.keys()


def swf_jobs(path, limit):
    """The first jobs of a trace that ran."""
    import gzip

    jobs = []
    with gzip.open(path, "rt", encoding="latin-1") as lines:
        for line in lines:
            fields = [int(float(field)) for field in line.split(";")[0].split()]
            if not fields:
                continue
            size = fields[7] if fields[7] > 0 else fields[4]
            if size <= 0 or fields[3] < 0 or fields[10] in (2, 3, 4) or (fields[10] == 5 and fields[3] <= 0):
                continue
            limit_of = fields[8] if fields[8] > 0 else math.inf
            jobs.append(naive.Job(fields[0], fields[1], fields[3], limit_of, size, fields[11]))
            if len(jobs) == limit:
                break
    return [job._replace(id=at) for at, job in enumerate(jobs, 1)]


def compare(case, jobs, processors, cluster):
    options, policy, predictor = CASES[case]
    if case in ("order priority", "order edf"):
        jobs = with_deadlines(jobs)
    run = ss.simulate(cluster, workload_of(jobs), allocations=False, **options)
    expected = naive.schedule(jobs, processors, policy(), predictor)
    found = starts(run)
    assert len(found) == len(expected)
    differ = [
        (job, found[job.id], expected[job.id]) for job in jobs if found.get(job.id) != expected.get(job.id)
    ]
    assert not differ, f"{len(differ)} of {len(jobs)} jobs differ, first (job, ours, naive): {differ[:3]}"


@pytest.mark.quick(8)
@pytest.mark.parametrize("case", CASES)
def test_made_workloads(case):
    cluster = cluster_of([(1, 0)] * 8)
    for seed in range(12):
        compare(case, random_jobs(random.Random(f"{case} {seed}")), 8, cluster)


ON_GRAPHS = ("candidates sjf", "easy+", "easy++", "perfect", "quantile")
SLURM = ("slurm", "slurm with bounds", "slurm, two partitions", "slurm with predictions")


@pytest.mark.parametrize("case", [*ON_GRAPHS, *SLURM])
def test_made_workloads_where_the_matcher_decides(case, monkeypatch):
    """The same answers on the graph, for policies whose reservations are times or last for one pass.

    Reservations that last are for the vertices that the match policy chose, so a job may wait for others.
    """
    from simsched.simulation import simulate

    original = simulate.Prepared
    monkeypatch.setattr(
        simulate, "Prepared", lambda *args, **given: original(*args, **given | {"counts_decide": False})
    )
    cluster = cluster_of([(1, 0)] * 8 if case in SLURM else [(8, 0)])  # Slurm reserves whole nodes
    for seed in range(6):
        compare(case, random_jobs(random.Random(f"graph {case} {seed}")), 8, cluster)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", TRACES)
def test_5000_jobs_of_traces(traces, name, case):
    file, processors = TRACES[name]
    jobs = swf_jobs(traces / file, 1000 if case.startswith("slack") else 5000)
    compare(case, jobs, processors, cluster_of([(1, 0)] * processors))
