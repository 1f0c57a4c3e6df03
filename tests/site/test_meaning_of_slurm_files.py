"""What Slurm's files mean once they are joined: preemption, priorities, limits, memory."""

from __future__ import annotations

import json
import warnings

import pytest

import simsched as ss

SETTINGS = """\
ClusterName=dale
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightPartition=1000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
"""
NODES = "NodeName=d[1-2] Sockets=1 CoresPerSocket=8 RealMemory=64000\n"
PARTITIONS = """\
PartitionName=DEFAULT MaxTime=4:00:00 Nodes=ALL
PartitionName=day Default=YES PriorityJobFactor=2 PriorityTier=1
PartitionName=now PriorityJobFactor=9 PriorityTier=3
"""
SHOWN = """\
PartitionName=day
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A MaxTime=04:00:00 Nodes=d[1-2]
   PriorityJobFactor=2 PriorityTier=1 PreemptMode=REQUEUE
   State=UP TotalCPUs=16 TotalNodes=2

PartitionName=now
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A MaxTime=04:00:00 Nodes=d[1-2]
   PriorityJobFactor=9 PriorityTier=3 PreemptMode=REQUEUE
   State=UP TotalCPUs=16 TotalNodes=2
"""
SHOWN_NODES = """\
NodeName=d[1-2] CoresPerSocket=8
   CPUAlloc=0 CPUTot=8 Sockets=1 ThreadsPerCore=1 RealMemory=64000 State=IDLE
"""
ROWS = [("day", 2, 1, ["DEFAULT"]), ("now", 9, 3, [])]
JSON = json.dumps(
    {
        "partitions": [
            {"name": name, "nodes": {"configured": "d[1-2]"}, "flags": flags, "maximums": {"time": 240},
             "priority": {"job_factor": factor, "tier": tier}}
            for name, factor, tier, flags in ROWS
        ]
    }
)  # fmt: skip


def shown_config(text):
    return "Configuration data as of 2026-01-01T00:00:00\n" + text.replace("=", " = ")


def imported(folder, *texts):
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.txt")
        paths[-1].write_text(text)
    return ss.import_site(*paths)


def notes(site, kind):
    return [note.text for note in site.notes if note.kind == kind]


@pytest.mark.parametrize(
    "texts",
    [
        (SETTINGS + NODES + PARTITIONS,),
        (SETTINGS + NODES, SHOWN),
        (SHOWN, SETTINGS + NODES),
        (SETTINGS + NODES, PARTITIONS),
        (SETTINGS, NODES, PARTITIONS),
        (SETTINGS, SHOWN_NODES, JSON),
        (shown_config(SETTINGS), SHOWN, SHOWN_NODES),
        (SHOWN_NODES, JSON, shown_config(SETTINGS)),
    ],
)
def test_files_mean_the_same_in_one_file_and_in_several(tmp_path, texts):
    config = imported(tmp_path, *texts).config
    assert config["priority"]["factors"]["queue"]["values"] == {"day": 2, "now": 9}
    assert config["preemption"]["mode"] == "requeue"
    assert config["queues"]["now"]["preempts"] is True
    assert "preempts" not in config["queues"]["day"]
    assert config["queues"]["now"]["policy"]["limits"]["duration"] == "4h"
    assert config["policy"]["jobspec"]["defaults"]["system"]["queue"] == "day"


def test_a_default_line_applies_to_the_files_after_it(tmp_path):
    first = (
        SETTINGS
        + "NodeName=DEFAULT Sockets=1 CoresPerSocket=8 Gres=gpu:2\nPartitionName=DEFAULT MaxTime=60\n"
    )
    site = imported(tmp_path, first, "NodeName=d[1-2] Gres=gpu:1\nNodeName=d3\nPartitionName=day Nodes=ALL\n")
    assert site.cluster.index.totals["core"] == 24
    assert site.cluster.index.totals["gpu"] == 4
    assert site.config["queues"]["day"]["policy"]["limits"]["duration"] == "1h"


def test_values_in_which_two_files_differ_are_notes(tmp_path):
    second = "SchedulerType=sched/builtin\nPartitionName=day MaxTime=2:00:00\n"
    site = imported(tmp_path, SETTINGS + NODES + PARTITIONS, second)
    assert site.config["queues"]["day"]["policy"]["limits"]["duration"] == "4h"
    found = notes(site, "assumed")
    assert any(
        text.startswith("schedulertype=sched/builtin is not used: sched/backfill of") for text in found
    )
    assert any(text.startswith("partition day: maxtime=2:00:00 is not used: 4:00:00 of") for text in found)


