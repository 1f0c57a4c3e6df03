"""``simsched size`` and ``simsched headroom``: the smallest machine, and the highest load.

The module is named after the first of its two verbs, which share nearly all options.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from simsched import human
from simsched.cli.options.search_options import add_output, add_work, answered, check_output, keywords_of
from simsched.cli.options.site_options import add_site, noted_use, place_site, require
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.declare.flags import Flags, add_flags, flag
from simsched.study.search_values import SizingRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from simsched.cli.support.parser import Subparsers
    from simsched.site.site import Site
    from simsched.study.sizing.answer import Answer
    from simsched.study.sizing.evaluation import Evaluation

EXIT_NONE = 1
TARGETS = """\
targets: FIGURE RELATION VALUE, such as p95_wait<=1h, utilisation>=80%, mean_bsld<=10;
for some jobs only: 'p95_wait[queue == debug]<=10m', 'max_wait[user == alice]<=1d'
"""


class SizeFlags(Flags, frozen=True, kw_only=True):
    """Flags of ``size``.

    grow : vary this number: nodes (default), the nodes of a group (a property, the common part of names,
        a hostlist), gpus or cores per node, or a value of a recipe (groups[0].count).
    min : smallest size to try (default 1).
    max : largest size to try (default 16 times today's).
    """

    grow: Annotated[str, flag("WHAT")] = "nodes"
    min: int | None = None
    max: int | None = None


class LoadFlags(Flags, frozen=True, kw_only=True):
    """Flags of ``headroom``.

    step : precision, as a multiple of the load (default 0.01).
    min : lowest load to try (default 0.1).
    max : highest load to try (default 10).
    """

    step: float | None = None
    min: float | None = None
    max: float | None = None


class SearchInputs(Flags, frozen=True, kw_only=True):
    """Inputs of both.

    cluster : a cluster file, or a bundled name.
    workload : a workload file, the file of a mix, or a bundled name.
    target : target to meet; may be repeated.
    """

    cluster: Annotated[str | None, flag("CLUSTER", positional=True, nargs="?")] = None
    workload: Annotated[str | None, flag("WORKLOAD", positional=True, nargs="?")] = None
    target: Annotated[tuple[str, ...], flag("T")]


def register(subparsers: Subparsers) -> None:
    """Add the verbs `size` and `headroom`."""
    import argparse

    size = subparsers.add_parser(
        "size",
        help="find the smallest machine that meets a target",
        description="Search for the smallest machine on which a workload meets all targets.",
        epilog=TARGETS + "\nExit status: 0 found, 1 no size tried meets the targets, 2 the input is wrong.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(size)
    add_flags(size, SizeFlags)
    _add_rest(size)
    size.set_defaults(run=run_size)

    headroom = subparsers.add_parser(
        "headroom",
        help="find the highest load under which a machine meets a target",
        description="Search for the highest load under which a machine still meets all targets.",
        epilog=TARGETS
        + "\nExit status: 0 today's load meets the targets, 1 it does not, 2 the input is wrong.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(headroom)
    add_flags(headroom, LoadFlags)
    _add_rest(headroom)
    headroom.set_defaults(run=run_headroom)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add_flags(parser, SearchInputs)
    add_site(parser)
    add_flags(parser, SizingRequest, "by", "load")


def _add_rest(parser: argparse.ArgumentParser) -> None:
    add_output(parser, "answer.json, trials.csv and answer.png")
    chance = ("seeds", "block", "shake", "meet", "confidence", "checks")
    add_flags(parser.add_argument_group("chance"), SizingRequest, *chance)
    measured = parser.add_argument_group("measured jobs")
    add_flags(measured, SizingRequest, "warm_up", "drain", "allow_infeasible")
    add_work(parser)


def run_size(args: argparse.Namespace) -> int:
    """Search for a size, print and write the answer; return 1 if no size meets the targets."""
    from simsched.study.sizing.size import size

    return _answered(args, lambda options: size(args.cluster, args.workload, args.target, grow=args.grow,
                                            least=args.min, most=args.max, **options))  # fmt: skip


def run_headroom(args: argparse.Namespace) -> int:
    """Search for a load, print and write the answer; return 1 if today's load misses a target."""
    from simsched.study.sizing.headroom import headroom

    given = {"step": args.step, "least": args.min, "most": args.max}
    chosen = {name: value for name, value in given.items() if value is not None}
    return _answered(
        args, lambda options: headroom(args.cluster, args.workload, args.target, **chosen, **options)
    )


def _answered(args: argparse.Namespace, search: Callable[[dict[str, Any]], Answer]) -> int:
    from simsched.study.sizing.answer_folder import ANSWER, finish_answer

    check_output(args)
    site = place_site(args, "cluster", "workload")
    require(args, cluster="CLUSTER", workload="WORKLOAD")
    tried: list[Evaluation] = []
    options = _options(args, site, tried)
    with heartbeat(args.verb, lambda spent: _state(tried, spent), quiet=args.quiet):
        found = answered(args, lambda runs: search({**options, "runs": runs}), ANSWER, finish_answer)
    return 0 if found else EXIT_NONE


def _options(args: argparse.Namespace, site: Site | None, tried: list[Evaluation]) -> dict[str, Any]:
    """Return the keywords of `size` and `headroom`, which append evaluations to `tried` as they are made."""
    return {
        **keywords_of(args, site, SizingRequest),
        "log_use": noted_use(args, site),
        "progress": tried.append if args.quiet or not sys.stderr.isatty() else _shown(tried),
    }


def _state(tried: list[Evaluation], spent: float) -> str:
    """Return the number of evaluations, and the least time of further ones."""
    left = tried[-1].left if tried else None
    done = "1 value" if len(tried) == 1 else f"{len(tried)} values"
    return f"tried {done}{expected(spent, len(tried), left or 0, 'at least')}"


def _shown(tried: list[Evaluation]) -> Callable[[Evaluation], None]:
    """Return a function that appends an evaluation to `tried` and prints it."""

    def show(trial: Evaluation) -> None:
        tried.append(trial)
        _show(trial)

    return show


def _show(trial: Evaluation) -> None:
    """Write the verdict of an evaluation to the terminal."""
    verdict = "some jobs never fit" if trial.refused else "meets" if trial.met else "misses"
    spent = human.seconds(round(trial.seconds, 1))
    sys.stderr.write(f"  tried {trial.value:,}: {verdict} ({spent})\n")
