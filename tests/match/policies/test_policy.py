"""Match policies: where a job lands, and that none of them changes what is feasible (M8)."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.formats.cluster.rset import ResourceSet
from simsched.graph.cluster import Cluster
from simsched.match.policies import policy as policies
from simsched.match.policies.policy import POLICIES, MatchPolicy
from tests import REPOSITORY
from tests.reference.cases import flat_cluster, random_constraint, random_request, to_r, to_shape
from tests.reference.outlines import outline_cluster

JOBSPEC = ss.Jobspec.from_shape


def placed(answer):
    """R_lite's cores as ``0:2-3 1-2:0``: ranks and core ids."""
    return " ".join(f"{group.ranks}:{group.children['core']}" for group in answer.R.groups)


#: On 4 nodes × 4 cores: where a 2-core job lands, and then one of six single cores.
STORY = {
    "first": ("0:0-1", "0:2-3 1:0-3"),
    "low": ("0:0-1", "1-3:0-1"),
    "high": ("0:2-3", "1-3:2-3"),
    "lonode": ("0:0-1", "0:2-3 1:0-3"),
    "hinode": ("3:2-3", "2:0-3 3:0-1"),
    "firstnodex": ("0:0-3", "1-2:0-3"),
    "lonodex": ("0:0-3", "1-2:0-3"),
    "hinodex": ("3:0-3", "1-2:0-3"),
    "bestfit": ("0:0-1", "0:2-3 1:0-3"),
    "worstfit": ("0:0-1", "1:0-3 2:0-1"),
    "locality": ("0:0-1", "0:2-3 1:0-3"),
    "variation": ("0:0-1", "0:2-3 1:0-3"),
    "random": ("3:0-1", "1:0-3 3:2-3"),
}


@pytest.mark.parametrize("policy", STORY)
def test_six_single_cores_after_a_job_of_two(four, policy):
    matcher = ss.Matcher(four, policy=policy, seed=3)
    first = matcher.match(JOBSPEC("slot/core=2"))
    second = matcher.match(JOBSPEC("slot=6/core"))
    matcher._check()
    assert (placed(first), placed(second)) == STORY[policy]


def test_the_story_is_told_of_every_policy():
    assert list(STORY) == list(POLICIES)


#: Node ids run against graph order here: b7, a3, a1; classes 2, 0, none.
CLASSES = """
cluster0
  node7 rank=0 properties=perf_class=2
    core0 size=4
  node3 rank=1 properties=perf_class=0
    core0 size=4
  node1 rank=2
    core0 size=4
"""


@pytest.mark.parametrize(
    ("policy", "ranks"),
    [
        ("first", "0"),
        ("lonode", "2"),
        ("hinode", "0"),
        ("variation", "1"),
        ("lonodex", "2"),
        ("hinodex", "0"),
    ],
)
def test_node_order_is_of_ids_and_not_of_the_graph(jgf, policy, ranks):
    assert str(ss.Matcher(jgf(CLASSES), policy=policy).match(JOBSPEC("slot/core=2")).R.ranks) == ranks


def test_variation_takes_classes_in_order_and_the_unclassed_last(jgf):
    matcher = ss.Matcher(jgf(CLASSES), policy="variation")
    assert [str(matcher.match(JOBSPEC("slot/node")).R.ranks) for _ in range(3)] == ["1", "0", "2"]


def test_bestfit_fills_the_fullest_and_worstfit_the_emptiest(four):
    for policy, expected in (("bestfit", "2"), ("worstfit", "3")):
        matcher = ss.Matcher(four, policy=policy)
        for hosts, cores in (("n0", 2), ("n1", 1), ("n2", 3)):
            assert matcher.match(JOBSPEC(f"slot/core={cores}", constraint=f"host:{hosts}"))
        assert str(matcher.match(JOBSPEC("slot/core")).R.ranks) == expected


