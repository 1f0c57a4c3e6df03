"""The command of a run as its ``run.json`` records it: enough to repeat the run from its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.cli.options.workloads import READING
from simsched.errors import RunError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from simsched.simulation.record.run_origin import Origin


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
