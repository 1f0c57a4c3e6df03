"""Packed columns of a page: little-endian typed arrays in one gzip, as base64 text, in elements of the page.

The page unpacks them with the browser's own DecompressionStream.  Ascending times are stored as
differences, which compress well.  Each set of columns is one element (an island), however many charts
of however many runs share it: runs of one workload have the same jobs.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

#: JavaScript's name of each dtype that can be packed
ARRAYS = {"uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "float32": "Float32Array"}
#: the packed value of an unknown time
NEVER = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Packed:
    """Fields (name, JavaScript array type, length, whether differences) and the base64 text of their gzip."""

    fields: list[tuple[str, str, int, bool]]
    text: str


def pack(columns: dict[str, npt.NDArray[Any]], ascending: frozenset[str] = frozenset()) -> Packed:
    """Pack columns, those in `ascending` as differences; wide items come first, so that all are aligned."""
    items = {name: smallest(values, name in ascending) for name, values in columns.items()}
    order = sorted(items, key=lambda name: -items[name].dtype.itemsize)
    fields = [(n, ARRAYS[items[n].dtype.name], len(items[n]), n in ascending) for n in order]
    raw = b"".join(items[name].astype(items[name].dtype.newbyteorder("<")).tobytes() for name in order)
    return Packed(fields, base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii"))


def smallest(values: npt.NDArray[Any], differences: bool = False) -> npt.NDArray[Any]:
    """Return whole numbers in the narrowest unsigned type (differences in 32 bits), others as float32."""
    if differences:
        return np.diff(values.astype(np.int64), prepend=0).astype(np.uint32)
    if values.dtype.kind == "f" and not (values == np.floor(values)).all():
        return values.astype(np.float32)
    whole = values.astype(np.int64)
    top = int(whole.max()) if len(whole) else 0
    if len(whole) and (int(whole.min()) < 0 or top > NEVER):
        return values.astype(np.float32)
    kind = np.uint8 if top < 2**8 else np.uint16 if top < 2**16 else np.uint32
    return whole.astype(kind)


def tick_of(times: npt.NDArray[np.float64]) -> float:
    """Return the seconds per unit of a packed time: 1 if all times are whole seconds, otherwise 1 ms.

    It is more if the longest time would not fit 32 bits.
    """
    known = times[np.isfinite(times)]
    longest = float(known.max()) if len(known) else 0.0
    if (known == np.floor(known)).all():
        return max(1.0, longest / (NEVER - 1))
    return max(0.001, longest / (NEVER - 1))


def ticks(times: npt.NDArray[np.float64], tick: float) -> npt.NDArray[np.int64]:
    """Return times in ticks; unknown and infinite times become `NEVER`."""
    known = np.isfinite(times)
    return np.where(known, np.rint(np.where(known, times, 0) / tick), NEVER).astype(np.int64)


class Islands:
    """The elements of packed columns of one page.

    >>> islands = Islands()
    >>> [islands.add(pack({"a": np.arange(n)})) for n in (3, 4, 3)]
    ['island-0', 'island-1', 'island-0']
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def add(self, packed: Packed) -> str:
        """Return the id of the element with these columns; equal columns share one."""
        content = (json.dumps(packed.fields), packed.text)
        return self._names.setdefault(content, f"island-{len(self._names)}")

    def add_json(self, value: Any) -> str:
        """Return the id of the element with this value as JSON, in a column called ``text``."""
        return self.add(pack({"text": np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)}))

    def html(self) -> str:
        """Return all elements."""
        kind = "application/octet-stream"
        return "".join(
            f'<script type="{kind}" id="{name}" data-fields=\'{escape(fields)}\'>{text}</script>'
            for (fields, text), name in self._names.items()
        )
