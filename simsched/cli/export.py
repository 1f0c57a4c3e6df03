"""``simsched export``: a run in the format of another program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from simsched.cli.support.output import write
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, field, flag
from simsched.declare.kinds import choice
from simsched.report.exports.run_formats import FORMATS, TRACKS

if TYPE_CHECKING:
    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.report.data.gantt_view import GanttView


class ExportFlags(Flags, frozen=True, kw_only=True):
    """Write a run in the format of another program.

    directory : run directory.
    to : format.
    output : write to FILE (default: standard output).
    tracks : tracks of perfetto: nodes with their jobs, or jobs alone (default: jobs in a large run).
    """

    directory: Annotated[str, flag("RUN", positional=True)]
    to: Annotated[str, choice(*FORMATS)]
    output: Annotated[str | None, flag("FILE", "-o")] = None
    tracks: Annotated[str | None, choice(*TRACKS)] = None


class PartFlags(Flags, frozen=True, kw_only=True):
    """The part of a run.

    start : jobs that run at this time or later.
    end : jobs that start before this time.
    nodes : jobs on these ranks (0-15) or hosts (n[0-15]).
    user : jobs of this user; may be repeated.
    queue : jobs of this queue; may be repeated.
    job : this job; may be repeated.
    """

    start: Annotated[str | None, flag("T")] = field(name="from", default=None)
    end: Annotated[str | None, flag("T")] = field(name="until", default=None)
    nodes: Annotated[str | None, flag("NODES")] = None
    user: Annotated[tuple[str, ...] | None, flag("NAME")] = None
    queue: Annotated[tuple[str, ...] | None, flag("NAME")] = None
    job: Annotated[tuple[str, ...] | None, flag("ID")] = None


def register(subparsers: Subparsers) -> None:
    """Add the verb `export`."""
    formats = "; ".join(f"{name}, {form.summary}" for name, form in FORMATS.items())
    about = f"Write a run in one of these formats: {formats}."
    parser = add_verb(subparsers, "export", run_export, ExportFlags, description=about)
    part = parser.add_argument_group("part of the run", "Without these the whole run is written.")
    add_flags(part, PartFlags)


def part_of_run(args: Arguments, **more: Any) -> GanttView | None:
    """Return the part of a run that the options choose, with `more` of a chart; None without any of them."""
    from simsched.report.data.gantt_view import view_of

    return view_of(args.start, args.end, nodes=args.nodes, users=args.user, queues=args.queue,
                   where=("--from", "--until"), **more)  # fmt: skip


def run_export(args: Arguments) -> int:
    """Write or print the run."""
    from simsched.files import replacing
    from simsched.report.exports.run_formats import export_text
    from simsched.report.run_views import load_run

    view = part_of_run(args)
    parts = export_text(load_run(args.directory), args.to, view=view, jobs=args.job or (), tracks=args.tracks)
    if args.output is None or args.output == "-":
        for text in parts:
            write(text, "json" if args.to == "perfetto" else "other")
        return 0
    with replacing(args.output) as stream:
        stream.writelines(text.encode() for text in parts)
    sys.stderr.write(f"written: {args.output}\n")
    return 0