def test_worstfit_counts_copies_and_free_counts_units(four):
    """With 3 and 4 free cores, a node holds one copy of three cores: `worstfit` regards them as equal."""
    emptiest = MatchPolicy(
        name="emptiest", says="", order=lambda c: np.argsort(-c.free("core"), kind="stable")
    )
    for policy, rank in (("worstfit", "0"), (emptiest, "1")):
        matcher = ss.Matcher(four, policy=policy)
        assert matcher.match(JOBSPEC("slot/core", constraint="rank:0"))
        assert str(matcher.match(JOBSPEC("slot/core=3")).R.ranks) == rank


def test_free_units_are_summed_over_sockets_and_racks(jgf):
    """Two nodes with two sockets, and the rack above them; a type without pools has no free units."""
    found = {}

    def order(c):
        found[c.kind] = (c.free("core").tolist(), c.free("gpu").tolist())
        return np.arange(len(c.ordinals))

    outline = "cluster0\n  rack0"
    for node in range(2):
        outline += f"\n    node{node} rank={node}"
        for socket in range(2):
            outline += f"\n      socket{socket}\n        core0\n        core1"
    matcher = ss.Matcher(jgf(outline), policy=MatchPolicy(name="mine", says="", order=order))
    assert matcher.match(JOBSPEC("slot/core", constraint="rank:1"))
    assert matcher.match(JOBSPEC("rack/slot/core"))
    assert found["node"] == ([4, 3], [0, 0])
    assert found["rack"] == ([7], [0])


def test_random_follows_its_seed(tiny):
    def lands(seed):
        matcher = ss.Matcher(tiny, policy="random", seed=seed)
        return [placed(matcher.match(JOBSPEC("slot/core=2"))) for _ in range(4)]

    assert lands(1) == lands(1)
    assert len({tuple(lands(seed)) for seed in range(8)}) > 1


def test_random_questions_do_not_change_what_comes(tiny):
    asked, silent = (ss.Matcher(tiny, policy="random", seed=1) for _ in range(2))
    foretold = asked.feasible_now(JOBSPEC("slot/core=2"))
    assert foretold.R == asked.match(JOBSPEC("slot/core=2")).R == silent.match(JOBSPEC("slot/core=2")).R


def test_random_needs_a_generator(four):
    from simsched.match.requests.compile import compile_request
    from simsched.match.search.select import select
    from simsched.match.state.availability import Availability

    request = compile_request(JOBSPEC("slot/core"), four.index)
    with pytest.raises(ss.errors.ConfigError, match="needs a random generator"):
        select(request, Availability(four.index), "random")


# --- units below the node -------------------------------------------------------------------


def sockets(*cores, node="node0 rank=0"):
    """A node with sockets of cores with these ids."""
    lines = ["cluster0", f"  {node}"]
    for socket, ids in enumerate(cores):
        lines += [f"    socket{socket}", *(f"      core{core}" for core in ids)]
    return "\n".join(lines)


#: Cores of a node with two sockets that get one core, one core, and then three, by how ids lie on them.
DRAWN = {
    ((0, 1, 2, 3), (4, 5, 6, 7)): {
        "high": "7 6 3-5",
        "hinode": "7 6 3-5",
        "low": "0 1 2-4",
        "lonode": "0 1 2-4",
    },
    ((0, 2, 4, 6), (1, 3, 5, 7)): {
        "high": "7 6 3-5",
        "hinode": "7 6 3-5",
        "low": "0 1 2-4",
        "lonode": "0 1 2-4",
    },
    ((0, 1), (2, 3, 4), (5, 6, 7)): {"high": "7 6 3-5", "hinode": "7 6 3-5", "first": "0 1 2-4"},
    ((4, 5, 6, 7), (0, 1, 2, 3)): {"high": "7 6 3-5", "low": "0 1 2-4", "first": "4 5 0,6-7"},
}


@pytest.mark.parametrize(("cores", "policy"), [(cores, policy) for cores in DRAWN for policy in DRAWN[cores]])
def test_the_highest_and_the_lowest_units_are_taken_across_sockets(jgf, cores, policy):
    """As Fluxion begins: a policy by ids goes by ids below the node, too, and not socket after socket."""
    matcher = ss.Matcher(jgf(sockets(*cores)), policy=policy)
    found = []
    for shape in ("slot/core", "slot/core", "slot=3/core"):
        found.append(str(matcher.match(JOBSPEC(shape)).R.groups[0].children["core"]))
        matcher._check()
    assert " ".join(found) == DRAWN[cores][policy]


