"""Writing SWF 2.2: flat counts out, names kept in header lines that `read_swf` understands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.workload.flat_counts import procs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from simsched.workload.job import Job, Workload

_CODES = {"FAILED": 0, "TIMEOUT": 0, "COMPLETED": 1, "CANCELED": 5}
#: Columns that hold a number for a name, and the header key that lists the names.
_NAMED: Mapping[str, Callable[[Job], str | None]] = {
    "User": lambda job: job.user,
    "Group": lambda job: job.group,
    "Executable": lambda job: job.name,
    "Queue": lambda job: job.queue,
    "Partition": lambda job: job.partition,
}


def write_swf(workload: Workload, *, notes: Iterable[str] = ()) -> Iterator[str]:
    """Yield the lines of an SWF file, without line ends.

    Job ids that are not whole numbers become their position.  Requests are flattened to
    processors; a workload whose header has a ``Map`` is read back with its shapes.
    """
    numbers = {key: _numbers(map(name_of, workload.jobs)) for key, name_of in _NAMED.items()}
    ids = _ids(workload)
    yield from _header(workload, numbers, notes)
    for job in workload.jobs:
        yield _record(job, ids, [numbers[key][name_of(job)] for key, name_of in _NAMED.items()])


def _header(
    workload: Workload, numbers: Mapping[str, Mapping[str | None, int]], notes: Iterable[str]
) -> Iterator[str]:
    yield "; Version: 2.2"
    for key, value in workload.header.items():
        if key not in {"Version", "MaxJobs", "MaxRecords", "Note", *_NAMED}:
            yield from (f"; {key}: {line}" for line in value.splitlines())
    yield f"; MaxJobs: {len(workload)}"
    yield f"; MaxRecords: {len(workload)}"
    for key, known in numbers.items():
        for name, number in known.items():
            if name is not None and name != str(number):
                yield f"; {key}: {number} {name}"
    for note in (*workload.header.get("Note", "").splitlines(), *workload.history, *notes):
        yield f"; Note: {note}"


def _numbers(names: Iterable[str | None]) -> dict[str | None, int]:
    """Return the number of each name: its own where it is one, else the next that is free."""
    known: dict[str | None, int] = {None: -1}
    others = []
    for name in dict.fromkeys(names):
        if (
            name is not None
            and name.isascii()
            and name.isdigit()
            and str(int(name)) == name
            and len(name) < 10
        ):
            known[name] = int(name)
        elif name is not None:
            others.append(name)
    free = max(known.values()) + 1 if len(known) > 1 else 1
    known.update({name: free + index for index, name in enumerate(others)})
    return known


def _ids(workload: Workload) -> dict[int | str, int]:
    """Return a whole number per job id: the id itself where all are whole, else the position."""
    if all(isinstance(job.id, int) and job.id >= 0 for job in workload.jobs):
        return {job.id: int(job.id) for job in workload.jobs}
    return {job.id: index for index, job in enumerate(workload.jobs, 1)}


def _record(job: Job, ids: Mapping[int | str, int], named: list[int]) -> str:
    user, group, executable, queue, partition = named
    procs = procs_of(job.procs, job.jobspec)
    before = -1 if job.preceding is None else ids.get(job.preceding, -1)
    columns = (
        ids[job.id], job.submit, job.wait, job.runtime if job.runtime is not None else job.duration, procs,
        None, None, procs, job.duration, job.memory, _CODES.get(job.status or "", -1), user, group,
        executable, queue, partition, before, job.think_time,
    )  # fmt: skip
    return " ".join("-1" if value is None else str(value) for value in columns)
