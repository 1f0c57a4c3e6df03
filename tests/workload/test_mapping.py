"""Templates from flat counts to shapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simsched.errors import ConfigError
from simsched.formats.rfc.constraint import Properties
from simsched.workload.job import demand
from simsched.workload.load import load_workload
from simsched.workload.mapping import Flat, JobMap, MissingValueError


def shape(template, procs_per_node=None, **flat):
    return JobMap.parse(template, procs_per_node=procs_per_node).jobspec(Flat(**flat)).to_shape()


@pytest.mark.parametrize(
    ("template", "width", "flat", "expected"),
    [
        ("slot={procs}/core", None, {"procs": 6}, "slot=6/core"),
        ("slot={nodes}/node", 4, {"procs": 6}, "slot=2/node"),
        ("slot={nodes}/node", 4, {"procs": 6, "nodes": 3}, "slot=3/node"),
        ("node={nodes}/slot={ppn}/core={cpt}", None, {"procs": 7, "nodes": 2}, "node=2/slot=4/core"),
        ("slot={tasks}/core={cpt}", None, {"procs": 12, "cpt": 4}, "slot=3/core=4"),
        ("node={nodes}/slot/[core={ppn};gpu={gpn}]", None, {"procs": 8, "nodes": 2, "gpus": 4},
         "node=2/slot/[core=4;gpu=2]"),
        ("slot={procs}/[core;memory={mem}{unit:MB}]", None, {"procs": 2, "memory": 1500},
         "slot=2/[core;memory=2{unit:MB}]"),
        ("slot=4{procs}/node{x}", None, {"procs": 9}, "slot=4{procs}/node{x}"),  # a label, not a hole
        ("slot=1-{procs}/core", None, {"procs": 9}, "slot=1-9/core"),
        ("slot={gpus|2}/gpu", None, {"procs": 1}, "slot=2/gpu"),
        ("slot={procs/4}/core", None, {"procs": 9}, "slot=3/core"),
        ("slot={procs/4|9}/core", None, {"procs": 9}, "slot=3/core"),
        ("slot={gpus*2|3}/gpu", None, {"procs": 9}, "slot=6/gpu"),
        ("slot={procs/2}/[core;memory={memp*2}{unit:MB}]", None, {"procs": 4, "memory": 2048},
         "slot=2/[core;memory=4{unit:MB}]"),
        ("slot={procs/2}/[core;memory={memp*2}{unit:MB}]", None, {"procs": 3, "memory": 2048},
         "slot=2/[core;memory=3{unit:MB}]"),
        ("slot={procs/2}/[core;memory={memp*2}{unit:MB}]", None, {"procs": 1, "memory": 500 * 1024},
         "slot/[core;memory=500{unit:MB}]"),
        ("slot={gpus}/[gpu;memory={memg}]", None, {"procs": 3, "gpus": 2, "memory": 1024},
         "slot=2/[gpu;memory]"),
        ("slot={gpus}/gpu else slot={procs}/core", None, {"procs": 3, "gpus": 2}, "slot=2/gpu"),
        ("slot={gpus}/gpu else slot={procs}/core", None, {"procs": 3}, "slot=3/core"),
        ("node={nodes}/gpu={gpus} else node={nodes} else slot={procs}/core", 2, {"procs": 3}, "node=2"),
    ],
)  # fmt: skip
def test_templates(template, width, flat, expected):
    assert shape(template, width, **flat) == expected


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("slot={proc}/core", r"unknown placeholder \{proc\}.*expected one of \{procs\}"),
        ("slot={procs/core", "does not give a shape"),
        ("", "does not give a shape"),
        ("slot={procs}/core else slot={proc}/core", r"unknown placeholder \{proc\}"),
        ("slot={procs}/core else ", "does not give a shape"),
        ("slot={procs/0}/core", "does not give a shape"),
        (["a -> node={nodes}", "a -> node={nodes}"], "two maps for 'a'"),
        (["slot={procs}/core", "node={nodes}"], "two maps without a queue"),
    ],
)
def test_bad_maps_are_refused_before_any_record(template, message):
    with pytest.raises(ConfigError, match=message):
        JobMap.parse(template)


def test_a_width_below_one_is_refused():
    with pytest.raises(ConfigError, match="0 processors per node"):
        JobMap.parse(None, procs_per_node=0)


def test_a_record_that_lacks_a_value_says_which():
    with pytest.raises(MissingValueError, match=r"needs \{nodes\}"):
        JobMap.parse("node={nodes}/slot/core").jobspec(Flat(procs=4))


def test_a_record_that_lacks_a_value_of_every_alternative_says_what_the_last_one_needs():
    with pytest.raises(MissingValueError, match=r"needs \{nodes\}"):
        JobMap.parse("slot={gpus}/gpu else node={nodes}").jobspec(Flat(procs=4))


def test_values_that_are_divided_give_equal_requests_as_one_object():
    jobs = JobMap.parse("slot={procs/2}/core")
    assert jobs.jobspec(Flat(procs=3)) is jobs.jobspec(Flat(procs=4))


def test_rules_by_queue_fall_back_to_the_default():
    jobs = JobMap.parse(["slot={procs}/core", "gpu -> slot={procs}/[core=8;gpu]"])
    assert jobs.jobspec(Flat(procs=2), "gpu").to_shape() == "slot=2/[core=8;gpu]"
    assert jobs.jobspec(Flat(procs=2), None, "gpu").to_shape() == "slot=2/[core=8;gpu]"
    assert jobs.jobspec(Flat(procs=2), "other").to_shape() == "slot=2/core"


def test_equal_requests_are_one_object_with_and_without_a_constraint():
    jobs, wanted = JobMap.parse(None), Properties(("big",))
    plain = [jobs.jobspec(Flat(procs=3)) for _ in range(2)]
    bound = [jobs.jobspec(Flat(procs=3), constraint=wanted) for _ in range(2)]
    assert plain[0] is plain[1]
    assert bound[0] is bound[1]
    assert (plain[0].constraint, bound[0].constraint) == (None, wanted)


@given(st.integers(1, 10**6), st.integers(1, 512))
def test_nodes_hold_all_processors(procs, width):
    """nodes = ceil(procs / procs_per_node): the least number of nodes that holds them."""
    jobspec = JobMap.parse("node={nodes}/slot={ppn}/core", procs_per_node=width).jobspec(Flat(procs=procs))
    found = demand(jobspec)
    assert procs <= found.nodes * width < procs + width
    assert procs <= found.cores < procs + found.nodes


def test_a_map_that_is_not_used_is_noted(tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("- {shape: slot=1/core, submit: 0, runtime: 5}\n")
    note = "the map is not used, since the jobs state their requests"
    assert load_workload(path, map="slot={procs}/gpu").notes == (note,)
    assert load_workload(path).notes == ()
    path = tmp_path / "log.swf"
    path.write_text(" ".join(["1"] * 18) + "\n")
    assert note not in load_workload(path, map="slot={procs}/core").notes
