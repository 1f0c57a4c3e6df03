"""What do node failures and a maintenance day cost, and what do checkpoints bring back?"""

from __future__ import annotations

import msgspec
import numpy as np

import simsched as ss
from analysis.studies.common import BLUE, GREEN, ORANGE, QUICK, Page, new_figure, tidy
from simsched.report import human
from simsched.report.metrics import area, measured, span, trim, wait
from simsched.report.series import binned

DAY = 86400.0
NODES = 240
#: mean time between failures of one node, days; None: nothing fails
MTBF = (None, 1000, 300, 100, 30)
CHECKPOINT = 900.0
MAINTENANCE = (7 * DAY, 8 * 3600.0)  # from when on, for how long


def main() -> None:
    """Run the study and write its page."""
    page = Page("outages", "Node failures and a maintenance day")
    cluster = ss.load_cluster("flat240")
    workload = ss.load_workload("month", limit=1500 if QUICK else 10_000)
    page.section(
        "Question",
        f"""What do node failures cost the users of a machine of {NODES} nodes, in work that is done twice
        and in waits? How much of it do checkpoints every quarter of an hour bring back? And what does a
        maintenance of eight hours cost that has to wait for running jobs?""",
    )
    page.section(
        "Method",
        f"""The first {len(workload):,} jobs of the bundled workload `month` on `flat240` under EASY. A
        job on n nodes is hit after a time drawn from an exponential distribution of mean MTBF / n
        (seeded, the same draws for every MTBF); it then ends there and its owner submits it again at
        once, from the start or, with checkpoints, from its last full quarter of an hour. What is
        submitted again depends on when the failed attempt ended, so each case is simulated again and
        again until no submission moves any more; a later submission cannot change what came before it, so
        this is the schedule that an online simulation would give. The repair of the node itself is not
        modelled: a spare takes its place.""",
        f"""The maintenance is a job on all nodes with the highest urgency, submitted on day 7 for
        {human.seconds(MAINTENANCE[1])}: EASY reserves the machine for it as soon as the running jobs'
        limits allow and backfills what ends before.""",
    )
    base = failures(page, cluster, workload)
    maintenance(page, cluster, workload, base)
    page.write()


# ---- failures ---------------------------------------------------------------------------


def attempts_of(job, draws, mtbf, checkpoint):
    """Run times of the attempts of a job: all but the last are cut by a failure."""
    left, done = float(job.runtime or 1), []
    if mtbf is None:
        return [left]
    mean = mtbf * DAY / max(int(job.procs or 1), 1)
    for draw in draws:
        until = draw * mean
        if until >= left or len(done) == len(draws) - 1:
            break
        done.append(max(until, 1.0))
        left -= until // checkpoint * checkpoint if checkpoint else 0.0
    return [*done, left]


def resubmitted(cluster, workload, mtbf, checkpoint):
    """Simulate until every resubmission is where its failed attempt ended; return the run's jobs."""
    rng = np.random.default_rng(5)
    draws = rng.exponential(1.0, (len(workload.jobs), 12))
    chains = {
        str(j.id): attempts_of(j, d, mtbf, checkpoint) for j, d in zip(workload.jobs, draws, strict=True)
    }
    jobs = {str(j.id): j for j in workload.jobs}
    submits = {(i, k): float(jobs[i].submit) for i, chain in chains.items() for k in range(len(chain))}
    for turn in range(200):
        made = [
            msgspec.structs.replace(jobs[i], id=f"{i}.{k}", submit=submits[i, k], runtime=chains[i][k])
            for (i, k) in sorted(submits, key=lambda key: (submits[key], key[1]))
        ]
        run = ss.simulate(cluster, type(workload)(tuple(made), name="attempts"), allocations=False)
        ends = dict(zip(run.jobs["id"], run.jobs["end"], strict=True))
        moved = {(i, k): float(ends[f"{i}.{k - 1}"]) for (i, k) in submits if k}
        changed = sum(submits[key] != at for key, at in moved.items())
        submits |= moved
        if not changed:
            print(
                f"   MTBF {mtbf} d, checkpoint {checkpoint:.0f} s: settled after {turn + 1} turns", flush=True
            )
            return run, chains
    raise SystemExit("the resubmissions do not settle")


