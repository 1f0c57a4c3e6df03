"""Mixed sites: the kernel and the plain matcher give one answer.

Clusters with sockets, NUMA domains, memory, gpus, racks and licences, and requests of every form are drawn
from a seed. A run with the plain supply, which asks the matcher for each candidate, has the same start times
and the same R.
"""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

import simsched as ss
from simsched.errors import SimschedError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.idset import Idset
from simsched.graph.cluster import load_cluster
from simsched.match.counted_kinds import CountedKinds, counted
from simsched.match.policies.policy import POLICIES, find_policy
from simsched.match.requests.compile import compile_request
from simsched.match.search.counts import capacity
from simsched.match.search.descend import Descent
from simsched.match.search.select import could_fit, select
from simsched.match.state.availability import Availability
from simsched.match.state.masks import listed
from simsched.schedule import graph_supply
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.outages.outages import KINDS, Outage
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job, Workload
from tests.reference.plain_supply import PlainSupply

PARTITIONS = ("batch", "long", "debug")
INSIDE = ("", "sockets: 2, ", "locality: [{type: socket, count: 2}, {type: numa, count: 2}], ")


def drawn_cluster(rng, folder):
    inside = rng.choice(INSIDE)
    groups = []
    for number in range(rng.randint(1, 3)):
        gpus, memory = rng.choice([0, 0, 2, 4]), rng.choice([0, 16, 64])
        names = ", ".join(sorted(rng.sample(PARTITIONS, rng.randint(1, 2))))
        groups.append(
            f"  - {{name: g{number}x, count: {rng.randint(1, 8)}, {inside}cores: {rng.choice([4, 8, 16])}"
            + (f", gpus: {gpus}" if gpus else "")
            + (f", memory: {memory} GiB" if memory else "")
            + f", properties: [{names}]}}"
        )
    text = "levels: [{type: rack, count: 2}]\n" if rng.random() < 0.25 else ""
    text += "pools: [{type: licence, size: 6}]\n" if rng.random() < 0.2 else ""
    path = folder / "site.yaml"
    path.write_text(text + "groups:\n" + "\n".join(groups) + "\n")
    return load_cluster(path)


def drawn_shape(rng):
    n, k = rng.choice([1, 1, 2, 3, 4, 8]), rng.choice([1, 1, 2, 3])
    return rng.choice(
        [
            f"slot={n}/core",
            f"slot={n}/[core;memory=2{{unit:GB}}]",
            f"slot={n}/[core=2;memory=3{{unit:GB}}]",
            f"slot={n}/[core=2;gpu;memory=4{{unit:GB}}]",
            f"slot={n}/[core=2;licence=1]",
            f"slot={n}/socket/core=2",
            f"slot={n}-{n + 3}/core",
            f"slot={k}/node",
            f"slot={k}-{k + 2}/node",
            f"slot={k}/socket",
            f"node={k}",
            f"node={k}{{x}}",
            f"node={k}{{x}}/slot=2/core",
            f"node={k}/slot=2/[core=2;memory=4{{unit:GB}}]",
            f"node={k}/socket=2/slot=1/core=2",
            f"rack/slot={k}/node",
        ]
    )


def drawn_specs(rng):
    specs = []
    while len(specs) < 6:
        constraint = rng.choice([None, None, "batch", "long", "-debug", "batch|debug"])
        try:
            specs.append((Jobspec.from_shape(drawn_shape(rng), constraint=constraint), constraint))
        except SimschedError:
            continue
    return specs


def drawn_workload(rng, count):
    submit, jobs, specs = 0, [], drawn_specs(rng)
    gap = rng.choice([5, 20, 60])
    for number in range(count):
        submit += int(rng.expovariate(1 / gap)) if rng.random() < 0.8 else 0
        runtime = rng.choice([0, 1, 10, 60, 300, 1000, int(rng.lognormvariate(5, 1.2))])
        limit = rng.choice([runtime, runtime + 1, 2 * runtime + 30, 1000, 3000])
        spec, constraint = rng.choice(specs)
        jobs.append(
            Job(
                id=number + 1,
                submit=submit,
                runtime=runtime,
                duration=limit,
                jobspec=Jobspec.from_shape(spec.to_shape(), constraint=constraint, duration=limit),
                user=f"u{rng.randint(0, 4)}",
                cancel_at=submit + rng.randint(1, 500) if rng.random() < 0.04 else None,
            )
        )
    return Workload(jobs=tuple(jobs), name="mixed")


