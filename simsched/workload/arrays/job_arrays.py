"""Job arrays of a workload: their tasks as jobs, and the faults of arrays that a program made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from simsched.errors import WorkloadError
from simsched.workload.arrays.array_tasks import ArrayTask, parse_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.workload.job import Job


def job_array(job: Job, tasks: str) -> tuple[Job, ...]:
    """Return the tasks of a job array: copies of a job with the ids ``ID_INDEX``.

    Parameters
    ----------
    job : the job of which every task is a copy; its id is that of the array.
    tasks : Slurm's notation, such as ``0-31%4``: 32 tasks, of which at most 4 run at a time.

    Raises
    ------
    WorkloadError
        if the tasks cannot be read.
    """
    indices, limit = parse_tasks(tasks, "tasks")
    array = str(job.id)
    replace = msgspec.structs.replace
    return tuple(
        replace(job, id=f"{array}_{index}", array_task=ArrayTask(array, index, limit)) for index in indices
    )


def tasks_by_array(jobs: Iterable[Job]) -> dict[str, dict[int, Job]]:
    """Return array → index → job, in the order of the jobs."""
    found: dict[str, dict[int, Job]] = {}
    for job in jobs:
        if job.array_task is not None:
            found.setdefault(job.array_task.array, {})[job.array_task.index] = job
    return found


def has_array_limits(jobs: Iterable[Job]) -> bool:
    """Whether a job array of the workload limits its tasks at a time."""
    return any(job.array_task is not None and job.array_task.limit is not None for job in jobs)


def refuse_odd_arrays(jobs: Sequence[Job]) -> None:
    """Raise a `WorkloadError` for a task that occurs twice, and for two limits of one array."""
    limits: dict[str, int | None] = {}
    seen: set[tuple[str, int]] = set()
    for job in jobs:
        task: Any = job.array_task
        if task is None:
            continue
        where = f"job {job.id}"
        if not isinstance(task, ArrayTask) or (task.limit is not None and task.limit < 1):
            raise WorkloadError(
                f"{task!r} is not a task of a job array",
                where=where,
                expected="an ArrayTask",
            )
        if (task.array, task.index) in seen:
            raise WorkloadError(f"task {task.index} of array {task.array} occurs twice", where=where)
        seen.add((task.array, task.index))
        if limits.setdefault(task.array, task.limit) != task.limit:
            raise WorkloadError(
                f"array {task.array} has the limits {_shown(limits[task.array])} and {_shown(task.limit)}",
                where=where,
                expected="one limit for all tasks of an array",
            )


def _shown(limit: int | None) -> str:
    return "none" if limit is None else str(limit)
