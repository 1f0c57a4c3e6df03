"""How long one match takes, by machine, request and policy, while the machine fills up.

    python -m analysis.benchmarks.bench_match_table [--nodes N …] [--kinds KIND …] [--quick] [--json FILE]
    python -m analysis.benchmarks.bench_match_table --profile        # where the time goes, 16,384 nodes

Machines have 64 cores and 4 gpus a node: *flat* as an R has it, *sockets* with two sockets of 32 cores and
2 gpus in each.  The same request is matched and claimed until the machine is full; where that takes more
than `MOST` matches, `BURSTS` bursts of them are measured at even steps of the filling, and what lies between
is filled by one large request of the same content (and one more match that is not counted).

Every figure is the median in microseconds of CPU time of one `Matcher.match` with its claim.  *full* is the
no (`Busy`) on the full machine, *never* the no (`Infeasible`) to more copies than the machine ever holds,
*too large* the no to copies that no node can host; each asked for the first time (first policy).
*bare* is the baseline of the same process: first fit in NumPy, one array of free units a resource over all
nodes, which are read to the end every time; no unit ids, no claims of vertices, nothing but whole numbers.

Each machine is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import json
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

import simsched as ss

REPOSITORY = Path(__file__).resolve().parents[2]
NODES = (1_024, 4_096, 16_384, 131_072)
KINDS = ("flat", "sockets")
POLICIES = ("first", "lonode", "bestfit", "locality")
CORES, GPUS = 64, 4
MOST = 4_096
MEASURED, BURSTS = 1_024, 64


@dataclass(frozen=True)
class Case:
    """A request with its count open (``{}``), how many copies one node hosts, and what the baseline does.

    `bare` is (way, count, cores, gpus): units on any nodes, distinct nodes, or idle nodes; `large` is the
    request of copies that no node hosts.
    """

    shape: str
    unit: int
    per_node: int
    bare: tuple
    large: str
    kinds: tuple = KINDS

    def of(self, times):
        """The request asking for `times` as much."""
        return ss.Jobspec.from_shape(self.shape.format(self.unit * times))

    @property
    def name(self):
        return self.shape.format(self.unit)


CASES = (
    Case("slot={}/core", 1, 64, ("units", 1, 1, 0), "slot=1/core={}"),
    Case("slot={}/[core=2;gpu]", 16, 4, ("units", 16, 2, 1), "slot=16/[core={};gpu]"),
    Case("node={}/slot=4/[core=2;gpu]", 4, 1, ("nodes", 4, 8, 4), "node=4/slot=4/[core={};gpu]"),
    Case("slot={}/node", 4, 1, ("idle", 4, CORES, GPUS), "slot=4/node/core={}"),
    Case(
        "slot={}/node/socket=2/core=16",
        4,
        1,
        ("idle", 4, CORES, GPUS),
        "slot=4/node/socket=2/core={}",
        ("sockets",),
    ),
)


# --- machines ------------------------------------------------------------------------------------------


def machine(nodes, kind):
    """The cluster of so many equal nodes."""
    sockets = {"sockets": 2} if kind == "sockets" else {}
    group = {"name": "node", "count": nodes, "cores": CORES, "gpus": GPUS, **sockets}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recipe.yaml"
        path.write_text(json.dumps({"name": f"{kind}{nodes}", "groups": [group]}))
        return ss.load_cluster(path)


def plan(total):
    """How many matches are measured and then skipped, a burst at a time."""
    if total <= MOST:
        return [(total, 0)]
    burst = MEASURED // BURSTS
    edges = [total * number // BURSTS for number in range(BURSTS + 1)]
    return [(burst, after - before - burst) for before, after in pairwise(edges)]


def fill(total, match, skip):
    """Fill a machine by `match` (one request) and `skip` (many at once); return the seconds of each."""
    times = []
    for measured, skipped in plan(total):
        for _ in range(measured):
            began = time.process_time()
            match()
            times.append(time.process_time() - began)
        if skipped > 1:
            skip(skipped - 1)
            match()
        elif skipped:
            match()
    return times


# --- what is measured ----------------------------------------------------------------------------------


def median_us(times):
    return round(statistics.median(times) * 1e6, 1)


def with_policy(cluster, case, policy):
    """The median of one match under a policy, and the matcher when the machine is full."""
    matcher = ss.Matcher(cluster, policy=policy)
    jobspec = case.of(1)
    matcher.satisfiable(jobspec)

    def match():
        if not matcher.match(jobspec):
            raise AssertionError("the machine was meant to hold all of them")

    def skip(times):
        if not matcher.match(case.of(times)):
            raise AssertionError("the machine was meant to hold all of them")

    total = len(cluster.index) * case.per_node // case.unit
    times = fill(total, match, skip)
    if matcher.match(jobspec):
        raise AssertionError("the machine was meant to be full")
    return median_us(times), matcher


def negatives(matcher, case):
    """Medians of the no on a full machine, to more than there is, and to what no node can host."""
    nodes = len(matcher.index)
    full, never, large = [], [], []
    for more in range(1, 51):
        for times, jobspec, answer in (
            (full, case.of(1 + more), ss.Busy),
            (never, case.of(nodes * case.per_node + more), ss.Infeasible),
            (large, ss.Jobspec.from_shape(case.large.format(CORES + more)), ss.Infeasible),
        ):
            began = time.process_time()
            found = matcher.match(jobspec)
            times.append(time.process_time() - began)
            assert isinstance(found, answer), f"{jobspec.to_shape()} is {found.status}"
    return median_us(full), median_us(never), median_us(large)


class Bare:
    """First fit over arrays of free cores and gpus, one entry a node."""

    def __init__(self, nodes):
        self.cores = np.full(nodes, CORES)
        self.gpus = np.full(nodes, GPUS)

    def match(self, way, count, cores, gpus):
        if way == "units":
            fits = self.cores if cores == 1 else self.cores // cores
            if gpus:
                fits = np.minimum(fits, self.gpus if gpus == 1 else self.gpus // gpus)
            last = int(np.searchsorted(sums := np.cumsum(fits), count))
            taken = fits[: last + 1].copy()
            taken[last] -= sums[last] - count
            nodes = np.flatnonzero(taken)
            self.cores[nodes] -= cores * taken[nodes]
            self.gpus[nodes] -= gpus * taken[nodes]
            return
        nodes = np.flatnonzero((self.cores >= cores) & (self.gpus >= gpus))[:count]
        if len(nodes) < count:
            raise AssertionError("the machine was meant to hold all of them")
        self.cores[nodes] -= cores
        self.gpus[nodes] -= gpus


def bare(nodes, case):
    """The median of one match of the baseline."""
    machine = Bare(nodes)
    way, count, cores, gpus = case.bare
    return median_us(
        fill(
            nodes * case.per_node // case.unit,
            lambda: machine.match(way, count, cores, gpus),
            lambda times: machine.match(way, count * times, cores, gpus),
        )
    )


def measure(nodes, kind, policies):
    """All figures of one machine, in this process."""
    cluster = machine(nodes, kind)
    rows = []
    gc.collect()
    gc.freeze()
    gc.disable()
    for case in CASES:
        if kind in case.kinds:
            row = {"nodes": nodes, "kind": kind, "request": case.name, "bare": bare(nodes, case)}
            for policy in policies:
                row[policy], matcher = with_policy(cluster, case, policy)
                if policy == policies[0]:
                    row["full"], row["never"], row["too large"] = negatives(matcher, case)
                del matcher
                gc.collect()
            rows.append(row)
    return rows


# --- where the time goes -------------------------------------------------------------------------------


#: The modules of the engine by what they do; NumPy's time is its caller's.
STAGES = {
    "asking": ("matcher", "request", "outcome", "choose", "selection"),
    "counting": ("capacity", "classes", "kinds"),
    "choosing": ("descend", "policy", "locality", "reach", "index"),
    "units": ("draws", "masks", "units"),
    "claiming": ("allocate",),
}
STAGE_OF = {module: stage for stage, modules in STAGES.items() for module in modules}


def profile(nodes, kinds):
    """Print the shares of time by stage for each request and policy."""
    print(f"| machine | request | policy | {' | '.join(STAGES)} |\n|{'---|' * (len(STAGES) + 3)}")
    for kind in kinds:
        cluster = machine(nodes, kind)
        for case in CASES:
            for policy in POLICIES if kind in case.kinds else ():
                found = shares(cluster, case, policy)
                figures = " | ".join(f"{found[stage]:.0f} %" for stage in STAGES)
                print(f"| {nodes:,} {kind} | `{case.name}` | {policy} | {figures} |", flush=True)


def shares(cluster, case, policy):
    """Where the time of 512 matches on a half-full machine goes, in percent, by stage."""
    matcher = ss.Matcher(cluster, policy=policy)
    jobspec = case.of(1)
    half = len(cluster.index) * case.per_node // case.unit // 2
    matcher.match(case.of(half))
    matcher.match(jobspec)
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    for _ in range(512):
        matcher.match(jobspec)
    profiler.disable()
    stats = pstats.Stats(profiler).stats
    spent = defaultdict(float)
    for (file, _, _), (_, _, own, _, callers) in stats.items():
        stage = STAGE_OF.get(Path(file).stem)
        if stage is not None:
            spent[stage] += own
        for caller, (_, _, part, _) in callers.items() if stage is None else ():
            spent[stage_of(caller, stats)] += part
    total = sum(spent.values())
    return {stage: 100 * spent[stage] / total for stage in STAGES}


def stage_of(function, stats):
    """The stage of the engine's module that called this function, through whatever is in between."""
    seen = set()
    while function not in seen:
        seen.add(function)
        stage = STAGE_OF.get(Path(function[0]).stem)
        if stage is not None:
            return stage
        callers = stats[function][4] if function in stats else {}
        function = max(callers, key=lambda caller: callers[caller][2], default=function)
    return "asking"


