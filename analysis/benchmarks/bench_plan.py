"""How long policies that plan take on machines that are not flat, or crowded, against a bare simpy loop.

    python -m analysis.benchmarks.bench_plan [CASE …] [--repeat N]

The inputs are bundled.  `mixed` gives the jobs of `month-gpu` four shapes in turn, so that no count
decides.
"""

from __future__ import annotations

import argparse
from itertools import cycle

import msgspec

import simsched as ss
from analysis.benchmarks.bare_loop import bare_loop
from analysis.benchmarks.bench_run import run_case, timed
from simsched.workload.transforms.transforms import scale_arrivals

SHAPES = ("slot={n}/[core=16;gpu]", "slot={n}/core=8", "slot={few}/[core=32;gpu=2]", "node={few}")

LINE = "{name:22} {jobs:>7,} jobs  {seconds:>7.2f} s  {each:>7.0f} µs a job  {ratio:>7.1f} x bare loop"

#: case → cluster, workload, records read at most, arrivals so many times as dense, mixed, queue policy
CASES = {
    "gpu-easy": ("gpu1152", "month-gpu", None, 1, False, "easy"),
    "gpu-conservative": ("gpu1152", "month-gpu", 1_000, 1, False, "conservative"),
    "gpu-hybrid": ("gpu1152", "month-gpu", 10_000, 1, False, "hybrid"),
    "mixed-easy": ("gpu1152", "month-gpu", 4_000, 2, True, "easy"),
    "mixed-hybrid": ("gpu1152", "month-gpu", 1_000, 2, True, "hybrid"),
    "mixed-conservative": ("gpu1152", "month-gpu", 700, 2, True, "conservative"),
    "flat-conservative": ("flat240", "month", 5_000, 1.25, False, "conservative"),
    "flat-whole-month": ("flat240", "month", None, 1.25, False, "conservative"),
}


def mixed(workload: ss.Workload) -> ss.Workload:
    """The workload with four shapes in turn instead of one; equal requests share one jobspec."""
    specs: dict[tuple[str, float | None], ss.Jobspec] = {}
    jobs = []
    for job, template in zip(workload.jobs, cycle(SHAPES), strict=False):
        key = template.format(n=job.procs, few=max(1, (job.procs or 1) // 4)), job.duration
        if key not in specs:
            specs[key] = ss.Jobspec.from_shape(key[0], duration=job.duration)
        jobs.append(msgspec.structs.replace(job, jobspec=specs[key]))
    return workload.with_jobs(jobs, "four shapes in turn")


def measure(name: str, repeat: int) -> dict[str, float | str]:
    """One case: the least CPU seconds of some runs, and their ratio to the bare loop."""
    machine, trace, limit, dense, mix, policy = CASES[name]
    cluster, workload = ss.load_cluster(machine), ss.load_workload(trace, limit=limit)
    assert cluster.index
    workload = mixed(workload) if mix else workload
    workload = scale_arrivals(workload, dense) if dense != 1 else workload
    events = [(job.submit, job.runtime or 0) for job in workload.jobs]
    jobs, floor, ours = len(events), float("inf"), float("inf")
    for _ in range(repeat):
        floor = min(floor, bare_loop(events))
        ours = min(ours, timed(lambda: run_case(cluster, workload, policy, written=False)))
    return {"name": name, "jobs": jobs, "seconds": ours, "each": ours / jobs * 1e6, "ratio": ours / floor}


def main() -> None:
    """Print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    for name in args.cases or CASES:
        print(LINE.format(**measure(name, args.repeat)), flush=True)


if __name__ == "__main__":
    main()