def test_sockets_that_differ_are_drawn_from_node_by_node(jgf):
    """Nodes with one and with two sockets: each gives its highest cores."""
    outline = "cluster0\n  node0 rank=0\n    socket0\n      core0\n      core1\n" + sockets(
        (0, 1), (2, 3), node="node1 rank=1"
    ).removeprefix("cluster0\n")
    found = ss.Matcher(jgf(outline), policy="hinode").match(JOBSPEC("node=2/slot/core"))
    assert placed(found) == "0:1 1:3"


def test_what_competes_gets_the_highest_units_too(jgf):
    matcher = ss.Matcher(jgf(sockets((0, 1, 2, 3), (4, 5, 6, 7))), policy="high")
    found = matcher.match(JOBSPEC("[slot=1{a}/core;slot=2{b}/core=2]"))
    assert placed(found) == "0:3-7"
    assert placed(matcher.match(JOBSPEC("slot/core"))) == "0:2"


def test_units_that_are_named_or_shared_are_the_highest_as_well(jgf):
    cluster = jgf(sockets((0, 1, 2, 3), (4, 5, 6, 7)))
    for shape in ("slot/core=3{id:1-5}", "node/core=3{id:1-5}"):
        found = ss.Matcher(cluster, policy="high").match(JOBSPEC(shape))
        assert placed(found) == "0:3-5", shape


def test_pools_above_the_nodes_are_taken_from_the_last():
    cluster = outline_cluster("cluster0\n  ssd0 size=2\n  ssd1 size=2\n  node0 rank=0\n    core0 size=4")
    pools = {
        policy: ss.Matcher(cluster, policy=policy).match(JOBSPEC("[ssd{x};slot/core]")).R.scheduling["pools"]
        for policy in ("first", "high")
    }
    assert [next(iter(found)).rpartition("/")[2] for found in pools.values()] == ["ssd0", "ssd1"]


WHOLE = (
    "slot/node/core=2",
    "node/slot/core=2",
    "slot/core=2",
    "slot/node{-x}/core=2",
    "slot/node",
    "node{x}/core=2",
)


@pytest.mark.parametrize("policy", ["firstnodex", "lonodex", "hinodex"])
def test_a_policy_of_whole_nodes_names_the_whole_node_however_it_was_asked_for(tiny, policy):
    for shape in WHOLE:
        matcher = ss.Matcher(tiny, policy=policy)
        found = matcher.match(JOBSPEC(shape, constraint="rank:2"))
        matcher._check()
        assert {t: str(ids) for t, ids in found.R.groups[0].children.items()} == {"core": "0-3", "gpu": "0-1"}
        assert not matcher.match(JOBSPEC("slot/gpu", constraint="rank:2"))


def test_a_whole_node_with_sockets_is_named_once(jgf):
    matcher = ss.Matcher(jgf(sockets((0, 1, 2, 3), (4, 5, 6, 7))), policy="lonodex")
    found = matcher.match(JOBSPEC("slot/node/socket/core=2"))
    matcher._check()
    assert placed(found) == "0:0-7"


# --- locality -------------------------------------------------------------------------------


def racks(*sizes, cores=4):
    lines, rank = ["cluster0"], 0
    for rack, size in enumerate(sizes):
        lines.append(f"  rack{rack}")
        for _ in range(size):
            lines += [f"    node{rank} rank={rank}", f"      core0 size={cores}"]
            rank += 1
    return "\n".join(lines)


def test_locality_takes_the_tightest_rack_that_holds_it(jgf):
    matcher = ss.Matcher(jgf(racks(5, 3, 4)), policy="locality")
    assert str(matcher.match(JOBSPEC("slot=3/node")).R.ranks) == "5-7"
    assert str(matcher.match(JOBSPEC("slot=3/node")).R.ranks) == "8-10"
    assert str(matcher.match(JOBSPEC("slot=1/node")).R.ranks) == "11"
    assert str(matcher.match(JOBSPEC("slot=5/node")).R.ranks) == "0-4"


