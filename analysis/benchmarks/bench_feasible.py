"""How fast ``simsched feasible`` answers 100,000 jobspecs: ``python -m analysis.benchmarks.bench_feasible``.

Mixed V1 jobspecs (slots and nodes of slots, cores and gpus, some with a constraint) against the bundled
machine of 1,152 nodes × 64 cores × 4 gpus, from one JSON Lines file: 1,000 different requests as a log
has them, or no two alike; about one in twelve can never run.  CPU seconds of the whole command.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.benchmarks.measures import print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBSPECS = 100_000
KINDS = {"1,000 different requests": 1_000, "no two alike": JOBSPECS}
FORMATS = ("table", "text", "json")
NODES, CORES = 1_152, 64


def resources(number: int, rng: random.Random) -> list[dict[str, Any]]:
    """The resources of request `number`, unlike those of any other."""
    cores, nodes = divmod(number // 2, NODES)  # together with its kind they tell the number
    too_large = rng.random() < 1 / 12
    content = [{"type": "core", "count": cores + 1 + (CORES if too_large else 0)}]
    if rng.random() < 0.4:
        content.append({"type": "gpu", "count": 1})
    slot = {"type": "slot", "label": "task", "count": 1, "with": content}
    if number % 2:
        return [{**slot, "count": nodes + 1}]
    return [{"type": "node", "count": nodes + 1, "with": [slot]}]


def write(path: Path, different: int) -> None:
    """Write the file of jobspecs."""
    rng = random.Random(1)
    lines = []
    for number in range(different):
        system: dict[str, Any] = {"duration": 3600.0}
        if number % 10 == 0:
            system["constraints"] = {"ranks": [f"0-{NODES - 1 - number % 7}"]}
        tasks = [{"command": ["app"], "slot": "task", "count": {"per_slot": 1}}]
        document = {"version": 1, "resources": resources(number, rng), "tasks": tasks}
        lines.append(json.dumps({**document, "attributes": {"system": system}}))
    path.write_text("\n".join(lines * (JOBSPECS // different)) + "\n")


def seconds(path: Path, form: str) -> tuple[float, int]:
    """CPU seconds of the command, and how many requests it said never to."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "simsched", "feasible", "gpu1152", str(path), "--format", form]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout.count("never")


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield the lines of ``make bench``: what, measured, limit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.jsonl"
        for kind, different in KINDS.items():
            write(path, different)
            for form in FORMATS:
                spent, never = seconds(path, form)
                what = f"feasible: {JOBSPECS:,} V1 jobspecs on 1,152 nodes, {kind}, as {form}"
                yield what, f"{spent:.1f} s ({never:,} never)", "10 s"


if __name__ == "__main__":
    print_table(rows())
