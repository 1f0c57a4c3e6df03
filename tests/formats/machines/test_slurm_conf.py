"""slurm.conf with its neighbours: a whole made-up site, each key, and each fault."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import FormatError, LimitError, SimschedError
from simsched.formats.cluster.recipe import Amount, Level, PoolSpec
from simsched.formats.machines import recognition
from simsched.graph.build.recipe import from_recipe
from simsched.simulation.options.run_config import from_document, make_config
from tests.formats.machines.described import described

read_slurm_conf = partial(described, recognition.SLURM_CONF)

CONF = """
# a made-up site
ClusterName=elwood
SlurmctldHost=mgmt1(10.0.0.1)
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_window=4320,bf_max_job_test=500,bf_continue
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=100000
PriorityDecayHalfLife=14-0
EnforcePartLimits=ALL
TopologyPlugin=topology/tree
Licenses=matlab:20
TmpFS=/local
include nodes.conf
PartitionName=DEFAULT MaxTime=2-00:00:00 DefaultTime=1:00:00 State=UP
PartitionName=cpu Nodes=thin[001-020],fat[1-2] Default=YES PriorityTier=10
PartitionName=gpu Nodes=accelerated MaxTime=1-0 \\
    MaxNodes=4 MinNodes=2 PriorityTier=20 AllowAccounts=ml,chem   # only theirs
"""
FILES = {
    "nodes.conf": """
NodeName=DEFAULT Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 State=UNKNOWN
nodename=thin[001-020] RealMemory=256000 Features=rome,ib Weight=10 TmpDisk=900000
NodeName=fat[1-2] RealMemory=2048000 Features=rome Weight=50
NodeName=acc[1-4] CoresPerSocket=28 RealMemory=512000 Gres=gpu:a100:4(S:0-1) Feature=milan Weight=100
NodeSet=accelerated Nodes=acc[1-4]
DownNodes=thin[007,013] State=DRAIN Reason="bad memory # 3"
DownNodes=thin008 State=DOWN
""",
    "topology.conf": """
