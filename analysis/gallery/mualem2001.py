"""Mu'alem and Feitelson 2001: EASY against conservative backfilling, and the effect of wrong estimates."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np

from analysis.gallery.gallery_page import GalleryPage, hours, short
from analysis.gallery.logs import NOT_FOUND, Outcome, machine, missing
from analysis.pages import BLUE, ORANGE, new_figure, tidy
from simsched.report.compare import compare
from simsched.workload.transforms.steps import apply_steps

if TYPE_CHECKING:
    from analysis.gallery.logs import Log, Setting

FACTORS = (0, 1, 3, 10, 30, 100, 300)
"""Factors of the paper: an estimate is drawn evenly from the run time to f + 1 times it."""
USERS = "users'"
POLICIES = ("easy", "conservative")
SEEDS = 2
NOISE = 1.05
"""A ratio up to this is not called worse: a shake of the log by a minute changes as much."""


def make(setting: Setting) -> None:
    """Run both policies under each kind of estimate and write the page."""
    page = GalleryPage(
        setting, "mualem2001", "EASY, conservative, and wrong estimates (Mu'alem and Feitelson 2001)"
    )
    introduction(page)
    found = {}
    for log in setting.logs("KTH-SP2", "SDSC-SP2"):
        found[log.name] = cases = results(setting, log)
        page.text(f"### {log.name}")
        table_of(page, cases)
    page.figure(
        picture(found),
        "factor",
        "Mean bounded slowdown over the factor f. Bars: least and greatest of the draws. Dotted: the times"
        " that users requested.",
    )
    page.conclude(verdict(found), differences(), sources)


def introduction(page: GalleryPage) -> None:
    """The question and the setting."""
    page.section(
        "Question",
        """Is it better to reserve for the first waiting job only (EASY), or for each of them
        (conservative)? And how much do estimates matter that are far too long?""",
    )
    page.section(
        "Setting",
        f"""The f-model of the paper: an estimate is drawn evenly from the run time r to (f + 1) r. f = 0
        are exact estimates. In simsched this is `estimates(exact)` and `estimates(uniform, f + 1)`. Each f
        above 0 is drawn {SEEDS} times; the tables have the mean, and the least and the greatest in
        brackets. *users'* are the requested times of the log. Run times are cut at the requested times
        first, so that all rows have the same work. The policy `conservative` moves reservations up in the
        order of the queue after an early end, as in the paper. Measures: mean response time (wait and run
        time), mean bounded slowdown with a threshold of 10 s.""",
        f"""The paper has the logs CTC-SP2, KTH-SP2 and SDSC-SP2 and models, at several loads. Here each log
        is taken whole and has its own load. {missing("CTC-SP2", "KTH-SP2", "SDSC-SP2")}""",
    )
    page.section(
        "Result",
        f"""The paper shows its results as curves; no text with their numbers could be read, so they are
        *{NOT_FOUND}*.""",
    )


def results(setting: Setting, log: Log):
    """Return {policy: {estimates: outcomes of the draws}}."""
    workload = setting.workload(log)
    with tempfile.TemporaryDirectory() as folder:
        cluster = machine(log.processors, Path(folder))
    cases: dict[str, list] = {"exact (f = 0)": [apply_steps(workload, ["estimates(exact)"], generator(0))]}
    for factor in setting.few(FACTORS[1:], 2):
        step = [f"estimates(uniform, {factor + 1})"]
        seeds = range(1 if setting.quick else SEEDS)
        cases[f"f = {factor}"] = [apply_steps(workload, step, generator(seed)) for seed in seeds]
    cases[USERS] = [workload]
    found: dict[str, dict[str, list[Outcome]]] = {}
    for policy in POLICIES:
        for name, drawn in cases.items():
            print(f"   {log.name}: {policy}, {name}", flush=True)
            found.setdefault(policy, {})[name] = [
                Outcome.of(cluster, jobs, queue_policy=policy) for jobs in drawn
            ]
    return found


def generator(seed: int) -> np.random.Generator:
    """Return the random numbers of a draw."""
    return np.random.default_rng(seed)


def spread(values: list[float], show) -> str:
    """Return the mean, with the least and the greatest of several."""
    if len(values) == 1:
        return show(values[0])
    return f"{show(mean(values))} ({show(min(values))} to {show(max(values))})"


def table_of(page: GalleryPage, cases) -> None:
    """Response and slowdown by estimate, both policies."""
    rows = []
    for name in cases["easy"]:
        row = [name]
        for policy in POLICIES:
            drawn = cases[policy][name]
            row += [NOT_FOUND, spread([o.response for o in drawn], hours)]
            row += [NOT_FOUND, spread([o.slowdown for o in drawn], short)]
        rows.append(row)
    head = ["estimates"]
    for policy in POLICIES:
        head += [f"{policy}: mean response, paper", "ours (h)", "bounded slowdown, paper", "ours"]
    page.table(head, rows)


def verdict(found) -> list[str]:
    """The findings of the paper against ours, in words made from the numbers."""
    told = [
        """**The paper** (from memory; its text could not be read): the relative performance of EASY and
        conservative depends on the workload and the metric. Overestimates do not harm, and often help:
        results with f above 0 are at least as good as with exact estimates. A later paper (Tsafrir and
        Feitelson 2006, abstract) confirms that f above 0 helps, and adds that the effect has the form of a V:
        as f grows, the mean wait and slowdown fall at first and then rise again, because large factors make
        long jobs look short. It also states that the f-model does not stand for real estimates, which are
        few round values with a maximum."""
    ]
    for log, cases in found.items():
        told += [against(log, cases), estimates_of(log, cases)]
    return told


def against(log: str, cases) -> str:
    """Say which policy is better under the users' estimates, and under exact ones."""
    said = []
    for name in (USERS, "exact (f = 0)"):
        easy, conservative = (cases[policy][name][0] for policy in POLICIES)
        pair = compare(easy.jobs, conservative.jobs)
        wait = difference("the mean response", pair.turnaround, hours, " h")
        slowdown = difference("the mean bounded slowdown", pair.slowdown, lambda value: f"{value:.1f}", "")
        said.append(f"with {name} estimates conservative less EASY is, for {wait}, and for {slowdown}")
    return f"**{log}, the two policies**: {'; '.join(said)}."


