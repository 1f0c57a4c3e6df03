"""Does it matter which nodes a job gets?  Match policies and fragmentation on a GPU machine."""

from __future__ import annotations

import msgspec
import numpy as np

import simsched as ss
from analysis.studies.common import CYCLE, QUICK, Page, key, new_figure, scratch, simsched, tidy
from simsched import human
from simsched.report.compare import compare
from simsched.report.data.series import binned
from simsched.report.metrics.metrics import measured
from simsched.report.metrics.spread import node_balance

NODES, GPUS = 64, 4
POLICIES = ("first", "bestfit", "random", "worstfit")
#: gpus of a job and the share of the jobs that ask for so many
MIX = {1: 0.65, 2: 0.15, 4: 0.12, 8: 0.05, 16: 0.03}
LOAD = 0.8


def requests(workload):
    """The model's arrivals and run times with the requests of a GPU machine.

    Sizes are drawn by `MIX`.  One slot of 16 cores and a gpu each, anywhere, or whole nodes of
    64 cores and four gpus, which need empty nodes.  Run times are scaled to `LOAD`.
    """
    rng = np.random.default_rng(11)
    shapes = {n: f"slot={n}/[core=16;gpu]" if n < GPUS else f"slot={n // GPUS}/[core=64;gpu=4]" for n in MIX}
    specs = {n: ss.Jobspec.from_shape(shape) for n, shape in shapes.items()}
    gpus = rng.choice(list(MIX), size=len(workload.jobs), p=list(MIX.values()))
    times = np.array([max(float(job.runtime or 0), 1.0) for job in workload.jobs])
    low, high = workload.span
    factor = LOAD * NODES * GPUS * (high - low) / float((times * gpus).sum())
    jobs = [
        msgspec.structs.replace(
            job, jobspec=specs[int(n)], procs=int(n), runtime=round(t * factor) + 1,
            duration=round(max(float(job.duration or t), t) * factor) + 1,
        )
        for job, n, t in zip(workload.jobs, gpus, times, strict=True)
    ]  # fmt: skip
    return type(workload)(tuple(jobs), name="gpu mix", source=workload.source)


def main() -> None:
    """Run the study and write its page."""
    page = Page("match_policies", "Match policies and fragmentation on a GPU machine")
    page.section(
        "Question",
        """Small jobs take single gpus, large jobs need whole nodes. If small jobs are spread over many
        nodes, few nodes are completely free although gpus are. How much does the match policy affect
        this, and how much longer do the large jobs wait?""",
    )
    with scratch() as folder:
        simsched("cluster", "make", "--name", "gpu64", "--nodes", str(NODES), "--cores", "64",
                 "--gpus", str(GPUS),
                 "-o", str(folder / "gpu64.json"))  # fmt: skip
        simsched("workload", "make", "lublin", "--machine", str(NODES * GPUS),
                 "--span", "2d" if QUICK else "16d",
                 "--load", "0.8", "--run-time-factor", "0.3", "--estimates", "24h", "--users", "50",
                 "--seed", "7", "-o", str(folder / "mix.swf"))  # fmt: skip
        cluster = ss.load_cluster(str(folder / "gpu64.json"))
        workload = requests(ss.load_workload(str(folder / "mix.swf")))
        small = sum((job.procs or 1) < GPUS for job in workload.jobs)
        page.section(
            "Method",
            f"""A machine of {NODES} nodes with 64 cores and {GPUS} gpus each. {len(workload.jobs):,}
            jobs: arrivals, run times and limits by the Lublin-Feitelson and Tsafrir models, sizes drawn
            separately, run times scaled to an offered load of {LOAD}. {
                human.share(small / len(workload.jobs))
            } of the jobs request one or two gpus, each with 16 cores, on any nodes.
            The others request one, two or four whole nodes. All runs use EASY backfilling and differ in
            the match policy only: `first` takes nodes in their order, `bestfit` the fullest node that
            fits, `worstfit` the emptiest, and `random` a random one (seeded). Fragmentation is the share
            of the free gpus that are on nodes partly in use. Waits of whole-node jobs are compared with
            those under `first` job by job. The intervals are 95 % bootstrap intervals over days.""",
        )
        runs = {}
        for policy in POLICIES:
            print(f"   {policy}", flush=True)
            run = ss.simulate(cluster, workload, match_policy=policy, seed=1)
            run.save(folder / policy)
            runs[policy] = run
        report(page, runs)
    page.write()


