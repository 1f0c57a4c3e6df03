"""``simsched export``: a run in the format of another program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simsched.cli.support.output import put
from simsched.report.exports.run_formats import FORMATS, export_text

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
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Write or print the run."""
    from simsched.report.run_views import load_run

    text = "".join(export_text(load_run(args.directory), args.to))
    if put(text, args.output, "json" if args.to == "perfetto" else "other"):
        sys.stderr.write(f"written: {args.output}\n")
    return 0
