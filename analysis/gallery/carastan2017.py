"""Carastan-Santos and de Camargo 2017: orders found by regression, F1 to F4, on sequences of 15 days."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

import simsched as ss
from analysis.gallery.gallery_page import GalleryPage, short
from analysis.gallery.logs import NOT_FOUND, SMALL, Log, Outcome, machine, missing
from analysis.pages import CYCLE, key, new_figure, tidy
from simsched.schedule.orders.order import job_order
from simsched.schedule.orders.ranking import Order
from simsched.workload.transforms.steps import apply_steps

if TYPE_CHECKING:
    from analysis.gallery.logs import Setting

DAYS = 15
STATE = 16
"""Jobs at the beginning of a sequence that fill the machine and do not count."""
ORDERS = {
    "FCFS": "fifo",
    "WFP3": "wfp3",
    "UNICEF": "unicef",
    "SPT": "sjf",
    "SAF": "smallest-area",
    "F4": "f4",
    "F3": "f3",
    "F2": "f2",
    "F1": "f1",
}
WINDOW = 32
"""Jobs that the authors' program sorts: those of the queue that came first."""
#: Name → (transforms of the workload, queue policy, whether only the window is sorted).
MODES = {
    "actual": (["estimates(exact)"], "fcfs", False),
    "actual, window": (["estimates(exact)"], "fcfs", True),
    "estimates": ([], "fcfs", False),
    "estimates and backfilling": ([], "easy", False),
}
TITLES = {
    "actual": "Actual run times, no backfilling",
    "actual, window": f"Actual run times, no backfilling, a window of {WINDOW} jobs of the queue is sorted",
    "estimates": "Requested times, no backfilling",
    "estimates and backfilling": "Requested times, EASY backfilling",
}
#: Medians of the 22 rows of CTC-SP2_ACTUAL_22_12.csv, by the authors' program: see the sources.
CTC = {"FCFS": 438.37, "WFP3": 309.72, "UNICEF": 33.7, "SPT": 90.25, "SAF": 5.59, "F2": 5.32}
#: Medians of 50 sequences of the authors' workload `lublin_256`, by their program: see the sources.
LUBLIN_256 = {"FCFS": 7856.27, "WFP3": 4018.25, "UNICEF": 2717.84, "SPT": 1222.67}
AUTHORS = {"CTC-SP2": CTC, "Lublin 256": LUBLIN_256}
LUBLIN = Log("Lublin 256", "", 256)


@dataclass(frozen=True, slots=True)
class Source:
    """Sequences of one log, and which of them are taken."""

    log: Log
    chosen: slice


def make(setting: Setting) -> None:
    """Run the orders on the sequences of each log and write the page."""
    page = GalleryPage(setting, "carastan2017", "Orders by regression (Carastan-Santos and de Camargo 2017)")
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in sources_of(setting):
            parts = sequences(workload_of(setting, source.log), source.chosen)
            taken[source.log.name] = parts
            cluster = machine(source.log.processors, Path(folder))
            for mode in MODES:
                print(f"   {source.log.name}: {len(parts)} sequences, {mode}", flush=True)
                found.setdefault(mode, {})[source.log.name] = slowdowns(cluster, parts, mode)
    introduction(page, taken)
    for mode, by_log in found.items():
        table_of(page, mode, by_log)
    page.figure(
        picture(found["actual"]), "actual", "Average bounded slowdown of each sequence; actual run times."
    )
    page.conclude(verdict(found), differences(), sources)


def sources_of(setting: Setting) -> list[Source]:
    """Return the sequences to run: the model, and the logs at hand."""
    if setting.quick:
        return [Source(SMALL, slice(0, 2))]
    chosen = {
        "SDSC-SP2": Source(setting_log(setting, "SDSC-SP2"), slice(0, 47, 3)),
        "HPC2N": Source(setting_log(setting, "HPC2N"), slice(0, 83, 8)),
    }
    there = [source for source in chosen.values() if source.log is not None]
    return [Source(LUBLIN, slice(0, 10)), *there]


def setting_log(setting: Setting, name: str) -> Log | None:
    """Return a log that is at hand."""
    return next(iter(setting.logs(name)), None)


def workload_of(setting: Setting, log: Log) -> ss.Workload:
    """Return the jobs of a log, or of the model with limits by Tsafrir's model."""
    if log is not LUBLIN:
        return setting.workload(log, 600)
    from simsched.cli import main

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lublin.swf")
        command = f"workload make lublin --machine 256 --span 160d --estimates 2d --seed 1 -o {file}"
        if main(command.split()) != 0:
            raise SystemExit(f"failed: simsched {command}")
        return ss.load_workload(file)


