"""Resource sets: RFC 20's example, the algebra against sets of (rank, type, id), and bad documents."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ClusterError, FormatError, LimitError
from simsched.formats.cluster.rset import ResourceSet
from simsched.formats.rfc.idset import Idset
from tests.reference.rsets import EXAMPLE, units_of

contents = st.dictionaries(
    st.sampled_from(["core", "gpu", "ssd"]), st.sets(st.integers(0, 5), min_size=1), max_size=3
)
holdings = st.dictionaries(st.integers(0, 9), contents, max_size=8)


def rset(
    holding: dict[int, dict[str, set[int]]], properties: dict[str, set[int]] | None = None
) -> ResourceSet:
    """The set in which rank r is host h<2r> and holds ``holding[r]``."""
    return ResourceSet.of(
        [
            (Idset.from_ids([rank]), {kind: Idset.from_ids(ids) for kind, ids in children.items()})
            for rank, children in holding.items()
        ],
        ",".join(f"h{2 * rank}" for rank in sorted(holding)),
        properties={
            name: Idset.from_ids(having & set(holding))
            for name, having in (properties or {}).items()
            if having & set(holding)
        },
    )


def of(holding: dict[int, dict[str, set[int]]]) -> set[tuple[int, str, int]]:
    return {
        (rank, kind, i) for rank, children in holding.items() for kind, ids in children.items() for i in ids
    }


def test_the_example_of_the_rfc_comes_back_as_it_was():
    r = ResourceSet.from_dict(EXAMPLE)
    r._check()
    assert r.to_dict() == EXAMPLE
    assert str(r) == "rank[19-22]/core[0-47],gpu[0-7]"
    assert (r.host_of(19), r.host_of(22)) == ("node186", "node189")
    assert (r.count("core"), r.count("gpu"), r.count("node"), r.count("ssd")) == (192, 32, 4, 0)
    assert str(r.ranks) == "19-22"
    assert r.types == ("core", "gpu")


def test_the_newer_generation_keeps_what_it_says():
    document = json.loads(json.dumps(EXAMPLE))
    document["execution"].update(
        nslots=8, properties={"+local": "19", "amd-mi50@gpu": "20-21"}, future={"x": 1}
    )
    document["scheduling"] = {"writer": "TreePool", "children": []}
    document["attributes"] = {"system": {"scheduler": {"queue": "batch"}}}
    r = ResourceSet.from_dict(document)
    assert r.to_dict() == document
    assert r.nslots == 8
    assert r.properties_of(20) == ("amd-mi50@gpu",)


def test_children_of_any_type_are_idsets_of_that_type():
    """R9: real writers put other types than core and gpu into children."""
    r = ResourceSet.of([("0", {"rabbit": "0-1", "gpu": "0", "core": "0-3"})], "a")
    assert list(r.children_of(0)) == ["core", "gpu", "rabbit"]
    assert r.count("rabbit") == 2


def test_hosts_belong_to_the_sorted_ranks():
    """R10: the nodelist's order maps to the sorted ranks, whatever the order of R_lite."""
    document = {
        "version": 1,
        "execution": {
            "R_lite": [
                {"rank": "3", "children": {"core": "0"}},
                {"rank": "0-1", "children": {"core": "0-1"}},
            ],
            "nodelist": ["z[7-8]", "a"],
        },
    }
    r = ResourceSet.from_dict(document)
    assert [r.host_of(rank) for rank in (0, 1, 3)] == ["z7", "z8", "a"]
    assert str(r.ranks_of("a")) == "3"
    with pytest.raises(ValueError, match="2 is not in"):
        r.host_of(2)
    with pytest.raises(ValueError, match="rank 2 is not in"):
        r.children_of(2)


def test_ranks_with_equal_children_are_one_group():
    r = ResourceSet.of([("0", {"core": "0-3"}), ("5", {"gpu": "0"}), ("1-2", {"core": "0-3"})], "n[0-3]")
    assert [str(group.ranks) for group in r.groups] == ["0-2", "5"]
    assert r == ResourceSet.of([("5", {"gpu": "0"}), ("0-2", {"core": "0-1,2-3"})], "n[0-3]")


def test_several_ranks_may_share_a_host():
    r = ResourceSet.of([("0-2", {"core": "0"})], "a,a,b")
    assert str(r.ranks_of("a")) == "0-1"
    assert r.to_dict()["execution"]["nodelist"] == ["a,a,b"]


