"""A table of invalid jobspecs: each is refused, at the path of its fault, by rules, builder and reader."""

from __future__ import annotations

import copy
import json
import random

import pytest
from jsonschema import Draft202012Validator

from simsched.cli.schema import schema_text
from simsched.errors import FormatError
from simsched.formats.jobspec.fast import Reader
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.validation_rules import faults_of
from simsched.formats.text.excerpts import format_path, parse_path
from simsched.formats.validate import validate_text

GOOD = {
    "version": 999,
    "resources": [
        {
            "type": "node",
            "count": {"min": 1, "max": 8, "operator": "+", "operand": 1},
            "exclusive": True,
            "with": [
                {
                    "type": "slot",
                    "count": 2,
                    "label": "a",
                    "with": [
                        {"type": "core", "count": "2,4", "id": "0-7"},
                        {"type": "memory", "count": 4, "unit": "GB"},
                    ],
                },
                {"type": "slot", "count": 1, "label": "b", "with": [{"type": "gpu", "count": 1}]},
            ],
        }
    ],
    "tasks": [
        {"command": ["app"], "slot": "a", "count": {"per_slot": 1}, "distribution": "cyclic",
         "attributes": {"k": "v"}},
        {"command": ["app", "x"], "slot": "b", "count": {"per_resource": {"type": "gpu", "count": 2}}},
    ],
    "attributes": {
        "system": {
            "duration": 60.5,
            "preemptible-after": 10,
            "environment": {"HOME": "/", "UNSET": None},
            "cwd": "/",
            "queue": "q",
            "bank": "b",
            "project": "p",
            "job": {"name": "n"},
            "shell": {"options": {}},
            "files": {},
            "dependencies": [{"scheme": "afterok", "value": "1"}],
            "constraints": {"and": [{"properties": ["a", "^b"]}, {"not": [{"hostlist": ["n[0-3]"]}]}]},
            "of-our-own": 1,
        },
        "user": {"anything": [1, None]},
    },
}  # fmt: skip

SLOT = "resources[0].with[0]"
SYSTEM = "attributes.system"
GONE = object()

