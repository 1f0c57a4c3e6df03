"""How long runs take on a mixed site: cores, memory and gpus, sockets, two kinds of nodes, constraints.

    python -m analysis.benchmarks.bench_mixed [CASE …] [--all] [--growth] [--jobs N] [--repeat N]

A case is ``NODES-LOAD-POLICY[-ORDER[-MATCH]]``, as in ``220-90-easy-wfp3-bestfit``. The default is a
selection of cases, `--all` runs the whole table, and `--growth` prints how the time per job grows with
the queue and with the nodes.

The site and the jobs are generated from a seed. Ten elevenths of the nodes have two sockets, 64 cores and
256 GiB, the others four gpus more. Half of the jobs request cores with memory, a fifth whole nodes, 15 %
gpus with cores and memory, and 15 % nodes divided into slots. Run times are log-normal, limits are above
them, and more jobs arrive by day and on working days. The arrival rate gives the cores the offered load,
and the run times of the gpu jobs are scaled until the gpus have it, too.

Each case is measured in this process beside a bare simpy loop over the same number of events, as in
`bench_run`; times are CPU seconds, the least of the repetitions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import simsched as ss
from analysis.benchmarks.bare_loop import bare_loop
from analysis.benchmarks.bench_run import timed
from analysis.benchmarks.measures import peak_mb
from simsched.simulation.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEED = 16
NODES, LOADS = (220, 2_200), (70, 90, 110)
POLICIES = ("fcfs", "easy", "conservative", "hybrid")
ORDERS = ("fifo", "wfp3", "fairshare")
MATCHES = ("first", "lonode", "bestfit")

JOBS = 30_000
JOBS_OF = {"conservative": 5_000, "hybrid": 5_000}
"""Policy → jobs of a run, where the table would take too long with all."""

QUICK = (
    *(f"{nodes}-{load}-{policy}" for nodes in NODES for load in (70, 90) for policy in ("fcfs", "easy")),
    *("220-110-easy", "220-70-conservative", "220-70-hybrid"),
    *("220-90-easy-wfp3", "220-90-easy-fairshare", "220-90-easy-fifo-lonode", "220-90-easy-fifo-bestfit"),
)

CORES, GPUS = 64, 4
DAY = 86_400
KINDS, SHARES = ("cores", "nodes", "gpus", "slots"), (0.5, 0.2, 0.15, 0.15)

LINE = (
    "{case:32} {jobs:>7,} jobs  {seconds:>7.2f} s  {jobs_per_second:>7,} jobs/s  {ratio:>6.1f} x bare loop  "
    "at most {waiting:>6,} waiting  peak {peak_mb} MB"
)


class Case(NamedTuple):
    """One cell of the table."""

    nodes: int
    load: int
    policy: str
    order: str = "fifo"
    match: str = "first"

    @classmethod
    def parse(cls, text: str) -> Case:
        """Return the case of a name."""
        nodes, load, *names = text.split("-")
        return cls(int(nodes), int(load), *names)

    def __str__(self) -> str:
        return "-".join(map(str, self))


def recipe(nodes: int) -> str:
    """Return the machine as YAML: an eleventh of its nodes have gpus, the others are in two partitions."""
    gpus = nodes // 11
    half = (nodes - gpus) // 2
    node = f"sockets: 2, cores: {CORES}, memory: 256 GiB"
    return f"""
groups:
  - {{name: short, count: {half}, {node}, properties: [cpu, short]}}
  - {{name: long, count: {nodes - gpus - half}, {node}, properties: [cpu, long]}}
  - {{name: gpu, count: {gpus}, {node}, gpus: {GPUS}, properties: [gpu]}}
"""


def site(nodes: int) -> ss.Cluster:
    """Return the machine of a number of nodes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "site.yaml"
        path.write_text(recipe(nodes))
        cluster = ss.load_cluster(path)
    assert cluster.index
    return cluster


def workload(nodes: int, load: float, jobs: int, backlog: int = 0) -> ss.Workload:
    """Return the jobs; the first `backlog` of them are submitted at second 0."""
    rng = np.random.default_rng(SEED)
    kinds = rng.choice(len(KINDS), jobs, p=SHARES)
    shapes = [_shape(KINDS[kind], rng) for kind in kinds.tolist()]
    runtimes = np.minimum(rng.lognormal(np.log(3_600), 1.3, jobs), 2 * DAY)
    on_gpus = kinds == KINDS.index("gpus")
    units = np.array([units for _, _, units in shapes])
    work = runtimes * units
    gpus = nodes // 11
    coming = np.arange(jobs) >= backlog
    horizon = float(work[coming & ~on_gpus].sum()) / (load * CORES * (nodes - gpus))
    runtimes[on_gpus] *= load * GPUS * gpus * horizon / float(work[coming & on_gpus].sum())
    runtimes = np.maximum(1, runtimes).astype(np.int64)
    durations = np.ceil(runtimes * rng.choice([1.05, 1.5, 2, 4, 10], jobs) / 900).astype(np.int64) * 900
    submits = _arrivals(jobs - backlog, horizon, rng)
    users = rng.zipf(1.6, jobs) % 40
    specs: dict[tuple[str, str | None, int], ss.Jobspec] = {}
    made = []
    for at in range(jobs):
        shape, partition, _ = shapes[at]
        key = shape, partition, int(durations[at])
        if key not in specs:
            specs[key] = ss.Jobspec.from_shape(shape, constraint=partition, duration=key[2])
        made.append(
            ss.Job(
                id=at + 1,
                submit=0 if at < backlog else submits[at - backlog],
                runtime=int(runtimes[at]),
                duration=key[2],
                jobspec=specs[key],
                user=f"user{users[at]}",
                bank=f"bank{users[at] % 7}",
            )
        )
    return ss.Workload(jobs=tuple(made), name=f"mixed site, {load:.0%}")


