"""A run directory: written beside its final name, renamed when whole.

Nothing half-written ever bears the final name.  An existing run directory of that name is
replaced as a whole, at the end; anything else that exists is left alone and refused.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simsched.errors import RunError
from simsched.simulate.file_digests import with_digests
from simsched.simulate.nodes import node_columns

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import BinaryIO, Self

    from simsched.simulate.result import Result

PARTIAL = ".partial"


class RunDirectory:
    """One run directory in the making; as a context it removes what was not finished.

    Raises
    ------
    RunError
        On entry, if something that is no run directory has the name already, or if nothing
        can be written there.
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory)
        self._work = self.path.parent / f".{self.path.name}.{os.getpid()}.writing"
        self._sink: BinaryIO | None = None

    def __enter__(self) -> Self:
        if not self.path.name:
            raise RunError(
                "this cannot be a run directory", where=str(self.path), expected="a path to a new directory"
            )
        refuse_foreign(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self._work, ignore_errors=True)
            self._work.mkdir()
        except OSError as error:
            raise RunError(f"cannot be written: {error.strerror}", where=str(self.path)) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sink is not None:
            self._sink.close()
        shutil.rmtree(self._work, ignore_errors=True)

    def allocations(self) -> BinaryIO:
        """Open ``allocations.jsonl`` for the run to write into while it goes on."""
        self._sink = (self._work / "allocations.jsonl").open("w+b", buffering=1 << 20)
        return self._sink

    def finish(self, result: Result, files: Mapping[str, str], *, tables: bool = True) -> Path:
        """Write everything (without its tables if not `tables`), name the directory, and return its path.

        A run that was interrupted gets ``.partial`` behind its name, and never replaces a
        finished one.
        """
        self._write_allocations(result)
        if tables:
            write_tables(self._work, _tables(result))
        events = {"eventlog.jsonl": result.events.text()} if result.events is not None else {}
        for name, text in {**events, **files}.items():
            (self._work / name).write_text(text, encoding="utf-8")
        meta = with_digests(finite(result.meta), self._work)
        text = json.dumps(meta, indent=2, ensure_ascii=False, allow_nan=False)
        (self._work / "run.json").write_text(text + "\n", encoding="utf-8")
        whole = bool(result.meta["complete"])
        target = self.path if whole else self.path.with_name(self.path.name + PARTIAL)
        refuse_foreign(target)
        _replace(self._work, target)
        return target

    def _write_allocations(self, result: Result) -> None:
        log = result.log
        if log is None:
            return
        sink = self._sink or self.allocations()
        log.flush_to(sink)
        sink.close()


def refuse_foreign(directory: str | Path) -> None:
    """Raise a `RunError` if this is anything but free, an empty directory or a run directory."""
    path = Path(directory)
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise RunError("this is a file", where=str(path), expected="a new directory, or an earlier run's")
    if not (path / "run.json").is_file() and any(path.iterdir()):
        raise RunError(
            "this directory holds something that is not a run",
            where=str(path),
            expected="a new directory, or an earlier run's",
        )


def _replace(work: Path, target: Path) -> None:
    """Give `work` the name `target`; what had it goes away only when the new one is whole."""
    old = work.with_name(work.name + ".old")
    if target.exists():
        target.rename(old)
    work.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _tables(result: Result) -> dict[str, Mapping[str, Any]]:
    nodes = {} if result.index is None else {"nodes": node_columns(result.index)}
    return {"jobs": result.jobs, "timeline": result.timeline, **nodes}


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write ``NAME.parquet`` of each table, NumPy columns of one length.

    NaN becomes NULL, inf stays, a column of lists becomes lists of texts.

    Raises
    ------
    OSError
        If the disk is full, or the like: DuckDB has an exception of its own for that.
    """
    import duckdb

    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        for name, columns in tables.items():
            choices = ", ".join(_choice(column, values) for column, values in columns.items())
            connection.register("of_run", dict(columns))
            target = str(folder / f"{name}.parquet").replace("'", "''")
            copy = f"COPY (SELECT {choices} FROM of_run) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"  # noqa: S608
            try:
                connection.execute(copy)
            except duckdb.IOException as error:
                raise OSError(str(error).partition("\n")[0]) from None
            connection.unregister("of_run")


def _choice(name: str, column: Any) -> str:
    quoted = f'"{name}"'
    if column.dtype.kind == "f":
        value = f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END"
        return f"CAST({value} AS BIGINT) AS {quoted}" if name == "procs" else f"{value} AS {quoted}"
    if column.dtype.kind != "O":
        return quoted
    lists = len(column) and isinstance(column[0], list)
    return f"CAST({quoted} AS VARCHAR{'[]' if lists else ''}) AS {quoted}"


def finite(value: Any) -> Any:
    """Replace numbers that JSON does not have by text."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
