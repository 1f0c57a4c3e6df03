"""Lelong, Reis and Trystram 2017: an order of the queue, an order of the candidates, and a threshold."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from analysis.gallery.gallery_page import GalleryPage, change, hours, short
from analysis.gallery.logs import NOT_FOUND, Outcome, first_year, machine, missing
from analysis.pages import new_figure
from simsched.workload.transforms.steps import apply_steps

if TYPE_CHECKING:
    import simsched as ss
    from analysis.gallery.logs import Log, Setting

#: Name in the paper → name here.
ORDERS = {
    "FCFS": "fifo",
    "LCFS": "lifo",
    "SPF": "sjf",
    "LPF": "ljf",
    "SQF": "smallest-size",
    "LQF": "largest-size",
    "EXP": "lxf",
}
THRESHOLD = "20h"
WEEK = 604_800
#: workloads that are made from the second half of a log
COPIES = 5
BASE, SJBF = ("FCFS", "FCFS"), ("FCFS", "SPF")


def make(setting: Setting) -> None:
    """Choose a pair of orders on the first half of each log, try it on the second, and write the page."""
    page = GalleryPage(setting, "lelong2017", "Orders of EASY's queues (Lelong, Reis, Trystram 2017)")
    introduction(page)
    found = {}
    for log in setting.logs("KTH-SP2", "SDSC-SP2"):
        found[log.name] = training, test, drawn = results(setting, log)
        page.text(f"### {log.name}")
        table_of(page, training, test, drawn)
    page.figure(
        picture(found),
        "pairs",
        f"Mean wait of each pair over that of EASY-FCFS-FCFS, first half of the log, threshold {THRESHOLD}."
        " A cross marks the chosen pair.",
    )
    page.conclude(verdict(found), differences(), sources)


def introduction(page: GalleryPage) -> None:
    """The question and the setting."""
    page.section(
        "Question",
        """EASY considers jobs in the order of arrival, for its reservation and for backfilling. Does another
        order shorten the mean wait, if it is chosen by simulation of the past? Can a threshold keep the
        longest wait in bounds?""",
    )
    page.section(
        "Setting",
        """A pair P-B is an order of the queue P (the first job gets the reservation) and an order of the
        backfill candidates B (`backfill-order`). Each is FCFS, LCFS (last come first), SPF and LPF (shortest
        and longest requested time first), SQF and LQF (smallest and largest size first), or EXP (largest
        expansion factor first): 49 pairs. With a threshold, jobs that have waited longer come first, by
        arrival (`starving(ORDER, T)`); the threshold here is 20 h.""",
        f"""The first 365 days of each log (all 333 of KTH-SP2) are cut at half their time. All pairs run on
        the first half with the threshold, the pair with the least mean wait is chosen, and it runs on the
        second half. It also runs on {COPIES} resampled workloads of the second half, which are made as in the
        program by one of the authors: for each user, the whole weeks of the half are put into another order
        at random, and the times within a week stay. The paper has the logs KTH-SP2, CTC-SP2, SDSC-SP2,
        SDSC-BLUE and CEA Curie.
        {missing("CTC-SP2", "SDSC-BLUE", "KTH-SP2", "SDSC-SP2")} CEA Curie is left out to save time.""",
    )
    page.section(
        "Result",
        f"""The tables of the paper could not be read: its numbers are *{NOT_FOUND}*. Changes are against
        EASY in the order of arrival (FCFS-FCFS) on the same jobs.""",
    )


def results(setting: Setting, log: Log):
    """Return the outcomes of the pairs on the first half, and of some cases on the second."""
    workload = first_year(setting.workload(log, 400))
    with tempfile.TemporaryDirectory() as folder:
        cluster = machine(log.processors, Path(folder))
    first, second = halves(workload)
    names = setting.few(tuple(ORDERS), 3)
    training = {BASE: run(cluster, first, BASE, None)}
    pairs = {}
    for queue in names:
        print(f"   {log.name}: {queue}", flush=True)
        for candidates in names:
            pairs[queue, candidates] = run(cluster, first, (queue, candidates), THRESHOLD)
    best = min(pairs, key=lambda pair: pairs[pair].wait)
    cases = [(pair, most) for pair in dict.fromkeys((BASE, SJBF, best)) for most in (None, THRESHOLD)]
    test = {case: run(cluster, second, *case) for case in cases}
    rng = np.random.default_rng(2017)
    copies = [resampled(second, rng) for _ in range(2 if setting.quick else COPIES)]
    drawn = {case: [run(cluster, copy, *case) for copy in copies] for case in cases}
    return (training, pairs, best), test, drawn


def resampled(workload: ss.Workload, rng: np.random.Generator) -> ss.Workload:
    """Return the whole weeks of a workload, in another order for each user [Lelong17].

    Jobs of the last week, which is not whole, are left out.
    """
    begin, end = workload.span
    weeks = int((end - begin) // WEEK)
    orders: dict[str | None, list[int]] = {}
    moved = []
    for job in workload.jobs:
        week = int((job.submit - begin) // WEEK)
        if week < weeks:
            if job.user not in orders:
                orders[job.user] = rng.permutation(weeks).tolist()
            later = (orders[job.user][week] - week) * WEEK
            moved.append(msgspec.structs.replace(job, submit=job.submit + later))
    moved.sort(key=lambda job: job.submit)
    return workload.with_jobs(moved, "weeks in another order for each user")


def halves(workload: ss.Workload) -> tuple[ss.Workload, ss.Workload]:
    """Cut a workload at half of the time between the first and the last submission."""
    begin, end = workload.span
    middle = (end - begin) // 2
    none = np.random.default_rng(0)
    return (
        apply_steps(workload, [f"slice(0, {middle})", "rebase"], none),
        apply_steps(workload, [f"slice({middle}, {end - begin + 1})", "rebase"], none),
    )


def run(cluster, workload: ss.Workload, pair: tuple[str, str], threshold: str | None) -> Outcome:
    """Run EASY with an order of the queue and one of the candidates."""
    queue, candidates = (ORDERS[name] for name in pair)
    order = queue if threshold is None else f"starving({queue}, {threshold})"
    return Outcome.of(cluster, workload, order=order, queue_options={"backfill-order": candidates})


def table_of(page: GalleryPage, training, test, drawn) -> None:
    """The second half of one log: the chosen pair and others."""
    base = test[BASE, None]
    _, _, best = training
    rows = []
    for (pair, threshold), outcome in test.items():
        name = "-".join(pair) + (", the chosen pair" if pair == best else "")
        rows.append(
            [
                f"{name}",
                threshold or "none",
                NOT_FOUND,
                hours(outcome.wait),
                change(outcome.wait, base.wait),
                changes(drawn[pair, threshold], drawn[BASE, None]),
                NOT_FOUND,
                hours(outcome.longest),
                short(outcome.slowdown),
            ]
        )
    head = ["queue-candidates", "threshold", "mean wait, paper", "ours (h)", "against EASY, ours",
            "against EASY, resampled weeks", "longest wait, paper", "ours (h)",
            "mean bounded slowdown, ours"]  # fmt: skip
    page.table(head, rows)
    whole, pairs, _ = training
    ranked = sorted(pairs, key=lambda pair: pairs[pair].wait)
    told = [f"{'-'.join(pair)} {change(pairs[pair].wait, whole[BASE].wait)}" for pair in ranked]
    page.text(
        f"On the first half the best pairs are {', '.join(told[:5])}; the worst are {', '.join(told[-3:])}."
    )


def changes(outcomes, bases) -> str:
    """Return the mean change of the mean wait over resampled workloads, and the least and the greatest."""
    if any(np.isnan(base.wait) for base in bases):
        return "not known, the half has no whole week"
    each = [outcome.wait / base.wait - 1 for outcome, base in zip(outcomes, bases, strict=True)]
    return f"{100 * np.mean(each):+.0f} % ({100 * min(each):+.0f} % to {100 * max(each):+.0f} %)"


def verdict(found) -> list[str]:
    """The findings of the paper against ours."""
    told = [
        """**The paper**: the order of the queues can be chosen by simulation for each system, so that the
        mean wait is shorter; leaving the order of arrival puts the longest wait at risk, and a threshold
        controls it (abstract). By how much is not found. From memory, not checked: the mean wait falls by
        11 % to 42 % against EASY, depending on the log."""
    ]
    parts = []
    for log, ((_, _, best), test, _) in found.items():
        base, chosen, free = test[BASE, None], test[best, THRESHOLD], test[best, None]
        parts.append(
            f"{log}: {'-'.join(best)}, mean wait {change(chosen.wait, base.wait)} on the half that was not"
            f" used to choose it; longest wait {hours(base.longest)} h under EASY, {hours(chosen.longest)} h"
            f" with the threshold and {hours(free.longest)} h without"
        )
    told.append(f"**Here**. {'. '.join(parts)}.")
    made = [
        f"{log} {changes(drawn[best, THRESHOLD], drawn[BASE, None])}"
        for log, ((_, _, best), _, drawn) in found.items()
    ]
    told.append(
        "**Resampled weeks** of the second half: with the chosen pair and the threshold the mean wait changes"
        f" by {', '.join(made)}."
    )
    weak = [
        log for log, ((whole, pairs, best), test, _) in found.items() if is_lost(whole, pairs, best, test)
    ]
    if weak:
        told.append(
            f"""On {" and ".join(weak)} the gain of the first half is mostly lost on the second: the orders
            that were best on the one are not as good on the other, so the past of one half year does not
            choose well here."""
        )
    return told


def is_lost(whole, pairs, best, test) -> bool:
    """Whether less than half of the gain of the chosen pair is left on the second half."""
    first = 1 - pairs[best].wait / whole[BASE].wait
    second = 1 - test[best, THRESHOLD].wait / test[BASE, None].wait
    return second < first / 2


def differences() -> list[str]:
    """What explains the differences between the paper and this page."""
    return [
        f"""**Weeks.** The paper resamples weeks, and its measures are means over weeks that are simulated one
        by one, each on an empty machine. Here a half of a log, and each of its {COPIES} resampled workloads,
        is one run, with the waits that carry over from week to week. The choice is made on the first half
        as it is and not on resampled weeks.""",
        """**Logs.** The paper uses the logs in the versions of its time, and five of them.""",
        """**The rule of the threshold** is the same: jobs that have waited for longer come first, by arrival.
        In the order EXP the requested time is at least 1 s.""",
    ]


def sources(page: GalleryPage) -> None:
    """Where the statements about the paper are from."""
    page.sources(
        """J. Lelong, V. Reis, D. Trystram: Tuning EASY-backfilling queues. JSSPP 2017, LNCS 10773, 43–61;
        hal-01522459. Its tables: not found. The abstract was read at ask.orkg.org (item 84975037).""",
        """The resampling of weeks: `src/sampler.ml` and `src/subtrace.ml` of github.com/freuk/ocst, by one of
        the authors (commit cdecc65). It has no numbers.""",
        """The seven orders, the threshold of 20 h and the split of logs into halves: as two reports of
        students who repeated the paper describe it, one of them
        github.com/nadeenfarid/batsim-project_team1. They state no numbers.""",
    )


def picture(found):
    """A map of the pairs for each log."""
    figure = new_figure(4.2 * max(1, len(found)), 4)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (log, ((whole, pairs, best), *_)) in zip(panels, found.items(), strict=True):
        names = list(dict.fromkeys(queue for queue, _ in pairs))
        values = np.array([[pairs[q, c].wait / whole[BASE].wait for c in names] for q in names])
        panel.imshow(values, cmap="RdYlGn_r", vmin=0, vmax=2)
        for (row, column), value in np.ndenumerate(values):
            mark = "x " if (names[row], names[column]) == best else ""
            panel.text(column, row, f"{mark}{value:.2f}", ha="center", va="center", fontsize=7)
        panel.set_xticks(range(len(names)), names, fontsize=8)
        panel.set_yticks(range(len(names)), names, fontsize=8)
        panel.set_xlabel("order of candidates")
        panel.set_ylabel("order of the queue")
        panel.set_title(log, loc="left", fontsize=10)
    return figure
