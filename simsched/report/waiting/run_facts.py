"""`RunFacts`: what causes of waits and limits read of a run: its tables, its records, and its jobs."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from simsched.errors import RunError
from simsched.match.requests.compile import compile_request
from simsched.report.columns import HELD
from simsched.report.data.run_outages import outages_in
from simsched.report.waiting.machine_replay import MachineReplay
from simsched.simulation.licences.licence_pools import read_licences, with_licences, with_requests
from simsched.simulation.record.allocation_reader import read_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.graph.cluster import Cluster
    from simsched.match.requests.request import Request
    from simsched.report.data.tables import RunTables
    from simsched.simulation.outages.outages import Outage
    from simsched.simulation.record.allocation_reader import AllocationRecord
    from simsched.workload.job import Job, Workload

COLUMNS = ("id", "user", "queue", "shape", "result", "reason", "urgency", "submit", "eligible", "start",
           "end", "duration", "backfilled", "limit_group", *HELD.values())  # fmt: skip
"""Columns of the jobs that answers are made of."""


class RunFacts:
    """The facts on a run.

    Parameters
    ----------
    inputs : the cluster and the workload of the run; None: only its tables are available.

    Attributes
    ----------
    table : columns of the jobs as arrays; `until` is the end, or inf.
    names : the cause of each code.
    """

    def __init__(self, run: RunTables, inputs: tuple[Cluster, Workload] | None) -> None:
        self.run = run
        self.config: Mapping[str, Any] = run.config
        self.table = run.job_arrays(COLUMNS)
        self.table["until"] = np.nan_to_num(self.table["end"], nan=inf)
        self.names: list[str] = []
        self._codes: dict[str, int] = {}
        self.cluster: Cluster | None = None
        if inputs is not None:
            licences = read_licences(self.config.get("licenses"), "run.json: licenses")
            self.cluster = with_licences(inputs[0], licences)
            self.index = self.cluster.index
            requested, _ = with_requests(inputs[1].jobs, licences)
            self.jobs: Mapping[str, Job] = {str(job.id): job for job in requested}
            self.whole = bool(run.meta.get("whole_nodes", False))
            self._requests: dict[int, Request] = {}

    def code(self, cause: str) -> int:
        """Return the code of a cause."""
        if cause not in self._codes:
            self._codes[cause] = len(self.names)
            self.names.append(cause)
        return self._codes[cause]

    @cached_property
    def records(self) -> list[AllocationRecord]:
        """The records of ``allocations.jsonl``."""
        assert self.run.folder is not None
        return read_records(self.run.folder / "allocations.jsonl")

    @cached_property
    def outages(self) -> tuple[Outage, ...]:
        """The outages of the run."""
        return outages_in(self.run.folder, self.config)

    def replay(self) -> MachineReplay:
        """Return the machine at the beginning of the run."""
        assert self.cluster is not None
        return MachineReplay(self.cluster, self.records, self.request_of, self.outages)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Id → row; a record that was ignored may have the id of another job."""
        ids, read = self.table["id"], self.table["result"] != "DROPPED"
        return {ids[row]: row for row in (*np.flatnonzero(~read).tolist(), *np.flatnonzero(read).tolist())}

    def job(self, row: int) -> Job:
        """Return the job of a row; RunError if the workload lacks it."""
        name = self.table["id"][row]
        if name not in self.jobs:
            raise RunError(f"the workload of the run has no job {name!r}", where=self.run.name)
        return self.jobs[name]

    def request_of(self, name: str) -> Request:
        """Return the compiled request of a job."""
        jobspec = self.jobs[name].jobspec
        if id(jobspec) not in self._requests:
            self._requests[id(jobspec)] = compile_request(jobspec, self.index, alone=self.whole)
        return self._requests[id(jobspec)]

    @cached_property
    def attempts(self) -> list[tuple[int, float, float]]:
        """Row, start and end of each time that a job ran; of a job that was queued again, all of them."""
        ran = np.flatnonzero(np.isfinite(self.table["start"]))
        columns = (ran, self.table["start"][ran], self.table["until"][ran])
        found = list(zip(*(column.tolist() for column in columns), strict=True))
        return found + [(row, *span) for row, spans in self.earlier.items() for span in spans]

    @cached_property
    def earlier(self) -> dict[int, list[tuple[float, float]]]:
        """Row → starts and ends of the times that a job ran before it was queued again."""
        if not (self.config.get("preemption") or self.config.get("failures") or self.config.get("outages")
                or any("preemptible-after" in job.jobspec.system for job in self.jobs.values())):  # fmt: skip
            return {}
        found: dict[int, list[tuple[float, float]]] = {}
        begun: dict[int, float] = {}
        for record in self.records:
            row = self.row_of.get(str(record.id))
            if row is None:
                continue
            if record.event == "alloc":
                begun[row] = record.time
            elif row in begun:
                start = begun.pop(row)
                if not start >= self.table["start"][row]:  # NaN: it never ran again
                    found.setdefault(row, []).append((start, record.time))
        return found