def difference(name: str, interval, show, unit: str) -> str:
    """Return a difference with its interval, and whether it is shown beyond chance."""
    shown = "not shown" if interval.holds(0) else "shown"
    return (
        f"{name}, {show(interval.estimate)}{unit} (95 %: {show(interval.low)} to {show(interval.high)}; a"
        f" difference is {shown})"
    )


def estimates_of(log: str, cases) -> str:
    """Say what estimates do under each policy."""
    said = []
    for policy in POLICIES:
        slowdowns = {name: mean(o.slowdown for o in drawn) for name, drawn in cases[policy].items()}
        exact = slowdowns["exact (f = 0)"]
        ratios = {name: value / exact for name, value in slowdowns.items()}
        factors = [name for name in ratios if name.startswith("f =")]
        best = min(factors, key=ratios.__getitem__)
        said.append(
            f"under {policy} the bounded slowdown with f above 0 is {min(ratios[n] for n in factors):.2f} to"
            f" {max(ratios[n] for n in factors):.2f} times that with exact estimates (least: {best}), and"
            f" with the users' estimates {ratios[USERS]:.2f} times"
        )
        worse = [name for name in factors if ratios[name] > NOISE]
        if worse:
            said[-1] += f" ({', '.join(worse)} are worse than exact estimates by more than {NOISE - 1:.0%})"
    return f"**{log}, estimates**: {'; '.join(said)}."


def differences() -> list[str]:
    """What explains the differences between the paper and this page."""
    return [
        """**Logs.** The archive has cleaned the logs since 2001: flurries of single users were taken out of
        SDSC-SP2. The paper also scales the load; a curve over the load says more than one point.""",
        """**Users' estimates** keep less of the order of the run times than the f-model: they are round
        numbers, and many jobs end long before. A large f mixes short and long jobs too, but a short job
        never gets the estimate of a long one unless f is large.""",
        """**EASY on SDSC-SP2** does not gain from f above 0 here, and loses from large factors, unlike on
        KTH-SP2. Under conservative both logs gain, and SDSC-SP2 has the V. If all submissions of this log
        move by up to a minute, the bounded slowdown of EASY changes by up to a tenth
        ([tsafrir2007](tsafrir2007.md)), so one log cannot decide it.""",
        """**Chance.** The draws of the f-model and the intervals show how much of a difference is chance. An
        interval comes from the days of one log, and says nothing of other logs.""",
    ]


def sources(page: GalleryPage) -> None:
    """Where the statements about the paper are from."""
    page.sources(
        """A. W. Mu'alem, D. G. Feitelson: Utilization, predictability, workloads, and user runtime
        estimates in scheduling the IBM SP2 with backfilling. IEEE TPDS 12(6), 529–543, 2001. Its numbers:
        not found.""",
        """D. Tsafrir, D. G. Feitelson: The dynamics of backfilling: solving the mystery of why increased
        inaccuracy may help. IISWC 2006. The abstract was read at citeseer.ist.psu.edu (`showciting`, cid
        4358819).""",
        """The published numbers for EASY with the users' estimates on KTH-SP2 and SDSC-SP2 by another
        program are on the page [tsafrir2007](tsafrir2007.md).""",
    )


def picture(found):
    """Slowdown over f, a panel per log."""
    figure = new_figure(4.6 * max(1, len(found)), 3.8)
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (log, cases) in zip(panels, found.items(), strict=True):
        for policy, colour in zip(POLICIES, (BLUE, ORANGE), strict=True):
            drawn = [
                [o.slowdown for o in outcomes] for name, outcomes in cases[policy].items() if name != USERS
            ]
            middle = np.array([mean(values) for values in drawn])
            low, high = (np.array([edge(values) for values in drawn]) for edge in (min, max))
            where = np.arange(len(drawn))
            panel.errorbar(
                where, middle, (middle - low, high - middle), color=colour, marker="o", ms=4, label=policy
            )
            panel.axhline(cases[policy][USERS][0].slowdown, color=colour, ls=":")
        panel.set_xticks(where, FACTORS[: len(where)])
        tidy(panel, "factor f", "mean bounded slowdown" if panel is panels[0] else "", log)
        panel.set_ylim(bottom=0)
    panels[0].legend(frameon=False, fontsize=8, loc="lower left")
    return figure
