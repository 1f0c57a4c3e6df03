"""What a planner waits for: `simsched run` as a whole process, everything read and written.

    python -m analysis.benchmarks.bench_whole [CASE …] [--python PATH …] [--json FILE]

The inputs of each case are made or taken once, written to files, and run by `simsched run` of each given
Python (default: this one), so that versions are compared on the same files. A figure is the CPU time of the
process, start included, as a multiple of the bare simpy loop of as many jobs, which is measured beside it.
Both are the least of `--repeat` turns, in each of which every version runs once.

``mixed-LOAD``, ``conservative-LOAD``: the site of `bench_mixed` with 220 nodes, 20,000 and 5,000 jobs.
``slurm-LOAD``: an imported slurm.conf of 528 nodes, three partitions and a debug partition over one of them,
cores, memory and gpus, multifactor priority with fair tree; a backfill pass at most each 60 s, a window of
two days in steps of 300 s, 1,000 tests a pass; 10,000 jobs, and 20,000 above 100 %.
``TRACE-POLICY``, as in ``hpc2n-easy``: a trace of the Parallel Workloads Archive as cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import simsched as ss
from analysis.benchmarks import bench_mixed
from analysis.benchmarks.bare_loop import bare_loop
from analysis.benchmarks.bench_production import RULES
from analysis.benchmarks.bench_run import CURIE, HPC2N, KTH, SDSC, TRACES, machine
from simsched.workload.save import save_workload

SEED = 33
SLURM_CONF = f"""{RULES}
SchedulerParameters=bf_interval=60,bf_window=2880,bf_resolution=300,bf_max_job_test=1000
NodeName=c[001-384] Sockets=2 CoresPerSocket=32 RealMemory=256000
NodeName=m[01-96] Sockets=2 CoresPerSocket=32 RealMemory=1024000
NodeName=g[01-48] Sockets=2 CoresPerSocket=32 RealMemory=512000 Gres=gpu:a100:4
PartitionName=batch Nodes=c[001-384] Default=YES MaxTime=2-00:00:00 PriorityJobFactor=1
PartitionName=debug Nodes=c[001-384] MaxTime=01:00:00 PriorityJobFactor=3
PartitionName=large Nodes=m[01-96] MaxTime=2-00:00:00 PriorityJobFactor=1
PartitionName=gpu Nodes=g[01-48] MaxTime=1-00:00:00 PriorityJobFactor=2
"""
NODES = {"batch": 384, "large": 96, "gpu": 48}
MEMORY = {"batch": 4_000, "large": 16_000, "gpu": 8_000}
"""MiB beside each core."""
TRACE = {"hpc2n": HPC2N, "sdsc": SDSC, "kth": KTH, "curie": CURIE}
CASES = (
    *("mixed-70", "mixed-90", "conservative-90", "slurm-90", "slurm-110"),
    *("hpc2n-easy", "hpc2n-conservative", "sdsc-easy", "curie-easy"),
)


class Inputs(NamedTuple):
    """Arguments of `simsched run`, and (submit, run time) of each job."""

    arguments: list[str]
    events: list[tuple[float, float]]


def inputs(case: str, folder: Path, jobs: int | None) -> Inputs:
    """Write the inputs of a case into a folder."""
    kind, _, rest = case.partition("-")
    if kind in TRACE:
        file, nodes, cores = TRACE[kind]
        machine(nodes, cores).save(folder / "cluster.json")
        made = ss.load_workload(TRACES / file, map="slot={procs}/core", procs_per_node=cores, limit=jobs)
        limit = [] if jobs is None else ["--limit", str(jobs)]
        options = ["--map", "slot={procs}/core", "--procs-per-node", str(cores), "--queue-policy", rest]
        arguments = [str(folder / "cluster.json"), str(TRACES / file), *options, *limit]
        return Inputs(arguments, _events(made))
    if kind == "slurm":
        (folder / "slurm.conf").write_text(SLURM_CONF)
        ss.save_site(ss.import_site(folder / "slurm.conf"), folder / "site")
        made = slurm_jobs(float(rest) / 100, jobs or (10_000 if float(rest) <= 100 else 20_000))
        arguments = ["--site", str(folder / "site"), str(folder / "jobs.jsonl")]
    else:
        policy, number = ("easy", 20_000) if kind == "mixed" else (kind, 5_000)
        (folder / "cluster.yaml").write_text(bench_mixed.recipe(220))
        made = bench_mixed.workload(220, float(rest) / 100, jobs or number)
        arguments = [str(folder / "cluster.yaml"), str(folder / "jobs.jsonl"), "--queue-policy", policy]
    save_workload(made, folder / "jobs.jsonl")
    return Inputs(arguments, _events(made))


def _events(workload: ss.Workload) -> list[tuple[float, float]]:
    return [(job.submit, job.runtime or 0) for job in workload.jobs]


def slurm_jobs(load: float, jobs: int) -> ss.Workload:
    """Return jobs that offer each partition the load: of its cores, on the gpu nodes of its gpus."""
    rng = np.random.default_rng(SEED)
    partition = rng.choice(["batch", "large", "gpu"], jobs, p=[0.7, 0.15, 0.15])
    cores = 2 ** rng.integers(0, 10, jobs)
    cores[partition == "gpu"] = 8 * 2 ** rng.integers(0, 5, int((partition == "gpu").sum()))
    whole = (partition != "gpu") & (rng.random(jobs) < 0.2)
    nodes = 2 ** rng.integers(0, 5, jobs)
    cores = np.where(whole, 64 * nodes, cores)
    share = np.array([MEMORY[name] for name in partition.tolist()]) * rng.choice([0.25, 0.5, 1], jobs)
    runtimes = np.clip(rng.lognormal(np.log(3_600), 1.3, jobs), 30, 80_000)
    area = {name: float((runtimes * cores)[partition == name].sum()) for name in NODES}
    horizon = area["batch"] / (load * NODES["batch"] * 64)
    for name in ("large", "gpu"):
        width = NODES[name] * (64 if name == "large" else 32)  # 8 cores beside each of 4 gpus
        mine = partition == name
        runtimes[mine] = np.clip(runtimes[mine] * load * width * horizon / area[name], 30, 86_000)
    runtimes = runtimes.astype(np.int64)
    factors = rng.choice([1.1, 1.5, 2, 4, 10], jobs)
    limits = np.minimum(np.ceil(runtimes * factors / 600).astype(np.int64) * 600, 86_400)
    debug = (partition == "batch") & (limits <= 3_600) & (rng.random(jobs) < 0.3)
    queue = np.where(debug, "debug", partition)
    submits = np.sort(rng.integers(0, int(horizon), jobs))
    users = rng.zipf(1.6, jobs) % 60
    made = []
    for at in range(jobs):
        memory = int(share[at])
        if whole[at]:
            shape = f"slot={nodes[at]}/node"
        elif partition[at] == "gpu":
            shape = f"slot={cores[at] // 8}/[core=8;gpu;memory={8 * memory}{{unit:MiB}}]"
        else:
            shape = f"slot={cores[at]}/[core;memory={memory}{{unit:MiB}}]"
        made.append(
            ss.Job(
                id=at + 1,
                submit=int(submits[at]),
                runtime=int(runtimes[at]),
                duration=int(limits[at]),
                jobspec=ss.Jobspec.from_shape(shape, duration=int(limits[at])),
                user=f"user{users[at]}",
                bank=f"account{users[at] % 9}",
                queue=str(queue[at]),
            )
        )
    return ss.Workload(jobs=tuple(made), name=f"generated site, {load:.0%}")


def process(python: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """Run `simsched run` and return its CPU seconds and its peak memory."""
    script = (
        "import resource, subprocess, sys;"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, done.returncode);"
        "print(done.stderr[-400:], file=sys.stderr) if done.returncode else None"
    )
    own = [str(Path(python).absolute()), "-m", "simsched"]
    command = [*own, "run", *arguments, "-o", str(folder / "run"), "--quiet"]
    # As in daily use, modules are compiled to bytecode once.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        capture_output=True, text=True, check=True, cwd=folder, env=environment,
    )  # fmt: skip
    seconds, peak, status = done.stdout.split()
    if status != "0":
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return {"seconds": float(seconds), "peak_mb": int(peak)}


def main() -> None:
    """Print a line for each case and Python."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--python", action="append", metavar="PATH", help="that has a simsched installed")
    parser.add_argument("--jobs", type=int, help="of each case")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows = []
    for case in args.cases or CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            made = inputs(case, folder, args.jobs)
            pythons, floor = args.python or [sys.executable], float("inf")
            least: dict[str, dict[str, Any]] = {}
            for _ in range(args.repeat):  # in turn, since the machine's speed changes
                for python in pythons:
                    floor = min(floor, *(bare_loop(made.events) for _ in range(3)))
                    found = process(python, made.arguments, folder)
                    least[python] = min(least.get(python, found), found, key=lambda row: row["seconds"])
            for python, found in least.items():
                row = {"case": case, "python": python, "jobs": len(made.events), **found}
                row["ratio"] = round(row["seconds"] / floor, 1)
                rows.append(row)
                print(
                    f"{case:20} {row['jobs']:>9,} jobs {row['seconds']:>8.2f} s {row['ratio']:>8.1f} x "
                    f"the bare loop, peak {row['peak_mb']} MB, {python}",
                    flush=True,
                )
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
