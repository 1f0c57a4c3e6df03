"""Documents whose rows are inside a key, and errors of DuckDB with the key of the map."""

from __future__ import annotations

import json

import pytest

from simsched.cli import main
from simsched.errors import ConfigError, FormatError
from simsched.workload.load import load_workload

ROWS = [{"id": n, "at": 10 * n, "run": 60, "n": 2, "by": {"user": f"u{n}"}, "text": "x"} for n in range(1, 4)]
BASE = {"id": "id", "submit": "at", "runtime": "run", "cores": "n"}


@pytest.fixture
def written(tmp_path):
    def write(document):
        path = tmp_path / "t.json"
        path.write_text(json.dumps(document))
        return path

    return write


def ids(path, **document):
    return [job.id for job in load_workload(path, columns={"columns": BASE, **document}).jobs]


@pytest.mark.parametrize(
    "document", [{"jobs": ROWS}, {"meta": {"version": 1}, "errors": [], "jobs": ROWS, "count": 3}]
)
def test_the_only_list_of_objects_has_the_rows(written, document):
    path = written(document)
    assert ids(path) == [1, 2, 3]
    assert load_workload(path, columns={"columns": BASE}).notes[0] == "the rows are those of the key 'jobs'"


def test_a_map_names_the_key_and_a_key_within_a_key(written):
    assert ids(written({"jobs": ROWS, "nodes": [{"n": 1}]}), rows="jobs") == [1, 2, 3]
    path = written({"data": {"jobs": ROWS}})
    found = load_workload(path, columns={"rows": "data.jobs", "columns": {**BASE, "user": "by.user"}})
    assert [job.user for job in found.jobs] == ["u1", "u2", "u3"]
    assert found.notes == ()


def test_a_single_record_with_a_list_is_a_row(written):
    path = written([{**ROWS[0], "attempts": [{"id": 7}, {"id": 8}]}])
    assert ids(path) == [1]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("job", "column map: rows: there is no column 'job' in t.json; did you mean jobs"),
        ("data.jobs", "column map: rows: there is no key 'data.jobs'"),
        ("data", "column map: rows: the key 'data' has the type"),
    ],
)
def test_a_key_without_rows_is_refused(written, key, message):
    with pytest.raises(ConfigError, match=message):
        ids(written({"jobs": ROWS, "data": {"x": 1}}), rows=key)


def test_a_proposal_names_the_key(written, capsys):
    assert main(["workload", "columns", str(written({"jobs": ROWS}))]) == 0
    page = capsys.readouterr().out
    assert "\nrows: jobs\ncolumns:\n  id: id" in page


@pytest.mark.parametrize(
    ("columns", "condition", "message"),
    [
        ({"cores": {"expression": "n + text * 'a'"}}, "", r"columns\.cores: \"n \+ text \* 'a'\": "),
        ({"submit": {"expression": "cast(text as int)"}}, "", r"columns\.submit: .*Conversion"),
        ({}, "cast(text as int) > 1", r"column map: filter: .*Conversion"),
        ({}, "n + 'a' > 1", r"column map: filter: "),
    ],
)
def test_errors_of_duckdb_name_the_key_of_the_map(written, columns, condition, message):
    document = {"filter": condition} if condition else {}
    with pytest.raises(FormatError, match=message):
        load_workload(written(ROWS), columns={"columns": {**BASE, **columns}, **document})
