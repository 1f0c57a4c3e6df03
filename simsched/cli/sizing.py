"""``simsched size`` and ``simsched headroom``: the smallest machine, and the most load."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.cli.reading import READING, add_reading, whole
from simsched.cli.rules import add_rules, rules_document

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from simsched.cli import Subparsers
    from simsched.study.answer import Answer
    from simsched.study.trials import Trial

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
        epilog=TARGETS + "\nExit status: 0 found, 1 no size in the range does, 2 the input is wrong.",
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
        "--by", choices=("arrival", "runtime"), default="arrival", help="how load is scaled (default arrival)"
    )


def _add_rest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write answer.json, trials.csv and answer.png there"
    )
    parser.add_argument("--runs", action="store_true", help="keep every run directory in DIR/runs")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    chance = parser.add_argument_group("chance")
    chance.add_argument("--seeds", metavar="N", type=whole, default=5,
                        help="the workload as it is and N - 1 resamples of it (default 5)")  # fmt: skip
    chance.add_argument(
        "--block", metavar="D", help="length of the blocks of a resampled workload, such as 7d"
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
        default=1,
        help="further probes on each side of the answer (default 1)",
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
    from simsched.study.size import size

    return _answered(args, lambda ask: size(args.cluster, args.workload, args.target, grow=args.grow,
                                            least=args.min, most=args.max, **ask))  # fmt: skip


def run_headroom(args: argparse.Namespace) -> int:
    """Search, print, write; 1 if today's load misses a target."""
    from simsched.study.headroom import headroom

    given = {"step": args.step, "least": args.min, "most": args.max}
    chosen = {name: value for name, value in given.items() if value is not None}
    return _answered(args, lambda ask: headroom(args.cluster, args.workload, args.target, **chosen, **ask))


def _answered(args: argparse.Namespace, search: Callable[[dict[str, Any]], Answer]) -> int:
    from simsched.errors import ConfigError

    if args.runs and not args.output:
        raise ConfigError("it is not said where the runs go", where="--runs", expected="-o DIR")
    target = Path(args.output) if args.output else None
    with _place(target):
        answer = search(_ask(args))
    print(_rendered(answer, args.format), end="")
    if target is not None:
        from simsched.study.answer_folder import write_answer

        for path in write_answer(answer, target):
            sys.stderr.write(f"written: {path}\n")
    return 0 if answer else EXIT_NONE


@contextmanager
def _place(target: Path | None) -> Iterator[None]:
    """Make the directory of the answer before the search; it goes again if nothing comes of it."""
    if target is None:
        yield
        return
    from simsched.study.answer_folder import refuse_other

    refuse_other(target)
    target.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it may hold something
            target.rmdir()
        raise


def _rendered(answer: Answer, kind: str) -> str:
    if kind == "json":
        return answer.to_json()
    return answer.to_csv() if kind == "csv" else answer.text()


def _ask(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the command line says, as keywords of `size` and `headroom`."""
    from simsched.formats.duration import parse_duration

    options = rules_document(args)
    seed = options.pop("seed", 0)
    return {
        "load": args.load,
        "by": args.by,
        "seeds": args.seeds,
        "seed": seed,
        "block": args.block,
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
        "runs": Path(args.output) / "runs" if args.runs else None,
        "progress": None if args.quiet or not sys.stderr.isatty() else _show,
    }


def _show(trial: Trial) -> None:
    """Say on a terminal what a trial came to."""
    said = "never fit" if trial.refused else "meets" if trial.met else "misses"
    sys.stderr.write(f"  tried {trial.value:,}: {said} ({trial.seconds:.1f} s)\n")
