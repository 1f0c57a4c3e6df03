"""Made-up but complete sites: the configuration of a centre, and the log of its jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLURM_CONF = """\
# Valley, a cluster that does not exist
ClusterName=valley
SlurmctldHost=head1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
SchedulerType=sched/backfill

NodeName=DEFAULT Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 State=UNKNOWN
NodeName=c[001-096] RealMemory=256000 Feature=rome,ib Weight=1
NodeName=g[01-12] RealMemory=512000 Gres=gpu:a100:4 Feature=milan,ib Weight=10
PartitionName=batch Nodes=c[001-096] Default=YES MaxTime=3-00:00:00 DefaultTime=01:00:00 State=UP
PartitionName=gpu Nodes=g[01-12] MaxTime=1-00:00:00 DefaultTime=02:00:00 MaxNodes=8 State=UP
"""

FLUX_RESOURCES = """\
[resource]
exclude = "ridge0"
[[resource.config]]
hosts = "ridge[0-64]"
cores = "0-31"
[[resource.config]]
hosts = "ridge[57-64]"
gpus = "0-3"
properties = ["gpu"]
[[resource.config]]
hosts = "ridge[1-56]"
properties = ["batch"]
"""

FLUX_QUEUES = """\
[policy]
limits.duration = "24h"
[policy.jobspec.defaults.system]
queue = "batch"
duration = "30m"

[queues.batch]
requires = ["batch"]

[queues.gpu]
requires = ["gpu"]
policy.limits.duration = "8h"

[sched-fluxion-qmanager]
queue-policy = "easy"
"""

SACCT = (
    "JobID|JobIDRaw|JobName|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|"
    "ReqNodes|NNodes|ReqCPUS|ReqMem|ReqTRES|ExitCode"
)
BEGIN = 1_767_571_200  # 2026-01-05T00:00:00, a Monday


def slurm_site(folder: Path, lines: int, seed: int = 1) -> int:
    """Write ``slurm.conf`` and ``jobs.sacct`` with about this many lines; return the number of jobs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "slurm.conf").write_text(SLURM_CONF)
    jobs, rows = 0, [SACCT]
    for job in _records(np.random.default_rng(seed), nodes=96, cores=128):
        if len(rows) >= lines:
            break
        jobs += not job["id"].endswith("+1")  # the second part of a heterogeneous job
        rows += _sacct_rows(job)
    (folder / "jobs.sacct").write_text("\n".join(rows) + "\n")
    return jobs


def flux_site(folder: Path, jobs: int, seed: int = 2) -> None:
    """Write ``resource.toml``, ``queues.toml`` and ``jobs.json`` (flux jobs -a --json)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "resource.toml").write_text(FLUX_RESOURCES)
    (folder / "system.toml").write_text(FLUX_QUEUES)
    records = _records(np.random.default_rng(seed), nodes=56, cores=32)
    rows = [_flux_row(job) for job, _ in zip(records, range(jobs), strict=False)]
    (folder / "jobs.json").write_text(json.dumps({"jobs": rows}))


def _records(rng: np.random.Generator, *, nodes: int, cores: int) -> Iterator[dict[str, Any]]:
    """Yield jobs for ever: single ones, arrays of up to 20, and heterogeneous ones of two parts."""
    number, at = 100_000, float(BEGIN)
    while True:
        at += rng.exponential(40)
        gpu = rng.random() < 0.15
        kind = rng.choice(["single", "array", "het"], p=[0.9, 0.07, 0.03])
        parts = {"single": 1, "array": int(rng.integers(2, 21)), "het": 2}[str(kind)]
        wide = int(min(nodes // 4, 2 ** rng.integers(0, 5))) if rng.random() < 0.2 and not gpu else 1
        whole = wide > 1 or rng.random() < 0.1
        procs = wide * cores if whole else int(2 ** rng.integers(0, 6))
        run = int(min(rng.lognormal(6.5, 1.5), 80_000)) + 1
        limit = int(-(-run * rng.uniform(1.05, 6) // 60)) if rng.random() > 0.1 else None
        first = number
        for part in range(parts):
            wait = int(rng.exponential(600)) if rng.random() < 0.7 else 0
            mark = {"single": "", "array": f"_{part + 1}", "het": f"+{part}"}[str(kind)]
            yield {
                "id": f"{first}{mark}", "raw": number, "submit": int(at), "start": int(at) + wait, "run": run,
                "limit": limit, "nodes": 1 if gpu else wide, "procs": procs if not gpu else 16,
                "gpus": int(rng.integers(1, 5)) if gpu else 0, "partition": "gpu" if gpu else "batch",
                "user": f"user{rng.integers(0, 40):02d}",
                "state": str(rng.choice(STATES, p=(0.9, 0.06, 0.04))),
            }  # fmt: skip
            number += 1


STATES = ("COMPLETED", "FAILED", "CANCELLED by 1234")


def _stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _sacct_rows(job: dict[str, Any]) -> list[str]:
    """Return the lines of a job and its steps."""
    end = job["start"] + job["run"]
    memory = f"{min(2000 * job['procs'] // job['nodes'], 250_000)}M"
    tres = f"billing={job['procs']},cpu={job['procs']},mem={memory},node={job['nodes']}"
    tres += f",gres/gpu={job['gpus']}" if job["gpus"] else ""
    times = [_stamp(job["submit"]), _stamp(job["submit"]), _stamp(job["start"]), _stamp(end)]
    limit = "UNLIMITED" if job["limit"] is None else str(job["limit"])
    size = [job["nodes"], job["nodes"], job["procs"], f"{memory}n", tres, "0:0"]
    rows = [
        [job["id"], job["raw"], "sim", job["user"], "proj", job["partition"], job["state"], *times,
         job["run"], limit, *size],
    ]  # fmt: skip
    for step, name in (("batch", "batch"), ("extern", "extern"), ("0", "a.out")):
        rows.append(
            [f"{job['id']}.{step}", f"{job['raw']}.{step}", name, "", "proj", "", "COMPLETED", *times,
             job["run"], "", *size[:3], "", "", "0:0"]
        )  # fmt: skip
    return ["|".join(map(str, row)) for row in rows]


def _flux_row(job: dict[str, Any]) -> dict[str, Any]:
    end = job["start"] + job["run"]
    return {
        "id": job["raw"], "userid": 1000, "username": job["user"], "urgency": 16, "priority": 16,
        "t_submit": job["submit"] + 0.25, "t_depend": job["submit"] + 0.25, "t_run": job["start"] + 0.5,
        "t_cleanup": end + 0.5, "t_inactive": end + 0.75, "state": "INACTIVE", "name": "sim",
        "cwd": "/home", "ntasks": job["procs"], "ncores": job["procs"],
        "duration": 0.0 if job["limit"] is None else 60.0 * job["limit"],
        "nnodes": job["nodes"], "ranks": "1", "nodelist": "ridge1", "success": True,
        "result": "COMPLETED", "waitstatus": 0, "queue": "gpu" if job["gpus"] else "batch",
    }  # fmt: skip
