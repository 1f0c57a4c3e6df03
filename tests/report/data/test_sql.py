"""SQL over several runs."""

from __future__ import annotations

import duckdb
import pytest

import simsched as ss
from simsched.errors import ConfigError, RunError
from simsched.report.data.sql import query
from simsched.report.data.tables import RunTables
from simsched.report.run_views import load_run


@pytest.fixture
def runs(write_run, story, make_schedule):
    return [load_run(write_run("it's [one]", story)), load_run(write_run("two", make_schedule(1)))]


def test_jobs_of_all_runs_by_run(runs):
    table = query("select run, count(*) n, max(start - submit) w from jobs group by run order by run", runs)
    assert table.values.tolist() == [
        ["it's [one]", 5, 90],
        ["two", 60, pytest.approx(runs[1].summary["max_wait"])],
    ]


def test_timeline_and_summary_are_there_too(runs):
    table = query("select s.run, value from summary s where metric = 'max_wait' order by 1", runs)
    assert table["value"][0] == 90
    assert query("select count(distinct run) n from timeline", runs)["n"][0] == 2


def test_wrong_sql_and_no_runs(runs):
    with pytest.raises(ConfigError, match="SQL: Parser Error"):
        query("selec 1", runs)
    with pytest.raises(ConfigError, match="no runs"):
        query("select 1", [])
    with pytest.raises(RunError, match="not those of a run"):
        query("select 1", [RunTables.from_columns({}, {}, {})])


def test_nodes_and_options_of_the_runs(tmp_path, write_run, story):
    cluster, workload = ss.load_cluster("tiny"), ss.load_workload("first-steps")
    made = [
        load_run(ss.simulate(cluster, workload, queue_policy=p).save(tmp_path / p)) for p in ("easy", "fcfs")
    ]
    old = load_run(write_run("old", story))
    found = query("select run, sum(total_core) n from nodes group by run order by run", [*made, old])
    assert found.values.tolist() == [["easy", 16], ["fcfs", 16]]
    told = query("select run, cluster, queue_policy from runs order by run", [*made, old])
    assert told.values.tolist() == [
        ["easy", "tiny", "easy"],
        ["fcfs", "tiny", "fcfs"],
        ["old", "toy", "old"],
    ]
    one = query("select count(*) n from nodes where list_contains(properties, 'debug')", made)
    assert one["n"].tolist() == [2]


@pytest.mark.parametrize(
    "text",
    ["", " ;\n", "-- nothing", "selec 1", "select nope from jobs", "select '\ud800'", "insert into jobs"],
)
def test_whatever_is_no_query_is_one_error(runs, text):
    with pytest.raises(ConfigError, match="SQL: "):
        query(text, runs)


def test_tables_that_cannot_be_read(runs):
    (runs[0].path / "jobs.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(RunError, match=r"jobs\.parquet: cannot be read: .*"):
        query("select 1", runs)


def test_the_files_are_plain_parquet(tmp_path):
    """Whatever reads Parquet reads a run: no enums, no extensions, lists of texts at most."""
    path = ss.simulate(ss.load_cluster("tiny"), ss.load_workload("first-steps")).save(tmp_path / "run")
    for name in ("jobs", "timeline", "nodes"):
        schema = duckdb.sql(f"select * from parquet_schema('{path / name}.parquet')").df()
        kinds = set(schema["type"].dropna()) - {"None"}
        assert kinds <= {"BYTE_ARRAY", "DOUBLE", "INT32", "INT64", "BOOLEAN"}
        logical = {str(v).split("(")[0] for v in schema["converted_type"].dropna()} - {"None"}
        assert logical <= {"UTF8", "INT_32", "INT_64", "LIST"}


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "elsewhere" / "secret.csv"
    file.parent.mkdir()
    file.write_text("a,b\n1,2\n")
    return file


@pytest.mark.parametrize(
    "text",
    [
        "select * from read_csv('{secret}')",
        "select * from '{secret}'",
        "select * from read_text('{secret}')",
        "select * from glob('{folder}/*')",
        "copy jobs to '{folder}/out.csv'",
        "copy jobs to '{run}/jobs.parquet'",
        "copy (pivot jobs on queue using count(*)) to '{run}/jobs.parquet'",
        "explain analyze copy jobs to '{run}/jobs.parquet'",
        "export database '{folder}/all'",
        "attach '{folder}/base.db'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set allowed_directories = ['/']; select * from read_csv('{secret}')",
        "reset allowed_directories; select 1",
    ],
)
def test_a_query_reads_nothing_but_the_tables_of_the_runs(runs, secret, text):
    run = runs[1].path
    before = {file: file.read_bytes() for file in run.iterdir()}
    beside = sorted(secret.parent.iterdir())
    with pytest.raises(ConfigError, match="SQL: "):
        query(text.format(secret=secret, folder=secret.parent, run=run), [runs[1]])
    assert {file: file.read_bytes() for file in run.iterdir()} == before
    assert sorted(secret.parent.iterdir()) == beside


def test_a_query_may_read_other_files_when_that_is_asked_for(runs, secret):
    text = f"select a, count(*) n from jobs, read_csv('{secret}') group by a"
    assert query(text, runs, outside=True).values.tolist() == [[1, 65]]


@pytest.mark.parametrize(
    "text",
    [
        "describe jobs",
        "summarize timeline",
        "pivot jobs on queue using count(*)",
        "from jobs select id",
        "explain from jobs",
    ],
)
def test_statements_that_read_are_queries(runs, text):
    assert len(query(text, runs))


def test_runs_are_found_by_relative_names_and_through_links(runs, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(runs[1].path, target_is_directory=True)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    linked = load_run("../link")
    assert query("select count(*) n from jobs", [linked])["n"][0] == 60
