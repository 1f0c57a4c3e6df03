"""Column maps: which columns of a table of jobs mean what, and in which units.

The JSON Schema ``column-map`` defines the documents; docs/workloads.md describes the keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import ConfigError
from simsched.formats.text.diagnostics import located
from simsched.formats.text.documents import load_document, name_of, read_text
from simsched.formats.text.schemas import first_fault

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMES = ("submit", "eligible", "start", "end")
DURATIONS = ("runtime", "limit")
COUNTS = ("nodes", "cores", "gpus")
NAMES = ("user", "group", "account", "queue", "name")
TEXTS = (*NAMES, "nodelist", "qos", "array_task", "depends")
"""Columns of texts that occur again; all of them but `NAMES` are optional facts of a job."""
ATTRIBUTES = ("licenses", "reservation", "checkpoint_interval")
"""Texts that become attributes (``attributes.system``) of the request."""
ROWS = ("cores", "nodes", "gpus")
"""Words for the request of a row."""

ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """The source of one value of a job: a column or an expression in SQL, and how it is read.

    `format` and `zone` belong to times, `unit` to durations, memory and energy, `per` to memory, and
    `values` to states.  Values in `missing` are read as absent.
    """

    column: str = ""
    expression: str = ""
    format: str = ""
    zone: str = ""
    unit: str = ""
    per: str = "job"
    missing: tuple[str | float, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The column or the expression, for messages."""
        return self.column or self.expression


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """A column map; the first four texts say which data set it is for.

    `columns` has the names of `TIMES`, `DURATIONS`, `COUNTS`, `TEXTS`, `ATTRIBUTES`, and ``id``, ``memory``,
    ``state``, ``energy``.  `header` names the columns of a table without a header, `rows` the key of a
    JSON document that has the rows.
    """

    columns: Mapping[str, MappedColumn]
    name: str = ""
    dataset: str = ""
    doi: str = ""
    cite: str = ""
    url: str = ""
    notes: tuple[str, ...] = ()
    format: str = ""
    header: tuple[str, ...] = ()
    delimiter: str = ""
    filter: str = ""
    zone: str = ""
    row: str = ""
    rows: str = ""
    where: str = "column map"

    @property
    def needed(self) -> frozenset[str]:
        """The names of the columns that the map reads as they are, in lower case."""
        return frozenset(item.column.lower() for item in self.columns.values() if item.column)

    def template(self) -> str:
        """Return the template of a request without gpus."""
        if self.row and self.row not in ROWS:
            return self.row
        if self.row == "nodes" or (not self.row and "cores" not in self.columns and "nodes" in self.columns):
            return "slot={nodes}/node"
        if self.row == "gpus" or (not self.row and "cores" not in self.columns):
            return "slot={gpus}/gpu"
        return "slot={procs}/core"

    @property
    def splits_gpus(self) -> bool:
        """Whether rows with gpus have a template of their own, with the processors of each gpu."""
        return self.row in {"", "cores"} and {"cores", "gpus"} <= self.columns.keys()


def read_column_map(path: str | Path) -> ColumnMap:
    """Read a column map from a file, YAML or JSON.

    Raises
    ------
    FormatError
        with line, column and path of a value that the schema does not allow.
    ConfigError
        for a map whose columns do not make a job.
    """
    text, where = read_text(path), name_of(path)
    return column_map(load_document(text, where), text, where)


def column_map(content: Any, text: str = "", where: str = "column map") -> ColumnMap:
    """Return the column map of a document; errors as `read_column_map`.

    >>> column_map({"columns": {"submit": "t", "runtime": "seconds", "cores": "n"}}).template()
    'slot={procs}/core'
    >>> column_map({"columns": {"submit": "t", "cores": "n"}})
    Traceback (most recent call last):
    simsched.errors.ConfigError: column map: columns: no run time (expected runtime, or start and end)
    """
    fault = first_fault("column-map", content, where)
    if fault is not None:
        raise (located([fault], text, where)[0] if text else fault).error()
    columns = {name: _column(value, f"{where}: columns.{name}") for name, value in content["columns"].items()}
    _check_columns(columns, where)
    _check_expressions(columns, content.get("filter", ""), where)
    rest: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in content.items()
    }
    rest.update(columns=columns, where=where)
    return ColumnMap(**rest)


def _column(value: Any, where: str) -> MappedColumn:
    """Return one entry of ``columns``: a text is the name of a column."""
    if isinstance(value, str):
        return MappedColumn(column=value)
    if ("column" in value) == ("expression" in value):
        raise ConfigError(
            "the source of the value is not clear", where=where, expected="column or expression"
        )
    options: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in value.items()}
    return MappedColumn(**options)


def _check_columns(columns: Mapping[str, MappedColumn], where: str) -> None:
    """Raise ConfigError where a run time or a size is missing."""
    if "runtime" not in columns and not {"start", "end"} <= columns.keys():
        raise ConfigError("no run time", where=f"{where}: columns", expected="runtime, or start and end")
    if columns.keys().isdisjoint((*COUNTS, "nodelist")):
        raise ConfigError("no size", where=f"{where}: columns", expected=", ".join((*COUNTS, "nodelist")))


def _check_expressions(columns: Mapping[str, MappedColumn], condition: str, where: str) -> None:
    """Raise ConfigError for an expression or filter that is not one expression in SQL."""
    from simsched.workload.readers.tables.column_expressions import columns_in

    for name, item in columns.items():
        if item.expression:
            columns_in(item.expression, f"{where}: columns.{name}")
    if condition:
        columns_in(condition, f"{where}: filter")


def is_column_map(value: object, presets: Iterable[str]) -> bool:
    """Whether a value that a user gives is a column map: the map, its document, its file or a preset.

    >>> is_column_map("jobs.yaml", ()), is_column_map("slot={procs}/core", ()), is_column_map("a", ["a"])
    (True, False, True)
    """
    if isinstance(value, ColumnMap | Mapping):
        return True
    if not isinstance(value, str | Path):
        return False
    return str(value) in set(presets) or str(value).endswith((*ENDINGS, ".json"))
