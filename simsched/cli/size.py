"""``simsched size`` and ``simsched headroom``: the smallest machine, and the most load."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from simsched import human
from simsched.cli.options.run_options import add_rules, rules_document
from simsched.cli.options.workloads import READING, add_reading, whole
from simsched.cli.support.heartbeat import expected, heartbeat
from simsched.cli.support.output import write

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    from simsched.cli import Subparsers
    from simsched.study.sizing.answer import Answer
    from simsched.study.sizing.evaluation import Trial

EXIT_NONE = 1
FORMATS = ("text", "json", "csv")
TARGETS = """\
targets: FIGURE RELATION VALUE, such as p95_wait<=1h, utilisation>=80%, mean_bsld<=10;
of some jobs alone: 'p95_wait[queue == debug]<=10m', 'max_wait[user == alice]<=1d'
"""


def register(subparsers: Subparsers) -> None:
    """Add the verbs `size` and `headroom`."""
    import argparse

    size = subparsers.add_parser(
        "size",
        help="the smallest machine that meets a target",
        description="Search for the smallest machine on which a workload meets targets, by simulating it on "
        "machines of different size.",
        epilog=TARGETS + "\nExit status: 0 found, 1 none of the sizes tried does, 2 the input is wrong.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(size)
    size.add_argument(
        "--grow",
        metavar="WHAT",
        default="nodes",
        help="what is varied: nodes (default), a group of nodes (a property, the common part of names, a "
        "hostlist), gpus or cores of a node, or a value of a recipe (groups[0].count)",
    )
    size.add_argument("--min", metavar="N", type=whole, help="the smallest that is tried (default 1)")
    size.add_argument("--max", metavar="N", type=whole, help="the largest (default 16 times today's)")
    size.add_argument("--load", metavar="F", type=float, default=1.0, help="times today's load (default 1)")
    _add_rest(size)
    size.set_defaults(run=run_size)

    headroom = subparsers.add_parser(
        "headroom",
        help="how much more load a machine takes before a target breaks",
        description="Search for the most load under which a workload still meets targets on a machine.",
        epilog=TARGETS
        + "\nExit status: 0 today's load meets the targets, 1 it does not, 2 the input is wrong.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_inputs(headroom)
    headroom.add_argument(
        "--step", metavar="F", type=float, help="precision in times the load (default 0.01)"
    )
    headroom.add_argument("--min", metavar="F", type=float, help="the least load that is tried (default 0.1)")
    headroom.add_argument("--max", metavar="F", type=float, help="the most (default 10)")
    headroom.add_argument(
        "--load",
        metavar="F",
        type=float,
        default=1.0,
        help="what counts as today's load, times the workload's",
    )
    _add_rest(headroom)
    headroom.set_defaults(run=run_headroom)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="a cluster file, or the name of a bundled one")
    parser.add_argument(
        "workload",
        metavar="WORKLOAD",
        help="a workload file, the file of a mix, or the name of a bundled one",
    )
    parser.add_argument(
        "--target", metavar="T", action="append", required=True, help="what has to be met; may be repeated"
    )
    parser.add_argument(
        "--by",
        choices=("arrival", "runtime", "users", "jobs"),
        default="arrival",
        help="how load is scaled: by denser arrivals (default; days become shorter, while run times, limits "
        "and windows of time stay), longer run times and limits, or users or jobs left out or copied",
    )


def _add_rest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write answer.json, trials.csv and answer.png there"
    )
    parser.add_argument("--runs", action="store_true", help="keep every run directory in DIR/runs")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument(
        "--quiet", action="store_true", help="no progress (else a line on standard error every 30 s)"
    )
    chance = parser.add_argument_group("chance")
    chance.add_argument("--seeds", metavar="N", type=whole, default=5,
                        help="the workload as it is and N - 1 resamples of it (default 5)")  # fmt: skip
    chance.add_argument(
        "--block", metavar="D", help="length of the blocks of a resampled workload, such as 7d"
    )
    chance.add_argument(
        "--shake",
        metavar="D",
        help="in place of resamples: the workload with each submission moved at random by up to D (1m)",
    )
    chance.add_argument(
        "--meet",
        choices=("every", "mean", "confident"),
        default="every",
        help="a target is met with every seed (default), by their mean, or by its whole confidence interval",
    )
    chance.add_argument(
        "--confidence", metavar="P", type=float, default=0.95, help="of intervals (default 0.95)"
    )
    chance.add_argument(
        "--checks",
        metavar="N",
        type=whole,
        help="sizes (or steps of load) tried on each side of the answer (default: 3 to 10, until the noise "
        "between seeds cannot explain what they come to)",
    )
    what = parser.add_argument_group("what counts")
    what.add_argument("--warm-up", metavar="D", default="0", help="leave out jobs of the first D, such as 3d")
    what.add_argument("--drain", metavar="D", default="0", help="leave out jobs of the last D")
    what.add_argument(
        "--allow-infeasible", action="store_true", help="leave out jobs that can never run on the machine"
    )
    place = parser.add_argument_group("where runs are performed")
    place.add_argument("--workers", metavar="N", type=whole,
                       help="processes of this machine (default one a core; 0: this process)")  # fmt: skip
    place.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, tcp://host:8786")
    place.add_argument(
        "--hpc", choices=("flux", "slurm"), help="within an allocation of Flux or Slurm (executorlib)"
    )
    add_rules(parser)
    add_reading(parser)


def run_size(args: argparse.Namespace) -> int:
    """Search, print, write; 1 if no size does."""
    from simsched.study.sizing.size import size

    return _answered(args, lambda ask: size(args.cluster, args.workload, args.target, grow=args.grow,
                                            least=args.min, most=args.max, **ask))  # fmt: skip


def run_headroom(args: argparse.Namespace) -> int:
    """Search, print, write; 1 if today's load misses a target."""
    from simsched.study.sizing.headroom import headroom

    given = {"step": args.step, "least": args.min, "most": args.max}
    chosen = {name: value for name, value in given.items() if value is not None}
    return _answered(args, lambda ask: headroom(args.cluster, args.workload, args.target, **chosen, **ask))


