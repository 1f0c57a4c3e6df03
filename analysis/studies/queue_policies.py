"""Who waits how long under which queue policy and job order?  A month on a machine of 240 nodes."""

from __future__ import annotations

import simsched as ss
from analysis.studies.common import CYCLE, QUICK, Page, key, new_figure, tidy
from simsched import human
from simsched.report.compare import compare
from simsched.report.metrics.classes import size_class
from simsched.report.metrics.fairness import jain_of_users, overtaken
from simsched.report.metrics.intervals import bootstrap
from simsched.report.metrics.metrics import by, measured, trim

CASES = (
    ("FCFS", {"queue_policy": "fcfs"}),
    ("EASY", {"queue_policy": "easy"}),
    ("hybrid, 8 reservations", {"queue_policy": "hybrid", "queue_options": {"depth": 8}}),
    ("conservative", {"queue_policy": "conservative"}),
    (
        "conservative, compress=start",
        {"queue_policy": "conservative", "queue_options": {"compress": "start"}},
    ),
    ("conservative, replan", {"queue_policy": "conservative", "queue_options": {"compress": "replan"}}),
    ("EASY, shortest first", {"queue_policy": "easy", "order": "sjf"}),
    ("EASY, largest area first", {"queue_policy": "easy", "order": "largest-area"}),
    ("EASY, WFP3", {"queue_policy": "easy", "order": "wfp3"}),
    ("EASY, F1", {"queue_policy": "easy", "order": "f1"}),
)
WARM_UP = 3 * 86400.0

#: Cases that are in the table and not in the pictures.
TABLE_ONLY = ("conservative, compress=start", "conservative, replan")


def main() -> None:
    """Run the study and write its page."""
    cluster = ss.load_cluster("flat240")
    workload = ss.load_workload("month", limit=3000 if QUICK else None)
    page = Page("queue_policies", "Queue policies and job orders on a busy month")
    page.section(
        "Question",
        """How much do backfilling, the number of reservations and the order of the queue change the waits
        of jobs, and which jobs wait longer?""",
    )
    page.section(
        "Method",
        f"""The bundled workload `month` ({len(workload):,} jobs by the Lublin-Feitelson model with limits
        by Tsafrir's model, offered load 0.88) runs on the bundled cluster `flat240` (240 one-core nodes),
        once under each policy and order. The figures exclude the jobs of the first three days (warm-up).
        All runs have the same jobs and submission times, so each run is compared with EASY job by job.
        Under conservative and hybrid a promised start only moves earlier (Mu'alem and Feitelson 2001,
        `compress=queue`), except in the row with replan. Intervals are 95 % bootstrap intervals over
        whole days, because the waits of one day depend on each other.""",
    )
    runs = {}
    for name, options in CASES:
        print(f"   {name}", flush=True)
        run = ss.simulate(cluster, workload, allocations=False, **options)
        runs[name] = trim(run.jobs, warm_up=WARM_UP), run.summary
    table_of(page, runs)
    runs = {name: run for name, run in runs.items() if name not in TABLE_ONLY}
    page.figure(curves(runs), "waits", "Share of jobs that waited no longer than the time on the axis.")
    page.figure(classes(runs), "sizes", "Mean wait by the size of jobs.")
    page.write()


def table_of(page: Page, runs) -> None:
    """The figures of each run, and in words what they show."""
    rows, base = [], runs["EASY"][0]
    stated = {}
    for name, (jobs, summary) in runs.items():
        done = measured(jobs)
        wait, slow = done["wait"], done["bounded_slowdown"]
        found = compare(base, jobs)
        against = (
            "" if name == "EASY" else f"{human.seconds(found.wait.low)} to {human.seconds(found.wait.high)}"
        )
        stated[name] = float(wait.mean()), found
        rows.append(
            [
                name,
                human.seconds(float(wait.mean())),
                against,
                human.seconds(float(wait.quantile(0.95))),
                human.seconds(float(wait.max())),
                human.number(float(slow.mean())),
                human.share(summary["utilisation_core"]),
                human.number(float(overtaken(jobs).mean())),
                human.number(jain_of_users(jobs)),
            ]
        )
    page.section("Result", words(stated))
    head = ["", "mean wait", "mean wait less EASY's, 95 %", "p95 wait", "longest wait",
            "mean bounded slowdown",
            "cores in use", "later jobs that started first", "Jain index of users"]  # fmt: skip
    page.table(head, rows)
    interval = bootstrap(measured(base)["wait"], blocks=(base["submit"] // 86400).astype(int))
    page.parts.append(
        "The mean wait of EASY itself is only known to be between"
        f" {human.seconds(interval.low)} and {human.seconds(interval.high)}"
        ", because one month has few busy days. The differences between policies are known better than their"
        " levels, because every run has the same jobs."
    )


def words(stated) -> str:
    """Return the result in words, from the figures of the table."""
    easy = stated["EASY"][0]
    best = min(stated, key=lambda name: stated[name][0])
    fcfs = stated["FCFS"][0] / easy
    told = [f"Without backfilling the queue never recovers: FCFS waits {fcfs:.0f} times as long as EASY."]
    conservative, found = stated["conservative"]
    verdict = "shown" if not found.wait.holds(0) else "not shown"
    times = {name: wait / easy for name, (wait, _) in stated.items()}
    told.append(
        "Giving every waiting job a reservation that only moves earlier (conservative, compressed in queue"
        f" order) makes the mean wait {conservative / easy:.2f} times EASY's, a difference that is {verdict}"
        f" beyond chance; eight reservations (hybrid) are at {times['hybrid, 8 reservations']:.2f}."
        " The rule of compression matters as much as the reservations: tried in the order of their planned"
        f" starts, jobs wait {times['conservative, compress=start']:.2f} times as long as under EASY, and"
        " planned again at each pass (`compress=replan`, which keeps no promise)"
        f" {times['conservative, replan']:.2f} times."
    )
    told.append(
        f"Of all, {best} has the shortest mean wait, {stated[best][0] / easy:.2f} times that of EASY in order"
        " of arrival. The longest wait and the waits of large jobs (last figure) show the cost of an order:"
        " orders that favour short or small jobs make large jobs wait longer, and utilisation falls."
    )
    return " ".join(told)


def curves(runs):
    """Distribution of waits, a line a run."""
    figure = new_figure(8, 4.2)
    axes = figure.add_subplot()
    for (name, (jobs, _)), colour in zip(runs.items(), CYCLE, strict=False):
        wait = measured(jobs)["wait"].clip(lower=1).sort_values().to_numpy()
        axes.step(
            wait,
            [100 * (i + 1) / len(wait) for i in range(len(wait))],
            color=colour,
            label=name,
            where="post",
        )
    axes.set_xscale("log")
    tidy(axes, "wait (s), 1 s and less as one", "share of jobs (%)")
    key(axes)
    return figure


def classes(runs):
    """Mean wait by size class, a line a run."""
    figure = new_figure(8, 4.2)
    axes = figure.add_subplot()
    for (name, (jobs, _)), colour in zip(runs.items(), CYCLE, strict=False):
        table = by(jobs, size_class(jobs))
        axes.plot(table.index.astype(str), table["mean_wait"] / 3600, "o-", color=colour, label=name, ms=4)
    axes.set_yscale("log")
    tidy(axes, "cores of the job", "mean wait (h)")
    key(axes)
    return figure


if __name__ == "__main__":
    main()
