"""``simsched forecast``: the predicted start of each waiting job at a given time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simsched import human
from simsched.cli.options.run_options import add_rules, checked_rules, rules_of, take_command, time_of
from simsched.cli.options.site_options import add_site, noted_use, place_site, require
from simsched.cli.options.workloads import add_reading, read_inputs, read_workloads, write_ignored
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.cli.support.messages import note
from simsched.cli.support.output import answer, write
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError
from simsched.formats.rfc.clock import Clock
from simsched.text_table import table_lines

if TYPE_CHECKING:
    import argparse

    from simsched.cli.support.parser import Subparsers
    from simsched.graph.cluster import Cluster
    from simsched.simulation.forecast.forecast_quantiles import StartQuantiles
    from simsched.simulation.forecast.start_times import Forecast
    from simsched.workload.queue_snapshot import QueueSnapshot

_OF_WORKLOADS = ("transform", "limit", "constrain", "strict", "start_date")
"""Arguments that do not apply to a queue snapshot."""

NEVER = float("inf")
SNAPSHOT = Clock(0)
"""The clock of a queue snapshot whose times count from 1970."""


class ForecastFlags(Flags, frozen=True, kw_only=True):
    """Predict when each waiting job would start.

    Predict when each waiting job would start if running jobs and the jobs before it took all their requested
    time.  The jobs come from a queue snapshot (a file of our own layout, or the output of
    `flux jobs -A --json`), from a workload that is simulated up to a time, or from a run directory, whose
    inputs are then simulated again with its options.

    cluster : a cluster file, a bundled name, or a run directory.
    workload : a queue snapshot, a workload file, or a bundled name.
    at : time of the forecast: seconds or a duration (3d) from 0, a date (2024-03-01T08:00), or after the
        time of the queue snapshot (+2h); required for a workload without --resume.
    resume : simulate from a checkpoint instead of from the start.
    details : allocations and requests of the jobs of a queue snapshot: JSON Lines of {id, R, jobspec}.
    quantiles : print quantiles of the start as well (default 0.1,0.5,0.9), learnt from errors of
        forecasts at earlier times of the workload, and how often such quantiles held.
    learn_from : the log from which the quantiles of a queue snapshot are learnt.
    errors : print the errors of all forecasts of the workload (up to --at) by horizon instead.
    format : text (default) or json.
    quiet : print neither progress nor notes on the inputs.
    """

    cluster: Annotated[str | None, flag("CLUSTER|RUN", positional=True, nargs="?")] = None
    workload: Annotated[str | None, flag("SNAPSHOT|WORKLOAD", positional=True, nargs="?")] = None
    at: Annotated[str | None, flag("T")] = None
    resume: Annotated[str | None, flag("FILE")] = None
    details: Annotated[str | None, flag("FILE")] = None
    quantiles: Annotated[str | None, flag("P,…", nargs="?", const="0.1,0.5,0.9")] = None
    learn_from: Annotated[str | None, flag("LOG")] = None
    errors: bool = False
    format: Literal["text", "json"] = "text"
    quiet: bool = False


def register(subparsers: Subparsers) -> None:
    """Add the verb `forecast`."""
    add_verb(subparsers, "forecast", run_forecast, ForecastFlags, add_site, add_rules, add_reading,
             answers=["forecast", "forecast-errors"])  # fmt: skip


def run_forecast(args: argparse.Namespace) -> int:
    """Print when each waiting job would start."""
    from simsched.simulation.forecast.forecast_quantiles import learn
    from simsched.simulation.forecast.horizon_errors import errors_json, errors_text
    from simsched.simulation.forecast.start_times import forecast_at, forecast_with_past
    from simsched.simulation.options.dated_times import time_of_run
    from simsched.workload.job import Workload

    levels = _levels(args)
    site = place_site(args, "cluster", "workload")
    if site is not None and args.workload is not None and (Path(args.workload) / "run.json").is_file():
        raise ConfigError(
            "a run directory has its own machine",
            where="--site",
            expected="--site DIR SNAPSHOT, or a WORKLOAD",
        )
    require(args, cluster="CLUSTER|RUN", **({} if site is None else {"workload": "SNAPSHOT|WORKLOAD"}))
    if args.workload is None:
        options = _rules_of_run(args)
    else:
        options = checked_rules(args, site)
        picture = _queue_snapshot(args)
        if picture is not None:
            noted = noted_use(args, site)
            if noted is not None:
                noted(Workload(tuple(waits.job for waits in picture.waiting), source=picture.source))
            return _run_live(args, picture, options, levels)
    if args.details is not None:
        raise ConfigError("there is no queue snapshot", where="--details", expected="CLUSTER SNAPSHOT")
    _refuse_without_past(args, levels)
    if args.at is None and args.resume is None and not args.errors:
        _refuse_unrecognised(args)
        raise ConfigError(
            "there is no time", where="forecast", expected="--at T, --resume FILE, or a queue snapshot"
        )
    at = None if args.at is None else time_of(args.at, "--at")
    cluster, workload = read_inputs(args, site)
    seen: list[float] = []
    at = time_of_run(at, workload, "--at")
    clock = workload.clock
    ends = (workload.span[0], at)
    with heartbeat("forecast", lambda spent: _state(seen[-1:], ends, spent), quiet=args.quiet):
        options["progress"] = lambda e: seen.append(e.now)
        if not levels:
            at, found = forecast_at(cluster, workload, at, resume=args.resume, **options)
            _put(found, at, args.format, clock)
            return 0
        at, found, past = forecast_with_past(cluster, workload, at, **options)
        learnt = learn(past, levels)
    if args.errors:
        write(errors_json(learnt) if args.format == "json" else errors_text(learnt), args.format)
    else:
        _put(learnt.added_to(found, at), at, args.format, clock, learnt)
    return 0


def _levels(args: argparse.Namespace) -> tuple[float, ...]:
    """Return the levels of quantiles to learn; none unless quantiles or errors are printed."""
    from simsched.simulation.forecast.forecast_quantiles import LEVELS, read_levels

    if args.quantiles is not None:
        return read_levels(args.quantiles, "--quantiles")
    return LEVELS if args.errors or args.learn_from is not None else ()


def _refuse_without_past(args: argparse.Namespace, levels: tuple[float, ...]) -> None:
    """Raise ConfigError for options about the past that a workload or a checkpoint does not have."""
    if args.learn_from is not None:
        raise ConfigError(
            "a workload is learnt from itself", where="--learn-from", expected="CLUSTER SNAPSHOT"
        )
    if levels and args.resume is not None:
        raise ConfigError(
            "a checkpoint does not have the forecasts before it",
            where="--resume",
            expected="--at T without --resume",
        )


def _state(seen: list[float], ends: tuple[float, float | None], spent: float) -> str:
    """Return the simulated time and about how long the rest takes."""
    begin, end = ends
    if not seen or end is None:
        return "simulating the workload"
    more = expected(spent, seen[0] - begin, end - seen[0])
    return f"simulated {seen[0]:,.0f} of {end:,.0f} s of the workload{more}"


def _refuse_unrecognised(args: argparse.Namespace) -> None:
    """Raise FormatError for a file that is neither a queue snapshot nor a log of jobs."""
    from simsched.formats.machines.recognition import WORKLOAD, unrecognised
    from simsched.workload.load import resolve_workload
    from simsched.workload.source import Source

    path = resolve_workload(args.workload) if args.workload is not None else None
    if path is not None and path.is_file():
        known = (
            "squeue --json, scontrol show job, flux jobs --json, a queue.yaml, or a log of jobs with --at T"
        )
        fault = unrecognised(Source.of(path).head(), args.workload, WORKLOAD, known)
        if fault is not None:
            raise fault


def _queue_snapshot(args: argparse.Namespace) -> QueueSnapshot | None:
    """Return the queue snapshot in place of a workload, if it is one; the source is read only once."""
    from simsched.workload.load import resolve_workload
    from simsched.workload.mapping import ReadOptions, SiteReading
    from simsched.workload.queue_snapshot import load_queue_snapshot
    from simsched.workload.source import Source

    path = resolve_workload(args.workload)
    if args.as_ is not None or args.resume is not None or path.is_dir():
        return None
    source = Source.of(path)
    reading = ReadOptions(
        maps=args.map and tuple(args.map),
        procs_per_node=args.procs_per_node,
        on_site=args.on_site and SiteReading.read(args.on_site, "on_site"),
        time_zone=args.time_zone,
    )
    found = load_queue_snapshot(source, reading, args.details)
    if found is None and source.content is not None:
        args.workload = source
    return found


def _run_live(
    args: argparse.Namespace, picture: QueueSnapshot, options: dict[str, Any], levels: tuple[float, ...]
) -> int:
    """Print the forecasts of a queue snapshot."""
    from dataclasses import replace

    from simsched.formats.rfc.clock import seconds_on
    from simsched.graph.cluster import load_cluster
    from simsched.simulation.forecast.live_cluster import live_at
    from simsched.simulation.options.run_config import RECORDED
    from simsched.workload.queue_snapshot import Spread

    given = next((name for name in _OF_WORKLOADS if getattr(args, name)), None)
    if given is not None:
        raise ConfigError(
            "the option does not apply to a queue snapshot",
            where=f"--{given.replace('_', '-')}",
            expected="a workload",
        )
    clock = _clock_of(picture, args.time_zone)
    picture = replace(picture, zone=args.time_zone)
    at = None
    if args.at is not None:
        at = seconds_on(time_of(args.at.removeprefix("+"), "--at"), clock, "--at")
        at += picture.time if args.at.startswith("+") else 0
    if args.errors or (levels and args.learn_from is None):
        raise ConfigError(
            "a queue snapshot has no earlier forecasts",
            where="--errors" if args.errors else "--quantiles",
            expected="a workload" if args.errors else "--learn-from LOG",
        )
    cluster = load_cluster(args.cluster)
    # A queue snapshot has no recorded starts to play: the log of --learn-from does.
    played = options.get("queue_policy") == RECORDED and args.learn_from is not None
    plan = {name: value for name, value in options.items() if not (played and name == "queue_policy")}
    at, found = live_at(cluster, picture, at, **plan)
    learnt = _learnt_from(args, cluster, options, levels) if levels else None
    found = found if learnt is None else learnt.added_to(found, at)
    without = sum(isinstance(run.holds, Spread) for run in picture.running)
    if without:
        jobs = (
            "1 running job has no R and is" if without == 1 else f"{without} running jobs have no R and are"
        )
        sys.stderr.write(f"{jobs} placed by the nodes and the number of cores (see --details)\n")
    _put(found, at, args.format, clock, learnt)
    return 0


def _learnt_from(
    args: argparse.Namespace, cluster: Cluster, options: dict[str, Any], levels: tuple[float, ...]
) -> StartQuantiles:
    """Return the quantiles learnt from the log of ``--learn-from`` under the options of the forecast."""
    from simsched.simulation.forecast.forecast_quantiles import learn
    from simsched.simulation.forecast.start_times import forecast_with_past

    log = read_workloads(args, [args.learn_from], cluster)
    write_ignored(log)
    with heartbeat("forecast", lambda _: "learning from the log", quiet=args.quiet):
        return learn(forecast_with_past(cluster, log, **options)[2], levels)


def _clock_of(picture: QueueSnapshot, zone: str | None) -> Clock | None:
    """Return the clock of a queue snapshot; None if its times are not dates."""
    from simsched.formats.rfc.clock import zone_name

    if not picture.epoch:
        return None
    return SNAPSHOT if zone is None else Clock(0, zone_name(zone, "--time-zone"))


def _rules_of_run(args: argparse.Namespace) -> dict[str, Any]:
    """Return the rules of a run directory, and set the inputs of `args` to its inputs.

    Raises
    ------
    ConfigError, RunError
        if it is not a run directory, does not record its command, or an input has changed.
    """
    folder = Path(args.cluster)
    if not (folder / "run.json").is_file():
        raise ConfigError(
            "there is no workload", where="forecast", expected="CLUSTER WORKLOAD, or a run directory"
        )
    return rules_of(args, take_command(args, folder), str(folder))


def _put(
    found: list[Forecast], at: float, form: str, clock: Clock | None, learnt: StartQuantiles | None = None
) -> None:
    levels = () if learnt is None else learnt.levels
    answer(form, lambda: _rows(found, levels), lambda: _lines(found, at, clock, levels), indent=1)
    if not found:
        note("no job waits at that time")
    if learnt is not None:
        note(learnt.text)


def _rows(found: list[Forecast], levels: tuple[float, ...]) -> list[dict[str, Any]]:
    """Return the forecasts as JSON data, with quantiles where there are levels of them."""
    from simsched.declare.answers import written

    rows: list[dict[str, Any]] = written(found)
    for row in rows:
        size, starts = row.pop("size"), row.pop("quantiles") or [None] * len(levels)
        if levels:
            row |= {"size": size, "quantiles": {f"{k:g}": v for k, v in zip(levels, starts, strict=True)}}
    return rows


def _lines(found: list[Forecast], at: float, clock: Clock | None, levels: tuple[float, ...]) -> list[str]:
    """Return a table; times are dates if the clock is known, and else seconds.

    A line above the table names the zone, unless each date does: those of a queue snapshot end with Z.
    """
    head = ["JOB", "USER", "QUEUE", "PLACE", "SUBMIT", "START", "IN", *map(human.share, levels), "SHAPE"]
    rows = [[*head, "REASON" if any(job.reason for job in found) else ""]]
    for job in found:
        start, wait = "unknown", ""
        if job.start != NEVER:
            left = job.start - at
            start, wait = _time(job.start, clock), human.seconds(left if clock is None else round(left))
        who = [job.id, job.user or "-", job.queue or "-", str(job.place or "-")]
        # a quantile of the wait may be longer than all waits so far
        left_by = [value - at for value in job.quantiles]
        ahead = ["unknown" if left == NEVER else human.seconds(round(left)) for left in left_by]
        ahead = ahead or [""] * len(levels)
        times = [_time(job.submit, clock), start, wait, *ahead]
        rows.append([*who, *times, job.shape, job.reason or ""])
    wide = 20 if clock is not None else 12
    least = [10, 10, 10, 5, wide, wide, 12]
    lines = table_lines(rows, range(7 + len(levels)), least=least, gap=" ")
    if clock is not None and clock != SNAPSHOT:
        lines.insert(0, f"as of {clock.text(at)}, {clock.zone_text}")
    return lines


def _time(seconds: float, clock: Clock | None) -> str:
    from simsched.formats.rfc.duration import format_date

    if clock == SNAPSHOT:
        return format_date(seconds)
    return f"{seconds:.12g}" if clock is None else clock.text(seconds)
