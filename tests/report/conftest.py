"""Run directories for tests: a small writer of the public layout, and random schedules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from simsched.report.columns import JOBS, TIMELINE

if TYPE_CHECKING:
    from pathlib import Path

SQL = {"text": "varchar", "category": "varchar", "int": "bigint", "float": "double", "bool": "boolean"}


class RunWriter:
    """Writes run directories as the public data contract says, by its own code."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(
        self,
        name: str,
        jobs: pd.DataFrame,
        timeline: pd.DataFrame | None = None,
        *,
        totals: dict[str, int] | None = None,
        records: list[dict[str, Any]] | None = None,
        nodes: pd.DataFrame | None = None,
        **meta: Any,
    ) -> Path:
        folder = self.root / name
        folder.mkdir()
        totals = totals or {"node": 4, "core": 16}
        timeline = timeline_of(jobs, totals) if timeline is None else timeline
        _parquet(jobs, {c.name: SQL[c.kind] for c in JOBS}, folder / "jobs.parquet")
        kinds = {c.name: SQL[c.kind] for c in TIMELINE}
        _parquet(timeline, {c: kinds.get(c, "bigint") for c in timeline.columns}, folder / "timeline.parquet")
        document = {
            "simsched": "0.1.0",
            "format": 1,
            "created": "2026-11-20T10:00:00Z",
            "complete": True,
            "seed": 0,
            "config": {"queue_policy": name, "match_policy": "first"},
            "inputs": [{"role": "workload", "name": "story.yaml", "sha256": "0" * 64}],
            "cluster": {"name": "toy", "targets": totals.get("node", 0), "totals": totals},
            "counts": {"jobs": len(jobs)},
            "wall_seconds": 0.5,
            "jobs_per_second": 2 * len(jobs),
        }
        (folder / "run.json").write_text(json.dumps({**document, **meta}))
        if nodes is not None:
            kinds = {"rank": "bigint", "host": "varchar", "up": "boolean", "total_core": "bigint"}
            places = {name: "varchar" for name in nodes if str(name).startswith("in_")}
            _parquet(nodes, kinds | places, folder / "nodes.parquet")
        if records is not None:
            lines = [json.dumps(record) for record in records]
            (folder / "allocations.jsonl").write_text("".join(f"{line}\n" for line in lines))
        return folder


def _parquet(frame: pd.DataFrame, kinds: dict[str, str], file: Path) -> None:
    columns = [f'cast("{c}" as {kind}) as "{c}"' for c, kind in kinds.items() if c in frame]
    with duckdb.connect() as con:
        con.register("frame", frame)
        con.sql(f"select {', '.join(columns)} from frame").write_parquet(str(file))


