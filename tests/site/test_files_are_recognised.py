"""What a file of a site is, its content as a whole decides: documents, parts of a text, folders."""

from __future__ import annotations

import gzip
import json
import time
from itertools import permutations

import pytest

import simsched as ss
from simsched.cli import main
from simsched.errors import FormatError

CONF = "ClusterName=quay\nNodeName=n[1-4] CPUs=8 RealMemory=16000\nPartitionName=p Nodes=ALL Default=YES\n"
CONFIG = """\
Configuration data as of 2026-03-01T09:00:00
AccountingStorageEnforce = limits
BOOT_TIME               = 2026-02-01T08:00:00
ClusterName             = quay
KillWait                = 30 sec
PreemptType             = (null)
SchedulerParameters     = bf_interval=60
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SlurmctldHost[0]        = ctl

Cgroup Support Configuration:
ConstrainCores          = yes

Slurmctld(primary) at ctl is UP
"""
NODES = """\
NodeName=c1 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUEfctv=32 CPUTot=32 CPULoad=0.1
   RealMemory=128000 AllocMem=0 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=1 Partitions=batch

NodeName=c2 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUEfctv=32 CPUTot=32 CPULoad=0.1
   RealMemory=128000 AllocMem=0 Sockets=2 Boards=1
   State=DOWN+DRAIN ThreadsPerCore=1 Partitions=batch

"""
PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL Default=YES DefaultTime=01:00:00
   DefMemPerNode=UNLIMITED MaxTime=08:00:00
   Nodes=c[1-2]
   State=UP TotalCPUs=64 TotalNodes=2 SelectTypeParameters=NONE

"""
RESERVATIONS = "No reservations in the system\n"
JOBS = """\
JobId=7 JobName=lr=0.1 x
   UserId=ann(1001) GroupId=users(100) JobState=RUNNING Reason=None Dependency=(null)
   RunTime=00:10:00 TimeLimit=01:00:00
   SubmitTime=2026-03-02T08:00:00 EligibleTime=2026-03-02T08:00:00
   StartTime=2026-03-02T08:05:00 EndTime=2026-03-02T09:05:00
   Partition=batch NodeList=c1 NumNodes=1 NumCPUs=32
   ReqTRES=cpu=32,node=1
   Command=/home/ann/run.sh --TimeLimit=9

JobId=8 JobName=next
   UserId=bob(1002) GroupId=users(100) JobState=PENDING Reason=Resources Dependency=(null)
   RunTime=00:00:00 TimeLimit=1-00:00:00
   SubmitTime=2026-03-02T08:10:00 EligibleTime=2026-03-02T08:10:00 StartTime=Unknown EndTime=Unknown
   Partition=batch NodeList= NumNodes=1 NumCPUs=32
   ReqTRES=cpu=32,node=1

JobId=6 JobName=done
   UserId=bob(1002) GroupId=users(100) JobState=COMPLETED Reason=None Dependency=(null)
   RunTime=00:05:00 TimeLimit=UNLIMITED
   SubmitTime=2026-03-02T07:10:00 EligibleTime=2026-03-02T07:10:00
   StartTime=2026-03-02T07:20:00 EndTime=2026-03-02T07:25:00
   Partition=batch NodeList=c1 NumNodes=1 NumCPUs=4
   ReqTRES=cpu=4,node=1

