"""How many nodes have to be bought so that 95 % of the jobs start within an hour?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import simsched as ss
from analysis.studies.common import BLUE, ORANGE, QUICK, Page, new_figure, scratch, simsched, tidy
from simsched import human
from simsched.report.metrics.metrics import trim, wait

TARGET = 3600.0
TODAY = 160
SIZES = tuple(range(160, 301, 20))
SEEDS = (1, 2) if QUICK else (1, 2, 3, 4, 5)
DAYS = 4 if QUICK else 20


def main() -> None:
    """Run the study and write its page."""
    page = Page("how_many_nodes", "How many nodes for a p95 wait of an hour?")
    page.section(
        "Question",
        f"""A machine of {TODAY} nodes is too small: its jobs wait too long. How many nodes does the next
        machine need so that 95 % of the jobs start within {human.seconds(TARGET)} of their submission,
        with the same demand?""",
    )
    page.section(
        "Method",
        f"""The demand is {DAYS} days of jobs by the Lublin-Feitelson model, with a load of 0.85 on
        {TODAY} nodes, drawn with {len(SEEDS)} seeds. The same jobs are simulated on machines of
        {SIZES[0]} to {SIZES[-1]} nodes under EASY (common random numbers: the machines differ, the demand
        does not). Jobs of the first tenth of the time are excluded. A machine meets the target if its p95
        wait is at most {human.seconds(TARGET)} with every seed. The search then halves the interval
        between the largest size that misses the target and the smallest size that meets it.""",
    )
    with scratch() as folder:
        demand = [workload(folder, seed) for seed in SEEDS]
        found: dict[int, list[float]] = {}
        for nodes in SIZES:
            found[nodes] = waits(folder, nodes, demand)
        answer = search(folder, demand, found)
        report(page, found, answer)
    page.write()


def workload(folder, seed: int):
    """Jobs for the machine of today, drawn with a seed."""
    file = folder / f"demand-{seed}.swf"
    simsched("workload", "make", "lublin", "--machine", str(TODAY // 2), "--capacity", str(TODAY),
             "--span", f"{DAYS}d",
             "--load", "0.85", "--run-time-factor", "0.15", "--estimates", "12h", "--seed", str(seed),
             "-o", str(file))  # fmt: skip
    return ss.load_workload(str(file))


def waits(folder, nodes: int, demand) -> list[float]:
    """The p95 wait (s) of a machine of so many nodes, for each seed."""
    file = folder / f"nodes-{nodes}.json"
    simsched("cluster", "make", "--name", f"n{nodes}", "--nodes", str(nodes), "--cores", "1", "-o", str(file))
    cluster = ss.load_cluster(str(file))
    values = []
    for jobs in demand:
        run = ss.simulate(cluster, jobs, allocations=False)
        values.append(float(wait(trim(run.jobs, warm_up=DAYS * 8640)).quantile(0.95)))
    print(f"   {nodes} nodes: {', '.join(map(human.seconds, values))}", flush=True)
    return values


def search(folder, demand, found) -> int | None:
    """The smallest number of nodes that meets the target with every seed, or None if no size does."""
    meets = [n for n, values in found.items() if max(values) <= TARGET]
    if not meets:
        return None
    high = min(meets)
    low = max([n for n in found if n < high], default=high - 1)
    while high - low > 1:
        middle = (low + high) // 2
        found[middle] = waits(folder, middle, demand)
        low, high = (low, middle) if max(found[middle]) <= TARGET else (middle, high)
    return high


def report(page: Page, found, answer) -> None:
    """The answer in a sentence, the trace of the search, a picture."""
    sizes = sorted(found)
    if answer is None:
        text = f"No machine of up to {sizes[-1]} nodes meets the target with every seed."
    else:
        text = (
            f"**{answer} nodes**: with every seed 95 % of the jobs start within"
            f" {human.seconds(max(found[answer]))}; with {answer - 1} nodes it is"
            f" {human.seconds(max(found.get(answer - 1, [np.nan])))} with the worst seed."
            f" Jobs on the machine of today wait {max(found[TODAY]) / max(found[answer]):.1f} times as long."
            " The spread between seeds near the target is the risk of a decision from one month's log."
        )
        worse = [n for n, after in pairwise(sizes) if max(found[after]) > max(found[n])]
        if worse:
            text += (
                f" More nodes need not be better: the worst seed of {worse[0]} nodes does better than that of"
                " the next size, because every backfilling schedule is different."
            )
    page.section("Result", text)
    rows = [
        [
            f"**{n}**" if n == answer else str(n),
            *(human.seconds(v) for v in found[n]),
            "yes" if max(found[n]) <= TARGET else "no",
        ]
        for n in sizes
    ]
    page.table(["nodes", *(f"p95 wait, seed {s}" for s in SEEDS), "meets the target"], rows)
    page.figure(
        picture(found, answer),
        "wait",
        "p95 wait over the number of nodes; one point per seed, the line is their median.",
    )


def picture(found, answer):
    """The p95 wait over the machine's size."""
    figure = new_figure(7.5, 4)
    axes = figure.add_subplot()
    sizes = sorted(found)
    for n in sizes:
        axes.plot([n] * len(found[n]), np.maximum(found[n], 1) / 3600, "o", color=BLUE, ms=4, alpha=0.7)
    axes.plot(sizes, [max(float(np.median(found[n])), 1) / 3600 for n in sizes], "-", color=BLUE)
    axes.axhline(TARGET / 3600, color=ORANGE, ls="--")
    axes.annotate(
        "target",
        (sizes[-1], TARGET / 3600),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        color=ORANGE,
    )
    if answer is not None:
        axes.axvline(answer, color=ORANGE, ls=":")
        axes.annotate(
            f"{answer} nodes", (answer, axes.get_ylim()[1]), xytext=(4, -12), textcoords="offset points"
        )
    axes.set_yscale("log")
    hours = [0.25, 0.5, 1, 2, 4, 8]
    axes.set_yticks(hours, [f"{h:g}" for h in hours])
    axes.minorticks_off()
    tidy(axes, "nodes", "p95 wait (h)")
    return figure


if __name__ == "__main__":
    main()
