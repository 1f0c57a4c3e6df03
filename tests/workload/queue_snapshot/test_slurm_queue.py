"""``squeue --json`` as a queue snapshot."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main
from simsched.errors import SimschedError
from simsched.workload.queue_snapshot.load_snapshot import load_queue_snapshot


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