def test_flux_writes_nothing_as_zero():
    """Flux writes an empty set with one empty host, and no expiration as 0."""
    empty = ResourceSet.from_dict(
        {"version": 1, "execution": {"R_lite": [], "nodelist": [""], "starttime": 0.0, "expiration": 0.0}}
    )
    assert empty.is_empty
    assert empty.expiration is None
    assert ResourceSet.from_dict(ResourceSet().to_dict()) == ResourceSet()


@given(holdings)
def test_documents_are_lossless(holding):
    r = rset(holding, {"big": {1, 2, 3}})
    r._check()
    assert units_of(r) == of(holding)
    again = ResourceSet.from_dict(json.loads(json.dumps(r.to_dict())))
    again._check()
    assert again == r
    assert hash(again) == hash(r)


@given(holdings, holdings)
def test_algebra_is_that_of_sets_of_rank_type_and_id(a, b):
    left, right = rset(a), rset(b)
    for ours, theirs in (
        (left | right, of(a) | of(b)), (left & right, of(a) & of(b)), (left - right, of(a) - of(b))
    ):  # fmt: skip
        ours._check()
        assert units_of(ours) == theirs
        assert [ours.host_of(rank) for rank in ours.ranks] == [f"h{2 * rank}" for rank in ours.ranks]
    assert set((left | right).ranks) == set(a) | set(b)
    assert left | right == right | left
    assert left & right == right & left
    assert left - left == ResourceSet()
    assert left | left == left == left & left


@given(holdings, holdings)
def test_append_is_union_of_what_has_nothing_in_common(a, b):
    left, right = rset(a), rset(b)
    bare = any(not a[rank] or not b[rank] for rank in a.keys() & b.keys())
    if of(a) & of(b) or bare:
        with pytest.raises(ClusterError, match="both resource sets hold"):
            left.append(right)
    else:
        assert left.append(right) == left | right


@given(holdings, st.sets(st.integers(0, 9)))
def test_shards_add_up_to_the_set(holding, chosen):
    """RFC 20: the released shards of R add up to its union."""
    r = rset(holding, {"big": {1, 2, 3}})
    shards = r.shards()
    total = ResourceSet()
    for shard, rank in zip(shards, sorted(holding), strict=True):
        shard._check()
        assert list(shard.ranks) == [rank]
        total = total.append(shard)
    assert total == r
    part = r.shard(Idset.from_ids(chosen))
    part._check()
    assert units_of(part) == {t for t in of(holding) if t[0] in chosen}
    assert part | r.shard(r.ranks - Idset.from_ids(chosen)) == r


@given(holdings)
def test_remap_renumbers_in_order(holding):
    r = rset(holding, {"big": {1, 2, 3}})
    new = r.remap(4)
    new._check()
    assert list(new.ranks) == list(range(4, 4 + len(holding)))
    assert new.hosts == r.hosts
    for rank, old in zip(new.ranks, r.ranks, strict=True):
        assert new.children_of(rank) == r.children_of(old)
        assert new.properties_of(rank) == r.properties_of(old)


def test_results_of_the_algebra_drop_what_described_another_set():
    r = ResourceSet.of(
        [("0-3", {"core": "0-3"})], "n[0-3]", nslots=4, scheduling={"graph": {}}, starttime=5.0
    )
    other = ResourceSet.of([("4", {"core": "0"})], "n4", nslots=2, expiration=9.0)
    assert (r - other).nslots is None
    assert r.shard(Idset.parse("0")).scheduling is None
    both = r.append(other)
    assert (both.nslots, both.starttime, both.expiration) == (6, 5.0, 9.0)


def test_two_sets_must_agree_about_hosts():
    a = ResourceSet.of([("0-1", {"core": "0"})], "n[0-1]")
    b = ResourceSet.of([("1-2", {"core": "1"})], "n[7-8]")
    for operation in (a.union, a.intersect, a.subtract, a.append):
        with pytest.raises(ClusterError, match="rank 1 is 'n1' in one resource set and 'n7' in the other"):
            operation(b)


