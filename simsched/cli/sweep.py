"""``simsched sweep``: performs the runs of a study."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from simsched.cli.support.heartbeat import expected, heartbeat, progress_bar
from simsched.cli.support.messages import note
from simsched.cli.support.signals import ending_with
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, flag, flags_given
from simsched.study.search.search_request import WorkerPlaces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.study.runs.sweep_plan import SweepPlan
    from simsched.study.spec.study import Study
    from simsched.study.sweep import SweepProgress

EXIT_FAILED = 1
#: rows of the table of runs that `--dry-run` prints at most
MAX_ROWS = 60


class SweepFlags(Flags, frozen=True, kw_only=True):
    """Perform the runs of a study over machines, loads, policies and seeds.

    Perform every run that a study file describes, and write a directory with one run directory per run,
    Parquet tables over all runs, and a report.  See docs/studies.md.

    study : study file.
    output : directory to write (default: the name of the study).
    dry_run : print the runs and about how long they take.
    resume : continue the study in DIR.
    retries : further attempts of a run whose worker dies (default 2).
    no_report : do not write report.html.
    quiet : print no progress, no summary and no notes on the inputs.

    Exit status: 0 done, 1 some runs failed (failures.json has the reasons), 2 the input is wrong, 130
    interrupted (--resume continues).
    """

    study: Annotated[str, flag("STUDY.yaml", positional=True)]
    output: Annotated[str | None, flag("DIR", "-o")] = None
    dry_run: bool = False
    resume: bool = False
    retries: int = 2
    no_report: bool = False
    quiet: bool = False


def register(subparsers: Subparsers) -> None:
    """Add the verb `sweep`."""
    sweep = add_verb(subparsers, "sweep", run_sweep, SweepFlags)
    add_flags(sweep, WorkerPlaces, "workers")
    add_flags(sweep.add_mutually_exclusive_group(), WorkerPlaces, "scheduler", "hpc")


def run_sweep(args: Arguments) -> int:
    """Perform a study; with ``--dry-run`` print its plan."""
    from simsched.study.runs.sweep_plan import plan
    from simsched.study.spec.study_file import load_study

    study = load_study(args.study)
    args.output = args.output or re.sub(r"[^\w.-]+", "-", study.name).strip("-.") or "study"
    if args.dry_run:
        _show(study, plan(study), args)
        return 0
    return _perform(study, args)


def _perform(study: Study, args: Arguments) -> int:
    from simsched.study.runs.input_cache import INPUTS
    from simsched.study.runs.sweep_plan import plan
    from simsched.study.study_folder import place_of
    from simsched.study.sweep import changed_inputs, sweep

    folder, earlier = place_of(args.output, study.name, resume=args.resume)
    for name in changed_inputs(folder.record() or {}, study):
        note(f"{name} has changed; its runs are performed again")
    planned = plan(study, measure=False)
    for text in planned.log_use:
        note(text, of_input=True)
    INPUTS.forget()  # usually other processes perform the runs
    kept = "interrupted; finished runs are kept, and --resume continues"
    with ending_with(kept), _progress(quiet=args.quiet) as progress:
        result = sweep(
            study,
            args.output,
            **flags_given(args, WorkerPlaces),
            resume=args.resume,
            retries=args.retries,
            report=not args.no_report,
            progress=progress,
            log_use=planned.log_use,
        )
    if earlier is not None and result.path == earlier.path:
        note(f"replaced the earlier study in {args.output}")
    for failure in result.failures:
        settings = ", ".join(f"{axis} {label}" for axis, label in failure["settings"].items())
        sys.stderr.write(f"failed: run {failure['run']} ({settings}): {failure['reason']}\n")
    if not args.quiet:
        from simsched.study.grid import summary

        print(summary(result), end="")
        sys.stderr.write(f"written: {result.path}\n")
    return EXIT_FAILED if result.failures else 0


def _show(study: Study, found: SweepPlan, args: Arguments) -> None:
    """Print the runs, their number, and about how long they take."""
    from simsched.study.grid import plan_table
    from simsched.study.runs.workers import cores

    print(plan_table(study, MAX_ROWS), end="")
    same = f" ({found.distinct:,} of them distinct)" if found.distinct < len(found.tasks) else ""
    print(f"{len(found.tasks):,} runs{same}, {found.jobs:,} jobs in total")
    for text in (*found.notes, *found.log_use):
        print(f"note: {text}")
    workers = args.workers or cores()
    seconds = found.wall(workers)
    if seconds is not None:
        from simsched import human

        several = f"{workers} workers" if workers > 1 else "1 worker"
        sampled = "1 run" if found.samples == 1 else f"{found.samples} runs"
        basis = f"estimated from the first jobs of {sampled}; longer if queues grow later"
        print(f"about {human.seconds(seconds)} on {several} of this machine ({basis})")


def _state(last: list[SweepProgress], spent: float) -> str:
    """Return the number of finished runs, and about how long the others take."""
    if not last:
        return "reading the inputs"
    state = last[0]
    failed = f", {state.failed} failed" if state.failed else ""
    fresh = state.done - state.there + state.failed
    more = expected(spent, fresh, state.total - state.there - fresh)
    return f"{state.done} of {state.total} runs done{failed}{more}"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[SweepProgress], None] | None]:
    """Show the progress on standard error: a bar on a terminal, otherwise one line every 30 s."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        seen: list[SweepProgress] = []
        with heartbeat("sweep", lambda spent: _state(seen[-1:], spent)):
            yield seen.append
        return
    with progress_bar("starting") as update:

        def show(state: SweepProgress) -> None:
            failed = f", {state.failed} failed" if state.failed else ""
            text = f"{state.done} done, {state.running} running{failed}"
            fresh = state.done - state.there + state.failed
            update(total=state.total - state.there, completed=fresh, description=text)

        yield show
