"""RFC 4's base data, and the numbers that a pool may have."""

import pickle

import pytest

from simsched.errors import ClusterError
from simsched.formats.rfc.idset import Idset
from simsched.graph.pool import Pool, check_pool, numbered, split_name


def test_a_pool_is_named_by_basename_and_id_or_basename_alone():
    assert numbered("core", 3).name == "core3"
    assert numbered("memory", size=512, unit="GB").name == "memory"
    assert numbered("node", 7, basename="tux").name == "tux7"


def test_a_pool_cannot_be_changed_and_replace_gives_another():
    pool = numbered("node", 0)
    with pytest.raises(AttributeError):
        pool.status = "down"
    down = pool.replace(status="down")
    assert (pool.is_up, down.is_up) == (True, False)


def test_pools_travel_to_other_processes():
    pool = numbered("core", size=4, ids=Idset.parse("0-3"), properties={"fast": ""})
    assert pickle.loads(pickle.dumps(pool)) == pool


@pytest.mark.parametrize(
    ("host", "parts"),
    [
        ("node186", ("node", 186)),
        ("node007", ("node", 7)),
        ("login", ("login", None)),
        ("17", ("", 17)),
        ("rack1-n2", ("rack1-n", 2)),
        ("x" + "9" * 30, ("x" + "9" * 30, None)),
    ],
)
def test_hosts_are_split_at_their_last_number(host, parts):
    assert split_name(host) == parts


@pytest.mark.parametrize(
    ("pool", "fault"),
    [
        (Pool(type="core", name="c", basename="c", size=-1), "size -1"),
        (Pool(type="core", name="c", basename="c", size=10**16), "size 10000000000000000"),
        (Pool(type="core", name="c", basename="c", id=-7), "id -7"),
        (Pool(type="", name="c", basename="c"), "an empty type"),
        (Pool(type="core", name="c", basename="c", rank=2**31), "rank 2147483648"),
        (numbered("core", size=3, ids=Idset.parse("0-3")), "size 3 with 4 ids"),
    ],
)
def test_impossible_numbers_are_refused_with_the_vertex(pool, fault):
    with pytest.raises(ClusterError, match=fault) as caught:
        check_pool(pool, "v9")
    assert "vertex 'v9'" in str(caught.value)


def test_absurd_sizes_are_refused_where_pools_are_made():
    with pytest.raises(ClusterError, match="vertex 'memory': size 10000000000000000000"):
        numbered("memory", size=10**19, unit="TB")
