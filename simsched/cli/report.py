"""``simsched report`` and ``simsched plot``: what a run, or several, came to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simsched.cli.support.output import put
from simsched.errors import ConfigError, RunError
from simsched.visible import visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from simsched.cli import Subparsers
    from simsched.cli.support.output import Form
    from simsched.report.data.tables import Run

FORMATS = ("text", "json", "html", "csv", "markdown")
#: what `--by` groups jobs by, single jobs, and the parts of the machine that it shows the use of
BY = ("queue", "user", "bank", "size", "runtime", "day", "result", "job", "property", "place", "node")
#: the format that a file's ending asks for
ENDINGS = {".txt": "text", ".json": "json", ".html": "html", ".htm": "html", ".csv": "csv", ".md": "markdown"}


_FORMS: dict[str, Form] = {"json": "json", "html": "xml", "csv": "other"}


def register(subparsers: Subparsers) -> None:
    """Add the verbs `report` and `plot`."""
    report = subparsers.add_parser(
        "report",
        help="tables and metrics of one run, or of several compared",
        description="Tables and metrics of one run directory, or of several side by side. "
        "Several runs of the same workload are also compared job by job, each with the first.",
        epilog="Exit status: 0 done, 1 the audit found faults, 2 the input is wrong.",
    )
    report.add_argument("runs", nargs="+", metavar="DIR", help="a run directory, or NAME=DIR to call it NAME")
    report.add_argument("-o", "--output", metavar="FILE", help="write to FILE; its ending gives the format")
    report.add_argument("--format", choices=FORMATS, help="text (the default), json, html, csv or markdown")
    report.add_argument(
        "--warm-up", metavar="D", default="0", help="leave out what was submitted in the first D, such as 3d"
    )
    report.add_argument(
        "--drain", metavar="D", default="0", help="leave out what was submitted in the last D"
    )
    report.add_argument(
        "--by",
        choices=BY,
        help="a table of the jobs grouped by this, of every job (`--by job --format csv` has all columns), "
        "or of the use of the machine by property, place or node",
    )
    report.add_argument(
        "--audit",
        action="store_true",
        help="audit each run instead: its files against their digests, and, where its inputs are still "
        "there, every job and allocation against them",
    )
    report.set_defaults(run=run_report)

    plot = subparsers.add_parser(
        "plot",
        help="pictures of a run",
        description="Draw one kind of picture of one run, or of several where the kind compares.",
    )
    plot.add_argument("kind", metavar="KIND", help="the kind of picture; `list` names them all")
    plot.add_argument("runs", nargs="*", metavar="DIR", help="a run directory, or NAME=DIR to call it NAME")
    plot.add_argument("-o", "--output", metavar="FILE", help="a .png, .svg or .pdf file (default: KIND.png)")
    plot.add_argument("--dpi", type=int, default=144, help="dots per inch of a PNG (default 144)")
    plot.add_argument("--dark", action="store_true", help="light lines on a dark ground")
    plot.set_defaults(run=run_plot)


def run_report(args: argparse.Namespace) -> int:
    """Print or write the report of the runs."""
    if args.audit:
        from simsched.cli.report_audit import run_audits

        return run_audits(args.runs)
    kind = args.format or _kind_of(args.output)
    if kind == "html" and not args.output:
        raise ConfigError(
            "a page of HTML is no text for a terminal", where="--format html", expected="-o FILE"
        )
    runs = _steady(load_runs(args.runs), args)
    text = _grouped(runs, args.by, kind) if args.by else _rendered(runs, kind)
    if put(text if kind == "html" else visible(text), args.output, _FORMS.get(kind, "text")):
        sys.stderr.write(f"written: {args.output}\n")
    return 0


def _kind_of(output: str | None) -> str:
    """Return the format that a file's ending asks for; text where there is none."""
    ending = Path(output).suffix.lower() if output else ""
    if ending and ending not in ENDINGS:
        raise ConfigError(
            f"the ending {ending} tells no format",
            where=output,
            expected=f"{', '.join(ENDINGS)}, or --format",
        )
    return ENDINGS.get(ending, "text")


def _steady(runs: list[Run], args: argparse.Namespace) -> list[Run]:
    """Leave out warm-up and drain, if any were asked for."""
    from simsched.formats.rfc.duration import parse_duration

    warm_up = parse_duration(args.warm_up, where="--warm-up")
    drain = parse_duration(args.drain, where="--drain")
    return [run.steady(warm_up, drain) for run in runs] if warm_up or drain else runs


def _grouped(runs: Sequence[Run], by: str, kind: str) -> str:
    """Return a table of groups in one of the formats."""
    from simsched.report import groups

    if kind not in groups.FORMATS:
        raise ConfigError(f"no table --by as {kind}", where="--by", expected=", ".join(groups.FORMATS))
    return groups.FORMATS[kind](runs, by)


def _rendered(runs: Sequence[Run], kind: str) -> str:
    if kind == "html":
        from simsched.report.html.page import page

        return page(runs)
    if kind == "text":
        from simsched.report import text_report as text

        width = terminal_width()
        return text.page(runs[0], width) if len(runs) == 1 else text.comparison(runs, width)
    from simsched.report import export

    writers: dict[str, Callable[[Sequence[Run]], str]]
    writers = {"json": export.as_json, "csv": export.as_csv, "markdown": export.as_markdown}
    return writers[kind](runs)


def terminal_width() -> int:
    """Return how many characters a line may have: those of the terminal, or a fixed number in a pipe."""
    import shutil

    from simsched.text_table import PAGE_WIDTH

    return min(shutil.get_terminal_size().columns, 120) if sys.stdout.isatty() else PAGE_WIDTH


def load_runs(arguments: Sequence[str]) -> list[Run]:
    """Open the runs of ``DIR`` and ``NAME=DIR`` arguments; equal names are numbered."""
    from simsched.report.data.tables import load_run

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


def run_plot(args: argparse.Namespace) -> int:
    """Draw one picture into a file, or list the kinds."""
    from simsched.report.figures import figures

    if args.kind == "list":
        for name, kind in figures.KINDS.items():
            print(f"{name:<14}{kind.summary}")
        return 0
    if not args.runs:
        raise RunError("no run directory", where="simsched plot", expected="KIND DIR…")
    target = Path(args.output or f"{args.kind}.png")
    figures.save(args.kind, load_runs(args.runs), target, dpi=args.dpi, dark=args.dark)
    sys.stderr.write(f"written: {target}\n")
    return 0