def report(page: Page, runs) -> None:
    """Table, words and pictures."""
    rows, broken, waits, found = [], {}, {}, {}
    for name, run in runs.items():
        done = measured(run.jobs)
        whole = done["gpus"] >= GPUS
        balance = node_balance(run.allocations, NODES, "gpu")
        broken[name] = run.summary["fragmentation_gpu"]
        waits[name] = float(done.loc[whole, "wait"].mean())
        found[name] = compare(runs["first"].jobs[whole_nodes(runs["first"])], run.jobs[whole_nodes(run)]).wait
        low, high = human.seconds(found[name].low), human.seconds(found[name].high)
        rows.append(
            [
                name,
                human.share(broken[name]),
                human.seconds(float(done.loc[~whole, "wait"].mean())),
                human.seconds(waits[name]),
                "" if name == "first" else f"{low} to {high}",
                human.share(run.summary["utilisation_gpu"]),
                human.share(run.summary["loss_of_capacity"]),
                human.number(balance.variation),
            ]
        )
    packed, loose = min(broken, key=broken.get), max(broken, key=broken.get)
    beyond = "more than chance" if found[loose].low > 0 else "not more than chance would give"
    page.section(
        "Result",
        f"""`{packed}` leaves {human.share(broken[packed])} of the free gpus on partly used nodes,
        `{loose}` {human.share(broken[loose])}. Jobs that need whole nodes wait
        {human.seconds(waits[packed])} under the former and {human.seconds(waits[loose])} under the
        latter, {waits[loose] / waits[packed]:.2f} times as long. Compared with `first`, that is {beyond}.
        Packing uses the nodes unevenly: the last column is the coefficient of variation of the gpu time
        of the nodes.""",
    )
    head = ["", "free gpus on partly used nodes", "mean wait, parts of nodes", "mean wait, whole nodes",
            "whole nodes, less first's, 95 %", "gpus in use", "loss of capacity",
            "variation between nodes"]  # fmt: skip
    page.table(head, rows)
    page.figure(
        over_time(runs), "fragments",
        "Free gpus on completely free nodes over time, which are those that a job of whole nodes can get.",
    )  # fmt: skip
    page.figure(
        bars(broken, waits), "waits", "Fragmentation against the mean wait of jobs that need whole nodes."
    )


def whole_nodes(run):
    """Which jobs asked for whole nodes."""
    return run.jobs["procs"] >= GPUS


def over_time(runs):
    """Gpus on idle nodes over time, a line a policy."""
    figure = new_figure(9, 3.8)
    axes = figure.add_subplot()
    for (name, run), colour in zip(runs.items(), CYCLE, strict=False):
        edges, idle = binned(run.timeline, "free_node", 160)
        axes.stairs(GPUS * idle, (edges - edges[0]) / 86400, color=colour, label=name, baseline=None)
    tidy(axes, "time since the first submission (days)", "gpus on idle nodes")
    axes.set_ylim(bottom=0)
    key(axes, 5)
    return figure


def in_hours(waits):
    """Waits in hours."""
    return {name: seconds / 3600 for name, seconds in waits.items()}


def bars(broken, waits):
    """A point a policy."""
    figure = new_figure(6, 3.8)
    axes = figure.add_subplot()
    for (name, x), colour in zip(broken.items(), CYCLE, strict=False):
        at = (100 * x, waits[name] / 3600)
        axes.plot(*at, "o", color=colour, ms=9)
        below = any(y < at[1] and abs(100 * broken[n] - at[0]) < 5 for n, y in in_hours(waits).items())
        place = (7, 6) if below else (7, -13)
        axes.annotate(name, at, xytext=place, textcoords="offset points", fontsize=9)
    tidy(axes, "free gpus on partly used nodes (%)", "mean wait of whole-node jobs (h)")
    axes.margins(0.2)
    return figure


if __name__ == "__main__":
    main()
