"""The state of a pool, without Flux."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.flux.pool_state import NeverFitsError, NotNowError, PoolState, read_request


def resources(nodes=4, cores=4, **more):
    execution = {
        "R_lite": [{"rank": f"0-{nodes - 1}", "children": {"core": f"0-{cores - 1}"}}],
        "nodelist": [f"n[0-{nodes - 1}]"],
        "starttime": 0,
        "expiration": 0,
    }
    return {"version": 1, "execution": execution, **more}


def request(shape, duration=60.0, **system):
    document = ss.Jobspec.from_shape(shape, duration=duration).to_dict()
    document["attributes"]["system"].update(system)
    return read_request(document)


def entries(document):
    return {entry["rank"]: entry["children"] for entry in document["execution"]["R_lite"]}


@pytest.fixture
def pool():
    return PoolState(resources())


def test_a_job_gets_r_and_gives_it_back(pool):
    found = pool.allocate(1, request("slot=2/core=4"), end=100.0)
    assert entries(found) == {"0-1": {"core": "0-3"}}
    assert found["execution"]["nslots"] == 2
    assert found["execution"]["nodelist"] == ["n[0-1]"]
    assert pool.ends == {1: 100.0}
    assert entries(pool.allocated()) == {"0-1": {"core": "0-3"}}
    pool.free(1, found, final=True)
    assert entries(pool.allocated()) == {}
    assert pool.ends == {}


def test_what_does_not_fit_now_may_fit_later(pool):
    pool.allocate(1, request("slot=3/core=4"), end=0)
    with pytest.raises(NotNowError, match="2 needed, 1 available"):
        pool.allocate(2, request("slot=2/core=4"), end=0)
    pool.free(1, None, final=True)
    assert pool.allocate(2, request("slot=2/core=4"), end=0)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("slot=5/core=4", r"slot: 5 needed, 4 available.*would fit with: slot=4 instead of 5"),
        ("slot/gpu", "gpu"),
        ("slot/core=9", "would fit with: core=4 instead of 9"),
    ],
)
def test_what_never_fits_has_our_reasons(pool, shape, text):
    with pytest.raises(NeverFitsError, match=text):
        pool.check(request(shape))
    with pytest.raises(NeverFitsError, match=text):
        pool.allocate(1, request(shape), end=0)
    assert pool.ends == {}


def test_feasibility_does_not_depend_on_what_is_up(pool):
    pool.set_status("all", up=False)
    pool.check(request("slot=4/core=4"))
    with pytest.raises(NotNowError):
        pool.allocate(1, request("slot/core"), end=0)
    pool.set_status("2", up=True)
    assert list(entries(pool.allocate(1, request("slot/core"), end=0))) == ["2"]
    assert list(entries(pool.down())) == ["0-1,3"]
    pool.set_status("77", up=True)  # a rank that is not here


def test_partial_frees(pool):
    found = pool.allocate(1, request("slot=3/core=4"), end=9.0)
    part = ss.ResourceSet.from_dict(found).shard(ss.Idset.parse("1")).to_dict()
    pool.free(1, part, final=False)
    assert list(entries(pool.allocated())) == ["0,2"]
    assert list(entries(pool.allocate(2, request("slot=2/core=4"), end=0))) == ["1,3"]
    with pytest.raises(ValueError, match="job 1 does not hold rank 1"):
        pool.free(1, part, final=False)
    with pytest.raises(ValueError, match="final part"):
        pool.free(1, ss.ResourceSet.from_dict(found).shard(ss.Idset.parse("0")).to_dict(), final=True)
    pool.free(1, None, final=True)
    pool.free(99, None, final=True)  # a job that is not known
    assert list(entries(pool.allocated())) == ["1,3"]


def test_running_jobs_are_taken_over_on_nodes_that_are_down(pool):
    pool.set_status("all", up=False)
    pool.adopt(7, {"version": 1, "execution": {"R_lite": [{"rank": "2", "children": {"core": "0-1"}}],
                                               "nodelist": ["n2"]}}, end=50.0)  # fmt: skip
    pool.set_status("2", up=True)
    assert entries(pool.allocate(8, request("slot/core=2"), end=0)) == {"2": {"core": "2-3"}}
    for fault in ({"rank": "9", "children": {"core": "0"}}, {"rank": "2", "children": {"core": "1"}},
                  {"rank": "1", "children": {"core": "9"}}):  # fmt: skip
        wrong = {"version": 1, "execution": {"R_lite": [fault], "nodelist": ["n" + fault["rank"]]}}
        with pytest.raises(ValueError, match="the allocation of job 9 is not in this pool"):
            pool.adopt(9, wrong, end=0)
    assert entries(pool.allocated()) == {"2": {"core": "0-3"}}


def test_ranks_that_are_removed_are_gone_with_what_is_on_them(pool):
    pool.allocate(1, request("slot=2/core=4"), end=0)
    pool.allocate(2, request("slot/core=4"), end=0)
    pool.set_status("3", up=False)
    pool.remove([0, 2])
    assert list(entries(pool.document)) == ["1,3"]
    assert list(entries(pool.allocated())) == ["1"]
    assert list(entries(pool.down())) == ["3"]
    assert set(pool.ends) == {1}
    with pytest.raises(NeverFitsError):
        pool.check(request("slot=3/core=4"))
    pool.free(1, None, final=True)
    pool.remove([1, 3])
    with pytest.raises(NeverFitsError, match="no resources"):
        pool.allocate(3, request("slot/core"), end=0)


def test_a_copy_is_independent(pool):
    pool.allocate(1, request("slot=3/core=4"), end=5.0)
    twin = pool.copy()
    twin.free(1, None, final=True)
    twin.allocate(2, request("slot=4/core=4"), end=0)
    assert (list(pool.ends), list(twin.ends)) == ([1], [2])
    assert list(entries(pool.allocated())) == ["0-2"]


def test_constraints_ranges_and_policies():
    document = resources()
    document["execution"]["properties"] = {"big": "2-3", "+local": "0"}
    pool = PoolState(json.dumps(document), policy="hinode")
    found = pool.allocate(1, request("slot=1-4/core=4", constraints={"properties": ["big"]}), end=0)
    assert entries(found) == {"2-3": {"core": "0-3"}}
    assert found["execution"]["properties"] == {"big": "2-3"}
    assert list(entries(pool.allocate(2, request("slot/core"), end=0))) == ["1"]


@pytest.mark.slow
def test_topology_comes_from_the_scheduling_key():
    cluster = ss.load_cluster("topo16")
    document = cluster.to_dict("treepool")
    pool = PoolState(document)
    found = pool.allocate(1, request("slot/core=2"), end=0)
    assert found["scheduling"]["writer"] == "TreePool"
    jgf = PoolState(ss.load_cluster("racked").to_dict("r+jgf"))
    with pytest.raises(NeverFitsError, match="rack"):
        jgf.check(request("rack=99/slot=1/node"))
    jgf.check(request("rack=2/slot=1/node"))
    first = ss.Idset.parse("0")
    for state in (pool, jgf):
        before = len(state.resources.ranks)
        state.remove(first)
        assert len(state.resources.ranks) == before - 1
        assert state.document["scheduling"]
        state.check(request("slot/core"))


def test_every_free_resource_is_given_out_once():
    """Jobs come and go at random; no unit is held twice, and all are free in the end."""
    import numpy as np

    rng = np.random.default_rng(3)
    pool, held = PoolState(resources(nodes=6, cores=8)), {}
    for job in range(300):
        shape = f"slot={rng.integers(1, 5)}/core={rng.integers(1, 9)}"
        try:
            held[job] = ss.ResourceSet.from_dict(pool.allocate(job, request(shape), end=0))
        except NotNowError:
            gone = list(held)[int(rng.integers(len(held)))]
            pool.free(gone, held.pop(gone).to_dict(), final=True)
        total = sum(mine.count("core") for mine in held.values())
        everything = None
        for mine in held.values():
            everything = mine if everything is None else everything.union(mine)
        assert everything is None or everything.count("core") == total
    for job in held:
        pool.free(job, None, final=True)
    assert entries(pool.allocated()) == {}


@pytest.mark.parametrize("jobspec", [{}, {"version": 1}, {"resources": 5}, {"version": 1, "resources": []}])
def test_documents_that_are_no_jobspecs(jobspec):
    with pytest.raises(ss.FormatError):
        read_request(jobspec)
