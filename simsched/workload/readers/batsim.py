"""Batsim's JSON workloads: ``{nb_res, jobs: [{id, subtime, res, profile, walltime?}], profiles: {}}``.

Profiles with a run time are supported: delays (``DelayProfile``, before Batsim 5
``delay``) and sequences of them (``SequentialCompositionProfile``, before ``composed``).  Jobs
of other profiles (computation and communication need a platform) are ignored and counted.
A job's ``res`` is its number of processors.

Profiles are written as delays, with the names of Batsim 5 or of earlier versions; neither reads those of
the other.
Batsim refuses times of 0, numbers as ids beyond 32 bits and a machine without resources.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from simsched.errors import WorkloadError, clip
from simsched.formats.rfc.duration import whole
from simsched.workload.job import Job, Workload, assemble, procs_of, seconds_of
from simsched.workload.mapping import DEFAULT_TEMPLATE, Flat, ReadOptions
from simsched.workload.readers import gather as why
from simsched.workload.readers.gather import Gather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


NO_PROFILE = "a profile that is not there"
IN_ITSELF = "a profile that is part of itself, or nested too deeply"
DELAYS = ("DelayProfile", "delay")
"""The type of a delay since Batsim 5, and before."""
SEQUENCES = ("SequentialCompositionProfile", "composed")
MOST_LEVELS = 50
LONGEST = 1e12
"""Seconds; what takes longer is not a run time."""
SHORTEST = 1e-9
"""Seconds; replaces 0, which Batsim refuses."""
MOST_ID = 2**31 - 1


def read_batsim(text: str, reading: ReadOptions | None = None) -> Workload:
    """Read a Batsim workload; times are seconds as in the file.

    Raises
    ------
    FormatError, WorkloadError
        When it is not JSON or not such a document; at the first ignored record under `strict`.
    """
    from simsched.formats.text.json_text import decode_json_bulk

    reading = reading or ReadOptions(source="batsim.json")
    document = decode_json_bulk(text, reading.source)
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        raise WorkloadError("the list of jobs is missing", where=reading.source, expected="a Batsim workload")
    profiles = document.get("profiles")
    if not isinstance(profiles, dict):
        raise WorkloadError(
            "the profiles are missing", where=reading.source, expected="profiles: an object by name"
        )
    header = {"MaxProcs": str(document["nb_res"])} if isinstance(document.get("nb_res"), int) else {}
    gather = Gather(reading, "batsim", str(document.get("map") or DEFAULT_TEMPLATE), with_gpus=None)
    gather.job_map.need_width(reading.source)
    run_of = _run_times(profiles)
    jobs = []
    for index, entry in enumerate(document["jobs"][: reading.limit]):
        job = _job(entry, run_of, gather, f"{reading.source}: jobs[{index}]")
        if isinstance(job, str):
            gather.skip(f" jobs[{index}]", job, json.dumps(entry), entry.get("id"))
        else:
            jobs.append(job)
    if "map" in document:
        header["Map"] = str(document["map"])
    where = {"source": reading.source, "name": reading.name}
    return assemble(jobs, gather.skips, kind="batsim", header=header, **where)


def _job(entry: Any, run_of: Callable[[str], float | str], gather: Gather, where: str) -> Job | str:
    """Return the job of an entry, or the reason why it is none."""
    if not isinstance(entry, dict):
        raise WorkloadError("not a job", where=where, expected="an object")
    id_ = entry.get("id")
    if isinstance(id_, bool) or not isinstance(id_, int | str):
        raise WorkloadError(f"bad id {id_!r}", where=where, expected="a number or a text")
    submit, limit = _seconds(entry, "subtime", where), _seconds(entry, "walltime", where)
    procs = entry.get("res")
    if isinstance(procs, bool) or not isinstance(procs, int):
        raise WorkloadError(f"bad res {procs!r}", where=f"{where}.res", expected="a number of resources")
    run = run_of(str(entry.get("profile")))
    if submit is None or submit < 0:
        return why.NO_SUBMIT
    if procs <= 0:
        return why.NO_PROCESSORS
    if isinstance(run, str):
        return run
    spec = gather.request(Flat(procs=procs), queue=None, partition=None)
    if isinstance(spec, str):
        return spec
    user, name = (text if isinstance(text := entry.get(key), str) else None for key in ("user", "name"))
    return Job(
        id=id_, submit=submit, jobspec=spec, procs=procs, runtime=run,
        duration=limit if limit is not None and limit > 0 else None, user=user or None, name=name or None,
    )  # fmt: skip


def _seconds(entry: Mapping[str, Any], key: str, where: str) -> float | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WorkloadError(f"bad {key} {value!r}", where=f"{where}.{key}", expected="seconds")
    return whole(value)


def _run_times(profiles: Mapping[str, Any]) -> Callable[[str], float | str]:
    """Return the function from the name of a profile to its run time, or to the reason why it has none."""
    known: dict[str, float | str] = {}

    def seconds(name: str, level: int = 0) -> float | str:
        if name not in known:
            if level > MOST_LEVELS:
                return IN_ITSELF
            known[name] = IN_ITSELF  # until it is known: a profile may name itself
            known[name] = made(profiles.get(name), level)
        return known[name]

    def made(profile: Any, level: int) -> float | str:
        if not isinstance(profile, dict):
            return NO_PROFILE
        if profile.get("type") in DELAYS:
            return _time(profile.get("delay"))
        if profile.get("type") not in SEQUENCES:
            return f"a profile of type {clip(str(profile.get('type')), 40)!r}, which has no run time"
        names, repeat = profile.get("seq"), profile.get("repeat", profile.get("nb", 1))
        if not isinstance(names, list) or isinstance(repeat, bool) or not isinstance(repeat, int):
            return why.NO_RUN_TIME
        total: float = 0
        for name in names:
            part = seconds(str(name), level + 1)
            if isinstance(part, str):
                return part
            total += part
        return _time(total * min(repeat, LONGEST) if repeat >= 0 else -1)

    return seconds


def _time(seconds: Any) -> float | str:
    """Return a run time as a number; a negative one, or one beyond any machine's life, is refused."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST:
        return why.NO_RUN_TIME
    return 0 if seconds <= SHORTEST else whole(seconds)


