"""What is measured, one function a figure; each runs in a process of its own and prints JSON.

Times are CPU seconds of one core where nothing else is said.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from analysis.benchmarks.bare_loop import bare_loop

REPOSITORY = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("SIMSCHED_TRACES") or REPOSITORY.parent / "shared" / "traces")

#: Name → (file, processors).
WORKLOADS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
    "HPC2N": ("HPC2N-2002-2.2-cln.swf.gz", 240),
}
SHAPES = ("slot=1/core", "slot=16/[core=2;gpu]", "node=4/slot=4/[core=2;gpu]", "slot=1/node")


def cluster_r(nodes: int, cores: int, gpus: int) -> dict[str, Any]:
    """The R document of identical nodes."""
    children = {"core": f"0-{cores - 1}" if cores > 1 else "0"}
    if gpus:
        children["gpu"] = f"0-{gpus - 1}"
    lite = [{"rank": f"0-{nodes - 1}", "children": children}]
    execution = {"R_lite": lite, "nodelist": [f"node[0-{nodes - 1}]"], "starttime": 0, "expiration": 0}
    return {"version": 1, "execution": execution}


def run(name: str, policy: str, write: str) -> dict[str, Any]:
    """A whole run of a trace against the bare loop over the same jobs."""
    import simsched as ss

    file, processors = WORKLOADS[name]
    cluster = ss.Cluster.from_rset(ss.ResourceSet.from_dict(cluster_r(processors, 1, 0)), name=name)
    workload = ss.load_workload(TRACES / file, map="slot={procs}/core")
    events = [(job.submit, job.runtime or 0) for job in workload.jobs]
    bare = min(bare_loop(events) for _ in range(3))
    gc.collect()
    began = time.process_time()
    if write == "everything":
        with tempfile.TemporaryDirectory() as folder:
            done = ss.simulate(cluster, workload, queue_policy=policy)
            done.save(Path(folder) / "run")
    else:
        done = ss.simulate(cluster, workload, queue_policy=policy, allocations=False)
    seconds = time.process_time() - began
    return {
        "jobs": len(workload),
        "bare_s": round(bare, 3),
        "s": round(seconds, 2),
        "ratio": round(seconds / bare, 1),
        "jobs_per_s": round(len(workload) / seconds),
        "mb": peak_mb(),
    }


def match(shape: str) -> dict[str, Any]:
    """One match on 16,384 nodes of 64 cores and 4 gpus, claim included, while the machine fills."""
    import simsched as ss

    cluster = ss.Cluster.from_rset(ss.ResourceSet.from_dict(cluster_r(16_384, 64, 4)))
    jobspec = ss.Jobspec.from_shape(shape)
    matcher = ss.Matcher(cluster)
    matcher.match(jobspec)
    times = []
    gc.disable()
    for _ in range(2000):
        began = time.perf_counter()
        outcome = matcher.match(jobspec)
        times.append(time.perf_counter() - began)
        if not outcome:
            raise AssertionError("the machine was meant to hold all of them")
    return {
        "median_us": round(statistics.median(times) * 1e6, 1),
        "p95_us": round(sorted(times)[1900] * 1e6, 1),
    }


def load() -> dict[str, Any]:
    """Load the 16,384-node machine from an R file, index included."""
    import simsched as ss

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.json"
        path.write_text(json.dumps(cluster_r(16_384, 64, 4)))
        began = time.process_time()
        cluster = ss.load_cluster(path)
        graph = time.process_time() - began
        assert cluster.index is not None
        return {"graph_s": round(graph, 2), "s": round(time.process_time() - began, 2), "mb": peak_mb()}


def startup(*arguments: str) -> dict[str, Any]:
    """Wall seconds of a command from start to exit, the quickest of ten."""
    command = [sys.executable, "-m", "simsched", *arguments]
    times = []
    for _ in range(10):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return {"s": round(min(times), 3)}


def peak_mb() -> int:
    """The most memory this process ever held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    print(json.dumps(globals()[name](*arguments)))
