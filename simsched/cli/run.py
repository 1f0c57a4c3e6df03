"""``simsched run``: simulate a workload on a cluster and write a run directory."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from simsched.cli.options.run_options import add_rules, rules_document, rules_of, time_of
from simsched.cli.options.workloads import add_reading, read_inputs

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from simsched.cli import Subparsers
    from simsched.graph.cluster import Cluster
    from simsched.simulation.engine import Engine
    from simsched.simulation.record.result import Result
    from simsched.simulation.record.run_directory import RunDirectory
    from simsched.workload.job import Workload

EXIT_FAULTS = 1
EXIT_LEFT_OUT = 1


def register(subparsers: Subparsers) -> None:
    """Add the verb `run`."""
    run = subparsers.add_parser(
        "run",
        help="simulate a workload on a cluster under a queue policy",
        description="Simulate a workload on a cluster and write a run directory: tables of jobs and of the "
        "timeline, every allocation as R, and a summary.  An earlier run of that name is replaced once the "
        "new one is whole.  A directory that holds anything else, even beside a run, is left alone.",
        epilog="Exit status: 0 done, 1 the audit found faults or, under --strict, a job can never run or "
        "none ran, 2 the input is wrong, 130 interrupted, 143 ended by SIGTERM (what was done is then in "
        "DIR.partial).",
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
        "--checkpoint-at",
        nargs=2,
        metavar=("T", "FILE"),
        action="append",
        default=[],
        help="write the state at the start of this instant, and continue; may be repeated",
    )
    # The former name of --checkpoint-at.
    times.add_argument(
        "--snapshot-at", dest="checkpoint_at", nargs=2, action="append", help=argparse.SUPPRESS
    )
    times.add_argument(
        "--resume",
        metavar="FILE",
        help="continue from a checkpoint of a run of the same cluster, workload and rules",
    )


def run_run(args: argparse.Namespace) -> int:
    """Simulate, write, audit if asked to, and say what came of it."""
    from dataclasses import replace

    from simsched.cli.forecast import command_of
    from simsched.cli.support.signals import stopping
    from simsched.folders import refuse_foreign
    from simsched.simulation.record.run_directory import RUN, RunDirectory

    rules = _rules(args)
    options = rules_of(args, rules) | _times(args)
    refuse_foreign(args.output, RUN)
    cluster, workload = read_inputs(args)
    if not len(workload):
        sys.stderr.write("note: the workload has no job\n")
    with stopping() as stop, RunDirectory(args.output) as directory:
        if directory.recovered:
            sys.stderr.write(f"note: recovered in {args.output} a finished run whose process was killed\n")
        sink = None if args.no_allocations else directory.allocations()
        result = _simulate(args, cluster, workload, sink, stop, options)
        result = replace(result, meta={**result.meta, "command": command_of(args, rules)})
        path = directory.finish(result, {"summary.json": _summary(result)})
        left_out = _tell_left_out(result)
        _tell_end(result, directory, path)
    if not result.meta["complete"]:
        return stop.status
    if not args.quiet:
        _report(str(path))
    faults = _audit(cluster, result.workload or workload, str(path)) if args.audit else 0
    return faults or (EXIT_LEFT_OUT if args.strict and left_out else 0)


def _tell_left_out(result: Result) -> bool:
    """Write one line about the jobs that can never run, and one if no job ran; return whether any."""
    from simsched.report.metrics.causes import left_out

    kept = len(result.workload) if result.workload is not None else len(result.jobs["id"])
    counts = result.meta["counts"]
    rows = zip(result.jobs["result"][:kept], result.jobs["reason"][:kept], strict=True)
    if not result.meta["complete"]:
        return False
    line = left_out(rows, counts, counts["jobs"] - kept)
    if line is not None:
        sys.stderr.write(f"{line}\n")
    if not counts["run"] and kept:
        sys.stderr.write("note: no job ran\n")
    return line is not None or not counts["run"]


def _times(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the command line says of times."""
    return {
        "until": None if args.until is None else time_of(args.until, "--until"),
        "measure_from": None if args.from_ is None else time_of(args.from_, "--from"),
        "checkpoints": {time_of(at, "--checkpoint-at"): path for at, path in args.checkpoint_at},
        "resume": args.resume,
    }


def _simulate(
    args: argparse.Namespace,
    cluster: Cluster,
    workload: Workload,
    sink: Any,
    stop: threading.Event,
    options: dict[str, Any],
) -> Result:
    from simsched.bundled import resolve
    from simsched.simulation.simulate import simulate
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


def _rules(args: argparse.Namespace) -> dict[str, Any]:
    """Return the rules as a document, checked before anything is read."""
    from simsched.errors import ConfigError

    if args.audit and args.no_allocations:
        raise ConfigError("there would be no allocations to audit", where="--audit --no-allocations")
    return rules_document(args)


def _tell_end(result: Result, directory: RunDirectory, path: Path) -> None:
    if directory.replaced:
        sys.stderr.write(f"note: replaced the earlier run in {path}\n")
    if not result.meta["complete"]:
        sys.stderr.write(f"interrupted; what was done until then: {path}\n")


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
    from simsched.report.data.tables import Run
    from simsched.report.metrics.summary_file import summary_text

    return summary_text(Run.from_columns(result.jobs, result.timeline, result.meta).summary)


def _report(path: str) -> None:
    from simsched.cli.report import terminal
    from simsched.report import text_report as text
    from simsched.report.data.tables import load_run

    print(text.page(load_run(path), *terminal()), end="")
    sys.stderr.write(f"written: {path}\n")


def _audit(cluster: Cluster, workload: Workload, path: str) -> int:
    from simsched.simulation.audit.auditor import audit_run

    found = audit_run(path, cluster, workload)
    sys.stderr.write(f"{found}\n")
    return 0 if found else EXIT_FAULTS