SwitchName=leaf1 Nodes=thin[001-010]
SwitchName=leaf2 Nodes=thin[011-020],fat[1-2]
SwitchName=leaf3 Nodes=acc[1-4]
SwitchName=top Switches=leaf[1-3]
""",
}


def read(text, files=FILES, **options):
    return read_slurm_conf(text, "slurm.conf", open_file=files.__getitem__, **options)


def cluster_of(found):
    return ss.Cluster(from_recipe(found.recipe))


def texts(found, kind):
    return [f"{note.where}: {note.text}" for note in found.notes if note.kind == kind]


def nodes(line, **more):
    """Read one NodeName line; return its group and the description."""
    found = read(f"{line}\n", more)
    return found.recipe.groups[0], found


# --- a whole site


def test_a_site_becomes_groups_with_partitions_and_features_as_properties():
    found = read(CONF)
    rows = [(group.name, len(group.hosts), group.cores, group.gpus) for group in found.recipe.groups]
    assert rows == [("thin", 20, 64, 0), ("fat", 2, 64, 0), ("acc", 4, 56, 4)]
    thin, fat, acc = found.recipe.groups
    assert thin.properties == ("cpu", "rome", "ib")
    assert fat.properties == ("cpu", "rome")
    assert acc.properties == ("gpu", "milan", "a100@gpu")
    assert (thin.drained, thin.down) == ({"thin007", "thin013"}, {"thin008"})
    assert thin.locality == (Level("socket", 2),)
    assert thin.pools == (
        PoolSpec(type="memory", amount=Amount(256000, "MiB")),
        PoolSpec(type="storage", amount=Amount(900000, "MiB"), path="/local"),
    )
    assert found.recipe.pools == (PoolSpec(type="matlab", amount=Amount(20)),)
    assert (found.recipe.name, found.format, found.cpus_per_core) == ("elwood", "slurm.conf", 2)


def test_a_site_becomes_queues_and_run_options():
    found = read(CONF)
    defaults = {"jobspec": {"defaults": {"system": {"duration": "1h"}}}}
    assert found.config == {
        "queue-policy": "slurm",
        "policy-options": {"slurm": {"window": 259200, "max-job-test": 500}},
        "order": "multifactor",
        "priority": {
            "period": "5m",
            "rounding": "down",
            "least": 1,
            "most": 2**32 - 1,
            "factors": {"age": {"weight": 1000, "max": "7d"}, "fair-share": {"weight": 100000}},
            "fair-share": {"method": "fair-tree", "half-life": "14d"},
        },
        "licenses": {"matlab": 20},
        "policy": {"jobspec": {"defaults": {"system": {"queue": "cpu"}}}},
        "queues": {
            "cpu": {
                "requires": ["cpu"],
                "priority": 10,
                "policy": {"limits": {"duration": "2d"}, **defaults},
            },
            "gpu": {
                "requires": ["gpu"],
                "priority": 20,
                "policy": {
                    "limits": {
                        "duration": "1d",
                        "job-size": {"max": {"nnodes": 4}, "min": {"nnodes": 2}},
                    },
                    **defaults,
                },
            },
        },
    }
    make_config(**from_document(found.config))


def test_a_site_says_what_it_assumes_and_leaves_out():
    found = read(CONF)
    assert texts(found, "fault") == []
    assert texts(found, "left out") == [
        "slurm.conf:20: partition gpu: AllowAccounts=ml,chem (the accounts that may use it)",
        "slurm.conf: 1 setting that does not affect the schedule here: SlurmctldHost",
    ]
    assert texts(found, "assumed")[0] == (
        "nodes.conf:3: a core is a physical core, for which Slurm counts 2 CPUs (ThreadsPerCore) "
        "(and 2 more lines)"
    )


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ("slot=1/core", True),
        ("slot=20/core=64", True),
        ("slot=1/core=65", False),
        ("node=22/slot/core=64", True),
        ("slot=4/node{x}", True),
        ("slot=1/memory=2048000{unit: MiB}", True),
        ("slot=1/memory=2001{unit: GiB}", False),
        ("slot=16/gpu", True),
        ("slot=17/gpu", False),
        ("slot=1/[core=28;gpu=4;memory=100{unit: GiB}]", True),
        ("node=4/slot/socket=2/[core=28;gpu=2]", True),
        ("switch/node=12", True),
        ("switch/node=13", False),
        ("switch-level-1/node=26", True),
        ("matlab=20", True),
    ],
)
def test_requests_match_the_site(shape, fits):
    assert bool(ss.feasible(cluster_of(read(CONF)), ss.Jobspec.from_shape(shape))) is fits


def test_properties_select_partitions_features_and_types_of_gpus():
    matcher = ss.Matcher(cluster_of(read(CONF)))
    for names, host in (
        (["gpu"], "acc1"),
        (["rome", "^ib"], "fat1"),
        (["a100@gpu"], "acc1"),
        (["cpu"], "thin001"),
    ):
        spec = ss.Jobspec.from_shape("slot=1/core").with_system(constraints={"properties": names})
        assert matcher.match(spec).R.to_dict()["execution"]["nodelist"] == [host]


# --- nodes


@pytest.mark.parametrize(
    ("keys", "cores", "sockets", "cpus_per_core"),
    [
        ("", 1, 0, 1),
        ("CPUs=64", 64, 0, 1),
        ("Procs=16", 16, 0, 1),
        ("CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2", 64, 2, 1),
        ("CPUs=128 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2", 64, 2, 2),
        ("CPUs=128 CoresPerSocket=32 ThreadsPerCore=2", 64, 2, 2),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=8", 32, 4, 1),
        ("SOCKETS=1 corespersocket=8", 8, 1, 1),
        ("CPUs=2 Sockets=2 CoresPerSocket=8", 2, 0, 1),
        ("Sockets=2 CoresPerSocket=32 CoreSpecCount=2", 62, 2, 1),
        ("Sockets=2 CoresPerSocket=32 CoreSpecCount=1 Gres=gpu:2", 63, 0, 1),
        ("Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CPUSpecList=0-7", 60, 2, 2),
    ],
)
def test_cores_are_physical_cores(keys, cores, sockets, cpus_per_core):
    group, found = nodes(f"NodeName=n1 RealMemory=1000 {keys}")
    assert (group.cores, found.cpus_per_core) == (cores, cpus_per_core)
    assert group.locality == ((Level("socket", sockets),) if sockets else ())
    assert texts(found, "fault") == []


def test_cpus_that_do_not_fit_the_sockets_are_a_fault():
    group, found = nodes("NodeName=n1 CPUs=100 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2")
    assert group.cores == 64
    (fault,) = texts(found, "fault")
    assert fault.startswith("slurm.conf:1: CPUs=100 does not fit the sockets (expected 64 or 128, as Sockets")


def test_reserved_memory_is_not_in_the_graph():
    group, _ = nodes("NodeName=n1 RealMemory=1000 MemSpecLimit=200")
    assert group.pools == (PoolSpec(type="memory", amount=Amount(800, "MiB")),)


@pytest.mark.parametrize(
    ("gres", "gpus", "properties"),
    [
        ("gpu", 1, ()),
        ("gpu:4", 4, ()),
        ("gpu:a100:4", 4, ("a100@gpu",)),
        ("gpu:a100:2,gpu:a100:2", 4, ("a100@gpu",)),
        ("gpu:nvidia_a100_80gb_pcie:2(S:0-1)", 2, ("nvidia_a100_80gb_pcie@gpu",)),
        ("gpu:a100:no_consume:4", 4, ("a100@gpu",)),
    ],
)
def test_gpus_of_one_type(gres, gpus, properties):
    group, _ = nodes(f"NodeName=n1 Gres={gres}")
    assert (group.gpus, group.properties) == (gpus, properties)


def test_gpus_of_several_types_are_single_vertices_with_their_types():
    group, found = nodes("NodeName=n[1-2] CPUs=8 Gres=gpu:h200:2,gpu:h100:6,nic:hdr:2")
    assert (group.gpus, group.properties) == (0, ("h200@gpu", "h100@gpu"))
    cluster = cluster_of(found)
    assert ss.feasible(cluster, ss.Jobspec.from_shape("slot=2/[core=4;gpu=8;nic=2]"))
    assert not ss.feasible(cluster, ss.Jobspec.from_shape("slot=2/gpu=9"))
    answer = ss.Matcher(cluster).match(ss.Jobspec.from_shape("slot=1/gpu=3"))
    assert answer.R.to_dict()["execution"]["R_lite"][0]["children"] == {"gpu": "0-2"}


def test_resources_that_requests_cannot_have_are_left_out():
    _, found = nodes("NodeName=n1 Gres=gpu:2,shard:8,mps:200,bandwidth:no_consume:4G,9p:2,memory:4")
    assert [text.split(": ")[1] for text in texts(found, "left out")] == [
        "shard", "mps", "bandwidth", "9p", "memory",
    ]  # fmt: skip


def test_gres_conf_states_the_types_of_gpus_that_slurm_conf_counts():
    files = {
        "gres.conf": """