# --- memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("select", "counted"),
    [
        ("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core", False),
        ("SelectType=select/cons_res\nSelectTypeParameters=CR_CPU,CR_LLN", False),
        ("SelectType=select/cons_tres\nSelectTypeParameters=CR_Socket", False),
        ("SelectType=select/linear", False),
        ("SelectType=select/linear\nSelectTypeParameters=CR_Memory", True),
        ("SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory,CR_ONE_TASK_PER_CORE", True),
        ("SelectType=select/cons_tres", True),
        ("", True),
    ],
)
def test_memory_is_in_the_machine_if_slurm_counts_it(tmp_path, select, counted):
    site = imported(tmp_path, f"ClusterName=c\n{select}\nNodeName=n1 CPUs=8 RealMemory=64000\n")
    assert ("memory" in site.cluster.index.totals) is counted
    said = [text for text in notes(site, "assumed") if text.startswith("memory is not in the machine")]
    assert len(said) == (0 if counted else 1)


@pytest.mark.parametrize("select", ["", "SelectType=select/cons_tres", "SelectType=select/linear"])
def test_a_select_type_that_is_not_stated_is_assumed(tmp_path, select):
    site = imported(tmp_path, f"ClusterName=c\n{select}\nNodeName=n1 CPUs=8\n")
    said = [text for text in notes(site, "assumed") if text.startswith("no SelectType")]
    assert len(said) == (0 if select else 1)


# --- limits -----------------------------------------------------------------------------------

CONF = """\
ClusterName=c
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageEnforce={}
NodeName=n[1-4] CPUs=16
PartitionName=p Nodes=ALL Default=YES MaxTime=7-0
PartitionName=q Nodes=ALL MaxTime=7-0 QOS=part
"""
ASSOC = """\
Cluster|Account|User|Partition|ParentName|GrpTRES|MaxJobs|MaxTRES|MaxWall
c|root||||||cpu=2|01:00:00
c|bio|||root||1|cpu=8|06:00:00
c|sub|||bio|||cpu=16|
c|bio|tom|||cpu=40|10|cpu=32|12:00:00
c|bio|tom|q|||||03:00:00
c|sub|eve||||||
"""
QOS = """\
Name|Flags|MaxJobsPU|MaxWall|MaxTRES
wide|||1-00:00:00|
over|OverPartQOS||2-00:00:00|
part||2|00:30:00|cpu=4
"""


def starts(site, *jobs):
    """Return the starts of jobs (user, account, queue, qos, cores, hours) that all come at 0; None: held."""
    rows = []
    for at, (user, bank, queue, qos, cores, hours) in enumerate(jobs):
        spec = ss.Jobspec.from_shape(f"slot={cores}/core", duration=hours * 3600)
        names = {"user": user, "bank": bank, "queue": queue, "qos": qos}
        rows.append(ss.Job(id=at, submit=0, jobspec=spec, runtime=60, duration=hours * 3600, **names))
    config = {key: site.config[key] for key in ("queues", "limits") if key in site.config}
    with warnings.catch_warnings(action="ignore"):  # limits of QOS that no job has
        run = ss.simulate(site.cluster, ss.Workload(jobs=tuple(rows)), **config)
    return [None if start != start else start for start in run.jobs["start"].astype(float)]


@pytest.fixture
def site(tmp_path):
    return imported(tmp_path, CONF.format("associations,limits"), ASSOC, QOS)


@pytest.mark.parametrize(
    ("job", "runs"),
    [
        (("tom", "bio", "p", None, 32, 12), True),  # tom's own limits go before those of bio
        (("tom", "bio", "p", None, 33, 1), False),
        (("tom", "bio", "p", None, 1, 13), False),
        (("ann", "bio", "p", None, 8, 6), True),  # bio's limits are those of each of its users
        (("ann", "bio", "p", None, 9, 1), False),
        (("ann", "sub", "p", None, 16, 6), True),  # sub's MaxTRES, and the MaxWall of bio above it
        (("ann", "sub", "p", None, 16, 7), False),
        (("x", "other", "p", None, 2, 1), True),  # root
        (("x", "other", "p", None, 3, 1), False),
        (("tom", "bio", "p", "wide", 32, 24), True),  # the QOS goes before tom's MaxWall
        (("tom", "bio", "q", "wide", 4, 1), False),  # the QOS of the partition goes before the job's
        (("tom", "bio", "q", "wide", 4, 0.5), True),
        (("tom", "bio", "q", "over", 4, 48), True),  # unless the job's has OverPartQOS
        (("tom", "bio", "q", "over", 5, 48), False),  # of which MaxTRES is not defined
    ],
)
def test_the_first_limit_of_the_hierarchy_counts(site, job, runs):
    (start,) = starts(site, job)
    assert (start == 0) is runs


def test_grp_limits_count_beside_all_others(site):
    jobs = [("tom", "bio", "p", "wide", 20, 1)] * 3
    assert starts(site, *jobs) == [0, 0, 60]  # 40 cores at a time, and 10 jobs


