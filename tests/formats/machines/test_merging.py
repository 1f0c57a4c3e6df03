"""Several files of one site: the hardware of one, the queues and states of others."""

from functools import partial

import pytest

import simsched as ss
from simsched.errors import FormatError
from simsched.formats.machines import recognition
from simsched.formats.machines.description import NoteCollector
from simsched.formats.machines.read import describe_text, read_as, understood
from simsched.formats.machines.site_facts import SiteFacts, node_of
from simsched.formats.rfc.idset import Idset
from simsched.graph.build.recipe import from_recipe

read_scontrol = partial(read_as, recognition.SCONTROL)
read_slurm_conf = partial(read_as, recognition.SLURM_CONF)

CONF = """
ClusterName=elwood
SchedulerType=sched/builtin
NodeName=n[1-4] CPUs=8 RealMemory=1000 Features=ib Weight=5
NodeName=g[1-2] CPUs=8 RealMemory=2000 Gres=gpu:a100:2 Features=ib,gpu
"""
PARTITIONS = """
PartitionName=cpu Nodes=n[1-4] Default=YES MaxTime=1-00:00:00 PriorityTier=1
PartitionName=gpu Nodes=g1 PriorityTier=2
PartitionName=all Nodes=ALL PriorityTier=2
"""


def facts(**words):
    return SiteFacts(form="", notes=NoteCollector(), **words)


def test_nodes_from_slurm_conf_and_partitions_from_scontrol():
    found = understood([read_slurm_conf(CONF, "slurm.conf"), read_scontrol(PARTITIONS, "parts.txt")])
    assert (found.recipe.name, found.format) == ("elwood", "slurm.conf, scontrol")
    assert {group.hosts: group.properties for group in found.recipe.groups} == {
        ("g1",): ("partition-gpu", "all", "ib", "gpu", "a100@gpu"),
        ("g2",): ("all", "ib", "gpu", "a100@gpu"),
        ("n1", "n2", "n3", "n4"): ("cpu", "all", "ib"),
    }
    assert {name: queue["requires"] for name, queue in found.config["queues"].items()} == {
        "cpu": ["cpu"],
        "gpu": ["partition-gpu"],
        "all": ["all"],
    }
    assert found.config["queue-policy"] == "fcfs"
    assert found.config["policy"]["jobspec"]["defaults"]["system"]["queue"] == "cpu"
    assert len(ss.Cluster(from_recipe(found.recipe)).index.targets) == 6


def test_the_order_of_the_files_does_not_matter_to_queues():
    one = [read_slurm_conf(CONF, "slurm.conf"), read_scontrol(PARTITIONS, "parts.txt")]
    first, second = understood(one), understood(one[::-1])
    assert first.config["queues"] == second.config["queues"]
    assert set(first.recipe.groups) == set(second.recipe.groups)


def test_live_states_are_added_to_slurm_conf():
    live = "NodeName=n2 CPUTot=8 State=DOWN*+DRAIN Partitions=cpu\nNodeName=n3 CPUTot=4 State=IDLE+DRAIN\n"
    found = understood(
        [read_slurm_conf(CONF, "slurm.conf"), read_scontrol(live.replace("\nN", "\n\nN"), "nodes.txt")]
    )
    group = next(group for group in found.recipe.groups if "n2" in group.hosts)
    assert (group.cores, group.properties, group.status) == (8, ("cpu", "ib"), "down")
    others = next(group for group in found.recipe.groups if "n3" in group.hosts)
    assert (others.cores, others.drained) == (8, {"n3"})


def test_limits_that_another_file_states_are_not_missing():
    nodes = read_scontrol("NodeName=n1 CPUTot=1 State=IDLE Partitions=a,b\n", "nodes.txt")
    limits = [read_scontrol(f"PartitionName={name} Nodes=n1 MaxTime=60\n", "p.txt") for name in "ab"]
    assert "limits" in understood([nodes, limits[0]]).notes[1].text
    assert not any("limits" in note.text for note in understood([nodes, *limits]).notes)


