"""``simsched feasible`` and ``simsched match`` as stories: a command line, what it prints, how it ends.

The bundled cluster ``tiny`` has 4 nodes of 4 cores; nodes 2 and 3 have 2 gpus each.
"""

from __future__ import annotations

import json
import os
import threading

import pytest

import simsched as ss
from simsched.errors import InputWarning


def test_feasible(run):
    assert run("feasible", "tiny", "slot=4/core=4", "slot=2/[core=2;gpu]") == (
        0,
        "slot=4/core=4: yes\nslot=2/[core=2;gpu]: yes\n",
        "",
    )


def test_feasible_never_with_its_funnel(run):
    status, out, err = run("feasible", "tiny", "slot=1/gpu=9")
    assert (status, err) == (1, "")
    first, *funnel = out.splitlines()
    assert first == "slot=1/gpu=9: never"
    assert "1 needed, 0 available" in funnel[0]
    assert any("gpu=2" in line for line in funnel), "the nearest change that would match"


def test_feasible_now_and_later(run):
    """The same request: now on the idle machine, later next to what runs; never is never."""
    assert run("feasible", "tiny", "slot=4/node", "--now") == (0, "slot=4/node: now\n", "")
    status, out, _ = run("feasible", "tiny", "slot=4/node", "slot=5/node", "--running", "slot=1/core")
    assert status == 1
    assert out.startswith("slot=4/node: later\n")
    assert "4 needed, 3 available" in out
    assert "slot=5/node: never\n" in out


def test_a_cluster_in_the_place_of_a_request_is_told(run):
    status, out, err = run("feasible", "tiny", "slot=1/core", "--cluster", "flat240")
    assert status == 1
    assert out.startswith("tiny: never\n")
    assert err == (
        "note: tiny was read as a request, but it is the name of a bundled cluster; use --cluster tiny\n"
    )
    told = (
        "note: flat240 was read as a request, but it is the name of a bundled cluster; "
        "the cluster has to be the first argument\n"
    )
    assert run("feasible", "tiny", "flat240", "flat240")[2] == told
    assert run("match", "tiny", "flat240")[2].endswith(told)


def test_a_type_that_is_called_like_a_cluster_may_be_asked_for(run):
    status, out, err = run("feasible", "center", "center")
    assert (status, out) == (0, "center: yes\n")
    assert "is the name of a bundled cluster" not in err


def test_asking_leaves_no_trace(run):
    """Each request is asked about by itself, also with what runs."""
    status, out, _ = run("feasible", "tiny", "slot=3/node", "slot=3/node", "--running", "slot=1/core")
    assert (status, out) == (0, "slot=3/node: now\nslot=3/node: now\n")


def test_what_cannot_be_running(run):
    status, _, err = run("feasible", "tiny", "core", "--running", "slot=9/node")
    assert status == 2
    assert (
        err == "simsched: error: --running slot=9/node: the request does not fit, so it cannot be running\n"
    )


def test_feasible_as_json(run):
    status, out, _ = run("feasible", "tiny", "slot=1/core", "slot=5/node", "--format", "json")
    yes, no = json.loads(out)
    assert status == 1
    assert yes == {"version": 1, "request": "slot=1/core", "answer": "yes"}
    assert (no["request"], no["answer"]) == ("slot=5/node", "never")
    assert no["reasons"]["funnels"][0]["needed"] == 5


def test_several_clusters_as_a_table(run):
    """Status 0: each request is feasible on one of the clusters at least."""
    both = ("--cluster", "tiny", "--cluster", "gpu1152", "--format", "table")
    assert run("feasible", *both, "slot=5/node", "slot=4/[core=4]") == (
        0,
        "request          tiny   gpu1152\nslot=5/node      never  yes\nslot=4/[core=4]  yes    yes\n",
        "",
    )
    assert run("feasible", *both, "slot=4/node", "slot=9999/node")[0] == 1


def test_no_request(run):
    status, _, err = run("feasible", "tiny")
    assert (status, err) == (2, "simsched: error: tiny: there is no request (expected CLUSTER REQUEST…)\n")


def test_a_constraint_on_the_command_line_joins_the_request_s_own(run, tmp_path):
    spec = ss.Jobspec.from_shape("slot=1/core", duration=60, constraint="host:node[0-1]")
    path = tmp_path / "job.json"
    path.write_text(json.dumps(spec.to_dict()))
    assert run("feasible", "tiny", str(path))[0] == 0
    assert run("feasible", "tiny", str(path), "--constraint", "host:node1")[0] == 0
    assert run("feasible", "tiny", str(path), "--constraint", "host:node2")[0] == 1


