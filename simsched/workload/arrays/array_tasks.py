"""Job arrays: many jobs of one submission, which differ in a number, and how many of them run at a time.

The notation is Slurm's (sbatch(1), ``--array``): ``0-15``, ``0,6,16-32``, ``0-15:4`` and ``1-100%5``, where
at most 5 tasks run at a time.  A task is written ``123_4``: task 4 of the array 123.
"""

from __future__ import annotations

import re

import msgspec

from simsched.arguments import check
from simsched.errors import WorkloadError

MOST_INDEX = 4_000_000
"""Indices of tasks are less than this in all configurations of Slurm (slurm.conf(5), MaxArraySize)."""

MOST_TASKS = 1_000_000
"""The most tasks of one array: a line of text should not take minutes and gigabytes."""

_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")
_TASK = re.compile(r"(?s)(.+)_(\d{1,7})(?:%(\d{1,9}))?")
_OPTION = re.compile(r"(?:^|\s)(?:--array[= ]\s*|-a\s*=?\s*)[\"']?([\d,:-]+)%(\d{1,9})(?=[\"'\s]|$)")


class ArrayTask(msgspec.Struct, frozen=True, gc=False, order=True):
    """The place of a job in a job array: the array's id, its own index, and the most tasks at a time.

    `limit` is the most tasks of the array that run at a time; None: all that fit.

    >>> ArrayTask.parse("123_4%2"), str(ArrayTask("sim", 0))
    (ArrayTask(array='123', index=4, limit=2), 'sim_0')
    """

    array: str
    index: int
    limit: int | None = None

    @staticmethod
    def parse(text: str, where: str | None = None) -> ArrayTask:
        """Return the task of ``ARRAY_INDEX`` or ``ARRAY_INDEX%LIMIT``.  Raises `WorkloadError`."""
        check("text", text, str, "a text")
        found = _TASK.fullmatch(text)
        if found is None or int(found[2]) >= MOST_INDEX or found[3] == "0":
            raise WorkloadError(
                f"{text[:80]!r} is not a task of a job array",
                where=where,
                expected="such as 123_4 or 123_4%2",
            )
        return ArrayTask(found[1], int(found[2]), None if found[3] is None else int(found[3]))

    def __str__(self) -> str:
        return f"{self.array}_{self.index}" + ("" if self.limit is None else f"%{self.limit}")


def parse_tasks(text: object, where: str | None = None) -> tuple[list[int], int | None]:
    """Return the indices of the tasks of an array in order, and the most that run at a time (None: all).

    Raises
    ------
    WorkloadError
        for another notation, a range that runs backwards, an index given twice, and a limit of 0.

    >>> parse_tasks("0-7:2,1%3")
    ([0, 1, 2, 4, 6], 3)
    """
    expected = "such as 0-15, 1,3,5-7, 0-15:4 or 1-100%5"
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise WorkloadError(f"{text!r} is not the tasks of a job array", where=where, expected=expected)
    body, percent, most = str(text).replace(" ", "").partition("%")
    if percent and (not re.fullmatch(r"\d{1,9}", most) or int(most) == 0):
        raise WorkloadError(
            f"{most[:40]!r} is not a limit of tasks at a time", where=where, expected="a whole number above 0"
        )
    indices: list[int] = []
    for part in body.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise WorkloadError(f"{part[:40]!r} is not a range of tasks", where=where, expected=expected)
        indices += _range(found, part, where)
        if len(indices) > MOST_TASKS:
            raise WorkloadError(f"more than {MOST_TASKS:,} tasks of one array", where=where)
    if len(set(indices)) < len(indices):
        raise WorkloadError(f"a task of {body[:80]!r} is given twice", where=where, expected="each task once")
    return sorted(indices), int(most) if percent else None


def _range(found: re.Match[str], part: str, where: str | None) -> range:
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    step = 1 if found[3] is None else int(found[3])
    if last < first or not step:
        raise WorkloadError(
            f"the range {part} of tasks is empty",
            where=where,
            expected="first-last:step, with a step above 0",
        )
    if last >= MOST_INDEX:
        raise WorkloadError(f"there is no task {last:,}", where=where, expected=f"less than {MOST_INDEX:,}")
    return range(first, last + 1, step)


def limit_of_line(line: str) -> int | None:
    """Return the most tasks at a time that a command line of sbatch asks for, or None.

    >>> limit_of_line("sbatch --array=0-99%5 job.sh"), limit_of_line("sbatch -a 1-3 job.sh")
    (5, None)
    """
    found = _OPTION.search(line)
    return int(found[2]) if found is not None and int(found[2]) else None