def test_locality_spreads_over_as_few_racks_as_can_be(jgf):
    matcher = ss.Matcher(jgf(racks(2, 4, 3, 3)), policy="locality")
    assert str(matcher.match(JOBSPEC("slot=6/node")).R.ranks) == "0-5"
    assert str(matcher.match(JOBSPEC("slot=4/node")).R.ranks) == "6-9"


def test_locality_takes_neighbours(jgf):
    matcher = ss.Matcher(jgf(racks(12)), policy="locality")
    matcher.match(JOBSPEC("slot/node", constraint="rank:1"))
    matcher.match(JOBSPEC("slot/node", constraint="rank:5"))
    assert str(matcher.match(JOBSPEC("slot=4/node")).R.ranks) == "6-9"
    assert str(matcher.match(JOBSPEC("slot=3/node")).R.ranks) == "2-4"
    assert str(matcher.match(JOBSPEC("slot=2/node")).R.ranks) == "10-11"


def test_locality_knows_switches():
    """Leaf switches of 16 nodes in pods of four, over the network alone."""
    matcher = ss.Matcher(ss.load_cluster("fattree"), policy="locality")
    matcher.match(JOBSPEC("slot=9/node", constraint="rank:0-15"))
    assert str(matcher.match(JOBSPEC("slot=16/node")).R.ranks) == "16-31"
    assert str(matcher.match(JOBSPEC("slot=7/node")).R.ranks) == "9-15"


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    taken=st.sets(st.integers(0, 24), max_size=12),
    wanted=st.integers(1, 8),
)
def test_locality_touches_the_fewest_racks_that_hold_it(sizes, taken, wanted):
    """Law: one rack if any holds it, else as few as can be; within one rack no shorter run exists."""
    total = sum(sizes)
    free = [rank for rank in range(total) if rank not in taken]
    rack_of = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    if len(free) < wanted:
        return
    taken_ranks = [rank for rank in sorted(taken) if rank < total]
    matcher = ss.Matcher(rack_cluster(tuple(sizes)), policy="locality")
    for rank in taken_ranks:
        assert matcher.match(JOBSPEC("slot/node", constraint=f"rank:{rank}"))
    got = list(matcher.match(JOBSPEC(f"slot={wanted}/node")).R.ranks)
    held = sorted((sum(rack_of[rank] == rack for rank in free) for rack in set(rack_of)), reverse=True)
    fewest = next(n for n in range(1, len(held) + 1) if sum(held[:n]) >= wanted)
    assert len({rack_of[rank] for rank in got}) == fewest
    if fewest == 1:
        near = [rank for rank in free if rack_of[rank] == rack_of[got[0]]]
        spans = [near[i + wanted - 1] - near[i] for i in range(len(near) - wanted + 1)]
        assert got[-1] - got[0] == min(spans)


def rack_cluster(sizes, _made={}):  # noqa: B006 - a memo
    if sizes not in _made:
        _made[sizes] = outline_cluster(racks(*sizes))
    return _made[sizes]


# --- M8 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(30, 400), marks=pytest.mark.slow)])
def test_no_policy_changes_what_is_feasible(seeds):
    """Law (M8): after the same claims, all policies of shared nodes agree on yes and no."""
    shared = [name for name, policy in POLICIES.items() if not policy.whole_nodes]
    answers = 0
    for seed in seeds:
        rng = random.Random(seed)
        graph = flat_cluster(rng)
        cluster = Cluster.from_rset(ResourceSet.from_dict(to_r(graph)))
        first = ss.Matcher(cluster)
        for _ in range(5):
            jobspec = JOBSPEC(to_shape(random_request(rng, graph)), constraint=random_constraint(rng))
            truth = first.copy().match(jobspec).status
            for name in shared:
                other = first.copy()
                other.policy = POLICIES[name]
                assert other.match(jobspec).status == truth, (seed, name, jobspec.to_shape())
                other._check()
            answers += truth == "matched"
            first.match(jobspec)
    assert answers > len(seeds)


