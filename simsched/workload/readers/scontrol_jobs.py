"""The text of ``scontrol show job``, also ``--oneliner``, as the jobs of ``squeue --json``.

Its times are local times without an offset: those of ``--time-zone``, or UTC.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simsched.errors import FormatError
from simsched.workload.readers.sacct import TimeReader
from simsched.workload.readers.slurm_values import clock, kilobytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w/:.]*)=")
_TIMES = {
    "submit_time": "SubmitTime", "eligible_time": "EligibleTime", "start_time": "StartTime",
    "end_time": "EndTime",
}  # fmt: skip
_NUMBERS = {
    "job_id": "JobId", "cpus": "NumCPUs", "node_count": "NumNodes", "priority": "Priority",
    "array_job_id": "ArrayJobId", "array_max_tasks": "ArrayTaskThrottle", "het_job_id": "HetJobId",
    "het_job_offset": "HetJobOffset",
}  # fmt: skip
_TEXTS = {
    "tres_alloc_str": "AllocTRES", "tres_per_node": "TresPerNode", "partition": "Partition", "qos": "QOS",
    "account": "Account", "name": "JobName", "features": "Features", "nodes": "NodeList",
    "state_reason": "Reason", "dependency": "Dependency",
}  # fmt: skip
_NONE = frozenset(("", "(null)", "N/A", "None", "Unknown"))


def jobs_of_text(
    text: str, source: str, zone: str | None = None
) -> tuple[list[tuple[str, dict[str, Any]]], float | None]:
    """Return (line, values of a `QueuedJob`) of each record, and the time of the output if a job runs.

    Raises
    ------
    FormatError
        for a text without such a record.
    """
    times = TimeReader(source, zone)
    found: list[tuple[str, dict[str, Any]]] = []
    now: float | None = None
    for line, values in _records(text):
        job = _job(values, times, line)
        found.append((line, job))
        ran, start = clock(values.get("RunTime", "")), job["start_time"]
        if job["job_state"] == "RUNNING" and ran is not None and start is not None:
            now = max(now or 0, start + ran)
    if not found:
        raise FormatError("there is no job", where=source, expected="the output of scontrol show job")
    return found, now


def _records(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (line, values) of each record; of a key that occurs twice, the first counts."""
    line, values = "", dict[str, str]()
    for number, text_line in enumerate(text.split("\n"), 1):
        bare = text_line.strip()
        if not bare or bare.startswith("JobId="):
            if values:
                yield line, values
            line, values = str(number), {}
        if not values and not bare.startswith("JobId="):
            continue
        keys = list(_KEY.finditer(bare))
        ends = [*(key.start() for key in keys[1:]), len(bare)]
        for key, end in zip(keys, ends, strict=False):  # a line may have no key
            values.setdefault(key[1], bare[key.end() : end].strip())
    if values:
        yield line, values


def _job(values: dict[str, str], times: TimeReader, line: str) -> dict[str, Any]:
    """Return the values of a job by the keys of JSON; those that are not set are absent."""
    given = {key: value for key, value in values.items() if value not in _NONE}
    found: dict[str, Any] = {name: times.read(given.get(key, ""), line) for name, key in _TIMES.items()}
    found |= {name: _number(given.get(key, "")) for name, key in _NUMBERS.items()}
    found |= {name: given[key] for name, key in _TEXTS.items() if key in given}
    limit = clock(given.get("TimeLimit", ""))
    task = given.get("ArrayTaskId", "")
    return found | {
        "job_state": given.get("JobState", ""),
        "time_limit": None if limit is None else limit / 60,
        "memory_per_cpu": _megabytes(given.get("MinMemoryCPU", "")),
        "memory_per_node": _megabytes(given.get("MinMemoryNode", "")),
        "tres_req_str": given.get("ReqTRES") or given.get("TRES"),
        "user_name": given.get("UserId", "").partition("(")[0] or None,
        "group_name": given.get("GroupId", "").partition("(")[0] or None,
        "array_task_id": _number(task) if task.isdigit() else None,
        "array_task_string": None if task.isdigit() else task or None,
    }


def _number(text: str) -> int | None:
    """Return a whole number; of a range, such as ``2-4`` nodes, the first."""
    digits = text.partition("-")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def _megabytes(text: str) -> float | None:
    found = kilobytes(text)
    return found[0] / 1024 if found else None
