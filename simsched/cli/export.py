"""``simsched export``: a run in the format of another program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simsched.cli.support.output import put

if TYPE_CHECKING:
    import argparse

    from simsched.cli.support.parser import Subparsers

TO = ("swf", "evalys", "perfetto")


def register(subparsers: Subparsers) -> None:
    """Add the verb `export`."""
    parser = subparsers.add_parser(
        "export",
        help="write a run in the format of another program",
        description="Write a run as SWF with the simulated waits (swf), as the _jobs.csv of evalys and "
        "Batsim (evalys), or as trace events of the jobs on each node for Perfetto (perfetto).",
    )
    parser.add_argument("directory", metavar="RUN", help="run directory")
    parser.add_argument("--to", choices=TO, required=True, help="format")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: standard output)")
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Write or print the run."""
    from simsched.report.data.tables import load_run
    from simsched.report.exports.run_formats import export_text

    text = "".join(export_text(load_run(args.directory), args.to))
    if put(text, args.output, "json" if args.to == "perfetto" else "other"):
        sys.stderr.write(f"written: {args.output}\n")
    return 0