# --- other people's policies ----------------------------------------------------------------


def test_an_unknown_policy_says_which_exist(tiny):
    with pytest.raises(
        ss.errors.ConfigError, match=r"unknown match policy 'lownode' \(expected one of first, low,"
    ):
        ss.Matcher(tiny, policy="lownode")


@pytest.mark.parametrize(
    "order",
    [
        lambda c: np.zeros(len(c.ordinals), dtype=int),
        lambda c: np.arange(len(c.ordinals) - 1),
        lambda c: np.arange(len(c.ordinals)) + 1,
        lambda c: -np.arange(len(c.ordinals)),
        lambda c: np.linspace(0, 1, len(c.ordinals)),
        lambda c: c.ordinals[:, None],
    ],
)
def test_a_policy_that_returns_no_permutation_is_caught(four, order):
    broken = MatchPolicy(name="broken", says="", order=order)
    with pytest.raises(
        ss.errors.ConfigError, match="'broken' did not return a permutation of its 4 candidates"
    ):
        ss.Matcher(four, policy=broken).match(JOBSPEC("slot=2/core"))


@pytest.fixture
def plugged(monkeypatch):
    """Pretend that packages with these entry points are installed."""

    def plug(**found):
        def load_of(value):
            if isinstance(value, Exception):
                raise value
            return value

        points = [
            SimpleNamespace(name=name, value=f"package:{name}", load=lambda value=value: load_of(value))
            for name, value in found.items()
        ]
        table = SimpleNamespace(groups=["simsched.match_policies"], select=lambda group: points)
        monkeypatch.setattr("importlib.metadata.entry_points", lambda **of: points if of else table)
        policies._plugged_in.cache_clear()

    yield plug
    policies._plugged_in.cache_clear()


def odd_nodes_first(candidates):
    """Odd node ids first."""
    return np.argsort(candidates.ids() % 2 == 0, kind="stable")


def test_a_policy_of_another_package_is_found_by_name(plugged, four):
    plugged(
        oddfirst=odd_nodes_first, evenfirst=MatchPolicy(name="x", says="y", order=lambda c: c.ids().argsort())
    )
    assert str(ss.Matcher(four, policy="oddfirst").match(JOBSPEC("slot=3/node")).R.ranks) == "0-1,3"
    assert ss.Matcher(four, policy="oddfirst").policy.says == "Odd node ids first."
    assert ss.Matcher(four, policy="evenfirst").policy.name == "evenfirst"
    assert policies.known_policies()[-2:] == ["oddfirst", "evenfirst"]


def by_ids(*ids):
    """An order that takes nodes with these ids first, as a plug-in that reads a site's list would."""
    return lambda candidates: np.argsort(~np.isin(candidates.ids(), ids), kind="stable")


def test_policies_of_one_name_have_orders_of_their_own(four):
    """A cluster remembers the order of a policy, not that of a name."""
    for static in (True, False):
        mine = [MatchPolicy(name="mine", says="", order=by_ids(node), static=static) for node in (3, 1, 2)]
        for policy, node in zip(mine, (3, 1, 2), strict=True):
            assert placed(ss.Matcher(four, policy=policy).match(JOBSPEC("slot/core"))) == f"{node}:0"
    ours = MatchPolicy(name="lonode", says="", order=by_ids(2), static=True)
    assert [placed(ss.Matcher(four, policy=p).match(JOBSPEC("slot/core"))) for p in ("lonode", ours)] == [
        "0:0",
        "2:0",
    ]


def test_siblings_in_order_are_known_for_each_policy(jgf):
    """Sockets of one node in the order of one policy or the other, though both have one name."""
    cluster = jgf("cluster0\n  node0 rank=0\n    socket0\n      core0\n    socket1\n      core1")
    up = MatchPolicy(name="mine", says="", order=lambda c: np.argsort(c.ids()), static=True)
    down = MatchPolicy(name="mine", says="", order=lambda c: np.argsort(-c.ids()), static=True)
    found = [placed(ss.Matcher(cluster, p).match(JOBSPEC("slot/socket/core"))) for p in (up, down)]
    assert found == ["0:0", "0:1"]


