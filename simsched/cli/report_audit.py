"""``simsched report --audit``: the audit of run directories that were written earlier."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simsched.graph.cluster import Cluster
    from simsched.simulation.audit.audit_report import AuditReport
    from simsched.workload.job import Workload

EXIT_FAULTS = 1


def run_audits(folders: Sequence[str]) -> int:
    """Audit each run directory, print what was found, and return the exit status: 1 if any has a fault."""
    faults = False
    for folder in folders:
        found = audit_again(Path(folder))
        faults |= not found
        print(f"{folder}: {found}")
    return EXIT_FAULTS if faults else 0


def audit_again(folder: Path) -> AuditReport:
    """Audit a run directory with its inputs read again, or its files alone where that is not possible.

    Raises
    ------
    RunError
        If it is not a run directory, or a file of it cannot be read.
    """
    from simsched.errors import RunError, SimschedError
    from simsched.simulation.audit.auditor import audit_run
    from simsched.simulation.audit.job_life import read_meta
    from simsched.simulation.audit.run_files import audit_files

    if not (folder / "run.json").is_file():
        raise RunError("this is not a run directory: it has no run.json", where=str(folder))
    command = read_meta(folder).get("command")
    found = audit_files(folder)
    if not (folder / "allocations.jsonl").is_file():
        why = "the run has no allocations"
    elif command is None:
        why = "run.json does not say how the run was made"
    elif any("has changed since" in fault.text for fault in found.faults):
        why = "an input has changed"
    else:
        try:
            inputs = _inputs(command)
        except (SimschedError, LookupError, TypeError, AttributeError) as error:
            why = f"the inputs cannot be read: {error}"
        else:
            return audit_run(folder, *inputs)
    found.notes.append(f"jobs and allocations were not compared with the inputs: {why}")
    return found


def _inputs(command: Mapping[str, Any]) -> tuple[Cluster, Workload]:
    """Return the cluster and the workload of a run as they are read now, its jobs in their queues."""
    from dataclasses import replace

    from simsched.cli.options.workloads import add_reading, read_workloads
    from simsched.graph.cluster import load_cluster
    from simsched.simulation.options.run_config import from_document
    from simsched.simulation.queues import admit

    options = from_document(command["rules"], "run.json")
    parser = argparse.ArgumentParser()
    add_reading(parser)  # whose defaults hold for what the command did not say
    said = {**vars(parser.parse_args([])), **command["reading"], "seed": options.get("seed", 0)}
    cluster = load_cluster(command["cluster"])
    workload = read_workloads(argparse.Namespace(**said), [command["workload"]], cluster)
    if options.get("queues") is not None:
        workload = replace(workload, jobs=admit(workload.jobs, options["queues"], cluster.index).jobs)
    return cluster, workload
