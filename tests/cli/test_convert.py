"""simsched shape, validate and convert, as a user runs them."""

from __future__ import annotations

import io
import json
import sys

import pytest

from simsched.cli import main
from simsched.cli.validate import guess_kind
from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.text.yaml_text import load_yaml, load_yaml_all


@pytest.fixture
def job(tmp_path):
    """A jobspec file."""
    from simsched.formats.text.yaml_text import to_yaml

    path = tmp_path / "job.yaml"
    path.write_text(to_yaml(Jobspec.from_shape("slot=4/[core=2;gpu]", duration=60).to_dict()))
    return path


# ---------------------------------------------------------------- shape


def test_a_shape_as_the_rfc_shows_it(run):
    status, out, err = run("shape", "slot=3-30/node{-x}")
    assert (status, err) == (0, "")
    assert out == (
        "- type: slot\n"
        "  count:\n"
        "    min: 3\n"
        "    max: 30\n"
        "    operator: +\n"
        "    operand: 1\n"
        "  label: default\n"
        "  with:\n"
        "  - type: node\n"
        "    count: 1\n"
        "    exclusive: false\n"
    )


def test_a_shape_in_its_other_forms(run):
    assert json.loads(run("shape", "node=2", "--format", "json")[1]) == [{"type": "node", "count": 2}]
    assert run("shape", "[ slot=[4]{default} / core=1 ]", "--format", "shape")[1] == "slot=4/core\n"


def test_a_jobspec_with_its_command(run):
    status, out, _ = run(
        *(
            "shape",
            "slot=2/core",
            "--jobspec",
            "--duration",
            "1.5h",
            "--constraint",
            "ssd -slow",
            "--queue",
            "q",
        ),
        *("--", "app", "-x", "--format", "json", "--"),
    )
    assert status == 0
    document = load_yaml(out)
    assert document["tasks"][0]["command"] == ["app", "-x", "--format", "json", "--"]
    assert document["attributes"]["system"] == {
        "duration": 5400.0,
        "queue": "q",
        "constraints": {"and": [{"properties": ["ssd"]}, {"not": [{"properties": ["slow"]}]}]},
    }


def test_shapes_from_standard_input(run):
    status, out, _ = run("shape", "-", stdin="# two\nnode=2\n\ncore\n")
    assert status == 0
    assert load_yaml_all(out) == [[{"type": "node", "count": 2}], [{"type": "core", "count": 1}]]
    assert run("shape", "-", "--format", "shape", stdin="[core=2; gpu]")[1] == "[core=2;gpu]\n"
    status, out, _ = run("shape", "-", "--jobspec", "--format", "json", stdin="slot/core\nslot/gpu\n")
    assert [json.loads(line)["version"] for line in out.splitlines()] == [1, 999]


def test_the_shortest_shape_of_a_file(run, job, tmp_path):
    assert run("shape", "--from", job)[:2] == (0, "slot=4/[core=2;gpu]\n")
    bare = tmp_path / "resources.json"
    bare.write_text('[{"type": "node", "count": {"min": 2}, "exclusive": true}]')
    assert run("shape", "--from", bare)[1] == "node=2+{x}\n"
    assert load_yaml(run("shape", "--from", bare, "--format", "yaml")[1])[0]["count"] == {"min": 2}
    part = tmp_path / "part.yaml"
    part.write_text("resources:\n- {type: core, count: 3}\n---\nresources:\n- {type: gpu, count: 1}\n")
    assert run("shape", "--from", part)[1] == "core=3\ngpu\n"
    assert run("shape", "--from", job, "--jobspec", "--queue", "q", "--format", "json")[1].count('"q"') == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["shape", "slot=4/[core=0"],
            "the count cannot be 0 (expected at least 1)\n  slot=4/[core=0\n               ^",
        ),
        (["shape"], "expected SHAPE or --from FILE"),
        (["shape", "core", "--from", "x"], "expected SHAPE or --from FILE"),
        (["shape", "--from", "no-such-file"], "no such file"),
        (["shape", "core", "--duration", "1h"], "--jobspec"),
        (["shape", "core", "--", "app"], "--jobspec"),
        (["shape", "slot/core", "--jobspec", "--duration", "soon"], "not a duration"),
        (["shape", "slot/core", "--jobspec", "--constraint", "a and"], "the constraint ends"),
        (["shape", "node{a:1}", "--jobspec"], "no key 'a'"),
    ],
)
def test_wrong_shapes_end_with_status_2_and_one_message(run, arguments, words):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_half_a_character_never_ends_in_a_traceback(run, tmp_path, monkeypatch):
    path = tmp_path / "job.json"
    document = Jobspec.from_shape("slot/core").to_dict()
    document["resources"][0]["label"] = document["tasks"][0]["slot"] = "\ud800"
    path.write_text(json.dumps(document))
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", buffer)
    for arguments in (["shape", "--from", path], ["convert", path, "--to", "json"], ["validate", path]):
        assert main([str(argument) for argument in arguments]) in {0, 2}
    document["tasks"][0]["slot"] = "\udfff"
    path.write_text(json.dumps(document))
    assert main(["validate", str(path)]) == 2


