"""Packed columns: what a page unpacks is what was packed."""

from __future__ import annotations

import base64
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simsched.report.html.islands import NEVER, pack, tick_of, ticks


def unpack(packed):
    """The page's `unpack`, in Python."""
    raw, at, columns = gzip.decompress(base64.b64decode(packed.text)), 0, {}
    for name, kind, length, differences in packed.fields:
        values = np.frombuffer(raw, dtype=kind.removesuffix("Array").lower(), count=length, offset=at)
        assert at % values.itemsize == 0, "JavaScript's typed arrays have to be aligned"
        at += values.nbytes
        columns[name] = np.cumsum(values.astype(np.int64)) if differences else values
    assert at == len(raw)
    return columns


@given(
    hnp.arrays(np.int64, st.integers(0, 30), elements=st.integers(0, NEVER)),
    hnp.arrays(np.float64, st.integers(0, 30), elements=st.floats(0, 100, width=32)),
    hnp.arrays(np.int64, st.integers(0, 7), elements=st.integers(0, 255)),
)
def test_what_goes_in_comes_out(whole, real, small):
    sorted_ = np.sort(whole)
    found = unpack(pack({"s": small, "r": real, "w": whole, "t": sorted_}, frozenset({"t"})))
    assert found["w"].tolist() == whole.tolist()
    assert found["r"].tolist() == real.tolist()
    assert found["s"].tolist() == small.tolist()
    assert found["t"].tolist() == sorted_.tolist()


def test_the_narrowest_type_is_taken():
    fields = pack(
        {"a": np.array([255]), "b": np.array([256]), "c": np.array([65536]), "d": np.array([0.5])}
    ).fields
    assert {f[0]: f[1] for f in fields} == {
        "a": "Uint8Array",
        "b": "Uint16Array",
        "c": "Uint32Array",
        "d": "Float32Array",
    }


def test_the_same_columns_give_the_same_text():
    columns = {"a": np.arange(1000)}
    assert pack(columns) == pack(columns)


@pytest.mark.parametrize(
    ("times", "tick"), [([0.0, 5.0], 1.0), ([0.5, 5.0], 0.001), ([], 1.0), ([np.nan, 3.0], 1.0)]
)
def test_ticks_are_seconds_where_times_are_whole(times, tick):
    assert tick_of(np.array(times)) == tick


def test_very_long_times_fit_and_unknown_ones_are_marked():
    times = np.array([0.0, 1e12, np.nan, np.inf])
    found = ticks(times, tick_of(times))
    assert found[0] == 0
    assert found[1] == NEVER - 1
    assert found[2:].tolist() == [NEVER, NEVER]
