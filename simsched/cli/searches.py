"""``simsched size``, ``headroom`` and ``calibrate``: the smallest machine, the highest load, the best rules.

The searches share how they are asked and how they answer.
"""

from __future__ import annotations

import sys
from functools import partial
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
    SearchRequest,
    SizingRequest,
    WorkerPlaces,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from simsched.cli.support.parser import Subparsers
    from simsched.folders import Layout
    from simsched.site.site import Site
    from simsched.study.search.answer import Evaluation
    from simsched.study.search.search_answer import SearchAnswer

    Search = Callable[[dict[str, Any]], SearchAnswer]

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


class SizeFlags(Flags, frozen=True, kw_only=True):
    """Find the smallest machine that meets a target.

    Search for the smallest machine on which a workload meets all targets.

    grow : vary this number: nodes (default), the nodes of a group (a property, the common part of names,
        a hostlist), gpus or cores per node, or a value of a recipe (groups[0].count).
    min : smallest size to try (default 1).
    max : largest size to try (default 16 times today's).
    """

    grow: Annotated[str, flag("WHAT")] = "nodes"
    min: int | None = None
    max: int | None = None


class LoadFlags(Flags, frozen=True, kw_only=True):
    """Find the highest load under which a machine meets a target.

    Search for the highest load under which a machine still meets all targets.

    step : precision, as a multiple of the load (default 0.01).
    min : lowest load to try (default 0.1).
    max : highest load to try (default 10).
    """

    step: float | None = None
    min: float | None = None
    max: float | None = None


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
    verbs = (
        ("size", SizeFlags, "0 found, 1 no size tried meets the targets"),
        ("headroom", LoadFlags, "0 today's load meets the targets, 1 it does not"),
    )
    for verb, flags, status in verbs:
        end = f"{TARGETS}Exit status: {status}, 2 the input is wrong."
        parts = (_add_inputs, flags, _add_rest)
        add_verb(subparsers, verb, run_sizing, *parts, answers=["size"], epilog=end)
    inputs = (CalibrateInputs, add_site, CalibrateOutput)
    parser = add_verb(subparsers, "calibrate", run_calibrate, *inputs, answers=["calibration"])
    add_flags(parser, CalibrationRequest, "held_out", "beside", "confidence")
    _add_work(parser)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, SearchInputs)
    add_site(parser)
    add_flags(parser, SizingRequest, "by", "load")


def _add_rest(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, SearchOutput)
    chance = ("seeds", "block", "shake", "meet", "confidence", "checks")
    add_flags(parser.add_argument_group("chance"), SizingRequest, *chance)
    measured = parser.add_argument_group("measured jobs")
    add_flags(measured, SizingRequest, "warm_up", "drain", "allow_infeasible")
    _add_work(parser)


def _add_work(parser: argparse.ArgumentParser) -> None:
    add_flags(parser.add_argument_group("workers"), WorkerPlaces)
    add_rules(parser)
    add_reading(parser)


def run_sizing(args: argparse.Namespace) -> int:
    """Search for a size or a load, print and write the answer; return 1 if it is not found."""
    from simsched.study.search.answer import Answer
    from simsched.study.search.size import headroom, size

    site = _read(args, "WORKLOAD")
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

    own = {"least": args.min, "most": args.max}
    own |= {name: getattr(args, name) for name in ("grow", "step") if name in args}
    options = {**_keywords(args, site, SizingRequest), "log_use": noted_use(args, site), "progress": show}
    options |= {name: value for name, value in own.items() if value is not None}
    search = size if args.verb == "size" else headroom
    found = partial(search, args.cluster, args.workload, args.target, **options)
    return _answered(args, Answer.layout, found, state)


def run_calibrate(args: argparse.Namespace) -> int:
    """Calibrate, print and write the result; return 1 if no setting helps on the held-out weeks."""
    from simsched.study.search.calibrate import calibrate
    from simsched.study.search.calibration import Calibration

    site = _read(args, "TRACE")
    done: list[tuple[int, int]] = []

    def state(spent: float) -> str:
        if not done:
            return "reading the inputs"
        runs, known = done[-1]
        return f"{runs} runs done{expected(spent, runs, known - runs, 'at least')}"

    search = partial(
        calibrate,
        args.cluster,
        args.workload,
        knobs=tuple(name.strip() for name in (args.knobs or "").split(",") if name.strip()),
        progress=lambda *numbers: done.append(numbers),
        **_keywords(args, site, CalibrationRequest),
    )
    return _answered(args, Calibration.layout, search, state)


def _read(args: argparse.Namespace, workload: str) -> Site | None:
    """Return the site after checks of the options that need no input."""
    if args.runs and not args.output:
        raise ConfigError("there is no directory for the runs", where="--runs", expected="-o DIR")
    site = place_site(args, "cluster", "workload")
    require(args, cluster="CLUSTER", workload=workload)
    return site


def _keywords(args: argparse.Namespace, site: Site | None, request: type[SearchRequest]) -> dict[str, Any]:
    """Return the keywords of a search, without ``runs``."""
    options = rules_document(args, site)
    return {
        **flags_given(args, request),
        "seed": options.pop("seed", 0),
        "transforms": tuple(args.transform),
        "reading": {name: getattr(args, name) for name in READING if name != "transform"},
        "options": options,
    }


def _answered(
    args: argparse.Namespace,
    layout: Layout,
    search: Callable[..., SearchAnswer],
    state: Callable[[float], str],
) -> int:
    """Search, print the answer, and write its directory if there is one; return the exit status."""
    from simsched.folders import StagedFolder

    with heartbeat(args.verb, state, quiet=args.quiet):
        if not args.output:
            found = search(runs=None)
            _show(found, args.format)
            return 0 if found else EXIT_NONE
        with StagedFolder(args.output, layout) as staged:
            found = search(runs=staged.work / "runs" if args.runs else None)
            _show(found, args.format)
            written = found.finish(staged)
        if staged.replaced:
            note(f"replaced the earlier {layout.noun} in {args.output}")
        for path in written:
            sys.stderr.write(f"written: {path}\n")
        return 0 if found else EXIT_NONE


def _show(found: SearchAnswer, form: str) -> None:
    if form == "json":
        write(found.to_json(), "json")
    elif form == "csv":
        write(found.to_csv(), "other")
    else:
        write(found.text())
