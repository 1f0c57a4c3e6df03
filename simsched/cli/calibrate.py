"""``simsched calibrate``: the settings under which simulated waits are nearest to those of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.cli.options.search_options import add_output, add_work, answered, check_output, keywords_of
from simsched.cli.options.site_options import add_site, place_site, require
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.declare.flags import add_flags
from simsched.study.search_values import CalibrationRequest

if TYPE_CHECKING:
    import argparse

    from simsched.cli.support.parser import Subparsers
    from simsched.site.site import Site

EXIT_NONE = 1


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
    add_output(parser, "config.toml, settings.csv and calibration.json")
    parser.add_argument("--knobs", metavar="NAMES", help="try these only, separated by commas (default: all)")
    add_flags(parser, CalibrationRequest, "held_out", "beside", "confidence")
    add_work(parser)
    parser.set_defaults(run=run_calibrate)


def run_calibrate(args: argparse.Namespace) -> int:
    """Calibrate, print and write the result; return 1 if no setting helps on the held-out weeks."""
    from simsched.study.calibration.calibrate import calibrate
    from simsched.study.calibration.calibration_folder import CALIBRATION, finish_calibration

    check_output(args)
    site = place_site(args, "cluster", "workload")
    require(args, cluster="CLUSTER", workload="TRACE")
    done: list[tuple[int, int]] = []
    options = _options(args, site, done)
    with heartbeat(args.verb, lambda spent: _state(done, spent), quiet=args.quiet):
        found = answered(
            args,
            lambda runs: calibrate(args.cluster, args.workload, runs=runs, **options),
            CALIBRATION,
            finish_calibration,
        )
    return 0 if found else EXIT_NONE


def _state(done: list[tuple[int, int]], spent: float) -> str:
    """Return the number of runs that are done, and the least time of further ones."""
    if not done:
        return "reading the inputs"
    runs, known = done[-1]
    return f"{runs} runs done{expected(spent, runs, known - runs, 'at least')}"


def _options(args: argparse.Namespace, site: Site | None, done: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the keywords of `calibrate`, which appends its progress to `done`."""
    return {
        "knobs": tuple(name.strip() for name in (args.knobs or "").split(",") if name.strip()),
        **keywords_of(args, site, CalibrationRequest),
        "progress": lambda *numbers: done.append(numbers),
    }
