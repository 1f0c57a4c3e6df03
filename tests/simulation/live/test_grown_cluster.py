"""Nodes that join while the clock runs and that nobody knew at the beginning, and nodes that leave for good.

The law: a run to which nodes are added at a time is one in which they were down until then, to the byte.
"""

from __future__ import annotations

import random

import pytest

import simsched as ss
from simsched.errors import ClusterError, ConfigError, FormatError, SimschedError
from simsched.formats.cluster.jgf import jgf_from_object
from simsched.formats.rfc.idset import Idset
from simsched.graph import edit
from simsched.graph.build.jgf import from_jgf
from simsched.graph.cluster import Cluster
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.live.open_simulation import OpenSimulation
from tests.reference.cases import Graph, Vertex, add_node, random_request, to_jgf, to_shape
from tests.simulation.live.test_open_simulation import differences, without_later_dependencies
from tests.simulation.simworld import job, machine, workload
from tests.simulation.test_whole_configurations import draw

RACKED = {
    "name": "racked",
    "groups": [
        {
            "name": "thin",
            "hosts": "n[0-3]",
            "cores": 2,
        }
    ],
    "levels": [{"type": "rack", "count": 2}],
}
FAT = {"name": "fat", "groups": [{"name": "fat", "hosts": "fat[0-1]", "cores": 8, "gpus": 2}]}


class Case:
    """A cluster, the part of it that is there at first, and a run on either."""

    def __init__(self, cluster, later, jobs, rules, time, *, expects):
        self.small = edit.remove_nodes(cluster, Idset.from_ids(later))
        self.part = edit.restrict(cluster, Idset.from_ids(later))
        self.jobs, self.rules, self.time, self.expects = jobs, rules, time, expects

    def begin(self, cluster, **more):
        expect = self.jobs if self.expects else ()
        sim = OpenSimulation(cluster, eventlog=True, expect=expect, **more, **self.rules)
        sim.submit_all(workload(*self.jobs))
        sim.run(until=self.time)
        return sim

    def drop_refused(self):
        """Leave out the jobs that are too large at their submission: those would wait for absent nodes."""
        sim = self.begin(self.small)
        refused = {job.id for n, job in enumerate(sim.growth.jobs) if n in sim.engine.prepared.rejected}
        kept = workload(*(one for one in self.jobs if one.id not in refused))
        self.jobs = without_later_dependencies(kept).jobs


def assert_like_absent(case, *, timeline=()):
    """Compare a run that grows with the run of the large cluster whose later nodes are absent at first."""
    case.drop_refused()
    sim = case.begin(case.small)
    new = sim.add_nodes(case.part)
    sim.run(until=case.time)
    sim.cluster.index._check()
    sim.engine.plan.check()
    twin = sim.copy()
    absent = case.begin(sim.cluster, absent=new)
    absent.add(new)
    for one in (sim, twin, absent):
        one.run()
    found, other = sim.result(), absent.result()
    assert differences(found, twin.result()) == []
    assert starts(found) == starts(other)
    begins = found.timeline["time"][0] if len(found.timeline["time"]) else 0
    rows = other.timeline["time"] >= begins  # the absence has a pass of its own at time 0
    other.timeline.update({name: column[rows] for name, column in other.timeline.items()})
    assert set(differences(found, other)) <= set(timeline)
    return found, sim.cluster


def starts(result):
    return dict(zip(result.jobs["id"].tolist(), map(repr, result.jobs["start"].tolist()), strict=True))


def ranks_among(outages, ranks):
    """The outages, of these ranks only."""
    for outage in outages:
        found = [rank for rank in map(int, outage["ranks"].split(",")) if rank in ranks]
        if found:
            yield {**outage, "ranks": ",".join(map(str, found))}


@pytest.mark.parametrize("seed", range(60))
def test_nodes_that_join_were_absent_before(seed, tmp_path):
    rng = random.Random(seed)
    cluster, given, rules = draw(seed)
    count = len(cluster.index)
    later = sorted(rng.sample(range(count), rng.randint(1, count - 1)))
    if "outages" in rules:
        rules["outages"] = list(ranks_among(rules["outages"], set(range(count)) - set(later)))
    rules.pop("failures", None)  # the times of failures are drawn node by node
    jobs = without_later_dependencies(given).jobs
    case = Case(cluster, later, jobs, rules, rng.choice([0, 1, 3, 5, 10, 20, 40]), expects=seed % 2)
    try:
        found, large = assert_like_absent(case)
    except ClusterError:  # the nodes belong to queues that had no nodes in common
        assert len(rules["queues"]) > 1
        return
    report = audit_run(found.save(tmp_path / "run"), large, found.workload)
    assert report, report


