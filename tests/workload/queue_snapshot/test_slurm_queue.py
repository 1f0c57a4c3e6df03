"""``squeue --json`` as a queue snapshot."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main
from simsched.errors import SimschedError
from simsched.workload.queue_snapshot import load_queue_snapshot


def number(value):
    return {"set": True, "infinite": value is None, "number": value or 0}


def entry(id_, state, reason="None", **rest):
    fields = {
        "job_id": id_, "job_state": [state], "state_reason": reason, "submit_time": number(1000 + id_),
        "start_time": number(0), "time_limit": number(60), "cpus": number(8), "node_count": number(1),
        "partition": "batch", "user_name": "ada", "account": "phys", "name": f"j{id_}", "nodes": "",
        "priority": number(100), "dependency": "",
    }  # fmt: skip
    return {**fields, **rest}


QUEUE = [
    entry(1, "RUNNING", start_time=number(2000), nodes="node[0-1]", cpus=number(16), node_count=number(2)),
    entry(2, "RUNNING", start_time=number(2100), nodes="node2", time_limit=number(None)),
    entry(3, "PENDING", "Resources", start_time=number(9999)),
    entry(4, "PENDING", "Dependency", dependency="afterok:3(unfulfilled)"),
    entry(5, "PENDING", "JobHeldUser"),
    entry(6, "PENDING", "BeginTime", eligible_time=number(8000)),
    entry(7, "PENDING", "Dependency", dependency="singleton"),
    entry(8, "COMPLETED", start_time=number(1500), end_time=number(1600)),
]


def written(folder, jobs, **rest):
    path = folder / "queue.json"
    path.write_text(json.dumps({"jobs": jobs, **rest}))
    return path


def test_running_and_waiting_jobs(tmp_path):
    found = load_queue_snapshot(written(tmp_path, QUEUE))
    assert (found.time, found.epoch) == (2100, True)
    running = [
        (run.job.id, run.start, run.end, str(run.holds.hosts), run.holds.cores) for run in found.running
    ]
    assert running == [("1", 2000, 5600, "node[0-1]", 16), ("2", 2100, float("inf"), "node2", 8)]
    waiting = [(w.job.id, [str(d) for d in w.job.dependencies], w.reason) for w in found.waiting]
    assert waiting == [
        ("3", [], None),
        ("4", ["afterok:3"], None),
        ("5", [], "waits: JobHeldUser"),
        ("6", ["begin-time:8000"], None),
        ("7", [], "waits for singleton"),
    ]
    assert found.waiting[0].job.jobspec.to_shape() == "slot=8/core"
    assert found.waiting[0].job.duration == 3600
    assert load_queue_snapshot(written(tmp_path, QUEUE, last_update=number(2200))).time == 2200


def test_a_document_of_ended_jobs_is_a_log(tmp_path):
    assert load_queue_snapshot(written(tmp_path, QUEUE[-1:])) is None


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (entry(1, "RUNNING", start_time=number(5)), r"jobs\[0\]: the nodes of the running job 1 are missing"),
        (entry(1, "RUNNING", nodes="n1"), r"jobs\[0\]: job 1 runs and has no start"),
        (entry(1, "RUNNING", start_time=number(5), nodes="n[1-"), r"jobs\[0\]: nodes"),
    ],
)
def test_running_jobs_without_their_resources(tmp_path, job, message):
    with pytest.raises(SimschedError, match=message):
        load_queue_snapshot(written(tmp_path, [job]))


def test_a_forecast_of_a_slurm_queue(tmp_path, capsys):
    path, cluster = written(tmp_path, QUEUE), tmp_path / "c.json"
    assert main(["cluster", "make", "--nodes", "3", "--cores", "8", "-o", str(cluster)]) == 0
    assert main(["forecast", str(cluster), str(path), "--format", "json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    starts = {job["id"]: job["start"] for job in found}
    assert starts["3"] == 5600  # when job 1 gives back its two nodes
    assert starts["5"] is None


def task(id_, state, index, reason="None", **rest):
    fields = {"array_job_id": number(20), "array_task_id": number(index), "array_max_tasks": number(2)}
    return entry(id_, state, reason, **fields, **rest)


def test_tasks_of_an_array_that_have_not_started_are_jobs(tmp_path):
    """The record 20 stands for the tasks 2 to 4; at most two of the array run at a time."""
    unset = {"set": False, "infinite": False, "number": 0}
    rest = {"array_job_id": number(20), "array_task_id": unset, "array_max_tasks": number(2)}
    queue = [
        task(21, "RUNNING", 0, start_time=number(2000), nodes="node0"),
        task(22, "RUNNING", 1, start_time=number(2000), nodes="node1"),
        entry(20, "PENDING", "JobArrayTaskLimit", array_task_string="2-4%2", **rest),
        entry(30, "PENDING", "Dependency", dependency="afterok:20_*(unfulfilled)"),
        entry(31, "PENDING", "Dependency", dependency="afterany:20_1(unfulfilled),after:21+5(unfulfilled)"),
    ]
    found = load_queue_snapshot(written(tmp_path, queue))
    assert [str(run.job.array_task) for run in found.running] == ["20_0%2", "20_1%2"]
    waiting = {w.job.id: (str(w.job.array_task or ""), w.reason) for w in found.waiting}
    assert waiting == {
        "20_2": ("20_2%2", None),
        "20_3": ("20_3%2", None),
        "20_4": ("20_4%2", None),
        "30": ("", None),
        "31": ("", None),
    }
    after = {w.job.id: [str(item) for item in w.job.dependencies] for w in found.waiting}
    assert after["30"] == ["afterok:20"]
    assert after["31"] == ["afterany:20_1", "after:21?delay=300"]


def test_a_list_of_tasks_that_is_cut_short_is_an_error(tmp_path):
    cut = entry(20, "PENDING", array_task_string="1,3,5-...", array_job_id=number(20))
    with pytest.raises(SimschedError, match="cut short"):
        load_queue_snapshot(written(tmp_path, [cut]))


@pytest.mark.parametrize("tasks", ["1-5%2", "1-5:4", "3"])
def test_scontrol_may_have_the_waiting_tasks_of_an_array_in_the_id(tmp_path, tasks):
    rest = "Partition=batch JobState=PENDING SubmitTime=2026-01-01T00:00:00 NumNodes=1 NumCPUs=4"
    found = []
    for id_ in (f"JobId=14_[{tasks}]", f"JobId=14 ArrayJobId=14 ArrayTaskId=[{tasks}]"):
        (tmp_path / "job.txt").write_text(f"{id_} {rest}\n")
        found.append(load_queue_snapshot(tmp_path / "job.txt").waiting)
    assert found[0] == found[1]
    expected = {"1-5%2": ["14_1%2", "14_2%2", "14_3%2", "14_4%2", "14_5%2"], "1-5:4": ["14_1", "14_5"]}
    assert [str(job.job.array_task) for job in found[0]] == expected.get(tasks, ["14_3"])
    assert {job.job.id for job in found[0]} == {f"14_{job.job.array_task.index}" for job in found[0]}


@pytest.mark.parametrize("more", ["", ",_REBOOTING"])
def test_nodes_that_jobs_of_another_partition_have_are_a_wait_for_resources(tmp_path, more):
    """The text that scontrol of Slurm 22.05 has in place of the reason Resources, which JSON has."""
    reason = (
        f"Nodes required for job are DOWN, DRAINED{more} or reserved for jobs in higher priority partitions"
    )
    (tmp_path / "job.txt").write_text(
        f"JobId=5 Partition=batch JobState=PENDING Reason={reason.replace(' ', '_')} "
        "TimeLimit=00:03:00 SubmitTime=2026-01-01T00:00:00 NumNodes=8 NumCPUs=32\n"
    )
    (waits,) = load_queue_snapshot(tmp_path / "job.txt").waiting
    assert (waits.job.id, waits.job.procs, waits.reason) == ("5", 32, None)


def test_a_job_that_a_limit_holds_is_listed_once(tmp_path, capsys):
    """The limit on the tasks of an array, which JSON states as a number and scontrol with the tasks."""
    (tmp_path / "job.txt").write_text(
        "JobId=1 ArrayJobId=1 ArrayTaskId=1-3%2 JobName=a UserId=ada(1) Partition=batch JobState=PENDING "
        "Reason=Priority TimeLimit=01:00:00 SubmitTime=2026-01-01T00:00:00 NumNodes=1 NumCPUs=4 "
        "TRES=cpu=4,node=1\n"
    )
    queue = entry(1, "PENDING", array_job_id=number(1), array_task_string="1-3%2", array_max_tasks=number(2))
    for path in (tmp_path / "job.txt", written(tmp_path, [queue])):
        assert main(["forecast", "tiny", str(path), "--format", "json", "--quiet"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [job["id"] for job in found] == ["1_1", "1_2", "1_3"]
        assert [job["reason"] is None for job in found] == [True, True, False]
        assert found[2]["reason"].startswith("limit: array 1 may run 2 jobs")


SITE = """\
ClusterName=elm
NodeName=n[1-2] Sockets=1 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=16000 Gres=gpu:2
PartitionName=batch Nodes=n[1-2] MaxTime=2:00:00
"""


def test_a_queue_on_its_site(tmp_path, capsys):
    """Cpus are hardware threads there; running jobs hold gpus and memory, and have the limit of the queue."""
    (tmp_path / "slurm.conf").write_text(SITE)
    assert main(["site", "import", str(tmp_path / "slurm.conf"), "-o", str(tmp_path / "site")]) == 0
    running = {"start_time": number(2000), "partition": "batch"}
    queue = [
        entry(1, "RUNNING", nodes="n1", cpus=number(4), tres_req_str="cpu=4,node=1,gres/gpu=2", **running),
        entry(2, "RUNNING", nodes="n2", cpus=number(4), memory_per_node=number(15000), **running,
              tres_req_str="cpu=4,mem=15000M,node=1,gres/gpu=1", time_limit=number(None)),
        entry(3, "PENDING", "Resources", cpus=number(8), tres_req_str="cpu=8,node=1"),
        entry(4, "PENDING", "Resources", cpus=number(2), tres_req_str="cpu=2,node=1,gres/gpu=2"),
        entry(5, "PENDING", "Resources", cpus=number(2), memory_per_node=number(14000),
              tres_req_str="cpu=2,mem=14000M,node=1"),
    ]  # fmt: skip
    capsys.readouterr()
    arguments = ["--site", str(tmp_path / "site"), str(written(tmp_path, queue)), "--format", "json"]
    assert main(["forecast", *arguments, "--queue-policy", "conservative"]) == 0
    out, err = capsys.readouterr()
    assert "2 processors are a core" in err
    assert main(["forecast", *arguments, "--queue-policy", "conservative", "--quiet"]) == 0
    again, err = capsys.readouterr()
    assert (again, "processors" in err, "not used" in err) == (out, False, False)
    found = {job["id"]: (job["start"], job["shape"]) for job in json.loads(out)}
    now = 2000
    assert found["3"] == (now, "slot=4/core")
    assert found["4"] == (5600, "slot=2/[core;gpu]")  # when job 1 releases both gpus of n1
    assert found["5"] == (now, "slot/[core;memory=14000{unit:MiB}]")  # on n1, beside job 1


def test_nodes_whose_names_have_several_pairs_of_brackets(tmp_path):
    (run,) = load_queue_snapshot(written(tmp_path, [{**QUEUE[0], "nodes": "r[0-1]n[1-2],login"}])).running
    assert str(run.holds.hosts) == "r0n[1-2],r1n[1-2],login"
    for nodes, message in (("(null)", "the nodes of the running job"), ("r[0-1]n[2", "nodes: ")):
        with pytest.raises(SimschedError, match=message):
            load_queue_snapshot(written(tmp_path, [{**QUEUE[0], "nodes": nodes}]))
