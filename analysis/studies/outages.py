"""What do node failures cost, and what does a maintenance cost that was or was not announced?"""

from __future__ import annotations

import json
from statistics import mean

import simsched as ss
from analysis.studies.common import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    QUICK,
    VERMILION,
    Page,
    key,
    new_figure,
    scratch,
    tidy,
)
from analysis.studies.common import simsched as command
from simsched import human
from simsched.report.data.series import binned
from simsched.report.metrics.metrics import area, ran, trim, wait
from simsched.report.metrics.spread import failure_cost

DAY = 86400.0
NODES = 240
#: jobs of more cores are called wide
WIDE = 64
LIMIT = "1500" if QUICK else "8000"
#: mean time between failures of one node, days
MTBF = (1000, 300, 100, 30)
REPAIR = "2h"
SEEDS = (1,) if QUICK else (1, 2, 3)
ANNOUNCED, LENGTH = (1.5 if QUICK else 6.0) * DAY, 8 * 3600.0
#: what the maintenance is, the kind of outage that it is to the scheduler, and its colour
WORKS = (
    ("announced", "maintenance", GREEN),
    ("drained on the day", "drain", ORANGE),
    ("unannounced", "failure", VERMILION),
)


def main() -> None:
    """Run the study and write its page."""
    page = Page("outages", "Node failures and a maintenance day")
    page.section(
        "Question",
        f"""What do node failures cost the users of a machine of {NODES} nodes: work that is done twice,
        nodes that are missing, waits? And what does it cost to take the whole machine away for
        {human.seconds(LENGTH)}, if that is announced, if it is drained on the day, or if it comes as a
        surprise?""",
    )
    page.section(
        "Method",
        f"""The first {int(LIMIT):,} jobs of the bundled workload `month` on `flat240` under EASY. Nodes
        fail independently after exponential times and are back after {REPAIR} on average (seeded); a job
        on a failed node is queued again and starts over. The maintenance takes all nodes on day
        {ANNOUNCED / DAY:g}. Announced, nothing starts that would not be done by then. Drained on the day,
        nothing starts any more from then on and what runs there runs on. As a surprise, all that runs is
        queued again. The runs have the same jobs.""",
    )
    with scratch() as folder:
        base = run(folder, "base")
        failures(page, folder, base)
        maintenance(page, folder, base)
    page.write()


def run(folder, name: str, *options: str):
    """One run by the command line."""
    target = str(folder / name)
    command("run", "flat240", "month", "--limit", LIMIT, "-o", target, "--quiet", *options)
    return ss.load_run(target, name=name)


# ---- failures ---------------------------------------------------------------------------


def failures(page: Page, folder, base) -> None:
    """The cost of failures over the MTBF."""
    rows, lost, missing = [figures("never", [base])], [], []
    for mtbf in MTBF:
        spec = f"mtbf={mtbf}d,mttr={REPAIR}"
        found = [run(folder, f"{mtbf}-{s}", "--failures", spec, "--seed", str(s)) for s in SEEDS]
        rows.append(figures(f"{mtbf} d", found))
        lost.append(mean(map(lost_share, found)))
        missing.append(mean(r.summary.get("down_core", 0.0) for r in found))
    every = human.seconds(MTBF[-1] * DAY / NODES)
    page.section(
        "Result: failures",
        f"""At an MTBF of {MTBF[-1]} days a node (a failure on the machine every {every})
        {human.share(lost[-1])} of all work is done for nothing, while only {human.share(missing[-1])} of
        the nodes are missing on average: with repairs of {REPAIR} it is the repeated work that costs. It
        hits wide and long jobs, since their exposure is nodes times hours, and jobs of the whole machine
        have to wait for a moment at which no node is down: jobs of more than {WIDE} cores wait
        {rows[-1][-1]} instead of {rows[0][-1]}. Narrow ones wait {rows[-1][-2]} instead of {rows[0][-2]}:
        what a wide job cannot use yet is left to those that fit, so the mean wait of all jobs says little
        about failures. Waits are given as the range over the seeds.""",
    )
    head = ["MTBF of a node", "jobs hit", "work done for nothing", "nodes missing",
            f"mean wait, up to {WIDE} cores", f"mean wait, more than {WIDE} cores"]  # fmt: skip
    page.table(head, rows)
    caption = "Work done for nothing and nodes missing, over the MTBF of a node; means of the seeds."
    page.figure(costs(lost, missing), "lost", caption)


def lost_share(found) -> float:
    """Share of the core-seconds held that belong to attempts that were repeated."""
    cost = failure_cost(found.jobs, found.allocations)
    held = cost.lost_by_restarts + float(area(ran(found.jobs)).sum())
    return cost.lost_by_restarts / held if held else 0.0


