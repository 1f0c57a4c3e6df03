"""Writing ``jobs.yaml`` and JSON Lines: the entries that `jobs_yaml` reads, without loss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.workload.job import Job, Workload

#: Fields of a job that are keys of an entry with the same name, and their default values.
_SAME = (
    ("runtime", None), ("name", None), ("user", None), ("group", None), ("bank", None), ("queue", None),
    ("qos", None),
    ("urgency", 16), ("priority", None), ("preceding", None), ("think_time", None), ("hold", False),
    ("cancel_at", None), ("deadline", None),
    ("procs", None), ("nodes", None), ("memory", None), ("energy", None), ("partition", None), ("wait", None),
    ("status", None), ("nodelist", None),
)  # fmt: skip


def write_jobs_yaml(workload: Workload) -> Iterator[str]:
    """Yield the lines of a ``jobs.yaml``: one job per line, in YAML's flow style."""
    name = json.dumps(workload.name, ensure_ascii=False)
    yield f"name: {name}"
    yield "jobs:" if workload.jobs else "jobs: []"
    for entry in entries(workload):
        yield f"- {json.dumps(entry, ensure_ascii=False)}"


def write_jsonl(workload: Workload) -> Iterator[str]:
    """Yield JSON Lines, one entry per job, each with its whole jobspec.

    A request without a slot is not an RFC 14 document (it has no task), so it is written as a shape.
    """
    requests: dict[int, dict[str, Any]] = {}
    for entry, job in zip(entries(workload), workload.jobs, strict=True):
        request = requests.get(id(job.jobspec))
        if request is None:
            whole = {"jobspec": job.jobspec.to_dict()} if job.jobspec.tasks else _request(job.jobspec)
            request = requests[id(job.jobspec)] = whole
        kept = {key: value for key, value in entry.items() if key not in {"shape", "constraint", "jobspec"}}
        yield json.dumps({**kept, **request}, ensure_ascii=False)


def entries(workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield one entry per job; equal requests share their part of it."""
    requests: dict[int, dict[str, Any]] = {}
    for job in workload.jobs:
        request = requests.get(id(job.jobspec))
        if request is None:
            request = requests[id(job.jobspec)] = _request(job.jobspec)
        yield {"id": job.id, **request, **_rest(job)}


def _request(jobspec: Jobspec) -> dict[str, Any]:
    """Return the shortest of shape, shape with constraint, and whole jobspec that loses nothing."""
    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.constraint import to_json

    shape, wanted = jobspec.to_shape(), jobspec.constraint
    if jobspec.tasks and Jobspec.from_shape(shape, constraint=wanted) != jobspec:
        return {"jobspec": jobspec.to_dict()}
    return {"shape": shape} if wanted is None else {"shape": shape, "constraint": to_json(wanted)}


def _rest(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {
        "submit": job.submit,
        "duration": "inf" if job.duration is None else job.duration,
    }
    for name, default in _SAME:
        value = getattr(job, name)
        if value != default:
            found[name] = value
    if job.array_task is not None:
        found["array_task"] = str(job.array_task)
    if job.dependencies:
        found["depends"] = [dependency.to_json() for dependency in job.dependencies]
    return found