def draw_racks(rng):
    """Racks, sockets and switches with nodes, and requests for all of them."""
    parts = {"cluster0": Vertex("cluster", None)}
    racks = rng.choice([1, 2, 3])
    parts.update({f"rack{number}": Vertex("rack", "cluster0") for number in range(racks)})
    sockets = rng.random() < 0.5
    nodes = rng.randint(2, 6)
    for rank in range(nodes):
        add_node(rng, parts, f"rack{rng.randrange(racks)}", rank, 3, 1, sockets=sockets)
    graph = Graph(parts)
    jobs, submit = [], 0
    while len(jobs) < 20:
        submit += rng.choice([0, 0, 1, 2, 5])
        shape, duration = to_shape(random_request(rng, graph)), rng.choice([1, 3, 8, 20, 40])
        if "-x" not in shape:
            jobs.append(job(f"j{len(jobs)}", submit, shape, rng.randint(0, duration), duration))
    return Cluster(from_jgf(jgf_from_object(to_jgf(graph)["graph"]))), nodes, jobs


@pytest.mark.parametrize("seed", range(40))
def test_nodes_join_racks(seed):
    rng = random.Random(seed)
    cluster, nodes, jobs = draw_racks(rng)
    later = sorted(rng.sample(range(nodes), rng.randint(1, nodes - 1)))
    rules = {
        "queue_policy": rng.choice(["fcfs", "easy", "conservative", "hybrid"]),
        "match_policy": rng.choice(["first", "low", "locality", "bestfit", "lonode", "hinode"]),
    }
    # the size by which a waiting job counts follows from what its request gets on the idle machine
    case = Case(cluster, later, jobs, rules, rng.choice([1, 3, 5, 10, 20, 30]), expects=seed % 2)
    assert_like_absent(case, timeline=("queued_cores", "allocations") if "locality" in rules.values() else
                       ("queued_cores",))  # fmt: skip


def test_a_job_that_never_fitted_may_fit_later():
    sim = ss.Simulation(machine(4, 2))
    early = sim.submit("slot=6/node", duration=10)
    sim.run(until=5)
    assert (early.result, early.reason) == (
        "INFEASIBLE",
        "slot/node: 6 needed, 4 available, the idle cluster holds 4",
    )
    ranks = sim.add_nodes(2, like=0, properties="new")
    late = sim.submit("slot=6/node", duration=10)
    placed = sim.submit(ss.Jobspec.from_shape("slot=2/node", duration=5, constraint="new"))
    sim.run()
    assert (ranks, late.start, placed.start) == ([4, 5], 5, 15)
    assert placed.R.to_dict()["execution"]["nodelist"] == ["n[4-5]"]
    assert early.result == "INFEASIBLE"
    assert sim.result().meta["cluster"] == {
        "name": "machine",
        "targets": 6,
        "totals": {"node": 6, "core": 12},
    }
    assert sim.result().meta["config"]["outages"] == [
        {"ranks": "4-5", "start": 0, "end": 5, "kind": "drain", "note": "absent"}
    ]
    assert sim.result().timeline["down_node"].tolist() == [2, 0, 0, 0]
    assert sim.audit(), sim.audit()


def test_a_running_job_and_its_events_go_on():
    sim = ss.Simulation(machine(2, 2), "conservative")
    runs = sim.submit("slot=2/node", duration=50, runtime=30)
    waits = sim.submit("slot=3/core", duration=10)
    told = []
    sim.on("start", lambda job: told.append((sim.now, job.id)))

    def grows():
        yield sim.env.timeout(10)
        sim.add_nodes("n[7-8]", like=1)
        yield waits.ended
        told.append((sim.now, "seen"))

    sim.env.process(grows())
    before = runs.R.to_dict() if runs.start is not None else None
    assert before is None
    sim.run(until=waits.started)
    assert sim.now == 10
    assert runs.R.to_dict()["execution"]["nodelist"] == ["n[0-1]"]
    assert waits.R.to_dict()["execution"]["nodelist"] == ["n[7-8]"]
    sim.run()
    assert told == [(0, 1), (10, 2), (20, "seen")]
    assert runs.end == 30
    assert sim.audit(), sim.audit()


