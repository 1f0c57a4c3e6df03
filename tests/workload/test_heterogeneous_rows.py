"""Heterogeneous jobs of Slurm's accounting become one job each."""

from __future__ import annotations

import json

from simsched.workload.readers.gather import JOINED
from simsched.workload.readers.sacct import read_sacct
from simsched.workload.readers.slurm_json import read_sacct_json

SACCT = """\
JobIDRaw|JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|NNodes|Partition|State|NodeList
10|10|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:10:00|600|20|12|3|batch|COMPLETED|n[0-2]
12|11+1|2024-01-01T00:01:00|2024-01-01T00:10:00|2024-01-01T00:20:00|600|30|8|2|batch|FAILED|n[1-2]
11|11+0|2024-01-01T00:01:00|2024-01-01T00:10:00|2024-01-01T00:19:00|540|20|4|1|batch|COMPLETED|n0
11.batch|11+0.batch|2024-01-01T00:01:00|2024-01-01T00:10:00|2024-01-01T00:20:00|600|20|4|1||COMPLETED|n0
14|13+1|2024-01-01T00:03:00|Unknown|Unknown|0|30|8|2|gpu|PENDING|None assigned
13|13+0|2024-01-01T00:03:00|2024-01-01T00:10:00|2024-01-01T00:19:00|540|20|4|1|gpu|COMPLETED|n3
"""


def test_the_parts_of_sacct_are_one_job():
    found = read_sacct(SACCT.splitlines())
    assert [job.id for job in found] == [10, 11, 13]
    whole = found.jobs[1]
    assert whole.jobspec.to_shape() == "slot=12/core"
    assert (whole.procs, whole.nodes, whole.duration, whole.runtime, whole.wait) == (12, 3, 1800, 600, 540)
    assert (whole.status, whole.nodelist) == ("FAILED", "n0,n[1-2]")
    assert found.skipped_counts[JOINED] == 1
    assert len(found.jobs) + sum(found.skipped_counts.values()) == found.total_records == 6
    assert any("heterogeneous jobs: 2" in note for note in found.notes)


def test_without_the_raw_id_the_parts_are_joined_as_well():
    lines = ["|".join(line.split("|")[1:]) for line in SACCT.splitlines()]
    assert [job.id for job in read_sacct(lines)] == [10, 11, 13]


def record(number, leader, offset, cpus):
    time = {"submission": 100, "start": 160, "end": 220, "elapsed": 60, "limit": {"set": True, "number": 2}}
    tres = {"requested": [{"type": "cpu", "count": cpus}], "allocated": []}
    het = {"job_id": leader, "job_offset": {"set": bool(leader), "infinite": False, "number": offset}}
    return {"job_id": number, "time": time, "tres": tres, "state": {"current": ["COMPLETED"]}, "het": het}


def test_the_parts_of_json_are_one_job():
    document = {"jobs": [record(7, 0, 0, 2), record(8, 8, 0, 4), record(9, 8, 1, 8)]}
    found = read_sacct_json(json.dumps(document))
    assert [(job.id, job.procs, job.jobspec.to_shape()) for job in found] == [
        (7, 2, "slot=2/core"),
        (8, 12, "slot=12/core"),
    ]
