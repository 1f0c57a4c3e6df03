"""A run as SWF 2.2: the workload with the waits, allocated processors and results of the simulation."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from simsched.formats.jobspec.jobspec import Jobspec
from simsched.formats.rfc.clock import clock_header
from simsched.workload.job import Job, Workload
from simsched.workload.save import write_swf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.report.data.tables import RunTables

STATUS = {"COMPLETED": "COMPLETED", "TIMEOUT": "TIMEOUT", "FAILED": "FAILED"}
"""Result → status; jobs with any other result have 5, cancelled."""


def swf_lines(run: RunTables) -> Iterator[str]:
    """Yield the lines of the file.

    A job that never ran has run time -1 and status 5.  Processors are cores, or nodes in a run without
    cores.  Users, queues and names that are not numbers are listed in the header, and so is the date of
    second 0 where it is known.
    """
    jobs = run.jobs[run.jobs["submit"].notna()]
    columns = ["id", "submit", "start", "end", "duration", "cores", "nodes", "procs", "user", "queue",
               "name", "result"]  # fmt: skip
    rows = jobs[columns].astype(object).where(jobs[columns].notna(), None).to_numpy().tolist()
    made = tuple(_job(dict(zip(columns, row, strict=True))) for row in rows)
    workload = Workload(jobs=made, name=run.name, total_records=len(made), header=_header(run))
    policy = run.config.get("queue_policy", "?")
    note = f"simulated by simsched {run.meta.get('simsched', '')} under the queue policy {policy}"
    for line in write_swf(workload, notes=[note, "waits are those of the simulation"]):
        yield line + "\n"


def _header(run: RunTables) -> dict[str, str]:
    totals, clock = run.totals, run.clock
    nodes = {"MaxNodes": str(totals["node"])} if "node" in totals else {}
    found = {
        "Computer": run.cluster_name,
        **nodes,
        "MaxProcs": str(totals.get("core") or totals.get("node") or 0),
    }
    return (
        found if clock is None else found | clock_header(clock.origin, None if clock.assumed else clock.zone)
    )


@lru_cache(maxsize=4096)
def _request(procs: int) -> Jobspec:
    return Jobspec.from_shape(f"slot={max(procs, 1)}/core")


def _job(row: dict[str, Any]) -> Job:
    ran = row["start"] is not None and row["end"] is not None
    procs = int(row["cores"] or row["nodes"] or row["procs"] or 0) or None
    name = row["id"]
    return Job(
        id=int(name) if str(name).isdecimal() else str(name),
        submit=_whole(row["submit"]),
        jobspec=_request(procs or 1),
        runtime=_whole(row["end"] - row["start"]) if ran else -1,
        duration=None if row["duration"] in (None, float("inf")) else _whole(row["duration"]),
        wait=_whole(row["start"] - row["submit"]) if row["start"] is not None else None,
        procs=procs,
        user=_text(row["user"]),
        queue=_text(row["queue"]),
        name=_text(row["name"]),
        status=STATUS.get(str(row["result"]), "CANCELED"),
    )


def _whole(seconds: float) -> int | float:
    return int(seconds) if float(seconds).is_integer() else float(seconds)


def _text(value: Any) -> str | None:
    return None if value is None or pd.isna(value) else str(value)
