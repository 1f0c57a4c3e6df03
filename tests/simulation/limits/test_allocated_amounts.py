"""Limits count what a job is allocated, which may be more than its request names."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.simulation.audit.auditor import audit_run
from tests.simulation.simworld import job, machine, starts, workload

MIXED = {
    "name": "mixed",
    "groups": [{"name": "a", "count": 2, "cores": 4}, {"name": "b", "count": 4, "cores": 8, "gpus": 2}],
}
#: the smaller nodes are behind the others, so that the order of the graph takes the larger ones
LARGE_FIRST = {"name": "mixed", "groups": MIXED["groups"][::-1]}
POLICIES = ("fcfs", "easy", "conservative", "hybrid", "slack", "slurm")


@pytest.fixture
def load(tmp_path):
    """Makes a cluster from a recipe."""

    def made(recipe):
        (tmp_path / "cluster.json").write_text(json.dumps(recipe))
        return ss.load_cluster(tmp_path / "cluster.json")

    return made


@pytest.fixture
def ran(load, tmp_path_factory):
    """Runs jobs, audits the run, and returns id → (start, cores, result, reason)."""

    def run(cluster, *jobs, **options):
        cluster, given = load(cluster) if isinstance(cluster, dict) else cluster, workload(*jobs)
        made = ss.simulate(cluster, given, **options)
        path = tmp_path_factory.mktemp("runs") / "run"
        made.save(path)
        report = audit_run(path, cluster, given)
        assert report, str(report)
        rows = made.jobs
        names = ("start", "cores", "result", "reason")
        return {
            name: values for name, *values in zip(rows["id"], *(rows[name] for name in names), strict=True)
        }

    return run


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("shape", "options", "limit", "takes"),
    [
        ("slot=1/core", {"match_policy": "firstnodex"}, {"cores": 7}, "8 cores"),
        ("slot=20/core", {"match_policy": "lonodex"}, {"nodes": 2}, "3 nodes"),
        ("slot=1/core", {"match_policy": "hinodex"}, {"gpus": 1}, "2 gpus"),
        ("slot=1/core", {"match_policy": "firstnodex"}, {"core-hours": 79 / 3600}, "0.0222222 core-hours"),
        ("slot=2/core", {"match_policy": "firstnodex"}, {"memory": 100}, "512 units of memory"),
        ("node=2{exclusive:true}/slot=1/core=3", {}, {"cores": 15}, "16 cores"),
        ("slot=2/node/core=3", {}, {"cores": 15}, "16 cores"),
        ("slot=20/core", {}, {"nodes": 2}, "3 nodes"),
        ("slot=3/[core=5]", {}, {"nodes": 2}, "3 nodes"),
    ],
)
@pytest.mark.parametrize("each", ["user", "job"])
def test_a_job_whose_least_allocation_is_above_a_limit_is_rejected(ran, shape, options, limit, takes, each):
    cluster = {"name": "c", "groups": [{"name": "n", "count": 4, "cores": 8, "gpus": 2, "memory": 512}]}
    found = ran(cluster, job("a", 0, shape, 10, user="u"), limits=[{"each": each, **limit}], **options)
    assert found["a"][2] == "FAILED"
    assert f"the job takes at least {takes}" in found["a"][3]
    ((key, value),) = limit.items()
    more = {key: value * 1.02 if "hours" in key else int(takes.split()[0])}
    found = ran(cluster, job("a", 0, shape, 10, user="u"), limits=[{"each": each, **more}], **options)
    assert found["a"][2] == "COMPLETED"


@pytest.mark.parametrize(
    ("most", "fits"),
    [({"cores": 23}, False), ({"cores": 24}, True), ({"gpus": 5}, False), ({"gpus": 6}, True)],
)
def test_the_least_counts_the_nodes_that_can_host_the_request(ran, load, most, fits):
    """Five cores need a node of eight: three whole nodes have 24 cores and 6 gpus."""
    request = "node=3{exclusive:true}/slot=1/core=5"
    found = ran(MIXED, job("a", 0, request, 10), limits=[{"each": "job", **most}])
    assert (found["a"][2] == "COMPLETED") == fits
    config = {"limits": [{"each": "job", **most}]}
    assert bool(ss.feasible(load(MIXED), ss.Jobspec.from_shape(request), config=config)) == fits
    size = {"max": {"n" + key: value for key, value in most.items()}}
    config = {"queues": {"q": {"policy": {"limits": {"job-size": size}}}}}
    answer = ss.feasible(load(MIXED), ss.Jobspec.from_shape(request), config=config, queue="q")
    assert bool(answer) == fits


def test_why_counts_the_memory_of_whole_nodes(load, tmp_path):
    """The least is no memory, and the free node has 16."""
    groups = [{"name": "a", "count": 2, "cores": 4, "memory": 16}, {"name": "b", "count": 1, "cores": 4}]
    cluster = load({"name": "c", "groups": groups})
    jobs = [job(name, at, "slot=1/core", 10, user="u") for at, name in enumerate("abc")]
    options = {"match_policy": "firstnodex", "limits": [{"each": "user", "memory": 20}]}
    found = ss.simulate(cluster, workload(*jobs), **options)
    assert starts(found) == {"a": 0, "b": 10, "c": 20}
    found.save(tmp_path / "run")
    for name in "bc":
        answer = ss.load_run(tmp_path / "run").why(name, cluster, workload(*jobs))
        assert {period.cause for period in answer.periods} == {"limit memory of user u"}
        assert "16 units of memory are used" in str(answer)


def test_feasible_counts_whole_nodes_under_the_match_policy_of_the_configuration():
    config = {"match-policy": "firstnodex", "limits": [{"each": "job", "cores": 3}]}
    answer = ss.feasible("tiny", ss.Jobspec.from_shape("slot=1/core"), config=config)
    assert not answer
    assert "a job may use at most 3 cores, the job takes at least 4 cores" in str(answer.reasons)


def test_the_least_of_different_nodes_is_exact(ran):
    """Six copies of two cores: nodes of 4 cores host two for 4, nodes of 8 four for 8: 12 cores at least.

    The order of the graph takes two small nodes and a large one.
    """
    shape, options = "slot=6/core=2", {"match_policy": "firstnodex"}
    for most, result in ((11, "FAILED"), (12, "PENDING"), (16, "COMPLETED")):
        found = ran(MIXED, job("a", 0, shape, 10), limits=[{"cores": most}], **options)
        assert found["a"][2] == result


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "limit", [{"user": "u", "each": "job", "cores": 4}, {"user": "u", "cores": 7}, {"nodes": 9, "cores": 15}]
)
def test_a_start_whose_allocation_would_break_the_limit_does_not_happen(ran, policy, limit):
    """The first free node has 8 cores; only once those are taken, one of 4 cores is the first."""
    options = {"queue_policy": policy, "match_policy": "firstnodex", "limits": [limit]}
    first = job("first", 0, "slot=1/core", 10, user="u")
    found = ran(LARGE_FIRST, first, job("other", 5, "slot=1/core", 10, user="u"), **options)
    if "nodes" in limit:
        assert [found[name][:2] for name in ("first", "other")] == [[0, 8], [10, 8]]
        return
    for row in found.values():
        assert row[2] == "PENDING"
        assert "the free resources for the job have 8 cores" in row[3]
    blocker = job("all", 0, "slot=4/[core=8]", 50, user="w")
    found = ran(LARGE_FIRST, blocker, job("a", 5, "slot=1/core", 10, user="u"), **options)
    assert found["a"][:3] == [5, 4, "COMPLETED"]


@pytest.mark.quick(2)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_is_tried_again_once_it_may_get_other_nodes(ran, load, policy):
    """Jobs that start after it in the same pass, or a drain, leave smaller nodes as the first free ones."""
    options = {"queue_policy": policy, "match_policy": "firstnodex", "limits": [{"user": "u", "cores": 7}]}
    small = job("a", 0, "slot=1/core", 10, user="u")
    found = ran(LARGE_FIRST, small, job("all", 0, "slot=4/[core=8]", 50, user="w"), **options)
    assert [found[name][:2] for name in ("a", "all")] == [[0, 4], [0, 32]]
    sim = ss.Simulation(load(LARGE_FIRST), **options)
    waits = sim.submit("slot=1/core", 10, user="u")
    sim.run(until=20)
    assert waits.start is None
    sim.drain("0-3")
    sim.run()
    assert waits.start == 20
    assert sim.audit()


@pytest.mark.parametrize("policy", POLICIES)
def test_limits_on_nodes_count_the_nodes_that_cores_are_on(ran, policy):
    """Two jobs of 6 cores on nodes of 4: two nodes each, of at most three."""
    jobs = [job(name, 0, "slot=6/core", 10, user="u") for name in ("a", "b")]
    found = ran(machine(4, 4), *jobs, queue_policy=policy, limits=[{"each": "user", "nodes": 3}])
    assert [found[name][0] for name in ("a", "b")] == [0, 10]


@pytest.mark.parametrize("policy", ["easy", "slurm", "conservative"])
def test_an_open_simulation_counts_alike(policy, load):
    cluster = load(LARGE_FIRST)
    options = {"queue_policy": policy, "match_policy": "firstnodex"}
    limits = [{"each": "user", "cores": 12}, {"core-hours": 0.15}]
    jobs = [
        job(str(at), 3 * at, f"slot={1 + at % 3}/core={3 + at % 4}", 9 + at % 5, 20, user=f"u{at % 2}")
        for at in range(25)
    ]
    whole = ss.simulate(cluster, workload(*jobs), limits=limits, **options)
    assert set(whole.jobs["result"]) == {"COMPLETED", "PENDING"} or set(whole.jobs["result"]) >= {"COMPLETED"}
    sim = ss.Simulation(cluster, limits=limits, **options)
    for one in jobs:
        sim.run(until=one.submit)
        sim.submit(one)
    sim.run()
    assert starts(sim.result()) == starts(whole)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_that_overran_its_request_uses_up_a_limit_at_its_end(ran, policy):
    """It requested 10 core-seconds and used 30, so that 5 of the 20 are left that the next job asks for."""
    jobs = [job("a", 0, "slot=1/core", 30, 10), job("b", 1, "slot=1/core", 20)]
    options = {"queue_policy": policy, "overrun": "allow", "limits": [{"core-hours": 35 / 3600}]}
    found = ran(machine(1, 1), *jobs, **options)
    assert [found[name][2] for name in ("a", "b")] == ["COMPLETED", "PENDING"]
    assert "may use 0.00972222 core-hours" in found["b"][3]


def test_a_run_goes_on_in_which_only_limits_on_single_jobs_count_a_running_job(load, tmp_path):
    """The job runs at the time of the checkpoint and of the copy, and no counter of several jobs has it."""
    cluster, limits = load(LARGE_FIRST), [{"each": "job", "cores": 9}]
    jobs = workload(
        job("a", 0, "slot=1/core=3", 20), job("b", 1, "slot=1/node", 20), job("c", 9, "slot=9/core", 5)
    )
    options = {"match_policy": "firstnodex", "limits": limits}
    whole = ss.simulate(cluster, jobs, checkpoints={5: tmp_path / "state"}, **options)
    assert starts(whole) == {"a": 0, "b": 1}  # c would take two nodes
    assert starts(ss.simulate(cluster, jobs, resume=tmp_path / "state", **options)) == starts(whole)
    sim = ss.Simulation(cluster, **options)
    sim.submit_all(jobs)
    sim.run(until=5)
    twin = sim.copy()
    twin.run()
    assert starts(twin.result()) == starts(whole)


@pytest.mark.parametrize("options", [{}, {"refresh": "when-blocked"}])
def test_a_start_that_a_limit_refuses_takes_nothing_from_the_reservation(load, options):
    """X would get 8 cores, and its limit is 4. One of four nodes is left over at 50 s, so Y may start."""
    groups = [("a", 2, 8, []), ("s", 1, 4, ["p"]), ("b", 1, 8, ["p"]), ("c", 1, 8, ["q"])]
    keys = ("name", "count", "cores", "properties")
    cluster = load({"groups": [dict(zip(keys, group, strict=True)) for group in groups]})
    jobs = [
        ss.Job(id_, at, ss.Jobspec.from_shape(shape, duration=limit, constraint=of), limit, limit, user=user)
        for id_, at, shape, limit, of, user in (
            ("S", 0, "slot=1/node", 300, "p", "v"),
            ("A", 0, "slot=2/node", 50, None, "v"),
            ("F", 1, "slot=3/node", 10, None, "v"),
            ("X", 2, "slot=1/node", 200, "p", "u"),
            ("Y", 2, "slot=1/node", 200, "q", "v"),
        )
    ]
    made = ss.simulate(cluster, ss.Workload(jobs), queue_options=options, limits=[{"user": "u", "cores": 4}])
    assert starts(made) == {"S": 0, "A": 0, "F": 50, "X": 300, "Y": 2}


def test_a_refused_job_looks_again_when_a_job_ends_though_its_nodes_clean_up(load):
    """B may not have the 4 cores of s beside the 2 of A, which ends at 5; those of A clean up until 9."""
    groups = [{"name": "b", "count": 1, "cores": 2}, {"name": "s", "count": 1, "cores": 4}]
    jobs = [
        ss.Job("A", 0, ss.Jobspec.from_shape("slot=2/core", duration=5), 5, 5, user="u"),
        ss.Job("B", 1, ss.Jobspec.from_shape("slot=1/node", duration=5), 5, 5, user="u"),
    ]
    made = ss.simulate(
        load({"groups": groups}), ss.Workload(jobs), epilog=4, limits=[{"user": "u", "cores": 5}]
    )
    assert starts(made) == {"A": 0, "B": 5}
