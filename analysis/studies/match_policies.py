"""Does it matter which nodes a job gets?  Match policies and fragmentation on a GPU machine."""

from __future__ import annotations

import msgspec

import simsched as ss
from analysis.studies.common import CYCLE, QUICK, Page, new_figure, scratch, simsched, tidy
from simsched.report import human
from simsched.report.metrics import measured
from simsched.report.series import binned
from simsched.report.spread import node_balance

NODES, GPUS = 64, 4
POLICIES = ("first", "bestfit", "worstfit", "hinode", "random")


def requests(workload):
    """The same jobs with requests as a GPU machine sees them.

    A processor of the model is a gpu.  Below four gpus: one slot of 16 cores and a gpu each,
    anywhere.  From four on: whole nodes of 64 cores and four gpus, which need empty nodes.
    """
    shapes = {}

    def spec(gpus: int):
        if gpus not in shapes:
            small = f"slot={gpus}/[core=16;gpu]"
            shapes[gpus] = ss.Jobspec.from_shape(
                small if gpus < GPUS else f"slot={-(-gpus // GPUS)}/[core=64;gpu=4]"
            )
        return shapes[gpus]

    jobs = [msgspec.structs.replace(job, jobspec=spec(int(job.procs or 1))) for job in workload.jobs]
    return type(workload)(tuple(jobs), name="gpu mix", source=workload.source)


def main() -> None:
    """Run the study and write its page."""
    page = Page("match_policies", "Match policies and fragmentation on a GPU machine")
    page.section(
        "Question",
        """Small jobs take single gpus, large jobs need whole nodes. If small jobs are spread over many nodes,
        whole nodes become rare although gpus are free. How much of that does the match policy decide,
        and what
        does it cost those who wait?""",
    )
    with scratch() as folder:
        simsched("cluster", "make", "--name", "gpu64", "--nodes", str(NODES), "--cores", "64",
                 "--gpus", str(GPUS),
                 "-o", str(folder / "gpu64.json"))  # fmt: skip
        simsched("workload", "make", "lublin", "--machine", str(NODES * GPUS),
                 "--span", "2d" if QUICK else "20d",
                 "--load", "0.8", "--run-time-factor", "0.5", "--estimates", "24h", "--users", "50",
                 "--seed", "7", "-o", str(folder / "mix.swf"))  # fmt: skip
        cluster = ss.load_cluster(str(folder / "gpu64.json"))
        workload = requests(ss.load_workload(str(folder / "mix.swf")))
        small = sum((job.procs or 1) < GPUS for job in workload.jobs)
        page.section(
            "Method",
            f"""A machine of {NODES} nodes with 64 cores and {GPUS} gpus each, and {len(workload.jobs):,}
            jobs of
            {"two" if QUICK else "twenty"} days by the Lublin-Feitelson model at an offered load of 0.8.
            {human.share(small / len(workload.jobs))} of the jobs ask for one to three gpus, each with 16
            cores, on
            whatever nodes; the others ask for whole nodes. EASY backfilling throughout; only the match policy
            differs: `first` and `hinode` fill from one end, `bestfit` prefers the fullest node that fits,
            `worstfit` the emptiest, `random` is a seeded draw.
            Fragmentation is the share of the free gpus that lie on nodes which are partly in use.""",
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
    rows, broken, waits = [], {}, {}
    for name, run in runs.items():
        done = measured(run.jobs)
        whole = done["gpus"] >= GPUS
        balance = node_balance(run.allocations, NODES, "gpu")
        broken[name] = run.summary["fragmentation_gpu"]
        waits[name] = float(done.loc[whole, "wait"].mean())
        rows.append(
            [
                name,
                human.share(broken[name]),
                human.seconds(float(done.loc[~whole, "wait"].mean())),
                human.seconds(waits[name]),
                human.seconds(float(done.loc[whole, "wait"].quantile(0.95))),
                human.share(run.summary["utilisation_gpu"]),
                human.share(run.summary["loss_of_capacity"]),
                human.number(balance.variation),
            ]
        )
    packed, loose = min(broken, key=broken.get), max(broken, key=broken.get)
    page.section(
        "Result",
        f"""`{packed}` leaves {human.share(broken[packed])} of the free gpus on partly used nodes, `{loose}`
        {human.share(broken[loose])}. Jobs that need whole nodes wait {human.seconds(waits[packed])} under the
        former and {human.seconds(waits[loose])} under the latter, a factor of
        {waits[loose] / max(waits[packed], 1e-9):.2f}. What is packed is also worn unevenly: the last
        column is the
        coefficient of variation of the nodes' gpu time.""",
    )
    head = ["", "free gpus on partly used nodes", "mean wait, parts of nodes", "mean wait, whole nodes",
            "p95 wait, whole nodes", "gpus in use", "loss of capacity",
            "variation between nodes"]  # fmt: skip
    page.table(head, rows)
    page.figure(
        over_time(runs), "fragments",
        "Free gpus on whole free nodes, over time: what a job that needs whole nodes can hope for.",
    )  # fmt: skip
    page.figure(
        bars(broken, waits), "waits", "Fragmentation against the mean wait of jobs that need whole nodes."
    )


def over_time(runs):
    """Gpus on idle nodes over time, a line a policy."""
    figure = new_figure(9, 3.8)
    axes = figure.add_subplot()
    for (name, run), colour in zip(runs.items(), CYCLE, strict=False):
        edges, idle = binned(run.timeline, "free_node", 160)
        axes.stairs(GPUS * idle, (edges - edges[0]) / 86400, color=colour, label=name, baseline=None)
    tidy(axes, "time since the first submission (days)", "gpus on idle nodes")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8, ncols=5, loc="upper right")
    return figure


def bars(broken, waits):
    """A point a policy."""
    figure = new_figure(6, 3.8)
    axes = figure.add_subplot()
    for (name, x), colour in zip(broken.items(), CYCLE, strict=False):
        axes.plot(100 * x, waits[name] / 3600, "o", color=colour, ms=9)
        axes.annotate(
            name, (100 * x, waits[name] / 3600), xytext=(7, 5), textcoords="offset points", fontsize=9
        )
    tidy(axes, "free gpus on partly used nodes (%)", "mean wait of whole-node jobs (h)")
    axes.margins(0.2)
    return figure


if __name__ == "__main__":
    main()