def test_maxjobs_of_a_qos_goes_before_that_of_an_association(site):
    jobs = [("ann", "bio", queue, None, 1, 0.5) for queue in ("p", "p", "q", "q", "q")]
    assert starts(site, *jobs) == [0, 60, 0, 0, 60]


def test_the_association_of_a_partition_takes_the_place_of_the_users(tmp_path):
    rows = ASSOC.replace("c|bio|tom|||cpu=40|10", "c|bio|tom|||cpu=4|10")
    site = imported(tmp_path, CONF.replace(" QOS=part", "").format("safe"), rows)
    wide = ("tom", "bio", "q", None, 8, 3)  # neither cpu=4 nor cpu=32, but the cpu=8 of bio
    assert starts(site, wide, ("tom", "bio", "q", None, 9, 3), ("tom", "bio", "q", None, 8, 4)) == [
        0,
        None,
        None,
    ]
    assert starts(site, ("tom", "bio", "p", None, 5, 3)) == [None]


def test_feasible_refuses_only_jobs_that_no_user_may_run(site):
    spec = ss.Jobspec.from_shape("slot=4/core")
    assert ss.feasible(site.cluster, spec, config=site.config, queue="p", duration=12 * 3600)
    assert ss.feasible(site.cluster, spec, config=site.config, queue="q", duration=12 * 3600)  # OverPartQOS
    named = {"limits": [{"each": "user", "cores": 2}, {"user": "ann", "cores": 8}]}
    assert ss.feasible("tiny", spec, config=named)
    assert not ss.feasible("tiny", spec, config={"limits": named["limits"][:1]})


@pytest.mark.parametrize(
    ("enforce", "counts"),
    [("limits", True), ("safe", True), ("all", True), ("qos,limits", True), ("2", True),
     ("associations", False), ("qos", False), ("1", False), ("(null)", False), ("wckeys,nosteps", False)],
)  # fmt: skip
def test_limits_count_if_slurm_enforces_them(tmp_path, enforce, counts):
    site = imported(tmp_path, CONF.format(enforce), ASSOC, QOS)
    assert bool(site.config.get("limits")) is counts
    said = [text for text in notes(site, "left out") if "does not enforce limits" in text]
    assert len(said) == (0 if counts else 1)
    if said:
        assert "qos wide" in said[0]
        assert "user tom" in said[0]


def test_without_settings_all_limits_count(tmp_path):
    site = imported(tmp_path, SHOWN_NODES, SHOWN, QOS)
    assert site.config["limits"]
    assert any("no slurm.conf states AccountingStorageEnforce" in text for text in notes(site, "assumed"))


def test_an_audit_keeps_the_hierarchy(site, tmp_path):
    jobs = [
        ("tom", "bio", "p", None, 32, 12),
        ("ann", "bio", "p", None, 8, 6),
        ("ann", "bio", "p", None, 8, 6),
    ]
    rows = [
        f"- {{id: {at}, shape: slot={cores}/core, runtime: 60, duration: {hours}h, user: {user},"
        f" bank: {bank}, queue: {queue}}}\n"
        for at, (user, bank, queue, _, cores, hours) in enumerate(jobs)
    ]
    (tmp_path / "jobs.yaml").write_text("".join(rows))
    ss.save_site(site, tmp_path / "site")
    from simsched.cli import main

    run = str(tmp_path / "run")
    assert (
        main(["run", "--site", str(tmp_path / "site"), str(tmp_path / "jobs.yaml"), "--quiet", "-o", run])
        == 0
    )
    assert list(ss.load_run(run).jobs["start"]) == [0, 0, 60]
    assert main(["report", "--audit", run]) == 0


# --- what is read and not used ----------------------------------------------------------------

ODD_CONF = """\
ClusterName=c
ControlMachine=head
AccountingStorageEnforce=limits
SelectType=select/cons_tres
SelectTypeParameters=CR_Socket_Memory
PriorityType=priority/multifactor
PriorityWeightTRES=CPU=10,GRES/gpu=.03,Mem==5
KillWait=30
NodeName=DEFAULT CPUs=8 RealMemory=4000
NodeName=n1 TRESWeights=CPU=1
NodeName=n2 Sockets==2
PartitionName=a Nodes=n1 MinNodes=2 DefaultTime=2-0 MaxTime=1-0 DefMemPerNode=8000 Shared=FORCE:4
PartitionName=b Nodes=n2 TRESBillingWeights=CPU=1 PreemptMode=SUSPEND
"""
ODD_QOS = """\
Name|Flags|GrpWall|MinTRES|LimitFactor|MaxTRES|MaxWall|Colour
long|DenyOnLimit,NoReserve,Wobble|1-00:00:00|cpu=2|0.5|license/x=2,mem=1.5G|UNLIMITED|green
"""
ODD_DUMP = """\
Cluster - 'c':Fairshare=1:Frobnicate=3
Parent - 'root'
Account - 'bio':Fairshare=1:MaxTRESPerNode=cpu=4:MaxCPUs=6
"""
ODD_ASSOC = "Cluster|Account|User|MaxJobs\nc|bio||-1\nelsewhere|bio|tom|1\n"