def jobs_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A jobs frame from rows that say only what matters; the rest is what it mostly is."""
    table = []
    for number, row in enumerate(rows, start=1):
        full = {
            "id": str(number),
            "user": "ann",
            "queue": "batch",
            "urgency": 16,
            "submit": 0.0,
            "start": np.nan,
            "end": np.nan,
            "duration": np.inf,
            "nodes": 1,
            "cores": 1,
            "gpus": 0,
            "slots": 1,
            "procs": float(row.get("cores", 1)),
            "result": "COMPLETED",
            "reason": None,
            "backfilled": False,
            "shape": "slot=1/core",
        }
        full.update(row)
        full.setdefault("eligible", full["submit"])
        full.setdefault("runtime", full["end"] - full["start"])
        table.append(full)
    return pd.DataFrame(table, columns=[c.name for c in JOBS])


def timeline_of(jobs: pd.DataFrame, totals: dict[str, int]) -> pd.DataFrame:
    """The timeline that the jobs imply, counted naively at every instant."""
    ran = jobs[jobs["start"].notna()]
    times = sorted(set(ran["submit"]) | set(ran["start"]) | set(ran["end"].dropna()))
    submit, start, end = (ran[c].to_numpy(dtype=float) for c in ("submit", "start", "end"))
    rows = []
    for t in times:
        running, queued = (start <= t) & (t < end), (submit <= t) & (t < start)
        row: dict[str, float] = {"time": t}
        for kind, total in totals.items():
            held = min(int(ran[f"{kind}s"][running].sum()), total)
            row |= {f"free_{kind}": total - held, f"used_{kind}": held, f"down_{kind}": 0}
        row["queued_jobs"] = int(queued.sum())
        row["queued_cores"] = int(ran["cores"][queued].sum())
        row["running_jobs"] = int(running.sum())
        rows.append(row)
    each = [f"{state}_{kind}" for kind in totals for state in ("free", "used", "down")]
    return pd.DataFrame(rows, columns=["time", *each, "queued_jobs", "queued_cores", "running_jobs"])


def random_schedule(seed: int, count: int = 60, cores: int = 16) -> pd.DataFrame:
    """A valid schedule of random jobs on one pool of cores: each starts when it fits, in a random order."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 2000, count)).astype(float)
    free_at = np.zeros(cores)
    rows = []
    for i in range(count):
        wide, length = int(rng.integers(1, cores + 1)), float(rng.integers(0, 400))
        chosen = np.argsort(free_at, kind="stable")[:wide]
        start = max(submit[i], float(free_at[chosen].max()))
        free_at[chosen] = start + length
        rows.append(
            {
                "submit": submit[i],
                "start": start,
                "end": start + length,
                "cores": wide,
                "nodes": -(-wide // 4),
                "duration": length * float(rng.uniform(1, 4)) if rng.random() < 0.9 else np.inf,
                "user": str(rng.choice(["ann", "bob", "cid"])),
                "queue": str(rng.choice(["batch", "debug"])),
                "backfilled": bool(rng.random() < 0.3),
                "result": str(rng.choice(["COMPLETED", "TIMEOUT", "FAILED"], p=[0.8, 0.1, 0.1])),
            }
        )
    return jobs_of(rows)


def records_of(jobs: pd.DataFrame, nodes: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Alloc and release records for jobs, on ranks drawn at random: format only, not a valid packing."""
    rng = np.random.default_rng(seed)
    records = []
    for job in jobs[jobs["start"].notna()].itertuples():
        low = int(rng.integers(0, nodes - min(job.nodes, nodes) + 1))
        high = low + min(job.nodes, nodes) - 1
        ranks = f"{low}-{high}" if high > low else str(low)
        hosts = f"n[{low}-{high}]" if high > low else f"n{low}"
        lite = [{"rank": ranks, "children": {"core": "0-3"}}]
        document = {"version": 1, "execution": {"R_lite": lite, "nodelist": [hosts], "starttime": job.start}}
        for event, time in (("alloc", job.start), ("release", job.end)):
            records.append({"id": job.id, "event": event, "time": time, "R": document})
    return sorted(records, key=lambda r: r["time"])


@pytest.fixture
def write_run(tmp_path: Path) -> RunWriter:
    """Writes ``tmp_path/NAME`` as a run directory."""
    return RunWriter(tmp_path)


@pytest.fixture(scope="session")
def story() -> pd.DataFrame:
    """Five jobs on 4 nodes of 4 cores, hand-worked in the tests.

    a: 0-100 on 16 cores; b waits 90 s, runs 10 s on 8; c is backfilled beside b; d never
    fits; e is dropped.
    """
    return jobs_of(
        [
            {"id": "a", "submit": 0, "start": 0, "end": 100, "cores": 16, "nodes": 4, "duration": 200},
            {"id": "b", "submit": 10, "start": 100, "end": 110, "cores": 8, "nodes": 2, "duration": 10,
             "user": "bob", "queue": "debug"},
            {"id": "c", "submit": 20, "start": 100, "end": 140, "cores": 4, "nodes": 1, "duration": 40,
             "user": "bob", "result": "TIMEOUT", "backfilled": True},
            {"id": "d", "submit": 30, "result": "INFEASIBLE", "reason": "needs 5 nodes of 4", "procs": 20,
             "cores": 0, "nodes": 0},
            {"id": "e", "submit": 40, "result": "DROPPED", "reason": "0 processors", "cores": 0, "nodes": 0,
             "procs": np.nan},
        ]
    )  # fmt: skip


@pytest.fixture(scope="session")
def make_jobs():
    """`jobs_of`: a jobs frame from rows that say only what matters."""
    return jobs_of


@pytest.fixture(scope="session")
def make_timeline():
    """`timeline_of`: the timeline that jobs imply."""
    return timeline_of


@pytest.fixture(scope="session")
def make_schedule():
    """`random_schedule`: random jobs in a valid schedule."""
    return random_schedule


@pytest.fixture(scope="session")
def make_records():
    """`records_of`: allocation records for jobs."""
    return records_of


@pytest.fixture(scope="session")
def writer_in():
    """Makes a writer of run directories below a given directory."""
    return RunWriter
