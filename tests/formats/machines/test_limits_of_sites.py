"""Limits in the files of sites: sacctmgr as tables, as a dump and as JSON, flux-accounting, PBS."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.formats.machines.read import describe_text

QOS = """\
Name|Priority|Flags|UsageFactor|GrpTRES|GrpTRESMins|GrpTRESRunMins|GrpJobs|GrpSubmit|GrpWall|MaxTRES|MaxTRESMins\
|MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MaxTRESPA|MaxJobsPA|MaxSubmitPA
normal|0||1.000000||||||||||cpu=64,gres/gpu=4,mem=200G|10|100|||
debug|100|DenyOnLimit|1.000000|||||||node=2|cpu=90|00:30:00||1|2|||
long|0||0.5|cpu=32|cpu=6000|cpu=60|5|9||||7-00:00:00||||cpu=16|3|4
"""
ASSOC = """\
Cluster|Account|User|Partition|GrpJobs|GrpTRES|GrpSubmit|GrpTRESMins|MaxJobs|MaxTRES|MaxSubmit|MaxWall
demo|root||||cpu=120||||||
demo|physics|||||||4|||
demo|physics|alice|||||cpu=600|8||20|1-00:00:00
demo|physics|bob|debug|||||1|||
"""
DUMP = """\
# a comment
Cluster - 'demo':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'science':Description='all of it':Fairshare=10:GrpTRES=cpu=100
Parent - 'science'
Account - 'bio':Description='b':Fairshare=2:MaxJobs=3
Parent - 'bio'
User - 'bob':DefaultAccount='bio':MaxSubmitJobs=7:MaxWallDurationPerJob=1-12:00:00
"""


def limits_of(text, **options):
    found = describe_text(text, "file", **options)
    assert found is not None
    return found.config.get("limits", [])


def test_the_limits_of_qos():
    assert limits_of(QOS) == [
        {"qos": "normal", "each": "user", "running-jobs": 10, "over": "hold", "cores": 64, "gpus": 4,
         "memory": "200 GiB"},
        {"qos": "normal", "each": "user", "submitted-jobs": 100},
        {"qos": "debug", "each": "user", "running-jobs": 1, "submitted-jobs": 2},
        {"qos": "debug", "each": "job", "nodes": 2, "core-hours": 1.5, "duration": "30m"},
        {"qos": "long", "running-jobs": 5, "over": "hold", "cores": 32, "core-hours": 100,
         "running-core-hours": 1},
        {"qos": "long", "submitted-jobs": 9},
        {"qos": "long", "each": "account", "running-jobs": 3, "over": "hold", "cores": 16},
        {"qos": "long", "each": "account", "submitted-jobs": 4},
        {"qos": "long", "each": "job", "duration": "7d", "over": "hold"},
    ]  # fmt: skip


def test_the_limits_of_associations():
    found = limits_of(ASSOC)
    alice = {"user": "alice", "account": "physics"}
    assert {"account": "physics", "level": 5, "each": "user", "running-jobs": 4, "over": "hold"} in found
    assert {**alice, "core-hours": 10, "over": "hold"} in found  # a Grp limit, which always counts
    assert {**alice, "level": 4, "running-jobs": 8, "over": "hold"} in found
    assert {**alice, "level": 4, "submitted-jobs": 20} in found
    assert {"cores": 120, "over": "hold"} in found
    bob = {"user": "bob", "account": "physics", "queue": "debug", "level": 4}
    assert {**bob, "running-jobs": 1, "over": "hold"} in found


def test_a_dump_has_the_accounts_above_others():
    found = limits_of(DUMP)
    assert {"account": ["science", "bio"], "cores": 100, "over": "hold"} in found
    assert {"account": "bio", "level": 5, "each": "user", "running-jobs": 3, "over": "hold"} in found
    bob = {"user": "bob", "account": "bio", "level": 4}
    assert {**bob, "submitted-jobs": 7} in found
    assert any({**bob, "each": "job", "duration": time, "over": "hold"} in found for time in ("1.5d", "36h"))


def test_the_coordinator_of_an_account_in_a_dump_is_no_limit():
    text = DUMP + "User - 'bea':Coordinator='bio':DefaultAccount='bio'\n"
    assert not [note.text for note in describe_text(text, "file").notes if "coordinator" in note.text]


ROWS = [
    ("root", "", "", ""),
    (" phys", "", "cpu=16", ""),
    ("  astro", "", "", "2"),
    ("   astro", "ann", "", ""),
    (" bio", "", "cpu=4", ""),
]
PARENTS = {"phys": "root", "astro": "phys", "bio": "root"}


@pytest.mark.parametrize("mark", "|;\t^~")
@pytest.mark.parametrize("form", ["tree", "Par Name", "flat"])
def test_a_table_has_the_accounts_above_others_too(form, mark):
    """By the blanks of `tree`, or in a column; with any delimiter that TRES do not have."""
    head = ["Account", "User", "GrpTRES", "MaxJobs", *(["Par Name"] if form == "Par Name" else [])]
    lines = [head]
    for account, *rest in ROWS:
        bare = account.strip()
        above = [] if form != "Par Name" else [PARENTS.get(bare, "") if not rest[0] else ""]
        lines.append([account if form == "tree" else bare, *rest, *above])
    found = limits_of("".join(mark.join(cells) + "\n" for cells in lines))
    science = ["phys", "astro"] if form != "flat" else "phys"
    assert {"account": science, "cores": 16, "over": "hold"} in found
    assert {"account": "bio", "cores": 4, "over": "hold"} in found


def test_the_json_of_qos_says_the_same_as_its_table():
    number = lambda value: {"set": True, "infinite": False, "number": value}  # noqa: E731
    item = {
        "name": "debug",
        "flags": ["DENY_LIMIT"],
        "priority": number(0),
        "limits": {
            "max": {
                "wall_clock": {"per": {"job": number(30), "qos": {"set": False, "number": 0}}},
                "jobs": {"active_jobs": {"per": {"user": number(1)}}, "per": {"user": number(2)}},
                "tres": {"per": {"job": [{"type": "node", "name": "", "count": 2}],
                                 "user": [{"type": "gres", "name": "gpu", "count": 4}]}},
            }
        },
    }  # fmt: skip
    assert limits_of(json.dumps({"QOS": [item]})) == [
        {"qos": "debug", "each": "user", "running-jobs": 1, "submitted-jobs": 2, "gpus": 4},
        {"qos": "debug", "each": "job", "nodes": 2, "duration": "30m"},
    ]


def test_the_limits_of_flux_accounting():
    users = (
        "username,userid,bank,shares,max_running_jobs,max_active_jobs,max_nodes,max_cores\n"
        "alice,1,lab,1,5,7,2147483647,64\n"
    )
    scope = {"user": "alice", "account": "lab"}
    assert limits_of(users) == [
        {**scope, "running-jobs": 5, "over": "hold", "cores": 64},
        {**scope, "submitted-jobs": 7},
    ]
    queues = (
        "queue,min_nodes_per_job,max_nodes_per_job,max_time_per_job,priority,max_running_jobs\nb,1,4,60,0,3\n"
    )
    assert limits_of(queues) == [
        {"queue": "b", "each": ["user", "account"], "running-jobs": 3, "over": "hold"},
        {"queue": "b", "each": "job", "nodes": 4, "duration": "60m"},
    ]


def test_the_limits_of_pbs():
    text = """\