def _answered(args: argparse.Namespace, search: Callable[[dict[str, Any]], Answer]) -> int:
    from simsched.errors import ConfigError

    if args.runs and not args.output:
        raise ConfigError("it is not said where the runs go", where="--runs", expected="-o DIR")
    tried: list[Trial] = []
    with heartbeat(args.verb, lambda spent: _state(tried, spent), quiet=args.quiet):
        if not args.output:
            answer = search(_ask(args, tried, None))
            _show_answer(answer, args.format)
            return 0 if answer else EXIT_NONE
        return _written(args, search, tried)


def _written(args: argparse.Namespace, search: Callable[[dict[str, Any]], Answer], tried: list[Trial]) -> int:
    """Search, print, and write the directory of the answer."""
    from simsched.folders import StagedFolder
    from simsched.study.sizing.answer_folder import ANSWER, finish_answer

    with StagedFolder(args.output, ANSWER) as staged:
        answer = search(_ask(args, tried, staged.work / "runs" if args.runs else None))
        _show_answer(answer, args.format)
        written = finish_answer(answer, staged)
    if staged.replaced:
        sys.stderr.write(f"note: replaced the earlier answer in {args.output}\n")
    for path in written:
        sys.stderr.write(f"written: {path}\n")
    return 0 if answer else EXIT_NONE


def _show_answer(answer: Answer, kind: str) -> None:
    if kind == "json":
        write(answer.to_json(), "json")
    elif kind == "csv":
        write(answer.to_csv(), "other")
    else:
        write(answer.text())


def _ask(args: argparse.Namespace, tried: list[Trial], runs: Path | None) -> dict[str, Any]:
    """Return the keywords of `size` and `headroom`; trials are added to `tried` as they are made."""
    from simsched.formats.rfc.duration import parse_duration

    options = rules_document(args)
    seed = options.pop("seed", 0)
    return {
        "load": args.load,
        "by": args.by,
        "seeds": args.seeds,
        "seed": seed,
        "block": args.block,
        "shake": args.shake,
        "meet": args.meet,
        "confidence": args.confidence,
        "checks": args.checks,
        "warm_up": parse_duration(args.warm_up, where="--warm-up"),
        "drain": parse_duration(args.drain, where="--drain"),
        "allow_infeasible": args.allow_infeasible,
        "transforms": tuple(args.transform),
        "reading": {name: getattr(args, name) for name in READING if name != "transform"},
        "options": options,
        "workers": args.workers,
        "scheduler": args.scheduler,
        "hpc": args.hpc,
        "runs": runs,
        "progress": tried.append if args.quiet or not sys.stderr.isatty() else _shown(tried),
    }


def _state(tried: list[Trial], spent: float) -> str:
    """Return how many trials there were, and about how long the further ones take at least."""
    left = tried[-1].left if tried else None
    done = "1 trial" if len(tried) == 1 else f"{len(tried)} trials"
    return f"{done} done{expected(spent, len(tried), left or 0, 'at least')}"


def _shown(tried: list[Trial]) -> Callable[[Trial], None]:
    """Return what says on a terminal what each trial came to."""

    def show(trial: Trial) -> None:
        tried.append(trial)
        _show(trial)

    return show


def _show(trial: Trial) -> None:
    """Say on a terminal what a trial came to."""
    said = "never fit" if trial.refused else "meets" if trial.met else "misses"
    spent = human.seconds(round(trial.seconds, 1))
    sys.stderr.write(f"  tried {trial.value:,}: {said} ({spent})\n")
