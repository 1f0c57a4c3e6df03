"""``simsched cluster`` told as sessions: what is typed, what comes out, with which status."""

import io
import json
import re
import shlex
import sys

import pytest

from simsched import bundled
from simsched.cli import main

TINY = """\
tiny: 4 execution targets, 11 vertices

type     vertices  units
cluster         1      1
node            4      4
core            4     16
gpu             2      4

targets        each holds     properties          status
2 × node[0-1]  4 core         batch               up
1 × node2      4 core, 2 gpu  debug amd-mi50@gpu  up
1 × node3      4 core, 2 gpu  batch amd-mi50@gpu  up

property      targets
amd-mi50@gpu        2
batch               3
debug               1

cluster  cluster0
├─ 2 × node  node[0-1]  {batch}
│  └─ core  4  [0-3]
├─ node  node2  {debug, amd-mi50@gpu}
│  ├─ core  4  [0-3]
│  └─ gpu  2  [0-1]  {amd-mi50}
└─ node  node3  {batch, amd-mi50@gpu}
   ├─ core  4  [0-3]
   └─ gpu  2  [0-1]  {amd-mi50}
"""


def simsched(line):
    """Run one command line after ``simsched``."""
    return main(shlex.split(line))


def test_show_tells_counts_groups_properties_and_a_folded_tree(capfd):
    assert simsched("cluster show tiny") == 0
    assert capfd.readouterr().out == TINY


def test_show_one_subsystem_and_only_some_levels(capfd):
    simsched("cluster show fattree --subsystem network --depth 1")
    assert capfd.readouterr().out.endswith("\nfabric  fabric0\n└─ 2 × spine  spine[0-1]\n")


def test_show_as_json(capfd):
    simsched("cluster show tiny --format json")
    found = json.loads(capfd.readouterr().out)
    assert found["name"] == "tiny"
    assert found["targets"] == 4
    assert found["units"]["core"] == "16"
    assert found["groups"][1]["holds"] == {"core": "4", "gpu": "2"}


def test_show_a_picture(capfd, tmp_path):
    assert simsched("cluster show tiny --dot") == 0
    assert capfd.readouterr().out.startswith('digraph "tiny"')
    assert simsched(f"cluster show fattree --subsystem network --svg -o {tmp_path}/x.svg") == 0
    assert (tmp_path / "x.svg").read_text().startswith("<svg")


def test_find_answers_by_its_status(capfd):
    assert simsched("cluster show tiny --find 'type=gpu property=amd-mi50'") == 0
    assert capfd.readouterr().out.splitlines() == [
        "/cluster0/node2/gpu\tgpu\t2 [0-1]\tup amd-mi50",
        "/cluster0/node3/gpu\tgpu\t2 [0-1]\tup amd-mi50",
    ]
    assert simsched("cluster show tiny --find status=down") == 1
    assert simsched("cluster show tiny --find colour=red") == 2


def test_make_from_a_sentence(capfd):
    node = "--nodes 1000 --sockets 2 --cores 64 --gpus 4 --memory '512 GB'"
    assert simsched(f"cluster make {node} --racks 16 --property batch") == 0
    out, err = capfd.readouterr()
    execution = json.loads(out)["execution"]
    assert execution["R_lite"] == [{"rank": "0-999", "children": {"core": "0-63", "gpu": "0-3"}}]
    assert execution["properties"] == {"batch": "0-999"}
    assert err.splitlines() == [
        "not held by r: what is above or beside the execution targets: 16 rack",
        "not held by r: localities within them: 2,000 socket",
        "not held by r: pools that are measured, not counted: 1,000 memory",
    ]


def test_make_gives_the_recipe_too_and_takes_it_back(capfd, monkeypatch):
    simsched("cluster make --nodes 4 --cores 8 --racks 2 --name mine --format recipe")
    recipe = capfd.readouterr().out
    assert recipe == "groups:\n- name: node\n  count: 4\n  cores: 8\nracks: 2\nname: mine\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(recipe.encode())))
    assert simsched("cluster make - --format jgf") == 0
    graph = json.loads(capfd.readouterr().out)["graph"]
    assert sum(vertex["metadata"]["type"] == "core" for vertex in graph["nodes"]) == 32


