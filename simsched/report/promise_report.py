"""Promised beside real starts of a run: how many promises were kept, by how much others were broken, whose.

A promise is the column ``promised`` of the jobs, the first start that a policy with reservations guaranteed.
EASY guarantees nothing; for it the first reservation of each job that was first in the queue is taken, which
a second simulation of the run finds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
import pandas as pd

from simsched import human
from simsched.declare.answers import json_text
from simsched.errors import RunError
from simsched.report.export import csv_text
from simsched.report.metrics.classes import size_class
from simsched.report.metrics.metrics import ran
from simsched.text_table import PAGE_WIDTH, fitted_table, markdown_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simsched.formats.rfc.clock import Clock
    from simsched.report.data.tables import RunTables

RESERVING = ("easy", "easy+", "easy++")
"""Policies whose first job has a reservation that does not promise a start."""
MOST_ROWS = 12
#: upper ends (s) of the classes of real less promised starts, and their names
CLASSES = (
    (-86_400.0, "earlier by 1 d or more"),
    (-3600.0, "earlier by 1 h to 1 d"),
    (-600.0, "earlier by 10 min to 1 h"),
    (-1e-9, "earlier by less than 10 min"),
    (1e-9, "as promised"),
    (600.0, "later by up to 10 min"),
    (3600.0, "later by 10 min to 1 h"),
    (86_400.0, "later by 1 h to 1 d"),
    (math.inf, "later by more than 1 d"),
)


@dataclass(frozen=True, slots=True)
class Promises:
    """The promises of one run.

    Attributes
    ----------
    jobs : number of jobs that ran.
    table : one row per job with a promise that ran: id, user, queue, submit, promised, start, size, late (s,
        real less promised start), and cause, why the promise was broken.
    kind : ``promise`` or ``reservation``.
    """

    jobs: int
    table: pd.DataFrame
    kind: str

    @property
    def broken(self) -> pd.DataFrame:
        """The jobs that started later than promised, the latest first."""
        late = self.table[self.table["late"] > 0]
        return late.sort_values(["late", "id"], ascending=[False, True], kind="stable")


def promises_of(run: RunTables) -> Promises:
    """Return the promised beside the real starts of a run.

    Raises
    ------
    RunError
        If the policy of the run promises no start; under EASY, if the run cannot be simulated again.
    """
    jobs = run.jobs
    promised, kind = jobs["promised"], "promise"
    policy = run.config.get("queue_policy")
    if promised.isna().all() and policy in RESERVING:
        promised, kind = _reserved(run), "reservation"
    elif promised.isna().all() and _promises_nothing(run):
        raise RunError(
            f"the queue policy {policy} promises no start",
            where=run.name,
            expected="conservative, hybrid, selective, slack or easy",
        )
    rows = ran(jobs.assign(promised=promised))
    done = rows[rows["promised"].notna() & np.isfinite(rows["promised"])]
    causes = _causes(run, jobs.assign(promised=promised))
    table = done[["id", "user", "queue", "submit", "promised", "start"]].assign(
        size=size_class(done),
        late=done["start"] - done["promised"],
        cause=[causes.get(str(name), "") for name in done["id"]],
    )
    return Promises(len(rows), table, kind)


def _promises_nothing(run: RunTables) -> bool:
    from simsched.simulation.audit.promises import PROMISES_NOTHING
    from simsched.simulation.audit.recorded_run import recorded_run

    if run.folder is None:
        return run.config.get("queue_policy") in PROMISES_NOTHING
    found = recorded_run(run.folder)
    predicts = run.config.get("predictor", "limit") != "limit"
    return found.replans or predicts or (found.queue_policy in PROMISES_NOTHING and not found.queues)


def _reserved(run: RunTables) -> pd.Series[float]:
    """Return the first reserved start of each job, from a second simulation of the run."""
    from simsched.simulation.forecast.start_times import reserved_starts
    from simsched.simulation.options.run_config import from_document
    from simsched.simulation.record.run_origin import unchanged_inputs

    command = run.meta.get("command")
    if command is None:
        raise RunError(
            "run.json does not have the command of the run, and its reservations need a second one",
            where=run.name,
            expected="a run of `simsched run`",
        )
    cluster, workload = unchanged_inputs(run.meta, run.name)
    options = from_document(command["rules"], run.name)
    found = reserved_starts(cluster, workload, run.meta.get("until"), **options)
    ids = run.jobs["id"].astype(str)
    again, starts = (values.to_numpy(dtype=float) for values in (ids.map(found.starts), run.jobs["start"]))
    if not np.array_equal(again, starts, equal_nan=True):
        raise RunError(
            "a second simulation of the run gives other starts, so its reservations are others too",
            where=run.name,
            expected="a run of this version",
        )
    return ids.map({name: one.start for name, one in found.reserved.items()}).astype(float)


def _causes(run: RunTables, jobs: pd.DataFrame) -> dict[str, str]:
    """Return why each late job is late, as the audit explains it."""
    import duckdb

    from simsched.simulation.audit.promises import late_starts
    from simsched.simulation.audit.recorded_run import recorded_run

    if run.folder is None:
        return {}
    times = ("submit", "eligible", "promised", "start", "end", "duration")
    given = {name: jobs[name].to_numpy() for name in times}
    # DuckDB 1.2 takes a column of None alone for numbers
    given |= {
        "id": jobs["id"].astype(str).to_numpy(),
        "reason": jobs["reason"].astype(object).fillna("").to_numpy(),
    }
    with duckdb.connect(":memory:") as con:
        con.register("given", given)
        con.execute("""
            CREATE TABLE jobs AS SELECT * EXCLUDE "end", "end" AS ended, NULL::VARCHAR AS array_task,
                row_number() OVER () AS place FROM given;
            CREATE TABLE attempts AS SELECT id, start AS "begin", ended AS until FROM jobs LIMIT 0""")
        recorded = recorded_run(run.folder)
        return {late.job: late.cause or "" for late in late_starts(con, recorded, recorded.chance)}


# --- presentation ----------------------------------------------------------------------------------


def promise_text(runs: Sequence[RunTables], *, markdown: bool = False) -> str:
    """Return the promises of runs for a terminal, or as Markdown."""
    return "\n".join(_page(run, promises_of(run), markdown) for run in runs)


def _page(run: RunTables, found: Promises, markdown: bool) -> str:
    def table(head: list[str], rows: list[list[str]]) -> list[str]:
        if markdown:
            return ["", f"\n{markdown_table(head, rows)}\n"]
        return ["", fitted_table(head, rows, PAGE_WIDTH, ["user", "median", "reason"])]

    lines = list(_sentences(run.name, found))
    if found.table.empty:
        return "\n".join(lines) + "\n"
    lines += table(["real start", "jobs", "share", "mean", "median", "largest"], _distribution(found))
    sizes = found.table.groupby("size", observed=True)
    head = ["cores", f"{found.kind}s", "kept", "mean earlier", "mean later", "latest"]
    lines += table(head, [_size_row(str(key), rows["late"]) for key, rows in sizes])
    broken = found.broken
    if len(broken):
        head = ["latest jobs", "user", "queue", "cores", "promised", "late by", "reason"]
        lines += table(head, [_job_row(row, run.clock) for row in broken.head(MOST_ROWS).to_dict("records")])
        rest = len(broken) - MOST_ROWS
        lines += [f"… and {rest:,} more"] if rest > 0 else []
    return "\n".join(lines) + "\n"


def _sentences(name: str, found: Promises) -> Iterator[str]:
    number, broken = len(found.table), len(found.broken)
    if not number:
        yield f"{name}: none of {found.jobs:,} jobs had a {found.kind}, because none had to wait for one"
        return
    given = "had a promised start" if found.kind == "promise" else "had the reservation of the first job"
    yield (
        f"{name}: {number:,} of {found.jobs:,} jobs {given}; {human.share(1 - broken / number)} of the "
        f"{found.kind}s were kept, {broken:,} were broken"
    )
    if found.kind == "reservation":
        yield (
            "EASY guarantees no start: the first reservation of each job counts, and a job that comes before "
            "it in the queue may take it"
        )


def _distribution(found: Promises) -> list[list[str]]:
    late = found.table["late"]
    # the ends of the classes of earlier starts belong to them: exactly one day earlier is "1 d or more"
    classes = pd.cut(late, [-math.inf, *(most for most, _ in CLASSES)], labels=[name for _, name in CLASSES])
    rows = []
    for name, apart in late.abs().groupby(classes, observed=True):
        times = [human.seconds(round(value)) for value in (apart.mean(), apart.median(), apart.max())]
        rows.append([str(name), f"{len(apart):,}", human.share(len(apart) / len(late)), *times])
    return rows


def _size_row(key: str, late: pd.Series[float]) -> list[str]:
    early, behind = -late[late < 0], late[late > 0]
    times = (early.mean(), behind.mean(), behind.max())
    shown = [human.MISSING if math.isnan(time) else human.seconds(round(time)) for time in times]
    return [key, f"{len(late):,}", human.share(float((late <= 0).mean())), *shown]


def _job_row(row: Any, clock: Clock | None) -> list[str]:
    user, queue = (human.MISSING if pd.isna(row[name]) else str(row[name]) for name in ("user", "queue"))
    promised = f"{row['promised']:.10g}" if clock is None else clock.text(row["promised"])
    times = [promised, human.seconds(round(row["late"]))]
    return [str(row["id"]), user, queue, str(row["size"]), *times, row["cause"]]


def promise_csv(runs: Sequence[RunTables]) -> str:
    """Return one row per job with a promise, as CSV; times are in seconds."""
    tables = [promises_of(run).table.assign(run=run.name) for run in runs]
    whole = pd.concat(tables, ignore_index=True)
    return csv_text(whole[["run", *(name for name in whole.columns if name != "run")]])


def promise_json(runs: Sequence[RunTables]) -> str:
    """Return the figures and the broken promises as JSON; times are in seconds."""
    return json_text([_document(run.name, promises_of(run)) for run in runs], 1, ensure_ascii=False) + "\n"


class BrokenPromise(TypedDict):
    """A job that started later than promised; times in seconds.

    cause : why; empty if it is not known.
    """

    id: str
    promised: float
    start: float
    late: float
    cause: str


class PromisesOfRun(TypedDict):
    """The promises of a run; times in seconds, null or empty without promises.

    kind : whether the policy promises starts, or reserves one for the first job.
    jobs : number of jobs that ran.
    promised : number of them that had a promise.
    broken : number of broken promises.
    late_mean, late_percentiles : real less promised starts.
    broken_mean, broken_max : of the broken promises.
    broken_jobs : the latest first.
    """

    run: str
    kind: str
    jobs: int
    promised: int
    broken: int
    late_mean: float | None
    late_percentiles: dict[str, float]
    broken_mean: float | None
    broken_max: float | None
    broken_jobs: list[BrokenPromise]


PromisesAnswer = list[PromisesOfRun]


def _document(name: str, found: Promises) -> PromisesOfRun:
    late, broken = found.table["late"], found.broken
    names = ["id", "promised", "start", "late", "cause"]
    levels = (0, 5, 25, 50, 75, 95, 100)
    return {
        "run": name,
        "kind": found.kind,
        "jobs": found.jobs,
        "promised": len(found.table),
        "broken": len(broken),
        "late_mean": float(late.mean()) if len(late) else None,
        "late_percentiles": {str(level): float(np.percentile(late, level)) for level in levels if len(late)},
        "broken_mean": float(broken["late"].mean()) if len(broken) else None,
        "broken_max": float(broken["late"].max()) if len(broken) else None,
        "broken_jobs": cast("list[BrokenPromise]", broken[names].to_dict("records")),
    }


FORMATS: dict[str, Callable[[Sequence[RunTables]], str]] = {
    "text": promise_text,
    "json": promise_json,
    "csv": promise_csv,
    "markdown": partial(promise_text, markdown=True),
}
