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
    assert simsched(f"cluster make {node} --racks 16 --property batch --format jgf") == 0
    assert '"rack' in capfd.readouterr().out
    node = "--nodes 1000 --sockets 2 --cores 64 --gpus 4"
    assert simsched(f"cluster make {node} --racks 16 --property batch --format r") == 0
    out, err = capfd.readouterr()
    execution = json.loads(out)["execution"]
    assert execution["R_lite"] == [{"rank": "0-999", "children": {"core": "0-63", "gpu": "0-3"}}]
    assert execution["properties"] == {"batch": "0-999"}
    assert err.splitlines() == [
        "not represented by r: vertices above or beside the execution targets: 16 rack",
        "not represented by r: localities within them: 2,000 socket",
    ]


NODES = "--nodes 4 --cores 8"


@pytest.mark.parametrize(
    ("words", "form", "finds"),
    [
        (f"make {NODES}", "r", {}),
        (f"make {NODES} --property ssd=node[0-1]", "r", {"property=ssd": 2}),
        (f"make {NODES} --memory '64 GB'", "r+jgf", {"type=memory": 4}),
        (f"make {NODES} --racks 2", "r+jgf", {"type=rack": 2}),
        (f"make {NODES} --memory '64 GB' --format treepool", "treepool", {"type=memory": 4}),
        ("convert tiny --set drained=node0", "r+jgf", {"status=drained": 1}),
        ("convert tiny --set up=node0", "r", {"status=drained": 0}),
        ("convert tiny --set drained=node0 --to jgf", "jgf", {"status=drained": 1}),
    ],
)
def test_the_format_holds_what_was_asked_for(words, form, finds, tmp_path, capfd):
    assert simsched(f"cluster {words} -o {tmp_path}/c") == 0
    err = capfd.readouterr().err
    assert ("written as r+jgf" in err) == (form == "r+jgf")
    for term, number in finds.items():
        simsched(f"cluster show {tmp_path}/c --find {term}")
        assert len(capfd.readouterr().out.splitlines()) == number


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"make {NODES} --memory '64 GB' --format r", "r cannot represent the result: pools that are"),
        (
            f"make {NODES} --property ssd=node[0-1] --format recipe",
            "a recipe cannot represent a property of some",
        ),
        ("make clusters/racked.yaml --property ssd", "a recipe and options are both given"),
        ("convert tiny --set drained=node0 --to r", "r cannot represent the result: status of 1 vertex"),
        ("convert tiny --set down=node0 --to treepool", "treepool cannot represent the result: status"),
    ],
)
def test_a_format_that_cannot_hold_what_was_asked_for_is_refused(words, message, tmp_path, capfd):
    assert simsched(f"cluster {words} -o {tmp_path}/c") == 2
    assert message in capfd.readouterr().err
    assert not (tmp_path / "c").exists()