def test_a_partition_of_unknown_nodes_is_a_fault():
    parts = read_scontrol("PartitionName=p Nodes=n[3-6]\n", "parts.txt")
    found = understood([read_slurm_conf(CONF, "slurm.conf"), parts])
    assert [note.text for note in found.notes if note.kind == "fault"] == [
        "partition p: there is no node n[5-6] (expected a NodeName before it)"
    ]
    assert [group.hosts for group in found.recipe.groups if "p" in group.properties] == [("n3", "n4")]


def test_nodes_that_two_files_describe_otherwise_are_noted():
    live = "NodeName=n2 CPUTot=8 RealMemory=500 State=IDLE\n\nNodeName=n[3-4] CPUTot=4 State=IDLE\n"
    more = "\nNodeName=x1 CPUTot=4 State=IDLE\n\nNodeName=x2 CPUTot=4 State=IDLE\n"
    parts = [read_slurm_conf(CONF, "slurm.conf"), read_scontrol(live + more, "nodes.txt")]
    found = understood(parts)
    assert [str(note) for note in found.notes if note.kind == "fault"] == [
        "ignored: nodes of scontrol that slurm.conf does not have: x[1-2]",
        "ignored: scontrol: n2: 500 MiB memory, but 1000 MiB in slurm.conf, which counts",
        "ignored: scontrol: n[3-4]: 4 cores, but 8 in slurm.conf, which counts",
    ]
    assert [group.hosts for group in found.recipe.groups] == [("g1", "g2"), ("n1", "n2", "n3", "n4")]
    with pytest.raises(FormatError, match="n2: 500 MiB memory"):
        understood([parts[0], read_scontrol(live, "nodes.txt")], NoteCollector(strict=True))


def test_keys_of_a_queue_are_joined_and_the_parts_stay_as_they_are():
    nodes = read_slurm_conf(CONF, "slurm.conf")
    limits = [{"policy": {"limits": {"duration": "1h"}}}, {"policy": {"limits": {"job-size": {"max": {}}}}}]
    parts = [facts(config={"queues": {"q": {**queue, "hosts": "n[1-2]"}}}) for queue in limits]
    found = understood([nodes, *parts])
    assert found.config["queues"]["q"] == {
        "policy": {"limits": {"duration": "1h", "job-size": {"max": {}}}},
        "requires": ["q"],
    }
    assert parts[0].config["queues"]["q"]["hosts"] == "n[1-2]"


def test_named_cores_and_gpus_stay():
    ids = Idset.parse("4-7")
    node = node_of(cores=4, gpus=1, core_ids=ids, gpu_ids=Idset.parse("2"))
    nodes = facts(nodes={"n1": node, "n2": node})
    found = understood([nodes, facts(config={"queues": {"q": {"hosts": "n2"}}})])
    assert [(g.hosts, g.core_ids, str(g.gpu_ids), g.properties) for g in found.recipe.groups] == [
        (("n1",), ids, "2", ()),
        (("n2",), ids, "2", ("q",)),
    ]


def test_jobs_beside_several_parts_of_slurm_are_named_in_a_note():
    text = "NodeName=n1 CPUTot=4 State=IDLE\n\nJobId=1 JobName=a\n   JobState=RUNNING\n\n"
    found = describe_text(text + "Name|Flags|MaxJobsPU\nq||2\n", "all.txt")
    assert "jobs are not part of a site" in " ".join(note.text for note in found.notes)


def test_states_of_nodes_count_beside_a_file_that_has_none():
    queues = read_as(recognition.FLUX_CONFIG, "[queues.a]\n", "q.toml", open_file=None)
    states = read_as(recognition.FLUX_STATUS, "STATE NNODES NODELIST\ndrained 1 n3\n", "status")
    (group,) = understood([queues, states]).recipe.groups
    assert (group.hosts, group.status) == (("n3",), "drained")
