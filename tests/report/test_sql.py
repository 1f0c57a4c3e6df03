"""SQL over several runs."""

from __future__ import annotations

import pytest

from simsched.errors import ConfigError, RunError
from simsched.report.sql import query
from simsched.report.tables import Run, load_run


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
    with pytest.raises(RunError, match="never saved"):
        query("select 1", [Run.from_columns({}, {}, {})])