WRONG = {
    "swf": (
        "; MaxProcs: 4\n1 0 5 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1\n",
        "an SWF trace, which is a workload",
    ),
    "swf without a header": ("1 0 5 3600 4 -1 -1 4 7200 -1 1 1 1 -1 1 -1 -1 -1\n", "an SWF trace"),
    "sacct": ("JobID|Submit|State\n1|2024-01-01T00:00:00|COMPLETED\n", "sacct, which is a workload"),
    "headerless": ("1|2024-01-01T00:00:00|COMPLETED\n", "a Slurm dump without its header line"),
    "jobs": ("- {shape: slot=1/core, runtime: 5}\n", "a list of jobs (jobs.yaml), which is a workload"),
    "flux": ('{"jobs": [{"id": 1, "t_submit": 5.5}]}', "jobs of Flux"),
    "batsim": ('{"nb_res": 4, "jobs": [{"subtime": 0}]}', "a Batsim workload"),
    "jobspec": ("version: 1\nresources: []\ntasks: []\n", "a jobspec (RFC 14), which is a request"),
    "lsf": (
        '"JOB_FINISH" "10.1" 1700000000 77 500 33554434 1 1699999990\n',
        "LSF accounting (lsb.acct), which is a workload",
    ),
    "sge": (
        "# Version: 8\n" + "all.q:n1:staff:ann:sim:" + ":".join(map(str, range(1, 41))) + "\n",
        "SGE accounting",
    ),
    "slurm.conf": ("# made by hand\nClusterName=big\nNodeName=n[1-4] CPUs=8\n", "slurm.conf"),
    "scontrol": (
        "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   CPUAlloc=0\n",
        "the output of scontrol, which is a cluster",
    ),
    "hwloc": (
        '<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0"/>\n',
        "hwloc XML",
    ),
    "csv": ("job_id,user,gpu_num\n1,ann,4\n", "CSV with the columns job_id, user, gpu_num"),
    "toml": ('[[resource.config]]\nhosts = "n[0-3]"\n', "a Flux configuration (TOML)"),
    "sinfo": (
        "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nbatch* up infinite 4 idle n[1-4]\n",
        "sinfo's table",
    ),
    "squeue": ("             JOBID PARTITION     NAME     USER ST\n  1 batch a ann R\n", "squeue's table"),
    "prose": ("these are the jobs of last year\n", "the format is not recognised (expected"),
    "recipe": ("groups: [{name: node, count: 2, cores: 4}]\n", "a cluster recipe, which is a cluster"),
    "r": (
        json.dumps({"version": 1, "execution": {"R_lite": [], "nodelist": []}}),
        "R (RFC 20), which is a cluster",
    ),
    "jgf": ('{"graph": {"nodes": [], "edges": []}}', "a resource graph (JGF), which is a cluster"),
}  # fmt: skip
READ_AS_CLUSTER = {"recipe", "r", "jgf", "slurm.conf", "scontrol", "hwloc", "toml"}
READ_AS_WORKLOAD = {"lsf", "sge", "swf", "swf without a header", "sacct", "jobs", "flux", "batsim"}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_of_another_kind_is_named(kind, tmp_path, capfd):
    text, what = WRONG[kind]
    (tmp_path / "file").write_text(text)
    commands = [] if kind in READ_AS_CLUSTER else ["cluster show"]
    commands += [] if kind in READ_AS_WORKLOAD else ["workload show"]
    for command in commands:
        assert simsched(f"{command} {tmp_path}/file") == 2
        err = capfd.readouterr().err
        assert err.startswith(f"simsched: error: {tmp_path}/file: the format is not recognised"), err
        assert what in err
        assert "expected" in err
        assert err.count("\n") == 1


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
        ("cluster make --nodes 3 --hosts a[0-1]", "the count is 3, but there are 2 hosts"),
        ("cluster make --nodes 4 --cores 3 --sockets 2", "3 cores do not divide over 2 sockets"),
        ("cluster make --nodes 4 --memory lots", "'lots' is not an amount"),
        ("cluster make --nodes 4 --property x=nobody", "no execution target is called 'nobody'"),
        ("cluster make x.yaml --nodes 4", "a recipe and options are both given"),
        ("cluster make nowhere.yaml", "no such file"),
        ("cluster show nobody", "bundled name of clusters"),
        ("cluster convert tiny --to xml", "invalid choice: 'xml'"),
        ("cluster convert tiny --set down", "'down' has no hosts"),
        ("cluster convert tiny --set asleep=node0", "unknown status 'asleep'"),
        ("cluster convert tiny --hosts node9", "no execution target is called 'node9'"),
        ("cluster show tiny --svg --subsystem power", "no subsystem 'power'"),
        (
            "cluster show tiny --subsystem power",
            "the cluster has no subsystem 'power' (expected containment)",
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
        "not represented by treepool: vertices above or beside the execution targets: 2 rack, 2 pdu",
        "not represented by treepool: the subsystems power",
        "not represented by treepool: parts of a GiB, rounded down: 8 memory",
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
        ("--nodes 0", "--nodes: 0 is out of range (expected a whole number from 1 to"),
        ("--nodes 2 --cores -1", "--cores: "),
        (
            "--nodes 2 --cores 4 --memory x",
            "--memory: 'x' is not an amount (expected a whole number or a whole number and a unit",
        ),
    ],
)
def test_a_fault_of_an_option_is_found_at_the_option(options, fault, capfd):
    assert main(["cluster", "make", *options.split()]) == 2
    assert capfd.readouterr().err.startswith(f"simsched: error: {fault}")


def test_list(capfd):
    assert simsched("cluster list") == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(bundled.bundled("clusters"))
    assert "tiny       4 nodes × 4 cores" in lines


@pytest.mark.slow
def test_the_commands_of_the_clusters_readme_make_its_files(tmp_path):
    home = bundled.folder("clusters")
    commands = re.findall(r"`simsched (cluster (?:make|convert)[^`]*)`", (home / "README.md").read_text())
    assert len(commands) == 6
    for command in commands:
        *words, target = shlex.split(command)
        inputs = [str(home / word) if (home / word).is_file() else word for word in words]
        assert main([*inputs, str(tmp_path / target)]) == 0
        assert (tmp_path / target).read_bytes() == (home / target).read_bytes(), command
