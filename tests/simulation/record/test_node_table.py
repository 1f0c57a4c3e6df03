"""``nodes.parquet``: what the run directory says of the machine."""

from __future__ import annotations

import duckdb
import pytest

from simsched.graph.cluster import load_cluster
from simsched.simulation.record.node_table import node_columns
from tests.simulation.simworld import job, machine, run


def columns(name):
    return {key: values.tolist() for key, values in node_columns(load_cluster(name).index).items()}


def test_one_row_a_target_with_host_state_properties_and_units():
    cluster = machine(3, cores=2, gpus=1, properties={"amd@gpu": "2", "batch": "0-1"})
    assert {key: values.tolist() for key, values in node_columns(cluster.index).items()} == {
        "rank": [0, 1, 2],
        "host": ["n0", "n1", "n2"],
        "up": [True, True, True],
        "properties": [["batch"], ["batch"], ["amd", "amd@gpu"]],
        "total_core": [2, 2, 2],
        "total_gpu": [1, 1, 1],
    }


def test_places_are_the_types_that_divide_the_machine():
    found = columns("fattree")
    assert [name for name in found if name.startswith("in_")] == ["in_rack", "in_switch", "in_pod"]
    assert [found["in_rack"][rank] for rank in (0, 15, 16, 255)] == ["rack0", "rack0", "rack1", "rack15"]
    assert [found["in_pod"][rank] for rank in (0, 64, 255)] == ["pod0", "pod1", "pod3"]


def test_a_pool_outside_the_targets_counts_on_none():
    assert columns("colony")["total_License"] == [0] * 14


@pytest.mark.parametrize("name", ["center", "dragonfly", "racked", "topo16"])
def test_units_of_all_targets_are_those_of_the_graph(name):
    cluster = load_cluster(name)
    found = node_columns(cluster.index)
    for kind, pool in cluster.index.pool_types.items():
        on = pool.target >= 0
        assert found[f"total_{kind}"].sum() == pool.size[on].sum()


def test_the_run_directory_has_them(tmp_path):
    path = run(machine(2, properties={"ssd": "1"}), job(1, 0, "slot=1/core", 1)).save(tmp_path / "run")
    table = duckdb.sql(f"select * from read_parquet('{path / 'nodes.parquet'}')")
    assert dict(zip(table.columns, map(str, table.types), strict=True)) == {
        "rank": "BIGINT",
        "host": "VARCHAR",
        "up": "BOOLEAN",
        "properties": "VARCHAR[]",
        "total_core": "BIGINT",
    }
    assert table.fetchall() == [(0, "n0", True, [], 1), (1, "n1", True, ["ssd"], 1)]
