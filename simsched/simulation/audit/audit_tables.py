"""The tables of a run as one DuckDB database, and rules as queries over them.

Each ``.sql`` file beside this module is a list of statements.  A query after a comment ``-- LAW rows`` is a
rule: its columns are the job, whether it breaks the law, and the fault as text, for each of these rows.  A
comparison with an empty cell breaks a law, too, if the rule does not except it.  Times are seconds, and NaN
is NULL:

workload : the jobs as submitted; `w_at` is the place of a job, and all other columns begin with ``w_``.
held, sizes : see `allocation_pass`.
jobs : ``jobs.parquet`` beside the job (``w_``) and its last allocation (``h_``); `ended` is its column
    ``end``, `never` whether a job should not have run, `ran` whether it did, `first_start` when, `length` the
    seconds after which it ends by itself, and `gap` the seconds for which its last attempt was suspended.
attempts : `id`, `attempt`, `begin`, `until` (inf: it did not end) and `size` of each time in which a job ran;
    a change of its units begins another.  `seconds` are those that it ran, without suspensions.
dependencies : `id`, `n`, `text`, `scheme`, `time` (of begin-time), `delay`, and `other`, the job waited for.
stops : `queue`, and from when until when it `closes` and `opens`.

`RecordedRun.rules` has the run options that are macros without arguments.
"""

from __future__ import annotations

import re
from heapq import heappop, heappush
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from simsched.errors import RunError, SimschedError
from simsched.simulation.audit.allocation_pass import column
from simsched.simulation.audit.audit_report import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from simsched.formats.rfc.dependency import Dependency
    from simsched.simulation.audit.audit_report import AuditReport
    from simsched.simulation.audit.recorded_run import RecordedRun
    from simsched.workload.job import Job

#: Columns without which a table of jobs cannot be audited.
REQUIRED = frozenset(
    ("id", "submit", "start", "end", "result", "reason", "nodes", "cores", "gpus", "duration")
)
#: Columns that tables of earlier versions lack, and those that a run without preemption or job arrays lacks.
USUAL = {"queue": "VARCHAR", "eligible": "DOUBLE", "promised": "DOUBLE", "wait": "DOUBLE",
         "runtime": "DOUBLE", "slots": "BIGINT", "backfilled": "BOOLEAN"}  # fmt: skip
OPTIONAL = ("array_task", "saved", "lost", "suspended", "overhead", "interruptions")
#: Columns that are equal to the workload: column → the value expected.
AS_SUBMITTED = {
    **{name: f"w_{name}" for name in ("name", "user", "bank", "urgency", "submit", "procs", "shape",
                                      "array_task", "depends")},
    "recorded_state": "w_status", "recorded_wait": "w_wait", "recorded_start": "w_submit + w_wait",
    "recorded_energy": "w_energy",
    # a job without a queue may be in any queue, which may have a default duration
    "queue": "CASE WHEN w_queue IS NULL AND queue IN queues() THEN queue ELSE w_queue END",
    "duration": "CASE WHEN w_duration IS NULL AND len(queues()) > 0 THEN duration ELSE w_limit END",
}  # fmt: skip
NUMBERS = ("submit", "runtime", "duration", "urgency", "procs", "wait", "energy", "cancel_at")
TEXTS = ("name", "user", "bank", "queue", "qos", "status")


