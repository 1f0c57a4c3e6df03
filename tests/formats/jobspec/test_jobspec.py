"""Jobspecs: made from shapes and documents, read, and turned into one another."""

from __future__ import annotations

import json
import math
import re

import pytest

from simsched.errors import FormatError, LimitError, RequestError
from simsched.formats.jobspec.fast import Reader
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.validation_rules import faults_of
from simsched.formats.request_files import load_jobspec, load_jobspecs
from simsched.formats.rfc.constraint import Properties, parse_constraint
from simsched.formats.rfc.dependency import Dependency
from simsched.formats.text.yaml_text import load_yaml


def test_a_shape_becomes_a_whole_jobspec():
    job = Jobspec.from_shape(
        "slot=10/[core=2;gpu]",
        duration="1h",
        command=["app", "-n"],
        constraint="ssd",
        queue="batch",
        name="demo",
        dependencies=["afterok:7"],
    )
    assert job.to_dict() == {
        "version": 1,
        "resources": [
            {
                "type": "slot",
                "count": 10,
                "label": "default",
                "with": [{"type": "core", "count": 2}, {"type": "gpu", "count": 1}],
            }
        ],
        "tasks": [{"command": ["app", "-n"], "slot": "default", "count": {"per_slot": 1}}],
        "attributes": {
            "system": {
                "duration": 3600.0,
                "queue": "batch",
                "constraints": {"properties": ["ssd"]},
                "job": {"name": "demo"},
                "dependencies": [{"scheme": "afterok", "value": "7"}],
            }
        },
    }
    assert job.duration == 3600.0
    assert job.constraint == Properties(("ssd",))
    assert (job.queue, job.name) == ("batch", "demo")
    assert job.dependencies == (Dependency("afterok", "7"),)
    assert faults_of(job.to_dict()) == faults_of(job.to_dict(), v1=True) == []


def test_what_is_not_said_is_not_there():
    job = Jobspec.from_shape("slot/core")
    assert (job.duration, job.constraint, job.queue, job.name, job.dependencies) == (
        None,
        None,
        None,
        None,
        (),
    )
    assert job.attributes == {"system": {"duration": 0.0}}


def test_every_slot_gets_a_task():
    job = Jobspec.from_shape("[slot=2{a}/core;slot{b}/gpu]", command=["x"])
    assert [(task.slot, task.command) for task in job.tasks] == [("a", ("x",)), ("b", ("x",))]
    assert job.version == 999


@pytest.mark.parametrize("duration", [None, 0, "0", "inf", math.inf])
def test_no_limit_in_all_its_spellings(duration):
    assert Jobspec.from_shape("slot/core", duration=duration).duration is None


def test_a_constraint_is_taken_in_every_form():
    text = "a and not host:n[0-3]"
    tree = parse_constraint(text)
    jobs = {
        Jobspec.from_shape("node", constraint=text),
        Jobspec.from_shape("node", constraint=tree),
        Jobspec.from_shape(
            "node", constraint={"and": [{"properties": ["a"]}, {"not": [{"hostlist": ["n[0-3]"]}]}]}
        ),
    }
    assert len(jobs) == 1
    assert jobs.pop().constraint == tree


def test_equal_requests_are_equal_and_hash_alike():
    first, second = (Jobspec.from_shape("slot=2/core", duration=60) for _ in range(2))
    assert first == second
    assert first is not second
    assert hash(first) == hash(second)
    assert first.resources is second.resources
    assert first != Jobspec.from_shape("slot=2/core", duration=61)


def test_a_jobspec_cannot_be_changed():
    job = Jobspec.from_shape("slot=2/core")
    with pytest.raises(AttributeError):
        job.version = 2
    with pytest.raises(AttributeError):
        job.resources[0].count = None
    with pytest.raises(TypeError, match="cannot be changed"):
        job.attributes["system"]["duration"] = 4


def test_system_keys_can_be_replaced_in_a_copy():
    job = Jobspec.from_shape("slot=2/core", duration=60, queue="a")
    other = job.with_system(queue=None, duration=5, bank="b")
    assert other.system == {"duration": 5, "bank": "b"}
    assert job.queue == "a"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"duration": "1 fortnight"}, "duration"),
        ({"duration": -1}, "duration"),
        ({"constraint": "a and"}, "constraint ends"),
        ({"constraint": {"nand": []}}, "unknown operator"),
        ({"dependencies": ["x"]}, "not a dependency"),
    ],
)
def test_faulty_options(options, words):
    with pytest.raises(FormatError, match=words):
        Jobspec.from_shape("slot/core", **options)