def drawn_outages(rng, nodes, end):
    found = []
    for _ in range(rng.randint(0, 3) if rng.random() < 0.4 else 0):
        begin = rng.randint(0, max(1, end))
        ranks = Idset.parse(str(rng.randint(0, nodes - 1)))
        found.append(Outage(ranks, begin, begin + rng.randint(1, 2000), rng.choice(KINDS)))
    return tuple(found)


def drawn_options(rng, cluster, workload):
    options = {
        "queue_policy": rng.choice(["fcfs", "easy", "easy", "easy", "hybrid"]),
        "match_policy": rng.choice([name for name in POLICIES if name != "random"]),
        "order": rng.choice(["fifo", "fifo", "wfp3", "fairshare", "sjf"]),
        "outages": drawn_outages(rng, len(cluster.index), workload.jobs[-1].submit),
        "overrun": rng.choice(["timeout", "timeout", "allow"]),
        "candidates": rng.choice(["requested", "requested", "requested", "actual"]),
        "epilog": rng.choice([(0, 0), (0, 0), (0, 40)]),
    }
    if options["queue_policy"] == "easy":
        queue_options = rng.choice(
            [{}, {}, {"extra": False}, {"refresh": "when-blocked"}, {"queue_depth": 3}]
        )
        options["queue_options"] = queue_options
    return options


def records(result):
    """The job table and the allocations of a run, as texts."""
    return {name: list(map(str, column)) for name, column in result.jobs.items()}, result.log.text()


def test_a_kept_shadow_tells_units_by_their_ids(tmp_path):
    """A job may fit beside the first by numbers, on units whose ids are not free in the kept state."""
    (tmp_path / "c.yaml").write_text(
        "groups: [{name: n, count: 10, sockets: 2, cores: 4, gpus: 4, memory: 64 GiB, properties: [long]}]"
    )
    pairs = "slot=8/[core=2;memory=3{unit:GB}]"
    rows = [
        (230, pairs, 3000, 10, None), (230, "slot=3/core", 476, 223, "long"), (237, pairs, 301, 300, None),
        (336, "slot=1-4/core", 300, 300, None), (336, "slot=3/core", 301, 300, "long"),
        (441, pairs, 141, 140, None), (515, "slot=4/core", 146, 58, None),
    ]  # fmt: skip
    jobs = [
        Job(
            id=n,
            submit=submit,
            runtime=runtime,
            duration=limit,
            jobspec=Jobspec.from_shape(shape, duration=limit, constraint=constraint),
            urgency=20 if n == 6 else 16,
        )
        for n, (submit, shape, limit, runtime, constraint) in enumerate(rows)
    ]
    found = simulate(
        load_cluster(tmp_path / "c.yaml"), Workload(jobs=tuple(jobs), name="kept"),
        queue_policy="easy", queue_options={"refresh": "when-blocked"}, order="lxf", match_policy="low",
        candidates="actual",
    )  # fmt: skip
    assert found.jobs["start"].tolist() == [230, 230, 237, 336, 336, 537, 537]


def check(seed, folder, monkeypatch, count):
    rng = random.Random(seed)
    cluster = drawn_cluster(rng, folder)
    workload = drawn_workload(rng, count)
    options = drawn_options(rng, cluster, workload)
    quick = simulate(cluster, workload, **options)
    with monkeypatch.context() as patch:
        patch.setattr(graph_supply, "GraphSupply", PlainSupply)
        slow = simulate(cluster, workload, **options)
    assert records(quick) == records(slow)
    if find_policy(options["match_policy"]).whole_nodes:
        return  # the audit expects as many whole sockets as are requested, not those of the whole node
    with RunDirectory(folder / "run") as directory:
        directory.finish(quick, {})
    report = audit_run(folder / "run", cluster, workload)
    assert report, str(report)


@pytest.mark.parametrize("seed", range(12))
def test_a_run_equals_one_where_the_matcher_is_asked_for_every_candidate(seed, tmp_path, monkeypatch):
    check(seed, tmp_path, monkeypatch, count=40)