#: path to change, the value to put there, the path of the fault
FAULTS = [
    ("version", GONE, ""),
    ("resources", GONE, ""),
    ("tasks", GONE, ""),
    ("attributes", GONE, ""),
    ("extra", 1, "extra"),
    ("version", 0, "version"),
    ("version", "1", "version"),
    ("version", 1.0, "version"),
    ("version", True, "version"),
    ("version", None, "version"),
    ("resources", [], "resources"),
    ("resources", {"type": "node", "count": 1}, "resources"),
    ("resources", None, "resources"),
    ("resources[0]", "node", "resources[0]"),
    ("resources[0].type", GONE, "resources[0]"),
    ("resources[0].count", GONE, "resources[0]"),
    ("resources[0].cuont", 2, "resources[0].cuont"),
    ("resources[0].type", 4, "resources[0].type"),
    ("resources[0].type", "", "resources[0].type"),
    ("resources[0].type", None, "resources[0].type"),
    ("resources[0].exclusive", "yes", "resources[0].exclusive"),
    ("resources[0].exclusive", 1, "resources[0].exclusive"),
    ("resources[0].exclusive", None, "resources[0].exclusive"),
    ("resources[0].unit", 4, "resources[0].unit"),
    ("resources[0].id", 4, "resources[0].id"),
    ("resources[0].id", ["0"], "resources[0].id"),
    ("resources[0].label", 4, "resources[0].label"),
    ("resources[0].with", {"type": "core", "count": 1}, "resources[0].with"),
    ("resources[0].with", None, "resources[0].with"),
    ("resources[0].with[1]", 4, "resources[0].with[1]"),
    ("resources[0].count.min", 0, "resources[0].count.min"),
    ("resources[0].count.min", "1", "resources[0].count.min"),
    ("resources[0].count.min", GONE, "resources[0].count"),
    ("resources[0].count.max", 0, "resources[0].count.max"),
    ("resources[0].count.min", 9, "resources[0].count.max"),
    ("resources[0].count.max", None, "resources[0].count.max"),
    ("resources[0].count.operator", "-", "resources[0].count.operator"),
    ("resources[0].count.operator", "*", "resources[0].count.operand"),
    ("resources[0].count", {"min": 1, "operator": "^", "operand": 2}, "resources[0].count.min"),
    ("resources[0].count.operand", 0, "resources[0].count.operand"),
    ("resources[0].count.operand", GONE, "resources[0].count"),
    ("resources[0].count.operator", GONE, "resources[0].count"),
    ("resources[0].count.step", 1, "resources[0].count.step"),
    (f"{SLOT}.count", 0, f"{SLOT}.count"),
    (f"{SLOT}.count", -2, f"{SLOT}.count"),
    (f"{SLOT}.count", 2.0, f"{SLOT}.count"),
    (f"{SLOT}.count", 2.5, f"{SLOT}.count"),
    (f"{SLOT}.count", True, f"{SLOT}.count"),
    (f"{SLOT}.count", None, f"{SLOT}.count"),
    (f"{SLOT}.count", [2], f"{SLOT}.count"),
    (f"{SLOT}.count", "", f"{SLOT}.count"),
    (f"{SLOT}.count", "0", f"{SLOT}.count"),
    (f"{SLOT}.count", "0-4", f"{SLOT}.count"),
    (f"{SLOT}.count", "04", f"{SLOT}.count"),
    (f"{SLOT}.count", "5-2", f"{SLOT}.count"),
    (f"{SLOT}.count", "4,2", f"{SLOT}.count"),
    (f"{SLOT}.count", "two", f"{SLOT}.count"),
    (f"{SLOT}.count", "1-4:0", f"{SLOT}.count"),
    (f"{SLOT}.count", "1-4:2:%", f"{SLOT}.count"),
    (f"{SLOT}.count", "1-4:2:^", f"{SLOT}.count"),
    (f"{SLOT}.count", 2**60, f"{SLOT}.count"),
    (f"{SLOT}.label", GONE, SLOT),
    (f"{SLOT}.label", "b", "resources[0].with[1].label"),
    (f"{SLOT}.label", None, f"{SLOT}.label"),
    (f"{SLOT}.with", GONE, SLOT),
    (f"{SLOT}.with", [], f"{SLOT}.with"),
    (f"{SLOT}.with[0].label", "b", "resources[0].with[1].label"),
    ("tasks", [], "tasks"),
    ("tasks", {}, "tasks"),
    ("tasks[0]", "app", "tasks[0]"),
    ("tasks[0].command", GONE, "tasks[0]"),
    ("tasks[0].command", [], "tasks[0].command"),
    ("tasks[0].command", "app", "tasks[0].command"),
    ("tasks[0].command", ["app", 4], "tasks[0].command[1]"),
    ("tasks[0].slot", GONE, "tasks[0]"),
    ("tasks[0].slot", "c", "tasks[0].slot"),
    ("tasks[0].slot", 0, "tasks[0].slot"),
    ("tasks[0].count", GONE, "tasks[0]"),
    ("tasks[0].count", 1, "tasks[0].count"),
    ("tasks[0].count", {}, "tasks[0].count"),
    ("tasks[0].count", {"per_slot": 1, "total": 2}, "tasks[0].count"),
    ("tasks[0].count", {"per_node": 1}, "tasks[0].count.per_node"),
    ("tasks[0].count.per_slot", 0, "tasks[0].count.per_slot"),
    ("tasks[0].count.per_slot", "1", "tasks[0].count.per_slot"),
    ("tasks[0].count", {"total": 1.5}, "tasks[0].count.total"),
    ("tasks[1].count.per_resource", 4, "tasks[1].count.per_resource"),
    ("tasks[1].count.per_resource.type", "core", "tasks[1].count.per_resource.type"),
    ("tasks[1].count.per_resource.type", GONE, "tasks[1].count.per_resource"),
    ("tasks[1].count.per_resource.count", 0, "tasks[1].count.per_resource.count"),
    ("tasks[1].count.per_resource.kind", "x", "tasks[1].count.per_resource.kind"),
    ("tasks[0].distribution", 4, "tasks[0].distribution"),
    ("tasks[0].attributes", [], "tasks[0].attributes"),
    ("tasks[0].env", {}, "tasks[0].env"),
    ("attributes", [], "attributes"),
    ("attributes.system", None, "attributes.system"),
    ("attributes.user", 4, "attributes.user"),
    ("attributes.sytem", {}, "attributes.sytem"),
    (f"{SYSTEM}.duration", -1, f"{SYSTEM}.duration"),
    (f"{SYSTEM}.duration", "1h", f"{SYSTEM}.duration"),
    (f"{SYSTEM}.duration", None, f"{SYSTEM}.duration"),
    (f"{SYSTEM}.duration", False, f"{SYSTEM}.duration"),
    (f'{SYSTEM}["preemptible-after"]', -1, f"{SYSTEM}.preemptible-after"),
    (f"{SYSTEM}.environment", ["HOME=/"], f"{SYSTEM}.environment"),
    (f"{SYSTEM}.environment.HOME", 4, f"{SYSTEM}.environment.HOME"),
    (f"{SYSTEM}.cwd", 4, f"{SYSTEM}.cwd"),
    (f"{SYSTEM}.queue", None, f"{SYSTEM}.queue"),
    (f"{SYSTEM}.bank", [], f"{SYSTEM}.bank"),
    (f"{SYSTEM}.project", {}, f"{SYSTEM}.project"),
    (f"{SYSTEM}.job", "name", f"{SYSTEM}.job"),
    (f"{SYSTEM}.job.name", 4, f"{SYSTEM}.job.name"),
    (f"{SYSTEM}.shell", "bash", f"{SYSTEM}.shell"),
    (f"{SYSTEM}.files", [], f"{SYSTEM}.files"),
    (f"{SYSTEM}.dependencies", {"scheme": "after", "value": "1"}, f"{SYSTEM}.dependencies"),
    (f"{SYSTEM}.dependencies[0]", "afterok:1", f"{SYSTEM}.dependencies[0]"),
    (f"{SYSTEM}.dependencies[0].scheme", GONE, f"{SYSTEM}.dependencies[0].scheme"),
    (f"{SYSTEM}.dependencies[0].value", False, f"{SYSTEM}.dependencies[0].value"),
    (f"{SYSTEM}.constraints", "ssd", f"{SYSTEM}.constraints"),
    (f"{SYSTEM}.constraints", None, f"{SYSTEM}.constraints"),
    (f"{SYSTEM}.constraints.and[0].properties", "a", f"{SYSTEM}.constraints.and[0]"),
    (f"{SYSTEM}.constraints.and[0].properties[1]", 4, f"{SYSTEM}.constraints.and[0].properties[1]"),
    (f"{SYSTEM}.constraints.and[0].or", [], f"{SYSTEM}.constraints.and[0]"),
    (f"{SYSTEM}.constraints.and[1].not[0]", {"near": []}, f"{SYSTEM}.constraints.and[1].not[0]"),
    (f"{SYSTEM}.constraints.and[1].not[0].hostlist[0]", "n[",
     f"{SYSTEM}.constraints.and[1].not[0].hostlist[0]"),
]  # fmt: skip