AutoDetect=off
NodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-15
NodeName=n[1-2] Name=gpu Type=v100 File=/dev/nvidia[2-3]
NodeName=n3 Name=gpu Type=t4 Count=4
NodeName=n4 Name=gpu Type=t4 File=/dev/nvidia0
"""
    }
    found = read("NodeName=n[1-5] CPUs=8 Gres=gpu:4,nic:1", files)
    types = {group.hosts: group.properties for group in found.recipe.groups}
    assert types == {("n1", "n2"): ("a100@gpu", "v100@gpu"), ("n3",): ("t4@gpu",), ("n4", "n5"): ()}
    assert "slurm.conf:1: gres.conf lists 1 gpus of n4; the 4 of slurm.conf count" in texts(found, "assumed")
    assert all(any(pool.type == "nic" for pool in group.pools) for group in found.recipe.groups)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("UNKNOWN", "up"), ("IDLE", "up"), ("CLOUD", "up"), ("DOWN", "down"), ("DRAIN", "drained"),
        ("DRAINING", "drained"), ("FAIL", "drained"), ("down", "down"), ("IDLE+DRAIN", "drained"),
    ],
)  # fmt: skip
def test_states(state, status):
    assert nodes(f"NodeName=n1 State={state}")[0].status == status


def test_future_nodes_are_not_in_the_graph_and_no_fault_of_a_partition():
    found = read("NodeName=n[1-2]\nNodeName=n[3-4] State=FUTURE\nPartitionName=a Nodes=n[1-4]\n", {})
    assert [group.hosts for group in found.recipe.groups] == [("n1", "n2")]
    assert texts(found, "fault") == []
    assert texts(found, "left out") == [
        "slurm.conf:2: nodes in the state FUTURE are only planned and not in the graph"
    ]


def test_names_with_several_brackets_and_leading_zeroes():
    assert nodes("NodeName=r[0-1]n[08-10],login CPUs=1")[0].hosts == (
        "r0n08", "r0n09", "r0n10", "r1n08", "r1n09", "r1n10", "login",
    )  # fmt: skip


def test_equal_nodes_are_one_group_however_they_are_written():
    lines = "".join(f"NodeName=n{i} CPUs=8 Weight={1 + i % 2}\n" for i in range(6))
    found = read(lines, {})
    assert [group.hosts for group in found.recipe.groups] == [("n0", "n2", "n4", "n1", "n3", "n5")]


def test_the_names_of_a_template_are_not_nodes_and_partitions():
    text = (
        "NodeName={{ node }} CPUs=4\nNodeName=n1 CPUs=8\nPartitionName={%p%} Nodes=n1\n"
        "NodeName=${HOST} CPUs=4\nPartitionName=<%=p%> Nodes=n1\n"
    )
    found = read(text, {})
    assert [group.hosts for group in found.recipe.groups] == [("n1",)]
    assert "queues" not in found.config
    said = [note.text for note in found.notes if "template" in note.text]
    assert said[0].startswith("the name '{{' is that of a template")
    assert len(said) == 4


# --- partitions


def queue(keys, lines="NodeName=n[1-4] CPUs=1 Features=big"):
    found = read(f"{lines}\nPartitionName=p {keys}\n", {})
    return found.config["queues"]["p"], found


@pytest.mark.parametrize(
    ("keys", "limits"),
    [
        ("MaxTime=90", {"duration": "90m"}),
        ("MaxTime=90:30", {"duration": "91m"}),  # slurmctld keeps minutes, rounded up
        ("MaxTime=8:00:00", {"duration": "8h"}),
        ("MaxTime=1-12", {"duration": "36h"}),
        ("MaxTime=7-00:00:00", {"duration": "7d"}),
        ("MaxTime=INFINITE MaxNodes=UNLIMITED MinNodes=1", None),
        ("MaxNodes=3", {"job-size": {"max": {"nnodes": 3}}}),
    ],
)
def test_limits(keys, limits):
    found = queue(f"Nodes=ALL {keys}")[0]
    assert found.get("policy", {}).get("limits") == limits


def test_a_priority_is_the_tier_and_the_factor_whatever_else_is_stated():
    lines = """\
