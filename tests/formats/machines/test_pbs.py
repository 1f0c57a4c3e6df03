"""pbsnodes of PBS and Torque as text and JSON, and the queues of qmgr and qstat."""

from functools import partial

import pytest

from simsched.errors import FormatError
from simsched.formats.machines import recognition
from simsched.simulation.options.run_config import from_document
from tests.formats.machines.described import described

read_pbs_queues = partial(described, recognition.QMGR)
read_pbsnodes = partial(described, recognition.PBSNODES)

NODES = """\
n01
     Mom = n01.lab
     ntype = PBS
     state = job-busy
     pcpus = 64
     jobs = 17.head/0, 17.head/1
     resources_available.arch = linux
     resources_available.fast = True
     resources_available.slow = False
     resources_available.fabric = hdr
     resources_available.licences = 4
     resources_available.host = n01
     resources_available.mem = 1048576kb
     resources_available.ncpus = 32
     resources_available.ngpus = 2
     resources_available.Qlist = work,gpu
     resources_assigned.ncpus = 2
     sharing = default_shared

n02
     state = offline,job-busy
     resources_available.mem = 4gb
     resources_available.ncpus = 8
     queue = special
"""


def facts(description):
    return [
        (g.hosts, g.cores, g.gpus, [(p.type, p.amount.size, p.amount.unit) for p in g.pools], g.properties)
        for g in description.recipe.groups
    ]


def faults(description):
    return [(note.where, note.text) for note in description.notes if note.kind == "fault"]


def test_nodes_of_pbs():
    found = read_pbsnodes(NODES, "pbs")
    pools = [("memory", 1048576, "KiB"), ("licences", 4, "")]
    assert facts(found) == [
        (("n01",), 32, 2, pools, ("work", "gpu", "fast", "fabric=hdr")),
        (("n02",), 8, 0, [("memory", 4, "GiB")], ("special",)),
    ]
    assert found.recipe.groups[1].status == "drained"
    assert found.config == {"queues": {"special": {"requires": ["special"]}}}
    assert faults(found) == []


def test_nodes_of_torque():
    text = (
        "t1\n     state = down,offline\n     np = 20\n     properties = fat,new\n     ntype = cluster\n"
        "     status = rectime=1,jobs=,physmem=2097152kb,uname=Linux t1\n     gpus = 1\n"
        "     total_sockets = 2\n"
    )
    (group,) = read_pbsnodes(text, "t").recipe.groups
    assert (group.cores, group.gpus, group.properties, group.status) == (20, 1, ("fat", "new"), "down")
    assert [(level.type, level.count) for level in group.locality] == [("socket", 2)]
    assert group.pools[0].amount.size == 2097152


def test_vnodes_of_a_host_are_one_node():
    vnode = "     state = free\n     resources_available.host = h\n"
    text = f"h\n{vnode}     resources_available.ncpus = 0\n" + "".join(
        f"h[{at}]\n{vnode}     resources_available.ncpus = 8\n     resources_available.mem = 2gb\n"
        for at in (0, 1)
    )
    found = read_pbsnodes(text, "v")
    (group,) = found.recipe.groups
    assert (group.hosts, group.cores, group.pools[0].amount.size) == (("h",), 16, 4)
    assert [(level.type, level.count) for level in group.locality] == [("numa", 2)]
    assert "vnodes of one host are one node" in [note.text for note in found.notes]


def test_the_json_says_the_same():
    row = {"state": "free", "jobs": ["1.h"], "resources_available": {"ncpus": 4, "mem": "1gb", "Qlist": "a"}}
    found = read_pbsnodes({"pbs_version": "1", "nodes": {"n1": row, "bad": 4}}, "j")
    assert facts(found) == [(("n1",), 4, 0, [("memory", 1, "GiB")], ("a",))]
    assert faults(found) == [("j: nodes.bad", "this node is not an object")]


