"""The use of parts of the machine: by hand, and against counting second by second."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import RunError
from simsched.report import groups
from simsched.report.metrics import machine_use
from simsched.report.run_views import load_run

# Four nodes of 4 cores in two racks, n2 and n3 with 2 gpus and the property gpu; n3 is down.
NODES = pd.DataFrame(
    {
        "rank": [0, 1, 2, 3],
        "host": ["n0", "n1", "n2", "n3"],
        "up": [True, True, True, False],
        "properties": [("batch",), ("batch", "big"), ("gpu",), ("gpu",)],
        "total_core": [4, 4, 4, 4],
        "total_gpu": [0, 0, 2, 2],
        "total_memory": [0, 0, 0, 0],
        "in_rack": ["r0", "r0", "r1", "r1"],
    }
)


def held(*rows):
    names = ["id", "attempt", "rank", "type", "units", "alloc", "release"]
    return pd.DataFrame(rows, columns=names).astype({"alloc": float, "release": float})


# a holds 2 cores of n0 from 0 to 10 and of n1 from 0 to 5; b holds 2 cores of n0 from 4 to 20
# and n2 with its gpus from 4 on
HELD = held(
    ("a", 0, 0, "core", 2, 0, 10),
    ("a", 0, 1, "core", 2, 0, 5),
    ("b", 0, 0, "core", 2, 4, 20),
    ("b", 0, 2, "core", 4, 4, math.nan),
    ("b", 0, 2, "gpu", 2, 4, math.nan),
)


def test_types_and_places():
    assert machine_use.kinds(NODES) == ["node", "core", "gpu"]
    assert machine_use.places(NODES) == ["rack"]
    assert machine_use.place_of(NODES, "rack").to_dict() == {0: "r0", 1: "r0", 2: "r1", 3: "r1"}


def test_unit_seconds_inside_a_window():
    assert machine_use.unit_seconds(HELD, "core", (0, 20)).to_dict() == {0: 52, 1: 10, 2: 64}
    assert machine_use.unit_seconds(HELD, "gpu", (10, 20)).to_dict() == {2: 20}
    # a node is used while anything on it is: n0 from 0 to 20, though two jobs held it
    assert machine_use.unit_seconds(HELD, "node", (0, 20)).to_dict() == {0: 20, 1: 5, 2: 16}
    assert machine_use.unit_seconds(HELD, "node", (6, 12)).to_dict() == {0: 6, 1: 0, 2: 6}


def test_use_of_each_node():
    table = machine_use.node_use(NODES, HELD, (0, 20))
    assert table["host"].tolist() == ["n0", "n1", "n2", "n3"]
    assert table["jobs"].tolist() == [2, 1, 1, 0]
    assert table["utilisation_core"].tolist()[:3] == [52 / 80, 10 / 80, 64 / 80]
    assert math.isnan(table["utilisation_core"][3])  # it was down: there was nothing to use
    assert table["utilisation_gpu"].isna().tolist() == [True, True, False, True]


def test_use_of_property_groups_and_racks():
    table = machine_use.use_by(NODES, HELD, (0, 20), "property")
    assert table.index.tolist() == ["all nodes", "batch", "big", "gpu"]
    assert table["nodes"].tolist() == [4, 2, 1, 2]
    assert table["jobs"].tolist() == [2, 2, 1, 1]
    # the machine has 12 cores that are up; batch 8 of them, gpu 4 on the node that is up
    assert table["utilisation_core"].tolist() == [126 / 240, 62 / 160, 10 / 80, 64 / 80]
    racks = machine_use.use_by(NODES, HELD, (0, 20), "rack")
    assert racks.index.tolist() == ["all nodes", "r0", "r1"]
    assert racks["utilisation_gpu"].tolist()[2] == 32 / 40
    assert racks["utilisation_node"].tolist() == [41 / 60, 25 / 40, 16 / 20]


def test_balance_compares_shares_and_leaves_out_what_cannot_be_used():
    found = machine_use.use_balance(NODES, HELD, (0, 20), "core")
    loads = np.array([52 / 80, 10 / 80, 64 / 80])
    assert found.jain == pytest.approx(loads.sum() ** 2 / (3 * (loads**2).sum()))
    assert found.variation == pytest.approx(loads.std() / loads.mean())
    assert found.unused == 0


def test_locality_of_jobs_on_several_nodes():
    # c lies in both racks and would fit in one; d, on one node, has no choice
    more = held(("c", 0, 1, "core", 1, 0, 1), ("c", 0, 2, "core", 1, 0, 1), ("d", 0, 3, "core", 1, 0, 1))
    table = machine_use.locality(NODES, pd.concat([HELD, more]))
    assert table.index.tolist() == ["rack"]
    # a: n0, n1 are one rack; b: n0, n2 two; c: two
    assert table.loc["rack"].to_dict() == {
        "places": 2,
        "jobs": 3,
        "mean_spanned": pytest.approx(5 / 3),
        "mean_excess": pytest.approx(5 / 3),
        "share_local": pytest.approx(1 / 3),
    }


def test_a_job_that_was_started_again_lies_where_it_ran_last():
    again = held(("a", 0, 0, "core", 1, 0, 1), ("a", 0, 2, "core", 1, 0, 1),
                 ("a", 1, 0, "core", 1, 5, 6), ("a", 1, 1, "core", 1, 5, 6))  # fmt: skip
    assert machine_use.locality(NODES, again)["mean_spanned"].tolist() == [1]


def test_nothing_held():
    none = HELD.iloc[:0]
    assert machine_use.use_by(NODES, none, (0, 20), "rack")["utilisation_core"].tolist() == [0, 0, 0]
    assert machine_use.locality(NODES, none)["jobs"].tolist() == [0]
    assert math.isnan(machine_use.use_balance(NODES, none, (0, 20), "core").jain)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_use_equals_counting_second_by_second(seed):
    """Utilisation is Σ units held in each second of the window / (capacity · seconds)."""
    rng = np.random.default_rng(seed)
    rows, low, high = [], 10, 30
    for name in range(12):
        start = int(rng.integers(0, 35))
        end = math.nan if rng.random() < 0.1 else start + int(rng.integers(0, 15))
        ranks = rng.choice(3, int(rng.integers(1, 3)), replace=False).tolist()
        rows += [(str(name), 0, rank, "core", int(rng.integers(1, 3)), start, end) for rank in ranks]
    table = held(*rows)

    def on(second, rank):
        return [units for _, _, r, _, units, start, end in rows
                if r == rank and start <= second and not second >= end]  # fmt: skip

    cores = {rank: sum(sum(on(s, rank)) for s in range(low, high)) for rank in range(4)}
    busy = {rank: sum(bool(on(s, rank)) for s in range(low, high)) for rank in range(4)}
    found = machine_use.use_by(NODES, table, (low, high), "property")
    for name, ranks, up in (("all nodes", (0, 1, 2, 3), 3), ("batch", (0, 1), 2), ("gpu", (2, 3), 1)):
        naive = sum(cores[r] for r in ranks) / (4 * up * (high - low))
        assert found.loc[name, "utilisation_core"] == pytest.approx(naive)
        naive = sum(busy[r] for r in ranks) / (up * (high - low))
        assert found.loc[name, "utilisation_node"] == pytest.approx(naive)
    single = machine_use.node_use(NODES, table, (low, high))["utilisation_node"]
    assert single.tolist()[:3] == pytest.approx([busy[r] / (high - low) for r in range(3)])


# ---- of real runs -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def racked(tmp_path_factory):
    run = ss.simulate(ss.load_cluster("racked"), ss.load_workload("slurm-day"))
    return load_run(run.save(tmp_path_factory.mktemp("runs") / "racked"))


def test_use_of_all_nodes_is_the_utilisation_of_the_run(racked):
    for key in ("property", *machine_use.places(racked.nodes)):
        whole = machine_use.use_by(racked.nodes, racked.allocations, racked.window, key).iloc[0]
        for kind in ("node", "core", "gpu"):
            name = f"utilisation_{kind}"
            assert whole[name] == pytest.approx(racked.summary[name])


def test_racks_add_up_to_the_machine(racked):
    table = machine_use.use_by(racked.nodes, racked.allocations, racked.window, "rack")
    weights = racked.nodes.groupby("in_rack", observed=True, sort=False)["total_core"].sum()
    assert (table["utilisation_core"].iloc[1:] * weights).sum() / weights.sum() == pytest.approx(
        table["utilisation_core"].iloc[0]
    )


@pytest.mark.parametrize(("key", "count"), [("property", 5), ("place", 1 + 16 + 64 + 16), ("node", 1024)])
def test_tables_of_the_machine_in_every_form(racked, key, count):
    rows = list(csv.DictReader(io.StringIO(groups.FORMATS["csv"]([racked], key))))
    assert len(rows) == count
    assert groups.FORMATS["text"]([racked], key).count("\n") == count + 1
    assert groups.FORMATS["markdown"]([racked, racked], key).startswith(f"| run | {key} | ")
    assert groups.FORMATS["json"]([racked], key).startswith("[")


def test_use_between_warm_up_and_drain(racked):
    steady = racked.steady(6 * 3600, 6 * 3600)
    whole = machine_use.use_by(steady.nodes, steady.allocations, steady.window, "property").iloc[0]
    assert whole["utilisation_core"] == pytest.approx(steady.summary["utilisation_core"])


def test_a_run_from_before_nodes_were_written(write_run, story):
    run = load_run(write_run("old", story))
    assert run.nodes.empty
    assert run.nodes.columns.tolist() == ["rank", "host", "up", "properties"]
    with pytest.raises(RunError, match=r"does not record where its jobs ran.*nodes\.parquet"):
        groups.FORMATS["text"]([run], "property")


def test_a_machine_without_places_is_one_row(tmp_path):
    run = ss.simulate(ss.load_cluster("tiny"), ss.load_workload("first-steps"))
    assert groups.FORMATS["text"]([load_run(run.save(tmp_path / "tiny"))], "place").count("\n") == 2


def test_a_run_in_memory_knows_its_nodes_too():
    run = ss.simulate(ss.load_cluster("tiny"), ss.load_workload("first-steps"))
    assert run.nodes["properties"].tolist()[2] == ("amd-mi50", "amd-mi50@gpu", "debug")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select 1 as rank from range(2)", "two nodes have the same rank"),
        ("select 'a' as host", "there is no column 'rank'"),
        ("select 1 as rank, 3 as properties", "column 'properties' is of the type INTEGER"),
    ],
)
def test_wrong_tables_of_nodes_are_errors(write_run, story, query, told):
    import duckdb

    folder = write_run("wrong", story)
    duckdb.sql(query).write_parquet(str(folder / "nodes.parquet"))
    with pytest.raises(RunError, match=told):
        _ = load_run(folder).nodes
