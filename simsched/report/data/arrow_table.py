"""`ArrowTable`: a table of a run for libraries that read Arrow, such as polars, without pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class ArrowTable:
    """A table that is handed out as a stream of Arrow records (the Arrow PyCapsule interface).

    Columns of categories are texts; a missing value is null.

    Attributes
    ----------
    name : of the table.
    columns : the names of its columns.
    """

    def __init__(self, name: str, frame: pd.DataFrame) -> None:
        self.name = name
        self.columns = [str(column) for column in frame.columns]
        self._frame = frame
        self._connections: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<ArrowTable {self.name!r}: {len(self._frame):,} rows, {len(self.columns)} columns>"

    def __len__(self) -> int:
        return len(self._frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return a PyCapsule with the stream; it may be called several times."""
        import duckdb

        frame = self._frame.copy(deep=False)
        for name in frame.columns:
            if frame[name].dtype == "category":
                frame[name] = frame[name].astype(object)
        connection = self._connections.setdefault("duckdb", duckdb.connect())  # the stream reads from it
        return connection.from_df(frame).__arrow_c_stream__(requested_schema)
