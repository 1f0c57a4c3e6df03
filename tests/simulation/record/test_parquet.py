"""Columns reach Parquet as they are, whatever a sample of them would suggest."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from simsched.simulation.record.parquet import write_tables

#: beyond the number of rows that DuckDB samples to guess a type
MANY = 3_000


def objects(values):
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def written(tmp_path, values, name="value"):
    write_tables(tmp_path, {"t": {"row": np.arange(len(values)), name: objects(values)}})
    found = duckdb.sql(f"select {name} from '{tmp_path}/t.parquet' order by row")
    return str(found.types[0]), [row[0] for row in found.fetchall()]


@pytest.mark.parametrize("length", [1, 10, MANY])
def test_none_alone_is_a_column_of_texts(tmp_path, length):
    assert written(tmp_path, [None] * length) == ("VARCHAR", [None] * length)


@pytest.mark.parametrize("late", ["text", "", "0"])
def test_a_text_behind_many_nones(tmp_path, late):
    values = [None] * MANY + [late, None]
    assert written(tmp_path, values) == ("VARCHAR", values)


def test_empty_lists_before_others(tmp_path):
    values = [[] if row % 2 == 0 else ["a", "b,c"] for row in range(MANY)]
    assert written(tmp_path, values, "properties") == ("VARCHAR[]", values)


def test_a_list_that_is_missing_is_not_an_empty_one(tmp_path):
    values = [None, [], ["gpu"], [""]]
    assert written(tmp_path, values, "properties") == ("VARCHAR[]", values)


def test_numbers_among_texts_are_texts(tmp_path):
    assert written(tmp_path, [1] * MANY + ["x"]) == ("VARCHAR", ["1"] * MANY + ["x"])


def test_a_table_without_rows(tmp_path):
    assert written(tmp_path, []) == ("VARCHAR", [])


def test_names_with_quotes_and_numbers(tmp_path):
    columns = {
        'a"b': objects(["x", None]),
        "procs": np.array([4.0, np.nan]),
        "end": np.array([np.inf, np.nan]),
    }
    write_tables(tmp_path, {"t": columns})
    rows = duckdb.sql(f"select * from '{tmp_path}/t.parquet'").fetchall()
    assert rows == [("x", 4, float("inf")), (None, None, None)]
