"""Whatever a run.json or an allocations.jsonl holds: a page, or an error that says where; no traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simsched as ss
from simsched.cli import main
from simsched.errors import SimschedError
from simsched.report import export, text_report
from simsched.report.data.gantt import rectangles
from simsched.report.run_views import load_run

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
metas = st.dictionaries(
    st.sampled_from(["config", "cluster", "inputs", "counts", "wall_seconds", "jobs_per_second", "seed"]),
    values,
)
totals = st.dictionaries(st.sampled_from(["node", "core", "x"]), values)
clusters = st.fixed_dictionaries({}, optional={"name": values, "targets": values, "totals": totals})
quiet = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, writer_in, story, make_records):
    """A run directory whose files the tests write over."""
    return writer_in(tmp_path_factory.mktemp("fuzz"))("easy", story, records=make_records(story))


@pytest.mark.slow
@quiet
@given(metas, clusters)
def test_any_run_json_gives_a_page_or_an_error(folder, meta, cluster):
    document = {"simsched": "0", "format": 1, "complete": True, "cluster": cluster, **meta}
    (folder / "run.json").write_text(json.dumps(document))
    try:
        run = load_run(folder)
        assert text_report.page(run)
        assert json.loads(export.as_json([run]))
    except SimschedError as error:
        assert str(folder) in str(error)  # noqa: PT017 (either outcome is right)


ranks = values | st.sampled_from(["0", "0-3", "2,3"])
children = values | st.just({"core": "0-1"})
entries = st.fixed_dictionaries({}, optional={"rank": ranks, "children": children})
records = st.fixed_dictionaries(
    {},
    optional={
        "id": values | st.sampled_from(["a", "b"]),
        "event": values | st.sampled_from(["alloc", "release"]),
        "time": values | st.integers(0, 200),
        "R": values
        | st.builds(
            lambda lite, hosts: {"version": 1, "execution": {"R_lite": lite, "nodelist": hosts}},
            st.lists(entries, max_size=3) | values,
            st.lists(st.text(max_size=4), max_size=2) | values,
        ),
    },
)


@pytest.mark.slow
@quiet
@given(st.lists(records, max_size=5))
def test_any_allocations_give_frames_or_an_error(folder, lines):
    meta = {"simsched": "0", "format": 1, "complete": True, "cluster": {"totals": {"node": 4, "core": 16}}}
    (folder / "run.json").write_text(json.dumps(meta))
    (folder / "allocations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = load_run(folder)
    try:
        assert list(run.allocations.columns)
        assert (rectangles(run)["high"] >= rectangles(run)["low"]).all()
    except SimschedError as error:
        assert "allocations.jsonl" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("table", "change", "told"),
    [
        ("jobs", "exclude (result)", "there is no column 'result'"),
        ("jobs", "replace ('soon' as start)", "column 'start' is of the type VARCHAR (expected numbers)"),
        ("jobs", "replace ([cores] as cores)", "column 'cores' is of the type BIGINT[] (expected numbers)"),
        (
            "jobs",
            "replace (-3::bigint as nodes)",
            "column 'nodes', row 1: -3 (expected a count",
        ),
        ("jobs", "replace (null::varchar as id)", "column 'id', row 1"),
        ("jobs", 'replace ("start" - 5 as "end")', "column 'end', row"),
        ("timeline", "replace ('x' as free_core)", "column 'free_core' "),
        ("timeline", "replace (-1 as queued_jobs)", "column 'queued_jobs', row 1: -1.0"),
    ],
)
def test_a_damaged_table_is_one_line_with_file_and_column(tmp_path, capsys, table, change, told):
    import duckdb

    folder = tmp_path / "run"
    ss.simulate("tiny", "first-steps").save(folder)
    file = folder / f"{table}.parquet"
    duckdb.sql(f"create or replace temp table kept as select * {change} from '{file}'")
    duckdb.sql(f"copy kept to '{file}' (format parquet)")
    page = ["report", str(folder), "-o", str(tmp_path / "page.html")]
    for command in (page, ["export", str(folder), "--to", "perfetto"], ["why", str(folder)]):
        assert main(command) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert f"{table}.parquet: {told}" in lines[0]
