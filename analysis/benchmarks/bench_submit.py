"""How many jobs per second are submitted, one by one, while the clock runs, and played to their ends.

    python -m analysis.benchmarks.bench_submit [--jobs N] [--repeat N] [--json FILE]

A process of simpy submits flat requests, each at its time, to a busy machine with a queue.  The figure is end
to end: submission, scheduling, records.  `simulate` plays the same jobs, known beforehand, for comparison.
The figures are the least CPU times.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from pathlib import Path

import numpy as np

import simsched as ss
from analysis.benchmarks.bench_run import machine
from simsched.simulation.live.open_simulation import OpenSimulation
from simsched.simulation.simulate import simulate
from simsched.workload.job import Job, Workload

NODES, CORES = 128, 1
LINE = "{name:28} {jobs:>7,} jobs  {seconds:>6.2f} s  {jobs_per_second:>7,} jobs/s"


def flat_jobs(count):
    """Jobs of 1 to 32 cores that keep about nine tenths of the machine busy."""
    rng = np.random.default_rng(7)
    sizes = 2 ** rng.integers(0, 6, count)
    runtimes = rng.integers(60, 3600, count)
    gaps = rng.exponential(float((sizes * runtimes).mean()) / (0.9 * NODES * CORES), count)
    submits = np.cumsum(gaps).astype(int)
    specs = {size: ss.Jobspec.from_shape(f"slot={size}/core") for size in (1, 2, 4, 8, 16, 32)}
    columns = zip(submits.tolist(), sizes.tolist(), runtimes.tolist(), strict=True)
    return [
        Job(id=n, submit=at, jobspec=specs[size], runtime=seconds, duration=2 * seconds, user=f"u{n % 40}")
        for n, (at, size, seconds) in enumerate(columns, start=1)
    ]


def submitted(cluster, jobs, policy, **options):
    """Submit each job at its time from a process."""
    sim = OpenSimulation(cluster, policy, **options)
    env = sim.env

    def source():
        for job in jobs:
            if job.submit > env.now:
                yield env.timeout(job.submit - env.now)
            sim.submit(job.jobspec, job.duration, job.runtime, user=job.user)

    env.process(source())
    sim.run()
    return sim.result()


def known(cluster, jobs, policy, **options):
    """Play the same jobs, all known beforehand."""
    return simulate(cluster, Workload(tuple(jobs)), policy, **options)


def measure(name, run, cluster, jobs, policy, repeat, **options):
    least = float("inf")
    for _ in range(repeat):
        gc.collect()
        begin = time.process_time()
        run(cluster, jobs, policy, **options)
        least = min(least, time.process_time() - begin)
    return {
        "name": name,
        "jobs": len(jobs),
        "seconds": round(least, 3),
        "jobs_per_second": round(len(jobs) / least),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=30_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    cluster, jobs = machine(NODES, CORES), flat_jobs(args.jobs)
    rows = []
    for policy in ("fcfs", "easy"):
        for allocations in (False, True):
            text = f"{policy}{', with R' if allocations else ''}"
            for name, run in (("submitted", submitted), ("simulate", known)):
                row = measure(
                    f"{name}, {text}", run, cluster, jobs, policy, args.repeat, allocations=allocations
                )
                rows.append(row)
                print(LINE.format(**row), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
