"""``simsched run``: simulate a workload on a cluster and write a run directory."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simsched.cli.reading import add_reading, read_workloads
from simsched.cli.rules import add_rules, rules

if TYPE_CHECKING:
    import argparse
    import threading
    from collections.abc import Callable, Iterator

    from simsched.cli import Subparsers
    from simsched.graph.cluster import Cluster
    from simsched.simulate.engine import Engine
    from simsched.simulate.result import Result
    from simsched.workload.job import Workload

EXIT_FAULTS = 1
EXIT_INTERRUPTED = 130


def register(subparsers: Subparsers) -> None:
    """Add the verb `run`."""
    run = subparsers.add_parser(
        "run",
        help="simulate a workload on a cluster under a queue policy",
        description="Simulate a workload on a cluster and write a run directory: tables of jobs and of the "
        "timeline, every allocation as R, and a summary.  An earlier run of that name is replaced once the "
        "new one is whole; anything else of that name is left alone.",
        epilog="Exit status: 0 done, 1 the audit found faults, 2 the input is wrong, 130 interrupted "
        "(what was done is then in DIR.partial).",
    )
    run.add_argument("cluster", metavar="CLUSTER", help="a cluster file, or the name of a bundled one")
    run.add_argument("workload", metavar="WORKLOAD", help="a workload file, or the name of a bundled one")
    run.add_argument("-o", "--output", metavar="DIR", required=True, help="the run directory to write")
    add_rules(run)
    add_reading(run)
    run.add_argument("--audit", action="store_true", help="check the run with the independent auditor")
    run.add_argument("--no-allocations", action="store_true", help="do not write who got what (faster)")
    run.add_argument("--eventlog", action="store_true", help="write every job's events (RFC 18, 21)")
    run.add_argument("--quiet", action="store_true", help="no progress, no summary")
    _add_times(run)
    run.set_defaults(run=run_run)
    _register_forecast(subparsers)


def _add_times(run: argparse.ArgumentParser) -> None:
    times = run.add_argument_group(
        "times", "T is in seconds, or a duration such as 3d, on the workload's clock"
    )
    times.add_argument("--until", metavar="T", help="end the run at this time; see its state then")
    times.add_argument(
        "--from",
        dest="from_",
        metavar="T",
        help="play everything, but measure only the jobs submitted from this time on",
    )
    times.add_argument(
        "--snapshot-at",
        nargs=2,
        metavar=("T", "FILE"),
        action="append",
        default=[],
        help="write the state at the start of this instant, and go on; may be repeated",
    )
    times.add_argument(
        "--resume",
        metavar="FILE",
        help="go on from a snapshot of a run of the same cluster, workload and rules",
    )


def _register_forecast(subparsers: Subparsers) -> None:
    forecast = subparsers.add_parser(
        "forecast",
        help="when would each waiting job start, as of a time",
        description="Play a workload up to a time, and say when each job that waits then would start if what "
        "runs and what waits before it took all the time that it asked for.",
    )
    forecast.add_argument("cluster", metavar="CLUSTER", help="a cluster file, or the name of a bundled one")
    forecast.add_argument(
        "workload", metavar="WORKLOAD", help="a workload file, or the name of a bundled one"
    )
    forecast.add_argument(
        "--at", metavar="T", help="the time: seconds or a duration (3d) from 0; needed without a snapshot"
    )
    forecast.add_argument("--resume", metavar="FILE", help="play from a snapshot instead of from the start")
    forecast.add_argument("--format", choices=("text", "json"), default="text")
    add_rules(forecast)
    add_reading(forecast)
    forecast.set_defaults(run=run_forecast, audit=False, no_allocations=True)


def run_run(args: argparse.Namespace) -> int:
    """Simulate, write, audit if asked to, and say what came of it."""
    from simsched.simulate.directory import RunDirectory, refuse_foreign

    options = _options(args)
    options |= _times(args)
    refuse_foreign(args.output)
    cluster, workload = _inputs(args)
    with _stopping() as stop, RunDirectory(args.output) as directory:
        sink = None if args.no_allocations else directory.allocations()
        result = _simulate(args, cluster, workload, sink, stop, options)
        path = directory.finish(result, {"summary.json": _summary(result)})
    if not result.meta["complete"]:
        sys.stderr.write(f"interrupted; what was done until then: {path}\n")
        return EXIT_INTERRUPTED
    if not args.quiet:
        _report(str(path))
    return _audit(cluster, result.workload or workload, str(path)) if args.audit else 0


def _times(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the command line says of times."""
    return {
        "until": None if args.until is None else _time(args.until, "--until"),
        "measure_from": None if args.from_ is None else _time(args.from_, "--from"),
        "snapshots": {_time(at, "--snapshot-at"): path for at, path in args.snapshot_at},
        "resume": args.resume,
    }


