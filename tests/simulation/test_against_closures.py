"""Start times against `tests.reference.planning`: overlapping partitions, whole nodes, begun maintenance."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.simulation.forecast.start_times import forecast
from tests.reference import planning as plain
from tests.simulation.test_against_naive import cluster_of

KNOBS = {
    "max_job_test": (2, 4),
    "max_job_start": (1, 2),
    "max_job_user": (1, 2),
    "max_job_part": (1, 3),
    "window": (60, 300),
    "min_age": (20, 60),
}


def drawn(seed, *, partitions, outages, options, clean=0):
    """Return a machine of nodes, its partitions, the options of Slurm, and jobs."""
    rng = random.Random(seed)
    nodes = [(rng.choice([1, 2, 4]), 0) for _ in range(rng.randint(2, 6))]
    everywhere = range(len(nodes))
    parts, closed, drains = [], [], []
    for _ in range(rng.randint(2, 3) if partitions else 0):
        mine = tuple(sorted(rng.sample(everywhere, rng.randint(1, len(nodes)))))
        parts.append((rng.choice([0, 0, 1, 2]), mine))
    for _ in range(rng.randint(1, 4) if outages else 0):
        start = rng.randint(1, 400)
        some = tuple(sorted(rng.sample(everywhere, rng.randint(1, len(nodes)))))
        outage = some, start, start + rng.randint(10, 300)
        (closed if rng.random() < 0.7 else drains).append(outage)
    knobs = {"interval": rng.choice([1, 10, 30]), "resolution": rng.choice([1, 60])}
    if options:
        for name in rng.sample(list(KNOBS), rng.randint(1, 2)):
            knobs[name] = rng.choice(KNOBS[name])
    jobs, now = [], 0
    for number in range(rng.randint(10, 30)):
        now += rng.choice([0, 1, 5, 20, 60])
        part = rng.randrange(len(parts)) if parts else 0
        mine = parts[part][1] if parts else tuple(everywhere)
        own = [nodes[node][0] for node in mine]
        cores = rng.choice([each for each in (1, 1, 2, 3) if each <= max(own)])
        copies = rng.randint(1, sum(each // cores for each in own))
        requested = rng.choice([5, 30, 100, 250])
        runtime = rng.choice([requested, requested, max(1, requested // 3)])
        need, user = (cores, 0, 1), rng.randrange(3)
        jobs.append(plain.Job(number, now, runtime, requested, copies, need, mine, user=user, partition=part))
    machine = plain.Machine(plain.capacity(nodes), tuple(closed), tuple(drains), clean)
    return machine, parts, plain.Options(**knobs), jobs


def starts(machine, partitions, options, jobs, policy):
    names = [f"p{number}" for number in range(len(partitions))]
    queues = {
        name: {"hosts": ",".join(f"n{node}" for node in nodes), "priority": priority}
        for name, (priority, nodes) in zip(names, partitions, strict=True)
    }
    outages = [
        {"ranks": ",".join(map(str, nodes)), "start": start, "end": end, "kind": kind}
        for kind, some in (("maintenance", machine.closed), ("drain", machine.drains))
        for nodes, start, end in some
    ]
    given = {
        name.replace("min_age", "min_age_reserve"): value
        for name, value in options._asdict().items()
        if value != float("inf")
    }
    made = [
        ss.Job(
            id=job.id,
            submit=job.submit,
            runtime=job.runtime,
            duration=job.requested,
            user=f"u{job.user}",
            queue=names[job.partition] if names else None,
            jobspec=ss.Jobspec.from_shape(f"slot={job.copies}/core={job.need[0]}"),
        )
        for job in jobs
    ]
    run = ss.simulate(
        cluster_of([tuple(units[:2]) for units in machine.units.tolist()]),
        ss.Workload(jobs=tuple(made), name="made"),
        policy,
        queues=queues or None,
        outages=outages,
        queue_options=given if policy == "slurm" else {},
        epilog=(machine.clean, machine.clean),
    )
    return {int(number): start for number, start in zip(run.jobs["id"], run.jobs["start"], strict=True)}


CASES = [
    ("slurm", {"partitions": True, "outages": False, "options": False}),
    ("slurm", {"partitions": True, "outages": False, "options": True}),
    ("slurm", {"partitions": False, "outages": True, "options": False}),
    ("slurm", {"partitions": True, "outages": True, "options": True}),
    ("easy", {"partitions": False, "outages": True, "options": False}),
    ("slurm", {"partitions": True, "outages": True, "options": False, "clean": 40}),
    ("easy", {"partitions": False, "outages": True, "options": False, "clean": 40}),
]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("policy", "kind"), CASES, ids=str)
def test_starts_are_those_of_the_rules(policy, kind, seed):
    machine, partitions, options, jobs = drawn(seed, **kind)
    definition = plain.Slurm(options, partitions) if policy == "slurm" else plain.Easy()
    expected = plain.schedule(jobs, machine, definition)
    found = starts(machine, partitions, options, jobs, policy)
    expected = {number: told and told.start for number, told in expected.items()}
    differ = {number: (found[number], at) for number, at in expected.items() if found[number] != at}
    differ = {number: pair for number, pair in differ.items() if not (pair[1] is None and pair[0] != pair[0])}
    assert not differ, (machine, partitions, options, jobs, differ)


MAINTENANCE = {"ranks": "4-7", "start": 100, "end": 1000, "kind": "maintenance"}


def whole_nodes(number, submit, seconds, nodes):
    spec = ss.Jobspec.from_shape(f"slot={nodes}/node", duration=seconds)
    return ss.Job(id=number, submit=submit, runtime=seconds, duration=seconds, jobspec=spec)


JOBS = [whole_nodes(1, 0, 500, 2), whole_nodes(2, 1, 100, 8), whole_nodes(3, 2, 5000, 2)]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        *(("easy", {}), ("easy++", {}), ("slurm", {}), ("conservative", {}), ("hybrid", {}), ("slack", {})),
        *(("conservative", {"compress": "replan"}), ("selective", {"threshold": 1})),
        *(("easy", {"refresh": "when-blocked"}), ("easy", {"extra": False})),
    ],
)
def test_plans_count_on_the_end_of_maintenance_that_has_begun(policy, options):
    machine, workload = cluster_of([(1, 0)] * 8), ss.Workload(jobs=tuple(JOBS), name="made")
    given = {"queue_policy": policy, "queue_options": options, "outages": [MAINTENANCE]}
    assert ss.simulate(machine, workload, **given).jobs["start"].tolist()[:2] == [0, 1000]
    starts = {each.id: each.start for each in forecast(machine, workload, 150, **given)}
    assert starts["2"] == 1000


def test_no_plan_counts_on_the_end_of_a_failure_or_a_drain():
    """Node 4 fails during the maintenance: job 2 has no earliest start, and job 3 may pass it."""
    machine, workload = cluster_of([(1, 0)] * 8), ss.Workload(jobs=tuple(JOBS), name="made")
    for kind in ("failure", "drain"):
        outages = [MAINTENANCE, {"ranks": "4", "start": 150, "end": 1200, "kind": kind}]
        run = ss.simulate(machine, workload, "easy", outages=outages)
        assert run.jobs["start"].tolist() == [0, 5150, 150]