PriorityWeightPartition=1000
NodeName=n1 CPUs=1
PartitionName=DEFAULT PriorityTier=5 PriorityJobFactor=4
PartitionName=a Nodes=n1
PartitionName=b Nodes=n1 Priority=9
PartitionName=c Nodes=n1 Priority=9 PriorityTier=3 PriorityJobFactor=2
PartitionName=DEFAULT Priority=7
PartitionName=d Nodes=n1 PriorityTier=3
"""
    found = read(lines, {})
    tiers = {name: table["priority"] for name, table in found.config["queues"].items()}
    assert tiers == {"a": 5, "b": 9, "c": 9, "d": 7}
    factors = found.config["priority"]["factors"]["queue"]["values"]
    assert factors == {"a": 4, "b": 9, "c": 9, "d": 7}


@pytest.mark.parametrize(
    ("keys", "hosts"),
    [
        ("Nodes=ALL", "n1,n2,n3,n4"),
        ("Nodes=n[2-3]", "n2,n3"),
        ("Nodes=some,n4", "n1,n4"),
        ("Nodes=huge", "n3,n4"),
    ],
)
def test_the_nodes_of_a_partition(keys, hosts):
    lines = "NodeSet=some Nodes=n1\nNodeSet=huge Feature=big\nNodeName=n[1-2]\nNodeName=n[3-4] Features=big"
    _, found = queue(keys, lines)
    have = [host for group in found.recipe.groups if "p" in group.properties for host in group.hosts]
    assert ",".join(have) == hosts


def test_a_partition_with_the_name_of_a_feature_of_other_nodes_has_another_property():
    text = "NodeName=n[1-4] Features=p\nPartitionName=p Nodes=n[1-2]\nPartitionName=q Nodes=n[3-4]\n"
    found = read(text, {})
    assert found.config["queues"]["p"]["requires"] == ["partition-p"]
    assert [group.properties for group in found.recipe.groups] == [("partition-p", "p"), ("q", "p")]
    assert "slurm.conf:2: the property of partition p is partition-p" in texts(found, "assumed")


def test_a_name_that_rfc_20_forbids_is_made_valid():
    found = read("NodeName=n1 Features=a&b\nPartitionName=x|y Nodes=n1\n", {})
    assert found.config["queues"]["x|y"]["requires"] == ["x_y"]
    assert found.recipe.groups[0].properties == ("x_y", "a_b")


def test_a_partition_that_is_not_up_starts_nothing():
    found, whole = queue("Nodes=ALL State=DRAIN")
    assert found["closed"] == [["0s", "inf"]]
    make_config(**from_document(whole.config))


def test_exclusive_partitions_choose_whole_nodes():
    assert queue("Nodes=ALL OverSubscribe=EXCLUSIVE")[1].config["match-policy"] == "firstnodex"
    some = read("NodeName=n1\nPartitionName=p Nodes=n1 Shared=EXCLUSIVE\nPartitionName=q Nodes=n1\n", {})
    assert "match-policy" not in some.config
    assert "slurm.conf:2: the partitions p give whole nodes (OverSubscribe=EXCLUSIVE)" in texts(
        some, "left out"
    )


def test_notes_of_one_key_are_one_note():
    lines = "".join(f"PartitionName=p{i} Nodes=n1 QOS=q{i}\n" for i in range(5))
    found = read(f"NodeName=n1\n{lines}", {})
    assert texts(found, "left out") == [
        "slurm.conf:2: partition p0: QOS=q0 (the limits of its QOS, which no file states) (and 4 more lines)"
    ]


# --- settings


@pytest.mark.parametrize(
    ("lines", "config"),
    [
        ("SchedulerType=sched/builtin", {"queue-policy": "fcfs"}),
        ("SchedulerType=sched/backfill", {"queue-policy": "easy"}),
        ("SelectType=select/linear", {"match-policy": "firstnodex"}),
        ("JobRequeue=0", {"on-failure": "fail"}),
        ("OverTimeLimit=UNLIMITED", {"overrun": "allow"}),
        ("OverTimeLimit=5", {"kill-grace": "5m"}),
        ("OverTimeLimit=0", {}),
        ("PriorityType=priority/basic\nPriorityWeightFairshare=10", {}),
        ("PriorityType=priority/multifactor\nPriorityWeightAge=0", {}),
    ],
)
def test_settings_that_run_options_hold(lines, config):
    found = read(f"{lines}\nNodeName=n1\n", {})
    assert found.config == {"queue-policy": "easy", **config}
    make_config(**from_document(found.config))


@pytest.mark.parametrize("sign", ["=", "==", " = ="])
def test_the_parameters_of_backfill_become_options_of_the_policy_slurm(sign):
    """Slurm looks for the names in the text, so that a second sign of equality changes nothing."""
    line = (
        f"SchedulerParameters{sign}bf_interval=60,bf_window=2880,bf_resolution=300,bf_max_job_test=1000,"
        "bf_max_job_user=20,bf_max_job_part=0,bf_min_age_reserve=3600,bf_continue,defer,sched_interval=120"
    )
    found = read(f"{line}\nNodeName=n1\n", {})
    options = {
        "interval": 60,
        "window": 172800,
        "resolution": 300,
        "max-job-test": 1000,
        "max-job-user": 20,
        "min-age-reserve": 3600,
        "sched-interval": 120,
    }
    assert found.config == {"queue-policy": "slurm", "policy-options": {"slurm": options}}
    assert "bf_continue without effect" in "\n".join(texts(found, "assumed"))
    assert texts(found, "left out") == []
    make_config(**from_document(found.config))


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("PriorityWeightQOS=10", "the priorities of QOS are in the accounting database"),
        ("PriorityWeightAge=1\nPriorityFlags=INCR_ONLY", "PriorityFlags=INCR_ONLY: priorities may decrease"),
        ("PriorityWeightTRES=cpu=1,bb/cray=10", "PriorityWeightTRES: bb/cray=10"),
        ("SchedulerParameters=bf_window=10,bf_busy_nodes", "SchedulerParameters: bf_busy_nodes"),
        ("SchedulerParameters=defer", "SchedulerParameters: defer"),
        ("PreemptType=preempt/qos\nPreemptMode=REQUEUE", "preemption with preempt/qos"),
        ("DefMemPerCPU=4000", "DefMemPerCPU=4000 (the default memory per CPU)"),
        ("SelectTypeParameters=CR_LLN,CR_Core_Memory", "CR_LLN: the order in which nodes are used"),
        ("TopologyPlugin=topology/tree", "TopologyPlugin=topology/tree: no topology.conf was read"),
        ("SuspendProgram=/usr/sbin/off", "SuspendProgram=/usr/sbin/off (nodes that are switched off"),
    ],
)
def test_settings_that_are_left_out(line, note):
    assert note in "\n".join(texts(read(f"{line}\nNodeName=n1\n", {}), "left out"))


def test_partitions_of_higher_tiers_preempt_where_slurm_does():
    text = """
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n1
PartitionName=low Nodes=n1 PriorityTier=1
PartitionName=high Nodes=n1 PriorityTier=2
"""
    found = read(text, {})
    config, queues = found.config, found.config["queues"]
    assert "Slurm keeps it back (121 s by default)" in "\n".join(texts(found, "assumed"))
    assert ("preempts" in queues["low"], queues["high"]["preempts"]) == (False, True)
    assert config["preemption"] == {"mode": "requeue", "order": "priority"}
    assert make_config(**from_document(config)).preemption is not None


def test_lines_about_preemption():
    text = """
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PreemptExemptTime=00:10:00
SchedulerParameters=preempt_youngest_first
Licenses=matlab:4,ansys
NodeName=n1
PartitionName=low Nodes=n1 PriorityTier=1 PreemptMode=CANCEL GraceTime=120
PartitionName=mid Nodes=n1 PriorityTier=2 PreemptMode=OFF
PartitionName=high Nodes=n1 PriorityTier=3
"""
    found = read(text, {})
    assert found.config["preemption"] == {
        "mode": "suspend",
        "order": "youngest",
        "queues": {"low": {"mode": "cancel", "grace": 120, "exempt": 600}, "mid": {"mode": "off"}},
    }
    assert found.config["licenses"] == {"matlab": 4, "ansys": 1}
    assert texts(found, "left out") == []
    assert make_config(**from_document(found.config)).preemption.suspends


@pytest.mark.parametrize(
    "lines", ["PreemptMode=OFF", "PreemptMode=CANCEL\nPartitionName=other Nodes=n1 PriorityTier=1"]
)
def test_partitions_that_do_not_preempt(lines):
    tier = "PriorityTier=1" if "other" in lines else "PriorityTier=2"
    text = f"PreemptType=preempt/partition_prio\nNodeName=n1\nPartitionName=a Nodes=n1 {tier}\n{lines}\n"
    if "OFF" in lines:
        text += "PartitionName=b Nodes=n1 PriorityTier=3\n"
    assert "preemption" not in read(text, {}).config


# --- switches


def test_topology_block():
    files = {"topology.conf": "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n"}
    found = read("NodeName=n[1-4]\n", files)
    assert ss.feasible(cluster_of(found), ss.Jobspec.from_shape("block=2/node=2"))
    assert texts(found, "left out") == [
        "topology.conf:3: BlockSizes=2: the sizes in which blocks are allocated"
    ]


TREE = """
- topology: fabric
  cluster_default: false
  block: {block_sizes: [2], blocks: [{block: b1, nodes: "n[1-4]"}]}
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: s[1-2]
      - {switch: s1, nodes: "n[1-3]"}
      - {switch: s2, nodes: n4}
