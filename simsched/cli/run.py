"""``simsched run``: simulate a workload on a cluster and write a run directory."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from simsched import _version
from simsched.bundled import resolve
from simsched.cli.options.run_options import COMMAND_LINE, add_rules, rules_document, rules_of, time_of
from simsched.cli.options.site_options import add_site, place_site, require
from simsched.cli.options.workloads import add_reading, read_inputs
from simsched.cli.support.heartbeat import FIRST, expected, heartbeat, progress_bar
from simsched.cli.support.messages import note
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, field, flag
from simsched.errors import ConfigError, RunError
from simsched.garbage import seldom_collected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.cli.support.signals import Stop
    from simsched.graph.cluster import Cluster
    from simsched.simulation.engine import Engine
    from simsched.simulation.record.run_directory import RunResult
    from simsched.site.site import Site
    from simsched.workload.job import Workload

DEFAULT_POLICY = "easy"
MINUTE = 60.0
"""A rest of fewer seconds is not announced."""
EXIT_FAULTS = 1
EXIT_LEFT_OUT = 1
LONG = 20_000
"""Jobs from which on a run is told that its kernel is not compiled."""


class RunFlags(Flags, frozen=True, kw_only=True):
    """Simulate a workload on a cluster under a queue policy.

    Simulate a workload on a cluster and write a run directory: tables of jobs and of the timeline, every
    allocation as R, and a summary.  An earlier run in DIR is replaced when the new one is complete.  A
    directory with any other files is never changed.

    cluster : a cluster file, or a bundled name.
    workload : a workload file, or a bundled name.
    output : run directory to write (default: named after CLUSTER, WORKLOAD and the queue policy).
    again : repeat the run of this directory, with its inputs and options, into DIR (default RUN-again).
    audit : check the run with the independent auditor.
    no_allocations : do not write allocations, which is faster.
    eventlog : write the events of every job (RFC 18, 21).
    quiet : print no progress, no summary and no notes on the inputs.

    Exit status: 0 done, 1 the audit found faults or, under --strict, a job can never run or none ran, 2 the
    input is wrong, 130 interrupted, 143 ended by SIGTERM (the results so far are then in DIR.partial).
    """

    cluster: Annotated[str | None, flag("CLUSTER", positional=True, nargs="?")] = None
    workload: Annotated[str | None, flag("WORKLOAD", positional=True, nargs="?")] = None
    output: Annotated[str | None, flag("DIR", "-o")] = None
    again: Annotated[str | None, flag("RUN")] = None
    audit: bool = False
    no_allocations: bool = False
    eventlog: bool = False
    quiet: bool = False


class RunTimes(Flags, frozen=True, kw_only=True):
    """Times of ``run``.

    until : end the run at this time and report its state.
    from_ : simulate all jobs, but measure only those submitted from this time on.
    checkpoint_at : write the state at the start of this instant, and continue; may be repeated.
    resume : continue from a checkpoint of a run of the same cluster, workload and rules.
    """

    until: Annotated[str | None, flag("T")] = None
    from_: Annotated[str | None, flag("T")] = field(name="from", default=None)
    checkpoint_at: Annotated[tuple[Any, ...], flag(("T", "FILE"), nargs=2, action="append")] = ()
    resume: Annotated[str | None, flag("FILE")] = None


def register(subparsers: Subparsers) -> None:
    """Add the verb `run`."""
    run = add_verb(subparsers, "run", run_run, RunFlags, add_site, add_rules, add_reading)
    times = "T is in seconds, a duration such as 3d on the clock of the workload, or a date such as "
    times += "2024-03-01T08:00 in its time zone"
    add_flags(run.add_argument_group("times", times), RunTimes)


@seldom_collected()  # imports, jobs and tables stay
def run_run(args: Arguments) -> int:
    """Simulate a workload, write the run directory, and print a report; audit the run with ``--audit``."""
    if args.again is not None:
        return _run(args, None, _again(args))
    site = place_site(args, "cluster", "workload")
    require(args, cluster="CLUSTER", workload="WORKLOAD")
    if site is None and not (args.output and Path(args.output).exists()):  # what is there is looked at first
        resolve("clusters", args.cluster)  # a misspelt name is reported before half a second of imports
    return _run(args, site)


def _again(args: Arguments) -> dict[str, Any]:
    """Set the arguments to those of the run of ``--again``, and return the rules and texts of its record.

    Raises
    ------
    ConfigError, RunError, FormatError
        if it is not a run directory, another option of a run is given, or an input is missing or changed.
    """
    from simsched.cli.options.run_options import take_command
    from simsched.formats.text.documents import read_text
    from simsched.formats.text.json_text import load_json

    folder = Path(args.again)
    record = folder / "run.json"
    if not record.is_file():
        raise ConfigError("this is not a run directory", where=str(folder), expected="a folder with run.json")
    if (args.cluster, args.workload, args.site) != (None, None, None):
        raise ConfigError(
            "a run is repeated with its own inputs",
            where="--again",
            expected="no CLUSTER, WORKLOAD or --site",
        )
    others = ("until", "from_", "checkpoint_at", "resume", "eventlog", "no_allocations")
    rules = take_command(args, folder, *others)
    meta: Any = load_json(read_text(record), str(record))
    if not meta.get("complete", True) and meta.get("until") is None:
        raise RunError("the run was interrupted", where=str(folder), expected="a run that is complete")
    args.until, args.from_ = (None if meta.get(key) is None else str(meta[key]) for key in ("until", "from"))
    files = meta.get("files", {})
    args.no_allocations = "allocations.jsonl" not in files
    args.eventlog = "eventlog.jsonl" in files
    args.output = args.output or f"{str(folder).rstrip('/')}-again"
    return {"rules": rules, **{key: meta[key] for key in ("log_use",) if key in meta}}


def _run(args: Arguments, site: Site | None, again: Mapping[str, Any] | None = None) -> int:
    """Simulate, write and print, once the arguments are complete; return the exit status.

    `again` are the rules and texts of the record of the run that is repeated.
    """
    from dataclasses import replace

    from simsched.cli.options.run_options import command_of
    from simsched.cli.support.signals import stopping
    from simsched.folders import refuse_foreign
    from simsched.simulation.options.dated_times import notes_on_outages
    from simsched.simulation.options.rule_notes import notes_on_rules
    from simsched.simulation.record.run_directory import RUN, RunDirectory

    if again is None and args.audit and args.no_allocations:
        raise ConfigError(
            "an audit needs the allocations", where="--audit --no-allocations", expected="one of them"
        )
    rules = rules_document(args, site) if again is None else again["rules"]
    place = COMMAND_LINE if again is None else f"{args.again}/run.json: rules"
    options = rules_of(args, rules, place) | _times(args)
    args.output = args.output or _default_output(args, rules)
    refuse_foreign(args.output, RUN)
    cluster, workload = read_inputs(args, site)
    if not len(workload):
        note("the workload has no jobs")
    for text in notes_on_outages(options.get("outages", ()), workload):
        note(text)
    for text in notes_on_rules(options, workload):
        note(text)
    options |= _times(args, workload)
    with stopping() as stop, RunDirectory(args.output) as directory:
        if directory.recovered:
            note(f"recovered a finished run in {args.output} whose process was killed")
        sink = None if args.no_allocations else directory.allocations()
        result = _simulate(args, cluster, workload, sink, stop, options)
        recorded: dict[str, Any] = {"command": command_of(args, rules)}
        if again is not None and again.get("log_use") is not None:
            recorded["log_use"] = again["log_use"]
        elif site is not None:
            from simsched.site.log_use import use_sentence

            if sentence := use_sentence(site, workload, mapped=bool(args.map)):
                recorded["log_use"] = sentence
        if workload.kind == "model":  # runs of one model with other seeds have other jobs
            recorded["drawn"] = True
        result = replace(result, meta={**result.meta, **recorded})
        path = directory.finish(result, {"summary.json": _summary(result)})
        left_out = _write_left_out(result)
        if directory.replaced:
            note(f"replaced the earlier run in {path}")
        if not result.meta["complete"]:
            sys.stderr.write(f"interrupted; the results so far are in {path}\n")
    used = "simsched.match.counted_kinds" in sys.modules  # runs of numbers do not need the kernel
    if used and len(workload) >= LONG and not _version.kernel_is_compiled():
        note("the kernel is interpreted; with a C compiler at the installation such runs are faster")
    if not result.meta["complete"]:
        return stop.status
    if not args.quiet:
        from simsched.cli.support.output import terminal_width
        from simsched.report import text_report
        from simsched.report.run_views import load_run

        print(text_report.page(load_run(str(path)), terminal_width()), end="")
        sys.stderr.write(f"written: {path}\n")
    if args.audit:
        from simsched.simulation.audit.auditor import audit_run

        found = audit_run(str(path), cluster, result.workload or workload)
        sys.stderr.write(f"{found}\n")
        if not found:
            return EXIT_FAULTS
    return EXIT_LEFT_OUT if args.strict and left_out else 0


def _default_output(args: Arguments, rules: Mapping[str, Any]) -> str:
    """Return the run directory where the command names none, such as ``flat240-month-easy``."""
    parts = (args.site or args.cluster, args.workload, rules.get("queue-policy", DEFAULT_POLICY))
    words = ["stdin" if part == "-" else Path(part).resolve().name.partition(".")[0] for part in parts]
    return "-".join(word or "run" for word in words)


def _write_left_out(result: RunResult) -> bool:
    """Report jobs that can never run, and a run without jobs; return whether there is either."""
    from simsched.report.metrics.causes import left_out

    kept = len(result.workload) if result.workload is not None else len(result.jobs["id"])
    counts = result.meta["counts"]
    rows = zip(result.jobs["result"][:kept], result.jobs["reason"][:kept], strict=True)
    if not result.meta["complete"]:
        return False
    line = left_out(rows, counts, counts["jobs"] - kept)
    if line is not None:
        note(line)
    if not counts["run"] and kept:
        note("no job ran")
    return line is not None or not counts["run"]


def _times(args: Arguments, workload: Workload | None = None) -> dict[str, Any]:
    """Return the times of the command line, those of a workload as its seconds; errors name their options."""
    from simsched.simulation.options.dated_times import time_of_run

    def at(text: str | None, option: str) -> Any:
        when = None if text is None else time_of(text, option)
        return when if workload is None else time_of_run(when, workload, option)

    return {
        "until": at(args.until, "--until"),
        "measure_from": at(args.from_, "--from"),
        "checkpoints": {at(time, "--checkpoint-at"): path for time, path in args.checkpoint_at},
        "resume": args.resume,
    }


def _simulate(
    args: Arguments,
    cluster: Cluster,
    workload: Workload,
    sink: Any,
    stop: Stop,
    options: dict[str, Any],
) -> RunResult:
    from simsched.bundled import resolve
    from simsched.simulation.simulate import simulate
    from simsched.workload.load import resolve_workload

    inputs = {"cluster": resolve("clusters", args.cluster), "workload": resolve_workload(args.workload)}
    engines: list[Engine] = []
    once = sys.stderr.isatty()  # from the first line on, the bar shows the rest

    def begun(engine: Engine) -> None:
        engines.append(engine)
        stop.ends(engine.end_early)

    with (
        _progress(len(workload), quiet=args.quiet) as progress,
        heartbeat("run", lambda spent: _state(engines, spent), quiet=args.quiet, first=FIRST, once=once),
    ):
        return simulate(
            cluster,
            workload,
            inputs=inputs,
            allocations=sink is not None,
            eventlog=args.eventlog,
            sink=sink,
            progress=progress,
            begun=begun,
            **options,
        )


def _state(engines: Sequence[Engine], spent: float) -> str:
    """Return how many jobs have ended, the rate, and how long the rest takes at it; "" if that is soon."""
    if not engines:
        return ""
    done, jobs = engines[0].done, len(engines[0].progress.states)
    if done and spent / done * (jobs - done) < MINUTE:
        return ""
    rate = f"{done / spent:,.0f} jobs/s" if done >= spent else f"{done / spent:.2g} jobs/s"
    return f"{done:,} of {jobs:,} jobs ended, {rate}{expected(spent, done, jobs - done)}"


@contextmanager
def _progress(jobs: int, *, quiet: bool) -> Iterator[Callable[[Engine], None] | None]:
    """Show a progress bar on standard error if it is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with progress_bar(total=jobs) as update:

        def show(engine: Engine) -> None:
            days = engine.now / 86400
            text = f"day {days:,.1f}, {len(engine.plan)} running, {engine.queued} waiting"
            update(completed=engine.done, description=text)

        yield show


def _summary(result: RunResult) -> str:
    """Return ``summary.json`` of a run."""
    from simsched.report.metrics.metric_plugins import installed_metrics
    from simsched.report.metrics.summary import summary_of_columns, summary_text

    if not installed_metrics():
        return summary_text(summary_of_columns(result.jobs, result.timeline, result.meta))
    from simsched.report.data.tables import RunTables  # metrics of other packages are given frames

    return summary_text(RunTables.from_result(result).summary)