def sequences(workload: ss.Workload, chosen: slice) -> list[ss.Workload]:
    """Cut a log into sequences of 15 days, each from its first job on; the last, shorter one is left out.

    The clock of each begins with its first job, so that F1 to F4 mean the same in all of them.
    """
    parts: list[list[ss.Job]] = []
    for job in workload.jobs:
        if not parts or job.submit - parts[-1][0].submit > DAYS * 86400:
            parts.append([])
        parts[-1].append(job)
    whole = parts[:-1] or parts
    none = np.random.default_rng(0)
    return [apply_steps(workload.with_jobs(jobs, "one sequence"), ["rebase"], none) for jobs in whole[chosen]]


def slowdowns(cluster: ss.Cluster, parts: list[ss.Workload], mode: str) -> dict[str, list[float]]:
    """Return the average bounded slowdown of each sequence under each order."""
    steps, policy, window = MODES[mode]
    cases = [apply_steps(part, steps, np.random.default_rng(0)) for part in parts]
    orders = {name: windowed(order) if window else order for name, order in ORDERS.items()}
    return {
        name: [
            Outcome.of(cluster, part, skip=STATE, queue_policy=policy, order=order).slowdown for part in cases
        ]
        for name, order in orders.items()
    }


def windowed(name: str) -> Order:
    """Return an order that sorts only the jobs of the queue that came first; the others follow by arrival."""
    inner = job_order(name)

    def keys(table, jobs, now):
        found = np.array(inner.keys(table, jobs, now), dtype=float)
        found[np.lexsort((jobs, table.submits[jobs]))[WINDOW:]] = np.inf
        return found

    return Order(f"{name} of {WINDOW}", keys, static=False)


def introduction(page: GalleryPage, taken) -> None:
    """The question and the setting."""
    page.section(
        "Question",
        """Can an order of the queue that was found by regression over many small simulations compete with
        orders that people designed?""",
    )
    counts = ", ".join(
        f"{name} {len(parts)} sequences of {round(sum(map(len, parts)) / len(parts)):,} jobs in the mean"
        for name, parts in taken.items()
    )
    page.section(
        "Setting",
        f"""Each log is cut into sequences of {DAYS} days. The clock begins with the first job of a
        sequence, and its first {STATE} jobs do not count. The measure is the average bounded slowdown (10
        s) of a sequence; the tables have its median over the sequences. The sequences are cut as in the
        authors' scripts, which take the first 47 of SDSC-SP2 and 83 of HPC2N. To save time, every third and
        every eighth of these are taken here: {counts}. Lublin 256 is drawn by the model of Lublin and
        Feitelson for 256 processors, with limits by Tsafrir's model.""",
        missing("CTC-SP2", "SDSC-BLUE", "ANL Intrepid", "SDSC-SP2", "HPC2N")
        + " CEA Curie is left out to save time.",
        """Without backfilling the queue policy is `fcfs`: jobs start in the order up to the first that does
        not fit. SPT is `sjf`, SAF is `smallest-area` (it is not in the paper of 2017, and was added by the
        same authors later).""",
    )


def table_of(page: GalleryPage, mode: str, by_log) -> None:
    """Medians of one mode: published beside ours."""
    page.section(TITLES[mode])
    rows = []
    for name in ORDERS:
        row = [name, NOT_FOUND]
        if mode.startswith("actual"):
            row += [
                relative(medians[name], medians["FCFS"]) if name in medians else NOT_FOUND
                for medians in AUTHORS.values()
            ]
        row += [relative(median(values[name]), median(values["FCFS"])) for values in by_log.values()]
        rows.append(row)
    head = ["", "paper, SC 2017"]
    head += [f"{log}, authors' program" for log in AUTHORS] if mode.startswith("actual") else []
    page.table(head + [f"{log}, ours" for log in by_log], rows)
    page.text("Medians of the average bounded slowdown; in brackets the share of FCFS.")


def relative(value: float, base: float) -> str:
    """Return a slowdown, and its share of that of FCFS."""
    percent = 100 * value / base
    return f"{short(value)} ({percent:.{0 if percent >= 1 else 1}f} %)"