"""


def test_topology_yaml_has_precedence_over_topology_conf():
    found = read("NodeName=n[1-4]\n", {"topology.yaml": TREE, "topology.conf": "SwitchName=x Nodes=n1\n"})
    cluster = cluster_of(found)
    assert ss.feasible(cluster, ss.Jobspec.from_shape("switch-level-1/node=4"))
    assert not ss.feasible(cluster, ss.Jobspec.from_shape("switch/node=4"))
    assert texts(found, "left out") == ["topology.yaml: the topologies fabric: the network is that of tree"]
    blocks = read("NodeName=n[1-4]\n", {"topology.yaml": TREE.replace("true", "false")})
    assert ss.feasible(cluster_of(blocks), ss.Jobspec.from_shape("block/node=4"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [", "topology.yaml:2:1: not YAML"),
        ("tree: {}", "topology.yaml: found an object (expected a list of topologies)"),
        (
            "- {tree: {switches: [3]}}",
            "topology.yaml: [0].tree.switches[0]: found 3 (expected an object with",
        ),
        (
            "- {tree: {switches: [{switch: a, node: n1}]}}",
            "topology.yaml: [0].tree.switches[0]: unknown key 'node'",
        ),
    ],
)
def test_faults_of_topology_yaml(text, fault):
    found = read("NodeName=n[1-4]\n", {"topology.yaml": text})
    assert texts(found, "fault")[0].startswith(fault)
    cluster_of(found)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("SwitchName=s Nodes=n[1-9]", "topology.conf:1: switch s: there is no node n5"),
        ("SwitchName=s Nodes=n1 Switches=t", "topology.conf:1: switch s: there is no switch t"),
        (
            "SwitchName=s Switches=t\nSwitchName=t Switches=s",
            "the switches s > t > s are a cycle: no network",
        ),
        ("SwitchName=s Nodes=n1\nSwitchName=s Nodes=n2", "topology.conf:2: the switch 's' occurs twice"),
        ("SwitchName=s Nodes=n1\nSwitchName=t Nodes=n1", "the node 'n1' is on the switches s and t"),
        ("Switch=s", "topology.conf:1: unknown key 'switch' (expected SwitchName or BlockName)"),
    ],
)
def test_faults_of_a_topology_are_notes_and_leave_a_sound_graph(lines, fault):
    found = read("NodeName=n[1-4]\n", {"topology.conf": lines})
    assert fault in "\n".join(texts(found, "fault"))
    assert len(cluster_of(found).index.targets) == 4


# --- faults

GOOD = "NodeName=n[1-2] CPUs=4 RealMemory=1000\nPartitionName=p Nodes=n[1-2]\n"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("NodeName=n2 CPUs=8", "slurm.conf:3: the node 'n2' occurs twice; that of slurm.conf:1 counts"),
        ("NodeName=m[9-1] CPUs=8", "slurm.conf:3: nodename: the range '9-1' descends"),
        ("NodeName=m[1-", "slurm.conf:3: nodename: '[' is never closed"),
        ("NodeName=ALL CPUs=8", "slurm.conf:3: NodeName=ALL: the name is reserved"),
        ("NodeName=m1 CPUs=lots", "slurm.conf:3: cpus: 'lots' is not valid (expected a whole number from 1"),
        ("NodeName=m1 RealMemory=64G", "slurm.conf:3: realmemory: '64G' is not valid"),
        ("NodeName=m1 RealMemroy=64", "slurm.conf:3: unknown key 'realmemroy'; did you mean RealMemory?"),
        ("NodeName=m1 Gres=gpu:a:b:4", "slurm.conf:3: gres: 'gpu:a:b:4' is not a generic resource"),
        ("PartitionName=q Nodes=m[1-3],n1", "slurm.conf:3: partition q: there is no node m[1-3]"),
        ("PartitionName=q Nodes=n1 MaxTime=soon", "slurm.conf:3: maxtime: 'soon' is not a time"),
        ("PartitionName=q Nodes=n1 MaxNodes=x", "slurm.conf:3: maxnodes: 'x' is not valid"),
        (
            "PartitionName=q Nodes=n1 Default=maybe",
            "slurm.conf:3: default: 'maybe' is not valid (expected YES",
        ),
        ("PartitionName=p Nodes=n1", "slurm.conf:3: the partition 'p' occurs twice"),
        (
            "SchedulerTyp=sched/backfill",
            "slurm.conf:3: unknown key 'schedulertyp'; did you mean SchedulerType?",
        ),
        ("Include loop.conf", "loop.conf:1: Include loop.conf: the file includes itself"),
        ("PartitionName=q Nodes=n1 Exclusive=ALL", "slurm.conf:3: partition q: Exclusive=all"),
        ("Include gone.conf", "slurm.conf:3: Include gone.conf: it cannot be opened"),
        ("Include conf.d/*.conf", "slurm.conf:3: Include conf.d/*.conf: Slurm does not read patterns"),
        ("these are only words", "slurm.conf:3: 'these' is not KEY=VALUE"),
        ("DownNodes=m1 State=DOWN", "slurm.conf:3: there is no node 'm1'"),
        ("SchedulerParameters=bf_max_job_test=x", "slurm.conf:3: bf_max_job_test: 'x' is not valid"),
    ],
)
def test_a_line_that_cannot_be_understood_is_a_note_and_the_rest_is_read(line, fault):
    files = {"loop.conf": "Include loop.conf\n"}
    found = read(f"{GOOD}{line}\n", files)
    assert any(text.startswith(fault) for text in texts(found, "fault")), found.notes
    assert {"n1", "n2"} <= {host for group in found.recipe.groups for host in group.hosts}
    assert found.config["queues"]["p"] == {"requires": ["p"]}
    cluster_of(found)
    make_config(**from_document(found.config))
    with pytest.raises(FormatError) as error:
        read(f"{GOOD}{line}\n", files, strict=True)
    assert str(error.value).startswith(fault)


def test_an_include_of_another_place_is_the_file_of_its_name_here():
    found = read(f"Include /etc/slurm/nodes.conf\nInclude /etc/slurm/gone.conf\n{GOOD}")
    assert len(found.recipe.groups) == 4
    assert "slurm.conf:1: Include /etc/slurm/nodes.conf: the file nodes.conf here was read" in texts(
        found, "assumed"
    )
    assert texts(found, "fault")[0].startswith(
        "slurm.conf:2: Include /etc/slurm/gone.conf: it cannot be opened"
    )


def test_a_file_that_includes_the_first_one_is_a_loop():
    files = {"more.conf": "Include slurm.conf\nNodeName=m1\n", "slurm.conf": "Include more.conf\n"}
    found = read(f"Include more.conf\n{GOOD}", files)
    assert texts(found, "fault") == [
        "more.conf:1: Include slurm.conf: the file includes itself (expected no cycle)"
    ]


def test_places_in_other_files_have_the_folder_of_the_first_one():
    files = {"more/n.conf": "NodeName=m1 Colour=1\n", "gres.conf": "Name=gpu Colour=1\n"}
    files["topology.conf"] = "SwitchName=s Nodes=n[1-2] Colour=1\n"
    text = f"Include more/n.conf\nTopologyPlugin=topology/tree\n{GOOD}"
    found = read_slurm_conf(text, "old/slurm.conf", open_file=files.__getitem__)
    places = [note.where for note in found.notes if "unknown key" in note.text]
    assert sorted(places) == ["old/gres.conf:1", "old/more/n.conf:1", "old/topology.conf:1"]


def test_the_name_of_an_included_file_may_have_that_of_the_cluster():
    found = read(f"ClusterName=Elm\nInclude %c.conf\n{GOOD}", {"elm.conf": "NodeName=m1\n"})
    assert not texts(found, "fault")
    assert {"m1", "n1", "n2"} == {host for group in found.recipe.groups for host in group.hosts}


def test_a_value_goes_on_after_a_backslash():
    """As in Slurm, the next line follows without a space."""
    text = "SchedulerParameters=bf_window=2880,\\\nbf_max_job_test=50 # both\nNodeName=n[1-2]\\\n CPUs=4\n"
    found = read(text, {})
    assert found.config["policy-options"] == {"slurm": {"window": 172_800, "max-job-test": 50}}
    assert found.recipe.groups[0].cores == 4
    assert not texts(found, "fault")


def test_blanks_in_the_nodes_of_a_partition_are_commas():
    found = read('NodeName=n[1-3]\nPartitionName=p Nodes="n1 n[2-3]"\n', {})
    assert not texts(found, "fault")
    assert found.recipe.groups[0].properties == ("p",)


@pytest.mark.parametrize(
    ("keys", "whole", "left_out"),
    [
        ("Exclusive=NODE", True, ""),
        ("Exclusive=TOPO", True, "Exclusive=TOPO (switches are given to one job at a time)"),
        ("ExclusiveTopo=YES", True, "ExclusiveTopo=YES (switches are given to one job at a time)"),
        ("Exclusive=USER", False, "Exclusive=USER (nodes are given to one user at a time)"),
        ("Exclusive=NO OverSubscribe=EXCLUSIVE", False, ""),
    ],
)
def test_partitions_with_nodes_of_their_own(keys, whole, left_out):
    found = read(f"NodeName=n[1-2]\nPartitionName=p Nodes=n[1-2] {keys}\n", {})
    assert found.config.get("match-policy") == ("firstnodex" if whole else None)
    notes = [note.text for note in found.notes if "xclusive" in note.text and note.kind == "left out"]
    assert notes == ([f"partition p: {left_out}"] if left_out else [])


def test_without_other_files_an_include_is_a_note():
    found = read_slurm_conf(f"Include nodes.conf\n{GOOD}", "slurm.conf")
    assert texts(found, "left out") == ["slurm.conf:1: the included file nodes.conf was not read"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "hello world\n", "jobid|user|submit\n1|a|2\n"])
def test_a_text_that_is_not_a_slurm_conf_is_an_error(text):
    with pytest.raises(FormatError, match=r"^slurm\.conf: this is not a slurm\.conf"):
        read(text, {})


def test_too_many_nodes_are_refused_before_they_are_made(monkeypatch):
    found = read(f"NodeName=n[1-999999999999]\n{GOOD}", {})
    assert "at most 1000000" in texts(found, "fault")[0]
    product = read(f"NodeName=a[0-9999]b[0-9999]\n{GOOD}", {})
    assert "names more nodes" in texts(product, "fault")[0]
    monkeypatch.setattr("simsched.formats.machines.slurm.slurm_records.MAX_NODES", 10)
    with pytest.raises(LimitError, match="too many nodes"):
        read("NodeName=a[1-6]\nNodeName=b[1-6]\n", {})


def test_includes_are_bounded():
    files = {f"{i}.conf": f"include {i + 1}.conf\n" for i in range(20)}
    assert "too many includes" in texts(read(f"include 0.conf\n{GOOD}", files), "fault")[0]
    wide = {"0.conf": "Licenses=a\n"}
    assert "too many includes" in texts(read("include 0.conf\n" * 300 + GOOD, wide), "fault")[0]


def test_many_faults_are_not_as_many_notes():
    found = read("nothing here\n" * 1000 + GOOD, {})
    assert len(found.notes) < 60
    assert texts(found, "fault")[-1].endswith("(and 1,950 more lines)")


_WORDS = """
    NodeName= PartitionName= Nodes= n[1-3] n[3-1] DEFAULT ALL Gres= gpu:a:2 CPUs= 8 Sockets=2 CoresPerSocket=
    ThreadsPerCore=2 RealMemory= State= DRAIN MaxTime= 1-0 \\ # " , [ ] ( include SwitchName= Switches= é \x00
    CoreSpecCount=7 NodeSet= DownNodes= Weight= Default=YES Licenses= BlockName= Name=gpu Features= a