def _shape(kind: str, rng: np.random.Generator) -> tuple[str, str | None, int]:
    """Return a request, its partition, and its cores (on gpu nodes: its gpus)."""
    if kind == "cores":
        slots, memory = 2 ** int(rng.integers(0, 8)), 2 ** int(rng.integers(0, 4))
        partition = ("cpu", "short", "long", None)[rng.choice(4, p=[0.4, 0.25, 0.25, 0.1])]
        return f"slot={slots}/[core;memory={memory}{{unit:GB}}]", partition, slots
    if kind == "nodes":
        nodes = 2 ** int(rng.integers(0, 5))
        return f"slot={nodes}/node", ("cpu", "long")[rng.integers(2)], nodes * CORES
    if kind == "gpus":
        slots = 2 ** int(rng.integers(0, 4))
        return f"slot={slots}/[core=8;gpu;memory=32{{unit:GB}}]", "gpu", slots
    nodes = 2 ** int(rng.integers(0, 4))
    return f"node={nodes}/slot=8/[core=8;memory=16{{unit:GB}}]", ("cpu", "short")[rng.integers(2)], nodes * 64


def _arrivals(jobs: int, horizon: float, rng: np.random.Generator) -> list[int]:
    """Return submit times in seconds: a Poisson process over two weeks of days, nights and weekends.

    The rhythm is that of the whole run, however long: so machines of every size get queues alike.
    """
    at = rng.random(3 * jobs + 64)
    dense = (1 + 0.8 * np.sin(2 * np.pi * 14 * at)) * np.where(at * 14 % 7 < 5, 1.2, 0.5)
    at = np.sort(at[rng.random(len(at)) * 1.8 * 1.2 < dense][:jobs])
    found: list[int] = (at * horizon).astype(np.int64).tolist()
    return found


def measure(case: Case, jobs: int, repeat: int, backlog: int = 0) -> dict[str, Any]:
    """Return the figures of one case."""
    cluster, made = site(case.nodes), workload(case.nodes, case.load / 100, jobs, backlog)
    events = [(job.submit, job.runtime or 0) for job in made.jobs]
    options = {"order": case.order, "match_policy": case.match, "allocations": False}
    floor = ours = float("inf")
    results = []
    for _ in range(repeat):
        floor = min(floor, bare_loop(events))
        ours = min(ours, timed(lambda: results.append(simulate(cluster, made, case.policy, **options))))
    most, mean = _waiting(results[0].jobs)
    return {
        "case": str(case),
        "jobs": jobs,
        "seconds": round(ours, 3),
        "jobs_per_second": round(jobs / ours),
        "microseconds_per_job": round(ours / jobs * 1e6, 1),
        "ratio": round(ours / floor, 1),
        "waiting": most,
        "mean_waiting": mean,
        "peak_mb": peak_mb(),
    }


def _waiting(columns: Any) -> tuple[int, int]:
    """Return the greatest number of waiting jobs, and the mean at the submissions and starts."""
    submits, starts = np.asarray(columns["submit"], float), np.asarray(columns["start"], float)
    starts = starts[~np.isnan(starts)]
    times = np.concatenate([submits, starts])
    steps = np.concatenate([np.ones(len(submits), np.int64), np.full(len(starts), -1)])
    waiting = np.cumsum(steps[np.lexsort((-steps, times))])
    return int(waiting.max()), round(float(waiting.mean()))


def table(names: Iterable[str], jobs: int | None, repeat: int) -> list[dict[str, Any]]:
    """Measure the cases and print a line each."""
    rows = []
    for name in names:
        case = Case.parse(name)
        rows.append(measure(case, jobs or JOBS_OF.get(case.policy, JOBS), repeat))
        print(LINE.format(**rows[-1]), flush=True)
    return rows


def growth(jobs: int, repeat: int, policy: str) -> list[dict[str, Any]]:
    """Print how the time per job grows with the queue and with the nodes.

    More jobs arrive than the machine can run, so that the queue stays as long as it is at first, and longer.
    """
    rows = []
    print("| nodes | submitted at once | waiting, mean | µs a job | jobs/s |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    cases = [(220, backlog) for backlog in (10, 100, 1_000, 10_000)]
    cases += [(nodes, nodes + 100) for nodes in (110, 330, 1_100, 3_300, 11_000)]  # full, and some wait
    for nodes, backlog in cases:
        row = measure(Case(nodes, 110, policy), backlog + jobs, repeat, backlog)
        rows.append({**row, "nodes": nodes, "backlog": backlog})
        print(
            f"| {nodes:,} | {backlog:,} | {row['mean_waiting']:,} | {row['microseconds_per_job']:.0f} "
            f"| {row['jobs_per_second']:,} |",
            flush=True,
        )
    return rows


def every_case() -> Sequence[str]:
    """Return the names of all cells of the table."""
    return [str(Case(*cell)) for cell in product(NODES, LOADS, POLICIES, ORDERS, MATCHES)]


def main() -> None:
    """Print a line a case, or the tables of growth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="such as 220-90-easy-wfp3-bestfit")
    parser.add_argument("--all", action="store_true", help="the whole table; it takes hours")
    parser.add_argument("--growth", action="store_true", help="over the queue and the nodes, instead")
    parser.add_argument("--policy", default="easy", help="the queue policy of --growth")
    parser.add_argument("--jobs", type=int, help=f"default: {JOBS}, fewer where the policy plans")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    if args.growth:
        rows = growth(args.jobs or 5_000, args.repeat, args.policy)
    else:
        names = args.cases or (every_case() if args.all else QUICK)
        rows = table(names, args.jobs, args.repeat)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
