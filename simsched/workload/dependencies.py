"""Dependencies between the jobs of one workload (RFC 26): resolved by id or name, no cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from simsched.cycles import find_cycle
from simsched.errors import SimschedError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from simsched.formats.rfc.dependency import Dependency
    from simsched.workload.job import Job

#: Schemes whose value names a job.
JOB_SCHEMES = frozenset(("after", "afterany", "afterok", "afternotok", "afterexcept"))


def resolve(drafts: Sequence[tuple[str, Job, Any]]) -> list[Job]:
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
    ids, names = _directories(job for _, job, _ in drafts)
    made = []
    for place, job, said in drafts:
        found: list[Dependency] = []
        for dependency in (*_parsed(said, place), *job.jobspec.dependencies):
            found.extend(_targets(dependency, job, ids, names, place))
        made.append(msgspec.structs.replace(job, dependencies=tuple(dict.fromkeys(found))) if found else job)
    refuse_cycles(made)
    return made


def _directories(jobs: Iterable[Job]) -> tuple[dict[str, Job], dict[str, list[Job]]]:
    ids: dict[str, Job] = {}
    names: dict[str, list[Job]] = {}
    for job in jobs:
        ids[str(job.id)] = job
        if job.name:
            names.setdefault(job.name, []).append(job)
    return ids, names


def _parsed(said: Any, place: str) -> list[Dependency]:
    from simsched.formats.rfc.dependency import Dependency

    if said is None:
        return []
    found = []
    for index, item in enumerate(said if isinstance(said, list) else [said]):
        try:
            if isinstance(item, str):
                found.append(Dependency.parse(item))
            elif isinstance(item, dict):
                found.append(Dependency.from_json(item))
            else:
                raise WorkloadError(f"bad dependency {item!r}", expected="'afterok:NAME' or an RFC 26 object")
        except SimschedError as error:
            raise error.at(f"{place}.depends[{index}]") from None
    return found


def _targets(
    dependency: Dependency, job: Job, ids: dict[str, Job], names: dict[str, list[Job]], place: str
) -> list[Dependency]:
    """Return the dependency once per job that its value names, by id."""
    from simsched.formats.rfc.dependency import Dependency

    if dependency.scheme not in JOB_SCHEMES:
        return [dependency]
    value = str(dependency.value)
    targets = [ids[value]] if value in ids else names.get(value, [])
    if not targets:
        raise WorkloadError(f"depends on {value!r}, which is not a job of this workload", where=place)
    if any(target.id == job.id for target in targets):
        raise WorkloadError(f"job {job.id!r} depends on itself", where=place)
    return [Dependency(dependency.scheme, str(target.id), dependency.params) for target in targets]


def refuse_cycles(jobs: Iterable[Job]) -> None:
    """Raise a WorkloadError that names the jobs of a cycle when jobs depend on each other."""
    links = {
        str(job.id): [str(item.value) for item in job.dependencies if item.scheme in JOB_SCHEMES]
        for job in jobs
        if job.dependencies
    }
    cycle = find_cycle(links)
    if cycle:
        raise WorkloadError(f"jobs depend on each other: {' -> '.join(cycle)}")
