"""``simsched calibrate``: the settings under which simulated waits are nearest to those of a log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from simsched.cli.options.run_options import add_rules, rules_document
from simsched.cli.options.site_options import add_site, place_site, require
from simsched.cli.options.workloads import READING, add_reading
from simsched.cli.size import add_workers
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.cli.support.messages import note
from simsched.cli.support.output import write

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from simsched.cli.support.parser import Subparsers
    from simsched.site.site import Site
    from simsched.study.calibration.calibration import Calibration

EXIT_NONE = 1
FORMATS = ("text", "json", "csv")


def register(subparsers: Subparsers) -> None:
    """Add the verb `calibrate`."""
    parser = subparsers.add_parser(
        "calibrate",
        help="find the settings under which simulated waits are nearest to those of a log",
        description="Simulate a log under many settings, each by itself and then together, and compare the "
        "waits with those that the log recorded.  The first two thirds of the weeks choose the settings, "
        "the last third tests them.  The options below are the baseline.",
        epilog="Exit status: 0 the held-out error is smaller beyond chance, 1 it is not, 2 the input is "
        "wrong.",
    )
    parser.add_argument("cluster", metavar="CLUSTER", nargs="?", help="a cluster file, or a bundled name")
    parser.add_argument("workload", metavar="TRACE", nargs="?", help="a log with start times")
    add_site(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write config.toml, settings.csv and calibration.json to DIR"
    )
    parser.add_argument("--runs", action="store_true", help="keep every run directory in DIR/runs")
    parser.add_argument("--format", choices=FORMATS, default="text", help="text (default), json or csv")
    parser.add_argument(
        "--quiet", action="store_true", help="do not print progress on standard error every 30 s"
    )
    parser.add_argument("--knobs", metavar="NAMES", help="try these only, separated by commas (default: all)")
    parser.add_argument(
        "--held-out",
        metavar="SHARE",
        type=float,
        help="share of the weeks, the last ones, that test and do not choose (default 0.333)",
    )
    parser.add_argument(
        "--confidence", metavar="P", type=float, default=0.95, help="confidence of intervals (default 0.95)"
    )
    add_workers(parser.add_argument_group("workers"))
    add_rules(parser)
    add_reading(parser)
    parser.set_defaults(run=run_calibrate)


def run_calibrate(args: argparse.Namespace) -> int:
    """Calibrate, print and write the result; return 1 if no setting helps on the held-out weeks."""
    from simsched.errors import ConfigError
    from simsched.study.calibration.calibrate import calibrate

    if args.runs and not args.output:
        raise ConfigError("there is no directory for the runs", where="--runs", expected="-o DIR")
    site = place_site(args, "cluster", "workload")
    require(args, cluster="CLUSTER", workload="TRACE")
    done: list[tuple[int, int]] = []
    with heartbeat(args.verb, lambda spent: _state(done, spent), quiet=args.quiet):
        if args.output:
            return _written(args, site, done)
        found = calibrate(args.cluster, args.workload, **_options(args, site, done, None))
    _show(found, args.format)
    return 0 if found else EXIT_NONE


def _written(args: argparse.Namespace, site: Site | None, done: list[tuple[int, int]]) -> int:
    """Calibrate, print the result and write its directory."""
    from simsched.folders import StagedFolder
    from simsched.study.calibration.calibrate import calibrate
    from simsched.study.calibration.calibration_folder import CALIBRATION, finish_calibration

    with StagedFolder(args.output, CALIBRATION) as staged:
        runs = staged.work / "runs" if args.runs else None
        found = calibrate(args.cluster, args.workload, **_options(args, site, done, runs))
        _show(found, args.format)
        written = finish_calibration(found, staged)
    if staged.replaced:
        note(f"replaced the earlier calibration in {args.output}")
    for path in written:
        sys.stderr.write(f"written: {path}\n")
    return 0 if found else EXIT_NONE


def _state(done: list[tuple[int, int]], spent: float) -> str:
    """Return the number of runs that are done, and the least time of further ones."""
    if not done:
        return "reading the inputs"
    runs, known = done[-1]
    return f"{runs} runs done{expected(spent, runs, known - runs, 'at least')}"


def _show(found: Calibration, kind: str) -> None:
    if kind == "json":
        write(found.to_json(), "json")
    elif kind == "csv":
        write(found.to_csv(), "other")
    else:
        write(found.text())


def _options(
    args: argparse.Namespace, site: Site | None, done: list[tuple[int, int]], runs: Path | None
) -> dict[str, Any]:
    """Return the keywords of `calibrate`, which appends its progress to `done`."""
    options = rules_document(args, site)
    seed = options.pop("seed", 0)
    return {
        "knobs": tuple(name.strip() for name in (args.knobs or "").split(",") if name.strip()),
        **({} if args.held_out is None else {"held_out": args.held_out}),
        "seed": seed,
        "confidence": args.confidence,
        "transforms": tuple(args.transform),
        "reading": {name: getattr(args, name) for name in READING if name != "transform"},
        "options": options,
        "workers": args.workers,
        "scheduler": args.scheduler,
        "hpc": args.hpc,
        "runs": runs,
        "progress": lambda *numbers: done.append(numbers),
    }
