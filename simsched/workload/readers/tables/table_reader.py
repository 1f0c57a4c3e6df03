"""`read_table`: a table of jobs into a workload, whole columns at a time.

DuckDB reads the file and computes the columns of the map, the reasons to leave rows out, and the different
requests.  Jobs are then made in blocks of `BLOCK` rows, so that ten million of them fit into memory.
"""

from __future__ import annotations

from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, WorkloadError
from simsched.garbage import collector_paused
from simsched.workload.dependencies import log_dependencies, refuse_cycles, with_known_dependencies
from simsched.workload.job import FIRST_PLACES, ArrayTask, Skip, Workload, in_submit_order
from simsched.workload.mapping import GPU_TEMPLATE
from simsched.workload.readers.gather import Gather, hosts_of
from simsched.workload.readers.tables.column_map import (
    ATTRIBUTES,
    OUTCOMES,
    presets_for,
    without_absent_energy,
)
from simsched.workload.readers.tables.relation import open_relation, rows_within
from simsched.workload.readers.tables.table_rows import FILTERED, JOBS, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from simsched.formats.rfc.dependency import Dependency
    from simsched.workload.job import Job
    from simsched.workload.mapping import ReadOptions
    from simsched.workload.readers.tables.column_map import ColumnMap
    from simsched.workload.source import Source

BLOCK = 500_000
MOST_LISTED = 1000
"""The most rows of one reason that are listed; the others are counted."""


def read_table(given: Source | Any, reading: ReadOptions) -> Workload:
    """Read a file, a folder of Parquet files, or a data frame by the column map of `reading`.

    Without a map, a preset is used if its columns are those of the table.

    Raises
    ------
    ConfigError
        without a map and a preset, and for a map that does not fit the table.
    FormatError, WorkloadError
        for content that cannot be read, and at the first ignored row under `strict`.
    """
    columns, note = reading.table, ""
    if columns is None:
        columns = recognised(given, reading.source)
        note = f"read as {columns.name}: {columns.dataset}"
    if reading.time_zone is not None:
        columns = columns.replace(zone=reading.time_zone)
    with open_relation(given, reading.source, columns) as relation:
        columns = without_absent_energy(columns, relation.columns)
        rows = Rows(relation, columns)
        rows.prepare(reading.limit)
        with collector_paused():
            return _Jobs(rows, reading, [note] if note else []).workload()


def recognised(given: Source | Any, name: str) -> ColumnMap:
    """Return the preset whose columns a table has; ConfigError if there is none, or several."""
    with open_relation(given, name) as relation:
        found = presets_for(relation.columns, relation.form) or presets_for(
            rows_within(relation).columns, relation.form
        )
        if len(found) == 1:
            return found[0]
        columns = ", ".join(relation.columns)
    fault = f"no preset fits the columns {columns}"
    expected = "--columns MAP.yaml; 'simsched workload columns FILE' proposes a map"
    if found:
        names = ", ".join(one.name for one in found)
        fault, expected = f"several presets fit these columns: {names}", "one, by --columns NAME"
    raise ConfigError(fault, where=name, expected=expected)