class AuditTables:
    """The tables of a run; `columns` are those of its table of jobs.

    Raises
    ------
    RunError
        If the table of jobs is not a Parquet file, or lacks a column that is needed.
    """

    def __init__(
        self,
        report: AuditReport,
        recorded: RecordedRun,
        path: Path,
        jobs: Sequence[Job],
        allocations: tuple[Mapping[str, Any], Mapping[str, Any]],
    ) -> None:
        self.report, self.recorded, self.path = report, recorded, path
        self.vague = False
        """Whether R does not determine how many units are in use."""
        self.con = duckdb.connect(":memory:", config={"threads": 1})
        self.columns = self.load("given_jobs", path / "jobs.parquet")
        lacking = sorted(REQUIRED - self.columns.keys())
        if lacking:
            text = f"there is no column {', '.join(map(repr, lacking))}"
            raise RunError(text, where=str(path / "jobs.parquet"))
        self.add("held", allocations[0], failures="DOUBLE[]", queue="VARCHAR")
        self.add("sizes", allocations[1])
        texts = (*TEXTS, "shape", "array_task", "depends")
        self.add("workload", _workload(jobs, recorded), **{f"w_{name}": "VARCHAR" for name in texts})
        kinds = dict.fromkeys(("id", "text", "scheme", "other"), "VARCHAR")
        self.add("dependencies", _dependencies(jobs), **kinds)
        named = [
            f'{_without_nan(name, kind)} AS "{"ended" if name == "end" else name}"'
            for name, kind in self.columns.items()
        ]
        for name, kind in USUAL.items():
            if name not in self.columns:
                named.append(f"NULL::{kind} AS {name}")
                report.notes.append(f"jobs.parquet has no column {name!r}, so it was not compared")
        named += [f"{0 if name != 'array_task' else 'NULL::VARCHAR'} AS {name}"
                  for name in OPTIONAL if name not in self.columns]  # fmt: skip
        named.append("row_number() OVER () AS place")
        self.con.execute(f"CREATE VIEW named_jobs AS SELECT {', '.join(named)} FROM given_jobs")
        preemptible = bool(recorded.queues) and any("preemptible-after" in job.jobspec.system for job in jobs)
        self.preempts = preemptible or recorded.preemption is not None
        """Whether jobs may have been preempted, by a table or by their own attribute."""
        define(self.con, recorded.rules | {"preemptible": preemptible})
        names = ", ".join(f"'{name}'" for name in self.columns)
        self.con.execute(f"CREATE MACRO has(name) AS name IN ({names})")
        stops = [(name, *window) for name, windows in recorded.stops.items() for window in windows]
        self.fill("stops (queue VARCHAR, closes DOUBLE, opens DOUBLE)", stops)
        self.run("tables")

    def load(self, name: str, path: Path) -> dict[str, str]:
        """Name a Parquet file of the run as a view, and return its columns with their types."""
        text = str(path).replace("'", "''")
        try:
            self.con.execute(f"CREATE VIEW {name} AS FROM read_parquet('{text}')")
            found = self.con.execute(f"DESCRIBE {name}").fetchall()
        except duckdb.Error:
            raise RunError("cannot be read", where=str(path), expected="a Parquet file") from None
        return {row[0]: row[1] for row in found}

    def add(self, name: str, columns: Mapping[str, Any], **types: str) -> None:
        """Make a table of columns; texts and lists need their types."""
        given = {key: values for key, values in columns.items() if key not in types}
        items = [f'"{key}"' for key in given]
        for key, kind in types.items():
            # DuckDB 1.2 fails at a sample that holds only None, so what is missing is told beside the values
            missing = np.array([value is None for value in columns[key]], dtype=np.bool_)
            given[f"no {key}"], given[key] = missing, columns[key].copy()
            given[key][missing] = ""
            items.append(f'CASE WHEN "no {key}" THEN NULL ELSE "{key}"::{kind} END AS "{key}"')
        self.con.register("given_columns", given)
        self.con.execute(f"CREATE TABLE {name} AS SELECT {', '.join(items)} FROM given_columns")
        self.con.unregister("given_columns")

    def fill(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Make a small table, of which name and columns are given, with these rows."""
        self.con.execute(f"CREATE TABLE {table}")
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self.con.executemany(f"INSERT INTO {table.partition(' ')[0]} VALUES ({places})", rows)

    def run(self, file: str) -> None:
        """Run the statements of a file beside this module."""
        for statement in statements(file):
            rule = re.search(r"^-- ([A-Z]\d+) ([^:\n]+)", statement, re.MULTILINE)
            if rule is None:
                self.con.execute(statement)
            else:
                self.rule(rule[1], rule[2], statement)

    def rule(self, law: str, of: str, query: str) -> None:
        """Count the rows of a rule, and report those that are wrong."""
        rows = f"({query}) AS rows(id, wrong, text)"
        counts = f"SELECT count(*), count(*) FILTER (WHERE coalesce(wrong, true)) FROM {rows}"
        number, faults = self.con.execute(counts).fetchone() or (0, 0)
        self.report.checked[law, of] = max(self.report.checked[law, of], number)
        if faults:
            wrong = f"SELECT id, text FROM {rows} WHERE coalesce(wrong, true) LIMIT {NAMED}"
            found = self.con.execute(wrong).fetchall()
            for name, fault in found:
                self.report.add(law, name, fault)
            self.report.counts[law] += faults - len(found)

    def check_columns(self) -> None:
        """Check that columns are equal to the workload, and the numbers of ``run.json`` to the table (A7)."""
        for name, value in AS_SUBMITTED.items():
            if name in self.columns:
                self.report.checked["A7", "columns of the workload"] += 1
                show = "q" if self.columns[name] == "VARCHAR" else "t"
                self.rule("A7", "rows", f"""
                    SELECT id, "{name}" IS DISTINCT FROM {value},
                        'the table has {name} ' || {show}("{name}") || ', the workload ' || {show}({value})
                    FROM jobs WHERE w_at IS NOT NULL AND result <> 'DROPPED'""")  # fmt: skip
        recorded, report = self.recorded, self.report
        found = dict(
            self.con.execute("SELECT lower(result), count(*) FROM given_jobs GROUP BY ALL").fetchall()
        )
        started = self.con.execute(
            "SELECT count(*) FILTER (WHERE isfinite(start)) FROM given_jobs"
        ).fetchone()
        total, unfinished = sum(found.values()), found.get("pending", 0) + found.get("running", 0)
        found |= {"jobs": total, "run": started[0] if started else 0, "unfinished": unfinished}
        if recorded.seeds[0] != recorded.seeds[1]:
            text = f"run.json has the seed {recorded.seeds[0]}, and {recorded.seeds[1]} in its configuration"
            report.add("A7", "(all)", text)
        if not recorded.complete and total and not unfinished:
            report.add("A7", "(all)", "run.json records an interrupted run, but every job has ended")
        report.checked["A7", "numbers of run.json"] = len(recorded.counts)
        for name, number in recorded.counts.items():
            if number != found.get(name, 0):
                text = f"run.json counts {number} {name}, the table has {found.get(name, 0)}"
                report.add("A7", "(all)", text)

    def largest(self, name: str, intervals: str, times: str, *, at_once: bool) -> None:
        """Make a table (id, value) of the largest value of intervals that began before a time and end later.

        `intervals` are (begin, end, value), `times` (id, time); `at_once`: an interval counts at its end.
        """
        begins = self.con.execute(f"{intervals} ORDER BY 1").fetchall()[::-1]
        heap: list[tuple[float, float]] = []
        found: list[tuple[str, float]] = []
        for id_, time in self.con.execute(f"{times} ORDER BY 2").fetchall():
            while begins and begins[-1][0] < time:
                _, end, value = begins.pop()
                heappush(heap, (-value, end))
            while heap and (heap[0][1] < time or (heap[0][1] == time and not at_once)):
                heappop(heap)
            found.append((id_, -heap[0][0] if heap else -inf))
        ids, values = zip(*found, strict=True) if found else ((), ())
        self.add(name, {"id": column(ids), "value": column(values, float)}, id="VARCHAR")

    def rows(self, query: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a query, of which some are in memory at a time."""
        cursor = self.con.cursor().execute(query)
        names = [column[0] for column in cursor.description or ()]
        while found := cursor.fetchmany(10_000):
            yield from (dict(zip(names, row, strict=True)) for row in found)


def statements(file: str) -> list[str]:
    """Return the statements of an ``.sql`` file beside this module."""
    text = Path(__file__).with_name(f"{file}.sql").read_text(encoding="utf-8")
    return [part for part in text.split(";\n") if part.strip()]


def define(con: duckdb.DuckDBPyConnection, values: Mapping[str, Any]) -> None:
    """Define macros without arguments, for use in queries."""
    for name, value in values.items():
        con.execute(f"CREATE MACRO {name}() AS {_literal(value)}")


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value)
    if isinstance(value, int | float):
        return f"'{value}'::DOUBLE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"[{', '.join(map(_literal, sorted(value)))}]::VARCHAR[]"