def test_match_is_cumulative_and_writes_r(run):
    status, out, err = run("match", "tiny", "slot=3/core", "slot=3/core")
    assert (status, err) == (0, "")
    documents = [json.loads(line) for line in out.splitlines()]
    assert [d["execution"]["R_lite"] for d in documents] == [
        [{"rank": "0", "children": {"core": "0-2"}}],
        [{"rank": "0", "children": {"core": "3"}}, {"rank": "1", "children": {"core": "0-1"}}],
    ]
    assert [d["execution"]["nslots"] for d in documents] == [3, 3]
    assert [ss.ResourceSet.from_dict(d).to_dict() for d in documents] == documents


def test_match_as_a_tree_and_as_a_table(run):
    requests = ("slot=5/core", "slot=1/[core=2;gpu=2]")
    assert run("match", "tiny", *requests, "--format", "tree")[1] == (
        "slot=5/core\n"
        "  cluster  cluster0\n"
        "  ├─ node  node0  {batch}\n"
        "  │  └─ core  4  [0-3]\n"
        "  └─ node  node1  {batch}\n"
        "     └─ core  1  [0]\n"
        "slot=1/[core=2;gpu=2]\n"
        "  cluster  cluster0\n"
        "  └─ node  node2  {debug, amd-mi50@gpu}\n"
        "     ├─ core  2  [0-1]\n"
        "     └─ gpu  2  [0-1]  {amd-mi50}\n"
    )
    assert run("match", "tiny", *requests, "--format", "table")[1] == (
        "request                nodes  core  gpu  hosts\n"
        "slot=5/core            2      5     0    node[0-1]\n"
        "slot=1/[core=2;gpu=2]  1      2     2    node2\n"
    )


def test_match_as_jgf_is_a_cluster_of_what_was_matched(run, tmp_path):
    _, out, _ = run("match", "tiny", "slot=1/[core=2;gpu=1]", "--format", "jgf")
    path = tmp_path / "got.json"
    path.write_text(out)
    assert run("feasible", str(path), "slot=1/[core=2;gpu=1]")[0] == 0
    assert run("feasible", str(path), "slot=1/core=3")[0] == 1


def test_match_goes_on_after_a_request_that_fails(run):
    status, out, err = run("match", "tiny", "slot=4/node", "core=1{x}", "slot=5/node", "--format", "json")
    answers = json.loads(out)
    assert status == 1
    assert [answer["answer"] for answer in answers] == ["matched", "later", "never"]
    assert [answer.get("id") for answer in answers] == [1, None, None]
    assert "core=1{x}: later" in err
    assert "slot=5/node: never" in err


def test_match_policy(run):
    _, out, _ = run("match", "tiny", "slot=1/core", "--policy", "hinode", "--format", "table")
    assert out.splitlines()[1].endswith("node3")
    status, _, err = run("match", "tiny", "slot=1/core", "--policy", "nonsense")
    assert status == 2
    assert "nonsense" in err
    assert "lonode" in err


def test_requests_from_a_file_and_from_stdin(run, tmp_path):
    documents = [
        ss.Jobspec.from_shape(shape, duration=60).to_dict() for shape in ("slot=1/core", "slot=5/node")
    ]
    path = tmp_path / "jobs.jsonl"
    path.write_text("".join(json.dumps(d) + "\n" for d in documents))
    status, out, _ = run("feasible", "tiny", str(path))
    assert status == 1
    assert out.startswith(f"{path}[0]: yes\n{path}[1]: never\n")
    assert run("feasible", "tiny", "-", stdin=json.dumps(documents[0])) == (0, "stdin: yes\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-cluster", "core"], "no-such-cluster: no such file"),
        (["tiny", "missing.yaml"], "missing.yaml: no such file"),
        (["tiny", "slot=/core"], "the count is empty"),
        (["tiny", "slot=2/slot=2/core"], "slot=2/slot=2/core"),
        (["tiny", "core", "--constraint", "host:["], ""),
        (["tiny", "core=99999999999999999999"], ""),
        (["tiny", "slot=1/" + "node/" * 3000 + "core"], ""),
        (["tiny", ""], ""),
    ],
)
def test_bad_input_is_one_error_and_status_2(run, arguments, message):
    for verb in ("feasible", "match"):
        status, out, err = run(verb, *arguments)
        assert (status, out) == (2, "")
        assert err.startswith("simsched: error: ")
        assert message in err


def test_a_seed_is_a_whole_number(run):
    status, out, err = run("match", "tiny", "core", "--policy", "random", "--seed", "-1")
    assert (status, out) == (2, "")
    assert "--seed: '-1' is not a whole number" in err