def verdict(found) -> list[str]:
    """The findings of the paper against ours."""
    told = [
        """**The paper** (from memory; its text could not be read): F1 to F4 have smaller slowdowns than FCFS,
        WFP3, UNICEF and SPT on the model and on all logs, with actual and with requested times, and also with
        backfilling, where the differences are smaller. F1 is the best of them."""
    ]
    for mode, by_log in found.items():
        said = []
        for log, values in by_log.items():
            medians = {name: median(values[name]) for name in ORDERS}
            ranked = sorted(medians, key=medians.__getitem__)
            said.append(f"{log}: {', '.join(ranked)}")
        told.append(f"**{TITLES[mode]}**, from the least to the greatest. {'. '.join(said)}.")
    gain = {
        mode: [
            median(values["F1"]) / min(median(values[n]) for n in ("FCFS", "WFP3", "UNICEF", "SPT"))
            for values in by_log.values()
        ]
        for mode, by_log in found.items()
    }
    if LUBLIN.name in found["actual"]:  # not in a quick run
        told.append(
            """**The window** decides. With the window, F1 to F4 are ahead of SPT, UNICEF and WFP3 on the
            model by far, as the paper is remembered for, and F1 and F2 are ahead of them on the logs by a
            little. With the whole queue sorted, SPT and SAF do about as well as F1 and F2 if run times are
            known. With requested times and no backfilling F1 to F4 are ahead of SPT in all three; with
            backfilling clearly so on the model only."""
        )
    told.append(
        "F1 over the best of FCFS, WFP3, UNICEF and SPT: "
        + "; ".join(
            f"{TITLES[mode].lower().replace('easy', 'EASY')} {min(ratios):.2f} to {max(ratios):.2f}"
            for mode, ratios in gain.items()
        )
        + "."
    )
    return told


def differences() -> list[str]:
    """What explains the differences between published numbers and ours."""
    return [
        """**Other jobs.** The results of the authors' program that could be read are of CTC-SP2, which is not
        at hand, and of 50 sequences of their own draw of the model. Shares of FCFS can be compared, values
        cannot. Those of the model are to be compared with our table with the window, because their program
        has it.""",
        f"""**Window.** The authors' program sorts only the {WINDOW} jobs of the queue that came first, and
        starts them in that order. simsched sorts the whole queue. SPT, UNICEF and WFP3 gain much more from
        the whole queue than F1 to F4, probably because these prefer early jobs anyhow. The table with the
        window shows the effect: it is the main reason why F1 and F2 are not ahead in the first table.""",
        """**UNICEF** divides by log2 of the size, which is 0 for one processor. The authors' program adds
        10⁻²⁰, so jobs of one processor come before all others. simsched takes log2(size + 1).""",
        """**Submission times.** The score of F1 to F4 uses log10 of the submission time. It is -∞ for the
        first job of a sequence in the authors' program, and 0 here.""",
        """**Medians** are of all sequences and all orders, as in the authors' scripts for the final paper (a
        first version of the one for CEA Curie left out the two largest slowdowns of four orders).""",
        """**The model** is drawn again: the workload of the paper is a file that is not at hand.""",
    ]


def sources(page: GalleryPage) -> None:
    """Where the published numbers are from."""
    page.sources(
        """D. Carastan-Santos, R. Y. de Camargo: Obtaining dynamic scheduling policies with simulation and
        machine learning. SC 2017. Its tables: not found.""",
        """L. Rosa, D. Carastan-Santos, A. Goldman: An experimental analysis of regression-obtained HPC
        scheduling heuristics; github.com/fredgrub/scheduling-simulator. The program with the formulas of F1
        to F4 and the sequences: `src/tester/tester.py` and `sched-simulator-runtime.c`. Numbers for
        CTC-SP2: `src/tester/CTC-SP2_ACTUAL_22_12.csv` (commit 67079b2), 22 sequences; the medians were
        computed from its rows. It has no F1, F3 and F4.""",
        """Numbers for Lublin 256: the figure `sched-performance-tester/plots/model_256_r_nbf.pdf` of
        github.com/fredgrub/gen-sched-policies (commit 58dd4b0), a later copy of the authors' repository
        (github.com/hpcsched/gen-sched-policies) by one of the authors of the analysis. The figure is drawn
        with lines, so its medians were read from their coordinates, and agree with those of its 50 points.
        In the place of F1 to F4 it has polynomials that are not in the paper.""",
        """Sequences and medians: the scripts `sched-performance-tester/test_sched_perfomrance_*.py` of
        the authors' repository for the paper, github.com/hpcsched/gen-sched-policies (commit 5d62e12, July
        2017). It has no results.""",
    )


def picture(by_log):
    """Slowdowns of the sequences, a panel per log."""
    figure = new_figure(3.2 * max(2, len(by_log)), 4)
    axes = figure.subplots(1, len(by_log), squeeze=False)[0]
    for panel, (log, values) in zip(axes, by_log.items(), strict=True):
        for at, (name, colour) in enumerate(zip(ORDERS, CYCLE * 2, strict=False)):
            panel.plot([at] * len(values[name]), values[name], "o", ms=3, alpha=0.45, color=colour)
            panel.plot([at - 0.3, at + 0.3], [median(values[name])] * 2, "-", color="k", lw=1.6)
        panel.set_yscale("log")
        panel.set_xticks(range(len(ORDERS)), ORDERS, rotation=90, fontsize=8)
        tidy(panel, "", "average bounded slowdown" if panel is axes[0] else "", log)
    axes[0].plot([], [], "k-", lw=1.6, label="median")
    key(axes[0], 1) if len(by_log) == 1 else None
    return figure
