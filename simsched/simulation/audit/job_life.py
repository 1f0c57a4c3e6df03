"""What the audit holds against what a run was told: when jobs may run, how they end, and where never.

It reads ``run.json`` and knows the jobs, and nothing of the engine.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import RunError, SimschedError
from simsched.formats.rfc.idset import Idset
from simsched.simulation.audit.comparing import differs, known, later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from simsched.workload.job import Job

INF = float("inf")
NAN = float("nan")
#: Match policies of our own that give whole targets: for runs whose ``run.json`` does not say.
WHOLE = ("firstnodex", "lonodex", "hinodex")
#: Results of jobs that ran as long as they had to.
DONE = ("COMPLETED", "TIMEOUT")
#: Results of jobs that ended before their time.
INTERRUPTED = ("CANCELED", "FAILED")


class Out(NamedTuple):
    """Ranks that could not be used from `start` until `end`, and how."""

    ranks: frozenset[int]
    start: float
    end: float
    kind: str

    def __str__(self) -> str:
        until = "for good" if self.end == INF else f"until {self.end:g}"
        return f"{self.kind} from {self.start:g} {until}"


@dataclass(frozen=True, slots=True)
class Told:
    """What matters here of what a run was told.

    Attributes
    ----------
    epilog : the most seconds for which a job may hold resources after its end.
    whole_targets : whether jobs were given whole targets whatever they asked for.
    cut : when the run was ended from outside (-inf: nobody knows when); None: it ended by itself.
    overrun : ``timeout`` or ``allow``; None: nobody knows.
    each_event : whether a pass followed each event of an instant, not all of them.
    out : the outages that were planned.
    counts : how many jobs ended how, as ``run.json`` has it.
    match_policy, queue_policy, order : names; None: nobody knows.
    queues : names of the queues; None: nobody knows.
    totals, targets : units of each type and execution targets of the cluster; None: nobody knows.
    complete : whether the run came to its end.
    disrupted : whether outages or failures were possible.
    seeds : the seed as it is stated twice, by itself and in the configuration.
    replans : whether the policy planned again at each pass, so that no start was promised.
    chance : what may have broken a promise at any time, such as random failures; None: nothing.
    stops : queue -> (from, until) when nothing of it could start.
    """

    epilog: float = 0
    whole_targets: bool = False
    cut: float | None = -INF
    overrun: str | None = None
    each_event: bool = False
    out: tuple[Out, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    replans: bool = False
    chance: str | None = None
    stops: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    match_policy: str | None = None
    queue_policy: str | None = None
    order: str | None = None
    queues: frozenset[str] = frozenset()
    totals: Mapping[str, int] | None = None
    targets: int | None = None
    complete: bool = True
    disrupted: bool = True
    seeds: tuple[Any, Any] = (None, None)


def read_meta(path: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` of a run directory.

    Raises
    ------
    RunError
        If it is missing or is not a JSON object.
    """
    file = path / "run.json"
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"cannot be read: {error}", where=str(file), expected="a JSON object") from None
    if not isinstance(meta, dict):
        raise RunError("is not a JSON object", where=str(file))
    return meta


def told(path: Path) -> Told:
    """Return what ``run.json`` of a run directory says.

    Raises
    ------
    RunError
        If it is missing, or not the record of a run.
    """
    meta = read_meta(path)
    try:
        return _told(meta)
    except (AttributeError, LookupError, TypeError, ValueError, SimschedError) as error:
        raise RunError(f"is not the record of a run: {error}", where=str(path / "run.json")) from None


def _told(meta: Mapping[str, Any]) -> Told:
    config = meta.get("config", {})
    cut = None if meta.get("until") is None else float(meta["until"])
    match_policy = str(config.get("match_policy", "first"))
    cluster = meta.get("cluster", {})
    return Told(
        epilog=float(config.get("epilog", (0, 0))[1]),
        whole_targets=bool(meta.get("whole_nodes", match_policy in WHOLE)),
        cut=cut if meta.get("complete", True) else -INF,
        overrun=config.get("overrun"),
        each_event=config.get("passes") == "event",
        out=tuple(_out(outage) for outage in config.get("outages", ())),
        counts=dict(meta.get("counts", {})),
        match_policy=config.get("match_policy"),
        queue_policy=config.get("queue_policy"),
        order=config.get("order"),
        queues=frozenset(config.get("queues") or ()),
        totals=None if "totals" not in cluster else dict(cluster["totals"]),
        targets=cluster.get("targets"),
        complete=meta.get("complete", True) is True,
        disrupted=bool(config.get("outages") or config.get("failures")),
        seeds=(meta.get("seed"), config.get("seed")),
        replans=(config.get("queue_options") or {}).get("compress") == "replan",
        chance="random failures" if config.get("failures") else None,
        stops={
            name: tuple((stop, INF if start is None else start) for stop, start in windows)
            for name, windows in meta.get("queue_stops", {}).items()
        },
    )


def _out(outage: Mapping[str, Any]) -> Out:
    end = outage["end"]
    ranks = frozenset(Idset.parse(str(outage["ranks"])))
    return Out(ranks, float(outage["start"]), INF if end is None else float(end), str(outage["kind"]))


