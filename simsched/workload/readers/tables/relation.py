"""Files and data frames as one DuckDB view, in a connection that can read nothing else."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from simsched.errors import ConfigError, FormatError, SimschedError, first_line
from simsched.files import glob_free, undone
from simsched.formats.text.decompression import opened
from simsched.workload.source import Source, is_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    from duckdb import DuckDBPyConnection

    from simsched.workload.readers.tables.column_map import ColumnMap

VIEW = "source"
_NULLS = ("", "NULL", "null", "NA", "N/A", "NaN", "nan", "None", "NaT", "<NA>", "\\N")
"""Cells of a CSV file that are absent values."""
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of a compressed file → DuckDB's name of the compression."""
MEMORY = "3GB"
"""The most memory that DuckDB takes; it uses files in a temporary folder beyond that."""


@dataclass(frozen=True, slots=True)
class Relation:
    """An open connection with the view `VIEW`: its columns (name → type), and its form.

    `form` is ``csv``, ``json``, ``parquet`` or ``frame``, `name` the name of the source in messages.
    `rows_key` is the key of a JSON document with the rows, if they are inside one.
    """

    con: DuckDBPyConnection
    columns: dict[str, str]
    form: str
    name: str
    rows_key: str = ""

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query; FormatError for DuckDB's errors."""
        import duckdb

        try:
            found: list[tuple[Any, ...]] = self.con.execute(query, parameters or None).fetchall()
        except (duckdb.Error, RuntimeError, ValueError) as error:  # text that is not UTF-8
            raise FormatError(first_line(error), where=self.name) from None
        return found


@contextmanager
def open_relation(given: Source | Any, name: str, columns: ColumnMap | None = None) -> Iterator[Relation]:
    """Open a file, a folder of Parquet files, or a data frame as a view.

    With a column map, columns of a CSV file that no expression names are read as text, and the rows may be
    inside a key of a JSON document (`rows_within`).

    Raises
    ------
    FormatError
        for content that DuckDB cannot read as a table.
    ConfigError
        for a key of rows that is not in the document, or is not a list of objects.
    """
    import duckdb

    # DuckDB makes the folder once it needs it, so that a kill before leaves nothing behind.
    folder = Path(tempfile.gettempdir(), f"simsched-{secrets.token_hex(8)}")

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    config: dict[str, Any] = {"memory_limit": MEMORY, "temp_directory": str(folder)}
    with undone(remove), tempfile.TemporaryFile() as copy:
        try:
            with duckdb.connect(config=config) as con:
                try:
                    con.execute("set TimeZone = 'UTC'")
                    form, places = _create(con, given, columns, _Copy(copy, folder))
                    _confine(con, places)
                    found = con.execute(f"describe {VIEW}").fetchall()
                except (duckdb.Error, RuntimeError, ValueError) as error:
                    raise FormatError(f"cannot be read as a table: {first_line(error)}", where=name) from None
                yield _with_rows_of(Relation(con, _types(found), form, name), columns)
        finally:
            remove()


def _types(described: list[tuple[Any, ...]]) -> dict[str, str]:
    return {str(row[0]): str(row[1]) for row in described}


# -- rows inside a key of a JSON document ----------------------------------------------------


def _with_rows_of(relation: Relation, columns: ColumnMap | None) -> Relation:
    """Return the rows of the key that a map names, or of the only one, if the map needs no other column."""
    if columns is None:
        return relation
    if columns.rows:
        return _inside(relation, columns.rows, f"{columns.where}: rows")
    have = {name.lower() for name in relation.columns}
    return relation if columns.needed & have else rows_within(relation)


def rows_within(relation: Relation) -> Relation:
    """Return the rows inside the only key with a list of objects, for a document such as ``{"jobs": […]}``.

    Any other relation is returned as it is.
    """
    keys = [name for name, type_ in relation.columns.items() if _is_list_of_objects(type_)]
    if relation.form != "json" or len(keys) != 1:
        return relation
    ((count,),) = relation.rows(f"select count(*) from (from {VIEW} limit 2)")
    return _inside(relation, keys[0], relation.name) if count == 1 else relation


def _inside(relation: Relation, key: str, where: str) -> Relation:
    """Return the rows in a key, such as ``jobs`` or ``data.jobs``; errors as `open_relation`."""
    from simsched.workload.readers.tables.column_map import check_columns

    first, *rest = key.split(".")
    check_columns([first], relation.columns, where, relation.name)
    path = ".".join(map(named, (first, *rest)))
    expected = "a key with a list of objects"
    try:
        ((_, type_, *_),) = relation.rows(f"describe select {path} from {VIEW}")
    except FormatError:
        raise ConfigError(
            f"there is no key {key!r} in {relation.name}", where=where, expected=expected
        ) from None
    if not _is_list_of_objects(str(type_)):
        raise ConfigError(f"the key {key!r} has the type {str(type_)[:80]}", where=where, expected=expected)
    relation.rows(f"alter view {VIEW} rename to document")
    relation.rows(f"create view {VIEW} as select unnest({path}, max_depth := 2) from document")
    return replace(relation, columns=_types(relation.rows(f"describe {VIEW}")), rows_key=key)


def _is_list_of_objects(type_: str) -> bool:
    return type_.startswith("STRUCT(") and type_.endswith(")[]")


