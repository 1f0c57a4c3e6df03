"""`PlainColumns`: a table of arrays with the few operations of a frame that the figures of a run need.

The figures of a run that has just ended are computed on the arrays of the run, because the import of
pandas takes longer than all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    import pandas as pd

    from simsched.arrays import Floats


Table: TypeAlias = "pd.DataFrame | PlainColumns"
"""Jobs or a timeline: a frame, or plain columns."""


class PlainColumns:
    """Arrays of one length by name; a column of chosen rows is made when it is first used."""

    def __init__(self, arrays: Mapping[str, Any], base: PlainColumns | None = None, rows: Any = None) -> None:
        self._arrays = dict(arrays)
        self._base, self._rows = base, rows

    def __len__(self) -> int:
        if self._rows is not None:
            return int(self._rows.sum())
        return len(next(iter(self._arrays.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or (self._base is not None and name in self._base)

    def __getitem__(self, key: Any) -> Any:
        """Return the column of a name, or the rows for which an array of booleans is true."""
        if not isinstance(key, str):
            return self if key.all() else PlainColumns({}, self, key)
        if key not in self._arrays and self._base is not None:
            self._arrays[key] = self._base[key][self._rows]
        return self._arrays[key]

    @property
    def columns(self) -> list[str]:
        """The names."""
        return [*({} if self._base is None else dict.fromkeys(self._base.columns)) | self._arrays]

    def assign(self, **columns: Any) -> PlainColumns:
        """Return the table with further columns."""
        return PlainColumns(self._arrays | columns, self._base, self._rows)


def floats(table: Table, name: str) -> Floats:
    """Return a column as an array of floats; an unknown value is NaN.

    >>> floats(PlainColumns({"nodes": np.array([1, 2])}), "nodes").tolist()
    [1.0, 2.0]
    """
    return np.asarray(table[name], dtype=np.float64)


def objects(table: Table, name: str) -> Any:
    """Return a column of texts as an array of objects; an unknown value is None or NaN."""
    return np.asarray(table[name], dtype=object)


def known(values: Any) -> npt.NDArray[np.bool_]:
    """Return which objects of an array are neither None nor NaN.

    >>> known(np.array(["ann", None, float("nan")], dtype=object)).tolist()
    [True, False, False]
    """
    found: npt.NDArray[np.bool_] = ((values != None) & (values == values)).astype(bool)  # noqa: E711, PLR0124
    return found


def column(values: Any, table: Table, name: str) -> Any:
    """Return values, one for each row of a table, as a series if the table is a frame."""
    if isinstance(table, PlainColumns):
        return values
    import pandas as pd

    return pd.Series(values, index=table.index, name=name)
