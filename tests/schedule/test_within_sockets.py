"""Requests within sockets: the kernel counts them, and reservations are those of the general search."""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.schedule import graph_supply
from simsched.schedule.profiles import general_reservations
from simsched.simulation.outages.outages import MAINTENANCE, Outage
from simsched.simulation.simulate import simulate
from tests.reference.plain_supply import SearchedSupply

SHAPES = (
    "node={k}/socket/slot={n}/core",
    "node={k}/slot=2/socket{{-x}}/core={n}",
    "node={k}/socket=2/slot=1/core={n}",
    "node={k}{{x}}/socket=2/slot=1/core={n}",
    "slot={k}/socket",
    "slot={k}/socket/[core={n};gpu=1]",
    "slot={k}/socket=2{{-x}}/core={n}",
    "slot={k}/node/socket=2/core={n}",
    "slot={k}/[socket{{-x}}/core={n};memory=4{{unit:GiB}}]",
    "slot={k}/numa{{-x}}/core={n}",
    "slot={k}/numa",
    "slot={n}/[core;memory=2{{unit:GiB}}]",
    "slot={k}/core={n}",
    "slot={k}/node",
)
POLICIES = (
    ("conservative", {}),
    ("conservative", {"compress": "start"}),
    ("conservative", {"compress": "replan"}),
    ("hybrid", {"depth": 2}),
    ("selective", {"threshold": 1.5}),
    ("slack", {"factor": 1.0}),
    ("slurm", {"interval": 30, "resolution": 60}),
    ("easy", {}),
)


def site(rng, folder):
    """A machine whose nodes have two sockets, perhaps with NUMA domains, and some other nodes."""
    inside = rng.choice(("sockets: 2", "locality: [{type: socket, count: 2}, {type: numa, count: 2}]"))
    path = folder / "site.yaml"
    path.write_text(
        "groups:\n"
        f"  - {{name: a, count: {rng.randint(2, 6)}, {inside}, cores: 8, memory: 16 GiB, gpus: 4}}\n"
        f"  - {{name: b, count: {rng.randint(1, 3)}, sockets: 2, cores: 4, memory: 32 GiB}}\n"
    )
    return ss.load_cluster(path)


def crowd(rng, jobs=40):
    """Jobs of a few kinds, of which more wait than fit; most end early."""
    shapes, made, now = rng.sample(SHAPES, 5), [], 0
    for number in range(jobs):
        now += rng.choice([0, 0, 1, rng.randint(1, 40)])
        runtime = rng.randint(0, 200)
        duration = runtime + rng.choice([1, 1, 60, 400])
        shape = rng.choice(shapes).format(k=rng.randint(1, 4), n=rng.choice([1, 2, 3, 4]))
        jobspec = ss.Jobspec.from_shape(shape, duration=duration)
        made.append(ss.Job(id=number, submit=now, runtime=runtime, duration=duration, jobspec=jobspec))
    return ss.Workload(jobs=tuple(made), name="sockets")


def drawn(seed, folder):
    """A case: the machine, the jobs, a queue policy with its options, and options of the run."""
    rng = random.Random(seed)
    policy, options = POLICIES[seed % len(POLICIES)]
    given = {"queue_options": options, "match_policy": rng.choice(("first", "lonode", "hinode", "variation"))}
    if rng.random() < 0.3:
        given["overrun"] = "allow"
    if rng.random() < 0.3:
        given["outages"] = (Outage(ss.Idset.parse("0"), 100, 300, MAINTENANCE),)
    return site(rng, folder), crowd(rng), policy, given


def records(result):
    """Starts and allocations; whole seconds are written as 5 or as 5.0."""
    return result.log.text().replace(".0,", ",").replace(".0}", "}")


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.quick(16)
@pytest.mark.filterwarnings("ignore::simsched.errors.InputWarning")  # some jobs never fit
def test_reservations_of_the_kernel_are_those_of_the_general_search(seed, tmp_path, monkeypatch):
    cluster, workload, policy, given = drawn(seed, tmp_path)
    asked = []
    made = general_reservations.GeneralReservations.__init__
    monkeypatch.setattr(
        general_reservations.GeneralReservations, "__init__", lambda *a: asked.append(1) or made(*a)
    )
    found = simulate(cluster, workload, policy, **given)
    assert not asked  # the kernel decides alone
    monkeypatch.setattr(graph_supply, "GraphSupply", SearchedSupply)
    expected = simulate(cluster, workload, policy, **given)
    assert bool(asked) == (policy != "easy")
    assert records(found) == records(expected)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.quick(6)
@pytest.mark.filterwarnings("ignore::simsched.errors.InputWarning")
def test_a_run_resumes_with_the_sockets_that_are_reserved(seed, tmp_path):
    cluster, workload, policy, given = drawn(seed, tmp_path)
    file = tmp_path / "checkpoint.json"
    whole = simulate(cluster, workload, policy, checkpoints={150: file}, **given)
    again = simulate(cluster, workload, policy, resume=file, **given)
    for name, column in whole.jobs.items():
        assert list(map(str, again.jobs[name])) == list(map(str, column)), name