"""
WORDS = st.sampled_from([*_WORDS.split(), " ", " ", " ", "\n", "\n"])


@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map("".join)), st.booleans())
def test_any_text_is_a_description_or_an_error_of_ours(text, strict):
    files = {"a": text, "gres.conf": text, "topology.conf" if strict else "topology.yaml": text}
    try:
        found = read(text, files, strict=strict)
        make_config(**from_document(found.config))
        if found.recipe.groups:
            cluster_of(found)
    except SimschedError:
        pass


def test_all_node_lists_together_are_bounded(monkeypatch):
    monkeypatch.setattr("simsched.formats.machines.slurm.notation.MAX_NAMES", 100)
    lines = "".join(f"PartitionName=p{i} Nodes=ALL\n" for i in range(10))
    with pytest.raises(LimitError, match="the node lists have too many names"):
        read(f"NodeName=n[1-20]\n{lines}", {})


def test_a_line_may_use_the_other_name_of_a_default():
    text = "NodeName=DEFAULT Features=a\nNodeName=n1 Feature=b\nNodeName=n2\n"
    assert [group.properties for group in read(text, {}).recipe.groups] == [("b",), ("a",)]


def test_unknown_keys_are_bounded():
    found = read("".join(f"Key{i}=1\n" for i in range(500)) + GOOD, {})
    assert len(texts(found, "fault")) == 50


@pytest.mark.parametrize("odd", ["²", "9" * 5000])
@pytest.mark.parametrize("key", ["MinNodes", "DefMemPerNode", "MaxNodes"])
def test_a_number_of_a_partition_that_cannot_be_read(key, odd):
    text = f"NodeName=n[1-4] CPUs=4 RealMemory=100\nPartitionName=p Nodes=n[1-4] {key}={odd}\n"
    assert len(described(recognition.SLURM_CONF, text, "f").recipe.groups[0].hosts) == 4