def _inputs(args: argparse.Namespace) -> tuple[Cluster, Workload]:
    from simsched.graph.cluster import load_cluster

    cluster = load_cluster(args.cluster)
    workload = read_workloads(args, [args.workload], cluster)
    for reason, count, places in workload.skip_table():
        sys.stderr.write(f"left out: {count} records, {reason} ({places})\n")
    return cluster, workload


def _simulate(
    args: argparse.Namespace,
    cluster: Cluster,
    workload: Workload,
    sink: Any,
    stop: threading.Event,
    options: dict[str, Any],
) -> Result:
    from simsched.bundled import resolve
    from simsched.simulate.api import simulate
    from simsched.workload.load import resolve_workload

    inputs = {"cluster": resolve("clusters", args.cluster), "workload": resolve_workload(args.workload)}
    with _progress(len(workload), quiet=args.quiet) as progress:
        return simulate(
            cluster,
            workload,
            inputs=inputs,
            allocations=sink is not None,
            eventlog=args.eventlog,
            sink=sink,
            progress=progress,
            stop=stop,
            **options,
        )


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of the configuration, checked before anything is read."""
    from simsched.errors import ConfigError
    from simsched.simulate.api import make_config

    if args.audit and args.no_allocations:
        raise ConfigError("there would be no allocations to audit", where="--audit --no-allocations")

    options = rules(args)
    make_config(**options)
    args.seed = options.get("seed", 0)  # the transforms of the workload draw from it too
    return options


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a request to stop at the next pass; a second one ends at once."""
    import threading

    stop = threading.Event()

    def ask(_number: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(jobs: int, *, quiet: bool) -> Iterator[Callable[[Engine], None] | None]:
    """Show a bar on a terminal's standard error; nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=jobs)

        def show(engine: Engine) -> None:
            days = engine.now / 86400
            text = f"day {days:,.1f}, {len(engine.plan)} running, {engine.queued} waiting"
            bar.update(task, completed=engine.done, description=text)

        yield show


def _summary(result: Result) -> str:
    """Return ``summary.json`` of a run."""
    import json
    import math

    from simsched.report.summary import summarise
    from simsched.report.tables import Run

    run = Run.from_columns(result.jobs, result.timeline, result.meta)
    figures = summarise(run.jobs, run.timeline, run.totals, warm_up=run.warm_up)
    plain = {name: value if math.isfinite(value) else None for name, value in figures.items()}
    return json.dumps(plain, indent=1) + "\n"


def _report(path: str) -> None:
    from simsched.cli.reports import terminal
    from simsched.report import text
    from simsched.report.tables import load_run

    print(text.page(load_run(path), *terminal()), end="")
    sys.stderr.write(f"written: {path}\n")


def _audit(cluster: Cluster, workload: Workload, path: str) -> int:
    from simsched.simulate.audit import audit_run

    found = audit_run(path, cluster, workload)
    sys.stderr.write(f"{found}\n")
    return 0 if found else EXIT_FAULTS


def _time(text: str, where: str) -> float:
    """Read a time from 0 on; whole seconds stay whole."""
    from simsched.errors import ConfigError
    from simsched.formats.duration import parse_duration

    seconds = parse_duration(text, where=where)
    if seconds == float("inf"):
        raise ConfigError("the end of time never comes", where=where, expected="seconds, or a duration")
    return int(seconds) if seconds == int(seconds) else seconds


def run_forecast(args: argparse.Namespace) -> int:
    """Print when each waiting job would start."""
    from simsched.errors import ConfigError
    from simsched.simulate.forecast import forecast_at

    options = _options(args)
    if args.at is None and args.resume is None:
        raise ConfigError("no time was given", where="forecast", expected="--at T, or --resume FILE")
    at = None if args.at is None else _time(args.at, "--at")
    cluster, workload = _inputs(args)
    at, found = forecast_at(cluster, workload, at, resume=args.resume, **options)
    if args.format == "json":
        import json
        from dataclasses import asdict

        rows = [asdict(job) for job in found]
        never = float("inf")
        plain = [{k: None if v == never else v for k, v in row.items()} for row in rows]
        print(json.dumps(plain, indent=1, ensure_ascii=False))
        return 0
    print(
        f"{'JOB':>10} {'USER':>10} {'QUEUE':>10} {'PLACE':>5} {'SUBMIT':>12} {'START':>12} {'IN':>12} SHAPE"
    )
    for job in found:
        known = job.start != float("inf")
        start, wait = (f"{job.start:.12g}", f"{job.start - at:.12g}s") if known else ("unknown", "")
        print(
            f"{job.id:>10} {job.user or '-':>10} {job.queue or '-':>10} {job.place:>5} "
            f"{job.submit:>12.12g} {start:>12} {wait:>12} {job.shape}"
        )
    return 0
