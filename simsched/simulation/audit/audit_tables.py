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
dependencies : `id`, `n`, `text`, `scheme`, `value`, `time` (of begin-time), `delay`, and in one row for each
    of them `other`, the job that is waited for.
stops : `queue`, and from when until when it `closes` and `opens`.

`RecordedRun.rules` has the run options that are macros without arguments.
"""

from __future__ import annotations

import json
import re
from heapq import heappop, heappush
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import numpy as np

from simsched.errors import RunError, SimschedError
from simsched.formats.rfc.constraint import gpu_type_of
from simsched.simulation.audit.allocation_pass import HELD, SIZES
from simsched.simulation.audit.audit_report import NAMED
from simsched.simulation.audit.reserved_nodes import reservation_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from simsched.simulation.audit.allocation_pass import AllocationPass
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
WORKLOAD = """workload (id VARCHAR, w_at BIGINT, w_submit DOUBLE, w_runtime DOUBLE, w_duration DOUBLE,
    w_urgency DOUBLE, w_procs DOUBLE, w_wait DOUBLE, w_energy DOUBLE, w_cancel_at DOUBLE, w_name VARCHAR,
    w_user VARCHAR, w_bank VARCHAR, w_queue VARCHAR, w_qos VARCHAR, w_status VARCHAR, w_shape VARCHAR,
    w_gpu_type VARCHAR, w_array_task VARCHAR, w_array VARCHAR, w_index VARCHAR, w_tasks DOUBLE,
    w_depends VARCHAR, w_held BOOLEAN, w_follows BOOLEAN, w_reservation VARCHAR, w_after DOUBLE,
    w_interval DOUBLE, w_cost DOUBLE, w_restart DOUBLE)"""
NUMBERS = {"BIGINT": np.int64, "DOUBLE": np.float64, "BOOLEAN": np.bool_}
"""Types of columns without missing values, or with NaN for them → dtype."""
BATCH = 100_000
"""Rows that are in memory as Python values at a time."""


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
        held: AllocationPass,
    ) -> None:
        self.report, self.recorded, self.path = report, recorded, path
        self.vague = held.is_vague
        """Whether R does not determine how many units are in use."""
        self.con = duckdb.connect(":memory:", config={"threads": 1})
        self.columns = self.load("given_jobs", path / "jobs.parquet")
        lacking = sorted(REQUIRED - self.columns.keys())
        if lacking:
            text = f"there is no column {', '.join(map(repr, lacking))}"
            raise RunError(text, where=str(path / "jobs.parquet"))
        self.add(HELD, map(msgspec.structs.astuple, held.rows))
        self.add(SIZES, held.sizes)
        specs = {id(job.jobspec): job for job in jobs}
        of_request = {key: (_shape(job), gpu_type_of(job.jobspec.constraint)) for key, job in specs.items()}
        self.add(
            WORKLOAD,
            (_of_job(at, job, recorded, of_request) for at, job in enumerate(jobs)),
        )
        self.add(
            "given_dependencies (id VARCHAR, n BIGINT, text VARCHAR, scheme VARCHAR, value VARCHAR, "
            "delay DOUBLE, time DOUBLE)",
            ((str(job.id), n, str(one), one.scheme, one.value, one.delay if one.scheme == "after" else 0,
                   one.value if one.scheme == "begin-time" else None)
                  for job in jobs for n, one in enumerate(job.dependencies)),
        )  # fmt: skip
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
        self.add(
            "stops (queue VARCHAR, closes DOUBLE, opens DOUBLE)",
            ((name, *one) for name, windows in recorded.stops.items() for one in windows),
        )
        counts = ((name, str(number)) for name, number in recorded.counts.items())
        self.add("counts (name VARCHAR, number VARCHAR)", counts)
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

    def add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Make a table, whose name and columns are given as in ``stops (queue VARCHAR, closes DOUBLE)``.

        What rows have beyond these columns is left out.
        """
        self.con.execute(f"CREATE TABLE {table}")
        kinds = re.findall(r"\w+ ([A-Z]+(?:\[\])?)[,)]", table)
        left = iter(rows)
        while batch := list(islice(left, BATCH)):
            given: dict[str, npt.NDArray[Any]] = {}
            items: list[str] = []
            for at, (kind, values) in enumerate(zip(kinds, zip(*batch, strict=True), strict=False)):
                if kind in NUMBERS:
                    given[f"v{at}"] = np.array(values, dtype=NUMBERS[kind])
                    items.append(f"v{at}")
                    continue
                # DuckDB 1.2 fails at a sample of None alone, so what is missing is told beside the values
                given[f"known{at}"] = np.array([value is not None for value in values], dtype=np.bool_)
                texts = given[f"v{at}"] = np.empty(len(values), dtype=object)
                # and takes lists beside texts as what Python shows of them, so they are told as JSON
                lists = kind.endswith("[]")
                for row, value in enumerate(values):
                    texts[row] = json.dumps(value) if lists else "" if value is None else value
                cast = f"JSON::{kind}" if lists else kind
                items.append(f"if(known{at}, v{at}::{cast}, NULL)")
            self.con.register("given", given)
            self.con.execute(f"INSERT INTO {table.partition(' ')[0]} SELECT {', '.join(items)} FROM given")
            self.con.unregister("given")

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
        first, second = self.recorded.seeds
        if first != second:
            text = f"run.json has the seed {first}, and {second} in its configuration"
            self.report.add("A7", "(all)", text)
        self.run("counts")

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
        self.add(f"{name} (id VARCHAR, value DOUBLE)", found)


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


def _of_job(
    at: int, job: Job, recorded: RecordedRun, of_request: Mapping[int, tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Return the row of a job in `WORKLOAD`; shape and type of GPUs by the id() of the jobspec are given."""
    task, system = job.array_task, job.jobspec.system
    array = (None,) * 4 if task is None else (str(task), task.array, str(task.index), task.limit)
    return (
        *(str(job.id), at, job.submit, job.runtime, job.duration, job.urgency, job.procs, job.wait),
        *(job.energy, job.cancel_at, job.name, job.user, job.bank, job.queue, job.qos, job.status),
        *(*of_request[id(job.jobspec)], *array, ",".join(map(str, job.dependencies)) or None),
        *(job.hold or job.urgency == 0, job.preceding is not None),
        *(reservation_named(job), system.get("preemptible-after")),
        *(recorded.checkpoint_times(job) or (None,) * 3),
    )


def _shape(job: Job) -> str | None:
    try:
        return job.jobspec.to_shape()
    except SimschedError:  # resources that no shape can express
        return None