def test_orders_that_are_remembered_have_a_limit(four, monkeypatch):
    monkeypatch.setattr(policies, "MAX_ORDERS", 5)
    for node in [0, 1, 2, 3] * 5:
        policy = MatchPolicy(name="mine", says="", order=by_ids(node), static=True)
        assert placed(ss.Matcher(four, policy=policy).match(JOBSPEC("slot/core"))) == f"{node}:0"
    assert len(four.index.memo["fixed orders"]) <= 5


def test_a_policy_given_as_an_object_is_not_restored_as_another_of_its_name(four):
    ours = MatchPolicy(name="lonode", says="", order=by_ids(2), static=True)
    saved = ss.Matcher(four, policy=ours).save()
    with pytest.raises(ss.errors.FormatError, match="saved without its match policy"):
        ss.Matcher.restore(four, saved)
    for policy, ranks in ((ours, "2"), ("hinode", "3")):
        again = ss.Matcher.restore(four, saved, policy=policy)
        assert str(again.match(JOBSPEC("slot/node")).R.ranks) == ranks
    assert ss.Matcher.restore(four, ss.Matcher(four, "hinode").save()).policy is POLICIES["hinode"]


def test_rules_of_one_name_read_requests_in_their_own_way(four, monkeypatch):
    """A compiled request is remembered for a dialect, not for its name."""
    from simsched.match.requests.dialect import DIALECTS, Dialect

    found = []
    for exclusive in (True, False):
        monkeypatch.setitem(DIALECTS, "mine", Dialect(name="mine", exclusive_in_slot=exclusive))
        matcher = ss.Matcher(four, rules="mine")
        found.append([bool(matcher.match(JOBSPEC("slot=4/node"))) for _ in range(2)])
    assert found == [[True, False], [True, True]]


def test_a_function_alone_is_a_policy_in_python(four):
    matcher = ss.Matcher(four, policy=odd_nodes_first)
    assert (matcher.policy.name, matcher.policy.order) == ("odd_nodes_first", odd_nodes_first)
    with pytest.raises(
        ss.errors.ConfigError, match="name of a match policy, a function of candidates, or a MatchPolicy"
    ):
        ss.Matcher(four, policy=5)


def test_our_own_names_cannot_be_taken(plugged, four):
    plugged(first=odd_nodes_first)
    assert ss.Matcher(four, policy="first").policy is POLICIES["first"]


def test_a_package_that_does_not_load_is_our_users_error_and_no_traceback(plugged, four):
    plugged(gone=ImportError("No module named 'gone'"), number=3)
    with pytest.raises(ss.errors.ConfigError, match="'gone' cannot be loaded: No module named"):
        ss.Matcher(four, policy="gone")
    with pytest.raises(ss.errors.ConfigError, match="'number' is an int that cannot be called"):
        ss.Matcher(four, policy="number")


def test_the_example_package_of_the_manual(plugged, tiny):
    """docs/examples/simsched-evenfirst, as its entry points name it."""
    import importlib.util
    import tomllib

    folder = REPOSITORY / "docs" / "examples" / "simsched-evenfirst"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    source = folder / "src" / "simsched_evenfirst" / "__init__.py"
    spec = importlib.util.spec_from_file_location("simsched_evenfirst", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    points = project["entry-points"][policies.KIND.group]
    plugged(**{name: getattr(module, value.partition(":")[2]) for name, value in points.items()})

    def ranks(policy, *shapes):
        matcher = ss.Matcher(tiny, policy=policy)
        return [str(matcher.match(JOBSPEC(shape)).R.ranks) for shape in shapes]

    assert ranks("evenfirst", "slot=2/node", "slot/node", "slot/node") == ["0,2", "1", "3"]
    assert ranks("coolest", *["slot/core"] * 4) == ["0", "1", "2", "3"]