@pytest.mark.parametrize(
    "said",
    [
        "3.txt:3: associations of clusters other than c: elsewhere (1)",
        "0.txt:8: KillWait=30 (",
        "0.txt: 1 setting that does not affect the schedule here: ControlMachine",
        "0.txt:5: SelectTypeParameters=CR_SOCKET_MEMORY: jobs have whole sockets",
        "0.txt:7: PriorityWeightTRES: 'Mem==5' is not a weight",
        "0.txt:10: TRESWeights=CPU=1 (",
        "0.txt:11: sockets: '=2' is not valid",
        "0.txt:12: partition a: MinNodes=2 of 1 nodes: no job can run",
        "0.txt:12: partition a: DefaultTime=2-0 is above MaxTime",
        "0.txt:12: partition a: DefMemPerNode=8000, which none of its nodes has",
        "0.txt:12: partition a: OverSubscribe=FORCE:4 (",
        "0.txt:13: partition b: TRESBillingWeights=CPU=1 (",
        "0.txt:13: partition b: PreemptMode=SUSPEND: without PreemptType",
        "1.txt:2: Flags=NoReserve of QOS long (",
        "1.txt:2: Flags=Wobble of QOS long: not known",
        "1.txt:2: GrpWall=1-00:00:00 (",
        "1.txt:2: MinTRES=cpu=2 (",
        "1.txt:2: LimitFactor=0.5 of QOS long (",
        "1.txt:2: colour=green: not known",
        "1.txt:2: the limit license/x=2",
        "2.txt:1: frobnicate=3: not known",
        "2.txt:3: MaxTRESPerNode=cpu=4 (",
    ],
)
def test_what_is_read_and_not_used_leaves_a_note(tmp_path, said):
    site = imported(tmp_path, ODD_CONF, ODD_QOS, ODD_DUMP, ODD_ASSOC)
    found = [f"{note.where.rpartition('/')[2]}: {note.text}" for note in site.notes]
    assert any(text.startswith(said) for text in found), "\n".join(found)
    assert {"account": "bio", "each": "job", "cores": 6, "over": "hold", "level": 5} in site.config["limits"]
    assert any(table.get("memory") == "1536 MiB" for table in site.config["limits"])
    assert site.config["priority"]["factors"]["gpus"]["weight"] == 0.03


# --- associations of several clusters, and of partitions -----------------------------------------

FAIR = """\
ClusterName=OWN
AccountingStorageEnforce=limits
PriorityType=priority/multifactor
PriorityWeightFairshare=1
NodeName=n1 CPUs=8
PartitionName=p Nodes=n1
"""
TABLE = """\
Cluster|Account|User|Partition|Share|MaxJobs
far|bio|||9|9
far|bio|ann||9|9
own|bio|||2|3
own|bio|ann||4|
own|bio|ann|p|8|2
"""
DOCUMENT = json.dumps(
    {
        "associations": [
            {"cluster": cluster, "account": account, "user": user, "partition": partition,
             "shares_raw": int(share),
             "max": {"jobs": {"active": {"set": bool(most), "number": int(most or 0)}}}}
            for cluster, account, user, partition, share, most in (
                line.split("|") for line in TABLE.splitlines()[1:]
            )
        ]
    }
)  # fmt: skip
FAR = "those of the cluster far count"
DUMPED = "Cluster - '{}':Fairshare=1\nParent - 'root'\nAccount - 'bio':Fairshare={}:MaxJobs={}\n"


@pytest.mark.parametrize(
    ("conf", "text", "shares", "most", "said"),
    [
        (FAIR, TABLE, [2, 4], {2, 3}, "associations of clusters other than own: far (2)"),
        (FAIR, DOCUMENT, [2, 4], {2, 3}, "shares of associations with a partition: ann (1)"),
        (FAIR, DUMPED.format("own", 5, 7), [5], {7}, None),
        (FAIR, DUMPED.format("far", 5, 7), [5], {7}, f"no association is of own: {FAR}"),
        (FAIR.partition("\n")[2], TABLE, [9, 9], {9}, f"no file states ClusterName: {FAR}"),
    ],
)  # fmt: skip
def test_associations_of_one_cluster_count(tmp_path, conf, text, shares, most, said):
    site = imported(tmp_path, conf, text)
    assert [row["shares"] for row in site.config["priority"]["accounts"]] == shares
    assert {table["running-jobs"] for table in site.config["limits"]} == most
    found = [note.text for note in site.notes if " of the cluster " in note.text or note.kind == "left out"]
    assert said in found or said is None
