"""Allocation records as rows: ranks and hosts, shards that come back early, jobs that run twice."""

from __future__ import annotations

import math
from typing import Any

import pytest

from simsched.errors import RunError
from simsched.report.metrics.spread import (
    excess_span,
    failure_cost,
    node_balance,
    node_seconds,
    spanned,
)
from simsched.report.run_views import load_run


def record(id_: str, event: str, time: float, lite: list[dict[str, Any]], hosts: list[str]) -> dict[str, Any]:
    return {
        "id": id_,
        "event": event,
        "time": time,
        "R": {"version": 1, "execution": {"R_lite": lite, "nodelist": hosts, "starttime": time}},
    }


def entry(rank: str, **children: str) -> dict[str, Any]:
    return {"rank": rank, "children": children}


WHOLE = [entry("0-1", core="0-3", gpu="0"), entry("3", core="2")]
HOSTS = ["n[0-1,3]"]


@pytest.fixture
def rows(write_run, story):
    """Load the allocations of given records as a list of rows."""

    def load(*records):
        run = load_run(write_run("easy", story, records=list(records)))
        return run.allocations

    return load


def test_one_row_a_rank_and_type(rows):
    table = rows(record("a", "alloc", 0, WHOLE, HOSTS), record("a", "release", 9, WHOLE, HOSTS))
    got = table[["id", "rank", "host", "type", "units", "ids", "alloc", "release"]].values.tolist()
    assert got == [
        ["a", 0, "n0", "core", 4, "0-3", 0, 9],
        ["a", 1, "n1", "core", 4, "0-3", 0, 9],
        ["a", 0, "n0", "gpu", 1, "0", 0, 9],
        ["a", 1, "n1", "gpu", 1, "0", 0, 9],
        ["a", 3, "n3", "core", 1, "2", 0, 9],
    ]


def test_each_shard_has_its_own_release(rows):
    table = rows(
        record("a", "alloc", 0, WHOLE, HOSTS),
        record("a", "release", 5, [entry("0", core="0-3", gpu="0")], ["n0"]),
        record("a", "release", 8, [entry("1", core="0-3", gpu="0"), entry("3", core="2")], ["n[1,3]"]),
    )
    assert dict(zip(zip(table["rank"], table["type"], strict=True), table["release"], strict=True)) == {
        (0, "core"): 5, (0, "gpu"): 5, (1, "core"): 8, (1, "gpu"): 8, (3, "core"): 8,
    }  # fmt: skip


def test_a_requeued_job_has_two_attempts(rows):
    one = [entry("0", core="0")]
    table = rows(
        record("a", "alloc", 0, one, ["n0"]),
        record("a", "release", 4, one, ["n0"]),
        record("a", "alloc", 10, one, ["n0"]),
        record("a", "release", 30, one, ["n0"]),
    )
    assert table[["attempt", "alloc", "release"]].values.tolist() == [[0, 0, 4], [1, 10, 30]]


def test_what_was_not_given_back_has_no_release(rows):
    table = rows(record("a", "alloc", 0, [entry("0", core="0")], ["n0"]))
    assert math.isnan(table["release"][0])


def test_an_entry_without_children_is_a_node(rows):
    table = rows(record("a", "alloc", 0, [{"rank": "2"}], ["n2"]))
    assert table[["type", "units", "rank"]].values.tolist() == [["node", 1, 2]]


def test_a_run_without_allocations_has_the_same_columns(write_run, story, rows):
    table = load_run(write_run("none", story)).allocations
    assert table.empty
    assert list(table.columns) == list(rows(record("a", "alloc", 0, WHOLE, HOSTS)).columns)


@pytest.mark.parametrize(
    "line",
    ["nonsense", '{"id": "a", "event": "alloc"}', '{"id": 1, "event": "alloc", "time": 1, "R": {}}', "[1]"],
)
def test_a_line_that_is_no_record(write_run, story, line):
    folder = write_run("easy", story, records=[record("a", "alloc", 0, WHOLE, HOSTS)])
    with (folder / "allocations.jsonl").open("a") as file:
        file.write(line + "\n")
    fault = r"allocations\.jsonl:2: the record lacks .*R$" if line.startswith("{") else r"allocations\.jsonl"
    with pytest.raises(RunError, match=fault):
        _ = load_run(folder).allocations


@pytest.mark.parametrize(("rank", "ids"), [("3-1", "0"), ("0", "x"), ("0-99999999999", "0")])
def test_ranks_and_ids_that_are_no_idsets(write_run, story, rank, ids):
    folder = write_run("easy", story, records=[record("a", "alloc", 0, [entry(rank, core=ids)], ["n0"])])
    with pytest.raises(RunError, match=r"allocations\.jsonl"):
        _ = load_run(folder).allocations


def test_a_huge_range_of_units_is_counted_and_not_expanded(rows):
    table = rows(record("a", "alloc", 0, [entry("0", core="0-99999999999")], ["n0"]))
    assert table["units"].tolist() == [100_000_000_000]


def test_a_wrong_host_list_is_an_error_and_no_traceback(write_run, story):
    folder = write_run("easy", story, records=[record("a", "alloc", 0, [entry("0", core="0")], ["n[0"])])
    with pytest.raises(RunError, match=r"allocations\.jsonl"):
        _ = load_run(folder).allocations


# ---- what is made of them -----------------------------------------------------------


@pytest.fixture
def spread(rows):
    """Job a on ranks 0-1 for 10 s, job b on ranks 2-3 for 30 s, 4 cores each."""
    records = []
    for name, ranks, hosts, end in (("a", "0-1", "n[0-1]", 10), ("b", "2-3", "n[2-3]", 30)):
        lite = [entry(ranks, core="0-3")]
        records += [record(name, "alloc", 0, lite, [hosts]), record(name, "release", end, lite, [hosts])]
    return rows(*records)


def test_balance_between_nodes(spread):
    assert node_seconds(spread).to_dict() == {0: 40, 1: 40, 2: 120, 3: 120}
    balance = node_balance(spread, 5)
    # loads 40, 40, 120, 120, 0: mean 64, Σx² = 32,000
    assert balance.jain == pytest.approx(320**2 / (5 * 32000))
    assert balance.variation == pytest.approx(math.sqrt(32000 / 5 - 64**2) / 64)
    assert balance.unused == 1


def test_locality(spread):
    racks = {0: "r0", 1: "r1", 2: "r1", 3: "r1"}
    assert spanned(spread, racks).to_dict() == {"a": 2, "b": 1}
    assert excess_span(spread, racks).to_dict() == {"a": 2, "b": 1}
    assert excess_span(spread, {0: "r0", 1: "r1", 2: "r2", 3: "r3"}).to_dict() == {"a": 1, "b": 1}


def test_what_failures_cost(rows, make_jobs):
    one = [entry("0", core="0-1")]
    table = rows(
        record("1", "alloc", 0, one, ["n0"]),
        record("1", "release", 4, one, ["n0"]),
        record("1", "alloc", 10, one, ["n0"]),
        record("1", "release", 30, one, ["n0"]),
    )
    jobs = make_jobs(
        [
            {"start": 10, "end": 30, "cores": 2},
            {"start": 0, "end": 5, "cores": 3, "result": "FAILED"},
        ]
    )
    cost = failure_cost(jobs, table)
    assert (cost.jobs_failed, cost.lost_by_failed_jobs) == (1, 15)
    assert (cost.jobs_restarted, cost.lost_by_restarts) == (1, 8)
