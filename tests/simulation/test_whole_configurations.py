"""Random runs with everything at once: audited, replayed, cut short and resumed.

Machines, jobs and rules are drawn from the seed.  What holds whatever they are: the audit is clean,
the eventlog gives each job's state, every job is accounted for, a run that is cut short is the
beginning of the whole one, and a resumed one is the whole one to the byte.
"""

from __future__ import annotations

import json
import random
from math import isnan

import pytest

from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.dependency import Dependency
from simsched.graph.cluster import load_cluster
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.jobs.lifecycle import JobState, replay
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job
from tests.simulation.simworld import machine, workload

ORDERS = ("priority", "sjf", "ljf", "smallest-area", "largest-area", "wfp3", "unicef", "f1", "fairshare")
MATCHES = (
    "first",
    "first",
    "lonode",
    "hinode",
    "lonodex",
    "bestfit",
    "worstfit",
    "random",
    "low",
    "locality",
)
SEEDS = 30


def maybe(rng, share, *values):
    return rng.choice(values) if rng.random() < share else None


def given(**options):
    return {name: value for name, value in options.items() if value is not None}


def draw_shape(rng, nodes, cores, gpus):
    return rng.choice(
        [
            f"slot={rng.randint(1, cores * nodes)}/core",
            f"slot={rng.randint(1, nodes)}/node",
            f"slot={rng.randint(1, 3)}/core={rng.randint(1, cores)}",
            f"node={rng.randint(1, nodes)}/slot/core={rng.randint(1, cores)}",
            f"slot={rng.randint(1, 3)}/[core;gpu]" if gpus else "slot=1/core",
            f"slot={nodes + 1}/node" if rng.random() < 0.2 else "slot=1/core",
        ]
    )


def draw_dependencies(rng, number):
    texts = []
    if number and rng.random() < 0.2:
        other = rng.randint(0, number) if rng.random() < 0.2 else rng.randint(0, number - 1)
        texts.append(f"{rng.choice(['after', 'afterany', 'afterok', 'afternotok'])}:j{other}")
    if rng.random() < 0.06:
        texts.append(f"begin-time:{rng.randint(0, 50)}")
    if rng.random() < 0.1:
        kind, scope = rng.choice(["in", "out", "inout"]), rng.choice(["user", "global"])
        texts.append(f"{rng.choice(['string', 'fluid'])}:{rng.choice('mn')}?type={kind}&scope={scope}")
    return tuple(Dependency.parse(text) for text in texts)


