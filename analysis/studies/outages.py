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
        f"""What do node failures cost on a machine of {NODES} nodes: repeated work, unavailable nodes,
        longer waits? And what does it cost to stop the whole machine for {human.seconds(LENGTH)} if the
        maintenance is announced, if the machine is drained on the day, or if the maintenance comes
        without warning?""",
    )
    page.section(
        "Method",
        f"""The first {int(LIMIT):,} jobs of the bundled workload `month` run on `flat240` under EASY.
        Nodes fail independently after exponentially distributed times, and their repair takes {REPAIR} on
        average (seeded). A job on a failed node is queued again and starts over. The maintenance takes
        all nodes on day {ANNOUNCED / DAY:g}. If it is announced, no job starts that would not end before
        it. If the machine is drained on the day, no job starts from then on, and running jobs continue.
        Without warning, all running jobs are queued again. All runs have the same jobs.""",
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
        f"""At an MTBF of {MTBF[-1]} days per node (a failure on the machine every {every})
        {human.share(lost[-1])} of all work is lost, while only {human.share(missing[-1])} of the nodes
        are unavailable on average. With repairs of {REPAIR}, the repeated work is the larger cost. It
        affects wide and long jobs most, because the risk of a job is its nodes times its hours. Jobs of
        the whole machine also have to wait until no node is down. Jobs of more than {WIDE} cores wait
        {rows[-1][-1]} instead of {rows[0][-1]}. Narrow jobs wait {rows[-1][-2]} instead of {rows[0][-2]}:
        they start on nodes that a wide job cannot use yet. The mean wait of all jobs therefore shows
        little of the effect of failures. Waits are given as the range over the seeds.""",
    )
    head = ["MTBF of a node", "jobs hit", "work done for nothing", "nodes missing",
            f"mean wait, up to {WIDE} cores", f"mean wait, more than {WIDE} cores"]  # fmt: skip
    page.table(head, rows)
    caption = "Lost work and unavailable nodes over the MTBF of a node; means of the seeds."
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
        f"""If the maintenance is announced, the machine becomes empty before it: in the day before,
        {idle_before(told)} core hours are idle, compared with {idle_before(base)} without maintenance,
        and no work is lost. This cost depends on the limits that users request: half of the jobs request
        {human.seconds(asked)} or more, so half of them cannot start in that time before the maintenance.
        Without warning, the maintenance costs {human.share(surprise)} of all work: the work of the jobs
        that were running. If the machine is drained on the day, running jobs delay the maintenance until
        the longest of them ends.""",
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