def _without_nan(name: str, kind: str) -> str:
    return f'CASE WHEN isnan("{name}") THEN NULL ELSE "{name}" END' if kind == "DOUBLE" else f'"{name}"'


def _workload(jobs: Sequence[Job], recorded: RecordedRun) -> dict[str, Any]:
    """Return the jobs as columns."""
    found: dict[str, Any] = {"id": column([str(job.id) for job in jobs]), "w_at": np.arange(len(jobs))}
    for name in NUMBERS:
        found[f"w_{name}"] = np.array([getattr(job, name) for job in jobs], dtype=np.float64)
    for name in TEXTS:
        found[f"w_{name}"] = column([getattr(job, name) for job in jobs])
    specs = {id(job.jobspec): job for job in jobs}
    shapes = {key: _shape(job) for key, job in specs.items()}
    times = [recorded.checkpoint_times(job) or (np.nan,) * 3 for job in jobs] if recorded.checkpoints else []
    intervals = (
        np.array(times, dtype=np.float64).reshape(-1, 3).T if times else np.full((3, len(jobs)), np.nan)
    )
    return found | {
        "w_shape": column([shapes[id(job.jobspec)] for job in jobs]),
        "w_array_task": column([None if job.array_task is None else str(job.array_task) for job in jobs]),
        "w_depends": column([",".join(map(str, job.dependencies)) or None for job in jobs]),
        "w_held": np.array([job.hold or job.urgency == 0 for job in jobs], dtype=np.bool_),
        "w_follows": np.array([job.preceding is not None for job in jobs], dtype=np.bool_),
        **dict(zip(("w_interval", "w_cost", "w_restart"), intervals, strict=True)),
    }