def test_unknown_options_are_argparse_errors(run):
    assert run("shape", "core", "--nonsense")[0] == 2


# ---------------------------------------------------------------- validate


def test_valid_files_and_quiet(run, job):
    assert run("validate", job, job)[:2] == (0, f"{job}: valid (1 jobspec)\n" * 2)
    assert run("validate", "--quiet", job)[:2] == (0, "")
    assert run("validate", "-", stdin="slot/core\nnode\n")[1] == "standard input: valid (2 shapes)\n"


@pytest.mark.parametrize(
    "text",
    [
        '[project]\nname = "x"\ndependencies = ["a>=1", "b"]\n',
        'jobs = 3\ntitle = "x"\nnodes = 4\n',
        "Hello world,\nthis is a text.\nIt has lines.\n",
        '{"ts": 1, "msg": "a"}\n{"ts": 2, "msg": "b"}\n',
        "a: 1\nb: {c: 2}\n",
        '{"a": 1}',
        "[1, 2]",
    ],
)
def test_a_file_of_another_kind_is_one_fault(run, text):
    status, out, err = run("validate", "-", stdin=text)
    assert (status, err, out.count("\n")) == (2, "", 1)
    assert out.startswith("standard input: the format is not recognised (expected a jobspec, ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nb up inf 2 idle n[1-2]\n",
            "it looks like sinfo's table",
        ),
        ("slot=2/core\ncor e\nnode\n", "input:2:5: unexpected 'e'"),
        ("cor e\n", "input:1:5: unexpected 'e'"),
        ("version: 9\na: 1\n", "the key 'resources' is missing"),
        (
            "kind: simsched queue\ntime: 3\nwaiting: [{id: 1, shape: cor e}, {}]\n",
            "waiting[1]: the key 'id' is",
        ),
        ("kind: simsched queue\ntime: 3\nwaiting: [{id: 1, shape: core}]\n", "valid (1 job)"),
        ("kind: simsched queue\ntime: 3\nwaiting:\n- {id: 1, shape: core}\n", "valid (1 job)"),
        ("NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL\n", "valid (1 graph)"),
        ("- {id: a, shape: core, runtime: 5}\n", "valid (1 job)"),
        ("name: m\ngap: exp(1m)\njobs: 3\nparts: [{shape: core, runtime: 60}]\n", "valid (3 jobs)"),
    ],
)
def test_a_file_is_what_its_whole_content_says(run, text, said):
    assert said in run("validate", "-", stdin=text)[1]


def test_notes_on_standard_input_have_its_name(run):
    said = run("validate", "-", stdin="NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL LLN=YES\n")[2]
    assert "note: left out: standard input:2: partition p: LLN=YES" in said


