"""Sites' own files on the command line: shown, converted, multiplied, and made for a trace."""

import json

import pytest

from simsched.graph.build.cluster_files import graph_from_bytes
from simsched.graph.inspect.diff import diff

FLUX = '[[resource.config]]\nhosts = "n[0-3]"\ncores = "2-5"\nproperties = ["batch"]\n[queues.batch]\n'
LIST = "     STATE NNODES   NCORES NODELIST\n      free      4       16 n[0-3]\n"
PBS = """\
n0
     Mom = n0
     state = down
     resources_available.ncpus = 4
     resources_available.mem = 8gb
"""
HWLOC = """\
<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine">
<object type="NUMANode" local_memory="1024"/><object type="Core"/><object type="Core"/>
</object></topology>
"""
PLATFORM = '<!DOCTYPE platform SYSTEM "simgrid.dtd">\n<platform><host id="n0" core="4"/></platform>\n'
FILES = {"flux": FLUX, "list": LIST, "pbs": PBS, "hwloc": HWLOC, "platform": PLATFORM}


@pytest.mark.parametrize("kind", FILES)
def test_each_file_is_shown_and_converted(kind, run, tmp_path):
    source = tmp_path / "source"
    source.write_text(FILES[kind])
    status, out, err = run("cluster", "show", source)
    assert (status, "execution targets" in out) == (0, True)
    assert err.startswith("note: ")
    assert err.count("\n") == err.count("note: ")
    graph = graph_from_bytes(source.read_bytes())
    for form in ("recipe", "jgf", "R"):
        target = tmp_path / form
        assert run("cluster", "convert", source, "--format", form, "-o", target)[0] == 0
        again = graph_from_bytes(target.read_bytes())
        found = [one for one in diff(graph, again) if form != "R" or "memory" not in str(one)]
        assert (kind, form, [str(one) for one in found if "status" not in str(one) or form != "R"]) == (
            kind,
            form,
            [],
        )


def test_faults_are_printed_first_and_once(run, tmp_path):
    text = FLUX + "".join(f'[[resource.config]]\nhosts = "m{n}"\ncores = {n}\n' for n in range(30))
    (tmp_path / "f.toml").write_text(text)
    status, _, err = run("feasible", tmp_path / "f.toml", "slot=1/core")
    assert status == 0
    lines = err.splitlines()
    assert "ignored: " in lines[0]
    assert lines[20].endswith("more notes on this file")
    assert len([line for line in lines if line.startswith("note: ")]) == 21


def test_a_recipe_of_a_site_file_takes_no_edits_and_of_other_files_there_is_none(run, tmp_path):
    (tmp_path / "f.toml").write_text(FLUX)
    status, _, err = run("cluster", "convert", tmp_path / "f.toml", "--to", "recipe", "--remove", "n0")
    assert (status, "a recipe is written without edits" in err) == (2, True)
    status, _, err = run("cluster", "convert", "grug4", "--to", "recipe")
    assert (status, "cannot be written as a recipe" in err) == (2, True)
    status, out, _ = run("cluster", "convert", "tiny", "--to", "recipe")
    assert (status, out.startswith("name: tiny\ngroups:\n- name: node\n  hosts: node[0-1]\n")) == (0, True)
    status, out, _ = run("cluster", "convert", "racked", "--to", "recipe")
    assert (status, out.startswith("name: racked\ngroups:\n")) == (0, True)


def test_queues_alone_are_no_recipe(run, tmp_path):
    (tmp_path / "q").write_text("create queue a\nset queue a enabled = True\n")
    status, _, err = run("cluster", "convert", tmp_path / "q", "--to", "recipe")
    assert (status, "queues of PBS describes no nodes" in err) == (2, True)


def test_one_node_is_multiplied(run, tmp_path):
    (tmp_path / "t.xml").write_text(HWLOC)
    make = ("cluster", "make", "--like", tmp_path / "t.xml")
    status, out, _ = run(*make, "--hosts", "m[1-4]", "--racks", 2, "--format", "recipe")
    assert status == 0
    assert "hosts: m[1-4]\n  cores: 2\n  memory: 1024 B\nracks: 2" in out
    status, out, _ = run(*make, "--nodes", 3)
    assert json.loads(out)["execution"]["nodelist"] == ["node[0-2]"]
    for more, message in (
        ((), "the number of nodes is not given (expected --hosts, or --nodes"),
        (("--nodes", 2, "--hosts", "m1"), "--hosts and --nodes differ: 1 and 2"),
        (("--nodes", 2, "--cores", 4), "--like and --cores are both given"),
    ):
        status, _, err = run(*make, *more)
        assert (status, message in err) == (2, True)


SWF = "; MaxNodes: {nodes}\n; MaxProcs: {procs}\n1 0 5 3600 4 -1 -1 4 7200 2048 1 1 1 -1 1 1 -1 -1\n"


@pytest.mark.parametrize(
    ("nodes", "procs", "groups"),
    [
        (4, 32, [("node[0-3]", 8)]),
        (3, 8, [("node[0-1]", 3), ("node2", 2)]),
        ("8 (wide)", 8, [("node[0-7]", 1)]),
        ("1,024", 8, [("node[0-7]", 1)]),
        (-1, 6, [("node[0-5]", 1)]),
        (-1, -1, [("node[0-3]", 1)]),
        (9, 8, [("node[0-7]", 1)]),
    ],
)
def test_the_machine_of_a_header(nodes, procs, groups, run, tmp_path):
    (tmp_path / "t.swf").write_text(SWF.format(nodes=nodes, procs=procs))
    status, out, err = run("cluster", "make", "--for", tmp_path / "t.swf", "--format", "recipe")
    assert status == 0
    expected = "".join(
        f"- name: {name}\n  hosts: {hosts}\n  cores: {cores}\n  memory: 2048 KiB\n"
        for name, (hosts, cores) in zip(("node", "node-2"), groups, strict=False)
    )
    assert out == f"name: t\ngroups:\n{expected}"
    assert "KiB of memory in each node, the most that a job requests there" in err


def test_every_job_of_a_bundled_workload_fits_the_machine_made_for_it(run, tmp_path):
    assert run("cluster", "make", "--for", "first-steps", "--property", "batch", "-o", tmp_path / "c")[0] == 0
    status, out, _ = run("run", tmp_path / "c", "first-steps", "-o", tmp_path / "run")
    assert status == 0
    assert "infeasible" not in out


def test_a_machine_needs_a_trace_and_nothing_else(run, tmp_path):
    for more, message in (
        (("--cores", 4), "--for and --cores are both given"),
        (("--nodes", 4), "--for and --nodes are both given"),
        (("recipe.yaml",), "--for and a recipe are both given"),
    ):
        status, _, err = run("cluster", "make", "--for", "month", *more)
        assert (status, message in err) == (2, True)
    (tmp_path / "empty.yaml").write_text("[]\n")
    status, _, err = run("cluster", "make", "--for", tmp_path / "empty.yaml")
    assert (status, "neither jobs nor sizes in a header" in err) == (2, True)