"""
QOS = (
    "Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|MaxTRESPU|MaxJobsPU|MaxWall\n"
    "small|5|00:00:00||cluster|DenyOnLimit|1.000000|cpu=32|cpu=16|3|02:00:00\n"
)
AROUND = {"meta": {"plugin": {"data_parser": "data_parser/v0.0.41"}}, "errors": [], "warnings": []}


def set_to(number):
    return {"set": True, "infinite": False, "number": number}


def written(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [folder / name for name in files]


def facts(site):
    """All that the outputs of scontrol say, independent of the order of the texts."""
    nodes = sorted(
        (host, group.cores, host in group.down) for group in site.recipe.groups for host in group.hosts
    )
    return (
        nodes,
        site.config["queues"]["batch"]["policy"],
        site.config.get("queue-policy"),
        site.config.get("limits"),
    )


# -- documents ---------------------------------------------------------------------------------------


def test_limits_in_json_are_limits_although_keys_deep_inside_are_called_jobs(tmp_path):
    limits = {
        "max": {
            "jobs": {
                "count": {"set": False},
                "per": {"user": set_to(9)},
                "active_jobs": {"per": {"user": set_to(3)}},
            },
            "tres": {"total": [{"type": "cpu", "name": "", "count": 32}]},
        }
    }
    qos = {"qos": [{"name": "small", "flags": ["DENY_LIMIT"], "limits": limits}], **AROUND}
    jobs = {"active": set_to(2), "total": set_to(4), "per": {"count": set_to(7), "wall_clock": set_to(120)}}
    assoc = {
        "associations": [{"account": "bio", "user": "ann", "max": {"jobs": jobs}, "shares_raw": 5}],
        **AROUND,
    }
    files = {"slurm.conf": CONF, "qos.json": json.dumps(qos), "assoc.json": json.dumps(assoc)}
    site = ss.import_site(*written(tmp_path, files))
    assert site.logs == ()
    tables = list(site.config["limits"])
    assert {"qos": "small", "cores": 32} in tables
    assert any(table.get("qos") == "small" and table.get("running-jobs") == 3 for table in tables)
    ann = [table for table in tables if table.get("user") == "ann"]
    assert {"running-jobs": 7}.items() <= ann[0].items()
    assert any(table.get("duration") == "2h" for table in ann)


@pytest.mark.parametrize(
    "key", ["nodes", "partitions", "reservations", "licenses", "sinfo", "qos", "associations", "jobs"]
)
@pytest.mark.parametrize("padding", [0, 70_000])
def test_an_answer_without_entries_is_an_answer(tmp_path, key, padding):
    answer = {"meta": {"x": "y" * padding}, "errors": [], key: []}
    site = ss.import_site(*written(tmp_path, {"slurm.conf": CONF, "a.json": json.dumps(answer)}))
    assert len(site.cluster.index) == 4
    assert not any("not recognised" in note.text for note in site.notes)


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ({"pings": []}, "scontrol ping"),
        ({"statistics": {"a": 1}}, "sdiag"),
        ({"users": []}, "sacctmgr show user"),
    ],
)
def test_other_answers_of_slurm_are_named(tmp_path, answer, command):
    files = {"slurm.conf": CONF, "a.json": json.dumps(answer | AROUND)}
    site = ss.import_site(*written(tmp_path, files))
    assert any(command in note.text and "a.json" in note.where for note in site.notes)


def test_licences_of_slurmrestd_are_licences(tmp_path):
    answer = {"licenses": [{"LicenseName": "ansys", "Total": 10, "Used": 2}], **AROUND}
    site = ss.import_site(*written(tmp_path, {"slurm.conf": CONF, "a.json": json.dumps(answer)}))
    assert site.config["licenses"] == {"ansys": 10}


def test_jobs_after_a_long_beginning_are_found(tmp_path):
    job = {
        "job_id": 5,
        "job_state": ["COMPLETED"],
        "submit_time": 5,
        "start_time": 6,
        "end_time": 9,
        "cpus": 3,
    }
    (tmp_path / "q.json").write_text(json.dumps({"meta": {"x": "y" * 70_000}, "jobs": [job]}))
    assert ss.load_workload(tmp_path / "q.json").kind == "squeue-json"


def test_documents_one_after_the_other_are_told_apart(tmp_path):
    nodes = json.dumps({"nodes": [{"name": "n1", "cpus": 8, "comment": "}\n{"}]}, indent=1)
    partitions = json.dumps({"partitions": [{"name": "p", "nodes": {"configured": "n1"}}]}, indent=1)
    [path] = written(tmp_path, {"all.json": nodes + "\n" + partitions})
    site = ss.import_site(path)
    assert (site.recipe.groups[0].hosts, list(site.config["queues"])) == (("n1",), ["p"])
    path.write_text(nodes + "\n" + partitions.replace('"p"', "p"))
    with pytest.raises(FormatError, match=rf"all\.json:{nodes.count(chr(10)) + 5}:\d+: not JSON"):
        ss.import_site(path)


# -- parts of a text -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["plain", "windows", "gzip", "mark", "without a header"])
def test_outputs_of_commands_in_one_text_are_told_apart_in_any_order(tmp_path, form):
    parts = [CONFIG, NODES, PARTITIONS, RESERVATIONS, JOBS, QOS]
    if form == "without a header":
        parts[0] = CONFIG.split("\n", 1)[1]
    found = []
    for order in list(permutations(parts))[:: 1 if form == "plain" else 37]:
        data = "".join(order).encode()
        data = (
            data.replace(b"\n", b"\r\n")
            if form == "windows"
            else gzip.compress(data)
            if form == "gzip"
            else data
        )
        [path] = written(tmp_path, {"all.txt": b"\xef\xbb\xbf" + data if form == "mark" else data})
        site = ss.import_site(path)
        assert [note for note in site.notes if note.kind == "fault"] == []
        found.append(facts(site))
    assert found[0][0] == [("c1", 32, False), ("c2", 32, True)]
    assert found[0][2] == "slurm"
    assert all(each == found[0] for each in found)


def test_plain_text_and_json_in_one_text_are_told_apart(tmp_path):
    """In any order, as several commands write them into one file."""
    most = {"max": {"jobs": {"active_jobs": {"per": {"user": set_to(3)}}}}}
    qos = json.dumps({"qos": [{"name": "small", "limits": most}], **AROUND}, indent=1) + "\n"
    empty = json.dumps({"reservations": [], **AROUND}) + "\n"
    found = set()
    for number, texts in enumerate(permutations((NODES, PARTITIONS, qos, empty))):
        (path,) = written(tmp_path, {f"{number}.txt": "".join(texts)})
        site = ss.import_site(path)
        assert not [note for note in site.notes if note.kind == "fault"]
        assert [table["running-jobs"] for table in site.config["limits"]] == [3]
        found.add(str(facts(site)))
    assert len(found) == 1


def test_places_are_those_of_the_whole_text(tmp_path):
    [path] = written(tmp_path, {"all.txt": JOBS + NODES + PARTITIONS.replace("08:00:00", "soon")})
    [fault] = [note for note in ss.import_site(path).notes if note.kind == "fault"]
    line = (JOBS + NODES).count("\n") + 1
    assert fault.where == f"{path}:{line}"


@pytest.mark.parametrize("text", [PARTITIONS, CONFIG, PARTITIONS + CONFIG])
@pytest.mark.parametrize("command", [["site", "import", "{}", "-o", "site"], ["cluster", "show", "{}"]])
def test_the_command_that_is_missing_is_named(tmp_path, capsys, monkeypatch, text, command):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, {"p.txt": text})
    assert main([word.format("p.txt") for word in command]) == 2
    assert "expected the output of scontrol show node as well" in capsys.readouterr().err


def test_a_line_that_is_not_part_of_a_record_is_a_note(tmp_path):
    stray = "Reserv{onName=b StartTime=2026-03-02T10:00:00\n   Nodes=c1\n     NodeName=c1 CoreIDs=0-1\n\n"
    oneline = "NodeName=c2 CoreIDs=0-1 TRES=cpu=2\n\n"
    [path] = written(tmp_path, {"all.txt": NODES + PARTITIONS + stray + oneline})
    site = ss.import_site(path)
    assert [node[0] for node in facts(site)[0]] == ["c1", "c2"]
    faults = [note for note in site.notes if note.kind == "fault"]
    assert any("NodeName=c1 CoreIDs=0-1" in note.text for note in faults)


def test_a_forecast_says_what_a_file_is_that_is_no_queue(tmp_path, capsys):
    [path] = written(
        tmp_path, {"queue.txt": "JOBID PARTITION NAME USER ST TIME NODES NODELIST\n1 p x y R 1:00 1 n1\n"}
    )
    assert main(["forecast", "tiny", str(path)]) == 2
    assert "it looks like squeue's table: simsched forecast takes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NODELIST|PARTITION|CPUS|STATE\nn1|p*|8|idle\n", "sinfo's table: scontrol show node and"),
        ("PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\np up 1-0 1 idle n1\n", "sinfo's table: scontrol"),
        ("JOBID PARTITION NAME USER ST\n1 p x y R\n", "squeue's table: simsched forecast takes"),
        (
            "normal|0|00:00:00|cluster|1.0||4|\n",
            "a table of Slurm without its header line: print",
        ),
        (
            "#!/bin/sh\n# mine\n#PBS -l ncpus=4\nx\n",
            "a batch script of PBS or LSF: scripts of",
        ),
    ],
)
def test_a_text_without_a_use_is_named_alone_and_beside_others(tmp_path, capsys, text, said):
    conf, path = written(tmp_path, {"slurm.conf": CONF, "a.txt": text})
    assert main(["site", "import", str(path), "-o", str(tmp_path / "site")]) == 2
    assert f"it looks like {said}" in capsys.readouterr().err
    assert any(said in note.text for note in ss.import_site(conf, path).notes)


def test_the_queue_of_scontrol_show_job_is_a_snapshot_and_a_log(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(
        tmp_path, {"site.txt": NODES.replace("DOWN+DRAIN", "DOWN") + PARTITIONS, "jobs.txt": NODES + JOBS}
    )
    assert main(["forecast", "site.txt", "jobs.txt"]) == 0
    [row] = [line.split() for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["8"]]
    assert row[5] == "2026-03-02T09:05:00Z"  # once job 7 reaches its limit on the only node that is up
    [job] = ss.load_workload("jobs.txt").jobs
    assert (job.id, job.runtime, job.wait, job.duration, job.procs) == (6, 300, 600, None, 4)


# -- folders ---------------------------------------------------------------------------------------------


def test_of_a_folder_as_much_is_read_as_slurm_reads(tmp_path):
    files = {
        "slurm.conf": CONF + "Include extra.conf\n",
        "extra.conf": "NodeName=m1 CPUs=8 RealMemory=16000\nPartitionName=extra Nodes=m1\n",
        "qos.txt": QOS,
    }
    others = {
        **dict.fromkeys(
            [
                "slurm.conf.bak",
                "slurm.conf.old",
                "slurm.conf.rpmsave",
                "slurm.conf~",
                "slurm.conf.2019-04-23",
                "slurm.conf.02252020",
                "slurm.conf.rpmnew",
                "slurm.conf.orig",
                "extra.conf.1",
                "#slurm.conf#",
            ],
            "NodeName=o[1-9] CPUs=4\nPartitionName=old Nodes=ALL\n",
        ),
        "slurm-test.conf": "NodeName=o[1-9] CPUs=4\nPartitionName=old Nodes=ALL\n",
        "notify.py": "import sys\n\ndef main(argv):\n    jobName = argv[1]\n    print(jobName)\n",
        "make.sh": "#!/bin/bash\ncat > slurm.conf <<E\nNodeName=o[1-9] CPUs=4\nPartitionName=old\nE\n",
        "README.md": "# Cluster\n\nAdd the line\n\n    NodeName=o9 CPUs=4\n\nto slurm.conf\nand run it.\n",
        "config.json": '{ // a comment\n "a": 1}\n',
        "cgroup.conf": "CgroupAutomount=yes\nConstrainCores=yes\n",
        "ci.yml": "name: CI\njobs:\n  test:\n    runs-on: ubuntu\n",
        "key.bin": bytes(range(256)),
    }
    alone = ss.import_site(*written(tmp_path / "alone", files)[:1], tmp_path / "alone" / "qos.txt")
    written(tmp_path / "slurm", files | others)
    site = ss.import_site(tmp_path / "slurm")
    assert site.config == alone.config
    assert site.recipe.groups == alone.recipe.groups
    text = "\n".join(map(str, site.notes))
    assert all(name in text for name in others)
    assert "extra.conf," not in text
    assert not any(source.name.endswith((".bak", ".py")) for source in site.sources)


def test_a_file_that_slurm_conf_includes_is_read_once(tmp_path):
    files = {
        "nodes.conf": "NodeName=m1 CPUs=8 RealMemory=16000\n",
        "slurm.conf": CONF + "Include nodes.conf\n",
    }
    site = ss.import_site(*written(tmp_path, files))
    assert len(site.cluster.index) == 5
    assert not [note for note in site.notes if note.kind == "fault"]


def test_slurm_conf_has_the_nodes_of_its_folder(tmp_path):
    nodes = {"nodes": [{"name": "n1", "cpus": 8, "state": ["DOWN"]}]}
    written(tmp_path / "slurm", {"nodes.json": json.dumps(nodes), "slurm.conf": CONF})
    site = ss.import_site(tmp_path / "slurm")
    assert [(group.hosts, group.down) for group in site.recipe.groups] == [
        (("n1", "n2", "n3", "n4"), frozenset({"n1"}))
    ]


def test_of_a_folder_of_flux_the_toml_files_are_read(tmp_path):
    nodes = '[[resource.config]]\nhosts = "{}[0-3]"\ncores = "0-3"\n'
    files = {
        "system.toml": nodes.format("n"),
        "queues.toml": '[queues.a]\nrequires = ["a"]\n',
        "system.toml.bak": nodes.format("o"),
        "old.conf": nodes.format("p"),
        "pyproject.toml": '[project]\nname = "x"\n',
    }
    written(tmp_path / "flux", files)
    site = ss.import_site(tmp_path / "flux")
    assert site.recipe.groups[0].hosts == ("n0", "n1", "n2", "n3")
    text = "\n".join(map(str, site.notes))
    assert all(name in text for name in ("system.toml.bak", "old.conf", "pyproject.toml"))


# -- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x y z\n",
        "# comment\n",
        "STATE ",
        "jobid|",
        "Name|",
        "queue,",
        "- ",
        '\\"',
        "NodeName=",
        " ",
        "a: ",
        "[{",
    ],
)
def test_the_look_at_a_text_is_linear(tmp_path, text):
    size = 400_000
    (tmp_path / "file").write_text(('{"' if "\\" in text else "") + text * (size // len(text)) + "x")
    begin = time.process_time()
    with pytest.raises(ss.SimschedError):
        ss.load_cluster(tmp_path / "file")
    with pytest.raises(ss.SimschedError):
        ss.load_workload(tmp_path / "file")
    assert time.process_time() - begin < 8


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("key", ["jobs", "nodes", "qos"])
def test_numbers_with_too_many_digits_have_one_error(tmp_path, capsys, digits, key):
    path = tmp_path / "a.json"
    path.write_text(f'{{"{key}": [{{"job_id": 1,\n"job_state": "X", "name": "n", "cpus": {"1" * digits}}}]}}')
    for words in (["validate", path], ["workload", "show", path], ["cluster", "show", path], ["check", path]):
        assert main(list(map(str, words))) != 0
        found = "".join(capsys.readouterr())
        assert "internal error" not in found
        if (words[0] == "workload") == (key == "jobs") or (words[0] == "check" and key == "nodes"):
            assert "a.json:2:" in found, (words, found)
            assert "too many digits" in found


def test_digits_in_job_objects_have_one_error(tmp_path):
    job = "<Job><Id>1</Id><StartTime>{}</StartTime><EndTime>5</EndTime><Processors>4</Processors></Job>"
    (tmp_path / "j.xml").write_text(job.format("1" * 5000))
    with pytest.raises(FormatError, match=r"j\.xml:1:\d+: StartTime .* has more than 18 digits"):
        ss.load_workload(tmp_path / "j.xml")


def test_the_lines_of_a_slurm_conf_may_be_in_any_order_without_blank_lines(tmp_path):
    settings = "ReturnToService=0\nSchedulerType=sched/builtin\nSlurmctldPort=6817\nSlurmdPort=6818\n"
    text = f"{CONF}{settings}SwitchType=switch/none\nWaitTime=0\n"
    (tmp_path / "cluster.conf").write_text(text)
    site = ss.import_site(tmp_path / "cluster.conf")
    assert (len(site.cluster.index), site.config["queue-policy"]) == (4, "fcfs")
