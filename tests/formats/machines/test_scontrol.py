"""The text of scontrol: nodes of several versions of Slurm, partitions, the configuration, and faults."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import FormatError, SimschedError
from simsched.formats.cluster.recipe import Amount, Level, PoolSpec
from simsched.formats.machines import recognition
from simsched.graph.build.recipe import from_recipe
from simsched.simulation.options.run_config import from_document, make_config
from tests.formats.machines.described import described

read_scontrol = partial(described, recognition.SCONTROL)

# Slurm 14, 20 and 23 print different keys.
OLD = """NodeName=old1 Arch=x86_64 CoresPerSocket=8
   CPUAlloc=0 CPUErr=0 CPUTot=16 CPULoad=0.01 Features=ib,westmere
   Gres=(null)
   NodeAddr=old1 NodeHostName=old1 Version=14.11
   OS=Linux RealMemory=64000 AllocMem=0 Sockets=2 Boards=1
   State=IDLE* ThreadsPerCore=1 TmpDisk=100000 Weight=1
   BootTime=2016-01-02T10:00:00 SlurmdStartTime=2016-01-02T10:01:00
   CurrentWatts=0 LowestJoules=0 ConsumedJoules=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
   Reason=Not responding [slurm@2016-03-01T11:12:13]
"""
MIDDLE = """NodeName=gpu07 Arch=x86_64 CoresPerSocket=20
   CPUAlloc=12 CPUTot=80 CPULoad=3.51
   AvailableFeatures=skylake,v100
   ActiveFeatures=skylake,v100
   Gres=gpu:v100:4(S:0-1)
   NodeAddr=gpu07 NodeHostName=gpu07 Version=20.02.6
   OS=Linux 3.10.0-1160.el7.x86_64 #1 SMP Mon Oct 19 16:18:59 UTC 2020
   RealMemory=380000 AllocMem=49152 FreeMem=301023 Sockets=2 Boards=1
   State=MIXED+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=10 Owner=N/A MCS_label=N/A
   Partitions=gpu,debug
   BootTime=2021-01-02T10:00:00 SlurmdStartTime=2021-01-02T10:01:00
   CfgTRES=cpu=80,mem=380000M,billing=80,gres/gpu=4
   AllocTRES=cpu=12,mem=48G
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
"""
NEW = """NodeName=c1 Arch=x86_64 CoresPerSocket=64
   CPUAlloc=0 CPUEfctv=124 CPUTot=128 CPULoad=0.00
   AvailableFeatures=milan,location=local
   ActiveFeatures=milan
   Gres=gpu:h200:2(S:0-1),gpu:h200_3g.71gb:6(S:0-1)
   NodeAddr=c1 NodeHostName=c1 Version=23.11.4
   OS=Linux 6.2.0-37-generic #38~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC Thu Nov  2 18:01:13 UTC 2023
   RealMemory=1546000 AllocMem=0 FreeMem=1500000 Sockets=2 Boards=1
   CoreSpecCount=4 CPUSpecList=60-63 MemSpecLimit=6000
   State=IDLE+CLOUD+POWERED_DOWN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=debug
   BootTime=2023-12-07T21:50:56 SlurmdStartTime=2023-12-07T21:54:09
   LastBusyTime=2023-12-08T22:51:31 ResumeAfterTime=None
   CfgTRES=cpu=128,mem=1546000M,billing=128
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/a ExtSensorsWatts=0 ExtSensorsTemp=n/a
"""
PARTITIONS = """PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ml AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO GraceTime=0 Hidden=NO
   MaxNodes=2 MaxTime=2-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED
   NodeSets=gpus
   Nodes=gpu[07-08]
   PriorityJobFactor=1 PriorityTier=4 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=160 TotalNodes=2 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerCPU=4000 MaxMemPerNode=UNLIMITED
   TRES=cpu=160,mem=760000M,node=2,billing=160,gres/gpu=8