def failures(page: Page, cluster, workload):
    """The cost of failures over the MTBF, with and without checkpoints."""
    rows, lost = [], {0.0: [], CHECKPOINT: []}
    base = None
    for checkpoint in (0.0, CHECKPOINT):
        for mtbf in MTBF:
            if mtbf is None and checkpoint:
                lost[checkpoint].append(0.0)
                continue
            run, chains = resubmitted(cluster, workload, mtbf, checkpoint)
            base = run if mtbf is None else base
            done = measured(trim(run.jobs, warm_up=DAY))
            useful = sum(float(j.runtime or 1) * int(j.procs or 1) for j in workload.jobs)
            share = 1 - useful / float(area(run.jobs).sum())
            lost[checkpoint].append(max(share, 0.0))
            rows.append(
                [
                    "never" if mtbf is None else f"{mtbf} d",
                    "15 min" if checkpoint else "none",
                    f"{sum(len(c) - 1 for c in chains.values()):,}",
                    human.share(max(share, 0.0)),
                    human.seconds(float(done["wait"].mean())),
                    human.seconds(float(done["wait"].quantile(0.95))),
                    human.share(run.summary["utilisation_core"]),
                ]
            )
    worst, saved = lost[0.0][-1], lost[CHECKPOINT][-1]
    page.section(
        "Result: failures",
        f"""At an MTBF of {MTBF[-1]} days a node, which is a failure on the machine every
        {human.seconds(MTBF[-1] * DAY / NODES)}, {human.share(worst)} of all core-seconds are spent on
        work that is lost; checkpoints every 15 minutes (taken for free here) bring that down to
        {human.share(saved)}. Wide and long jobs lose most, since their exposure is nodes times hours.""",
    )
    head = [
        "MTBF of a node",
        "checkpoints",
        "failed attempts",
        "work lost",
        "mean wait",
        "p95 wait",
        "cores in use",
    ]
    page.table(head, rows)
    page.figure(
        losses(lost), "lost", "Share of the core-seconds that are lost to failures, over the MTBF of a node."
    )
    return base


def losses(lost):
    """Lost work over the MTBF."""
    figure = new_figure(6.5, 3.6)
    axes = figure.add_subplot()
    days = [m for m in MTBF if m]
    for checkpoint, colour, label in ((0.0, ORANGE, "no checkpoints"), (CHECKPOINT, BLUE, "every 15 min")):
        axes.plot(days, [100 * v for v in lost[checkpoint][1:]], "o-", color=colour, label=label)
    axes.set_xscale("log")
    axes.set_xticks(days, [str(d) for d in days])
    axes.minorticks_off()
    tidy(axes, "MTBF of one node (days)", "work lost (% of core-seconds)")
    axes.legend(frameon=False)
    return figure


# ---- maintenance ------------------------------------------------------------------------


def maintenance(page: Page, cluster, workload, base) -> None:
    """The cost of eight hours of maintenance that drains the machine."""
    at, length = MAINTENANCE if not QUICK else (DAY, MAINTENANCE[1])
    whole = ss.Job(id="maintenance", submit=at, runtime=length, duration=length, urgency=31, procs=NODES,
                   jobspec=ss.Jobspec.from_shape(f"slot={NODES}/core"))  # fmt: skip
    jobs = sorted([*workload.jobs, whole], key=lambda job: job.submit)
    run = ss.simulate(
        cluster, type(workload)(tuple(jobs), name="maintenance"), order="priority", allocations=False
    )
    work = run.jobs[run.jobs["id"] == "maintenance"].iloc[0]
    drained = float(work["start"] - at)
    window = (at, float(work["start"]))
    idle = idle_hours(run, window)
    users = run.jobs[run.jobs["id"] != "maintenance"]
    week = [j[(j["submit"] >= at) & (j["submit"] < at + 3 * DAY)] for j in (base.jobs, users)]
    before, after = (human.seconds(float(wait(j).mean())) for j in week)
    page.section(
        "Result: maintenance",
        f"""The work that was asked for on day {at / DAY:g} begins {human.seconds(drained)} later, when
        the last running job's time is over. Until then {human.number(idle)} core hours are idle,
        {human.share(idle / max(NODES * drained / 3600, 1e-9))} of what the machine could do in that time;
        backfilling uses the rest. Jobs of the three days after the announcement wait {after} on average
        instead of {before}.""",
    )
    page.figure(drain(run, base, at, work), "drain", "Cores in use around the maintenance, hourly means.")


def idle_hours(run, window) -> float:
    """Core hours that idle within a window."""
    if window[1] <= window[0]:
        return 0.0
    _, used = binned(run.timeline, "used_core", 1, window)
    return (NODES - float(used[0])) * (window[1] - window[0]) / 3600


def drain(run, base, at, work):
    """Cores in use with and without the maintenance."""
    figure = new_figure(9, 3.6)
    axes = figure.add_subplot()
    window = (max(at - DAY, span(run.jobs)[0]), at + 4 * DAY)
    for frame, colour, label in ((base.timeline, GREEN, "without"), (run.timeline, BLUE, "with maintenance")):
        edges, used = binned(frame, "used_core", 120, window)
        axes.stairs(100 * used / NODES, edges / DAY, color=colour, label=label, baseline=None)
    axes.axvspan(work["start"] / DAY, work["end"] / DAY, color=ORANGE, alpha=0.25, label="maintenance")
    axes.axvline(at / DAY, color=ORANGE, ls=":", label="asked for")
    tidy(axes, "time since the workload's start (days)", "cores in use (%)")
    axes.set_ylim(0, 102)
    axes.legend(frameon=False, ncols=4, fontsize=8, loc="lower right")
    return figure


if __name__ == "__main__":
    main()
