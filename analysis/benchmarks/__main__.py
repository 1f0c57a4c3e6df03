"""``make bench``: measure each figure in its own process and print the table of docs/benchmarks.md."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import chain
from typing import Any

from analysis.benchmarks import bench_feasible, bench_graph, bench_match_table, bench_report, bench_workload
from analysis.benchmarks.bench_run import TRACES
from analysis.benchmarks.measures import REPOSITORY, SHAPES


def measured(name: str, *arguments: str) -> dict[str, Any]:
    """One figure from a fresh process."""
    command = [sys.executable, "-m", "analysis.benchmarks.measures", name, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


#: What the table says → the case of `bench_run`.
RUNS = {
    "FCFS on HPC2N, tables in memory": "hpc2n-fcfs",
    "EASY on HPC2N, tables in memory": "hpc2n-easy",
    "EASY on HPC2N, everything written": "hpc2n-easy-written",
    "EASY on SDSC-SP2, tables in memory": "sdsc-easy",
    "EASY on SDSC-SP2, everything written": "sdsc-easy-written",
    "conservative on 10,000 records of SDSC-SP2": "sdsc-conservative",
    "EASY on CEA Curie as whole nodes, everything written": "curie-nodes-easy-written",
    "EASY on CEA Curie as cores, everything written": "curie-cores-easy-written",
}


def main() -> None:
    """Print the table as Markdown, a line at a time."""
    print("| what | measured | at most |\n|---|---|---|", flush=True)
    for what, case in RUNS.items() if TRACES.is_dir() else ():
        figures = measured("run", case)
        row(what, run_text(figures), f"{figures['allowed']} ×")
    for shape in SHAPES:
        row(
            f"one match of `{shape}` on 16,384 nodes, claim included",
            match_text(measured("match", shape)),
            "100 µs",
        )
    for line in chain(bench_match_table.rows(), bench_feasible.rows()):
        row(*line)
    for line in chain(bench_graph.rows(), bench_workload.rows(), bench_report.rows()):
        row(*line)
    row("`simsched --help`, wall time", f"{measured('startup', '--help')['s']} s", "0.25 s")
    row(
        "`simsched shape 'slot=4/core'`, wall time",
        f"{measured('startup', 'shape', 'slot=4/core')['s']} s",
        "0.25 s",
    )


def run_text(figures: dict[str, Any]) -> str:
    """A run's figures in words."""
    return (
        f"{figures['ratio']} × the bare loop ({figures['seconds']:.1f} s for {figures['jobs']:,} jobs, "
        f"{figures['jobs_per_second']:,} jobs/s), {figures['peak_mb']} MB"
    )


def match_text(figures: dict[str, Any]) -> str:
    """A match's figures in words."""
    return f"{figures['median_us']} µs median, {figures['p95_us']} µs p95"


def row(what: str, text: str, limit: str) -> None:
    """One line of the table."""
    print(f"| {what} | {text} | {limit} |", flush=True)


if __name__ == "__main__":
    main()
