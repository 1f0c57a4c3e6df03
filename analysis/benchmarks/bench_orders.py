"""How long EASY takes under each job order, beside fifo, and how that grows with the queue.

    python -m analysis.benchmarks.bench_orders [--growth] [--orders ORDER …] [--repeat N]

Without `--growth` the traces are KTH-SP2 and SDSC-SP2 (as in `bench_run`). With it, some jobs are submitted
at second 0 to a flat machine that is then kept busy. Times are CPU seconds, the least of the
repetitions, and the orders alternate.
"""

from __future__ import annotations

import argparse

import numpy as np

import simsched as ss
from analysis.benchmarks.bench_run import KTH, SDSC, TRACES, machine, timed
from simsched.simulation.simulate import simulate

ORDERS = ("fifo", "wfp3", "unicef", "fairshare", "multifactor", "f1", "sjf")
#: The priority of the order multifactor: Slurm's, with fair tree, recomputed every five minutes.
PRIORITY = {
    "preset": "slurm",
    "lines": {"PriorityWeightAge": 1000, "PriorityWeightFairshare": 10_000, "PriorityWeightJobSize": 500},
}
BACKLOGS = (10, 100, 1_000, 10_000)
JOBS, NODES, SEED = 2_000, 256, 16


def crowded(backlog: int) -> ss.Workload:
    """Return jobs for a flat machine; the first `backlog` of them are submitted at second 0."""
    rng = np.random.default_rng(SEED)
    jobs = backlog + JOBS
    sizes = 2 ** rng.integers(0, 7, jobs)
    runtimes = np.maximum(1, rng.lognormal(6, 1, jobs)).astype(int)
    durations = (runtimes * rng.choice([1.0, 1.5, 3.0], jobs)).astype(int)
    work = float((sizes * runtimes)[backlog:].sum())
    submits = np.zeros(jobs, dtype=int)
    submits[backlog:] = np.sort(rng.integers(1, int(work / NODES) + 2, JOBS))
    users = rng.integers(0, 20, jobs)
    specs = {size: ss.Jobspec.from_shape(f"slot={size}/core") for size in np.unique(sizes).tolist()}
    columns = (submits.tolist(), runtimes.tolist(), durations.tolist(), sizes.tolist(), users.tolist())
    made = tuple(
        ss.Job(id=at, submit=submit, runtime=run, duration=asked, jobspec=specs[size], user=f"user{user}")
        for at, (submit, run, asked, size, user) in enumerate(zip(*columns, strict=True), start=1)
    )
    return ss.Workload(jobs=made, name=f"{backlog} at once")


def seconds(cluster: ss.Cluster, workload: ss.Workload, orders: list[str], repeat: int) -> dict[str, float]:
    """Return order → the least CPU seconds of a run under EASY."""
    found = dict.fromkeys(orders, float("inf"))
    for _ in range(repeat):
        for order in orders:
            spent = timed(
                lambda name=order: simulate(
                    cluster, workload, "easy", order=name, priority=PRIORITY, allocations=False
                )
            )
            found[order] = min(found[order], spent)
    return found


def main() -> None:
    """Print a table as Markdown, a line at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--growth", action="store_true", help="over the number of waiting jobs, instead")
    parser.add_argument("--orders", nargs="+", default=list(ORDERS), metavar="ORDER")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print(f"| | {' | '.join(args.orders)} |\n|---|{'---|' * len(args.orders)}", flush=True)
    if args.growth:
        cluster = machine(NODES, 1)
        for backlog in BACKLOGS:
            found = seconds(cluster, crowded(backlog), args.orders, args.repeat)
            each = [f"{found[order] / (backlog + JOBS) * 1e6:.0f} µs" for order in args.orders]
            print(f"| {backlog:,} submitted at once | {' | '.join(each)} |", flush=True)
        return
    for file, nodes, cores in (KTH, SDSC):
        workload = ss.load_workload(TRACES / file, map="slot={procs}/core", procs_per_node=cores)
        found = seconds(machine(nodes, cores), workload, args.orders, args.repeat)
        first = found[args.orders[0]]
        each = [f"{spent:.2f} s ({spent / first:.1f} ×)" for spent in found.values()]
        print(f"| {file.partition('-19')[0]} | {' | '.join(each)} |", flush=True)


if __name__ == "__main__":
    main()
