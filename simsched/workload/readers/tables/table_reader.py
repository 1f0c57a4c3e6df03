"""`read_table`: a table of jobs into a workload, whole columns at a time.

DuckDB reads the file and computes the columns of the map, the reasons to leave rows out, and the different
requests.  Jobs are then made in blocks of `BLOCK` rows, so that ten million of them fit into memory.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError, WorkloadError
from simsched.garbage import collector_paused
from simsched.workload.dependencies import log_dependencies, refuse_cycles, with_known_dependencies
from simsched.workload.job import FIRST_PLACES, ArrayTask, Job, Skip, Workload
from simsched.workload.mapping import GPU_TEMPLATE, Flat
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
    from collections.abc import Iterator, Sequence

    import numpy as np
    import numpy.typing as npt

    from simsched.formats.jobspec.jobspec import Jobspec
    from simsched.formats.rfc.dependency import Dependency
    from simsched.workload.mapping import ReadOptions
    from simsched.workload.readers.tables.column_map import ColumnMap
    from simsched.workload.readers.tables.relation import Relation
    from simsched.workload.source import Source

BLOCK = 500_000
MOST_LISTED = 1000
"""The most rows of one reason that are listed; the others are counted."""
_COUNTS = ("cores", "nodes", "gpus", "memory", "queue")


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
        return recognised_of(relation)


def recognised_of(relation: Relation) -> ColumnMap:
    """Return the preset of an open table; errors as `recognised`."""
    found = presets_for(relation.columns, relation.form) or presets_for(
        rows_within(relation).columns, relation.form
    )
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(one.name for one in found)
        raise ConfigError(
            f"several presets fit these columns: {names}",
            where=relation.name,
            expected="one, by --columns NAME",
        )
    raise ConfigError(
        f"no preset fits the columns {', '.join(relation.columns)}",
        where=relation.name,
        expected="--columns MAP.yaml; 'simsched workload columns FILE' proposes a map",
    )


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
        self._dependencies_of: dict[str | None, tuple[Dependency, ...]] = {}
        key = rows.relation.rows_key
        if key and not columns.rows:
            self.notes.append(f"the rows are those of the key {key!r}")

    def workload(self) -> Workload:
        """Return the workload; ``UnixStartTime`` of its header is the time that became second 0."""
        self._skip_rejects()
        self._skip_rows()
        ((first,),) = self.rows.select(f"select min(submit) from {JOBS} where reason is null")
        base = floor(first / 1_000_000) if first is not None else 0
        self._number_requests()
        jobs = self._in_order(base)
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
        found = self.rows.select(
            "select line, max(error_type::varchar), min(csv_line) from reject_errors "
            "group by line order by line"
        )
        for line, kind, text in found:
            self.gather.skip(str(line), _REJECTED.get(kind, f"a line with {kind.lower()}"), str(text))

    def _skip_rows(self) -> None:
        """Ignore the rows that are not jobs: all are counted, the first of each reason listed."""
        skips = self.gather.skips
        found = self.rows.select(
            f"select reason, row, id from (select *, row_number() over "
            f"(partition by reason order by row) as nth from {JOBS} where reason is not null) "
            f"where nth <= {MOST_LISTED} order by row"
        )
        for reason, row, id_ in found:
            known = self.rows.reasons[reason]
            text = self.rows.texts.get(row, "")[:200]
            place = f"{self.reading.source}: row {row + 1}"
            skips.add(Skip(place, known, text, id_), listed=known != FILTERED)
        counts = self.rows.select(
            f"select reason, count(*) from {JOBS} where reason is not null group by reason order by reason"
        )
        for reason, count in counts:
            skips.counts[self.rows.reasons[reason]] = count

    # -- jobs ----------------------------------------------------------------------

    def _number_requests(self) -> None:
        names = ", ".join(self._keys())
        self.rows.relation.rows(
            f"create temp table requests as select *, row_number() over () - 1 as request from "
            f"(select distinct {names} from {JOBS} where reason is null)"
        )

    def _keys(self) -> list[str]:
        """Return the columns on which a request depends."""
        items = self.rows.items
        have = {*items, *self.rows.names, *(["nodes"] if self.rows.sized_by_nodelist else [])}
        return [name for name in _COUNTS if name in have and (name != "queue" or name in self.rows.names)]

    def _requests(self) -> list[Jobspec | str]:
        """Return the jobspec of each request by its number, or the reason why it has none."""
        keys = self._keys()
        found = self.rows.select(f"select {', '.join(keys)} from requests order by request")
        queues = self.rows.names.get("queue", [])
        made = []
        for row in found:
            key = dict(zip(keys, row, strict=True))
            flat = Flat(
                procs=key.get("cores"), nodes=key.get("nodes"), gpus=key.get("gpus"), memory=key.get("memory")
            )
            queue = key.get("queue")
            name = None if queue is None else queues[queue]
            made.append(self.gather.request(flat, queue=name, partition=name))
        return made

    def _in_order(self, base: int) -> tuple[Job, ...]:
        """Return the jobs by submit time; equal times keep the order of the rows."""
        import numpy as np

        jobs: list[Job] = []
        keys: list[npt.NDArray[np.int64]] = []
        requests = self._requests()
        ((count,),) = self.rows.select(f"select count(*) from {JOBS}")
        for begin in range(0, count, BLOCK):
            made, submits = self._block(begin, base, requests)
            jobs.extend(made)
            keys.append(submits)
        submits = np.concatenate(keys) if keys else np.empty(0, dtype=np.int64)
        if bool((submits[1:] >= submits[:-1]).all()):
            return tuple(jobs)
        order = np.argsort(submits, kind="stable").tolist()
        return tuple(map(jobs.__getitem__, order))

    def _block(
        self, begin: int, base: int, requests: Sequence[Jobspec | str]
    ) -> tuple[list[Job], npt.NDArray[np.int64]]:
        """Return the jobs of a block of rows and their submit times."""
        import numpy as np

        joined = " and ".join(f"j.{name} is not distinct from r.{name}" for name in self._keys())
        found: dict[str, Any] = self.rows.relation.con.execute(
            f"select j.*, request from {JOBS} j join requests r on {joined} "
            f"where j.rowid >= {begin} and j.rowid < {begin + BLOCK} and reason is null"
        ).fetchnumpy()
        order = np.argsort(found["row"], kind="stable")  # an order in SQL takes six times as long
        if bool((order[1:] < order[:-1]).any()):
            found = {name: values[order] for name, values in found.items()}
        specs = [requests[number] for number in found["request"].tolist()]
        if any(isinstance(spec, str) for spec in requests):
            keep = [index for index, spec in enumerate(specs) if not isinstance(spec, str)]
            self._skip_requests(found, specs)
            found = {name: values[keep] for name, values in found.items()}
            specs = [specs[index] for index in keep]
        submits = np.asarray(found["submit"], dtype=np.int64)
        return list(map(_job, *self._fields(found, specs, base))), submits

    def _skip_requests(self, found: dict[str, Any], specs: Sequence[Jobspec | str]) -> None:
        """Ignore the rows whose request cannot be made."""
        for row, id_, spec in zip(found["row"].tolist(), found["id"].tolist(), specs, strict=True):
            if isinstance(spec, str):
                listed = self.gather.skips.counts.get(spec, 0) < MOST_LISTED or self.gather.skips.strict
                place = f"{self.reading.source}: row {row + 1}"
                self.gather.skips.add(Skip(place, spec, "", id_), listed=listed)

    def _fields(self, found: dict[str, Any], specs: Sequence[Any], base: int) -> list[Sequence[Any]]:
        """Return the columns of `_job`, one entry per row."""
        none = [None] * len(specs)
        shared: dict[Any, Any] = {}

        def listed(name: str) -> list[Any]:
            return found[name].tolist() if name in found else none

        return [
            found["id"].tolist(),
            _seconds(found["submit"] - base * 1_000_000),
            specs
            if self.rows.names.keys().isdisjoint(ATTRIBUTES)
            else list(map(self.gather.attributed, specs, *(self._names(x, listed(x)) for x in ATTRIBUTES))),
            _seconds(found["runtime"]),
            [shared.setdefault(value, value) for value in _seconds(found["limit"])]
            if "limit" in found
            else none,
            *(self._names(name, listed(name)) for name in ("user", "group", "queue", "account", "name")),
            listed("cores"),
            listed("nodes"),
            [shared.setdefault(value, value) for value in listed("memory")],
            _seconds(found["wait"]),
            [_RESULT.get(code) for code in listed("state")],
            self._dependencies(found, base),
            listed("energy"),
            self._names("nodelist", listed("nodelist")),
            self._names("qos", listed("qos")),
            self._tasks(listed("array_task")),
        ]

    def _names(self, name: str, codes: list[Any]) -> Sequence[str | None]:
        known = self.rows.names.get(name, [])
        return [None if code is None else known[code] for code in codes]

    def _dependencies(self, found: dict[str, Any], base: int) -> Sequence[tuple[Dependency, ...]]:
        """Return a begin-time dependency for each eligible time after the submission."""
        if "eligible" not in found and "depends" not in found:
            return [()] * len(found["id"])
        from simsched.formats.rfc.dependency import Dependency

        begins: list[tuple[Dependency, ...]] = [()] * len(found["id"])
        if "eligible" in found:
            times = _seconds(found["eligible"] - base * 1_000_000)
            begins = [() if at is None else (Dependency("begin-time", f"{at:.15g}"),) for at in times]
        if "depends" not in found:
            return begins
        given = self._names("depends", found["depends"].tolist())
        return [(*first, *self._depends(text)) for first, text in zip(begins, given, strict=True)]

    def _depends(self, text: str | None) -> tuple[Dependency, ...]:
        """Return the dependencies of a cell, as Slurm or RFC 26 write them; each text is read once."""
        found = self._dependencies_of.get(text)
        if found is None:
            found = self._dependencies_of[text] = log_dependencies(text or "")
            if not found and text:
                self.unread.setdefault("depends", []).append(text)
        return found

    def _tasks(self, codes: list[Any]) -> Sequence[ArrayTask | None]:
        """Return the tasks of job arrays; a text that is not one is noted."""
        known: dict[Any, ArrayTask | None] = {None: None}
        for code in dict.fromkeys(codes):
            text = "" if code is None else self.rows.names["array_task"][code]
            if text:
                try:
                    known[code] = ArrayTask.parse(text)
                except WorkloadError:
                    known[code] = None
                    self.unread.setdefault("array_task", []).append(text)
        return [known[code] for code in codes]

    def _read_notes(self) -> Iterator[str]:
        """Yield one sentence per column with texts that could not be read."""
        for name, texts in self.unread.items():
            shown = ", ".join(map(repr, texts[:FIRST_PLACES])) + (", …" if len(texts) > FIRST_PLACES else "")
            yield f"{name}: {len(texts):,} texts were not understood: {shown}"


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


def _job(
    id_: Any, submit: float, jobspec: Jobspec, runtime: float, duration: float | None, user: str | None,
    group: str | None, queue: str | None, bank: str | None, name: str | None, procs: int | None,
    nodes: int | None, memory: int | None, wait: float | None, status: str | None,
    dependencies: tuple[Dependency, ...], energy: int | None, nodelist: str | None,
    qos: str | None, task: ArrayTask | None,
) -> Job:  # fmt: skip
    return Job(
        id=id_, submit=submit, jobspec=jobspec, runtime=runtime, duration=duration, user=user, group=group,
        queue=queue, partition=queue, bank=bank, name=name, procs=procs, nodes=nodes, memory=memory,
        wait=wait, status=status, dependencies=dependencies, energy=energy, nodelist=hosts_of(nodelist),
        qos=qos, array_task=task,
    )  # fmt: skip
