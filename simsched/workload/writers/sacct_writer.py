"""Write the format of ``sacct -P``: whole seconds, flat counts, one line per job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.formats.rfc.duration import format_date
from simsched.workload.flat_counts import demand, procs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.workload.job import Job, Workload

HEAD = (
    "JobIDRaw", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Timelimit", "ReqNodes", "ReqCPUS",
    "ReqTRES", "ReqMem", "Partition", "Account", "User", "Group", "JobName", "State",
)  # fmt: skip
_STATES = {"CANCELED": "CANCELLED", None: "COMPLETED"}
#: Clusters did not exist earlier; a workload on a clock of its own is put here.
_DEFAULT_START = 1_704_067_200  # 2024-01-01T00:00:00


def write_sacct(workload: Workload) -> Iterator[str]:
    """Yield the lines of a dump, its header first.

    Second 0 is the header's ``UnixStartTime``, else the first day of 2024.  A job that
    never waited in a trace starts when it is submitted, or eligible (its begin-time).
    """
    said = workload.header.get("UnixStartTime", "")
    base = int(said) if said.isascii() and said.isdigit() and len(said) < 12 else _DEFAULT_START
    yield "|".join(HEAD)
    for job in workload.jobs:
        yield "|".join(_cells(job, base))


def _cells(job: Job, base: int) -> tuple[str, ...]:
    submit = base + round(job.submit)
    eligible = base + round(max([job.submit, *begin_times(job)]))
    start = max(submit + round(job.wait or 0), eligible)
    run = round(job.runtime if job.runtime is not None else job.duration or 0)
    least = demand(job.jobspec)
    procs, nodes = procs_of(job.procs, job.jobspec), job.nodes or least.nodes
    parts = {"cpu": procs, "node": nodes, "gres/gpu": least.gpus}
    tres = ",".join(f"{name}={count}" for name, count in parts.items() if count)
    texts = (job.partition or job.queue, job.bank, job.user, job.group, job.name)
    return (
        str(job.id), *map(_clock, (submit, eligible, start, start + run)), str(run), _limit(job.duration),
        str(nodes or ""), str(procs), tres, "" if job.memory is None else f"{job.memory}Kc",
        *(_plain(text) for text in texts), _STATES.get(job.status, job.status) or "COMPLETED",
    )  # fmt: skip


def begin_times(job: Job) -> list[float]:
    """Return the times before which a job must not start."""
    return [float(item.value) for item in job.dependencies if item.scheme == "begin-time"]


def _clock(seconds: int) -> str:
    return format_date(seconds).removesuffix("Z")


def _limit(seconds: float | None) -> str:
    """Return a limit as ``D-HH:MM:SS``."""
    if seconds is None:
        return "UNLIMITED"
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days}-{hour:02d}:{minute:02d}:{second:02d}"


def _plain(text: str | None) -> str:
    """Return a text without the characters that end a cell."""
    return (text or "").replace("|", "/").replace("\n", " ").replace("\r", " ")
