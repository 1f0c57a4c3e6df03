"""How long a run takes, against a bare simpy loop that only fires one submit and one end event a job.

    python -m analysis.benchmarks.bench_run [CASE …] [--repeat N] [--json FILE]

Each case is measured in this process, alternating with the bare loop over the same number of
jobs; the figure is the ratio of the least CPU times.  Reading the trace and the cluster is not
counted; compiling the requests, the loop and making the columns is, and with "written" the
whole run directory too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import simsched as ss
from analysis.benchmarks.bare_loop import bare_loop
from simsched.simulation.record.run_directory import RunDirectory
from simsched.simulation.simulate import simulate

TRACES = Path(os.environ.get("SIMSCHED_TRACES") or Path(__file__).parents[3] / "shared" / "traces")
HPC2N = ("HPC2N-2002-2.2-cln.swf.gz", 240, 1)
SDSC = ("SDSC-SP2-1998-4.2-cln.swf.gz", 128, 1)
KTH = ("KTH-SP2-1996-2.1-cln.swf.gz", 100, 1)
CURIE = ("CEA-Curie-2011-2.1-cln.swf.gz", 5040, 16)

LINE = (
    "{name:26} {jobs:>7,} jobs  {seconds:>7.2f} s  {jobs_per_second:>7,} jobs/s  "
    "{ratio:>5.1f} x bare loop (at most {allowed})  peak {peak_mb} MB"
)

#: case → (trace, nodes, cores a node), map, queue policy, written, records read at most, allowed ratio
CASES = {
    "kth-easy": (KTH, "slot={procs}/core", "easy", False, None, 12),
    "sdsc-easy": (SDSC, "slot={procs}/core", "easy", False, None, 12),
    "sdsc-easy-written": (SDSC, "slot={procs}/core", "easy", True, None, 20),
    "sdsc-conservative": (SDSC, "slot={procs}/core", "conservative", False, 10_000, 60),
    "hpc2n-fcfs": (HPC2N, "slot={procs}/core", "fcfs", False, None, 12),
    "hpc2n-easy": (HPC2N, "slot={procs}/core", "easy", False, None, 12),
    "hpc2n-easy-written": (HPC2N, "slot={procs}/core", "easy", True, None, 20),
    "curie-nodes-easy-written": (CURIE, "slot={nodes}/node", "easy", True, None, 25),
    "curie-cores-easy-written": (CURIE, "slot={procs}/core", "easy", True, None, 25),
}


def machine(nodes, cores):
    """A flat cluster of equal nodes."""
    execution = {
        "R_lite": [{"rank": f"0-{nodes - 1}", "children": {"core": f"0-{cores - 1}"}}],
        "nodelist": [f"n[0-{nodes - 1}]"],
        "starttime": 0,
        "expiration": 0,
    }
    return ss.Cluster.from_rset(ss.ResourceSet.from_dict({"version": 1, "execution": execution}), name="flat")


def timed(function, *arguments):
    gc.collect()
    begin = time.process_time()
    function(*arguments)
    return time.process_time() - begin


def run_case(cluster, workload, policy, *, written):
    if not written:
        simulate(cluster, workload, policy, allocations=False)
        return
    folder = tempfile.mkdtemp()
    try:
        with RunDirectory(Path(folder) / "run") as directory:
            directory.finish(simulate(cluster, workload, policy, sink=directory.allocations()), {})
    finally:
        shutil.rmtree(folder)


def measure(name, repeat):
    (file, nodes, cores), mapping, policy, written, limit, allowed = CASES[name]
    cluster = machine(nodes, cores)
    assert cluster.index
    workload = ss.load_workload(TRACES / file, map=mapping, procs_per_node=cores, limit=limit)
    jobs = len(workload)
    events = [(job.submit, job.runtime or 0) for job in workload.jobs]
    floor = ours = float("inf")
    for _ in range(repeat):
        floor = min(floor, bare_loop(events))
        ours = min(ours, timed(lambda: run_case(cluster, workload, policy, written=written)))
    return {
        "case": name,
        "jobs": jobs,
        "seconds": round(ours, 3),
        "jobs_per_second": round(jobs / ours),
        "microseconds_per_job": round(ours / jobs * 1e6, 1),
        "bare_microseconds_per_job": round(floor / jobs * 1e6, 2),
        "ratio": round(ours / floor, 1),
        "allowed": allowed,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows = []
    for name in args.cases or CASES:
        if not (TRACES / CASES[name][0][0]).is_file():
            sys.exit(f"no traces at {TRACES}; set SIMSCHED_TRACES")
        rows.append(measure(name, args.repeat))
        row = rows[-1]
        print(LINE.format(name=name, **row), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
