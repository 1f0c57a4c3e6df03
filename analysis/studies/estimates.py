"""What are better run-time estimates worth?  The same jobs with limits that users might have given."""

from __future__ import annotations

import msgspec
import numpy as np

import simsched as ss
from analysis.studies.common import BLUE, ORANGE, QUICK, Page, new_figure, tidy
from simsched import human
from simsched.report.compare import compare
from simsched.report.metrics.metrics import measured, trim

FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
POLICIES = ("easy", "conservative")


def with_limits(workload, limit):
    """The same jobs with requested durations as `limit(job)` gives them, never below the run time."""
    jobs = [
        msgspec.structs.replace(j, duration=max(float(limit(j)), float(j.runtime or 0), 1.0))
        for j in workload.jobs
    ]
    return type(workload)(tuple(jobs), name=workload.name, source=workload.source)


def main() -> None:
    """Run the study and write its page."""
    page = Page("estimates", "What are better run-time estimates worth?")
    cluster = ss.load_cluster("flat240")
    workload = ss.load_workload("month", limit=1500 if QUICK else 8000)
    page.section(
        "Question",
        """Backfilling plans with the times that users request, and users request far more than their jobs
        need. Would the waits be shorter with better estimates?""",
    )
    page.section(
        "Method",
        f"""The first {len(workload):,} jobs of the bundled workload `month` run on `flat240` under EASY
        and under conservative backfilling. The requested times are exact, or the run time times a factor,
        or those of the workload (Tsafrir's model of users, who request round numbers). Nothing else
        changes. Jobs of the first day are excluded. Every case is compared with exact estimates job by
        job.""",
    )
    cases = {"exact": with_limits(workload, lambda j: j.runtime or 1)}
    for factor in FACTORS[1:]:
        cases[f"{factor:g} × the run time"] = with_limits(workload, lambda j, f=factor: f * (j.runtime or 1))
    cases["as users ask"] = with_limits(workload, lambda j: j.duration if j.duration is not None else 86400.0)
    results = {p: {} for p in POLICIES}
    for policy in POLICIES:
        for name, jobs in cases.items():
            print(f"   {policy}, {name}", flush=True)
            run = ss.simulate(cluster, jobs, queue_policy=policy, allocations=False)
            results[policy][name] = trim(run.jobs, warm_up=86400.0)
    report(page, cases, results)
    page.write()


def report(page: Page, cases, results) -> None:
    """Table, words, picture."""
    rows, means = [], {p: {} for p in POLICIES}
    for name in cases:
        row = [name]
        for policy in POLICIES:
            jobs = results[policy][name]
            done = measured(jobs)
            means[policy][name] = float(done["wait"].mean())
            row += [human.seconds(means[policy][name]), human.number(float(done["bounded_slowdown"].mean()))]
            found = compare(results[policy]["exact"], jobs)
            row.append(
                ""
                if name == "exact"
                else f"{human.seconds(found.wait.low)} to {human.seconds(found.wait.high)}"
            )
        rows.append(row)
    easy, both = means["easy"], compare(results["easy"]["exact"], results["easy"]["as users ask"])
    shown = "a difference beyond chance" if not both.wait.holds(0) else "a difference within chance"
    best = min(easy, key=easy.get)
    page.section(
        "Result",
        f"""With exact estimates EASY's mean wait is {human.seconds(easy["exact"])}; with the times that
        users request it is {human.seconds(easy["as users ask"])}, {shown}. The shortest mean wait under
        EASY is with estimates that are {best}. The intervals in the table show which differences are more
        than chance. It is a known paradox that overestimation by a constant factor does little harm and
        may help: it leaves gaps ahead of the reservations, into which short jobs fit (Mu'alem & Feitelson
        2001; Tsafrir, Etsion & Feitelson 2007). A constant factor keeps the order of the run times. The
        requests of users do not.""",
    )
    head = [""]
    for policy in POLICIES:
        head += [f"{policy}: mean wait", "mean bounded slowdown", "wait less exact's, 95 %"]
    page.table(head, rows)
    page.figure(picture(means), "factor", "Mean wait over the factor by which run times are overestimated.")


def picture(means):
    """Mean wait over the factor, a line a policy."""
    figure = new_figure(7, 3.8)
    axes = figure.add_subplot()
    for policy, colour in zip(POLICIES, (BLUE, ORANGE), strict=True):
        values = means[policy]
        known = ["exact", *(f"{f:g} × the run time" for f in FACTORS[1:])]
        axes.plot(FACTORS, np.array([values[n] for n in known]) / 3600, "o-", color=colour, label=policy)
        axes.axhline(values["as users ask"] / 3600, color=colour, ls=":", label=f"{policy}, as users ask")
    axes.set_xscale("log")
    axes.set_xticks(FACTORS, [f"{f:g}" for f in FACTORS])
    axes.minorticks_off()
    tidy(axes, "requested time / run time", "mean wait (h)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    main()