@pytest.mark.parametrize("seed", range(12))
def test_a_run_without_allocations_has_the_same_jobs(seed, tmp_path):
    rng = random.Random(seed)
    cluster = drawn_cluster(rng, tmp_path)
    workload = drawn_workload(rng, 40)
    options = drawn_options(rng, cluster, workload)
    if options["queue_policy"] != "fcfs":
        options["queue_policy"] = "easy"
    full, bare = (simulate(cluster, workload, allocations=each, **options) for each in (True, False))
    for one, other in ((full.jobs, bare.jobs), (full.timeline, bare.timeline)):
        assert {name: list(map(str, column)) for name, column in one.items()} == {
            name: list(map(str, column)) for name, column in other.items()
        }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_runs_equal_those_where_the_matcher_is_asked_for_every_candidate(seed, tmp_path, monkeypatch):
    check(seed, tmp_path, monkeypatch, count=120)


def test_a_run_resumes_behind_a_blocked_job(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("groups:\n  - {name: n, count: 3, sockets: 2, cores: 8, gpus: 2, memory: 16 GiB}\n")
    cluster, submit, jobs = load_cluster(path), 0, []
    for number, shape in enumerate(("slot=2/node", "slot=3/node", "slot=4/[core;memory=2{unit:GB}]") * 6):
        submit += 7
        spec = Jobspec.from_shape(shape, duration=60 + 10 * number)
        jobs.append(Job(id=number, submit=submit, runtime=50, duration=60 + 10 * number, jobspec=spec))
    workload = Workload(jobs=tuple(jobs), name="mixed")
    file = tmp_path / "checkpoint.json"
    whole = simulate(cluster, workload, "easy", checkpoints={60: file})
    assert records(simulate(cluster, workload, "easy", resume=file)) == records(whole)


def test_equal_jobs_without_units_wait_for_a_node_that_failed(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("groups:\n  - {name: n, count: 1, cores: 4}\n")
    spec = Jobspec.from_shape("node=1{x}", duration=30)
    jobs = tuple(Job(id=at, submit=20, runtime=20, duration=30, jobspec=spec) for at in range(3))
    failure = Outage(Idset.parse("0"), 10, 100, "failure")
    workload = Workload(jobs=jobs, name="bare nodes")
    result = simulate(load_cluster(path), workload, "conservative", match_policy="high", outages=(failure,))
    assert result.jobs["start"].tolist() == [100, 120, 140]


def crowded(rng, cluster, requests, policy):
    """A state in which some requests have been claimed, some released and a target may be down."""
    state = Availability(cluster.index)
    held = []
    for _ in range(rng.randint(0, 12)):
        found = select(rng.choice(requests), state, policy, np.random.default_rng(0))
        if found is not None:
            state.claim(found)
            held.append(found)
        if held and rng.random() < 0.3:
            state.release(held.pop(rng.randrange(len(held))))
        yield state
    state.set_status(np.array([rng.randrange(len(cluster.index))]), up=False)
    yield state


@pytest.mark.parametrize("seed", range(20))
def test_the_kernel_counts_as_each_content_is_counted_by_itself(seed, tmp_path):
    rng = random.Random(seed)
    cluster = drawn_cluster(rng, tmp_path)
    requests = [compile_request(spec, cluster.index) for spec, _ in drawn_specs(rng)]
    for state in crowded(rng, cluster, requests, find_policy("first")):
        if state.kinds is None:
            state.kinds = CountedKinds(requests, state, find_policy("first"))
        twin = state.copy()
        for kind, request in enumerate(requests):
            if not state.kinds.counted[kind]:
                continue
            content = counted(request)[0].content
            have, want = capacity(content, state), capacity(content, twin)
            assert (have.fits == want.fits).all()
            assert (have.total, have.some) == (want.total, want.some)
            assert state.kinds.kernel.fits(kind) == state.kinds.fitting()[kind] == could_fit(request, twin)


@pytest.mark.parametrize("seed", range(20))
def test_the_kernel_places_a_request_as_the_descent_does(seed, tmp_path):
    rng = random.Random(seed)
    cluster = drawn_cluster(rng, tmp_path)
    requests = [compile_request(spec, cluster.index) for spec, _ in drawn_specs(rng)]
    policy = find_policy(rng.choice(["first", "lonode", "hinode", "variation"]))
    for state in crowded(rng, cluster, requests, policy):
        if state.kinds is None:
            state.kinds = CountedKinds(requests, state, policy)
        for kind, request in enumerate(requests):
            if not state.kinds.placed[kind]:
                continue
            fits = state.kinds.kernel.place(kind)
            assert fits == could_fit(request, state)
            if fits:
                slow = Descent(request, state, policy, np.random.default_rng(1)).build()
                assert_same(state.kinds.selection(kind, 0), slow)


@pytest.mark.parametrize("name", ["first", "lonode", "hinode", "variation"])
def test_the_kernel_skips_targets_without_a_copy(name, tmp_path):
    """Many nodes in a row are down or in use, so that whole blocks of them are skipped, in any order."""
    rng, policy, path = random.Random(name), find_policy(name), tmp_path / "site.yaml"
    path.write_text("groups:\n  - {name: n, count: 300, cores: 4}\n")
    index = load_cluster(path).index
    shapes = ("slot=5/core", "slot=3/node", "slot=40/core=2", "slot=70/node")
    requests = [compile_request(Jobspec.from_shape(shape), index) for shape in shapes]
    state, held = Availability(index), []
    state.kinds = CountedKinds(requests, state, policy)
    for _ in range(30):
        first = rng.randrange(300)
        state.set_status(np.arange(first, min(300, first + rng.choice([9, 64, 150]))), up=rng.random() < 0.6)
        for kind, request in enumerate(requests):
            fits = state.kinds.kernel.place(kind)
            assert fits == could_fit(request, state)
            if fits:
                found = state.kinds.selection(kind, 0)
                assert_same(found, Descent(request, state, policy, np.random.default_rng(1)).build())
                assert_same(copy.deepcopy(found), found)
                if rng.random() < 0.5:
                    state.claim(found)
                    held.append(found)
        if len(held) > 4:
            state.release(held.pop(rng.randrange(len(held))))
        state.kinds.check()


@pytest.mark.parametrize("seed", range(20))
def test_a_simple_request_gets_the_selection_of_the_descent(seed, tmp_path):
    rng = random.Random(seed)
    cluster = drawn_cluster(rng, tmp_path)
    requests = [compile_request(spec, cluster.index) for spec, _ in drawn_specs(rng)]
    policy = find_policy(rng.choice([name for name in POLICIES if not name.endswith("x")]))
    for state in crowded(rng, cluster, requests, policy):
        for request in requests:
            if request.simple is None or not could_fit(request, state):
                continue
            quick = select(request, state, policy, np.random.default_rng(1))
            slow = Descent(request, state, policy, np.random.default_rng(1)).build()
            assert quick is not None
            assert_same(quick, slow)


def assert_same(quick, slow):
    """The two selections are equal."""
    assert quick.targets.tolist() == slow.targets.tolist()
    assert units_of(quick.held) == units_of(slow.held)
    assert units_of(quick.named) == units_of(slow.named)
    assert [(h.type, h.ordinals.tolist(), h.exclusive) for h in quick.holds] == [
        (h.type, h.ordinals.tolist(), h.exclusive) for h in slow.holds
    ]


def units_of(draws):
    """The units of each draw, leaf pool by leaf pool."""
    return [
        (
            draw.type,
            draw.pools.tolist(),
            np.broadcast_to(draw.units, len(draw.pools)).tolist(),
            draw.amount,
            None if draw.masks is None else listed(draw.masks),
        )
        for draw in draws
    ]


def test_runs_that_only_count_start_as_those_that_name_units():
    rng = random.Random(1)
    shapes = ["slot=1/core=2", "slot=200/[core;gpu]", "slot=10/node", "slot=300/core"]
    jobs = [
        {"id": at, "submit": at // 10, "duration": rng.randint(10, 200), "shape": rng.choice(shapes)}
        for at in range(600)
    ]
    named, counted = (ss.simulate("gpu1152", jobs, allocations=allocations) for allocations in (True, False))
    assert counted.jobs["start"].tolist() == named.jobs["start"].tolist()