def draw_jobs(rng, shapes, properties, queues):
    submit = 0
    for number in range(rng.choice([4, 8, 16, 30])):
        submit += rng.choice([0, 0, 0, 1, 1, 2, 4, 0.5])
        limit = rng.choice([0, 1, 2, 3, 5, 8, 13, 20])
        runtime = rng.choice([limit, limit, max(0, limit - 1), limit // 2, 0, limit + 3, limit * 2])
        duration = None if rng.random() < 0.07 else limit
        constraint = maybe(rng, 0.15, *properties) if properties else None
        spec = Jobspec.from_shape(shapes(), duration=duration, constraint=constraint)
        if rng.random() < 0.2:
            spec = spec.with_system(**{"preemptible-after": rng.choice([0, 1, 3])})
        more = given(
            preceding=maybe(rng, 0.1, f"j{max(0, number - 1)}") if number else None,
            think_time=rng.choice([0, 1, 5]),
            cancel_at=maybe(rng, 0.1, submit, submit + rng.randint(0, 30)),
            queue=maybe(rng, 0.8, *queues) if queues else None,
        )
        yield Job(
            id=f"j{number}",
            submit=submit,
            jobspec=spec,
            runtime=runtime,
            duration=duration,
            user=rng.choice("abc"),
            bank=rng.choice("xy"),
            urgency=rng.choice([16] * 8 + [0, 1, 31]),
            hold=rng.random() < 0.03,
            dependencies=draw_dependencies(rng, number),
            **more,
        )


def draw_outages(rng, nodes):
    for _ in range(rng.randint(1, 3)):
        start, ranks = rng.randint(0, 60), sorted(rng.sample(range(nodes), rng.randint(1, nodes)))
        kind = rng.choice(["failure", "drain", "maintenance"])
        yield {
            "ranks": ",".join(map(str, ranks)),
            "start": start,
            "end": start + rng.randint(1, 20),
            "kind": kind,
        }


def draw_queue(rng, nodes, properties):
    first = rng.randint(0, nodes - 1)
    policy = maybe(
        rng,
        0.5,
        {"limits": {"duration": 10}},
        {"limits": {"job-size": {"max": {"nnodes": rng.randint(1, nodes)}}}},
        {"jobspec": {"defaults": {"system": {"duration": "7"}}}},
    )
    return given(
        requires=maybe(rng, 0.4, *([name] for name in properties)) if properties else None,
        hosts=maybe(rng, 0.3, f"n[{first}-{rng.randint(first, nodes - 1)}]"),
        priority=maybe(rng, 0.5, 0, 1, 2),
        preempts=maybe(rng, 0.3, True),
        closed=maybe(rng, 0.2, [[rng.randint(0, 20), rng.randint(21, 40)]]),
        policy=policy,
    )


def draw_rules(rng, nodes, properties):
    policy = rng.choice(["fcfs", "easy", "easy", "conservative", "hybrid"])
    variations = given(
        queue_depth=maybe(rng, 0.25, 1, 2, 5), depth=rng.randint(0, 4) if policy == "hybrid" else None
    )
    if policy == "easy":
        variations |= given(
            extra=maybe(rng, 0.2, False),
            refresh=maybe(rng, 0.2, "when-blocked"),
            reservation=maybe(rng, 0.1, "none"),
        )
    return given(
        queue_policy=policy,
        queue_options=variations,
        order=maybe(rng, 0.6, *ORDERS),
        match_policy=rng.choice(MATCHES),
        seed=rng.randint(0, 9),
        overrun=maybe(rng, 0.4, "allow"),
        passes=maybe(rng, 0.15, "event"),
        candidates=maybe(rng, 0.15, "actual"),
        think_times=maybe(rng, 0.3, "honour"),
        on_failure=maybe(rng, 0.4, "fail"),
        epilog=maybe(rng, 0.3, "1s", "500ms", "0s..2s", "1s..4s"),
        outages=list(draw_outages(rng, nodes)) if rng.random() < 0.35 else None,
        failures=maybe(rng, 0.25, "mtbf=40,mttr=5", "mtbf=100,mttr=10,shape=0.7"),
        queues={name: draw_queue(rng, nodes, properties) for name in "uvw"} if rng.random() < 0.5 else None,
    )


def draw(seed):
    """Return a machine, a workload and the rules of a run."""
    rng = random.Random(seed)
    nodes, cores, gpus = rng.randint(2, 7), rng.choice([1, 2, 4]), rng.choice([0, 0, 1, 2])
    ranks = {name: [rank for rank in range(nodes) if rng.random() < 0.6] for name in "pq"}
    properties = {name: ",".join(map(str, found)) for name, found in ranks.items() if found}
    cluster = machine(nodes, cores, gpus, properties or None)
    rules = draw_rules(rng, nodes, properties)
    queues = [*rules.get("queues", ())]
    jobs = draw_jobs(rng, lambda: draw_shape(rng, nodes, cores, gpus), [*properties], queues)
    return cluster, workload(*jobs), rules


def files(result, directory):
    """The bytes of every file of a run directory, but for when and how fast it ran."""
    result.save(directory)
    found = {file.name: file.read_bytes() for file in directory.iterdir()}
    meta = json.loads(found["run.json"])
    for name in ("created", "wall_seconds", "jobs_per_second"):
        del meta[name]
    return {**found, "run.json": json.dumps(meta).encode()}


def rows(result):
    columns = {name: column.tolist() for name, column in result.jobs.items()}
    return {row[0]: dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)}


def assert_all_accounted_for(jobs, found):
    assert found.keys() == {job.id for job in jobs}
    for job in jobs:
        row = found[job.id]
        assert row["result"] != "RUNNING"
        assert isnan(row["start"]) == isnan(row["end"])
        if not isnan(row["start"]):
            assert job.submit <= row["eligible"] <= row["start"] <= row["end"]
            assert job.urgency
            assert not job.hold
        if row["result"] in ("FAILED", "CANCELED", "INFEASIBLE"):
            assert row["reason"]


def assert_replays(events, found):
    names = {name: [] for name in found}
    last = 0
    for event in events:
        assert event["timestamp"] >= last
        last = event["timestamp"]
        names[event["id"]].append(event["name"])
    for name, row in found.items():
        state = replay(names[name])
        assert state in (
            (JobState.DEPEND, JobState.SCHED) if row["result"] == "PENDING" else (JobState.INACTIVE,)
        ), name


def assert_clean(directory, cluster, result):
    report = audit_run(directory, cluster, result.workload)
    assert report, str(report)
    for line in (directory / "allocations.jsonl").read_text().splitlines():
        ResourceSet.from_dict(json.loads(line)["R"])  # RFC 20


def draw_backfill(rng):
    """Return variations of backfilling: policies, predictors, and orders of candidates."""
    policy = rng.choice(["easy", "easy+", "easy++", "hybrid", "selective", "slack", "slurm", "conservative"])
    order = maybe(rng, 0.5, "sjf", "lxf", "f2", "smallest-area")
    options = {
        "easy": given(backfill_order=order, starvation=maybe(rng, 0.3, 5, "20s")),
        "hybrid": given(depth=rng.randint(0, 3), backfill_order=order),
        "selective": given(threshold=rng.choice([1, 1.5, 3]), backfill_order=order),
        "slack": {"factor": rng.choice([0, 0.5, 2])},
        "slurm": given(
            interval=rng.choice([0, 3, 10]),
            sched_interval=maybe(rng, 0.3, 2),
            window=rng.choice([10, "1d"]),
            resolution=rng.choice([0, 5]),
            max_job_test=rng.choice([2, 500]),
            max_job_user=maybe(rng, 0.3, 1),
            max_job_part=maybe(rng, 0.3, 1),
            min_age_reserve=maybe(rng, 0.3, 4),
            reservation_depth=maybe(rng, 0.3, 1),
        ),
    }
    predictor = maybe(rng, 0.5, "last-two", "quantile(0.5, 3)", "perfect", "limit")
    return given(queue_policy=policy, queue_options=options.get(policy, {}), predictor=predictor)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_variations_of_backfilling(tmp_path, seed):
    cluster, jobs, rules = draw(1000 + seed)
    rules.pop("candidates", None)
    assert_holds(tmp_path, cluster, jobs, rules | draw_backfill(random.Random(seed)), seed)


def draw_limits(rng):
    """Return one or two limits on different quantities."""
    quantities = {
        "running-jobs": rng.randint(1, 3),
        "cores": rng.randint(2, 8),
        "nodes": rng.randint(1, 3),
        "running-core-hours": rng.choice([10, 40]) / 3600,
        "core-hours": rng.choice([40, 400]) / 3600,
        "submitted-jobs": rng.randint(2, 6),
    }
    scopes = ({"each": "user"}, {"each": "account"}, {}, {"user": "a"}, {"each": ["user", "account"]})
    return [
        rng.choice(scopes)
        | {name: quantities[name]}
        | given(over=maybe(rng, 0.25, "hold"), blocks=maybe(rng, 0.25, True))
        for name in rng.sample(list(quantities), rng.randint(1, 2))
    ]


@pytest.mark.parametrize("seed", [*range(SEEDS), 187, 201])
def test_variations_of_backfilling_under_limits_and_priorities(tmp_path, seed):
    cluster, jobs, rules = draw(5000 + seed)
    rng = random.Random(f"limits {seed}")
    for name in ("candidates", "passes"):
        rules.pop(name, None)
    rules |= draw_backfill(rng) | {"limits": draw_limits(rng)}
    if rng.random() < 0.5:
        factors = {"age": 1000, "size": 100, **given(**{"fair-share": maybe(rng, 0.5, 2000)})}
        rules |= {
            "order": "multifactor",
            "priority": {"factors": factors, "period": rng.choice(["0s", "5s"])},
        }
    if rng.random() < 0.2:
        rules["queue_options"] = {**rules.get("queue_options", {}), "queue_depth": rng.choice([1, 2, 4])}
    assert_holds(tmp_path, cluster, jobs, rules, seed)


def draw_mixed(rng, folder):
    """Return a machine of nodes of different sizes, with memory, of which there may be very much."""
    groups = [
        given(
            name=name,
            count=rng.randint(1, 3),
            cores=rng.choice([2, 4, 8]),
            gpus=maybe(rng, 0.4, 1, 2),
            memory=rng.choice(["8 GB", "100000 GB"]),
            sockets=maybe(rng, 0.3, 2),
            properties=rng.sample("pq", rng.randint(0, 2)),
        )
        for name in ("n", "m", "k")[: rng.randint(1, 3)]
    ]
    (folder / "mixed.json").write_text(json.dumps({"name": "mixed", "groups": groups}))
    return load_cluster(folder / "mixed.json")


def draw_allocation(rng, nodes):
    """Return a request whose allocation may be larger than it says, or depend on the placement."""
    count, cores = rng.randint(1, nodes), rng.randint(1, 8)
    return rng.choice(
        [
            f"node={count}{{exclusive:true}}/slot/core={cores}",
            f"slot={count}/node/core={cores}",
            f"slot={count}/node{{exclusive:false}}/core={cores}",
            f"slot={cores}/core",
            f"slot={count}/core={cores}",
            f"slot={count}/[core={cores};memory=3{{unit:GB}}]",
            f"slot={count}/[core;memory={cores}]",
            f"slot={count}/node",
            f"node={count}/slot={rng.randint(1, 2)}/core",
            "slot=1/core=1-4",
            "slot=1-3/node",
            "[slot{a}/core;slot{b}/node]",
            "slot=2/[core;gpu]",
        ]
    )


def draw_preemption(rng):
    modes = ["requeue", "cancel", "checkpoint", "suspend"]
    rule = given(mode=rng.choice(modes), grace=maybe(rng, 0.4, 2, 5), exempt=maybe(rng, 0.3, 3))
    return {"by": "queue", **rule}


def draw_reservations(rng, nodes):
    for number in range(rng.randint(1, 2)):
        yield given(
            name=f"r{number}",
            start=rng.randint(0, 40),
            duration=rng.randint(5, 20),
            nodes=rng.randint(1, nodes),
            users=rng.sample("abc", rng.randint(1, 2)),
            flex=maybe(rng, 0.3, True),
        )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_limits_and_preemption_on_nodes_of_different_sizes(tmp_path, seed):
    cluster, jobs, rules = draw_everything(seed, tmp_path)
    assert_holds(tmp_path, cluster, jobs, rules, seed)


def draw_everything(seed, folder):
    rng = random.Random(f"mixed {seed}")
    cluster = draw_mixed(rng, folder)
    nodes = len(cluster.index)
    properties = {"p": "", "q": ""}
    rules = draw_rules(rng, nodes, {})
    queues = [*rules.get("queues", ())]
    jobs = workload(*draw_jobs(rng, lambda: draw_allocation(rng, nodes), [*properties], queues))
    for name in ("candidates", "passes"):
        rules.pop(name, None)
    if rng.random() < 0.6:
        rules |= draw_backfill(rng)
    if rng.random() < 0.7:
        rules["limits"] = draw_limits(rng)
        if rng.random() < 0.4:
            amount = {
                "memory": rng.choice(["6 GB", 3]),
                "gpus": rng.randint(1, 3),
                "nodes": rng.randint(1, 3),
            }
            key = rng.choice(list(amount))
            rules["limits"] += [{"user": "b", "each": "job", key: amount[key]}]
    if queues and rng.random() < 0.4:
        rules["preemption"] = draw_preemption(rng)
        rules["queues"]["u"]["preempts"] = True
    if rng.random() < 0.25 and rules["queue_policy"] != "slack":
        rules["reservations"] = list(draw_reservations(rng, nodes))
    rules |= given(match_policy=maybe(rng, 0.4, "firstnodex", "hinodex"), kill_grace=maybe(rng, 0.2, 3))
    return cluster, jobs, rules


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_drawn(tmp_path, seed):
    assert_holds(tmp_path, *draw(seed), seed)


def assert_holds(tmp_path, cluster, jobs, rules, seed):
    whole = simulate(cluster, jobs, eventlog=True, **rules)
    written = files(whole, tmp_path / "whole")
    found = rows(whole)
    assert_clean(tmp_path / "whole", cluster, whole)
    assert_all_accounted_for(jobs.jobs, found)
    events = [json.loads(line) for line in whole.events.text().splitlines()]
    assert_replays(events, found)

    rng = random.Random(seed)
    times = [event["timestamp"] for event in events]
    until, at = (rng.choice([rng.choice(times), rng.uniform(0, times[-1])]) for _ in range(2))
    part = simulate(cluster, jobs, eventlog=True, until=until, **rules)
    begun = [line for line in whole.events.text().splitlines() if json.loads(line)["timestamp"] <= until]
    assert part.events.text().splitlines() == begun
    part.save(tmp_path / "part")
    assert_clean(tmp_path / "part", cluster, part)

    state = tmp_path / "state.json"
    saved = simulate(cluster, jobs, eventlog=True, checkpoints={at: state}, **rules)
    assert files(saved, tmp_path / "saved") == written
    resumed = simulate(cluster, jobs, eventlog=True, resume=state, **rules)
    assert files(resumed, tmp_path / "resumed") == written


def test_a_job_of_no_time_that_was_driven_out_at_once_is_no_fault(tmp_path):
    """In this draw j8 asks for no time, is preempted at its start, and waits when the run is cut short."""
    cluster, jobs, rules = draw(232)
    part = simulate(cluster, jobs, eventlog=True, until=17, **rules)
    assert rows(part)["j8"]["reason"] == "queued again once: preempted by j9"
    part.save(tmp_path / "part")
    assert_clean(tmp_path / "part", cluster, part)