def test_make_with_properties_of_some_hosts(capfd):
    simsched(
        "cluster make --hosts 'a[1-4]' --cores 1 --property all --property some=a[2-3] --property g@gpu=a1"
    )
    execution = json.loads(capfd.readouterr().out)["execution"]
    assert execution["properties"] == {"all": "0-3", "g@gpu": "0", "some": "1-2"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("cluster make", "nothing to make"),
        ("cluster make --cores 4", "nothing to make"),
        ("cluster make --nodes 0", "--nodes: "),
        ("cluster make --nodes 3 --hosts a[0-1]", "count 3 and 2 hosts"),
        ("cluster make --nodes 4 --cores 3 --sockets 2", "3 cores do not divide over 2 sockets"),
        ("cluster make --nodes 4 --memory lots", "found 'lots'"),
        ("cluster make --nodes 4 --property x=nobody", "no execution target is called 'nobody'"),
        ("cluster make x.yaml --nodes 4", "both a recipe and options"),
        ("cluster make nowhere.yaml", "no such file"),
        ("cluster show nobody", "bundled name of clusters"),
        ("cluster convert tiny --to xml", "invalid choice: 'xml'"),
        ("cluster convert tiny --set down", "no hosts in 'down'"),
        ("cluster convert tiny --set asleep=node0", "unknown status 'asleep'"),
        ("cluster convert tiny --hosts node9", "no execution target is called 'node9'"),
        ("cluster show tiny --svg --subsystem power", "no subsystem 'power'"),
        (
            "cluster show tiny --subsystem power",
            "no subsystem 'power' in this cluster (expected containment)",
        ),
        ("cluster", "required"),
    ],
)
def test_faults_are_one_line_and_status_2(capfd, line, fault):
    assert simsched(line) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert fault in err
    assert "Traceback" not in err


def test_convert_to_every_format_and_back_without_a_difference(capfd, tmp_path):
    for form in ("r", "r+jgf", "jgf", "treepool"):
        path = tmp_path / f"{form}.json"
        assert simsched(f"cluster convert topo16 --to {form} -o {path}") == 0
        status = simsched(f"cluster diff topo16 {path}")
        assert status == (1 if form == "r" else 0), capfd.readouterr().out
    assert "node[0-15] memory: 256 GiB -> none" in capfd.readouterr().out


def test_convert_says_on_standard_error_what_is_lost(capfd):
    simsched("cluster convert grug4 --to treepool")
    out, err = capfd.readouterr()
    assert json.loads(out)["scheduling"]["writer"] == "TreePool"
    assert err.splitlines() == [
        "not held by treepool: what is above or beside the execution targets: 2 rack, 2 pdu",
        "not held by treepool: the subsystems power",
        "not held by treepool: parts of a GiB, rounded down: 8 memory",
    ]


def test_convert_with_what_if_edits(capfd, tmp_path):
    edits = "--remove node0 --set drained=node1 --property fast=node[2-3]"
    assert simsched(f"cluster convert tiny {edits} --to r+jgf -o {tmp_path}/a") == 0
    assert simsched(f"cluster diff tiny {tmp_path}/a") == 1
    assert capfd.readouterr().out.splitlines()[-3:] == [
        "targets: node0 (1) -> none",
        "node1 status: up -> drained",
        "node[2-3] property fast: none -> set",
    ]
    assert simsched("cluster convert tiny --constraint 'batch -host:node3'") == 0
    assert json.loads(capfd.readouterr().out)["execution"]["nodelist"] == ["node[0-1]"]


def test_compact_jgf_keeps_pools_whole(capfd):
    simsched("cluster convert tiny --to jgf --compact")
    assert len(json.loads(capfd.readouterr().out)["graph"]["nodes"]) == 11


def test_diff_as_json(capfd):
    assert simsched("cluster diff tiny tiny --format json") == 0
    assert json.loads(capfd.readouterr().out) == []
    assert simsched("cluster diff tiny flat240 --format json") == 1
    assert json.loads(capfd.readouterr().out)[0] == {"what": "total of node", "left": "4", "right": "240"}


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ("--nodes 0", "--nodes: 0 is less than the minimum of 1"),
        ("--nodes 2 --cores -1", "--cores: "),
        ("--nodes 2 --cores 4 --memory x", "--memory: found 'x' (expected a whole number and a unit"),
    ],
)
def test_a_fault_of_an_option_is_found_at_the_option(options, fault, capfd):
    assert main(["cluster", "make", *options.split()]) == 2
    assert capfd.readouterr().err.startswith(f"simsched: error: {fault}")


def test_list(capfd):
    assert simsched("cluster list") == 0
    assert capfd.readouterr().out.split() == list(bundled.bundled("clusters"))


def test_the_commands_of_the_clusters_readme_make_its_files(tmp_path):
    home = bundled.folder("clusters")
    commands = re.findall(r"`simsched (cluster (?:make|convert)[^`]*)`", (home / "README.md").read_text())
    assert len(commands) == 6
    for command in commands:
        *words, target = shlex.split(command)
        inputs = [str(home / word) if (home / word).is_file() else word for word in words]
        assert main([*inputs, str(tmp_path / target)]) == 0
        assert (tmp_path / target).read_bytes() == (home / target).read_bytes(), command
