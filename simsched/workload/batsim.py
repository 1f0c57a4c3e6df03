"""Batsim's JSON workloads: ``{nb_res, jobs: [{id, subtime, res, profile, walltime?}], profiles: {}}``.

Only profiles that say how long a job takes are understood: ``delay`` (its ``delay``).  Jobs
of other profiles (computation and communication need a platform) are left out and counted.
A job's ``res`` is its number of processors.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simsched.errors import WorkloadError
from simsched.workload import gather as why
from simsched.workload.flat import procs_of
from simsched.workload.gather import whole
from simsched.workload.job import Job, Skip, Skips, assemble
from simsched.workload.mapping import DEFAULT_TEMPLATE, Flat, MissingValueError, Reading
from simsched.workload.transforms import seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simsched.workload.job import Workload

NO_PROFILE = "a profile that is not there"


def read_batsim(text: str, reading: Reading | None = None) -> Workload:
    """Read a Batsim workload; times are seconds as they stand.

    Raises
    ------
    FormatError, WorkloadError
        When it is not JSON or not such a document; at the first record left out under `strict`.
    """
    from simsched.formats.text import decode_json_bulk

    reading = reading or Reading(source="batsim.json")
    document = decode_json_bulk(text, reading.source)
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        raise WorkloadError("no list of jobs", where=reading.source, expected="a Batsim workload")
    profiles = document.get("profiles")
    if not isinstance(profiles, dict):
        raise WorkloadError("no profiles", where=reading.source, expected="profiles: an object by name")
    header = {"MaxProcs": str(document["nb_res"])} if isinstance(document.get("nb_res"), int) else {}
    skips, job_map = (
        Skips(strict=reading.strict),
        reading.job_map(str(document.get("map") or DEFAULT_TEMPLATE)),
    )
    job_map.need_width(reading.source)
    jobs = []
    for index, entry in enumerate(document["jobs"][: reading.limit]):
        where = f"{reading.source}: jobs[{index}]"
        fields = _fields(entry, profiles, where)
        if isinstance(fields, dict):
            try:
                jobs.append(Job(jobspec=job_map.jobspec(Flat(procs=fields["procs"])), **fields))
                continue
            except MissingValueError as error:
                fields = error.message
        skips.add(Skip(where, fields, json.dumps(entry)[:200], entry.get("id")))
    if "map" in document:
        header["Map"] = str(document["map"])
    return assemble(jobs, skips, source=reading.source, name=reading.name, kind="batsim", header=header)


def _fields(entry: Any, profiles: Mapping[str, Any], where: str) -> dict[str, Any] | str:
    """Return the fields of a job, or the reason why this entry is none."""
    if not isinstance(entry, dict):
        raise WorkloadError("not a job", where=where, expected="an object")
    id_ = entry.get("id")
    if isinstance(id_, bool) or not isinstance(id_, int | str):
        raise WorkloadError(f"bad id {id_!r}", where=where, expected="a number or a text")
    submit, limit = _seconds(entry, "subtime", where), _seconds(entry, "walltime", where)
    procs = entry.get("res")
    if isinstance(procs, bool) or not isinstance(procs, int):
        raise WorkloadError(f"bad res {procs!r}", where=f"{where}.res", expected="a number of resources")
    run = _run_time(profiles.get(str(entry.get("profile"))))
    if submit is None or submit < 0:
        return why.NO_SUBMIT
    if procs <= 0:
        return why.NO_PROCESSORS
    if isinstance(run, str):
        return run
    return {
        "id": id_,
        "submit": submit,
        "procs": procs,
        "runtime": run,
        "duration": limit if limit is not None and limit > 0 else None,
        "user": _text(entry.get("user")),
        "name": _text(entry.get("name")),
    }


def _seconds(entry: Mapping[str, Any], key: str, where: str) -> float | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WorkloadError(f"bad {key} {value!r}", where=f"{where}.{key}", expected="seconds")
    return whole(value)


def _run_time(profile: Any) -> float | str:
    if not isinstance(profile, dict):
        return NO_PROFILE
    delay = profile.get("delay")
    if profile.get("type") != "delay" or isinstance(delay, bool) or not isinstance(delay, int | float):
        return f"a profile of type {profile.get('type')!r}, which tells no run time"
    return whole(delay) if delay >= 0 else why.NO_RUN_TIME


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def write_batsim(workload: Workload) -> Iterator[str]:
    """Yield the lines of a Batsim workload with delay profiles, one job a line.

    ``nb_res`` is the header's ``MaxProcs``, else the largest job.
    """
    most = max((procs_of(job.procs, job.jobspec) for job in workload.jobs), default=0)
    said = workload.header.get("MaxProcs", "")
    total = int(said) if said.isdigit() and len(said) < 10 else most
    yield "{"
    yield f'"nb_res": {total},'
    if "Map" in workload.header:
        yield f'"map": {json.dumps(workload.header["Map"])},'
    yield '"jobs": ['
    yield from _commas(_entry(job) for job in workload.jobs)
    yield "],"
    yield '"profiles": {'
    delays = dict.fromkeys(seconds_of(job) for job in workload.jobs)
    yield from _commas(f'"{_profile(run)}": {{"type": "delay", "delay": {run}}}' for run in delays)
    yield "}"
    yield "}"


def _entry(job: Job) -> str:
    entry: dict[str, Any] = {
        "id": job.id,
        "subtime": job.submit,
        "res": procs_of(job.procs, job.jobspec),
        "profile": _profile(seconds_of(job)),
    }
    known = {"walltime": job.duration, "user": job.user, "name": job.name}
    entry.update({key: value for key, value in known.items() if value is not None})
    return json.dumps(entry, ensure_ascii=False)


def _profile(run: float) -> str:
    return f"delay{run}"


def _commas(parts: Iterator[str]) -> Iterator[str]:
    """Yield the parts with a comma behind each but the last."""
    held: str | None = None
    for part in parts:
        if held is not None:
            yield f"{held},"
        held = part
    if held is not None:
        yield held
