"""Every preset on made-up rows of its data set's form."""
# ruff: noqa: E501 (rows of data sets are long)

from __future__ import annotations

import json

import duckdb
import pytest

from simsched.errors import ConfigError
from simsched.workload.load import load_workload
from simsched.workload.readers.tables.column_map import preset, preset_names, presets

ROWS = {
    "pm100": (
        "parquet",
        """select 7 as job_id, 13 as user_id, timestamp '2020-05-05 10:00:00' as submit_time,
        timestamp '2020-05-05 10:00:00' as eligible_time, timestamp '2020-05-05 10:01:00' as start_time,
        timestamp '2020-05-05 11:01:00' as end_time, 3600 as run_time, 1440 as time_limit,
        2 as num_nodes_alloc, 256 as num_cores_alloc, 8 as num_gpus_alloc, 475 as mem_alloc,
        '1' as partition, '1' as qos, 'COMPLETED' as job_state, [1200, 1300] as node_power_consumption""",
        (7, 0, 60, 3600, 86400, "slot=8/[core=32;gpu]", "13", "1", "COMPLETED"),
    ),
    "f-data": (
        "parquet",
        """select 'j1' as jid, 'u1' as usr, 'n1' as jnam, '2021-04-01 00:00:00' as adt,
        '2021-04-01 00:00:00' as qdt, '2021-04-01 00:10:00' as sdt, '2021-04-01 01:10:00' as edt,
        86400.0 as elpl, 384 as nnumr, 18432 as cnumr, 127 as pri, 90.5 as avgpcon, 1e6 as econ""",
        ("j1", 0, 600, 3600, 86400, "slot=384/node", "u1", None, None),
    ),
    "kestrel": (
        "parquet",
        """select 11 as id, 9 as job_id, timestamptz '2024-09-01 06:00:00+00' as submit_time,
        timestamptz '2024-09-01 06:00:30+00' as start_time, timestamptz '2024-09-01 07:00:30+00' as end_time,
        interval '4 hours' as wallclock_req, 1 as nodes_req, 104 as processors_req, 0 as gpus_requested,
        '240G' as memory_req, 'a1b2c3d' as user_hash, 'f00' as account_hash, 'short' as partition,
        'COMPLETED' as state_simple""",
        (11, 0, 30, 3600, 14400, "slot=104/core", "a1b2c3d", "short", "COMPLETED"),
    ),
    "alcf": (
        "csv",
        """JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,USERNAME_GENID,PROJECT_NAME_GENID,QUEUE_NAME,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_USED,NODES_REQUESTED,CORES_USED,CORES_REQUESTED,LOCATION
1234.aurora-pbs-0001,,aurora,2025-01-27 00:00:05,2025-01-27 00:10:05,2025-01-27 01:10:05,98765,1357,EarlyAppAccess,7200.0,3600.0,64.0,64.0,13312.0,13312.0,"x4000c0s0b0n0,x4000c0s1b0n0"
""",
        (1234, 0, 600, 3600, 7200, "slot=64/node", "98765", "EarlyAppAccess", None),
    ),
    "helios": (
        "csv",
        """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
15,u1,vc1,16,96,2,FAILED,2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-09 19:42:01,3600,60
16,u2,vc1,0,4,1,CANCELLED,2020-06-09 18:41:02,,,0,0
""",
        (15, 0, 60, 3600, None, "slot=16/[core=6;gpu]", "u1", "vc1", "FAILED"),
    ),
    "acme": (
        "csv",
        """job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
57,u5,1,8,128,Other,COMPLETED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0
""",
        (57, 0, 32, 117, None, "slot=8/[core=16;gpu]", "u5", "Other", "COMPLETED"),
    ),
    "philly": (
        "json",
        json.dumps(
            [
                {
                    "status": "Killed",
                    "vc": "v1",
                    "jobid": "application_1_2",
                    "user": "ce2",
                    "submitted_time": "2017-10-07 01:11:39",
                    "attempts": [
                        {
                            "start_time": "2017-10-07 01:12:09",
                            "end_time": "2017-10-07 01:13:23",
                            "detail": [
                                {"ip": "m1", "gpus": ["gpu0", "gpu1"]},
                                {"ip": "m2", "gpus": ["gpu0", "gpu1"]},
                            ],
                        },
                        {
                            "start_time": "2017-10-07 01:13:30",
                            "end_time": "2017-10-07 02:12:09",
                            "detail": [],
                        },
                    ],
                },
                {
                    "status": "Failed",
                    "vc": "v1",
                    "jobid": "application_1_3",
                    "user": "ce2",
                    "submitted_time": "2017-10-07 01:11:40",
                    "attempts": [],
                },
            ]
        ),
        ("application_1_2", 0, 30, 3600, None, "slot=4/gpu", "ce2", "v1", "CANCELED"),
    ),
    "pai-2020": (
        "csv",
        "4f0570,worker,2.0,Terminated,1739162.0,1739200.0,600.0,29.296875,50.0,MISC\n",
        ("4f0570/worker", 0, 0, 38, None, "slot=2/[core=6;gpu]", None, "MISC", "COMPLETED"),
    ),
    "openb-2023": (
        "csv",
        """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
openb-pod-0022,4500,15258,1,220,,BE,Running,9679175,9973826,9679180.0
openb-pod-0023,4500,15258,1,220,,BE,Pending,9679176,9973826,
""",
        ("openb-pod-0022", 0, 5, 294646, None, "slot/[core=5;gpu]", None, "BE", "COMPLETED"),
    ),
    "spot-gpu-2026": (
        "csv",
        """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot
""",
        (437260, 0, None, 41060, None, "slot=16/[core=15;gpu]", None, "Spot", None),
    ),
    "flux-fiction": (
        "csv",
        """JobID,NNodes,NCPUS,Timelimit,Submit,Elapsed,NGPUS
 1,2,36,00:10:00,2019-01-01T00:00:00,00:06:00,4
""",
        (1, 0, None, 360, 600, "slot=4/[core=9;gpu]", None, None, None),
    ),
    "batsim-jobs": (
        "csv",
        """job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata
w0!1,w0,d,10.0,4,3600.0,1,COMPLETED_SUCCESSFULLY,15.5,100.0,115.5,5.5,105.5,1.055,0-3,0,""
w0!2,w0,d,10.0,4000,3600.0,0,REJECTED,-1.000000,-1.000000,-1.000000,-1.000000,-1.000000,-1.000000,,0,""
""",
        ("w0!1", 0, 5.5, 100, 3600, "slot=4/core", None, None, "COMPLETED"),
    ),
}

