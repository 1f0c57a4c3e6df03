"""``simsched demo``: a month of jobs on a bundled cluster, FCFS against EASY."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from simsched.cli.support.messages import note
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag

if TYPE_CHECKING:
    import argparse

    from simsched.cli.support.parser import Subparsers
    from simsched.report.data.tables import RunTables

CLUSTER = "flat240"
WORKLOAD = "month"
POLICIES = ("fcfs", "easy")


class DemoFlags(Flags, frozen=True):
    """Run a small study in under a minute.

    output : write the runs to DIR (default demo-results).
    """

    output: Annotated[str, flag("DIR", "-o")] = "demo-results"


def register(subparsers: Subparsers) -> None:
    """Add the verb ``demo``."""
    about = (
        f"Run a month of synthetic jobs (the bundled workload {WORKLOAD!r}) on the bundled cluster "
        f"{CLUSTER!r}, under FCFS and under EASY backfilling, and compare the waits."
    )
    add_verb(subparsers, "demo", demo, DemoFlags, description=about)


def demo(args: argparse.Namespace) -> int:
    """Run the study, print its table and the path of the results."""
    from simsched.api import load_run, simulate
    from simsched.folders import refuse_foreign
    from simsched.graph.cluster import load_cluster
    from simsched.simulation.record.run_directory import RUN
    from simsched.workload.load import load_workload

    folder = Path(args.output)
    earlier = [policy for policy in POLICIES if refuse_foreign(folder / policy, RUN)]
    cluster, workload = load_cluster(CLUSTER), load_workload(WORKLOAD)
    print(f"{len(workload)} jobs of the workload {WORKLOAD!r} on the cluster {CLUSTER!r}\n", flush=True)
    runs: list[RunTables] = []
    for policy in POLICIES:
        sys.stderr.write(f"simulating {policy} …\n")
        path = simulate(cluster, workload, queue_policy=policy).save(folder / policy)
        if policy in earlier:
            note(f"replaced the earlier run in {path}")
        runs.append(load_run(path, name=policy))
    _show(runs, folder)
    picture = folder / "queue.png"
    if earlier or not picture.exists():
        _draw(runs, picture)
    return 0


def _draw(runs: list[RunTables], path: Path) -> None:
    """Draw the picture of the README, if matplotlib is installed."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        return
    from simsched.report.figures import figures

    figures.save("queue", runs, path, dpi=110)
    print(f"Jobs in the queue: {path.resolve()}")


def _show(runs: list[RunTables], folder: Path) -> None:
    from simsched import human
    from simsched.cli.support.output import terminal_width
    from simsched.report import text_report

    print(text_report.comparison(runs, terminal_width()))
    spent = human.seconds(round(sum(run.meta["wall_seconds"] for run in runs), 1))
    print(f"Simulated in {spent}.  To see more of one run: simsched report {folder / POLICIES[-1]}")
    print(f"Results: {folder.resolve()}")
