"""Every fault of a text at once, with line, column and JSON path; and every pitfall of YAML."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from simsched.cli.schema import schema_text
from simsched.errors import FormatError
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.validation_rules import faults_of
from simsched.formats.request_files import load_jobspecs
from simsched.formats.validate import validate_file, validate_text

GOOD = """\
version: 1
resources:
- type: slot
  count: 2
  label: default
  with:
  - type: core
    count: 1
tasks:
- command: [app]
  slot: default
  count: {per_slot: 1}
attributes:
  system:
    duration: 60
"""

FAULTY = """\
version: 1
resources:
- type: slot
  cuont: 4
  label: default
  with:
  - type: core
    count: 0
tasks:
- command: app -x
  slot: other
  count: {per_slot: 1}
attributes:
  system:
    duration: 1h
    environment: {HOME: 4}
    constraints:
      and:
      - properties: [ssd, 4]
      - near: [x]
"""

REPORT = """\
job.yaml:3:3: resources[0]: the key 'count' is missing (expected count)
job.yaml:4:3: resources[0].cuont: unknown key 'cuont', perhaps 'count' \
(expected type, count, unit, exclusive, label, id, with)
job.yaml:8:12: resources[0].with[0].count: 0 is not valid here (expected an integer, at least 1)
job.yaml:11:9: tasks[0].slot: no slot has the label 'other' (expected 'default')
job.yaml:15:15: attributes.system.duration: '1h' is not valid here \
(expected seconds, a number of at least 0 (60.0, not '1m'))
job.yaml:16:25: attributes.system.environment.HOME: 4 is not valid here \
(expected a string, or null to unset the variable)
job.yaml:19:27: attributes.system.constraints.and[0].properties[1]: a number is not a string \
(expected a string)
job.yaml:20:9: attributes.system.constraints.and[1]: unknown operator 'near' \
(expected one of properties, hostlist, ranks, and, or, not)
"""


def texts(report):
    return [str(fault) for fault in report.faults]


def test_all_faults_of_a_file_with_their_places():
    assert "\n".join(texts(validate_text(FAULTY, "job.yaml"))) + "\n" == REPORT


def test_the_same_faults_in_json_have_their_places_too():
    from simsched.formats.text.yaml_text import load_yaml

    text = json.dumps(load_yaml(FAULTY), indent=1)
    places = {(fault.line, fault.column) for fault in validate_text(text, "job.json").faults}
    lines = text.splitlines()
    assert all(lines[line - 1][column - 1] not in " ,:]}" for line, column in places)
    assert len(places) == 8


def test_the_version_decides_unless_one_is_asked_for():
    canonical = GOOD.replace("count: 2", "count: 2-4")
    assert texts(validate_text(canonical, "j", "v1")) == [
        "j:4:10: resources[0].count: the count 2-4 (expected an integer)"
    ]
    assert validate_text(canonical, "j", "jobspec").is_valid
    assert validate_text(canonical.replace("version: 1", "version: 999"), "j").is_valid
    assert not validate_text(GOOD.replace("version: 1", "version: 999"), "j", "v1").is_valid


def test_many_documents_each_with_its_lines():
    report = validate_text(f"{GOOD}---\n{FAULTY}---\n{GOOD}---\n- {{}}\n", "jobs.yaml")
    assert report.documents == 4
    lines = [fault.line for fault in report.faults]
    assert lines[:8] == [line + 16 for line in (3, 4, 8, 11, 15, 16, 19, 20)]
    assert len(lines) == 12
    assert str(report.faults[-1]).startswith("jobs.yaml:54:3: [0]: the key")


def test_a_json_list_of_jobspecs():
    job = Jobspec.from_shape("slot/core").to_dict()
    report = validate_text(json.dumps([job, {**job, "version": 0}]), "jobs.json")
    assert [fault.path for fault in report.faults] == [(1, "version")]


def test_json_lines_with_the_line_of_each_fault():
    good = json.dumps(Jobspec.from_shape("slot/core", duration=1).to_dict())
    bad = good.replace('"count": 1', '"count": 0', 1)
    spaced = good.replace('": ', '" : ')
    double = good.replace('"duration": 1.0', '"duration": 1.0, "duration": 2.0')
    report = validate_text(f"{good}\n\n{bad}\n{{\n{spaced}\n{double}\n{good}", "jobs.jsonl")
    assert report.documents == 6
    assert [fault.line for fault in report.faults] == [3, 4, 6]
    assert "resources[0].count: 0 is not valid" in str(report.faults[0])
    assert str(report.faults[1]).startswith("jobs.jsonl:4:2: not JSON: found the end")
    assert re.match(r"jobs\.jsonl:6:\d+: key 'duration' occurs twice", str(report.faults[2]))
    other = good.replace('"version": 1', '"version": 2')
    report = validate_text(f"{good}\n{other}\n{good}", "x", "v1")
    assert [fault.line for fault in report.faults] == [2]


# ---------------------------------------------------------------- YAML's pitfalls


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("count: 2", "count: 010", "write 10, or 8 if octal"),
        ("count: 2", "count: 1e3", "1000.0 is not valid here"),
        ("count: 2", "count: 0x10", "in decimal digits"),
        ("count: 2", "count: 1_000", "write 1000"),
        ("count: 2", "count: 22:22", "base 60"),
        ("count: 2", "count: .nan", "nan"),
        ("count: 2", "count: 2.", "2.0 is not valid here"),
        ("count: 2", "count:", "null is not valid here"),
        ("count: 2", "count: yes", "found 'y'"),
        ("count: 2", "count: 2\n  exclusive: yes", "write true for the boolean"),
        ("count: 2", "count: 2\n  exclusive: off", "write false for the boolean"),
        ("count: 2", "count: 2\n  count: 3", "twice"),
        ("count: 2", "count: 2\n  label: on", "twice"),
        ("count: 2", "count: 2\n  unit: 2024-01-01\n  colour: red", "unknown key 'colour'"),
        ("count: 2", "\tcount: 2", "tab"),
        ("duration: 60", "duration: .inf", "inf"),
        ("duration: 60", "duration: 1:30:00", "base 60"),
        ("duration: 60", "duration: '60'", "'60' is in quotes"),
        ("duration: 60", "duration: 1e999", ""),
        ("label: default", "label: !!python/name:os.system", ""),
        ("label: default", "label: *nowhere", ""),
        ("version: 1", "version: 1\n1: 2", "unknown key '1'"),
        ("version: 1", "- version: 1", ""),
        ("version: 1", "version: [1", ""),
    ],
)
def test_pitfall(old, new, words):
    report = validate_text(GOOD.replace(old, new), "job.yaml", "jobspec")
    assert report.faults
    assert words in str(report.faults[0])
    assert report.faults[0].line > 0


def test_anchors_work_and_alias_bombs_do_not():
    good = GOOD.replace("count: 2", "count: &n 2").replace("count: 1\n", "count: *n\n")
    assert validate_text(good, "job.yaml").is_valid
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for name, before in zip("bcdefghij", "abcdefghi", strict=True):
        bomb += f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
    report = validate_text(bomb, "bomb.yaml")
    assert len(report.faults) == 1
    assert "alias" in str(report.faults[0])


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "- " * 100_000,
        "{a: " * 100_000,
        '{"version": 1, "a": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
def test_deep_documents_end_in_one_clear_error(text):
    report = validate_text(text, "deep", "jobspec")
    assert len(report.faults) == 1
    assert "deep" in str(report.faults[0])


def test_resources_nested_as_deep_as_they_may_and_deeper():
    def nested(levels):
        vertex = {"type": "a", "count": 1}
        for _ in range(levels - 1):
            vertex = {"type": "a", "count": 1, "with": [vertex]}
        return [vertex]

    document = Jobspec.from_shape("slot/core").to_dict() | {"version": 999}
    slot = document["resources"]
    assert faults_of({**document, "resources": slot + nested(100)}) == []
    (fault,) = faults_of({**document, "resources": slot + nested(102)})
    assert "nested too deeply" in fault.message


# ---------------------------------------------------------------- shapes and constraints


def test_shapes_one_a_line():
    text = "# two good ones\nslot=4/core\n\n  node{x}\nslot=0/core\nnode/[core\n"
    report = validate_text(text, "shapes.txt")
    assert (report.kind, report.documents) == ("shape", 4)
    assert [(fault.line, fault.column) for fault in report.faults] == [(5, 6), (6, 6)]


@pytest.mark.parametrize(
    "shape", ["[core;gpu]", "[ core=2 ]", "node{unit: GB}", "'my type'/core", "core", "a-b=4"]
)
def test_shapes_are_told_from_documents(shape):
    assert validate_text(f"# a comment\n{shape}\n", "x").kind == "shape"


@pytest.mark.parametrize(
    "document", ["version: 1", "---\nversion: 1", "{version: 1}", "- version: 1", '[{"a": 1}]', "{}"]
)
def test_documents_are_told_from_shapes(document):
    assert validate_text(document, "x").kind == "jobspec"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("ssd and not host:n[0-3]", None),
        ('{"properties": ["ssd"]}', None),
        ("and:\n- properties: [a]\n- {}\n", None),
        ("ssd and", (1, 8)),
        ('{"and": [{"properties": ["a"]},\n {"or": [{"near": []}]}]}', (2, 10)),
        ("and:\n- properties: [4]\n", (2, 16)),
        ('{"a": ', (1, 7)),
    ],
)
def test_constraints_in_both_forms(text, place):
    report = validate_text(text, "c", "constraint")
    assert [(fault.line, fault.column) for fault in report.faults] == ([place] if place else [])


# ---------------------------------------------------------------- files and schemas


def test_files(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(GOOD)
    assert validate_file(path).is_valid
    path.write_text("")
    assert texts(validate_file(path)) == [f"{path}: the text has no shape (expected one shape per line)"]
    assert texts(validate_file(path, "jobspec")) == [f"{path}: the text has no document (expected a jobspec)"]


def test_schemas_are_package_data():
    assert json.loads(schema_text("v1"))["title"].startswith("Jobspec version 1")
    assert json.loads(schema_text("rfc14"))["title"].startswith("Canonical jobspec")


def test_a_count_that_is_too_large_is_told_the_limit():
    task = {"command": ["a"], "slot": "a", "count": {"total": 2**60}}
    slot = {"type": "slot", "label": "a", "count": 2**60, "with": [{"type": "core", "count": 1}]}
    document = {"version": 1, "resources": [slot], "tasks": [task], "attributes": {"system": {"duration": 1}}}
    expected = [fault.expected for fault in faults_of(document)]
    assert expected == ["at most 9007199254740992"] * 2


RFC_14_EXAMPLE_2 = GOOD.replace("type: core", "type: node")


@pytest.mark.parametrize(
    ("text", "misfit"),
    [
        (RFC_14_EXAMPLE_2, "resources[0].with[0].type: 'node' is not allowed here in V1"),
        (GOOD.replace("count: 2", "count: 2-4"), "resources[0].count: the count 2-4"),
        (
            GOOD.replace("    duration: 60", "    queue: a"),
            "attributes.system: the key 'duration' is missing",
        ),
    ],
)
def test_a_general_jobspec_may_have_version_1(text, misfit):
    """RFC 14's own example 2 has it; what `feasible` takes is valid, and a note says that it is not V1."""
    for form, where in ((text, "j.yaml"), (json.dumps(yaml.safe_load(text)), "j.json")):
        report = validate_text(form, where)
        assert report.is_valid
        assert report.notes[0].startswith(f"note: not a V1 jobspec (RFC 25): {misfit}")
        assert validate_text(form, where, "jobspec").is_valid
        assert not validate_text(form, where, "v1").is_valid
    lines = "\n".join([json.dumps(yaml.safe_load(GOOD)), json.dumps(yaml.safe_load(text))])
    report = validate_text(lines, "j.jsonl")
    assert (report.is_valid, report.documents, len(report.notes)) == (True, 2, 1)


