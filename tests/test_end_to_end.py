"""Whole traces through the command line: every record is accounted for, the audit finds nothing,
and what the run wrote holds by a second, simpler check that knows only the files."""

from __future__ import annotations

import json
from collections import Counter

import pytest

import simsched as ss
from simsched.cli import main
from tests.reference.naive import read_swf

TRACES = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240),
}


def write_cluster(path, nodes):
    """One-core nodes, as R."""
    lite = [{"rank": f"0-{nodes - 1}", "children": {"core": "0"}}]
    execution = {"R_lite": lite, "nodelist": [f"n[0-{nodes - 1}]"], "starttime": 0, "expiration": 0}
    path.write_text(json.dumps({"version": 1, "execution": execution}))
    return str(path)


def run(traces, folder, name, policy, *options):
    file, processors = TRACES[name]
    cluster = write_cluster(folder / "cluster.json", processors)
    out = folder / policy
    arguments = [
        "run",
        cluster,
        str(traces / file),
        "-o",
        str(out),
        "--queue-policy",
        policy,
        "--audit",
        "--quiet",
    ]
    assert main([*arguments, *options]) == 0
    return ss.load_run(out), processors


def check_allocations(path, processors, jobs):
    """Replay the file: nobody gets what another holds, releases add up to their alloc, all is given back."""
    held: dict[str, Counter] = {}
    taken = set()
    last = float("-inf")
    allocated = set()
    with path.open() as lines:
        for line in lines:
            record = json.loads(line)
            assert record["time"] >= last
            last = record["time"]
            units = {(rank, int(core)) for rank, core in units_of(record["R"])}
            assert all(0 <= rank < processors and core == 0 for rank, core in units)
            job = str(record["id"])
            if record["event"] == "alloc":
                assert not units & taken, f"job {job} is given what another holds"
                taken |= units
                held[job] = Counter(units)
                allocated.add(job)
            else:
                taken -= units
                held[job] -= Counter(units)
                if not held[job]:
                    del held[job]
    assert not held
    assert not taken
    assert allocated == set(jobs)


def units_of(document):
    for entry in document["execution"]["R_lite"]:
        for rank in ss.Idset.parse(entry["rank"]):
            for core in ss.Idset.parse(entry["children"]["core"]):
                yield rank, core


def check(traces, folder, name, policy, *options, records):
    result, processors = run(traces, folder, name, policy, *options)
    jobs = result.jobs
    results = Counter(jobs["result"])
    assert sum(results.values()) == records
    assert set(results) <= {"COMPLETED", "TIMEOUT", "INFEASIBLE", "DROPPED"}
    never = jobs[jobs["result"].isin(["INFEASIBLE", "DROPPED"])]
    assert never["reason"].notna().all()
    assert never["start"].isna().all()
    ran = jobs[~jobs.index.isin(never.index)]
    assert (ran["start"] >= ran["submit"]).all()
    assert (ran["end"] >= ran["start"]).all()
    assert (ran["end"] - ran["start"] <= ran["duration"]).all()
    check_allocations(result.path / "allocations.jsonl", processors, ran["id"])
    return results


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_the_first_2000_jobs_of_kth_sp2(traces, tmp_path, policy):
    results = check(traces, tmp_path, "KTH-SP2", policy, "--limit", "2000", records=2000)
    assert results["COMPLETED"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_whole_traces(traces, tmp_path, name):
    usable, dropped = read_swf(traces / TRACES[name][0])
    results = check(traces, tmp_path, name, "easy", records=len(usable) + dropped)
    assert results["DROPPED"] == dropped
    assert results["COMPLETED"] + results["TIMEOUT"] + results["INFEASIBLE"] == len(usable)
