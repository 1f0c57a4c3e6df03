"""How long runs take under the rules of production sites: Slurm's backfill, fair tree, and limits.

    python -m analysis.benchmarks.bench_production TABLE [--jobs N] [--repeat N]

``slurm``: a made-up site is imported from its slurm.conf: 160 nodes of 64 cores, 16 with four gpus more, a
partition of all nodes and one of the gpu nodes, multifactor priority with fair tree, a backfill pass at most
each 30 s that tests at most 500 jobs. The jobs offer 105 % of the cores. With `--backlog N` the first N jobs
are submitted at second 0, so that the queue is long from the beginning, and `--until T` ends the run. With
`--policy` another policy plans the same jobs in the same order.

``fair-tree``: SDSC-SP2 under EASY and multifactor with fair tree, its users in one account and in nine,
beside fifo.

``limits``: SDSC-SP2 under EASY and fifo with limits that never bind, and with limits of running jobs per
user. A limit changes the schedule and the length of the queue, so the mean wait and the time per scheduling
pass are stated, too.

``kinds``: the same with a limit of each kind per user, none of which is ever reached.

Times are CPU seconds, the least of the repetitions, and the runs that are compared alternate.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import simsched as ss
from analysis.benchmarks.bench_orders import PRIORITY
from analysis.benchmarks.bench_run import SDSC, TRACES, machine, timed
from simsched.simulation.limits.limit_kinds import KINDS
from simsched.simulation.options.run_config import from_document
from simsched.simulation.simulate import simulate

if TYPE_CHECKING:
    from simsched.site.site import Site

SEED = 18
RULES = """
ClusterName=made-up
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityMaxAge=7-0
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=500
PriorityWeightPartition=1000
"""
"""What sites have in common: cores, memory and gpus are counted, and multifactor priority with fair tree."""
SLURM_CONF = f"""{RULES}
SchedulerParameters=bf_interval=30,bf_window=2880,bf_resolution=300,bf_max_job_test=500
NodeName=c[001-144] Sockets=2 CoresPerSocket=32 RealMemory=256000
NodeName=g[01-16] Sockets=2 CoresPerSocket=32 RealMemory=512000 Gres=gpu:a100:4
PartitionName=batch Nodes=ALL Default=YES MaxTime=2-00:00:00 PriorityJobFactor=1
PartitionName=gpu Nodes=g[01-16] MaxTime=1-00:00:00 PriorityJobFactor=2
"""
CORES, GPUS = 160 * 64, 16 * 4
LOAD = 1.05
POLICIES = {
    "slurm": None,
    "selective": {"threshold": 3.0},
    "slack": {"factor": 1.0},
    "conservative": {"compress": "replan"},
}
"""Policy → its options; None: those of the site."""
SCOPES = ("user", "account", "queue")
LIMITS: dict[str, list[dict[str, Any]]] = {
    "no limits": [],
    "1,000 running jobs per user": [{"each": "user", "running-jobs": 1_000}],
    "100,000 cores per user, account and queue": [{"each": each, "cores": 100_000} for each in SCOPES],
    "8 running jobs per user": [{"each": "user", "running-jobs": 8}],
    "2 running jobs per user": [{"each": "user", "running-jobs": 2}],
}
"""Name of a case → its limits; the second and the third never bind."""
MOST = {"duration": "5000d"}
"""Kind of limit → a value that no job reaches, if it is no number."""


def site() -> Site:
    """Return the made-up site, imported from its slurm.conf."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slurm.conf"
        path.write_text(SLURM_CONF)
        return ss.import_site(path)


def offered(jobs: int, backlog: int = 0) -> ss.Workload:
    """Return jobs that offer 105 % of the cores; a seventh are gpu jobs. `backlog` jobs come at second 0."""
    rng = np.random.default_rng(SEED)
    wants_gpus = rng.random(jobs) < 1 / 7
    cores = np.where(wants_gpus, 8 * 2 ** rng.integers(0, 4, jobs), 2 ** rng.integers(0, 10, jobs))
    memory = rng.choice([1_000, 2_000, 4_000], jobs)
    runtimes = np.clip(rng.lognormal(np.log(3_000), 1.3, jobs), 30, 86_000)
    work = runtimes * cores
    # The gpu jobs take a third of the gpus' time.
    horizon = float(work[~wants_gpus].sum()) / (LOAD * CORES)
    gpu_seconds = float((runtimes * cores / 8)[wants_gpus].sum())
    runtimes[wants_gpus] = np.clip(
        runtimes[wants_gpus] * min(1.0, 0.9 * GPUS * horizon / gpu_seconds), 30, 86_000
    )
    runtimes = runtimes.astype(np.int64)
    limits = np.minimum(
        np.ceil(runtimes * rng.choice([1.1, 1.5, 2, 4, 10], jobs) / 600).astype(int) * 600, 86_400
    )
    submits = np.sort(rng.integers(0, int(horizon), jobs))
    submits = np.maximum(submits - submits[backlog], 0) if backlog else submits
    users = rng.zipf(1.6, jobs) % 60
    made = []
    specs: dict[tuple[int, int, bool, int], ss.Jobspec] = {}
    rows = zip(
        submits.tolist(),
        runtimes.tolist(),
        limits.tolist(),
        cores.tolist(),
        memory.tolist(),
        users.tolist(),
        wants_gpus.tolist(),
        strict=True,
    )
    for at, (submit, run, limit, number, each, user, gpu) in enumerate(rows):
        key = number, each, gpu, limit
        if key not in specs:
            slot = (
                f"slot={number // 8}/[core=8;gpu;memory={8 * each}{{unit:MiB}}]"
                if gpu
                else f"slot={number}/[core;memory={each}{{unit:MiB}}]"
            )
            specs[key] = ss.Jobspec.from_shape(slot, duration=limit)
        made.append(
            ss.Job(
                id=at + 1,
                submit=submit,
                runtime=run,
                duration=limit,
                jobspec=specs[key],
                user=f"user{user}",
                bank=f"account{user % 9}",
                queue="gpu" if gpu else "batch",
            )
        )
    return ss.Workload(jobs=tuple(made), name="made-up site")