def test_every_fault_of_every_file(run, job, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(job.read_text().replace("count: 2", "count: 0").replace("60.0", "-1"))
    status, out, err = run("validate", job, bad, tmp_path / "absent")
    assert (status, err) == (2, "")
    first, *faults, last = out.splitlines()
    assert first.endswith("valid (1 jobspec)")
    assert [fault.split(": ")[:2] for fault in faults] == [
        [f"{bad}:8:12", "resources[0].with[0].count"],
        [f"{bad}:19:15", "attributes.system.duration"],
    ]
    assert "no such file" in last


def test_faults_as_json(run, job, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(job.read_text().replace("count: 2", "count: 0"))
    status, out, _ = run("validate", "--format", "json", bad)
    assert status == 2
    (report,) = json.loads(out)
    assert (report["valid"], report["kind"]) == (False, "jobspec")
    (fault,) = report["faults"]
    assert (fault["line"], fault["column"], fault["path"]) == (8, 12, "resources[0].with[0].count")


def test_as_v1_and_as_constraint(run, tmp_path):
    path = tmp_path / "c"
    path.write_text("ssd and not host:n[0-3]")
    assert run("validate", "--as", "constraint", path)[0] == 0
    path.write_text("ssd and")
    assert run("validate", "--as", "constraint", path)[1].startswith(f"{path}:1:8: ")
    path.write_text(json.dumps(Jobspec.from_shape("slot=2+/core", duration=1).to_dict()))
    assert run("validate", path)[0] == 0
    assert run("validate", "--as", "v1", path)[0] == 2


@pytest.mark.parametrize("name", ["v1", "rfc14"])
def test_the_schemas_are_printed(run, name):
    status, out, _ = run("schema", name)
    assert status == 0
    assert json.loads(out)["$schema"].startswith("https://json-schema.org")


R = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-1", "children": {"core": "0-3"}}],
        "nodelist": ["n[0-1]"],
        "starttime": 0,
        "expiration": 0,
    },
}
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time
1,u1,vc1,8,64,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:09,2020-04-01 00:10:00
"""
SWF = "; Version: 2.2\n; MaxProcs: 8\n" + "\n".join(
    f"{i} {i * 10} -1 60 2 -1 -1 2 120 -1 1 1 1 1 1 1 -1 -1" for i in range(1, 4)
)


def test_resource_sets_and_traces(run, tmp_path):
    path = tmp_path / "file"
    path.write_text(json.dumps(R))
    assert run("validate", path)[:2] == (0, f"{path}: valid (1 r)\n")
    assert run("validate", "-", stdin=json.dumps(R))[0] == 0
    path.write_text(json.dumps(R).replace("n[0-1]", "n[0-2]"))
    status, out, _ = run("validate", path)
    assert status == 2
    assert str(path) in out
    path.write_text(SWF)
    assert run("validate", path)[:2] == (0, f"{path}: valid (3 jobs)\n")
    assert run("validate", "-", stdin=SWF)[:2] == (0, "standard input: valid (3 jobs)\n")
    path.write_text(SWF + "\n9 9 what\n" + "10 40 -1 -1 -1 -1 -1 2 120 -1 5 1 1 1 1 1 -1 -1\n")
    status, out, _ = run("validate", "--as", "swf", path)
    assert status == 2
    assert out.startswith(f"{path}:6: ")
    path.write_text(json.dumps({"graph": {"nodes": [], "edges": [{"source": "0", "target": "1"}]}}))
    assert run("validate", path)[0] == 2


def test_no_file_is_named(run):
    assert run("validate")[0] == 2


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (json.dumps(R), "r"),
        (SWF, "swf"),
        ("1 0 3 60 2 -1 -1 2 120 -1 1 1 1 1 1 1 -1 -1", "swf"),
        ("<?xml version='1.0'?><graphml/>", "cluster"),
        ("<Job/>", "sss"),
        ('{"graph": {"nodes": [], "edges": []}}', "cluster"),
        ('{"properties": ["a"]}', "constraint"),
        ("and:\n- properties: [a]\n", "constraint"),
        ("version: 1\nresources: []\n", "auto"),
        ("slot=4/node{x}", "auto"),
        ("name: x\ngroups:\n- {name: node, count: 4}\n", "cluster"),
        ("name: x\njobs:\n- {shape: slot/core}\n", "workload"),
        ("- shape: slot/core\n", "workload"),
        ("JobIDRaw|Submit|State\n1|2024-01-01|COMPLETED\n", "workload"),
        ("", "auto"),
        ('<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0"/>', "cluster"),
        ('{"jobs": 3, "parts": [{"shape": "core", "runtime": "1m"}]}', "workload"),
        ("jobs: 3\nparts:\n- {shape: core, runtime: 1m}\n", "workload"),
        ("kind: simsched queue\ntime: 0\nrunning: []\n", "queue"),
        (" " * 300_000, "auto"),
        (HELIOS, "workload"),
        ("  - shape: slot=1/node\n    submit: 0\n", "workload"),
        ("- shape: slot=1/node\r  submit: 0\r", "workload"),
        ("name: CI\njobs:\n  build: {}\n", "workload"),
        ('{"name": "x", "jobs": {"a": 1}}', "workload"),
        ("name,size,colour\na,1,red\n", "auto"),
    ],
)
def test_kinds_are_told_by_content(text, kind):
    assert guess_kind(text) == kind


# ---------------------------------------------------------------- convert


def test_conversions_between_shape_rfc_14_and_v1(run, job):
    assert run("convert", job, "--to", "shape")[1] == "slot=4/[core=2;gpu]\n"
    canonical = run("convert", job, "--to", "jobspec")[1]
    assert load_yaml(canonical)["version"] == 1
    assert run("convert", "-", "--to", "v1", stdin=canonical)[1] == job.read_text()
    out = run("convert", "-", "--to", "v1", "--duration", "60", stdin="slot=4/[core=2;gpu]\n")[1]
    assert out == job.read_text()
    as_json = run("convert", job, "--to", "json")[1]
    assert run("convert", "-", "--to", "yaml", stdin=as_json)[1] == job.read_text()
    assert json.loads(run("convert", job, "--to", "v1", "--format", "json", "--", "x")[1])["tasks"][0][
        "command"
    ] == ["x"]


def test_what_does_not_fit_is_named(run):
    status, out, err = run("convert", "-", "--to", "v1", stdin="slot=2+/core")
    assert (status, out) == (2, "")
    assert "resources[0].count: this is not a V1 jobspec: the count 2+ (expected an integer)" in err


def test_constraints_between_their_forms(run):
    out = run("convert", "-", "--to", "rfc31", stdin="a and not b\n")[1]
    assert json.loads(out) == {"and": [{"properties": ["a"]}, {"not": [{"properties": ["b"]}]}]}
    assert run("convert", "-", "--to", "rfc35", stdin=out)[1] == "a and not b\n"
    assert run("convert", "-", "--to", "rfc35", stdin="and:\n- properties: [a]\n- hosts: n1\n")[0] == 2
    assert run("convert", "-", "--to", "rfc35", stdin="and:\n- properties: [a]\n- ranks: [1-2]\n")[1] == (
        "a and rank:1-2\n"
    )
    status, _, err = run("convert", "-", "--to", "rfc35", stdin='{"near": []}')
    assert (status, err.partition(":")[2].partition(" (")[0]) == (
        2,
        " error: standard input: constraint: unknown operator 'near'",
    )


def test_faults_of_resources_in_json_lines_have_their_line(run, tmp_path):
    slot = {"type": "slot", "count": 1, "label": "a", "with": [{"type": "core", "count": 1}]}
    rows = [{"resources": [slot]}, {"resources": [{**slot, "count": 0}]}]
    (tmp_path / "jobs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    status, _, err = run("shape", "--from", tmp_path / "jobs.jsonl")
    assert (status, "jobs.jsonl:2:" in err, "resources[0].count: 0 is not valid here" in err) == (
        2,
        True,
        True,
    )


def test_validate_counts_no_jobs_and_knows_xml_from_yaml(run, tmp_path, monkeypatch):
    (tmp_path / "empty.swf").write_text("; Version: 2.2\n")
    assert run("validate", tmp_path / "empty.swf")[:2] == (0, f"{tmp_path / 'empty.swf'}: valid (0 jobs)\n")
    assert guess_kind("<<: {a: 1}") == "auto"
    monkeypatch.setattr("simsched.cli.validate._checked", _out_of_memory)
    status, out, _ = run("validate", tmp_path / "empty.swf")
    assert (status, "out of memory" in out) == (2, True)


def _out_of_memory(*_):
    raise MemoryError


def test_a_shape_in_place_of_a_file_is_converted(run, job):
    status, out, _ = run("convert", "slot=4/[core=2;gpu]", "--to", "shape")
    assert (status, out) == (0, "slot=4/[core=2;gpu]\n")
    status, _, err = run("convert", "no-such-file", "--to", "shape")
    assert status == 2
    assert "no-such-file: no such file" in err


@pytest.mark.parametrize(
    ("shape", "version", "note"),
    [
        ("slot=2/[core=4;gpu]", 1, ""),
        ("node=2/slot=2/core", 1, ""),
        (
            "slot=1/node",
            999,
            "resources[0].with[0].type: 'node' is not allowed here in V1 (expected core or gpu)",
        ),
        ("slot=1-3/core", 999, "resources[0].count: the count 1-3 (expected an integer)"),
    ],
)
def test_a_jobspec_is_version_1_where_flux_takes_it(run, tmp_path, shape, version, note):
    status, out, err = run("convert", shape, "--to", "jobspec", "--format", "json", "--", "./sim")
    assert status == 0
    document = json.loads(out)
    assert document["version"] == version
    assert document["attributes"]["system"]["duration"] == 0
    place = "note: FILE: version 999 (RFC 14), which Flux does not take: "
    assert err == (f"{place}{note}\n" if note else "")
    (tmp_path / "spec.json").write_text(json.dumps({**document, "version": 999, "attributes": {}}))
    again = json.loads(run("convert", tmp_path / "spec.json", "--to", "jobspec", "--format", "json")[1])
    assert again["version"] == version