def changed(path, value):
    """The good jobspec with one value put in another's place, or taken away."""
    document = copy.deepcopy(GOOD)
    *steps, last = parse_path(path)
    place = document
    for step in steps:
        place = place[step]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return document


def test_the_good_one_is_good():
    assert faults_of(GOOD) == []
    assert Jobspec.from_dict(GOOD).to_dict() == GOOD
    assert Reader().read(json.dumps(GOOD).encode()) == Jobspec.from_dict(GOOD)


def test_the_table_is_long_enough():
    assert len(FAULTS) >= 60


@pytest.mark.parametrize(("path", "value", "where"), FAULTS)
def test_fault_is_found_at_its_path(path, value, where):
    document = changed(path, value)
    faults = faults_of(document)
    assert where in {format_path(fault.path) for fault in faults}
    assert all(fault.message and fault.expected for fault in faults)
    with pytest.raises(FormatError):
        Jobspec.from_dict(document)
    assert Reader().read(json.dumps(document).encode()) is None


V1 = {
    "version": 1,
    "resources": [
        {
            "type": "node",
            "count": 2,
            "with": [
                {
                    "type": "slot",
                    "count": 1,
                    "label": "default",
                    "with": [{"type": "core", "count": 1}, {"type": "gpu", "count": 1}],
                }
            ],
        }
    ],
    "tasks": [{"command": ["app"], "slot": "default", "count": {"per_slot": 1}}],
    "attributes": {"system": {"duration": 0}},
}
LEAVES = f"{SLOT}.with"