def slurm(args: argparse.Namespace) -> None:
    """Print the time of a run of the site."""
    made = site()
    config = dict(made.config)
    if POLICIES[args.policy] is not None:
        config |= {"queue-policy": args.policy, "policy-options": POLICIES[args.policy]}
    options = dict(from_document(config))
    jobs = offered(args.jobs or 19_000, args.backlog)
    results: list[Any] = []
    spent = min(
        timed(
            lambda: results.append(
                simulate(made.cluster, jobs, allocations=False, until=args.until, **options)
            )
        )
        for _ in range(args.repeat)
    )
    starts = np.asarray(results[0].jobs["start"], float)
    waits = (starts - np.asarray(results[0].jobs["submit"], float))[np.isfinite(starts)]
    print(
        f"{args.policy}: {spent:.1f} s, {len(waits):,} jobs started, mean wait {waits.mean():,.0f} s",
        flush=True,
    )


def trace(args: argparse.Namespace) -> tuple[ss.Cluster, ss.Workload]:
    """Return SDSC-SP2 and its machine."""
    file, nodes, cores = SDSC
    limit = args.jobs
    return machine(nodes, cores), ss.load_workload(
        TRACES / file, map="slot={procs}/core", procs_per_node=cores, limit=limit
    )


def compared(cluster: ss.Cluster, jobs: ss.Workload, cases: dict[str, dict[str, Any]], repeat: int) -> None:
    """Print a table row per case, with its ratio to the first."""
    spent = dict.fromkeys(cases, float("inf"))
    passes: dict[str, int] = {}
    waits: dict[str, float] = {}
    for _ in range(repeat):
        for name, options in cases.items():
            results: list[Any] = []
            seconds = timed(
                lambda options=options, results=results: results.append(
                    simulate(cluster, jobs, "easy", allocations=False, **options)
                )
            )
            spent[name] = min(spent[name], seconds)
            columns = results[0].jobs
            starts, submits = (np.asarray(columns[key], float) for key in ("start", "submit"))
            ends = starts + np.asarray(columns["runtime"], float)
            # There is at most one pass at each instant at which a job is submitted or ends.
            passes[name] = len(np.unique(np.concatenate([submits, ends[np.isfinite(ends)]])))
            waits[name] = float(np.nanmean(starts - submits))
    first = next(iter(spent.values()))
    print("| | CPU | ratio | per pass | mean wait |\n|---|---|---|---|---|", flush=True)
    for name, seconds in spent.items():
        each = seconds / passes[name] * 1e6
        print(
            f"| {name} | {seconds:.2f} s | {seconds / first:.2f} × | {each:.1f} µs | {waits[name]:,.0f} s |"
        )


def fair_tree(args: argparse.Namespace) -> None:
    """Print fifo and multifactor, with users in one account and in nine."""
    cluster, jobs = trace(args)
    users = sorted({str(job.user) for job in jobs.jobs})
    rows = [{"account": f"account{at % 9}", "user": user} for at, user in enumerate(users)]
    order = {"order": "multifactor"}
    cases: dict[str, dict[str, Any]] = {
        "fifo": {},
        "one account": {**order, "priority": PRIORITY},
        "nine accounts": {**order, "priority": {**PRIORITY, "accounts": rows}},
    }
    compared(cluster, jobs, cases, args.repeat)


def limits(args: argparse.Namespace) -> None:
    """Print runs without limits, with limits that never bind, and with limits of running jobs per user."""
    cluster, jobs = trace(args)
    compared(cluster, jobs, {name: {"limits": rules} for name, rules in LIMITS.items()}, args.repeat)


def kinds(args: argparse.Namespace) -> None:
    """Print runs without limits, and with one limit of each kind that no job reaches."""
    cluster, jobs = trace(args)
    rules = {kind: [{"each": "user", kind: MOST.get(kind, 10**9)}] for kind in KINDS}
    cases = {"no limits": [], **rules}
    compared(cluster, jobs, {name: {"limits": each} for name, each in cases.items()}, args.repeat)


TABLES = {"slurm": slurm, "fair-tree": fair_tree, "limits": limits, "kinds": kinds}


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--policy", choices=POLICIES, default="slurm", help="the policy of the table slurm")
    parser.add_argument("--jobs", type=int, help="the first jobs only")
    parser.add_argument("--backlog", type=int, default=0)
    parser.add_argument("--until", type=float)
    parser.add_argument("--repeat", type=int, default=1)
    args = parser.parse_args()
    TABLES[args.table](args)


if __name__ == "__main__":
    main()
