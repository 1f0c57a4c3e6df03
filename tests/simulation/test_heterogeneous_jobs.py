"""Heterogeneous jobs: all parts start at once or none, each on nodes of its own constraint and queue."""

from __future__ import annotations

import json
import random
import shutil

import pytest

from simsched.errors import SimschedError
from simsched.formats.jobspec.heterogeneous import joined, part_constraints
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job
from simsched.workload.readers.jobs import read_jobs_yaml
from tests.reference.vectors import Job as VectorJob
from tests.reference.vectors import schedule
from tests.simulation.simworld import machine, results, starts, workload

CLUSTER = machine(nodes=6, cores=2, properties={"big": "0-1", "small": "2-5"})
YAML = """
- {id: a, duration: 10, shape: 'slot=1/node', constraint: big}
- id: h
  duration: 5
  submit: 1
  parts:
    - {shape: 'slot=2/node', constraint: big}
    - {shape: 'slot=3/core', constraint: small}
- {id: b, duration: 30, submit: 2, shape: 'slot=1/node', constraint: big}
- {id: c, duration: 30, submit: 2, shape: 'slot=1/node', constraint: small}
"""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", {"a": 0, "h": 10, "b": 15, "c": 15}),
        ("easy", {"a": 0, "h": 10, "b": 15, "c": 2}),
        ("conservative", {"a": 0, "h": 10, "b": 15, "c": 2}),
    ],
)
def test_all_parts_start_at_once(policy, expected, tmp_path):
    given = read_jobs_yaml(YAML)
    found = simulate(CLUSTER, given, policy)
    assert starts(found) == expected
    assert not audit_run(found.save(tmp_path / "run"), CLUSTER, given).faults


def parts_of(rng):
    """A random job of one or two parts, as whole nodes of the two kinds."""
    big, small = rng.randint(1, 2), rng.randint(1, 4)
    needs = rng.choice([(big, 0), (0, small), (big, small)])
    kinds = [(count, kind) for count, kind in zip(needs, ("big", "small"), strict=True) if count]
    specs = [Jobspec.from_shape(f"slot={count}/node", constraint=kind) for count, kind in kinds]
    return needs, joined(specs)


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(5))
def test_equal_to_a_naive_scheduler_of_vectors(policy, seed, tmp_path):
    rng = random.Random(seed)
    plain, made, time = [], [], 0
    for number in range(60):
        time += rng.randint(0, 6)
        needs, spec = parts_of(rng)
        requested = rng.randint(1, 20)
        plain.append(VectorJob(number, time, rng.randint(1, requested), requested, needs))
        made.append(Job(id=number, submit=time, jobspec=spec, runtime=plain[-1].runtime, duration=requested))
    found = simulate(CLUSTER, workload(*made), policy)
    expected = schedule(plain, (2, 4), policy)
    assert starts(found) == {str(number): start for number, start in expected.items()}
    assert not audit_run(found.save(tmp_path / "run"), CLUSTER, found.workload).faults


def test_parts_in_queues_of_their_own():
    text = """
- {id: a, duration: 10, queue: small, shape: 'slot=4/node'}
- {id: h, duration: 5, submit: 1, parts: [{shape: slot/node, queue: big}, {shape: slot/node, queue: small}]}
- {id: x, duration: 5, submit: 1, parts: [{shape: slot/node, queue: big}, {shape: slot/node, queue: none}]}
- {id: y, duration: 50, submit: 1, parts: [{shape: slot/core, queue: big}, {shape: slot/core, queue: small}]}
"""
    limit = {"limits": {"duration": "20s"}}
    queues = {"big": {"requires": ["big"]}, "small": {"requires": ["small"], "policy": limit}}
    found = simulate(CLUSTER, read_jobs_yaml(text), "easy", queues=queues)
    assert starts(found) == {"a": 0, "h": 10}
    assert results(found) == {"a": "COMPLETED", "h": "COMPLETED", "x": "FAILED", "y": "FAILED"}
    reasons = dict(zip(found.jobs["id"], found.jobs["reason"], strict=True))
    assert "there is no queue 'none'" in reasons["x"]
    assert "queue small allows 20s" in reasons["y"]


