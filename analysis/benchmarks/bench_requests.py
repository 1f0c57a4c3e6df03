"""How fast requests are read: ``python -m analysis.benchmarks.bench_requests`` prints a table.

CPU seconds of this process, the best of three runs.  No text occurs twice where it says
"distinct", so that no cache helps; the inputs are made here.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.jobspec.shape import _parse, format_shape, parse_shape
from simsched.formats.request_files import load_jobspecs
from simsched.formats.rfc.constraint import parse_constraint
from simsched.formats.text.yaml_text import to_yaml
from simsched.formats.validate import validate_file

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = 100_000
LINES = 100_000
DOCUMENTS = 5_000
STARTS = 5


def best(function: Callable[[], object], runs: int = 3) -> float:
    """CPU seconds of the fastest of some runs."""
    seconds = []
    for _ in range(runs):
        gc.collect()
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def shapes() -> list[str]:
    """Distinct shapes of the size of slot=10/[core=2;gpu]."""
    return [f"slot={i + 1}/[core={i % 7 + 1};gpu]" for i in range(SHAPES)]


def jobspec(i: int, resources: int) -> str:
    """A jobspec as one line; `resources` different requests, a command of its own."""
    job = Jobspec.from_shape(
        f"slot={i % resources + 1}/[core={i % 7 + 1};gpu]",
        duration=i,
        command=["app", str(i)],
        queue="batch",
        name=f"job{i}",
    )
    system = {"cwd": "/home/user", "environment": {"HOME": "/home/user", "PATH": "/bin:/usr/bin"}}
    return json.dumps(job.with_system(**system).to_dict())


def row(what: str, count: int, seconds: float) -> None:
    """One line of the table."""
    print(f"| {what} | {count:,} | {seconds:.2f} | {count / seconds:,.0f} |", flush=True)


def startup(*arguments: str) -> float:
    """Wall seconds of a command, the best of some runs."""
    best_wall = float("inf")
    for _ in range(STARTS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "simsched", *arguments], check=True, capture_output=True)
        best_wall = min(best_wall, time.perf_counter() - start)
    return best_wall


def main() -> None:
    """Measure, and print the table as Markdown."""
    print("| what | count | CPU s | per s |\n|---|---|---|---|")
    texts = shapes()
    row("shapes parsed, distinct", SHAPES, best(lambda: [_parse(text) for text in texts]))
    same = ["slot=10/[core=2;gpu]"] * SHAPES
    row("shapes parsed, one text", SHAPES, best(lambda: [parse_shape(text) for text in same]))
    lists = [_parse(text) for text in texts]
    row("shapes written", SHAPES, best(lambda: [format_shape(resources) for resources in lists]))
    jobs = range(SHAPES)
    row(
        "jobspecs from one shape, distinct durations",
        SHAPES,
        best(lambda: [Jobspec.from_shape("slot=10/[core=2;gpu]", duration=i) for i in jobs]),
    )
    with tempfile.TemporaryDirectory() as folder:
        files(Path(folder))
    constraint = "ssd and not (host:node[0-99] or rank:0-7)"
    row(
        "constraints parsed, distinct",
        10_000,
        best(lambda: [parse_constraint(f"{constraint} p{i}") for i in range(10_000)]),
    )
    print(f"\n`simsched shape 'slot=10/[core=2;gpu]'`: {startup('shape', 'slot=10/[core=2;gpu]'):.3f} s wall")


def files(folder: Path) -> None:
    """Measure the reading of files."""
    path = folder / "jobs.jsonl"
    for resources, what in ((500, "500 different requests"), (LINES, "all requests distinct")):
        path.write_text("\n".join(jobspec(i, resources) for i in range(LINES)))
        row(f"JSON Lines checked, {what}", LINES, best(lambda: validate_file(path)))
        row(f"JSON Lines read as jobspecs, {what}", LINES, best(lambda: load_jobspecs(path)))
    documents = folder / "jobs.yaml"
    documents.write_text("---\n".join(to_yaml(json.loads(jobspec(i, 500))) for i in range(DOCUMENTS)))
    row("YAML documents read as jobspecs", DOCUMENTS, best(lambda: load_jobspecs(documents), 1))


if __name__ == "__main__":
    main()
