"""A plug-in of each kind.

A plug-in is a function or an object.  Its options are the keyword-only arguments of the function, or the
arguments of the class or of the function that makes the object; their annotations give the types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

import simsched as ss

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

# -- match policy: candidates → their positions in the order in which they are taken ----------------


def most_free(candidates: ss.Candidates, *, of: str = "core") -> np.ndarray:
    """Nodes with the most free units of a type first."""
    return np.argsort(-candidates.free(of), kind="stable")


# -- job order: the key of each job, the smallest first ---------------------------------------------


def patience(hours: float = 24.0) -> ss.Order:
    """Short jobs first, but a job that has waited for some hours goes before them."""

    def keys(table: Any, jobs: np.ndarray, now: float) -> np.ndarray:
        waited = now - table.submits[jobs]
        return np.where(waited > hours * 3600, -waited, table.durations_array[jobs])

    return ss.Order("patience", keys, static=False)


# -- queue policy: starts waiting jobs in a pass ----------------------------------------------------


class Narrow:
    """FCFS in which jobs of at most `width` units may pass the first that does not fit."""

    def __init__(self, width: int = 1) -> None:
        self.width = width

    def run_pass(self, context: ss.PassContext) -> None:
        """Start the jobs that may start now."""
        blocked = False
        for job in context.queue.listed():
            if blocked and context.table.sizes[job] > self.width:
                continue
            selection = context.fit(job)
            if selection is not None:
                context.start(job, selection, backfilled=blocked)
            blocked = blocked or selection is None


# -- priority factor: a job → its value, usually from 0 to 1 ----------------------------------------


def project(job: ss.Job, *, banks: str = "") -> float:
    """1 for the jobs of some banks, which are separated by blanks; 0 for all others."""
    return float(job.bank is not None and job.bank in banks.split())


# -- predictor: learns from the ends of jobs, predicts the next run time ----------------------------


class Smoothed:
    """The exponentially smoothed run time of a user: each job counts with a `share` of the prediction."""

    def __init__(self, share: float = 0.5) -> None:
        self.share = share
        self.means: dict[int, float] = {}

    def learn(self, user: int, seconds: float) -> None:
        """Take a run time into the mean of its user."""
        before = self.means.get(user, seconds)
        self.means[user] = before + self.share * (seconds - before)

    def predict(self, job: int, user: int) -> float | None:  # noqa: ARG002
        """Return the predicted seconds, in whole seconds; None, the limit of the job, for a new user."""
        mean = self.means.get(user)
        return None if mean is None else float(round(mean))

    def state(self) -> dict[int, float]:
        """Return the means, for a checkpoint."""
        return self.means

    def restore(self, state: dict[int, float]) -> None:
        """Take over the means of a checkpoint."""
        self.means = dict(state)


# -- metric: the tables of a run → a number ---------------------------------------------------------


def prompt(
    jobs: pd.DataFrame,
    timeline: pd.DataFrame,  # noqa: ARG001
    totals: Mapping[str, int],  # noqa: ARG001
    *,
    within: float = 60.0,
) -> float:
    """Share of the jobs that started which waited at most some seconds."""
    waits = (jobs["start"] - jobs["submit"]).dropna()
    return float((waits <= within).mean()) if len(waits) else float("nan")


prompt.unit = "share"  # type: ignore[attr-defined]
prompt.better = +1  # type: ignore[attr-defined]  # more of it is better


# -- workload reader: lines → a workload ------------------------------------------------------------


class ShortLog:
    """Logs of four columns: submit time; cores; requested seconds; run time.  The first line is ``short``."""

    def __init__(self, separator: str = ";") -> None:
        self.separator = separator

    def recognises(self, line: str) -> bool:
        """Return whether the first line is that of such a log."""
        return line == "short"

    def __call__(self, lines: Iterable[str], reading: Any) -> ss.Workload:
        """Return the workload; FormatError for a line that is not four numbers."""
        jobs = []
        for number, line in enumerate(lines, 1):
            if number == 1 or not line.strip():
                continue
            try:
                submit, cores, duration, runtime = map(int, line.split(self.separator))
            except ValueError:
                place = f"{reading.source}:{number}"
                raise ss.FormatError(
                    "not a line of four numbers", where=place, expected="0;4;60;30"
                ) from None
            request = ss.Jobspec.from_shape(f"slot={cores}/core")
            jobs.append(
                ss.Job(id=number - 1, submit=submit, jobspec=request, duration=duration, runtime=runtime)
            )
        return ss.Workload(jobs, name=reading.name)


# -- cluster reader: a text → a networkx graph, or a document such as a recipe ----------------------


class Machine:
    """Texts such as ``machine: 4 nodes of 16 cores``."""

    line = re.compile(r"machine: (\d+) nodes of (\d+) cores\s*")

    def recognises(self, text: str) -> bool:
        """Return whether a text is that of a machine."""
        return text.startswith("machine:")

    def __call__(self, text: str, name: str) -> dict[str, Any]:
        """Return the recipe of the machine."""
        found = self.line.fullmatch(text)
        if found is None:
            raise ss.FormatError("not a machine", where=name, expected="machine: 4 nodes of 16 cores")
        nodes, cores = map(int, found.groups())
        return {"groups": [{"name": "node", "count": nodes, "cores": cores}]}


# -- report section: a run → a text of lines of at most `width` characters --------------------------


def longest(run: ss.Run, width: int, *, jobs: int = 3) -> str:
    """The jobs that waited longest."""
    waits = (run.jobs["start"] - run.jobs["submit"]).set_axis(run.jobs["id"]).nlargest(jobs)
    lines = [
        f"longest waits: {len(waits)} jobs",
        *(f"  {job}  {seconds:,.0f} s" for job, seconds in waits.items()),
    ]
    return "\n".join(line[:width] for line in lines)
