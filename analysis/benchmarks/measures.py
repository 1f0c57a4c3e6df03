"""What is measured, one function a figure; each runs in a process of its own and prints JSON.

Times are CPU seconds of one core where nothing else is said.
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = Path(__file__).resolve().parents[2]
SHAPES = ("slot=1/core", "slot=16/[core=2;gpu]", "node=4/slot=4/[core=2;gpu]", "slot=1/node")


def cluster_r(nodes: int, cores: int, gpus: int) -> dict[str, Any]:
    """The R document of identical nodes."""
    children = {"core": f"0-{cores - 1}" if cores > 1 else "0"}
    if gpus:
        children["gpu"] = f"0-{gpus - 1}"
    lite = [{"rank": f"0-{nodes - 1}", "children": children}]
    execution = {"R_lite": lite, "nodelist": [f"node[0-{nodes - 1}]"], "starttime": 0, "expiration": 0}
    return {"version": 1, "execution": execution}


def run(case: str) -> dict[str, Any]:
    """A whole run of a trace against the bare loop over the same jobs (`bench_run`)."""
    from analysis.benchmarks.bench_run import measure

    return dict(measure(case, 3))


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


def print_table(rows: Iterable[tuple[str, str, str]]) -> None:
    """Print rows (what, measured, limit) as Markdown, each as soon as it is measured."""
    print("| what | measured | limit |\n|---|---|---|", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def peak_mb() -> int:
    """The most memory this process ever held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    print(json.dumps(globals()[name](*arguments)))