create queue workq
set queue workq queue_type = Execution
set queue workq enabled = True
set queue workq started = True
set queue workq max_run = [u:PBS_GENERIC=5]
set queue workq max_run += [u:alice=8]
set queue workq max_queued = [o:PBS_ALL=100]
set queue workq max_run_res.ncpus = [u:PBS_GENERIC=64]
set server max_run = [g:PBS_GENERIC=3]
set server max_user_run = 9
"""
    assert limits_of(text) == [
        {"each": "user", "running-jobs": 9, "over": "hold"},
        {"queue": "workq", "each": "user", "running-jobs": 5, "over": "hold", "cores": 64},
        {"queue": "workq", "user": "alice", "running-jobs": 8, "over": "hold"},
        {"queue": "workq", "submitted-jobs": 100},
    ]


@pytest.mark.parametrize(
    "text", [QOS.replace("cpu=6000", "6000"), ASSOC.replace("|4|||", "|four|||"), DUMP + "x\n"]
)
def test_a_line_that_is_not_understood_is_a_note_or_an_error(text):
    assert any(note.kind == "fault" for note in describe_text(text, "file").notes)
    with pytest.raises(ss.SimschedError, match="file:"):
        describe_text(text, "file", strict=True)


def test_an_imported_site_runs_with_its_limits(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=demo\nAccountingStorageEnforce=limits\n"
        "NodeName=n[1-4] CPUs=8 ThreadsPerCore=2 CoresPerSocket=4 RealMemory=1000\n"
        "PartitionName=batch Nodes=ALL Default=YES\n"
    )
    (tmp_path / "qos.txt").write_text(QOS)
    site = ss.import_site(tmp_path)
    cores = [
        table["cores"] for table in site.config["limits"] if table.get("each") == "user" and "cores" in table
    ]
    assert cores == [32]  # 64 hardware threads
    spec = ss.Jobspec.from_shape("slot=1/node", duration=100)
    jobs = [
        ss.Job(id=at, submit=0, jobspec=spec, runtime=10, duration=100, user="u", qos="debug")
        for at in range(3)
    ]
    config = {**site.config}
    run = ss.simulate(
        site.cluster, ss.Workload(jobs=tuple(jobs)), queues=config["queues"], limits=config["limits"]
    )
    assert list(run.jobs["result"]) == ["COMPLETED", "COMPLETED", "FAILED"]
    assert list(run.jobs["start"][:2]) == [0, 10]


def test_logs_of_slurm_have_the_qos_of_jobs(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text(
        "JobIDRaw|Submit|Start|ElapsedRaw|ReqCPUS|User|QOS\n"
        "1|2024-01-01T00:00:00|2024-01-01T00:00:01|10|1|u|high\n"
    )
    assert [job.qos for job in ss.load_workload(log).jobs] == ["high"]
