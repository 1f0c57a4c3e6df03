"""The options by which verbs read workloads, and the reading of workloads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from simsched.cli.support.messages import note, warn
from simsched.declare.flags import add_flags
from simsched.workload.mapping import ReadingOptions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    import numpy as np

    from simsched.formats.sss.expressions import Names
    from simsched.graph.cluster import Cluster
    from simsched.site.site import Site
    from simsched.workload.job import Workload

READING = ReadingOptions.__struct_fields__
"""The arguments of `add_reading`; `on_site` has no option, a site sets it."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading and transforming a workload, except ``--seed``."""
    group = parser.add_argument_group("reading the workload")
    add_flags(group, ReadingOptions)
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
    reading = {name: getattr(args, name) for name in READING if name != "transform"}
    found = None if cluster is None else lambda: names_of(cluster)
    seed = getattr(args, "seed", None) or 0
    parts = [load_workload(name, names=found, seed=seed, **reading) for name in names]
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
    from simsched.formats.sss.expressions import Names

    return Names(tuple(cluster.index.hosts), tuple(cluster.index.property_rows))


def generator(args: argparse.Namespace) -> np.random.Generator:
    """Return the generator of ``--seed``."""
    import numpy as np

    return np.random.default_rng(args.seed)