def test_a_jobspec_from_a_shape_has_the_keys_of_rfc_14_only():
    with pytest.raises(FormatError, match="no key 'colour'"):
        Jobspec.from_shape("node{colour:red}")


# ---------------------------------------------------------------- conversions


@pytest.mark.parametrize(
    ("shape", "where", "words"),
    [
        ("[slot{a}/core;slot{b}/core]", "resources", "2 resources"),
        ("socket/slot/core", "resources[0].type", "'socket' is not allowed here in V1"),
        ("core", "resources[0].type", "'core' is not allowed here in V1"),
        ("node/core", "resources[0].with[0].type", "'core' is not allowed here in V1"),
        ("node/[slot/core;gpu]", "resources[0].with[1].type", "'gpu' is not allowed here in V1"),
        ("slot/node", "resources[0].with[0].type", "'node' is not allowed here in V1"),
        ("slot/gpu", "resources[0].with", "0 core resources in the slot"),
        ("slot/[core;gpu;memory]", "resources[0].with[2].type", "'memory' is not allowed here in V1"),
        ("slot/[core;core]", "resources[0].with", "2 core resources in the slot"),
        ("slot=2+/core", "resources[0].count", "the count 2+"),
        ("node=2,4/slot/core", "resources[0].count", "the count 2,4"),
        ("slot/core=1-4", "resources[0].with[0].count", "the count 1-4"),
        ("slot/core{x}", "resources[0].with[0].exclusive", "a core has no 'exclusive' in V1"),
        ("node{id:'0-3'}/slot/core", "resources[0].id", "a node has no 'id' in V1"),
        ("node{label:n}/slot/core", "resources[0].label", "a node has no 'label' in V1"),
        ("slot/core/pu", "resources[0].with[0].with", "a core has no 'with' in V1"),
    ],
)
def test_what_does_not_fit_v1_is_named(shape, where, words):
    job = Jobspec.from_shape(shape)
    assert job.version == 999
    with pytest.raises(RequestError, match=re.escape(words)) as caught:
        job.to_v1()
    assert caught.value.where == where
    document = {**job.to_dict(), "version": 1}
    assert faults_of(document, v1=True)
    assert not Reader().passes(json.dumps(document).encode(), v1=True)


@pytest.mark.parametrize(
    "shape",
    ["slot/core", "node=2/slot=3/core=4", "slot/[core=2;gpu]", "slot/[gpu;core]", "node{x}/slot/core",
     "slot{a,x}/core", "slot/core{unit:GB}"],
)  # fmt: skip
def test_what_fits_v1(shape):
    job = Jobspec.from_shape(shape)
    assert job.version == 1
    assert job.to_canonical().version == 999
    assert job.to_canonical().to_v1() == job
    assert faults_of(job.to_dict(), v1=True) == []
    assert Reader().passes(json.dumps(job.to_dict()).encode(), v1=True)
    assert Jobspec.from_dict(job.to_dict()).to_shape() == shape.replace("slot{default}", "slot")


V1_TEXT = """\
version: 1
resources:
- {type: slot, count: 2, label: default, with: [{type: core, count: 1}]}
tasks:
- {command: [app], slot: default, count: {per_slot: 1}}
attributes:
  system: {duration: 60}
"""


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"count": {"per_resource": {"type": "core", "count": 1}}}, "tasks[0].count.per_resource"),
        ({"attributes": {"a": 1}}, "tasks[0].attributes"),
        ({"distribution": "cyclic"}, "tasks[0].distribution"),
    ],
)
def test_tasks_that_do_not_fit_v1(change, where):
    document = load_yaml(V1_TEXT) | {"version": 999}
    document["tasks"][0] |= change
    with pytest.raises(RequestError) as caught:
        Jobspec.from_dict(document).to_v1()
    assert caught.value.where == where


def test_v1_needs_a_duration_and_one_task():
    document = load_yaml(V1_TEXT) | {"version": 999}
    document["attributes"] = {}
    with pytest.raises(RequestError, match="the key 'system' is missing"):
        Jobspec.from_dict(document).to_v1()
    document["tasks"] *= 2
    with pytest.raises(RequestError, match="2 tasks"):
        Jobspec.from_dict(document).to_v1()


