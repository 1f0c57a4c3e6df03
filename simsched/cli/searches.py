"""``simsched size``, ``headroom`` and ``calibrate``: the smallest machine, the highest load, the best rules.

The searches share how they are asked and how they answer.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal

from simsched import human
from simsched.cli.options.run_options import add_rules, rules_document
from simsched.cli.options.site_options import add_site, noted_use, place_site, require
from simsched.cli.options.workloads import READING, add_reading
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.cli.support.messages import note
from simsched.cli.support.output import write
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, add_flags, flag, flags_given
from simsched.errors import ConfigError
from simsched.study.search.search_request import (
    CalibrationRequest,
    LoadRequest,
    SearchRequest,
    SizeRequest,
    SizingRequest,
    WorkerPlaces,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from simsched.cli.support.parser import Subparsers
    from simsched.folders import Layout
    from simsched.study.search.evaluation import Evaluation
    from simsched.study.search.search_answer import SearchAnswer


EXIT_NONE = 1
TARGETS = """\
targets: FIGURE RELATION VALUE, such as p95_wait<=1h, utilisation>=80%, mean_bsld<=10;
for some jobs only: 'p95_wait[queue == debug]<=10m', 'max_wait[user == alice]<=1d'

"""


class SearchInputs(Flags, frozen=True, kw_only=True):
    """Inputs of `size` and `headroom`.

    cluster : a cluster file, or a bundled name.
    workload : a workload file, the file of a mix, or a bundled name.
    target : target to meet; may be repeated.
    """

    cluster: Annotated[str | None, flag("CLUSTER", positional=True, nargs="?")] = None
    workload: Annotated[str | None, flag("WORKLOAD", positional=True, nargs="?")] = None
    target: Annotated[tuple[str, ...], flag("T")]


class CalibrateInputs(Flags, frozen=True, kw_only=True):
    """Find the settings under which simulated waits are nearest to those of a log.

    Simulate a log under many settings, each by itself and then together, and compare the waits with those
    that the log recorded.  The first two thirds of the weeks choose the settings, the last third tests them.
    The options below are the baseline.

    cluster : a cluster file, or a bundled name.
    workload : a log with start times.

    Exit status: 0 the held-out error is smaller beyond chance, 1 it is not, 2 the input is wrong.
    """

    cluster: Annotated[str | None, flag("CLUSTER", positional=True, nargs="?")] = None
    workload: Annotated[str | None, flag("TRACE", positional=True, nargs="?")] = None


class SearchOutput(Flags, frozen=True, kw_only=True):
    """The answer of a search.

    output : write answer.json, trials.csv and answer.png to DIR.
    runs : keep every run directory in DIR/runs.
    format : text (default), json or csv.
    quiet : print neither progress nor notes on the inputs.
    """

    output: Annotated[str | None, flag("DIR", "-o")] = None
    runs: bool = False
    format: Literal["text", "json", "csv"] = "text"
    quiet: bool = False


class CalibrateOutput(SearchOutput, frozen=True, kw_only=True):
    """The answer of a calibration, and what it tries.

    output : write config.toml, settings.csv and calibration.json to DIR.
    knobs : try these only, separated by commas (default: all).
    """

    knobs: Annotated[str | None, flag("NAMES")] = None


def register(subparsers: Subparsers) -> None:
    """Add the verbs `size`, `headroom` and `calibrate`."""
    _add_sizing(
        subparsers,
        "size",
        SizeRequest,
        "0 found, 1 no size tried meets the targets",
        help="find the smallest machine that meets a target",
        description="Search for the smallest machine on which a workload meets all targets.",
    )
    _add_sizing(
        subparsers,
        "headroom",
        LoadRequest,
        "0 today's load meets the targets, 1 it does not",
        help="find the highest load under which a machine meets a target",
        description="Search for the highest load under which a machine still meets all targets.",
    )
    inputs = (CalibrateInputs, add_site, CalibrateOutput)
    parser = add_verb(subparsers, "calibrate", run_calibrate, *inputs, answers=["calibration"])
    add_flags(parser, CalibrationRequest, "held_out", "beside", "confidence")
    _add_work(parser, CalibrationRequest)


def _add_sizing(
    subparsers: Subparsers, verb: str, request: type[SizingRequest], status: str, **texts: str
) -> None:
    end = f"{TARGETS}Exit status: {status}, 2 the input is wrong."
    parser = add_verb(
        subparsers, verb, run_sizing, SearchInputs, add_site, answers=["size"], epilog=end, **texts
    )
    own = (name for name in request.__struct_fields__ if name not in SizingRequest.__struct_fields__)
    add_flags(parser, request, "by", "load", *own)
    add_flags(parser, SearchOutput)
    chance = ("seeds", "block", "shake", "meet", "confidence", "checks")
    add_flags(parser.add_argument_group("chance"), SizingRequest, *chance)
    measured = parser.add_argument_group("measured jobs")
    add_flags(measured, SizingRequest, "warm_up", "drain", "allow_infeasible")
    _add_work(parser, request)


def _add_work(parser: argparse.ArgumentParser, request: type[SearchRequest]) -> None:
    add_flags(parser.add_argument_group("workers"), WorkerPlaces)
    add_rules(parser)
    add_reading(parser)
    parser.set_defaults(request=request)


def run_sizing(args: argparse.Namespace) -> int:
    """Search for a size or a load, print and write the answer; return 1 if it is not found."""
    from simsched.study.search.answer import Answer
    from simsched.study.search.size import headroom, size

    tried: list[Evaluation] = []

    def show(trial: Evaluation) -> None:
        tried.append(trial)
        if not args.quiet and sys.stderr.isatty():
            verdict = "some jobs never fit" if trial.refused else "meets" if trial.met else "misses"
            spent = human.seconds(round(trial.seconds, 1))
            sys.stderr.write(f"  tried {trial.value:,}: {verdict} ({spent})\n")

    def state(spent: float) -> str:
        left = tried[-1].left if tried else None
        done = "1 value" if len(tried) == 1 else f"{len(tried)} values"
        return f"tried {done}{expected(spent, len(tried), left or 0, 'at least')}"

    def search(**more: Any) -> SearchAnswer:
        find = size if args.verb == "size" else headroom
        return find(args.cluster, args.workload, args.target, progress=show, **more)

    return _answered(args, Answer.layout, search, state)


def run_calibrate(args: argparse.Namespace) -> int:
    """Calibrate, print and write the result; return 1 if no setting helps on the held-out weeks."""
    from simsched.study.search.calibrate import calibrate
    from simsched.study.search.calibration import Calibration

    done: list[tuple[int, int]] = []

    def state(spent: float) -> str:
        if not done:
            return "reading the inputs"
        runs, known = done[-1]
        return f"{runs} runs done{expected(spent, runs, known - runs, 'at least')}"

    def search(**more: Any) -> SearchAnswer:
        knobs = tuple(name.strip() for name in (args.knobs or "").split(",") if name.strip())
        progress = lambda *numbers: done.append(numbers)  # noqa: E731
        return calibrate(args.cluster, args.workload, knobs=knobs, progress=progress, **more)

    return _answered(args, Calibration.layout, search, state)


def _answered(
    args: argparse.Namespace,
    layout: Layout,
    search: Callable[..., SearchAnswer],
    state: Callable[[float], str],
) -> int:
    """Search, print the answer, and write its directory if there is one; return the exit status."""
    from simsched.folders import StagedFolder

    if args.runs and not args.output:
        raise ConfigError("there is no directory for the runs", where="--runs", expected="-o DIR")
    site = place_site(args, "cluster", "workload")
    require(args, cluster="CLUSTER", workload="TRACE" if args.verb == "calibrate" else "WORKLOAD")
    options = rules_document(args, site)
    given = {
        **flags_given(args, args.request),
        "seed": options.pop("seed", 0),
        "transforms": tuple(args.transform),
        "reading": {name: getattr(args, name) for name in READING if name != "transform"},
        "options": options,
        "log_use": noted_use(args, site),
    }
    with (
        heartbeat(args.verb, state, quiet=args.quiet),
        StagedFolder(args.output, layout) if args.output else nullcontext() as staged,
    ):
        found = search(runs=staged.work / "runs" if staged and args.runs else None, **given)
        texts = {"text": found.text, "json": found.to_json, "csv": found.to_csv}
        write(texts[args.format](), "other" if args.format == "csv" else args.format)
        written = found.finish(staged) if staged else []
    if staged and staged.replaced:
        note(f"replaced the earlier {layout.noun} in {args.output}")
    for path in written:
        sys.stderr.write(f"written: {path}\n")
    return 0 if found else EXIT_NONE