def test_a_general_jobspec_of_version_1_is_told_the_faults_of_rfc_14():
    text = RFC_14_EXAMPLE_2.replace("  count: 2", "  count: 0")
    assert texts(validate_text(text, "j")) == [
        "j:4:10: resources[0].count: 0 is not valid here (expected an integer, at least 1)"
    ]


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        (
            "  slot: default\n",
            "  slot: other\n",
            "tasks[0].slot: no slot has the label 'other' (expected 'default')",
        ),
        ("  slot: default\n", "", "tasks[0]: the key 'slot' is missing (expected slot)"),
    ],
)
@pytest.mark.parametrize("text", [GOOD, RFC_14_EXAMPLE_2])
def test_lenient_takes_tasks_that_name_no_slot(text, old, new, warning, tmp_path):
    """Fluxion runs them; strict stays the default."""
    odd = text.replace(old, new)
    line = json.dumps(yaml.safe_load(odd))
    for form, where in ((odd, "j.yaml"), (line, "j.json"), (f"{line}\n{line}", "j.jsonl")):
        assert not validate_text(form, where).is_valid
        report = validate_text(form, where, lenient=True)
        assert report.is_valid
        assert f"warning: {warning}" in report.notes
        path = tmp_path / where
        path.write_text(form)
        with pytest.raises(FormatError, match="slot"):
            load_jobspecs(path)
        told = []
        jobs = load_jobspecs(path, lenient=told.append)
        assert [str(error) for error in told] == [warning] * len(jobs)
        assert {job.resources for job in jobs} == {Jobspec.from_dict(yaml.safe_load(text)).resources}


def test_lenient_is_strict_about_everything_else():
    odd = GOOD.replace("slot: default", "slot: other").replace("  count: 2", "  cuont: 2")
    report = validate_text(odd, "j", lenient=True)
    assert [str(fault).split(": ", 1)[1][:30] for fault in report.faults] == [
        "resources[0]: the key 'count' ",
        "resources[0].cuont: unknown ke",
    ]
    with pytest.raises(FormatError, match=r"unknown key 'cuont'|the key 'count' is missing"):
        Jobspec.from_dict(yaml.safe_load(odd), lenient=lambda _: None)
