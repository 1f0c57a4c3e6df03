"""Dependencies between the jobs of one workload (RFC 26): resolved by id or name, no cycles.

A value names a job, a task of a job array (``123_4``), or a job array, which means all its tasks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.cycles import find_cycle
from simsched.declare.kinds import ValueKind, in_turn, quoted
from simsched.errors import SimschedError, WorkloadError
from simsched.formats.rfc.dependency import AFTERCORR, JOB_SCHEMES, Dependency
from simsched.workload.job import Job, change, tasks_by_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_SLURM = re.compile(
    r"(after|afterany|afterok|afternotok|aftercorr):(\d+(?:_(?:\d+|\*))?)"
    r"(?:\+(\d+))?(?:\(\w*\))?"
)
_MORE = re.compile(r":(\d+(?:_(?:\d+|\*))?)(?:\+(\d+))?(?:\(\w*\))?")


class Directory(NamedTuple):
    """The jobs of a workload by id, by name, and by array and index."""

    ids: dict[str, Job]
    names: dict[str, list[Job]]
    arrays: dict[str, dict[int, Job]]

    @classmethod
    def of(cls, jobs: Iterable[Job]) -> Directory:
        """Return the directory of some jobs."""
        listed = list(jobs)
        names: dict[str, list[Job]] = {}
        for job in listed:
            if job.name:
                names.setdefault(job.name, []).append(job)
        return cls({str(job.id): job for job in listed}, names, tasks_by_array(listed))

    def find(self, value: str) -> list[Job] | str:
        """Return the jobs that a value names, or the id of the array that it names; [] for neither."""
        if value in self.arrays:
            return value
        if value in self.ids:
            return [self.ids[value]]
        task = self.task(value)
        if task is not None:
            return [task]
        found = self.names.get(value, [])
        if not found:
            name, _, index = value.rpartition("_")
            task = self.task(f"{self._array_named(name)}_{index}")
            return [] if task is None else [task]
        return self._array_named(value) or found

    def _array_named(self, name: str) -> str | None:
        """Return the id of the one array whose tasks have a name; None if other jobs have it, too."""
        found = self.names.get(name, [])
        arrays = {job.array_task.array for job in found if job.array_task is not None}
        one = len(arrays) == 1 and len(found) == len(self.arrays[next(iter(arrays))])
        return arrays.pop() if one else None

    def task(self, value: str) -> Job | None:
        """Return the task of ``ARRAY_INDEX``; None if there is no such task."""
        array, _, index = value.rpartition("_")
        known = index.isascii() and index.isdigit() and len(index) < 8  # as the readers take it
        return self.arrays.get(array, {}).get(int(index)) if known else None


def _dependency(item: Any, where: str) -> Dependency:
    try:
        if isinstance(item, str):
            return Dependency.parse(item)
        if isinstance(item, Mapping):
            return Dependency.from_json(item)
    except SimschedError as error:
        raise error.at(where) from None
    expected = "'afterok:NAME' or an RFC 26 object"
    raise WorkloadError(f"{quoted(item)} is not a dependency", where=where, expected=expected)


def _read(value: Any, where: str) -> tuple[Dependency, ...]:
    given = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(in_turn(partial(_dependency, item, f"{where}[{at}]") for at, item in enumerate(given)))


_ONE = {"type": ["string", "object"]}
DEPENDS = ValueKind(_read, {"anyOf": [_ONE, {"type": "array", "items": _ONE}, {"type": "null"}]})
"""The kind of the key ``depends``: a text such as ``afterok:NAME``, an RFC 26 object, or a list of them."""


def resolve(drafts: Sequence[tuple[str, Job, Sequence[Dependency]]]) -> list[Job]:
    """Return the jobs of (place, job, the ``depends`` of its entry) with dependencies set.

    A value names an id, or a name; a name that several jobs have means all of them.
    Dependencies that a jobspec itself holds are read in the same way.

    Raises
    ------
    WorkloadError
        On a job that is not there, a job that depends on itself, or a cycle.
    """
    if not any(said or job.jobspec.dependencies for _, job, said in drafts):
        return [job for _, job, _ in drafts]
    directory = Directory.of(job for _, job, _ in drafts)
    made = []
    for place, job, said in drafts:
        found: list[Dependency] = []
        for dependency in (*said, *job.jobspec.dependencies):
            found.extend(_targets(dependency, job, directory, place))
        made.append(change(job, dependencies=tuple(dict.fromkeys(found))) if found else job)
    refuse_cycles(made)
    return made


def _targets(dependency: Dependency, job: Job, directory: Directory, place: str) -> list[Dependency]:
    """Return the dependency once per job or array that its value names, by id."""
    if dependency.scheme not in JOB_SCHEMES:
        return [dependency]
    value = str(dependency.value)
    targets = directory.find(value)
    if dependency.scheme == AFTERCORR:
        targets = _corresponding(value, targets, job, directory, place)
    if not targets:
        what = "task" if directory.arrays.get(value.rpartition("_")[0]) else "job"
        raise WorkloadError(f"depends on {value!r}, which is not a {what} of this workload", where=place)
    if isinstance(targets, str):
        if job.array_task is not None and job.array_task.array == targets:
            raise WorkloadError(f"job {job.id!r} depends on its own array", where=place)
        return [Dependency(dependency.scheme, targets, dependency.params)]
    if any(target.id == job.id for target in targets):
        raise WorkloadError(f"job {job.id!r} depends on itself", where=place)
    scheme = "afterok" if dependency.scheme == AFTERCORR else dependency.scheme
    return [Dependency(scheme, str(target.id), dependency.params) for target in targets]


def _corresponding(
    value: str, targets: list[Job] | str, job: Job, directory: Directory, place: str
) -> list[Job]:
    """Return the task of an array with the index of a job."""
    if not isinstance(targets, str):
        raise WorkloadError(
            f"{AFTERCORR}:{value} does not name a job array",
            where=place,
            expected="the id or name of an array",
        )
    if job.array_task is None:
        raise WorkloadError(
            f"job {job.id!r} is not a task of a job array", where=place, expected=f"afterok:{value}"
        )
    found = directory.arrays[targets].get(job.array_task.index)
    if found is None:
        raise WorkloadError(f"array {targets!r} has no task {job.array_task.index}", where=place)
    return [found]


def refuse_cycles(jobs: Iterable[Job]) -> None:
    """Raise a WorkloadError that names the jobs of a cycle when jobs depend on each other."""
    listed = list(jobs)
    links = {
        str(job.id): [str(item.value) for item in job.dependencies if item.scheme in JOB_SCHEMES]
        for job in listed
        if job.dependencies
    }
    if links:
        for array, tasks in tasks_by_array(listed).items():
            links[array] = [str(job.id) for job in tasks.values() if str(job.id) != array]
    cycle = find_cycle(links)
    if cycle:
        raise WorkloadError(f"jobs depend on each other: {' -> '.join(cycle)}")


def slurm_dependencies(text: str) -> list[Dependency] | None:
    """Return the dependencies of Slurm's notation (sbatch(1), ``--dependency``); None for another text.

    ``?`` between them, of which one is enough, cannot be expressed and is another text.

    >>> [str(item) for item in slurm_dependencies("afterok:20:21_3,after:7+5(unfulfilled),singleton")]
    ['afterok:20', 'afterok:21_3', 'after:7?delay=300', 'singleton:name']
    >>> slurm_dependencies("afterok:1?afterok:2")
    """
    found: list[Dependency] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if part.partition("(")[0] == "singleton":
            found.append(Dependency("singleton", "name"))
            continue
        match = _SLURM.match(part)
        if match is None:
            return None
        scheme, at = match[1], match.start(2) - 1
        while at < len(part):
            match = _MORE.match(part, at)
            if match is None:
                return None
            params = {} if match[2] is None or scheme != "after" else {"delay": int(match[2]) * 60}
            document = {"scheme": scheme, "value": match[1].removesuffix("_*"), **params}
            found.append(Dependency.from_json(document))
            at = match.end()
    return found


def log_dependencies(text: str) -> tuple[Dependency, ...]:
    """Return the dependencies of a job that a log tells of, which were met: the job ran.

    They are in Slurm's notation or that of RFC 26; () for another text.
    """
    found = slurm_dependencies(text)
    if found is None:
        try:
            found = [Dependency.parse(part) for part in text.split(",") if part.strip()]
        except SimschedError:
            return ()
    return tuple(map(met, found))


def met(item: Dependency) -> Dependency:
    """Return a dependency of a job of a log that ran, so that it can be met in a run.

    A simulated job ends well unless its limit ends it, so a job that ran after a failure (``afternotok``)
    depends on the end alone.
    """
    failed = item.scheme in {"afternotok", "afterexcept"}
    return Dependency("afterany", item.value, item.params) if failed else item


def begin_moved(item: Dependency, move: Callable[[float], float]) -> Dependency:
    """Return a begin time moved, to second 0 at the earliest; other dependencies as they are."""
    if item.scheme != "begin-time":
        return item
    return Dependency(item.scheme, f"{max(0.0, move(float(item.value))):.15g}", item.params)


def with_known_dependencies(jobs: Sequence[Job]) -> tuple[tuple[Job, ...], int]:
    """Return the jobs without dependencies on others that are not among them, and how many these were."""
    directory = Directory.of(jobs)
    lost, made = 0, []
    for job in jobs:
        kept = tuple(item for item in job.dependencies if _is_known(item, job, directory))
        lost += len(job.dependencies) - len(kept)
        same = len(kept) == len(job.dependencies)
        made.append(job if same else change(job, dependencies=kept))
    return tuple(made), lost


def _is_known(item: Dependency, job: Job, directory: Directory) -> bool:
    value = item.value
    if item.scheme not in JOB_SCHEMES:
        return True
    if item.scheme == AFTERCORR:
        task = job.array_task
        return task is not None and task.index in directory.arrays.get(value, {})
    return value in directory.ids or value in directory.arrays or directory.task(value) is not None