NAMED = {"pai-2020", "flux-fiction"}  # without a header line; with the header of a Slurm dump


def table(folder, name):
    form, content, _ = ROWS[name]
    path = folder / f"jobs.{form}"
    if form == "parquet":
        duckdb.sql(content).write_parquet(str(path))
    else:
        path.write_text(content)
    return path


@pytest.mark.parametrize("name", ROWS)
def test_a_preset_reads_rows_of_its_data_set(tmp_path, name):
    path = table(tmp_path, name)
    workload = load_workload(path, columns=name)
    (job,) = workload.jobs
    request = job.jobspec.to_shape()
    found = (
        job.id,
        job.submit,
        job.wait,
        job.runtime,
        job.duration,
        request,
        job.user,
        job.queue,
        job.status,
    )
    assert found == ROWS[name][2]
    if name not in NAMED:
        again = load_workload(path)
        assert again.jobs == workload.jobs
        assert again.notes[0] == f"read as {name}: {preset(name).dataset}"


def test_every_preset_is_tried_and_names_its_source():
    assert set(preset_names()) == {*ROWS, "frontier-swf"}
    for one in presets():
        assert one.dataset
        assert one.cite
        assert one.notes


def test_jobs_that_never_started_are_counted(tmp_path):
    counts = {name: dict(load_workload(table(tmp_path, name), map=name).skipped_counts) for name in ROWS}
    assert {name: count for name, count in counts.items() if count} == {
        "helios": {"cancelled before it started": 1},
        "philly": {"never started": 1},
        "openb-2023": {"never started": 1},
        "batsim-jobs": {"never started": 1},
    }


def test_memory_and_nodes_are_read(tmp_path):
    (job,) = load_workload(table(tmp_path, "kestrel"), columns="kestrel")
    assert (job.nodes, job.procs, job.memory) == (1, 104, -(-240 * 1024**2 // 104))
    assert job.bank == "f00"


def test_a_preset_that_is_not_one():
    with pytest.raises(ConfigError, match="unknown preset 'pm10'; did you mean pm100"):
        load_workload("month", columns="pm10")


def test_frontier_traces_have_their_sizes_in_the_descriptor(tmp_path):
    path = tmp_path / "frontier.swf"
    fields = "1 0 30 3600 589824 -1 -1 589824 7200 -1 1 3 1 -1 1 1 -1 -1"
    path.write_text(f"; UnixStartTime: 1704067200\n{fields} 20000 -1 frontier:excl:2500x112\n{fields[2:]}\n")
    workload = load_workload(path)
    (job,) = workload.jobs
    assert (job.nodes, job.procs, job.jobspec.to_shape()) == (2500, 280000, "slot=2500/node")
    assert workload.skipped_counts == {"not a record of 18 numbers": 1}
    assert "descriptors" in workload.notes[0]
    assert load_workload(path, columns="frontier-swf").jobs == workload.jobs
    (job,) = load_workload(path, map="node={nodes}/slot={gpn}/gpu").jobs
    assert job.jobspec.to_shape() == "node=2500/slot=8/gpu"