class _Jobs:
    """Makes the jobs of the rows of one table."""

    def __init__(self, rows: Rows, reading: ReadOptions, notes: list[str]) -> None:
        columns = rows.columns
        self.rows = rows
        self.reading = reading
        with_gpus = GPU_TEMPLATE if columns.splits_gpus else None
        self.gather = Gather(reading, "table", columns.template(), with_gpus)
        self.notes = [*notes, *rows.notes]
        self.unread: dict[str, list[str]] = {}
        self.parsed: dict[str, dict[Any, Any]] = {}
        key = rows.relation.rows_key
        if key and not columns.rows:
            self.notes.append(f"the rows are those of the key {key!r}")

    def workload(self) -> Workload:
        """Return the workload; ``UnixStartTime`` of its header is the time that became second 0."""
        self._skip_rejects()
        self._skip_rows()
        ((first,),) = self.rows.relation.rows(f"select min(submit) from {JOBS} where reason is null")
        base = floor(first / 1_000_000) if first is not None else 0
        jobs = in_submit_order(self._jobs(base))
        if "depends" in self.rows.items:
            jobs, lost = with_known_dependencies(jobs)
            refuse_cycles(jobs)
            if lost:
                self.notes.append(f"dependencies on jobs that are not in the table: {lost:,}, left out")
        header = {"UnixStartTime": str(base)}
        if self.rows.columns.name:
            header["ColumnMap"] = self.rows.columns.name
        columns = self.rows.columns
        submit = columns.columns.get("submit")
        if zone := columns.zone or (submit.zone if submit is not None else None):
            header["TimeZoneString"] = zone
        skips = self.gather.skips
        return Workload(
            jobs=jobs,
            name=self.reading.name,
            source=self.reading.source,
            header=header,
            skipped=tuple(skips.records),
            skipped_counts=dict(skips.counts),
            total_records=len(jobs) + sum(skips.counts.values()),
            kind="table",
            notes=(*self.notes, *self._read_notes(), *self.gather.unused()),
        )

    # -- ignored rows --------------------------------------------------------------

    def _skip_rejects(self) -> None:
        """Ignore the lines of a CSV file that are not rows."""
        if self.rows.relation.form != "csv":
            return
        found = self.rows.relation.rows(
            "select line, max(error_type::varchar), min(csv_line) from reject_errors "
            "group by line order by line"
        )
        for line, kind, text in found:
            self.gather.skip(str(line), _REJECTED.get(kind, f"a line with {kind.lower()}"), str(text))

    def _skip_rows(self) -> None:
        """Ignore the rows that are not jobs: all are counted, the first of each reason listed."""
        skips = self.gather.skips
        found = self.rows.relation.rows(
            f"select reason, row, id, text from (select *, row_number() over "
            f"(partition by reason order by row) as nth from {JOBS} where reason is not null) "
            f"where nth <= {MOST_LISTED} order by row"
        )
        for reason, row, id_, text in found:
            known = self.rows.reasons[reason]
            skips.add(Skip(self._place(row), known, (text or "")[:200], id_), listed=known != FILTERED)
        counts = self.rows.relation.rows(
            f"select reason, count(*) from {JOBS} where reason is not null group by reason order by reason"
        )
        for reason, count in counts:
            skips.counts[self.rows.reasons[reason]] = count

    def _place(self, row: int) -> str:
        return f"{self.reading.source}: row {row + 1}"

    # -- jobs ----------------------------------------------------------------------

    def _jobs(self, base: int) -> Iterator[Job]:
        """Yield the jobs of the table, in the order of its rows."""
        import numpy as np

        ((count,),) = self.rows.relation.rows(f"select count(*) from {JOBS}")
        for begin in range(0, count, BLOCK):
            found: dict[str, Any] = self.rows.relation.con.execute(
                f"select * from {JOBS} where rowid >= {begin} and rowid < {begin + BLOCK} and reason is null"
            ).fetchnumpy()
            order = np.argsort(found["row"], kind="stable")  # an order in SQL takes six times as long
            if bool((order[1:] < order[:-1]).any()):
                found = {name: values[order] for name, values in found.items()}
            values = partial(self._values, found)
            skip = partial(self._skip, found["row"].tolist(), values("id"))
            columns = self._columns(found, base)
            yield from self.gather.of_columns(columns, skip, values("gpus"), *map(values, ATTRIBUTES))

    def _skip(self, rows: Sequence[int], ids: Sequence[Any], at: int, reason: str) -> None:
        listed = self.gather.skips.counts.get(reason, 0) < MOST_LISTED or self.reading.strict
        self.gather.skips.add(Skip(self._place(rows[at]), reason, "", ids[at]), listed=listed)

    def _columns(self, found: dict[str, Any], base: int) -> dict[str, Sequence[Any]]:
        """Return the columns of jobs, by field, one entry per row."""
        values = partial(self._values, found)
        shared: dict[Any, Any] = {}
        limits = _seconds(found["limit"]) if "limit" in found else values("limit")
        queue = values("queue")
        return {
            **{name: values(name) for name in ("id", "user", "group", "name", "nodes", "energy", "qos")},
            "submit": _seconds(found["submit"] - base * 1_000_000),
            "runtime": _seconds(found["runtime"]),
            "duration": [shared.setdefault(value, value) for value in limits],
            "queue": queue,
            "partition": queue,
            "bank": values("account"),
            "procs": values("cores"),
            "memory": [shared.setdefault(value, value) for value in values("memory")],
            "wait": _seconds(found["wait"]),
            "status": [_RESULT.get(code) for code in values("state")],
            "dependencies": self._dependencies(found, base),
            "nodelist": list(map(hosts_of, values("nodelist"))),
            "array_task": self._parsed("array_task", values("array_task"), _task, None),
        }

    def _values(self, found: dict[str, Any], name: str) -> list[Any]:
        """Return the values of a column, with texts in the place of their codes; None where it is absent."""
        if name not in found:
            return [None] * len(found["row"])
        values: list[Any] = found[name].tolist()
        known = self.rows.names.get(name)
        return values if known is None else [None if code is None else known[code] for code in values]

    def _dependencies(self, found: dict[str, Any], base: int) -> list[tuple[Dependency, ...]]:
        """Return the dependencies, after those on an eligible time later than the submission."""
        given = self._parsed("depends", self._values(found, "depends"), log_dependencies, ())
        if "eligible" not in found:
            return given
        from simsched.formats.rfc.dependency import Dependency

        times = _seconds(found["eligible"] - base * 1_000_000)
        return [
            own if at is None else (Dependency("begin-time", f"{at:.15g}"), *own)
            for at, own in zip(times, given, strict=True)
        ]

    def _parsed(self, name: str, texts: list[str | None], read: Callable[[str], Any], none: Any) -> list[Any]:
        """Return the values of a column of texts; each text is read once, and noted if it is not one."""
        known = self.parsed.setdefault(name, {None: none})
        for text in dict.fromkeys(texts):
            if text is not None and text not in known:
                known[text] = read(text)
                if not known[text]:
                    self.unread.setdefault(name, []).append(text)
        return [known[text] for text in texts]

    def _read_notes(self) -> Iterator[str]:
        """Yield one sentence per column with texts that could not be read."""
        for name, texts in self.unread.items():
            shown = ", ".join(map(repr, texts[:FIRST_PLACES])) + (", …" if len(texts) > FIRST_PLACES else "")
            yield f"{name}: {len(texts):,} texts were not understood: {shown}"


def _task(text: str) -> ArrayTask | None:
    try:
        return ArrayTask.parse(text)
    except WorkloadError:
        return None


_RESULT = dict(enumerate(OUTCOMES[:4]))
_REJECTED = {
    "CAST": "a value that is not of the type of its column",
    "MISSING COLUMNS": "fewer cells than the header has",
    "TOO MANY COLUMNS": "more cells than the header has",
}
"""DuckDB's kinds of lines that are not rows → our reasons."""


def _seconds(microseconds: Any) -> list[Any]:
    """Return microseconds as seconds; whole ones as int, absent ones as None."""
    if not len(microseconds) or not (microseconds % 1_000_000).any():
        whole_ones: list[Any] = (microseconds // 1_000_000).tolist()
        return whole_ones
    return [
        None if value is None else value // 1_000_000 if value % 1_000_000 == 0 else round(value / 1e6, 6)
        for value in microseconds.tolist()
    ]
