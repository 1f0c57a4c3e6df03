"""``simsched report`` and ``simsched plot``: tables, metrics, audits and figures of runs.

The module is named after the first of its two verbs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from simsched.cli.support.messages import note, warn
from simsched.cli.support.output import put, terminal_width
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, field, flag
from simsched.declare.kinds import choice
from simsched.errors import ConfigError, FormatError, RunError, SimschedError, did_you_mean
from simsched.report.columns import COLOURS
from simsched.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.cli.support.output import Form
    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.formats.rfc.clock import DateText
    from simsched.report.data.tables import RunTables
    from simsched.report.run_views import Run
    from simsched.simulation.audit.audit_report import AuditReport, RunAudits

T = TypeVar("T")

FORMATS = ("text", "json", "html", "csv", "markdown")
#: values of `--by`: groups of jobs, single jobs, and parts of the machine
BY = ("queue", "user", "account", "bank", "size", "runtime", "hour", "day", "week", "month", "result", "all",
      "job", "property", "place", "node")  # fmt: skip
#: ending of a file → format
ENDINGS = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html", ".csv": "csv", ".md": "markdown"}


RULES = {"mser": "MSER-5", "welch": "Welch's rule"}
"""Words of `--warm-up` that name a rule, and the names of the rules."""
_FORMS: dict[str, Form] = {"json": "json", "html": "xml", "csv": "other"}


class ReportFlags(Flags, frozen=True, kw_only=True):
    """Print tables and metrics of a run, or compare several.

    Print tables and metrics of a run directory, or of several side by side. Runs of the same workload are
    also compared job by job with the first of them.

    runs : run directory, or NAME=DIR to name the run.
    output : write to FILE; its ending selects the format.
    format : text (default), json, html, csv or markdown.
    warm_up : ignore jobs submitted in the first D, such as 3d, or before a date; mser and welch find the
        time by the rule MSER-5 or Welch's on the waits.
    drain : ignore jobs submitted in the last D, or after a date.
    by : print a table of groups of jobs, of single jobs (`--by job --format csv` has all columns), or of
        the use of the machine by property, place or node.
    recorded : print the waits that the log recorded beside those of the run, for all jobs (default) or by
        queue, user, account, size, runtime, hour (of the week), day, week or month.
    section : add a section of an installed package, NAME:KEY=VALUE,… with options; may be repeated.
    metric : add a metric of an installed package, NAME:KEY=VALUE,… with options; may be repeated.
    promises : print promised beside real starts, of policies with reservations: how many promises were kept,
        by how much the others were broken, and whose.
    audit : audit each run instead: check its files against their digests and, if its inputs are still there,
        every job and allocation against the inputs.

    Exit status: 0 done, 1 the audit found faults or is not complete, 2 the input is wrong.
    """

    runs: Annotated[tuple[str, ...], flag("DIR", positional=True, nargs="+")]
    output: Annotated[str | None, flag("FILE", "-o")] = None
    format: Annotated[str | None, choice(*FORMATS)] = None
    warm_up: Annotated[str, flag("D")] = "0"
    drain: Annotated[str, flag("D")] = "0"
    by: Annotated[str | None, choice(*BY)] = None
    recorded: Annotated[str | None, flag("KEY", nargs="?", const="")] = None
    section: Annotated[tuple[str, ...], flag("NAME")] = ()
    metric: Annotated[tuple[str, ...], flag("NAME")] = ()
    promises: bool = False
    audit: bool = False


class SeedFlags(Flags, frozen=True, kw_only=True):
    """Flags of a comparison over copies of the workload.

    seeds : compare the runs over N copies of their workload, each of which is simulated for every run.
    shake : the copies have each submission moved at random by up to D, such as 1m.
    block : the copies are resamples in blocks of D, such as 7d, or of users or sessions.
    workers : number of processes (default one per core; 0: this process).
    """

    seeds: int | None = None
    shake: Annotated[str | None, flag("D")] = None
    block: Annotated[str | None, flag("D")] = None
    workers: int | None = None


class PlotFlags(Flags, frozen=True, kw_only=True):
    """Draw a figure of a run.

    Draw one kind of figure of a run, or of several runs if the kind compares runs.

    kind : kind of figure; `list` prints all kinds.
    runs : run directory, or NAME=DIR to name the run.
    output : write to a .png, .svg or .pdf file (default: KIND.png).
    dpi : dots per inch of a PNG (default 144).
    dark : draw light lines on a dark background.
    grey : draw in shades of grey; lines differ by dashes.
    """

    kind: Annotated[str, flag("KIND", positional=True)]
    runs: Annotated[tuple[str, ...], flag("DIR", positional=True, nargs="*")] = ()
    output: Annotated[str | None, flag("FILE", "-o")] = None
    dpi: Annotated[int, flag("N", type=int)] = 144
    dark: bool = False
    grey: bool = False


class WidthFlags(Flags, frozen=True, kw_only=True):
    """The width of a figure.

    paper : the size for one or two columns of a paper (3.5 or 7.16 in).
    width : the size for a column of this width, such as 8.5cm or 246pt.
    """

    paper: Literal["single", "double"] | None = None
    width: Annotated[str | None, flag("W")] = None


class ViewFlags(Flags, frozen=True, kw_only=True):
    """The part of a Gantt chart.

    start : begin T after the first submission, such as 2d, or at a date.
    end : end T after the first submission, or at a date.
    nodes : show these ranks (0-15) or hosts (n[0-15]).
    user : show this user's jobs (may be repeated).
    queue : show the jobs of this queue (may be repeated).
    colour : colour jobs by this (default: job, or the use of nodes if jobs are too many).
    names : write the id of each job where there is room.
    waits : draw a thin bar from submission to start of each job.
    """

    start: Annotated[str | None, flag("T")] = field(name="from", default=None)
    end: Annotated[str | None, flag("T")] = field(name="until", default=None)
    nodes: Annotated[str | None, flag("NODES")] = None
    user: Annotated[tuple[str, ...] | None, flag("NAME")] = None
    queue: Annotated[tuple[str, ...] | None, flag("NAME")] = None
    colour: Annotated[str | None, choice(*COLOURS)] = None
    names: bool | None = None
    waits: bool = False


def register(subparsers: Subparsers) -> None:
    """Add the verbs `report` and `plot`."""
    answers = ["report", *(f"report-{name}" for name in ("table", "promises", "seeds", "audit"))]
    report = add_verb(subparsers, "report", run_report, ReportFlags, answers=answers)
    add_flags(report.add_argument_group("chance"), SeedFlags)
    plot = add_verb(subparsers, "plot", run_plot, PlotFlags)
    add_flags(plot.add_mutually_exclusive_group(), WidthFlags)
    add_flags(plot.add_argument_group("part of a Gantt chart"), ViewFlags)


def run_report(args: Arguments) -> int:
    """Print or write the report of the runs."""
    kind = args.format or _kind_of(args.output)
    if args.audit:
        text, status = _audits(args.runs, kind)
        put(visible(text), args.output, _FORMS.get(kind, "text"), announced=True)
        return status
    if kind == "html" and not args.output:
        raise ConfigError(
            "an HTML page cannot be printed on standard output", where="--format html", expected="-o FILE"
        )
    runs = load_runs(args.runs)
    if args.seeds is not None or args.shake or args.block:
        from simsched.study.search.seed_comparison import SeedsAnswer, compare_over_seeds

        write = _writer({"text": SeedsAnswer.text, "json": SeedsAnswer.to_json}, kind, "--seeds")
        count = 5 if args.seeds is None else args.seeds
        found = compare_over_seeds(runs, count, block=args.block, shake=args.shake, workers=args.workers)
        put(write(found), args.output, _FORMS.get(kind, "text"), announced=True)
        return 0
    if args.warm_up in RULES:
        args.warm_up = _found_warm_up(runs, args.warm_up)
    runs = _steady(runs, args)
    for run in runs:
        run.summary.update((name, run.metric(name)) for name in args.metric)
    if args.section and (
        args.by or args.recorded is not None or args.promises or kind not in ("text", "html")
    ):
        raise ConfigError(
            f"a section in the format {kind}" if kind not in ("text", "html") else "a section of a table",
            where="--section", expected="a report as text or html, without --by, --recorded and --promises",
        )  # fmt: skip
    if args.promises:
        from simsched.report import promise_report

        text = _writer(promise_report.FORMATS, kind, "--promises")(runs)
    elif args.recorded is not None:
        text = _recorded(runs, args.recorded or args.by or "all", kind)
    else:
        text = _grouped(runs, args.by, kind) if args.by else _rendered(runs, kind, args.section)
    put(text if kind == "html" else visible(text), args.output, _FORMS.get(kind, "text"), announced=True)
    return 0


def _writer(forms: Mapping[str, T], kind: str, option: str) -> T:
    """Return the writer of a table in a format; ConfigError if it has none."""
    if kind not in forms:
        raise ConfigError(
            f"there is no table {option} in the format {kind}", where=option, expected=", ".join(forms)
        )
    return forms[kind]


def _kind_of(output: str | None) -> str:
    """Return the format that the ending of a file selects; text without an ending."""
    ending = Path(output).suffix.lower() if output else ""
    if ending and ending not in ENDINGS:
        raise ConfigError(
            f"the ending {ending} does not select a format",
            where=output,
            expected=f"{', '.join(ENDINGS)}, or --format",
        )
    return ENDINGS.get(ending, "text")


def _found_warm_up(runs: Sequence[RunTables], rule: str) -> str:
    """Return the longest warm-up that a rule finds in the runs, in seconds, and write the one of each run.

    Runs that are compared lose the same time.  Welch's rule averages runs that differ by their seed alone.
    """
    from simsched import human
    from simsched.report.metrics.warm_up import warm_up_of

    found = []
    for run in runs:
        like = [other for other in runs if other is not run and _identity(other) == _identity(run)]
        others = [other.jobs for other in like] if rule == "welch" else None
        one = warm_up_of(run.jobs, run.name, others)
        jobs = "1 job" if one.jobs == 1 else f"{one.jobs:,} jobs"
        jobs += f", averaged over {len(like) + 1} runs" if others else ""
        note(f"{run.name}: warm-up by {RULES[rule]} is {human.seconds(one.seconds)} ({jobs})")
        if not one.settled:
            warn(
                f"{run.name}: {RULES[rule]} finds no steady state in the waits of the first half of the jobs"
            )
        found.append(one.seconds)
    if len(runs) > 1 and max(found) > 0:
        note(f"all runs are without their first {human.seconds(max(found))}")
    return f"{max(found):.17g}"


def _identity(run: RunTables) -> tuple[Any, ...]:
    """Return what runs have in common that differ by their seed alone: options, machine, workload."""
    inputs = [(item.get("role"), item.get("sha256")) for item in run.meta.get("inputs", [])]
    return {**run.config, "seed": None}, inputs


def _steady(runs: list[Run], args: Arguments) -> list[Run]:
    """Return the runs without the warm-up and drain that the options give."""
    from simsched.formats.rfc.clock import DateText, seconds_on

    warm_up = _time_or_date(args.warm_up, "--warm-up", *RULES)
    drain = _time_or_date(args.drain, "--drain")
    if not (warm_up or drain):
        return runs

    def cut(run: Run) -> Run:
        begin, end = float(run.jobs["submit"].min()), float(run.jobs["submit"].max())
        first = seconds_on(warm_up, run.clock, "--warm-up") - begin * isinstance(warm_up, DateText)
        last = seconds_on(drain, run.clock, "--drain")
        return run.steady(max(first, 0.0), max(end - last, 0.0) if isinstance(drain, DateText) else last)

    return [cut(run) for run in runs]


def _time_or_date(text: str, where: str, *rules: str) -> float | DateText:
    """Return a time or a date; the error also names the rules that the option takes instead."""
    from simsched.formats.rfc.clock import is_date, parse_date
    from simsched.formats.rfc.duration import parse_duration

    if is_date(text):
        return parse_date(text, where)
    try:
        return parse_duration(text, where=where)
    except FormatError as error:
        expected = ", or ".join((str(error.expected), "a date", *rules))
        raise FormatError(error.message, where=where, expected=expected) from None


def _grouped(runs: Sequence[RunTables], by: str, kind: str) -> str:
    """Return a table of groups in one of the formats."""
    from simsched.report import groups

    table = _writer(groups.FORMATS, kind, "--by")(runs, by)
    if len(runs) > 1 and kind in ("text", "markdown"):
        from simsched.report.compare import change_texts

        table += change_texts(runs, by, markdown=kind == "markdown")
    return table


def _recorded(runs: Sequence[RunTables], key: str, kind: str) -> str:
    """Return a table of recorded beside simulated waits in one of the formats."""
    from simsched.report import groups
    from simsched.report.metrics.agreement import compared
    from simsched.report.metrics.classes import GROUPS

    if key not in GROUPS:
        raise ConfigError(
            f"unknown group {key!r}{did_you_mean(key, GROUPS)}",
            where="--recorded",
            expected=", ".join(GROUPS),
        )
    write = _writer(groups.RECORDED_FORMATS, kind, "--recorded")
    for run in runs:
        if compared(run.jobs).empty:
            raise RunError(
                "no job of the run has a recorded start, so its waits cannot be compared with a log",
                where=run.name,
                expected="a run of a log with start times",
            )
    return write(runs, key)


def _rendered(runs: Sequence[RunTables], kind: str, sections: Sequence[str]) -> str:
    if kind == "html":
        from simsched.report.html.page import page

        return page(runs, sections)
    if kind == "text":
        from simsched.report import text_report as text
        from simsched.report.section_plugins import with_sections

        width = terminal_width()
        found = text.page(runs[0], width) if len(runs) == 1 else text.comparison(runs, width)
        return with_sections(found, runs, sections, width) if sections else found
    from simsched.report import export

    return {"json": export.as_json, "csv": export.as_csv, "markdown": export.as_markdown}[kind](runs)


def load_runs(arguments: Sequence[str]) -> list[Run]:
    """Open the runs of ``DIR`` and ``NAME=DIR`` arguments; equal names are numbered."""
    from simsched.report.run_views import load_run

    runs: list[Run] = []
    for argument in arguments:
        name, equals, path = argument.partition("=")
        named = bool(equals) and bool(name) and not Path(argument).exists()
        run = load_run(path, name=name) if named else load_run(argument)
        taken = sum(r.name == run.name or r.name.startswith(f"{run.name} (") for r in runs)
        if taken:
            run.name = f"{run.name} ({taken + 1})"
        runs.append(run)
    return runs


def run_plot(args: Arguments) -> int:
    """Draw one figure into a file, or list the kinds."""
    from simsched.cli.export import part_of_run
    from simsched.report.figures import figures

    if args.kind == "list":
        for name, kind in figures.KINDS.items():
            print(f"{name:<14}{kind.summary}")
        return 0
    if not args.runs:
        raise RunError("there is no run directory", where="simsched plot", expected="KIND DIR…")
    target = Path(args.output or f"{args.kind}.png")
    runs = load_runs(args.runs)
    figures.save(
        args.kind,
        runs,
        target,
        dpi=args.dpi,
        dark=args.dark,
        view=part_of_run(args, colour=args.colour, names=args.names, waits=args.waits or None),
        paper=args.paper or args.width,
        grey=args.grey,
    )
    sys.stderr.write(f"written: {target}\n")
    return 0


# --- audit


def _audits(folders: Sequence[str], kind: str) -> tuple[str, int]:
    """Audit each run directory; return the report and the exit status, 1 if any run has a fault."""
    if kind not in ("text", "json"):
        raise ConfigError(f"there is no audit in the format {kind}", where="--format", expected="text, json")
    found = {folder: audit_again(Path(folder)) for folder in folders}
    text = "".join(f"{folder}: {report}\n" for folder, report in found.items())
    if kind == "json":
        from simsched.declare.answers import json_text

        rows: RunAudits = [{"run": folder, **report.to_dict()} for folder, report in found.items()]
        text = json_text(rows, 1, ensure_ascii=False) + "\n"
    return text, 0 if all(report and report.complete for report in found.values()) else 1


def audit_again(folder: Path) -> AuditReport:
    """Audit a run directory against its inputs, or only its files if the inputs cannot be read again.

    Raises
    ------
    RunError
        if it is not a run directory, or one of its files cannot be read.
    """
    from simsched.simulation.audit.auditor import audit_run
    from simsched.simulation.audit.recorded_run import audit_files, read_meta
    from simsched.simulation.record.run_origin import recorded_inputs

    if not (folder / "run.json").is_file():
        raise RunError(
            "this is not a run directory: it has no run.json",
            where=str(folder),
            expected="a directory that `simsched run` wrote",
        )
    command = read_meta(folder).get("command")
    found = audit_files(folder)
    if not (folder / "allocations.jsonl").is_file():
        why = "the run has no allocations"
    elif command is None:
        why = "run.json does not have the command of the run"
    elif any("has changed since" in fault.text for fault in found.faults):
        why = "an input has changed"
    else:
        try:
            inputs = recorded_inputs(command)
        except (SimschedError, LookupError, TypeError, AttributeError) as error:
            why = f"the inputs cannot be read: {error}"
        else:
            return audit_run(folder, *inputs)
    found.left_out = why
    return found