def _shape(job: Job) -> str | None:
    try:
        return job.jobspec.to_shape()
    except SimschedError:  # resources that no shape can express
        return None


def _dependencies(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return the dependencies, one row per job that is waited for; one without a job has `other` NULL."""
    arrays: dict[str, dict[int, str]] = {}
    for job in jobs:
        if job.array_task is not None:
            arrays.setdefault(job.array_task.array, {})[job.array_task.index] = str(job.id)
    names = {str(job.id) for job in jobs} if any(job.dependencies for job in jobs) else set()
    rows = [
        (str(job.id), n, str(one), one.scheme, float(one.value) if one.scheme == "begin-time" else np.nan,
         one.delay if one.scheme == "after" else 0.0, other)
        for job in jobs for n, one in enumerate(job.dependencies)
        for other in _antecedents(one, job, names, arrays) or [None]
    ]  # fmt: skip
    kinds = {
        "id": object,
        "n": int,
        "text": object,
        "scheme": object,
        "time": float,
        "delay": float,
        "other": object,
    }
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return {name: column(values, kind) for (name, kind), values in zip(kinds.items(), columns, strict=True)}


def _antecedents(
    dependency: Dependency, job: Job, names: set[str], arrays: Mapping[str, Mapping[int, str]]
) -> Sequence[str | None]:
    """Return the names of the jobs that a dependency names: of a job, a task, or all tasks of an array."""
    tasks, task = arrays.get(dependency.value), job.array_task
    array, _, index = dependency.value.rpartition("_")
    if dependency.scheme == "aftercorr":
        return [tasks[task.index]] if tasks and task is not None and task.index in tasks else []
    if tasks is not None:
        return list(tasks.values())
    if dependency.value not in names and index.isascii() and index.isdigit() and len(index) <= 18:
        task_of = arrays.get(array, {})
        return [task_of[int(index)]] if int(index) in task_of else []
    return [dependency.value] if dependency.value in names else []