def test_making_one_by_hand_is_checked():
    with pytest.raises(ClusterError, match="rank 1 occurs twice"):
        ResourceSet.of([("0-1", {}), ("1", {})], "a,b")
    with pytest.raises(ClusterError, match="3 hosts for 2 ranks"):
        ResourceSet.of([("0-1", {})], "a,b,c")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ((), [], "not R: the document is an empty list"),
        ((), None, "not R: the document is null"),
        ((), {}, "not R: the document has no version"),
        ((), {"version": 1}, "not R: neither execution nor scheduling"),
        (("version",), 2, "version: R of version 2"),
        (("version",), True, "version: R of version True"),
        (("surprise",), 2, "surprise: unknown key 'surprise'"),
        (("execution",), [], "execution: found an empty list (expected an object)"),
        (
            ("execution", "R_lite"),
            {},
            "execution.R_lite: found an object (expected a list of rank and children)",
        ),
        (("execution", "R_lite", 0), "x", "execution.R_lite[0]: found 'x' (expected an object)"),
        (("execution", "R_lite", 0), {"rank": "0"}, "execution.R_lite[0]: children is missing"),
        (("execution", "R_lite", 0), {"children": {}}, "execution.R_lite[0]: rank is missing"),
        (("execution", "R_lite", 0, "odd"), 1, "unknown key 'odd'"),
        (("execution", "R_lite", 0, "rank"), "19-2", "execution.R_lite[0].rank: the range '19-2' descends"),
        (("execution", "R_lite", 0, "rank"), "", "execution.R_lite[0].rank: names no rank"),
        (("execution", "R_lite", 0, "rank"), -1, "an idset is a string"),
        (("execution", "R_lite", 0, "children"), None, "children: found nothing (expected an object)"),
        (("execution", "R_lite", 0, "children", "core"), 4, "children.core: an idset is a string, not int"),
        (("execution", "R_lite", 0, "children", "core"), "a", "children.core: 'a' is neither"),
        (("execution", "nodelist"), "n1", "execution.nodelist: found 'n1' (expected a list of hostlists)"),
        (("execution", "nodelist"), [4], "execution.nodelist[0]: a hostlist is a string"),
        (("execution", "nodelist"), ["a[1-3]"], "names 3 hosts for the 4 ranks"),
        (("execution", "nodelist"), ["a[1-999999999]"], "names 999999999 hosts for the 4 ranks"),
        (("execution", "starttime"), "now", "execution.starttime: 'now' is not a time"),
        (("execution", "starttime"), True, "execution.starttime: true is not a time"),
        (("execution", "starttime"), float("nan"), "execution.starttime: nan is not a time"),
        (("execution", "expiration"), -1, "execution.expiration: -1 is not a time"),
        (("execution", "expiration"), 1676560542, "1676560542 is not after the starttime"),
        (("execution", "nslots"), 1.5, "execution.nslots: 1.5 is not a count"),
        (("execution", "properties"), [], "execution.properties: found an empty list"),
        (("execution", "properties"), {"a": "18"}, "execution.properties.a: rank 18 is not in R_lite"),
        (("execution", "properties"), {"": "19"}, "'' is not a valid property name"),
        (("scheduling",), [], "scheduling: found an empty list"),
        *[
            (("execution", "properties"), {f"a{c}b": "19"}, f"has the forbidden character {c}")
            for c in "!&'\"^`|()"
        ],
    ],
)
def test_says_what_is_wrong_and_where(path, value, says):
    document = json.loads(json.dumps(EXAMPLE))
    spot = document
    for step in path[:-1]:
        spot = spot[step]
    if path:
        spot[path[-1]] = value
    else:
        document = value
    with pytest.raises(FormatError) as caught:
        ResourceSet.from_dict(document, "r.json")
    assert str(caught.value).startswith("r.json: ")
    assert says in str(caught.value)


@pytest.mark.parametrize("missing", ["R_lite", "nodelist"])
def test_what_must_be_there_is_missed(missing):
    document = json.loads(json.dumps(EXAMPLE))
    del document["execution"][missing]
    with pytest.raises(FormatError, match=f"execution: {missing} is missing"):
        ResourceSet.from_dict(document)


def test_a_rank_occurs_once():
    document = json.loads(json.dumps(EXAMPLE))
    document["execution"]["R_lite"].append({"rank": "22-23", "children": {"core": "0"}})
    with pytest.raises(FormatError, match=r"execution\.R_lite\[1\]\.rank: rank 22 occurs twice"):
        ResourceSet.from_dict(document)


def test_ranks_beyond_the_limit_are_refused_before_they_are_counted_out():
    document = json.loads(json.dumps(EXAMPLE))
    document["execution"]["R_lite"][0]["rank"] = "0-99999999999"
    with pytest.raises(LimitError, match="100000000000 ranks"):
        ResourceSet.from_dict(document)


def test_a_large_machine_loads_in_milliseconds():
    entries = [("0-16383", {"core": "0-63", "gpu": "0-3"})]
    document = ResourceSet.of(entries, "node[00000-16383]").to_dict()
    before = time.process_time()
    r = ResourceSet.from_dict(document)
    assert r.count("core") == 2**20
    assert r - r.shard(Idset.parse("100-200")) | r.shard(Idset.parse("100-200")) == r
    assert time.process_time() - before < 1
