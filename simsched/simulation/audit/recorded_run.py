"""``run.json`` as the audit reads it, the digests of the files of a run, and the tables of a run as rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simsched.errors import RunError, SimschedError
from simsched.formats.rfc.idset import Idset
from simsched.simulation.audit.audit_report import AuditReport
from simsched.simulation.licences.licence_pools import Licences, read_licences
from simsched.simulation.limits.limit_rules import LimitRule, read_limits
from simsched.simulation.preemption.checkpoint_rules import CheckpointRules, read_checkpoints
from simsched.simulation.preemption.preemption_rules import PreemptionRules, read_preemption
from simsched.simulation.record.file_digests import changed_files, changed_inputs, has_digests
from simsched.simulation.record.run_directory import check_format

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


@dataclass(frozen=True, slots=True)
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
    on_failure : ``requeue`` or ``fail``, or None.
    failures : rank → the times (s) at which it failed, in order.
    reservations, windows : the tables of advance reservations, and the nodes that they got.
    """

    epilog: float = 0
    epilog_least: float = 0
    whole_targets: bool = False
    cut: float | None = -INF
    overrun: str | None = None
    kill_grace: float = 0
    each_event: bool = False
    outages: tuple[RecordedOutage, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    replans: bool = False
    considers_all: bool = False
    live: bool = False
    renewals: tuple[float, ...] = ()
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
    limits: tuple[LimitRule, ...] = ()
    preemption: PreemptionRules | None = None
    checkpoints: CheckpointRules | None = None
    licences: Licences | None = None
    on_failure: str | None = None
    failures: Mapping[int, Sequence[float]] = field(default_factory=dict)
    reservations: tuple[Mapping[str, Any], ...] = ()
    windows: tuple[Mapping[str, Any], ...] = ()


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
    try:
        return replace(_recorded(meta), failures=_failures(meta, path))
    except (AttributeError, LookupError, TypeError, ValueError, SimschedError) as error:
        raise RunError(f"is not the record of a run: {error}", where=str(path / "run.json")) from None


def _recorded(meta: Mapping[str, Any]) -> RecordedRun:
    config = meta.get("config", {})
    cut = None if meta.get("until") is None else float(meta["until"])
    match_policy = str(config.get("match_policy", "first"))
    cluster = meta.get("cluster", {})
    return RecordedRun(
        epilog=float(config.get("epilog", (0, 0))[1]),
        epilog_least=float(config.get("epilog", (0, 0))[0]),
        on_failure=config.get("on_failure"),
        whole_targets=bool(meta.get("whole_nodes", match_policy in WHOLE)),
        cut=cut if meta.get("complete", True) else -INF,
        overrun=config.get("overrun"),
        kill_grace=float(config.get("kill_grace", 0)),
        each_event=config.get("passes") == "event",
        outages=tuple(_outage(outage) for outage in config.get("outages", ())),
        counts=dict(meta.get("counts", {})),
        match_policy=config.get("match_policy"),
        queue_policy=config.get("queue_policy"),
        order=config.get("order"),
        queues=frozenset(config.get("queues") or ()),
        totals=None if "totals" not in cluster else dict(cluster["totals"]),
        targets=cluster.get("targets"),
        complete=meta.get("complete", True) is True,
        disrupted=bool(config.get("outages") or config.get("failures")) or _suspends(config),
        preemption=read_preemption(config.get("preemption"), "preemption"),
        reservations=tuple(config.get("reservations") or ()),
        windows=tuple(meta.get("reservations") or ()),
        licences=read_licences(config.get("licenses"), "licenses"),
        checkpoints=read_checkpoints(config.get("job_checkpoints"), "job-checkpoints"),
        seeds=(meta.get("seed"), config.get("seed")),
        replans=(config.get("queue_options") or {}).get("compress") == "replan" or "predictor" in config,
        considers_all=not (
            (config.get("queue_options") or {}).get("queue_depth")
            or any(config.get(key) for key in ("queues", "reservations", "licenses"))
        ),
        live=meta.get("live") is True,
        renewals=tuple(meta.get("renewals", ())),
        chance=_chance(config),
        stops={
            name: tuple((stop, INF if start is None else start) for stop, start in windows)
            for name, windows in meta.get("queue_stops", {}).items()
        },
        limits=read_limits(config.get("limits", ()), "limits"),
    )


def _suspends(config: Mapping[str, Any]) -> bool:
    rules = read_preemption(config.get("preemption"), "preemption")
    return rules is not None and rules.suspends


def _chance(config: Mapping[str, Any]) -> str | None:
    """Return a reason that may break a promise at any time."""
    if config.get("failures"):
        return "random failures"
    if any(one.get("announced") or one.get("earliest") for one in config.get("reservations") or ()):
        return "an advance reservation"
    if config.get("preemption"):
        return "a preemption"
    return "a limit of its user, account, queue, QoS or array" if config.get("limits") else None


def _failures(meta: Mapping[str, Any], path: Path) -> dict[int, list[float]]:
    """Return the times at which each rank failed: planned failures, and those that were drawn."""
    found: dict[int, list[float]] = {}
    planned = map(_outage, meta.get("config", {}).get("outages", ()))
    pairs = [(rank, one.start) for one in planned if one.kind == "failure" for rank in one.ranks]
    if (path / "failures.parquet").is_file():
        pairs += [(row["rank"], row["start"]) for row in read_table(path / "failures.parquet")]
    for rank, start in sorted(pairs):
        found.setdefault(rank, []).append(start)
    return found


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
        report.files = 1 + len(files) if isinstance(files, dict) else 0
        for fault in changed_files(meta, path):
            report.add("A10", "(all)", fault)
    for changed, text in changed_inputs(meta):
        if changed:
            report.add("A10", "(all)", text)
        else:
            report.notes.append(text)


def read_table(path: Path) -> list[dict[str, Any]]:
    """Read a table of a run as one mapping per row.

    Raises
    ------
    RunError
        If it is not a Parquet file.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        try:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        except duckdb.Error:
            raise RunError("cannot be read", where=str(path), expected="a Parquet file") from None
