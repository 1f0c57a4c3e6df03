"""The logs of the gallery: which are at hand, how they are read, and their machines."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

import simsched as ss
from simsched.report.metrics.metrics import measured
from simsched.workload.transforms.steps import apply_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

TRACES = "SIMSCHED_TRACES"
NOT_FOUND = "not found"
"""In the place of a published number whose text could not be read. No table has a number from memory."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log: its file in the folder of traces, or a bundled name, and the processors of its machine."""

    name: str
    file: str
    processors: int

    def path(self) -> Path | None:
        """Return the file; None if it is not at hand."""
        folder = os.environ.get(TRACES)
        found = Path(folder, self.file) if folder else None
        return found if found is not None and found.is_file() else None


LOGS = {
    log.name: log
    for log in (
        Log("KTH-SP2", "KTH-SP2-1996-2.1-cln.swf.gz", 100),
        Log("SDSC-SP2", "SDSC-SP2-1998-4.2-cln.swf.gz", 128),
        Log("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", 240),
        Log("CEA-Curie", "CEA-Curie-2011-2.1-cln.swf.gz", 80_640),
    )
}
SMALL = Log("month", "month", 240)
"""The bundled workload of quick runs, on the machine for which it was made."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a page is made: `quick` takes a few jobs of a bundled workload; `output` is the folder."""

    quick: bool
    output: Path

    def logs(self, *names: str) -> list[Log]:
        """Return the logs of these names that are at hand; in a quick run a bundled one."""
        return [SMALL] if self.quick else [LOGS[name] for name in names if LOGS[name].path()]

    def few(self, values: Sequence, quick: int) -> Sequence:
        """Return the values, in a quick run the first of them."""
        return values[:quick] if self.quick else values

    def workload(self, log: Log, jobs: int = 300) -> ss.Workload:
        """Return the jobs of a log that ran and have a limit, none longer than its limit.

        In a quick run these are the first `jobs` of the bundled workload.
        """
        source, limit = (log.file, jobs) if self.quick else (log.path(), None)
        read = ss.load_workload(source, limit=limit)
        ran = (job for job in read.jobs if job.runtime and job.duration)
        return read.with_jobs(map(_cut, ran), "jobs that ran, cut at their limits")


def _cut(job: ss.Job) -> ss.Job:
    return msgspec.structs.replace(job, runtime=min(job.runtime, job.duration))


def first_year(workload: ss.Workload) -> ss.Workload:
    """Return the jobs submitted in the first 365 days."""
    return apply_steps(workload, ["slice(0, 365d)"], np.random.default_rng(0))


def missing(*names: str) -> str:
    """Return a sentence about those of the logs of a paper that are left out; empty if none is."""
    absent = [name for name in names if name not in LOGS]
    unread = [name for name in names if name in LOGS and not LOGS[name].path()]
    told = []
    if absent:
        told.append(f"Left out, because the gallery has no such log: {', '.join(absent)}.")
    if unread:
        told.append(
            f"Left out, because the folder that {TRACES} names has no such file: {', '.join(unread)}."
        )
    return " ".join(told)


def machine(processors: int, folder: Path) -> ss.Cluster:
    """Return a machine of equal processors, any of which may work together.

    A small machine is made of nodes with one processor. A large one is one node, because processors are
    only counted: no job starts at another time.
    """
    nodes = processors if processors <= 1000 else 1
    file = folder / f"machine-{processors}.yaml"
    cores = processors // nodes
    file.write_text(f"groups: [{{name: node, count: {nodes}, cores: {cores}}}]\n", encoding="utf-8")
    return ss.load_cluster(file)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Means of a run over its jobs, in seconds, and the bounded slowdown (10 s)."""

    wait: float
    response: float
    slowdown: float
    longest: float
    jobs: object

    @classmethod
    def of(cls, cluster: ss.Cluster, workload: ss.Workload, *, skip: int = 0, **options) -> Outcome:
        """Simulate, and measure all jobs but the first `skip`."""
        run = ss.simulate(cluster, workload, allocations=False, **options)
        frame = run.jobs.sort_values("submit", kind="stable").iloc[skip:] if skip else run.jobs
        done = measured(frame)
        means = (float(done[name].mean()) for name in ("wait", "turnaround", "bounded_slowdown"))
        return cls(*means, float(done["wait"].max()), frame)