def write_batsim(workload: Workload, delay: str = DELAYS[0]) -> Iterator[str]:
    """Yield the lines of a workload for Batsim 5 with delay profiles, one job per line.

    ``nb_res`` is the header's ``MaxProcs``, else the largest job.
    """
    most = max((procs_of(job) for job in workload.jobs), default=0)
    stated = workload.stated("MaxProcs")
    yield "{"
    yield f'"nb_res": {max(most if stated is None else stated, 1)},'
    if "Map" in workload.header:
        yield f'"map": {json.dumps(workload.header["Map"])},'
    yield '"jobs": ['
    yield from _commas(map(_entry, workload.jobs))
    yield "],"
    yield '"profiles": {'
    delays = {f"delay{run}": run for run in map(seconds_of, workload.jobs)}  # 5 and 5.0 have two names
    yield from _commas(
        f'"{name}": {{"type": "{delay}", "delay": {max(run, SHORTEST)}}}' for name, run in delays.items()
    )
    yield "}"
    yield "}"


def write_batsim4(workload: Workload) -> Iterator[str]:
    """Yield the lines of `write_batsim` with the name of delays that Batsim 4 and 3 know."""
    return write_batsim(workload, DELAYS[1])


def _entry(job: Job) -> str:
    entry: dict[str, Any] = {
        "id": str(job.id) if isinstance(job.id, int) and abs(job.id) > MOST_ID else job.id,
        "subtime": job.submit,
        "res": procs_of(job),
        "profile": f"delay{seconds_of(job)}",
    }
    limit = None if job.duration is None else max(job.duration, SHORTEST)
    known = {"walltime": limit, "user": job.user, "name": job.name}
    entry.update({key: value for key, value in known.items() if value is not None})
    return json.dumps(entry, ensure_ascii=False)


def _commas(parts: Iterable[str]) -> Iterator[str]:
    """Yield the parts with a comma behind each but the last."""
    last = None
    for part in parts:
        if last is not None:
            yield f"{last},"
        last = part
    if last is not None:
        yield last
