"""``run.json`` as the audit reads it, the digests of the files of a run, and the tables of a run as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb

from simsched.errors import RunError, SimschedError
from simsched.formats.rfc.duration import parse_time
from simsched.formats.rfc.idset import Idset
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.licences.licence_pools import read_licences
from simsched.simulation.limits.limit_rules import read_limits
from simsched.simulation.preemption.checkpoint_rules import read_checkpoints
from simsched.simulation.preemption.preemption_rules import read_preemption
from simsched.simulation.record.file_digests import changed_files, changed_inputs, has_digests
from simsched.simulation.record.run_directory import check_format

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simsched.workload.job import Job

INF = float("inf")
#: Built-in match policies that give whole targets, for runs whose ``run.json`` does not state it.
WHOLE = ("firstnodex", "lonodex", "hinodex")
SINCE_DIGESTS = "whole_nodes"
"""A key of ``run.json`` that only runs with digests have."""


class RecordedOutage(NamedTuple):
    """Ranks that were out of service from `start` until `end` (s), and the kind of the outage."""

    ranks: frozenset[int]
    start: float
    end: float
    kind: str

    def __str__(self) -> str:
        until = "for good" if self.end == INF else f"until {self.end:g}"
        return f"{self.kind} from {self.start:g} {until}"


class RecordedRun:
    """The parts of ``run.json`` that the audit needs; None stands for a value that is not recorded.

    Attributes
    ----------
    epilog : the longest time (s) for which a job may hold resources after its end.
    epilog_least : the shortest time (s) for which a job that ended by itself or was cancelled holds them.
    whole_targets : whether jobs got whole targets whatever their request.
    cut : when the run was ended from outside (-inf: at an unknown time); None: it ended by itself.
    overrun : ``timeout`` or ``allow``.
    kill_grace : seconds for which a job may run on beyond its limit before it is ended.
    each_event : whether a pass followed each event, and not each instant.
    outages : the outages that were planned.
    counts : the numbers of jobs by result.
    match_policy, queue_policy, order : their names.
    queues : names of the queues.
    totals, targets : units of each type and number of execution targets of the cluster.
    complete : whether the run finished.
    disrupted : whether outages or failures were possible.
    seeds : the seed, which is recorded twice: by itself and in the configuration.
    replans : whether the policy plans again in each pass, so that it promises no start.
    considers_all : whether each pass plans for all jobs that wait, on the whole machine.
    live : whether a program took targets out while the clock ran, at any place within an instant.
    renewals : times (s) at which requests or running jobs changed, so that promises may be broken.
    chance : a reason that may break a promise at any time, such as random failures, or None.
    stops : queue → times (from, until) at which none of its jobs could start.
    limits : the limits of users, accounts, queues and QoS.
    preemption, checkpoints : the rules for preemption and for checkpoints of jobs, or None.
    licences : how many there are of each, or None.
    suspends : whether jobs that are preempted may be suspended.
    on_failure : ``requeue`` or ``fail``, or None.
    failures : rank → the times (s) at which it failed, in order.
    reservations, windows : the tables of advance reservations, and the nodes that they got.
    """

    def __init__(self, meta: Mapping[str, Any]) -> None:
        config: Mapping[str, Any] = meta.get("config", {})
        get, cluster = config.get, meta.get("cluster", {})
        self.epilog_least, self.epilog = map(float, get("epilog", (0, 0)))
        self.on_failure, self.overrun, self.order = get("on_failure"), get("overrun"), get("order")
        self.match_policy, self.queue_policy = get("match_policy"), get("queue_policy")
        self.kill_grace = float(get("kill_grace", 0))
        self.each_event = get("passes") == "event"
        self.whole_targets = bool(meta.get("whole_nodes", str(self.match_policy or "first") in WHOLE))
        self.complete = meta.get("complete", True) is True
        until = meta.get("until")
        self.cut = -INF if not meta.get("complete", True) else None if until is None else float(until)
        self.outages = tuple(_outage(outage) for outage in get("outages", ()))
        self.counts: Mapping[str, int] = dict(meta.get("counts", {}))
        self.queues = frozenset(get("queues") or ())
        self.totals = None if "totals" not in cluster else dict(cluster["totals"])
        self.targets = cluster.get("targets")
        self.preemption = read_preemption(get("preemption"), "preemption")
        self.suspends = self.preemption is not None and self.preemption.suspends
        self.disrupted = bool(get("outages") or get("failures") or self.suspends)
        self.reservations, self.windows = (
            tuple(get("reservations") or ()),
            tuple(meta.get("reservations") or ()),
        )
        for table in self.reservations:
            if "name" not in table:
                raise ValueError(f"a reservation has no name: {table}")
        self.licences = read_licences(get("licenses"), "licenses")
        checkpoints = read_checkpoints(get("job_checkpoints"), "job-checkpoints")
        self.checkpoints = None if checkpoints is None else checkpoints.to_dict()
        self.seeds = meta.get("seed"), get("seed")
        options = get("queue_options") or {}
        self.replans = options.get("compress") == "replan" or "predictor" in config
        others = any(get(key) for key in ("queues", "reservations", "licenses"))
        self.considers_all = not (options.get("queue_depth") or others)
        self.live = meta.get("live") is True
        self.renewals = tuple(meta.get("renewals", ()))
        self.stops = {
            name: tuple((stop, INF if start is None else start) for stop, start in windows)
            for name, windows in meta.get("queue_stops", {}).items()
        }
        self.limits = read_limits(get("limits", ()), "limits")
        self.chance = _chance(config)
        self.failures: dict[int, list[float]] = {}
        for outage in self.outages:
            for rank in outage.ranks if outage.kind == "failure" else ():
                self.failures.setdefault(rank, []).append(outage.start)

    @property
    def rules(self) -> dict[str, Any]:
        """The options that queries of the audit know by name."""
        failures = not (
            self.live or self.renewals or self.preemption or self.reservations or self.cut == -INF
        )
        names = ("epilog", "epilog_least", "cut", "overrun", "kill_grace", "each_event", "match_policy",
                 "queue_policy", "queues", "complete", "on_failure", "suspends", "disrupted")  # fmt: skip
        waits_outside = any("submitted-jobs" in rule.most for rule in self.limits)
        return {name: getattr(self, name) for name in names} | {
            "writes": self.preemption is not None and self.preemption.checkpoints,
            "renewed": bool(self.renewals),
            "only_failures": failures and self.on_failure is not None,
            "eligible_by_rule": not (waits_outside or self.live),
        }

    def checkpoint_times(self, job: Job) -> tuple[float, float, float] | None:
        """Return the seconds between a job's checkpoints, to write one, and to read one; None without."""
        if self.checkpoints is None:
            return None
        own = job.jobspec.system.get("checkpoint") or {}
        table = {**self.checkpoints, **self.checkpoints.get("queues", {}).get(job.queue, {}), **own}
        if table.get("interval", "never") == "never":
            return None
        interval, cost, restart = (parse_time(table.get(key, 0)) for key in ("interval", "cost", "restart"))
        return None if interval == INF else (interval, cost, restart)


