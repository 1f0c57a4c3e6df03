"""``simsched export``: a run in the format of another program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from simsched.cli.support.output import write
from simsched.report.exports.run_formats import FORMATS, TRACKS

if TYPE_CHECKING:
    import argparse

    from simsched.cli.support.parser import Subparsers


def register(subparsers: Subparsers) -> None:
    """Add the verb `export`."""
    parser = subparsers.add_parser(
        "export",
        help="write a run in the format of another program",
        description="Write a run in one of these formats: "
        + "; ".join(f"{name}, {form.summary}" for name, form in FORMATS.items())
        + ".",
    )
    parser.add_argument("directory", metavar="RUN", help="run directory")
    parser.add_argument("--to", choices=tuple(FORMATS), required=True, help="format")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: standard output)")
    part = parser.add_argument_group("part of the run", "Without these the whole run is written.")
    part.add_argument("--from", metavar="T", dest="start", help="jobs that run at this time or later")
    part.add_argument("--until", metavar="T", dest="end", help="jobs that start before this time")
    part.add_argument("--nodes", metavar="NODES", help="jobs on these ranks (0-15) or hosts (n[0-15])")
    part.add_argument("--user", metavar="NAME", action="append", help="jobs of this user; may be repeated")
    part.add_argument("--queue", metavar="NAME", action="append", help="jobs of this queue; may be repeated")
    part.add_argument("--job", metavar="ID", action="append", help="this job; may be repeated")
    parser.add_argument(
        "--tracks",
        choices=TRACKS,
        help="tracks of perfetto: nodes with their jobs, or jobs alone (default: jobs in a large run)",
    )
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Write or print the run."""
    from simsched.files import replacing
    from simsched.formats.rfc.clock import parse_when
    from simsched.report.data.gantt_view import GanttView
    from simsched.report.exports.run_formats import export_text
    from simsched.report.run_views import load_run

    given: dict[str, Any] = {
        "start": args.start,
        "end": args.end,
        "nodes": args.nodes,
        "users": tuple(args.user or ()),
        "queues": tuple(args.queue or ()),
    }
    for name, option in (("start", "--from"), ("end", "--until")):
        if given[name] is not None:
            given[name] = parse_when(given[name], option)
    chosen = {name: value for name, value in given.items() if value not in (None, ())}
    view = GanttView(**chosen) if chosen else None
    parts = export_text(load_run(args.directory), args.to, view=view, jobs=args.job or (), tracks=args.tracks)
    if args.output is None or args.output == "-":
        for text in parts:
            write(text, "json" if args.to == "perfetto" else "other")
        return 0
    with replacing(args.output) as stream:
        stream.writelines(text.encode() for text in parts)
    sys.stderr.write(f"written: {args.output}\n")
    return 0