PartitionName=debug
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=c1,gpu07
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   State=UP TotalCPUs=208 TotalNodes=2 SelectTypeParameters=NONE
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
"""


def one_line(text):
    """Return records as ``scontrol --oneliner`` prints them."""
    return "\n".join(" ".join(record.split()) for record in text.split("\n\n")) + "\n"


def texts(found, kind):
    return [f"{note.where}: {note.text}" for note in found.notes if note.kind == kind]


@pytest.mark.parametrize("form", [str, one_line], ids=["lines", "oneliner"])
def test_nodes_of_three_versions(form):
    found = read_scontrol(form(f"{OLD}\n{MIDDLE}\n{NEW}"), "nodes.txt")
    groups = {group.hosts[0]: group for group in found.recipe.groups}
    rows = {host: (group.cores, group.gpus, group.status) for host, group in groups.items()}
    assert rows == {"old1": (16, 0, "down"), "gpu07": (40, 4, "drained"), "c1": (124, 2, "up")}
    assert groups["old1"].properties == ("ib", "westmere")
    assert groups["gpu07"].properties == ("gpu", "debug", "skylake", "v100", "v100@gpu")
    assert groups["c1"].properties == (
        "debug", "milan", "location=local", "h200@gpu",
    )  # fmt: skip
    assert groups["c1"].locality == (Level("socket", 2),)
    assert groups["c1"].pools[0] == PoolSpec(type="memory", amount=Amount(1540000, "MiB"))
    assert texts(found, "fault") == []
    cluster = ss.Cluster(from_recipe(found.recipe))
    assert ss.feasible(cluster, ss.Jobspec.from_shape("slot=1/[core=124;gpu=2;mig-h200_3g.71gb=6]"))


def test_nodes_alone_have_queues_without_limits():
    found = read_scontrol(f"{MIDDLE}\n{NEW}", "nodes.txt")
    assert found.config == {"queues": {"gpu": {"requires": ["gpu"]}, "debug": {"requires": ["debug"]}}}
    assert ": the limits of the partitions gpu, debug, which no file states" in texts(found, "left out")


@pytest.mark.parametrize("form", [str, one_line], ids=["lines", "oneliner"])
def test_partitions_alone_are_queues_with_hosts(form):
    found = read_scontrol(form(PARTITIONS), "partitions.txt")
    assert found.recipe.groups == ()
    limits = {"duration": "2d", "job-size": {"max": {"nnodes": 2}}}
    assert found.config == {
        "policy": {"jobspec": {"defaults": {"system": {"queue": "debug"}}}},
        "queues": {
            "gpu": {
                "hosts": "gpu[07-08]",
                "priority": 4,
                "policy": {"limits": limits, "jobspec": {"defaults": {"system": {"duration": "1h"}}}},
            },
            "debug": {"hosts": "c1,gpu07", "priority": 1},
        },
    }
    make_config(**from_document(found.config))
    assert sorted(texts(found, "left out")) == [
        "partitions.txt:1: partition gpu: AllowAccounts=ml (the accounts that may use it)",
        "partitions.txt:1: partition gpu: DefMemPerCPU=4000 (the default memory per CPU)",
    ]


def test_nodes_and_partitions_in_one_text():
    found = read_scontrol(f"{MIDDLE}\n{NEW}\n{PARTITIONS}", "all.txt")
    assert found.config["queues"]["gpu"]["requires"] == ["gpu"]
    assert found.config["queues"]["gpu"]["policy"]["limits"]["duration"] == "2d"
    assert texts(found, "fault") == [
        "all.txt:37: partition gpu: there is no node gpu08 (expected a NodeName before it)"
    ]


def test_the_configuration_in_force():
    text = """Configuration data as of 2024-05-01T10:00:00
ClusterName             = elwood
BOOT_TIME               = 2024-04-30T08:00:00
PriorityDecayHalfLife   = 14-00:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 0
PriorityWeightFairShare = 1000
SchedulerTimeSlice      = 30 sec
SchedulerType           = sched/backfill
SlurmctldHost[0]        = mgmt1(10.0.0.1)
CompleteWait            = 0 sec
PreemptMode             = OFF

Cgroup Support Configuration:
AllowedRAMSpace         = 100.0%

Slurmctld(primary) at mgmt1 is UP
"""
    found = read_scontrol(text, "config.txt")
    assert found.recipe.name == "elwood"
    assert (found.config["queue-policy"], found.config["order"]) == ("easy", "multifactor")
    assert found.config["priority"]["factors"] == {"fair-share": {"weight": 1000}}
    assert found.config["priority"]["fair-share"] == {"method": "fair-tree", "half-life": "14d"}
    assert texts(found, "fault") == []


def test_text_around_the_records_is_a_fault_and_no_obstacle():
    found = read_scontrol(f"$ scontrol show node\n{OLD}\nthat was it\n", "mail.txt")
    assert found.recipe.groups[0].hosts == ("old1",)
    assert texts(found, "fault") == [
        "mail.txt:1: '$ scontrol show node' is not part of a record",
        "mail.txt:13: 'that was it' is not part of a record",
    ]
    with pytest.raises(FormatError, match=r"^mail\.txt:1: '\$ scontrol show node' is not part of a record"):
        read_scontrol(f"$ scontrol show node\n{OLD}\nthat was it\n", "mail.txt", strict=True)


def test_a_node_twice_is_a_fault():
    found = read_scontrol(f"{OLD}\n{OLD}", "n.txt")
    assert texts(found, "fault") == ["n.txt:12: the node 'old1' occurs twice; that of n.txt:1 counts"]


@pytest.mark.parametrize("text", ["", "\n\n", "PARTITION AVAIL TIMELIMIT\nall up infinite\n", "JobId=1\n"])
def test_other_texts_are_errors(text):
    with pytest.raises(FormatError, match=r"^x: this is not the output of scontrol"):
        read_scontrol(text, "x")


PIECES = [*MIDDLE.split(" "), *PARTITIONS.split(" "), "\n", "NodeName=", "=", "SchedulerType = x"]


@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join)))
def test_any_text_is_a_description_or_an_error_of_ours(text):
    try:
        found = read_scontrol(text, "any")
        make_config(**from_document(found.config))
        if found.recipe.groups:
            ss.Cluster(from_recipe(found.recipe))
    except SimschedError:
        pass