def read_meta(path: Path) -> dict[str, Any]:
    """Return the content of ``run.json`` of a run directory.

    Raises
    ------
    RunError
        If it is missing, is not a JSON object, or has a format that is not known.
    """
    file = path / "run.json"
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"cannot be read: {error}", where=str(file), expected="a JSON object") from None
    if not isinstance(meta, dict):
        raise RunError("is not a JSON object", where=str(file))
    check_format(meta, str(file))
    return meta


def recorded_run(path: Path) -> RecordedRun:
    """Return the record of a run from its ``run.json``.

    Raises
    ------
    RunError
        If it is missing or is not the record of a run.
    """
    meta = read_meta(path)
    drawn = path / "failures.parquet"
    try:
        found = RecordedRun(meta)
        if drawn.is_file():
            with duckdb.connect(":memory:") as con:
                for rank, start in con.execute(
                    "SELECT rank, start FROM read_parquet(?)", [str(drawn)]
                ).fetchall():
                    found.failures.setdefault(rank, []).append(start)
    except duckdb.Error:
        raise RunError("cannot be read", where=str(drawn), expected="a Parquet file") from None
    except (AttributeError, LookupError, TypeError, ValueError, SimschedError) as error:
        raise RunError(f"is not the record of a run: {error}", where=str(path / "run.json")) from None
    for times in found.failures.values():
        times.sort()
    return found


def _chance(config: Mapping[str, Any]) -> str | None:
    """Return a reason that may break a promise at any time."""
    if config.get("failures"):
        return "random failures"
    if any(one.get("announced") or one.get("earliest") for one in config.get("reservations") or ()):
        return "an advance reservation"
    if config.get("preemption"):
        return "a preemption"
    return "a limit of its user, account, queue, QoS or array" if config.get("limits") else None


def _outage(outage: Mapping[str, Any]) -> RecordedOutage:
    end = outage["end"]
    ranks = frozenset(Idset.parse(str(outage["ranks"])))
    return RecordedOutage(
        ranks, float(outage["start"]), INF if end is None else float(end), str(outage["kind"])
    )


def audit_files(directory: str | Path) -> AuditReport:
    """Check only that the files of a run directory, and its inputs, have the recorded digests.

    Raises
    ------
    RunError
        If ``run.json`` is missing or cannot be read.
    """
    report = AuditReport(left_out="the inputs were not read")
    check_digests(report, Path(directory))
    return report


def check_digests(report: AuditReport, path: Path) -> None:
    """Compare the files of the directory and the inputs with the digests in ``run.json`` (A10)."""
    meta = read_meta(path)
    if not has_digests(meta):
        text = "run.json has no digests of the files, so they were not compared"
        if SINCE_DIGESTS in meta:
            report.add("A10", "(all)", text)
        else:
            report.notes.append(text)
    else:
        files = meta.get("files")
        report.files = report.checked["A10", "files"] = 1 + len(files) if isinstance(files, dict) else 0
        for fault in changed_files(meta, path):
            report.add("A10", "(all)", fault)
    for changed, text in changed_inputs(meta):
        if changed:
            report.add("A10", "(all)", text)
        else:
            report.notes.append(text)