def test_a_v1_command_may_be_one_string():
    document = load_yaml(V1_TEXT)
    document["tasks"][0]["command"] = "app"
    assert Jobspec.from_dict(document).tasks[0].command == ("app",)
    with pytest.raises(FormatError, match=r"tasks\[0\].command"):
        Jobspec.from_dict(document | {"version": 999})


def test_attributes_may_be_null_in_rfc_14_and_not_in_v1():
    document = load_yaml(V1_TEXT) | {"version": 999, "attributes": None}
    job = Jobspec.from_dict(document)
    assert job.to_dict()["attributes"] == {}
    assert Reader().read(json.dumps(document).encode()) == job
    assert not Reader().passes(json.dumps(document | {"version": 1}).encode(), v1=True)
    assert faults_of(document) == []
    assert faults_of(document | {"version": 1}, v1=True)


def test_the_first_fault_and_the_number_of_the_others():
    document = load_yaml(V1_TEXT)
    document["resources"][0]["count"] = 0
    document["tasks"][0]["slot"] = "elsewhere"
    with pytest.raises(FormatError) as caught:
        Jobspec.from_dict(document, "job.yaml")
    assert str(caught.value) == (
        "job.yaml: resources[0].count: 0 is not valid here, and 1 more (expected an integer, at least 1)"
    )


@pytest.mark.parametrize("value", [None, 4, "x", [], {}, {"version": 1}])
def test_what_is_no_document_at_all(value):
    with pytest.raises(FormatError):
        Jobspec.from_dict(value)


def test_a_document_ten_thousand_levels_deep():
    vertex = {"type": "a", "count": 1}
    for _ in range(10_000):
        vertex = {"type": "a", "count": 1, "with": [vertex]}
    document = load_yaml(V1_TEXT) | {"resources": [vertex], "version": 999}
    with pytest.raises(FormatError, match="nested too deeply"):
        Jobspec.from_dict(document)
    deep = {}
    for _ in range(10_000):
        deep = {"a": deep}
    with pytest.raises(LimitError, match="nested deeper"):
        Jobspec.from_dict(load_yaml(V1_TEXT) | {"attributes": {"system": {"duration": 1}, "user": deep}})


# ---------------------------------------------------------------- files


def test_files_of_every_kind(tmp_path):
    job = Jobspec.from_dict(load_yaml(V1_TEXT))
    line = json.dumps(job.to_dict())
    for name, text, count in [
        ("one.yaml", V1_TEXT, 1),
        ("many.yaml", f"---\n{V1_TEXT}---\n{V1_TEXT}", 2),
        ("one.json", json.dumps(job.to_dict(), indent=2), 1),
        ("list.json", f"[{line},\n{line}]", 2),
        ("many.jsonl", f"{line}\n{line}\n\n", 2),
    ]:
        path = tmp_path / name
        path.write_text(text)
        assert load_jobspecs(path) == [job] * count
        if count == 1:
            assert load_jobspec(path) == job
        else:
            with pytest.raises(FormatError, match="2 documents"):
                load_jobspec(path)


def test_a_file_tells_the_place_of_its_first_fault(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(f"{V1_TEXT}---\n{V1_TEXT.replace('count: 2', 'count: none')}")
    with pytest.raises(FormatError) as caught:
        load_jobspecs(path)
    assert str(caught.value) == (
        f"{path}:11:23: resources[0].count: 'none': found 'n' instead of the count "
        "(expected a positive integer)"
    )


@pytest.mark.parametrize("text", ["", "slot/core", "<xml/>", "- 1\n", "null\n", "{"])
def test_files_that_hold_no_jobspec(tmp_path, text):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"job\.yaml"):
        load_jobspec(path)
    with pytest.raises(FormatError, match="no such file"):
        load_jobspec(tmp_path / "absent")


def test_a_command_is_a_list_and_no_text():
    with pytest.raises(FormatError, match="a list of words"):
        Jobspec.from_shape("slot=1/core", command="sleep 5")
    for odd in (5, [1], ["sleep", None]):
        with pytest.raises(FormatError, match=r"is not a command .expected a list of words"):
            Jobspec.from_shape("slot=1/core", command=odd)