def figures(label: str, found) -> list[str]:
    """One row of the table of failures: means over the seeds, waits as their range."""
    narrow, wide = (widths(found, *bounds) for bounds in ((0, WIDE), (WIDE, NODES)))
    return [
        label,
        human.number(round(mean(failure_cost(r.jobs, r.allocations).jobs_restarted for r in found))),
        human.share(mean(map(lost_share, found))),
        human.share(mean(r.summary.get("down_core", 0.0) for r in found)),
        between(narrow),
        between(wide),
    ]


def widths(found, least: int, most: int) -> list[float]:
    """The mean wait of jobs of more than `least` and at most `most` cores, for each seed."""
    kept = [ran(trim(r.jobs, warm_up=DAY)) for r in found]
    return [float(wait(jobs[(jobs["cores"] > least) & (jobs["cores"] <= most)]).mean()) for jobs in kept]


def between(values: list[float]) -> str:
    """The range of some times."""
    low, high = human.seconds(min(values)), human.seconds(max(values))
    return low if low == high else f"{low} to {high}"


def costs(lost, missing):
    """Both costs over the MTBF."""
    figure = new_figure(6.5, 3.6)
    axes = figure.add_subplot()
    axes.plot(MTBF, [100 * v for v in lost], "o-", color=VERMILION, label="work done for nothing")
    axes.plot(MTBF, [100 * v for v in missing], "o-", color=GREY, label="nodes missing")
    axes.set_xscale("log")
    axes.set_xticks(MTBF, [str(d) for d in MTBF])
    axes.minorticks_off()
    tidy(axes, "MTBF of one node (days)", "%")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


# ---- maintenance ------------------------------------------------------------------------


def maintenance(page: Page, folder, base) -> None:
    """Eight hours without the machine, announced or not."""
    runs = {}
    for name, kind, _ in WORKS:
        file = folder / f"{kind}.json"
        outage = {"ranks": f"0-{NODES - 1}", "start": ANNOUNCED, "end": ANNOUNCED + LENGTH, "kind": kind}
        file.write_text(json.dumps([outage]))
        runs[name] = run(folder, kind, "--outages", str(file))
    rows = [work_row("none", base), *(work_row(name, found) for name, found in runs.items())]
    asked = float(base.jobs["duration"].median())
    surprise, told = lost_share(runs["unannounced"]), runs["announced"]
    page.section(
        "Result: maintenance",
        f"""Announced, the machine runs empty by itself: in the day before, {idle_before(told)} core hours
        are idle against {idle_before(base)} without maintenance, and no work is lost. That is only as
        good as the limits that users ask for: half of the jobs ask for {human.seconds(asked)} or more, so
        half of them cannot start any more that long before. As a surprise the maintenance costs
        {human.share(surprise)} of all work, what was running when it came. Drained on the day, jobs that
        still run hold it up until the longest of them is done.""",
    )
    head = ["maintenance", "core hours idle in the day before", "work done for nothing",
            "mean wait, 3 days from the day before", "mean wait, all"]  # fmt: skip
    page.table(head, rows)
    page.figure(around(base, runs), "maintenance", "Cores in use around the maintenance, hourly means.")


def idle_before(found) -> str:
    """Core hours that idle in the day before the maintenance."""
    _, used = binned(found.timeline, "used_core", 1, (ANNOUNCED - DAY, ANNOUNCED))
    return human.number(round((NODES - float(used[0])) * 24))


def work_row(label: str, found) -> list[str]:
    """One row of the table of the maintenance."""
    near = found.jobs[found.jobs["submit"].between(ANNOUNCED - DAY, ANNOUNCED + 2 * DAY)]
    return [
        label,
        idle_before(found),
        human.share(lost_share(found)),
        human.seconds(float(wait(near).mean())),
        human.seconds(float(wait(found.jobs).mean())),
    ]


def around(base, runs):
    """Cores in use around the maintenance."""
    figure = new_figure(9, 3.8)
    axes = figure.add_subplot()
    window = (ANNOUNCED - 1.5 * DAY, ANNOUNCED + 2 * DAY)
    colours = {name: colour for name, _, colour in WORKS}
    for name, found in {"none": base, **runs}.items():
        edges, used = binned(found.timeline, "used_core", 84, window)
        hours = (edges - ANNOUNCED) / 3600
        axes.stairs(
            100 * used / NODES, hours, color=colours.get(name, BLUE), label=name, baseline=None, lw=1.4
        )
    axes.axvspan(0, LENGTH / 3600, color=GREY, alpha=0.2)
    tidy(axes, "time from the beginning of the maintenance (h)", "cores in use (%)")
    axes.set_ylim(0, 102)
    key(axes)
    return figure


if __name__ == "__main__":
    main()
