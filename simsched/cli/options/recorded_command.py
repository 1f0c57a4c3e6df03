"""The command of a run as its ``run.json`` records it: enough to repeat the run from its inputs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simsched.cli.options.workloads import READING, add_reading, read_workloads
from simsched.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from simsched.graph.cluster import Cluster
    from simsched.simulation.record.run_origin import Origin
    from simsched.workload.job import Workload


def command_of(args: argparse.Namespace, rules: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs, the options of reading and the rules (a configuration document) as plain data."""
    reading = {name: getattr(args, name) for name in READING}
    return {
        "cluster": args.cluster,
        "workload": args.workload,
        "rules": rules,
        "reading": {name: value for name, value in reading.items() if value},
    }


def refuse_changed_inputs(args: argparse.Namespace, origin: Origin, folder: Path) -> None:
    """Raise RunError if an input of a run is missing or has changed since the run was made."""
    from simsched.bundled import resolve
    from simsched.simulation.record.file_digests import digest_of
    from simsched.workload.load import resolve_workload

    places = {"cluster": resolve("clusters", args.cluster), "workload": resolve_workload(args.workload)}
    for known in origin.inputs:
        if known.sha256 is None:  # a folder of jobs
            continue
        if digest_of(places[known.role]) != known.sha256:
            raise RunError(f"the file has changed since {folder} was made", where=str(places[known.role]))


def recorded_inputs(command: Mapping[str, Any]) -> tuple[Cluster, Workload]:
    """Read the cluster and the workload of a run again; its jobs are in their queues."""
    from dataclasses import replace

    from simsched.graph.cluster import load_cluster
    from simsched.simulation.admission import admit
    from simsched.simulation.options.run_config import from_document

    options = from_document(command["rules"], "run.json")
    parser = argparse.ArgumentParser()
    add_reading(parser)  # its defaults hold for options that the command did not have
    given = {**vars(parser.parse_args([])), **command["reading"], "seed": options.get("seed", 0)}
    cluster = load_cluster(command["cluster"])
    workload = read_workloads(argparse.Namespace(**given), [command["workload"]], cluster)
    if options.get("queues") is not None:
        workload = replace(workload, jobs=admit(workload.jobs, options["queues"], cluster.index).jobs)
    return cluster, workload