def test_a_description_joins_what_it_names():
    sim = ss.Simulation(Cluster(from_recipe(RACKED)))
    sim.submit("rack{x}", duration=20)
    more = {**RACKED, "groups": [{**RACKED["groups"][0], "hosts": "n[4-7]"}]}
    sim.run(until=5)
    assert sim.add_nodes(more) == [4, 5, 6, 7]
    assert sim.add_nodes(FAT, under="rack1", properties=["fat"]) == [8, 9]
    inside = sim.submit("rack{x}", duration=5)
    sim.run(until=6)
    index = sim.cluster.index
    assert [index.hosts[n] for n in index.members("rack", 0, "node")] == ["n0", "n1", "n4", "n5"]
    assert [index.hosts[n] for n in index.members("rack", 1, "node")] == [
        "n2",
        "n3",
        "n6",
        "n7",
        "fat0",
        "fat1",
    ]
    assert (inside.start, sim.free()["core"]) == (
        5,
        0,
    )  # the nodes that joined a claimed rack belong to its job
    sim.run(until=20)
    assert sim.free()["node"] == 10
    assert sim.result().timeline["down_gpu"].tolist()[0] == 4
    assert sim.audit(), sim.audit()


def from_recipe(document):
    from simsched.graph.build.cluster_files import graph_from_document

    return graph_from_document(document)


def test_a_grown_simulation_is_saved_and_restored(tmp_path):
    sim = ss.Simulation(machine(3, 2), "easy", eventlog=True)
    jobs = [
        sim.submit(f"slot={1 + n % 3}/node", duration=20, runtime=5 + n // 2, at=3 * n) for n in range(20)
    ]
    sim.run(until=10)
    sim.add_nodes(2, like="n1")
    sim.run(until=20)
    sim.checkpoint(tmp_path / "state.json")
    sim.add_nodes(FAT)
    sim.remove_nodes("0-1")
    sim.run(until=25)
    sim.checkpoint(tmp_path / "late.json.gz")
    for name, added in (("state.json", False), ("late.json.gz", True)):
        again = ss.Simulation.restore(tmp_path / name, machine(3, 2), "easy", eventlog=True)
        if not added:
            again.add_nodes(FAT)
            again.remove_nodes("0-1")
        again.run()
        twin = sim.copy()
        twin.run()
        assert differences(again.result().result, twin.result().result) == []
        assert again.job(jobs[-1].id).result == "COMPLETED"
        assert again.audit(), again.audit()
    with pytest.raises(SimschedError, match="a checkpoint of another cluster"):
        ss.Simulation.restore(tmp_path / "state.json", sim.cluster, "easy", eventlog=True)


def test_a_copy_and_a_checkpoint_know_nodes_that_join_in_this_instant(tmp_path):
    sim = ss.Simulation(machine(2, 1))
    sim.submit("slot=1/node", duration=20)
    sim.run(until=5)
    sim.add_nodes(1, like=0)
    sim.add_nodes(2, like=0)
    sim.checkpoint(tmp_path / "state.json")
    found = []
    for one in (sim.copy(), ss.Simulation.restore(tmp_path / "state.json", machine(2, 1)), sim):
        job = one.submit("slot=5/node", duration=10)
        ranks = one.add_nodes(1, like=0)
        one.run()
        found.append((ranks, job.start, len(one.cluster.index.ranks), bool(one.audit())))
    assert found == [([5], 5, 6, True)] * 3, found


def test_an_allocations_file_goes_on(tmp_path):
    with (tmp_path / "lines").open("w+b") as sink:
        sim = OpenSimulation(machine(2, 1), sink=sink)
        for n in range(4):
            sim.submit(workload(job(f"j{n}", n, "slot=1/node", 3)).jobs[0])
        sim.run(until=2)
        sim.add_nodes(1, like=0)
        sim.run()
        whole = b"".join(sim.engine.recorder.log.so_far())
    assert whole.count(b'"alloc"') == whole.count(b'"release"') == 4


def test_random_failures_reach_new_nodes():
    sim = ss.Simulation(machine(1, 1), failures="mtbf=50,mttr=1", seed=3)
    sim.submit("slot=1/node", duration=5)
    sim.run(until=1)
    sim.add_nodes(30, like=0)
    for n in range(20):
        sim.submit("slot=10/node", duration=20, at=2 + n)
    sim.run(until=200)
    ranks = set(sim.result().result.tables["failures"]["rank"].tolist())
    assert len(ranks) > 10
    assert sim.audit(), sim.audit()


@pytest.mark.parametrize(("jobs", "result", "reason"), [
    ("run", ("COMPLETED", 0, 20), None),
    ("requeue", ("COMPLETED", 10, 30), "queued again once: removed of n0"),
    ("fail", ("FAILED", 0, 10), "removed of n0"),
])  # fmt: skip
def test_jobs_on_nodes_that_leave(jobs, result, reason):
    sim = ss.Simulation(machine(3, 1))
    hit = sim.submit("slot=1/node", duration=20)
    other = sim.submit("slot=1/node", duration=20)
    sim.run(until=10)
    sim.remove_nodes(0, jobs=jobs)
    wide = sim.submit("slot=3/node", duration=5)
    fits = sim.submit("slot=2/node", duration=5)
    sim.run()
    assert ((hit.result, hit.start, hit.end), hit.reason) == (result, reason)
    assert other.result == fits.result == "COMPLETED"
    assert (wide.result, wide.reason) == (
        "INFEASIBLE",
        "slot/node: 3 needed, 2 available, the part that is up holds 2",
    )
    sim.add(0)
    again = sim.submit("slot=3/node", duration=5)
    sim.run()
    assert again.result == "COMPLETED"
    assert sim.audit(), sim.audit()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda sim: sim.add_nodes(None), "nodes is None"),
        (
            lambda sim: sim.add_nodes(2),
            "nodes is 2 (expected like=, a node to copy, or a description of the nodes)",
        ),
        (lambda sim: sim.add_nodes(0, like=0), "hosts is 0 (expected a whole number from 1 to"),
        (lambda sim: sim.add_nodes("n[0-1]", like=0), "there is already a target called 'n0'"),
        (lambda sim: sim.add_nodes("x[0-1]", like=9), "no execution target has rank 9"),
        (lambda sim: sim.add_nodes("x[0-1]", like=-1), "like is -1 (expected a whole number of 0 or more)"),
        (lambda sim: sim.add_nodes("x[0-1]", like=True), "like is True (expected a whole number of 0 or"),
        (lambda sim: sim.add_nodes("x[0-1]", like="q"), "no execution target is called 'q'"),
        (
            lambda sim: sim.add_nodes("x0", like=0, under="rack9"),
            "no vertex above the nodes is called 'rack9'",
        ),
        (lambda sim: sim.add_nodes("x0", like=0, under=5), "under is 5 (expected the path or the name of a"),
        (lambda sim: sim.add_nodes(RACKED), "there is already a target called 'n0'"),
        (lambda sim: sim.add_nodes({"a": 1}), "this is not a description of a cluster"),
        (lambda sim: sim.add_nodes("x0", like=0, properties=5), "properties is 5"),
        (lambda sim: sim.remove_nodes(9), "the cluster has no rank 9"),
        (lambda sim: sim.remove_nodes(0, jobs="kill"), "jobs is 'kill' (expected run, requeue, fail)"),
    ],
)
def test_wrong_additions(act, message):
    sim = ss.Simulation(machine(2, 1))
    before = sim.cluster
    with pytest.raises((ClusterError, ConfigError, FormatError)) as told:
        act(sim)
    assert str(told.value).startswith(message)
    sim.run()
    assert sim.cluster is before