class Span(NamedTuple):
    """Start, first release and last release of a job's last allocation."""

    start: float
    first: float = NAN
    last: float = NAN


def runs_for(job: Job, overrun: str | None) -> float:
    """Return the seconds that a job runs if nothing interrupts it."""
    limit = INF if job.duration is None else job.duration
    runtime = limit if job.runtime is None else job.runtime
    return runtime if overrun == "allow" else min(runtime, limit)


def out_of_reach(said: Told, job: Job, time: float, ranks: set[int]) -> Iterator[str]:
    """Yield the outages in which a job was given targets, or into which it would run on them."""
    limit = INF if job.duration is None else job.duration
    for out in said.out:
        until = time + limit if out.kind == "maintenance" else time
        begun = out.start == time and not said.each_event  # with a pass an event, one may come before it
        inside = time < out.end and (later(until, out.start) or begun)
        if inside and not out.ranks.isdisjoint(ranks):
            yield f"is given rank {min(out.ranks & ranks)} in spite of its {out}"


def survived(said: Told, start: float, time: float, ranks: set[int]) -> Iterator[str]:
    """Yield the failures of its targets that a job outlived."""
    if said.epilog:
        return  # one that cleans up when its target fails goes on
    for out in said.out:
        if out.kind == "failure" and start < out.start < time and not out.ranks.isdisjoint(ranks):
            yield f"outlived the {out} of rank {min(out.ranks & ranks)}"


def was_interrupted(said: Told, job: Job, span: Span) -> bool:
    """Whether a job's last attempt ended before its time, as those do that are queued again."""
    seconds = runs_for(job, said.overrun)
    return not isnan(span.last) and (span.last - span.start < seconds or not seconds)


def wrong_end(said: Told, job: Job, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong about how, and after how long, a job ended."""
    start, end, result = row["start"], row["end"], row["result"]
    if result == "RUNNING":
        if said.cut is None:
            yield "is RUNNING, and the run was not cut short"
        elif start + runs_for(job, said.overrun) <= said.cut:
            yield f"is RUNNING at {said.cut:g}, and should have ended"
        return
    if end is None:
        yield f"is {result} and has no end"
        return
    ran = end - start
    if result in DONE:
        limit = _expected(said, job, result)
        if limit is not None and differs(start + limit, end):
            yield f"{result} after {ran} s instead of {limit} s"
        if said.overrun is not None and (result == "TIMEOUT") != _times_out(said, job):
            yield f"is {result}: asked for {job.duration} s, needs {job.runtime} s"
    elif result in INTERRUPTED and later(end, start + runs_for(job, said.overrun)):
        yield f"{result} after {ran} s, though it would have ended after {runs_for(job, said.overrun)} s"


def _expected(said: Told, job: Job, result: str) -> float | None:
    """Return the seconds after which a job that was not interrupted ended; None: nobody knows."""
    if said.overrun is not None:
        return runs_for(job, said.overrun)
    return job.duration if result == "TIMEOUT" else job.runtime


def _times_out(said: Told, job: Job) -> bool:
    known = job.runtime is not None and job.duration is not None
    return said.overrun == "timeout" and known and (job.runtime or 0) > (job.duration or 0)


def too_soon(job: Job, row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what a job did not wait for: its submission, a time, another job."""
    start, eligible = row["start"], row.get("eligible")
    if later(job.submit, start):
        yield f"starts at {start}, submitted at {job.submit}"
    eligible = known(eligible)
    if eligible is not None and (later(job.submit, eligible) or later(eligible, start)):
        yield f"starts at {start}, eligible at {eligible}, submitted at {job.submit}"
    if job.hold or job.urgency == 0:
        yield f"starts at {start} and is held"
    for dependency in job.dependencies:
        if dependency.scheme == "begin-time" and later(float(dependency.value), start):
            yield f"starts at {start}, before {dependency}"
        other = rows.get(dependency.value)
        if dependency.scheme in ("afterany", "afterok", "afternotok") and other is not None:
            end, fine = other["end"], other["result"] == "COMPLETED"
            if other["result"] in ("PENDING", "RUNNING") or (end is not None and later(end, start)):
                yield f"starts at {start}, before {dependency} is met"
            elif dependency.scheme != "afterany" and fine != (dependency.scheme == "afterok"):
                yield f"starts at {start}, and {dependency} was never met"


def miscounted(said: Told, table: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the numbers of ``run.json`` that are not those of the table."""
    found = Counter(str(row["result"]).lower() for row in table)
    found["jobs"] = len(table)
    found["run"] = sum(known(row["start"]) is not None for row in table)
    found["unfinished"] = found["pending"] + found["running"]
    if said.seeds[0] != said.seeds[1]:
        yield f"run.json has the seed {said.seeds[0]}, and {said.seeds[1]} in its configuration"
    if not said.complete and found["jobs"] and not found["unfinished"]:
        yield "run.json says that the run was interrupted, and every job has ended"
    for name, number in said.counts.items():
        if number != found[name]:
            yield f"run.json counts {number} {name}, the table has {found[name]}"
