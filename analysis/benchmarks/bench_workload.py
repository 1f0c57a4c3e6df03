"""How fast workloads are read: ``python -m analysis.benchmarks.bench_workload`` prints a table.

Each figure is taken in a process of its own, CPU seconds and peak memory of that process.
The big inputs are made here, from a seed, in a temporary folder; the traces of the Parallel
Workloads Archive are measured where ``SIMSCHED_TRACES`` (or ``../shared/traces``) has them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.benchmarks.measures import print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("SIMSCHED_TRACES") or REPOSITORY.parent / "shared" / "traces")
SWF_JOBS = 300_000
SACCT_LINES = 1_000_000
TABLE_ROWS = 10_000_000
SEED = 17


def make_swf(path: Path, jobs: int) -> None:
    """Write jobs of the Lublin-Feitelson model as SWF."""
    import numpy as np

    from simsched.workload.models.lublin import LublinWorkload
    from simsched.workload.save import save_workload

    model = LublinWorkload(machine=1024, jobs=jobs, load=0.9, max_estimate=86400, users=300)
    save_workload(model.make(np.random.default_rng(SEED)), path, to="swf")


def make_sacct(path: Path, lines: int) -> None:
    """Write lines such as ``sacct -P`` prints: three in ten are steps, one job in twenty was cancelled."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    head = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqNodes|ReqCPUS|ReqTRES|ReqMem|"
    submit = 1_700_000_000 + np.cumsum(rng.exponential(20, lines)).astype(int)
    wait, run = (rng.exponential(mean, lines).astype(int) for mean in (900, 4000))
    cpus, user = 2 ** rng.integers(0, 9, lines), rng.integers(0, 400, lines)
    state = rng.choice(
        ["COMPLETED", "FAILED", "CANCELLED by 501", "TIMEOUT"], lines, p=[0.8, 0.1, 0.05, 0.05]
    )
    step = rng.random(lines) < 0.3
    with path.open("w") as stream:
        stream.write(head + "Partition|Account|User|JobName|State\n")
        for n, (at, waited, took, cpu, who, end, is_step) in enumerate(
            zip(*(x.tolist() for x in (submit, wait, run, cpus, user, state, step)), strict=True)
        ):
            nodes, begin = -(-cpu // 64), at + waited
            tres = f"billing={cpu},cpu={cpu},mem={4 * cpu}G,node={nodes}"
            times = f"{clock(at)}|{clock(begin)}|{clock(begin + took)}|{took}|{60 * (1 + n % 24)}"
            who_and_how = f"p{who % 3}|a{who % 30}|u{who}|job{n % 500}|{end}"
            id_ = f"{1000 + n}{'.batch' if is_step else ''}"
            stream.write(f"{id_}|{times}|{nodes}|{cpu}|{tres}|{4 * cpu}G|{who_and_how}\n")


def make_table(path: Path, rows: int) -> None:
    """Write a Parquet file with the columns of the preset pm100; DuckDB makes it from a hash of the row."""
    import duckdb

    def at(seconds: str) -> str:
        return f"timestamp '2020-05-01' + to_seconds(cast({seconds} as bigint))"

    duckdb.sql(f"""select i as job_id, 'u' || hash(i) % 500 as user_id, {at("i * 3 + hash(i + 1) % 10")}
        as submit_time, submit_time as eligible_time, {at("i * 3 + 20 + hash(i + 2) % 4000")} as start_time,
        {at("i * 3 + 5000 + hash(i + 3) % 40000")} as end_time, 60 * (1 + hash(i + 4) % 24) as time_limit,
        1 + hash(i + 5) % 64 as num_nodes_alloc, 128 * num_nodes_alloc as num_cores_alloc,
        4 * (hash(i + 6) % 3) as num_gpus_alloc, 8 * (1 + hash(i + 7) % 30) as mem_alloc,
        'p' || hash(i) % 4 as partition, if(hash(i + 8) % 9 = 0, 'FAILED', 'COMPLETED') as job_state
        from range({rows}) t(i)""").write_parquet(str(path))


def clock(seconds: int) -> str:
    """A time as Slurm writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def measure(path: str) -> dict[str, float]:
    """Read one workload in this process."""
    from simsched.workload.load import load_workload

    began = time.process_time()
    workload = load_workload(path)
    seconds = time.process_time() - began
    assert len(workload) + sum(workload.skipped_counts.values()) == workload.total_records
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"s": round(seconds, 2), "mb": peak, "records": workload.total_records, "jobs": len(workload)}


def alone(*arguments: object) -> str:
    """What this module prints for these arguments in a process of its own.

    Inputs are made that way too: a child's peak memory begins at what its parent has.
    """
    command = [sys.executable, "-m", "analysis.benchmarks.bench_workload", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY).stdout


def rows() -> Iterator[tuple[str, str, str]]:
    """Make each input, measure it, and yield the lines of the table: what, measured, limit."""
    with tempfile.TemporaryDirectory() as folder:
        swf, sacct = Path(folder) / "a.swf", Path(folder) / "a.sacct"
        alone("swf", swf)
        yield f"read an SWF of {SWF_JOBS:,} jobs", figures(swf), "3 s"
        alone("sacct", sacct)
        yield f"read a sacct file of {SACCT_LINES:,} lines", figures(sacct), "20 s, 2,000 MB"
        table = Path(folder) / "a.parquet"
        alone("table", table)
        yield f"read a Parquet table of {TABLE_ROWS:,} jobs", figures(table), "60 s, 6,000 MB"
    for path in sorted(TRACES.glob("*.swf.gz")) if TRACES.is_dir() else ():
        yield f"read {path.name}", figures(path), "3 s per 300,000 jobs"


def figures(path: Path) -> str:
    """What a fresh process needs for one workload, in words."""
    found: dict[str, float] = json.loads(alone("read", path))
    return f"{found['s']} s, {found['mb']:,} MB ({found['records']:,} records, {found['jobs']:,} jobs)"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["read", path]:
            print(json.dumps(measure(path)))
        case ["swf", path]:
            make_swf(Path(path), SWF_JOBS)
        case ["table", path]:
            make_table(Path(path), TABLE_ROWS)
        case ["sacct", path]:
            make_sacct(Path(path), SACCT_LINES)
        case _:
            print_table(rows())