#: what RFC 14 allows and RFC 25 does not
V1_FAULTS = [
    ("version", 999, "version"),
    ("resources", V1["resources"] * 2, "resources"),
    ("resources[0].type", "switch", "resources[0].type"),
    ("resources[0].count", {"min": 1}, "resources[0].count"),
    ("resources[0].count", "2-4", "resources[0].count"),
    ("resources[0].count", "2", "resources[0].count"),
    ("resources[0].label", "n", "resources[0].label"),
    ("resources[0].id", "0-3", "resources[0].id"),
    ("resources[0].with", GONE, "resources[0]"),
    ("resources[0].with", [], "resources[0].with"),
    ("resources[0].with", V1["resources"][0]["with"] * 2, "resources[0].with"),
    (f"{SLOT}.type", "core", f"{SLOT}.type"),
    (f"{SLOT}.with[0].type", "node", f"{SLOT}.with[0].type"),
    (LEAVES, [{"type": "gpu", "count": 1}], LEAVES),
    (LEAVES, [{"type": "core", "count": 1}] * 2, LEAVES),
    (LEAVES, [{"type": "core", "count": 1}] + [{"type": "gpu", "count": 1}] * 2, LEAVES),
    (f"{LEAVES}[0].exclusive", True, f"{LEAVES}[0].exclusive"),
    (f"{LEAVES}[0].label", "c", f"{LEAVES}[0].label"),
    (f"{LEAVES}[0].with", [{"type": "core", "count": 1}], f"{LEAVES}[0].with"),
    (f"{LEAVES}[0].with", [], f"{LEAVES}[0].with"),
    ("tasks", V1["tasks"] * 2, "tasks"),
    ("tasks[0].distribution", "cyclic", "tasks[0].distribution"),
    ("tasks[0].attributes", {}, "tasks[0].attributes"),
    ("tasks[0].count", {"per_resource": {"type": "core", "count": 1}}, "tasks[0].count.per_resource"),
    ("tasks[0].command", "", "tasks[0].command"),
    ("attributes", None, "attributes"),
    ("attributes", {"user": {}}, "attributes"),
    ("attributes.system.duration", GONE, "attributes.system"),
]


@pytest.mark.parametrize(("path", "value", "where"), V1_FAULTS)
def test_what_v1_does_not_have_is_found_at_its_path(path, value, where, monkeypatch):
    monkeypatch.setitem(globals(), "GOOD", V1)
    assert faults_of(V1, v1=True) == []
    faults = faults_of(changed(path, value), v1=True)
    assert where in {format_path(fault.path) for fault in faults}


#: faults that take a rule beside the schema
BEYOND_A_SCHEMA = {
    ("resources[0].count.min", "9"),
    (f"{SLOT}.label", "'b'"),
    (f"{SLOT}.with[0].label", "'b'"),
    (f"{SLOT}.count", "'5-2'"),
    (f"{SLOT}.count", "'4,2'"),
    (f"{SLOT}.count", "'1-4:2:^'"),
    (f"{SLOT}.count", "2.0"),
    ("version", "1.0"),
    ("tasks[0].slot", "'c'"),
    ("tasks[1].count.per_resource.type", "'core'"),
    (f"{SYSTEM}.constraints.and[1].not[0].hostlist[0]", "'n['"),
}


@pytest.mark.parametrize(("path", "value", "where"), FAULTS)
def test_the_schema_refuses_what_a_schema_can(path, value, where):
    schema = Draft202012Validator(json.loads(schema_text("rfc14")))
    assert schema.is_valid(changed(path, value)) == ((path, repr(value)) in BEYOND_A_SCHEMA)


def places(value):
    """Every (container, key) in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from places(inner)


WHOLE_DOCUMENTS = {"rfc14": GOOD, "v1": V1}
ODD_VALUES = [
    None, True, -1, 0, 1, 1.5, 2**53 + 1, "", "x", "0-3", "slot", "core", [], {}, [1], ["app"], {"a": 1},
    {"min": 1}, {"per_slot": 1}, [{"type": "core", "count": 1}],
]  # fmt: skip


@pytest.mark.parametrize("name", WHOLE_DOCUMENTS)
@pytest.mark.parametrize("seed", range(10))
def test_the_schema_refuses_nothing_that_the_rules_accept(name, seed):
    """The rules are the one judge; the JSON Schemas are published for others."""
    schema = Draft202012Validator(json.loads(schema_text(name)))
    rng = random.Random(seed)
    accepted = 0
    for _ in range(100):
        document = copy.deepcopy(WHOLE_DOCUMENTS[name])
        container, key = rng.choice(list(places(document)))
        if rng.random() < 0.3:
            del container[key]
        else:
            container[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        if not faults_of(document, v1=name == "v1"):
            accepted += 1
            assert schema.is_valid(document), document
    assert accepted


def test_the_version_has_a_limit():
    document = GOOD | {"version": 2**53 + 1}
    (fault,) = faults_of(document)
    assert str(fault) == "version: a huge number is not valid here (expected at most 9007199254740992)"
    with pytest.raises(FormatError, match="version"):
        Jobspec.from_dict(document)


def test_an_unknown_key_of_the_system_is_a_note_and_no_fault():
    document = Jobspec.from_shape("slot=1/core", duration=60).to_dict()
    assert validate_text(json.dumps(document), "job.json").notes == ()
    document["attributes"]["system"] |= {"durration": 60, "zzz": 1}
    report = validate_text(json.dumps(document), "job.json")
    assert report.is_valid
    assert report.notes == (
        "note: attributes.system has the unknown key 'durration'; did you mean duration?",
        "note: attributes.system has the unknown key 'zzz'",
    )
