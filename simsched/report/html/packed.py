"""Columns packed for a page: little-endian typed arrays in one gzip, as base64 text.

The page unpacks them with the browser's own DecompressionStream.  Ascending times are
stored as differences, which compress to little.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: JavaScript's name of each dtype that can be packed
ARRAYS = {"uint8": "Uint8Array", "uint16": "Uint16Array", "uint32": "Uint32Array", "float32": "Float32Array"}
#: what an unknown time is packed as
NEVER = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Packed:
    """Fields (name, JavaScript array type, length, whether differences) and the base64 of their gzip."""

    fields: list[tuple[str, str, int, bool]]
    text: str


def pack(columns: dict[str, npt.NDArray[Any]], ascending: frozenset[str] = frozenset()) -> Packed:
    """Pack columns; those named in `ascending` as differences.  Wide items first, so that all are aligned."""
    items = {name: smallest(values, name in ascending) for name, values in columns.items()}
    order = sorted(items, key=lambda name: -items[name].dtype.itemsize)
    fields = [(n, ARRAYS[items[n].dtype.name], len(items[n]), n in ascending) for n in order]
    raw = b"".join(items[name].astype(items[name].dtype.newbyteorder("<")).tobytes() for name in order)
    return Packed(fields, base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii"))


def smallest(values: npt.NDArray[Any], differences: bool = False) -> npt.NDArray[Any]:
    """Return whole numbers as the narrowest unsigned type that holds them (differences as 32 bit), others as
    float32.
    """  # noqa: D205
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
    """Return the seconds that one unit of a packed time stands for: 1 where all times are whole seconds.

    Otherwise 1 ms, or what lets the longest time fit 32 bits.
    """
    known = times[np.isfinite(times)]
    longest = float(known.max()) if len(known) else 0.0
    if (known == np.floor(known)).all():
        return max(1.0, longest / (NEVER - 1))
    return max(0.001, longest / (NEVER - 1))


def ticks(times: npt.NDArray[np.float64], tick: float) -> npt.NDArray[np.int64]:
    """Return times in ticks; what is unknown or infinite becomes `NEVER`."""
    known = np.isfinite(times)
    return np.where(known, np.rint(np.where(known, times, 0) / tick), NEVER).astype(np.int64)