# --- the table -----------------------------------------------------------------------------------------


def measured(nodes, kind, policies):
    """The figures of one machine from a fresh process."""
    command = [sys.executable, "-m", "analysis.benchmarks.bench_match_table", "--one", str(nodes), kind]
    done = subprocess.run([*command, *policies], check=True, capture_output=True, text=True, cwd=REPOSITORY)
    return json.loads(done.stdout)


def table(sizes, kinds, policies):
    """Print the table as Markdown, a line at a time, and return its rows."""
    head = ["machine", "request", "bare", *policies, "full", "never", "too large"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    found = []
    for kind in kinds:
        for nodes in sizes:
            for row in measured(nodes, kind, policies):
                found.append(row)
                figures = [f"{row[name]:,.0f}" for name in head[2:]]
                line = [f"{nodes:,} {kind}", f"`{row['request']}`", *figures]
                print(f"| {' | '.join(line)} |", flush=True)
    return found


def rows():
    """Yield the lines of ``make bench``, of 16,384 nodes with sockets alone: what, measured, limit."""
    for row in measured(16_384, "sockets", POLICIES):
        what = f"one match of `{row['request']}` on 16,384 nodes with sockets"
        figures = " / ".join(f"{row[name]:.0f}" for name in POLICIES)
        yield f"{what}: {', '.join(POLICIES)}", f"{figures} µs median", "150 / 150 / 1,000 / 1,000 µs"
        figures = " / ".join(f"{row[name]:.0f}" for name in ("full", "never", "too large"))
        yield f"{what}, and there is no: full, never, too large", f"{figures} µs median", "200 µs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--quick", action="store_true", help="1,024 and 16,384 nodes with sockets alone")
    parser.add_argument("--profile", action="store_true", help="where the time goes, on 16,384 nodes")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        nodes, kind, *policies = args.one
        print(json.dumps(measure(int(nodes), kind, policies)))
    elif args.profile:
        profile(16_384, args.kinds)
    else:
        sizes, kinds = ((1_024, 16_384), ("sockets",)) if args.quick else (args.nodes, args.kinds)
        found = table(sizes, kinds, args.policies)
        if args.json:
            Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