def test_units_that_would_be_counted_otherwise_are_refused():
    memory = {"name": "m", "groups": [{"name": "g", "hosts": "n[0-1]", "cores": 1,
                                       "memory": "4 GB"}]}  # fmt: skip
    other = {**memory, "groups": [{**memory["groups"][0], "hosts": "x0",
                                   "memory": "512 MB"}]}  # fmt: skip
    sim = ss.Simulation(Cluster(from_recipe(memory)))
    with pytest.raises(ClusterError, match="resources of type 'memory' would be counted in another way"):
        sim.add_nodes(other)


def test_suspended_jobs_go_on_where_they_were_although_nodes_joined():
    queues = {"low": {"priority": 1}, "high": {"priority": 2, "preempts": True}}
    sim = ss.Simulation(Cluster(from_recipe(RACKED)), queues=queues, preemption={"mode": "suspend"})
    nodes = len(sim.cluster.index)
    low = [sim.submit("slot/core", duration=100, runtime=100, queue="low") for _ in range(2 * nodes)]
    sim.run(until=10)
    before = [one.R.to_dict()["execution"]["R_lite"] for one in low]
    sim.submit(f"slot={nodes}/node", duration=20, runtime=20, queue="high")
    sim.run(until=12)
    assert any(one.suspended for one in low)
    sim.add_nodes(1, like=0)
    sim.run(until=60)
    assert [one.R.to_dict()["execution"]["R_lite"] for one in low] == before
    sim.run()
    assert sim.audit(), sim.audit()
