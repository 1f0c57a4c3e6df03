"""The options by which verbs read workloads, and the reading of workloads."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import TYPE_CHECKING

from simsched.cli.support.messages import note, warn
from simsched.workload.transforms.transform_forms import FORMS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    import numpy as np

    from simsched.formats.sss import Names
    from simsched.graph.cluster import Cluster
    from simsched.site.site import Site
    from simsched.workload.job import Workload

TRANSFORMS = (
    "transforms of the workload, in order, each with -t (`simsched policies transforms` explains them):\n"
    + fill(", ".join(each.form for each in FORMS.values()), 78, initial_indent="  ", subsequent_indent="  ",
           break_on_hyphens=False)
)  # fmt: skip
"""The end of the help of verbs that only transform."""

READING = (
    "as_", "map", "procs_per_node", "constrain", "columns", "delimiter", "limit", "strict", "transform",
    "on_site", "time_zone", "start_date",
)  # fmt: skip
"""The arguments of `add_reading`; `on_site` has no option, a site sets it."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading and transforming a workload, except ``--seed``."""
    group = parser.add_argument_group("reading the workload")
    group.add_argument("--as", dest="as_", metavar="FORMAT", help="read this format instead of detecting it")
    group.add_argument(
        "--map",
        action="append",
        metavar="TEMPLATE",
        help="shape of a record's request: 'slot={procs}/core', 'node={nodes}/slot={ppn}/core', or "
        "'QUEUE -> TEMPLATE' for one queue or partition; may be repeated",
    )
    group.add_argument("--procs-per-node", type=whole, metavar="N", help="processors per node, for {nodes}")
    group.add_argument(
        "--constrain",
        action="append",
        default=[],
        metavar="FIELD",
        help="turn the 'features' or the 'partition' of a record into a constraint; may be repeated",
    )
    group.add_argument(
        "--columns",
        metavar="MAP|PRESET|NAMES",
        help="column map of a table (CSV, Parquet, JSON): a YAML file, or a preset ('simsched workload "
        "presets'); or the columns of a Slurm dump without a header, as in sacct -o",
    )
    group.add_argument(
        "--delimiter", metavar="TEXT", help="separator of the columns (default that of the header)"
    )
    group.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="time zone of the log's dates, such as Europe/Rome or +01:00 (default that of the log, or UTC)",
    )
    group.add_argument(
        "--start-date", metavar="DATE", help="date of second 0, for a log without dates: 2024-03-01T08:00"
    )
    group.add_argument("--limit", type=whole, metavar="N", help="read at most N records")
    group.add_argument(
        "--strict",
        action="store_true",
        help="refuse bad records; `run` also fails if a job can never run",
    )
    group.add_argument(
        "-t",
        "--transform",
        action="append",
        default=[],
        metavar="STEP",
        help="apply a transform, such as 'load(1.2)' or 'slice(1d, 8d)'; may be repeated (`simsched policies "
        "transforms` lists them)",
    )
    parser.set_defaults(on_site=None)


def read_workloads(
    args: argparse.Namespace,
    names: Sequence[str],
    cluster: Cluster | None = None,
    site: Site | None = None,
) -> Workload:
    """Read workloads, merge and transform them; `cluster` resolves host patterns in SSS Job Objects."""
    from simsched.formats.rfc.clock import parse_date, zone_name
    from simsched.workload.load import load_workload

    if args.time_zone is not None:
        zone_name(args.time_zone, "--time-zone")
    if args.start_date is not None:
        parse_date(args.start_date, "--start-date")
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
            on_site=args.on_site,
            time_zone=args.time_zone,
            start_date=args.start_date,
            seed=getattr(args, "seed", None) or 0,
        )
        for name in names
    ]
    for part in parts:
        write_notes(part, site, mapped=bool(args.map))
    workload = parts[0]
    if len(parts) > 1:
        from simsched.workload.transforms.transforms import merge

        workload = merge(parts)
        stated = {text for part in parts for text in part.notes}
        for text in workload.notes:
            if text not in stated:
                note(text, of_input=True)
    if args.transform:
        from simsched.workload.transforms.steps import apply_steps

        known = workload.notes
        workload = apply_steps(workload, args.transform, generator(args))
        for text in workload.notes[len(known) :]:
            note(text, of_input=True)
    return workload


def read_inputs(args: argparse.Namespace, site: Site | None = None) -> tuple[Cluster, Workload]:
    """Read the cluster and the workload of a run, and report ignored records."""
    from simsched.graph.cluster import load_cluster

    cluster = load_cluster(args.cluster) if site is None else site.cluster
    workload = read_workloads(args, [args.workload], cluster, site)
    write_ignored(workload)
    return cluster, workload


def write_ignored(workload: Workload) -> None:
    """Write one line per reason for which records of a workload were ignored."""
    for reason, count, places in workload.skip_table():
        records = "1 record" if count == 1 else f"{count:,} records"
        sys.stderr.write(f"ignored {records}: {reason}{f' ({places})' if places else ''}\n")


def write_notes(workload: Workload, site: Site | None = None, *, mapped: bool = False) -> None:
    """Write the notes of a workload, and the warnings of Job Objects (awareness policy Warn, R12)."""
    notes: Sequence[str] = workload.notes
    if site is not None:
        from simsched.site.log_use import notes_on_site

        notes = notes_on_site(site, workload, mapped=mapped)
    for text in notes:
        note(f"{workload.source}: {text}", of_input=True)
    warnings = workload.header.get("Note", "") if workload.kind == "sss" else ""
    for text in filter(None, warnings.split("\n")):
        warn(text)


def names_of(cluster: Cluster) -> Names:
    """Return the names of hosts and properties of a cluster."""
    from simsched.formats.sss import Names

    return Names(tuple(cluster.index.hosts), tuple(cluster.index.property_rows))


def generator(args: argparse.Namespace) -> np.random.Generator:
    """Return the generator of ``--seed``."""
    import numpy as np

    return np.random.default_rng(args.seed)


def whole(text: str) -> int:
    """Read a whole number of 0 or more."""
    from argparse import ArgumentTypeError

    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)
