"""The options by which verbs read workloads, and the reading itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    import numpy as np

    from simsched.formats.sss import Names
    from simsched.graph.cluster import Cluster
    from simsched.workload.job import Workload

TRANSFORMS = """\
transforms of the workload, in order, each with -t:
  slice(BEGIN, END)  first(N)  where(QUERY)  thin(SHARE)  users(FACTOR)  copies(FACTOR)
  load(FACTOR), of denser arrivals, which makes days shorter  runtime(FACTOR)
  estimates(exact)  estimates(FACTOR)  estimates(tsafrir, LIMIT)  anonymise
  release  shift(T)  rebase  repeat(TIMES, PERIOD)  resample(BLOCK)  shake(T)
"""

READING = (
    "as_", "map", "procs_per_node", "constrain", "columns", "delimiter", "limit", "strict", "transform",
)  # fmt: skip
"""The arguments of `add_reading`."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a workload is read and transformed (all but ``--seed``)."""
    group = parser.add_argument_group("reading the workload")
    group.add_argument("--as", dest="as_", metavar="FORMAT", help="insist on a format instead of looking")
    group.add_argument(
        "--map",
        action="append",
        metavar="TEMPLATE",
        help="what a record's counts ask for: 'slot={procs}/core', 'node={nodes}/slot={ppn}/core'; "
        "'QUEUE -> TEMPLATE' for one queue or partition; may be repeated",
    )
    group.add_argument("--procs-per-node", type=whole, metavar="N", help="processors of a node, for {nodes}")
    group.add_argument(
        "--constrain",
        action="append",
        default=[],
        metavar="WHAT",
        help="make 'features' or 'partition' of a record a constraint",
    )
    group.add_argument(
        "--columns", metavar="NAMES", help="columns of a Slurm dump without a header, as sacct -o names them"
    )
    group.add_argument(
        "--delimiter", metavar="TEXT", help="what is between the columns (default: as the header has it)"
    )
    group.add_argument("--limit", type=whole, metavar="N", help="read at most N records")
    group.add_argument(
        "--strict",
        action="store_true",
        help="refuse bad records; `run` fails if it leaves jobs out",
    )
    group.add_argument(
        "-t",
        "--transform",
        action="append",
        default=[],
        metavar="STEP",
        help="transform it; see docs/workloads.md",
    )


def read_workloads(
    args: argparse.Namespace, names: Sequence[str], cluster: Cluster | None = None
) -> Workload:
    """Read workloads, merge several, transform the whole; `cluster` is what patterns are matched against."""
    from simsched.workload.load import load_workload
    from simsched.workload.transforms.steps import apply_steps
    from simsched.workload.transforms.transforms import merge

    parts = [
        load_workload(
            name,
            map=args.map,
            procs_per_node=args.procs_per_node,
            strict=args.strict,
            as_=args.as_,
            limit=args.limit,
            constrain=args.constrain,
            names=None if cluster is None else lambda: names_of(cluster),
            columns=args.columns,
            delimiter=args.delimiter,
        )
        for name in names
    ]
    for part in parts:
        tell_warnings(part)
    workload = parts[0] if len(parts) == 1 else merge(parts)
    return apply_steps(workload, args.transform, generator(args)) if args.transform else workload


def read_inputs(args: argparse.Namespace) -> tuple[Cluster, Workload]:
    """Read the cluster and the workload of a run, and say what was left out."""
    from simsched.graph.cluster import load_cluster

    cluster = load_cluster(args.cluster)
    workload = read_workloads(args, [args.workload], cluster)
    for reason, count, places in workload.skip_table():
        sys.stderr.write(f"left out: {count} records, {reason} ({places})\n")
    return cluster, workload


def tell_warnings(workload: Workload) -> None:
    """Print the notes on a source, and what Job Objects ask for under the awareness policy Warn (R12)."""
    for note in workload.notes:
        sys.stderr.write(f"note: {workload.source}: {note}\n")
    notes = workload.header.get("Note", "") if workload.kind == "sss" else ""
    for note in filter(None, notes.split("\n")):
        sys.stderr.write(f"simsched: warning: {note}\n")


def names_of(cluster: Cluster) -> Names:
    """Return the hosts and properties that a cluster has."""
    from simsched.formats.sss import Names

    return Names(tuple(cluster.index.hosts), tuple(cluster.index.property_rows))


def generator(args: argparse.Namespace) -> np.random.Generator:
    """Return the generator of ``--seed``."""
    import numpy as np

    return np.random.default_rng(args.seed)


def whole(text: str) -> int:
    """Read a whole number from 0 on."""
    from argparse import ArgumentTypeError

    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)
