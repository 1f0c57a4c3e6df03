"""``make bench``: measure everything, each figure in a process of its own, and print the README's table."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from analysis.benchmarks.measures import REPOSITORY, SHAPES, TRACES


def measured(name: str, *arguments: str) -> dict[str, Any]:
    """One figure from a fresh process."""
    command = [sys.executable, "-m", "analysis.benchmarks.measures", name, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Print the table as Markdown, a line at a time."""
    print("| what | measured | limit |\n|---|---|---|", flush=True)
    if TRACES.is_dir():
        for trace in ("SDSC-SP2", "HPC2N"):
            for write, limit in (("nothing", 20), ("everything", 30)):
                row(
                    f"EASY on {trace}, writing {write}",
                    run_text(measured("run", trace, "easy", write)),
                    f"{limit} ×",
                )
    for shape in SHAPES:
        row(f"one match of `{shape}` on 16,384 nodes", match_text(measured("match", shape)), "100 µs")
    loaded = measured("load")
    row("load 16,384 nodes from R, with index", f"{loaded['s']} s, {loaded['mb']} MB", "1 s")
    row("`simsched --help`", f"{measured('startup', '--help')['s']} s", "0.25 s")
    row("`simsched shape 'slot=4/core'`", f"{measured('startup', 'shape', 'slot=4/core')['s']} s", "0.25 s")


def run_text(figures: dict[str, Any]) -> str:
    """A run's figures in words."""
    return (
        f"{figures['ratio']} × the bare loop ({figures['s']} s for {figures['jobs']:,} jobs, "
        f"{figures['jobs_per_s']:,} jobs/s), {figures['mb']} MB"
    )


def match_text(figures: dict[str, Any]) -> str:
    """A match's figures in words."""
    return f"{figures['median_us']} µs median, {figures['p95_us']} µs p95"


def row(what: str, text: str, limit: str) -> None:
    """One line of the table."""
    print(f"| {what} | {text} | {limit} |", flush=True)


if __name__ == "__main__":
    main()