FAULTS = {
    "     np = 4\nn1\n     np = 4\n": "an attribute before the first node",
    "n1\n     np = 4\nn1\n     np = 8\n": "the node 'n1' occurs twice; the first counts",
    "n1\n     np = four\n     pcpus = 4\n": "'four' is not a value of np",
    "n1\n     np = 4\n     state = lost\n": "unknown state 'lost'; the node counts as up",
    "n1\n     np = 4\n     propertis = a\n": "unknown key 'propertis'; did you mean properties?",
    "n1\n     np = 4\n     properties = a&b\n": "property 'a&b' has the forbidden character &",
    "n1\n     np = 4\n     resources_available.mem = much\n": "'much' is not an amount of memory",
    "n 1\n     np = 4\nn2\n     np = 4\n": "'n 1' is not a host name",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_of_nodes_have_a_line_and_do_not_end_the_reading(text):
    found = read_pbsnodes(text, "p")
    (fault,) = faults(found)
    assert fault[0].startswith("p:")
    assert FAULTS[text] in fault[1]
    assert found.recipe.groups[0].cores == 4
    with pytest.raises(Exception, match="p:"):
        read_pbsnodes(text, "p", strict=True)


def test_nodes_without_cores_are_refused():
    for text in ("", "n1\n     state = free\n"):
        with pytest.raises(FormatError, match="no node has cores"):
            read_pbsnodes(text, "p")


QMGR = """\
#
# Create queues and set their attributes.
#
create queue work
set queue work queue_type = Execution
set queue work Priority = 50
set queue work resources_max.ncpus = 256
set queue work resources_min.nodect = 2
set queue work resources_max.walltime = 24:00:00
set queue work resources_default.walltime = 1800
set queue work default_chunk.Qlist = work
set queue work enabled = True
set queue work started = True
create queue off queue_type=Execution
set queue off enabled = False
create queue route
set queue route queue_type = Route
set queue route route_destinations = work
set queue route route_destinations += off
set server default_queue = work
set server resources_max.walltime = 2:00:00:00
set server scheduling = True
"""


def test_queues_of_qmgr_become_a_configuration():
    found = read_pbs_queues(QMGR, "q")
    queues = from_document(found.config)["queues"]
    assert list(queues.queues) == ["work"]
    work = queues.queues["work"]
    assert (work.priority, work.longest, work.default_duration) == (50, 86400, 1800)
    assert (dict(work.most), dict(work.least), queues.default) == ({"ncores": 256}, {"nnodes": 2}, "work")
    assert found.config["policy"]["limits"]["duration"] == "2d"
    left = [note.text for note in found.notes if note.kind == "left out"]
    assert "the routing queue route" in left
    assert "the queue off, which is not enabled or not started" in left
    assert found.recipe.groups == ()


CHUNKS = """\
create queue work
set queue work queue_type = Execution
set queue work default_chunk.grouped = false
set queue work default_chunk.fast = t
set queue work default_chunk.ncpus = 4
set queue work default_chunk.rack = r1
set queue work enabled = True
set queue work started = True
set server default_queue = work
set server default_chunk.ncpus = 1
set server default_chunk.rack = r2
set server resources_default.neednodes = all
"""


def test_each_value_of_a_default_chunk_is_required_or_named():
    found = read_pbs_queues(CHUNKS, "q")
    # no node has a property for a resource that is false, so a queue that required one had no nodes
    assert found.config["queues"]["work"]["requires"] == ["fast", "rack=r1"]
    assert [(note.where, note.text) for note in found.notes if note.kind == "left out"] == [
        ("q:3", "default_chunk.grouped of queues or the server"),
        ("q:5", "default_chunk.ncpus of queues or the server"),
        ("q:11", "default_chunk.rack of queues or the server"),
        ("q:12", "resources_default.neednodes of queues or the server"),
    ]


@pytest.mark.parametrize("names", [("nodes", "nodect"), ("nodect", "nodes")])
def test_of_two_limits_on_one_size_the_narrower_counts(names):
    lines = "create queue work\n"
    for table, numbers in (("resources_max", (4, 8)), ("resources_min", (3, 2))):
        lines += "".join(f"set queue work {table}.{names[at]} = {numbers[at]}\n" for at in (0, 1))
    found = read_pbs_queues(lines, "q")
    sizes = found.config["queues"]["work"]["policy"]["limits"]["job-size"]
    assert sizes == {"max": {"nnodes": 4}, "min": {"nnodes": 3}}


def test_nodes_of_qmgr_and_queues_of_qstat():
    text = "create node n1 Mom=n1.lab\nset node n1 state = free\nset node n1 resources_available.ncpus = 8\n"
    assert facts(read_pbs_queues(text, "q"))[0][:2] == (("n1",), 8)
    row = {"queue_type": "Execution", "enabled": "True", "started": "True", "resources_max": {"nodect": 4}}
    found = read_pbs_queues({"Queue": {"a": row}}, "q")
    assert from_document(found.config)["queues"].queues["a"].most == {"nnodes": 4}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("what is this", "not a command of qmgr"),
        ("set queue b Priority = 1", "the queue 'b' is not created"),
        ("set queue a Priority = high", "'high' is not a priority"),
        ("set queue a resources_max.walltime = soon", "'soon' is not a time"),
        ("set queue a resources_max.ncpus = many", "'many' is not a value of resources_max.ncpus"),
        ("set server default_queue = c", "the default queue 'c' does not exist"),
    ],
)
def test_faults_of_queues(line, message):
    text = f"create queue a\nset queue a enabled = True\n{line}\n"
    (fault,) = faults(read_pbs_queues(text, "q"))
    assert (fault[0], message in fault[1]) == ("q:3", True)
    with pytest.raises(FormatError, match="q:3"):
        read_pbs_queues(text, "q", strict=True)


def test_vnodes_without_the_vnode_of_their_host_have_its_name():
    rows = {
        f"h[{at}]": {"state": "free", "resources_available": {"host": "h", "ncpus": 4}} for at in range(2)
    }
    found = read_pbsnodes({"nodes": rows}, "v")
    assert [(group.hosts, group.cores) for group in found.recipe.groups] == [(("h",), 8)]


@pytest.mark.parametrize(
    ("others", "policy", "kind"),
    [("force_exclhost", "firstnodex", "assumed"), ("default_shared", None, "left out")],
)
def test_nodes_that_are_given_as_a_whole(others, policy, kind):
    rows = {
        name: {"sharing": sharing, "resources_available": {"ncpus": 4}}
        for name, sharing in (("a", "default_exclhost"), ("b", others))
    }
    found = read_pbsnodes({"nodes": rows}, "v")
    assert found.config.get("match-policy") == policy
    assert [note.kind for note in found.notes if "exclhost" in note.text] == [kind]