def table_form(source: Source) -> str:
    """Return the form of a source as a table: ``parquet``, ``json`` or ``csv``."""
    if source.content is None and source.path.is_dir():
        return "parquet"
    if is_parquet(source):
        return "parquet"
    with suppress(SimschedError):  # zstd without the package that decompresses it; DuckDB has its own
        return "json" if source.head().lstrip()[:1] in ("{", "[") else "csv"
    return "json" if ".json" in source.name or ".ndjson" in source.name else "csv"


def _create(
    con: DuckDBPyConnection, given: Source | Any, columns: ColumnMap | None, copy: _Copy
) -> tuple[str, list[Path]]:
    """Create the view; return the form of the table and the files that it reads."""
    if not isinstance(given, Source):
        con.register("frame", given)
        con.execute(f"create view {VIEW} as from frame")
        return "frame", []
    form = table_form(given)
    if given.content is None and given.path.is_dir():
        places = [place.resolve() for place in sorted(given.path.rglob("*.parquet"))]
    else:
        places = [_plain_file(given, copy, is_parquet=form == "parquet")]
    if form != "parquet" and Source.of(places[0]).first_bytes(2) in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the text is UTF-16", where=given.name, expected="UTF-8")
    if not any(place.stat().st_size for place in places):
        raise FormatError("the table is empty", where=given.name, expected="a header line and rows")
    _create_view(con, form, places, columns)
    return form, places


class _Copy(NamedTuple):
    """A file without a name for a decompressed copy, and the folder where it is made if that has no path."""

    file: IO[bytes]
    folder: Path

    def path(self) -> Path:
        """Return a path under which this process can open the file again."""
        place = Path(f"/proc/self/fd/{self.file.fileno()}")
        if place.exists():
            return place
        self.folder.mkdir(mode=0o700)  # where there is no /proc
        place = self.folder / "table"
        self.file.seek(0)
        with place.open("wb") as named_file:
            shutil.copyfileobj(self.file, named_file)
        return place


def _plain_file(source: Source, copy: _Copy, *, is_parquet: bool) -> Path:
    """Return a file that DuckDB can read: the source itself, or a copy of its decompressed content."""
    head = source.first_bytes(4)
    is_packed = head[:3] in (b"BZh", b"\xfd7z") or head == b"PK\x03\x04"
    if source.content is None and (is_parquet or not is_packed):
        return source.path.resolve()
    given = source.path if source.content is None else source.content
    if is_parquet:
        copy.file.write(source.content or b"")
    else:
        with opened(given, where=source.name) as stream:
            shutil.copyfileobj(stream, copy.file)
    copy.file.flush()
    return copy.path()


def _create_view(con: DuckDBPyConnection, form: str, places: list[Path], columns: ColumnMap | None) -> None:
    paths = "[" + ", ".join(quoted(glob_free(place)) for place in places) + "]"
    if form == "parquet":
        several = ", union_by_name = true, hive_partitioning = true" if len(places) > 1 else ""
        con.execute(f"create view {VIEW} as from read_parquet({paths}{several})")
        return
    head = Source.of(places[0]).first_bytes(4)
    # "none" is not a word of DuckDB 1.2 for JSON
    packed = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "uncompressed")
    if form == "json":
        options = f"compression = '{packed}', maximum_object_size = 268435456, sample_size = 100000"
        con.execute(f"create view {VIEW} as from read_json({paths}, {options})")
        return
    options = _csv_options(columns, packed)
    reader = f"read_csv({paths}, {options})"
    con.execute(f"create view sniffed as from {reader}")
    names = [str(row[0]) for row in con.execute("describe sniffed").fetchall()]
    con.execute("drop view sniffed")
    texts = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in _text_columns(names, columns))
    types = f", types = {{{texts}}}" if texts else ""
    con.execute(f"create view {VIEW} as from {reader[:-1]}, store_rejects = true{types})")


def _csv_options(columns: ColumnMap | None, packed: str) -> str:
    nulls = f"[{', '.join(map(quoted, _NULLS))}]"
    # Older versions of DuckDB may detect a backslash as escape and then refuse \N as an absent value.
    options = f"compression = '{packed}', escape = '\"', nullstr = {nulls}, sample_size = 100000"
    if columns is not None and columns.header:
        options += f", header = false, names = [{', '.join(map(quoted, columns.header))}]"
    else:
        options += ", header = true"
    if columns is not None and columns.delimiter:
        options += f", delim = {quoted(columns.delimiter)}"
    return options


def _text_columns(names: list[str], columns: ColumnMap | None) -> list[str]:
    """Return the columns that are read as text: all that no expression names."""
    from simsched.workload.readers.tables.column_map import columns_in

    if columns is None:
        return []
    texts = [item.expression for item in columns.columns.values() if item.expression]
    inner: Set[str] = {
        name for text in (*texts, *([columns.filter] if columns.filter else ())) for name in columns_in(text)
    }
    return [name for name in names if name.lower() not in inner]


def _confine(con: DuckDBPyConnection, places: list[Path]) -> None:
    """Let the connection read these files only; expressions of a column map run in it."""
    spellings = sorted({text for place in places for text in (str(place), glob_free(place))})
    con.execute(f"set allowed_paths = [{', '.join(map(quoted, spellings))}]")
    con.execute("set enable_external_access = false")
    con.execute("set python_enable_replacements = false")
    con.execute("set lock_configuration = true")


def quoted(text: str) -> str:
    """Return a text as a literal in SQL.

    >>> quoted("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Return the name of a column as SQL has it.

    >>> named("exit state")
    '"exit state"'
    """
    return '"' + name.replace('"', '""') + '"'