def test_the_audit_finds_parts_on_nodes_of_another_part(tmp_path):
    spec = joined([Jobspec.from_shape("slot=2/node", constraint=name) for name in ("big", "small")])
    found = simulate(CLUSTER, workload(Job(id=1, submit=0, jobspec=spec, runtime=5, duration=5)), "fcfs")
    path = found.save(tmp_path / "run")
    other = joined(
        [Jobspec.from_shape(f"slot={n}/node", constraint=name) for n, name in ((1, "big"), (3, "small"))]
    )
    claimed = workload(Job(id=1, submit=0, jobspec=other, runtime=5, duration=5))
    assert {fault.law for fault in audit_run(path, CLUSTER, claimed).faults} >= {"A5"}


def test_jobspecs_of_parts_are_read_again():
    spec = joined([Jobspec.from_shape("slot=1/node", constraint="big"), Jobspec.from_shape("slot=2/core")])
    assert Jobspec.from_dict(spec.to_dict()) == spec
    assert [str(rule) for rule in part_constraints(spec)] == ["big", "None"]
    broken = spec.to_dict()
    broken["attributes"]["system"]["resource-parts"][0]["resources"] = 2
    with pytest.raises(SimschedError, match="the parts have 3 resources, and the jobspec has 2"):
        Jobspec.from_dict(broken)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("parts: []", r"jobs\[0\].parts: the number of items is 0"),
        ("parts: [3]", r"parts\[0\]: 3 is not a table"),
        ("parts: [{shape: core, user: ann}]", r"parts\[0\]: unknown key 'user'"),
        ("parts: [{shape: slot=1/core}], shape: core", "found shape and parts"),
    ],
)
def test_faults_have_a_place(entry, message):
    with pytest.raises(SimschedError, match=message):
        read_jobs_yaml(f"- {{duration: 5, {entry}}}")


def part(shape, **system):
    spec = Jobspec.from_shape(shape).to_dict()
    spec["attributes"]["system"] |= system
    return {"jobspec": spec}


@pytest.mark.slow
def test_parts_of_one_queue_are_in_that_queue(tmp_path):
    """Whether the parts name it themselves or by their jobspecs, in YAML or in Python."""
    queues = {"small": {"requires": ["small"], "policy": {"limits": {"duration": "20s"}}}, "big": {}}
    parts = [
        [{"shape": "slot=1/node", "queue": "small"}, {"shape": "slot=2/core", "queue": "small"}],
        [part("slot=1/node", queue="small"), part("slot=2/core", queue="small")],
        [{"shape": "slot=1/core", "queue": "small"}, {"shape": "slot=2/core", "queue": "small"}],
    ]
    for entry in (*({"parts": one} for one in parts), {"parts": parts[0], "queue": "big"}):
        for duration, result in ((10, "COMPLETED"), (50, "FAILED")):
            given = read_jobs_yaml(json.dumps([{"id": "h", "duration": duration, **entry}]))
            found = simulate(CLUSTER, given, "easy", queues=queues)
            assert results(found) == {"h": result}
            assert found.jobs["queue"].tolist() == ["small"]
            assert audit_run(found.save(tmp_path / "run"), CLUSTER, given)
            alloc = (tmp_path / "run" / "allocations.jsonl").read_text()
            assert '"n0"' not in alloc
            assert '"n[0' not in alloc
            shutil.rmtree(tmp_path / "run")
    spec = joined([Jobspec.from_shape("slot=1/node"), Jobspec.from_shape("slot=2/core")], ["small", "small"])
    found = simulate(
        CLUSTER, workload(Job(id=1, submit=0, jobspec=spec, runtime=50, duration=50)), queues=queues
    )
    assert results(found) == {"1": "FAILED"}


def test_attributes_of_any_part_are_those_of_the_job():
    parts = [part("slot=1/node", duration=10), part("slot=1/core", duration=90, licenses="matlab:2")]
    (made,) = read_jobs_yaml(json.dumps([{"id": "h", "parts": parts}])).jobs
    assert (made.duration, made.jobspec.system["licenses"]) == (90, "matlab:2")
    parts[0] = part("slot=1/node", licenses="matlab:1")
    with pytest.raises(SimschedError, match=r"jobs\[0\].parts: 2 parts state licenses"):
        read_jobs_yaml(json.dumps([{"id": "h", "duration": 5, "parts": parts}]))
