"""``simsched why``: why a job of a run waited, or all jobs of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from simsched.cli.support.output import put, terminal_width
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError
from simsched.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.report.run_views import Run

ENDINGS = (".png", ".svg", ".pdf")
"""Files that are written as a picture."""
DPI = 144


class WhyFlags(Flags, frozen=True, kw_only=True):
    """Print why a job of a run waited, or where all jobs waited.

    Print the wait of a job by cause: the resources that were short and the jobs that held them, the
    reservation or dependency in the way, and changes with which it would have fitted sooner.  Without JOB,
    print the hours that all jobs of the run waited, by cause, queue and user.

    directory : run directory.
    jobs : id of a job.
    format : text (default) or json.
    output : write to FILE; .png, .svg or .pdf: a picture.

    The inputs of the run are read again for a JOB; they must not have changed.
    """

    directory: Annotated[str, flag("RUN", positional=True)]
    jobs: Annotated[tuple[str, ...], flag("JOB", positional=True, nargs="*")] = ()
    format: Literal["text", "json"] = "text"
    output: Annotated[str | None, flag("FILE", "-o")] = None


def register(subparsers: Subparsers) -> None:
    """Add the verb `why`."""
    add_verb(subparsers, "why", run_why, WhyFlags, answers=["why-run", "why-jobs"])


def run_why(args: Arguments) -> int:
    """Print or write why the jobs waited."""
    from simsched.report.run_views import load_run

    run = load_run(args.directory)
    if args.output is not None and Path(args.output).suffix.lower() in ENDINGS:
        return _draw(run, args.jobs, args.output)
    text = _of_jobs(run, args.jobs, args.format) if args.jobs else _of_run(run, args.format)
    put(visible(text + "\n"), args.output, args.format, announced=True)
    return 0


def _draw(run: Run, jobs: Sequence[str], target: str) -> int:
    """Write a picture of the wait of one job, or of all waits over time."""
    from simsched.report.figures import figures

    if len(jobs) > 1:
        raise ConfigError(f"a picture shows one job, not {len(jobs)}", where="simsched why")
    path = Path(target)
    stamp = figures.stamp_of(path, DPI)
    figure = run.plot_wait(jobs[0]) if jobs else run.plot("waits")
    figures.save_figure(figure, path, DPI, stamp)
    sys.stderr.write(f"written: {target}\n")
    return 0


def _of_run(run: Run, form: str) -> str:
    from simsched.declare.answers import json_text
    from simsched.report.waiting.wait_totals import find_causes, run_document, run_text, wait_table

    causes, reason = find_causes(run)
    table = wait_table(run, causes)
    if reason:
        sys.stderr.write(visible(f"by sums over the whole machine: {reason}\n"))
    if form == "json":
        return json_text(run_document(run, table), None)
    return run_text(run, table, terminal_width())


def _of_jobs(run: Run, jobs: Sequence[str], form: str) -> str:
    from simsched.declare.answers import json_text
    from simsched.report.waiting.job_answer import job_document, job_text

    inputs = run.inputs()
    answers = [run.why(job, *inputs) for job in jobs]
    if form == "json":
        return json_text([job_document(answer) for answer in answers], None)
    return "\n\n".join(map(job_text, answers))
