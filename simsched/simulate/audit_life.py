"""What the audit holds against what a run was told: when jobs may run, how they end, and where never.

It reads ``run.json`` and knows the jobs, and nothing of the engine.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.formats.idset import Idset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from simsched.workload.job import Job

INF = float("inf")
NAN = float("nan")
SLACK = 1e-6
"""Seconds by which sums of floating-point times may differ."""
#: Match policies that give whole targets.
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


def told(path: Path) -> Told:
    """Return what ``run.json`` of a run directory says."""
    if not (path / "run.json").is_file():
        return Told()
    meta = json.loads((path / "run.json").read_text(encoding="utf-8"))
    config = meta.get("config", {})
    cut = None if meta.get("until") is None else float(meta["until"])
    return Told(
        epilog=float(config.get("epilog", (0, 0))[1]),
        whole_targets=str(config.get("match_policy", "first")) in WHOLE,
        cut=cut if meta.get("complete", True) else -INF,
        overrun=config.get("overrun"),
        each_event=config.get("passes") == "event",
        out=tuple(_out(outage) for outage in config.get("outages", ())),
        counts=meta.get("counts", {}),
        replans=config.get("queue_options", {}).get("compress") == "replan",
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
        inside = time < out.end and (until > out.start + SLACK or begun)
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
    return not isnan(span.last) and span.last - span.start < runs_for(job, said.overrun)


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
    ran, slack = end - start, SLACK * max(1.0, abs(end))
    if result in DONE:
        limit = _expected(said, job, result)
        if limit is not None and abs(ran - limit) > slack:
            yield f"{result} after {ran} s instead of {limit} s"
        if said.overrun is not None and (result == "TIMEOUT") != _times_out(said, job):
            yield f"is {result}: asked for {job.duration} s, needs {job.runtime} s"
    elif result in INTERRUPTED and ran > runs_for(job, said.overrun) + slack:
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
    if start < job.submit - SLACK:
        yield f"starts at {start}, submitted at {job.submit}"
    if eligible is not None and not isnan(eligible) and not job.submit - SLACK <= eligible <= start + SLACK:
        yield f"starts at {start}, eligible at {eligible}, submitted at {job.submit}"
    if job.hold or job.urgency == 0:
        yield f"starts at {start} and is held"
    for dependency in job.dependencies:
        if dependency.scheme == "begin-time" and start < float(dependency.value) - SLACK:
            yield f"starts at {start}, before {dependency}"
        other = rows.get(dependency.value)
        if dependency.scheme in ("afterany", "afterok", "afternotok") and other is not None:
            end, fine = other["end"], other["result"] == "COMPLETED"
            if other["result"] in ("PENDING", "RUNNING") or (end is not None and start < end - SLACK):
                yield f"starts at {start}, before {dependency} is met"
            elif dependency.scheme != "afterany" and fine != (dependency.scheme == "afterok"):
                yield f"starts at {start}, and {dependency} was never met"


def miscounted(said: Told, table: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the numbers of ``run.json`` that are not those of the table."""
    found = Counter(str(row["result"]).lower() for row in table)
    found["jobs"] = len(table)
    for name, number in said.counts.items():
        if name not in ("run", "unfinished") and number != found[name]:
            yield f"run.json counts {number} {name}, the table has {found[name]}"
