"""`ArrayProgress`: how many tasks of each job array have started and ended, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.workload.job import Job


@dataclass(slots=True)
class Tasks:
    """The tasks of one array.

    Attributes
    ----------
    jobs : their job numbers; `by_index` has them by their indices.
    unstarted, unended : how many have not started, or not ended.
    bad : how many did not end well; `never` is how many of them did not start.
    """

    jobs: list[int] = field(default_factory=list)
    by_index: dict[int, int] = field(default_factory=dict)
    unstarted: int = 0
    unended: int = 0
    bad: int = 0
    never: int = 0


class ArrayProgress:
    """The job arrays of a workload; each has a number below 0, as jobs have numbers from 0 on."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._tasks: list[Tasks] = []
        self._of: dict[int, int] = {}

    def add(self, number: int, job: Job) -> None:
        """Add a job, which may be a task of an array."""
        task = job.array_task
        if task is None:
            return
        array = self._of[number] = self._numbers.setdefault(task.array, -1 - len(self._numbers))
        if -1 - array == len(self._tasks):
            self._tasks.append(Tasks())
            self._names.append(task.array)
        mine = self.tasks_of(array)
        mine.jobs.append(number)
        mine.by_index[task.index] = number
        mine.unstarted += 1
        mine.unended += 1

    def __len__(self) -> int:
        return len(self._tasks)

    def number(self, name: str) -> int | None:
        """Return the number of an array by its id; None if there is none."""
        return self._numbers.get(name)

    def name(self, array: int) -> str:
        """Return the id of an array by its number."""
        return self._names[-1 - array]

    def of(self, job: int) -> int | None:
        """Return the number of the array of which a job is a task; None if it is none."""
        return self._of.get(job)

    def tasks_of(self, array: int) -> Tasks:
        """Return the tasks of an array by its number."""
        return self._tasks[-1 - array]

    def task(self, name: str, index: int) -> int | None:
        """Return the job number of a task by the id of its array and its index; None if there is none."""
        array = self._numbers.get(name)
        return None if array is None else self.tasks_of(array).by_index.get(index)

    def named_task(self, value: str) -> int | None:
        """Return the job number of the task that ``ARRAY_INDEX`` names; None if there is none."""
        array, _, index = value.rpartition("_")
        return self.task(array, int(index)) if index.isascii() and index.isdigit() else None

    def members(self) -> dict[int, list[int]]:
        """Return array → its tasks, by their numbers."""
        return {array: self.tasks_of(array).jobs for array in self._numbers.values()}

    def start(self, job: int) -> int | None:
        """Note the first start of a job; return its array if that was the last of its tasks to start."""
        array = self._of.get(job)
        if array is None:
            return None
        mine = self.tasks_of(array)
        mine.unstarted -= 1
        return None if mine.unstarted else array

    def end(self, job: int, *, well: bool, ran: bool) -> int | None:
        """Note the end of a job; return its array if a dependency on all of its tasks may be decided now."""
        array = self._of.get(job)
        if array is None:
            return None
        mine = self.tasks_of(array)
        mine.unended -= 1
        mine.bad += not well
        mine.never += not ran
        return array if not mine.unended or not well else None
