"""How a run grows with jobs and with nodes: ``python -m analysis.benchmarks.bench_growth`` prints a table.

    python -m analysis.benchmarks.bench_growth [--jobs N …] [--nodes N …]

A made month: jobs of 1 to 64 whole nodes of 16 cores arrive at random, ask for more time than they
take, and keep four fifths of the machine busy; EASY schedules them and everything is written.
Each figure is measured in a process of its own: CPU seconds of the run, and the largest
memory of the process, the workload included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
JOBS = (1_000, 10_000, 100_000, 1_000_000)
NODES = (100, 1_000, 10_000)
MONTH = (1_000_000, 9_400)
LOAD, CORES, SEED = 0.8, 16, 17


def made_month(jobs: int, nodes: int):
    """Jobs that keep the machine busy for a month; equal requests share one jobspec."""
    import numpy as np

    import simsched as ss

    rng = np.random.default_rng(SEED)
    submits = np.sort(rng.integers(0, 30 * 86_400, jobs)).tolist()
    sizes = np.minimum(2 ** rng.integers(0, 7, jobs), nodes)
    runtimes = rng.lognormal(0, 1.2, jobs)
    runtimes *= LOAD * nodes * 30 * 86_400 / float((runtimes * sizes).sum())
    runtimes = np.maximum(1, runtimes).astype(int)
    durations = (runtimes * rng.choice([1.0, 1.5, 3.0, 10.0], jobs)).astype(int)
    specs = {size: ss.Jobspec.from_shape(f"slot={size}/node") for size in np.unique(sizes).tolist()}
    made = tuple(
        ss.Job(id=at, submit=submit, runtime=runtime, duration=duration, jobspec=specs[size])
        for at, (submit, runtime, duration, size) in enumerate(
            zip(submits, runtimes.tolist(), durations.tolist(), sizes.tolist(), strict=True), start=1
        )
    )
    return ss.Workload(jobs=made, name="made month")


def one(jobs: int, nodes: int) -> None:
    """Measure in this process and print the figures as JSON."""
    from analysis.benchmarks.bench_run import machine, run_case

    cluster, workload = machine(nodes, CORES), made_month(jobs, nodes)
    assert cluster.index
    began = time.process_time()
    run_case(cluster, workload, "easy", written=True)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"s": round(seconds, 2), "us": round(seconds / jobs * 1e6, 1), "mb": peak}))


def measured(jobs: int, nodes: int) -> dict[str, float]:
    """Measure in a fresh process."""
    command = [sys.executable, "-m", "analysis.benchmarks.bench_growth", "one", str(jobs), str(nodes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print the table as Markdown, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=JOBS)
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    args = parser.parse_args()
    print("| jobs | " + " | ".join(f"{nodes:,} nodes" for nodes in args.nodes) + " |", flush=True)
    print("|---|" + "---|" * len(args.nodes), flush=True)
    for jobs in args.jobs:
        cells = []
        for nodes in args.nodes:
            found = measured(jobs, nodes)
            cells.append(f"{found['s']} s ({found['us']:.0f} µs a job), {found['mb']} MB")
        print(f"| {jobs:,} | " + " | ".join(cells) + " |", flush=True)
    found = measured(*MONTH)
    print(f"\nA month of {MONTH[0]:,} jobs on {MONTH[1]:,} nodes: {found['s']} s, {found['mb']:,} MB.")


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
