"""How far off are forecasts of starts, and how often do their quantiles hold?  Three logs, by week."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path

import numpy as np

from analysis.studies.common import BLUE, GREY, ORANGE, QUICK, Page, key, new_figure, scratch, simsched, tidy
from simsched import human

TRACES = os.environ.get("SIMSCHED_TRACES")
LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
}
STARTS = {"easy": "simulated starts under EASY", "recorded": "the starts of the log"}
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)


def main() -> None:
    """Run the study and write its page."""
    if TRACES is None:
        print(
            "left out: forecasts needs SIMSCHED_TRACES, a folder with logs of the Parallel Workloads Archive"
        )
        return
    page = Page("forecasts", "How far off are forecasts of starts?")
    page.section(
        "Question",
        """`simsched forecast` predicts the start of each waiting job as if no job ended early and none were
        submitted. How far off are such predictions, and how often do the quantiles hold that are learnt from
        their errors?""",
    )
    page.section(
        "Method",
        """`simsched forecast CLUSTER LOG --errors` predicts the starts of all waiting jobs every hour and
        compares them with the real ones. With `--queue-policy easy` these are those of the simulation; with
        `--queue-policy recorded` the machine, the queue and the starts are those of the log. The quantiles
        for the forecasts of a week are learnt from the weeks before it, so each week is held out; coverage is
        the mean over these weeks. The step by which levels follow the coverage of earlier weeks was chosen
        on KTH-SP2 and SDSC-SP2 among 0, 0.02, 0.05 and 0.1. HPC2N had no part in this choice.""",
    )
    found = {(log, run): errors(file, run) for log, file in LOGS.items() for run in STARTS}
    coverage(page, found)
    for (log, run), one in found.items():
        page.section(f"{log}: {STARTS[run]}")
        page.table(HEAD, [error_row(row) for row in one["errors"]])
    page.write()


def errors(file: str, run: str) -> dict:
    """The errors of the forecasts of a log, as the command prints them."""
    with scratch() as folder:
        machine, log = str(folder / "machine.json"), str(Path(str(TRACES)) / file)
        simsched("cluster", "make", "--for", log, "-o", machine)
        command = ["forecast", machine, log, "--errors", "--queue-policy", run, "--format", "json", "--quiet"]
        levels = ",".join(map(str, LEVELS))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            simsched(*command, "--quantiles", levels, *(["-t", "first(3000)"] if QUICK else []))
    text = printed.getvalue()
    return json.loads(text[text.index("{") :])


def coverage(page: Page, found: dict) -> None:
    """How often the quantiles held: for each log, and over all held-out weeks."""
    rows = []
    total: dict[str, list[tuple[int, list[float]]]] = {run: [] for run in STARTS}
    for (log, run), one in found.items():
        check = one["check"]
        weeks = check.get("weeks", check.get("days"))
        total[run].append((weeks, check["coverage"]))
        rows.append([log, STARTS[run], str(weeks), *shares(check["coverage"])])
    for run, parts in total.items():
        weeks = [number for number, _ in parts]
        mean = np.average([part for _, part in parts], axis=0, weights=weeks)
        rows.append(["**all**", STARTS[run], f"**{sum(weeks)}**", *shares(mean.tolist())])
    everything = [part for parts in total.values() for part in parts]
    means = np.average([part for _, part in everything], axis=0, weights=[n for n, _ in everything])
    worst = max(
        abs(a - b) for row in found.values() for a, b in zip(row["check"]["coverage"], LEVELS, strict=True)
    )
    weeks, pooled = sum(number for number, _ in everything), ", ".join(shares(means.tolist()))
    page.section(
        "Result",
        f"""Coverage of the quantiles on weeks that had no part in them, in per cent of the starts that were
        no later. Over all {weeks} held-out weeks it is {pooled}. The largest difference from the claimed
        level, in one log, is {100 * worst:.1f} points.""",
    )
    page.table(HEAD_COVERAGE, rows)
    page.figure(picture(found), "bias", "Real and predicted waits by the predicted wait, SDSC-SP2.")
    page.section(
        "All forecasts together",
        """Each week counts once above. Most forecasts are of the weeks with the longest queues, and these are
        covered worst: this is the share of all forecasts of the held-out weeks, in which a job that waits for
        a day counts 24 times.""",
    )
    page.table(HEAD_COVERAGE, together(found))


def together(found: dict) -> list[list[str]]:
    """How often the quantiles held over all forecasts, for each log."""
    checks = {place: one["check"] for place, one in found.items()}
    return [
        [log, STARTS[run], str(check.get("weeks", check.get("days"))), *shares(check["pooled"])]
        for (log, run), check in checks.items()
    ]


def shares(values: list[float]) -> list[str]:
    """Shares with one digit."""
    return [f"{100 * value:.1f} %" for value in values]


HEAD_COVERAGE = ["log", "starts", "held-out weeks", *(f"claimed {human.share(level)}" for level in LEVELS)]
HEAD = ["predicted wait", "forecasts", "mean predicted", "mean real", "bias", "median error",
        "mean absolute error", "earlier than predicted", "within a factor of two"]  # fmt: skip


def error_row(row: dict) -> list[str]:
    """The errors of one class of horizons; real less predicted."""
    to = f"to {human.seconds(row['most'])}" if row["most"] else f"from {human.seconds(row['least'])}"
    times = [human.seconds(round(row[name])) for name in ("predicted", "real")]
    signed = [f"{'+' * (row[name] > 0)}{human.seconds(round(row[name]))}" for name in ("bias", "median")]
    last = [
        human.seconds(round(row["absolute"])),
        human.share(row["earlier"]),
        human.share(row["within_twofold"]),
    ]
    return [to, f"{row['forecasts']:,}", *times, *signed, *last]


def picture(found: dict):
    """Mean real wait over mean predicted wait."""
    figure = new_figure(6, 4)
    axes = figure.add_subplot()
    for run, colour in zip(STARTS, (BLUE, ORANGE), strict=True):
        rows = found["SDSC-SP2", run]["errors"]
        axes.plot([row["predicted"] / 3600 for row in rows], [row["real"] / 3600 for row in rows], "o-",
                  color=colour, label=STARTS[run])  # fmt: skip
    axes.plot([0.05, 300], [0.05, 300], "--", color=GREY, label="no error")
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy(axes, "predicted wait (h)", "mean real wait (h)")
    key(axes, 3)
    return figure


if __name__ == "__main__":
    main()