def test_pipes_are_files(run, tmp_path):
    def pipe(name, text):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_text, args=(text,), daemon=True)
        writer.start()
        return str(tmp_path / name)

    cluster = ss.load_cluster("tiny").to_dict()
    request = ss.Jobspec.from_shape("slot=1/core").to_dict()
    answer = run("feasible", pipe("cluster", json.dumps(cluster)), pipe("request", json.dumps(request)))
    assert answer == (0, f"{tmp_path / 'request'}: yes\n", "")
    jobs = ss.load_workload(pipe("jobs", "- {shape: core, submit: 0, runtime: 5}\n"))
    assert len(jobs.jobs) == 1


def test_shapes_from_a_file_and_from_standard_input(run, tmp_path):
    file = tmp_path / "shapes.txt"
    file.write_text("# two requests\nslot=1/core\n\nslot=2/gpu=9\n")
    status, out, _ = run("feasible", "tiny", str(file))
    assert (status, out.splitlines()[:2]) == (1, ["slot=1/core: yes", "slot=2/gpu=9: never"])
    assert run("feasible", "tiny", "-", stdin=file.read_text())[1] == out
    file.write_text("slot=1/core\nslot=1/core=x\n")
    status, _, err = run("match", "tiny", str(file))
    assert status == 2
    assert f"{file}:2: " in err


@pytest.mark.parametrize("count", ["4GB", "4G", "4 GB"])
def test_a_unit_behind_a_count_is_answered_with_how_it_is_written(run, count):
    status, _, err = run("feasible", "tiny", f"slot=1/memory={count}")
    assert status == 2
    assert "a unit follows in braces: 4{unit:GB}" in err


ODD = """\
version: 1
resources:
- {type: node, count: 1, with: [{type: slot, count: 2, label: a, with: [{type: core, count: 1}]}]}
tasks:
- {command: [app], slot: b, count: {per_slot: 1}}
attributes: {system: {duration: 1}}
"""


def test_lenient_runs_what_names_no_slot_and_warns(run, tmp_path):
    path = tmp_path / "odd.yaml"
    path.write_text(ODD)
    warning = "simsched: warning: tasks[0].slot: no slot has the label 'b' (expected 'a')\n"
    for verb, more in (("feasible", ()), ("match", ("--format", "table"))):
        assert run(verb, *more, "tiny", str(path))[0] == 2
        status, out, err = run(verb, *more, "--lenient", "tiny", str(path))
        assert (status, err) == (0, warning)
        assert out
    assert run("validate", str(path))[0] == 2
    status, out, _ = run("validate", "--lenient", str(path))
    assert status == 0
    assert "warning: tasks[0].slot: no slot has the label 'b'" in out


@pytest.mark.parametrize("path", ["./missing", "../missing", "/missing/file", "./missing/node"])
def test_a_path_that_does_not_exist_is_not_read_as_a_shape(run, path):
    status, out, err = run("feasible", "tiny", path)
    assert (status, out) == (2, "")
    assert err == f"simsched: error: {path}: no such file\n"


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file_holds_no_request(run, tmp_path, content):
    path = tmp_path / "requests.txt"
    path.write_text(content)
    status, _, err = run("feasible", "tiny", str(path))
    assert status == 2
    assert "the file has no request (expected jobspecs, or shapes one per line)" in err


def test_requests_that_claim_nothing_are_noted_with_the_shapes_that_would(run, tmp_path):
    nothing = (
        "note: 3 of 4 requests claim nothing exclusively, so others may get the same resources at the same "
        "time; to claim: slot=4/node instead of node=4 (2), node=2/slot=3/core instead of node=2/core=3 (1)\n"
    )
    shapes = ("node=4", "node=4", "node=2/core=3", "slot=1/core")
    for verb in ("match", "feasible"):
        assert run(verb, "tiny", *shapes)[2] == nothing
    whole = ("slot=1/node", "node=2/slot/core", "node{x}")
    assert run("match", "tiny", *whole)[2] == ""
    jobs = "".join(f"- {{id: {n}, shape: node=4, submit: 0, duration: 10s}}\n" for n in range(5))
    (tmp_path / "jobs.yaml").write_text(jobs)
    given = "tiny", str(tmp_path / "jobs.yaml")
    status, _, err = run("run", *given, "-o", str(tmp_path / "run"))
    assert status == 0
    assert err.count("5 of 5 jobs claim nothing exclusively") == 1
    with pytest.warns(InputWarning, match="slot=4/node instead of node=4 .5."):
        ss.simulate(*given)


def test_json_escapes_the_name_of_a_file_that_is_not_unicode(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "j\udcff.yaml"  # a byte that is not UTF-8
    try:
        (tmp_path / name).write_text(json.dumps(ss.Jobspec.from_shape("slot=1/core").to_dict()))
    except OSError:
        pytest.skip("the file system takes names in UTF-8 only")
    code, out, _ = run("feasible", "tiny", name, "--format", "json")
    assert code == 0
    assert '    "request": "j\\udcff.yaml",\n' in out
