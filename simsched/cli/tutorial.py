"""``simsched tutorial`` and ``simsched demo``: the first five minutes and a study, on bundled inputs."""

from __future__ import annotations

import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from simsched.cli.support.messages import note
from simsched.cli.support.verbs import add_verb
from simsched.declare.flags import Flags, flag
from simsched.errors import ConfigError

if TYPE_CHECKING:
    from simsched.cli.support.parser import Arguments, Subparsers
    from simsched.report.data.tables import RunTables


class TutorialStep(NamedTuple):
    """One command of the tutorial, the text before it, and its exit status."""

    text: str
    command: str
    status: int = 0


STEPS = (
    TutorialStep(
        "Can it run? `tiny` has four nodes of four cores; two of them have two GPUs each. A request is a "
        "shape: slots, and the resources in each slot. The second one never fits, and simsched says why.",
        "feasible tiny 'slot=2/[core=4;gpu]' 'slot=3/[core=4;gpu]'",
        1,
    ),
    TutorialStep(
        "Never means that even the idle cluster cannot hold the job. Later means that other jobs hold the "
        "resources now.",
        "feasible tiny 'slot=4/node' --running 'slot=1/core'",
        1,
    ),
    TutorialStep(
        "What would it get? `match` chooses nodes, cores and GPUs. Without `--format table` it prints R, the "
        "document that Flux executes.",
        "match tiny 'slot=2/[core=4;gpu]' 'slot=3/core' --policy hinode --format table",
    ),
    TutorialStep(
        "How long do jobs wait? `month` holds 20,314 jobs for the 240 cores of `flat240`. First in the "
        "order of arrival …",
        "run flat240 month -o fcfs --queue-policy fcfs --quiet",
    ),
    TutorialStep(
        "… then with EASY backfilling: a job may pass others if it does not delay the first.",
        "run flat240 month -o easy --queue-policy easy --quiet",
    ),
    TutorialStep("Which is better, and is the difference more than noise?", "report fcfs easy"),
    TutorialStep("Where did the jobs wait, and what would help?", "why easy"),
    TutorialStep("And one job of them:", "why easy 4711"),
)

WIDTH = 100
"""The longest line of the text, in characters."""

END = """\
Both runs are in {folder}. To go on:
  simsched report {folder}/easy -o report.html    a page with figures
  simsched run flat240 LOG -o mine                your own log (SWF, sacct -P, flux jobs --json, …)
  simsched site import DIR -o site                your own machine (slurm.conf, Flux, PBS)
  simsched VERB --help                            all options of a verb
"""


class TutorialFlags(Flags, frozen=True):
    """Play the first five minutes on bundled inputs.

    Play the first commands of the manual one after another on bundled inputs: each with a sentence, the
    command, and its output. In a terminal the Enter key goes on, and q ends.

    output : write the runs to DIR (default tutorial-results).
    """

    output: Annotated[str, flag("DIR", "-o")] = "tutorial-results"


def register(subparsers: Subparsers) -> None:
    """Add the verbs `demo` and `tutorial`."""
    about = (
        f"Run a month of synthetic jobs (the bundled workload {WORKLOAD!r}) on the bundled cluster "
        f"{CLUSTER!r}, under FCFS and under EASY backfilling, and compare the waits."
    )
    add_verb(subparsers, "demo", demo, DemoFlags, description=about)
    add_verb(subparsers, "tutorial", tutorial, TutorialFlags)


def tutorial(args: Arguments) -> int:
    """Play every step in its own process, and return 0, or the status of a step that failed."""
    from simsched.cli.support.output import terminal_width
    from simsched.folders import refuse_foreign
    from simsched.simulation.record.run_directory import RUN

    folder = Path(args.output)
    for name in ("fcfs", "easy"):
        refuse_foreign(folder / name, RUN)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot be made: {error.strerror}", where=str(folder)) from error
    waits = sys.stdin.isatty() and sys.stdout.isatty()
    for number, step in enumerate(STEPS, 1):
        text = textwrap.fill(f"[{number} of {len(STEPS)}] {step.text}", min(terminal_width(), WIDTH))
        print(f"{text}\n\n  $ simsched {step.command}", flush=True)
        status = subprocess.run(  # noqa: S603 (our own commands)
            [sys.executable, "-m", "simsched", *shlex.split(step.command)], cwd=folder, check=False
        ).returncode
        if status != step.status:
            return status or 1
        print(flush=True)
        if waits and number < len(STEPS) and input("Enter goes on, q ends: ").strip().lower() == "q":
            return 0
    print(END.format(folder=folder), end="")
    return 0


# --- demo: a month of jobs on a bundled cluster, FCFS against EASY


CLUSTER = "flat240"
WORKLOAD = "month"
POLICIES = ("fcfs", "easy")


class DemoFlags(Flags, frozen=True):
    """Run a small study in under a minute.

    output : write the runs to DIR (default demo-results).
    """

    output: Annotated[str, flag("DIR", "-o")] = "demo-results"


def demo(args: Arguments) -> int:
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
