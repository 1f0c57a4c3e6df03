"""Real sizes: what is loaded in seconds and written again without loss."""

import io
import json
import time

import pytest

from analysis.benchmarks.bench_graph import write_jgf, write_r, write_treepool
from simsched.graph.cluster import load_cluster


def made(path, write, nodes):
    text = io.StringIO()
    write(text, nodes)
    path.write_text(text.getvalue())
    return path


def seconds(path):
    start = time.process_time()
    cluster = load_cluster(path)
    assert cluster.index.targets
    return cluster, time.process_time() - start


def test_r_of_16384_nodes_loads_in_about_a_second(tmp_path):
    """The limit of the benchmark is one second; this holds the order on a busy machine."""
    cluster, spent = seconds(made(tmp_path / "r.json", write_r, 16_384))
    assert cluster.index.totals["core"] == 16_384 * 64
    assert spent < 15


@pytest.mark.slow
def test_a_topology_of_11000_nodes(tmp_path):
    cluster, spent = seconds(made(tmp_path / "t.json", write_treepool, 11_000))
    assert cluster.index.totals["socket"] == 44_000
    assert spent < 40


@pytest.mark.slow
def test_jgf_of_100000_vertices_comes_out_as_it_went_in(tmp_path):
    path = made(tmp_path / "j.json", write_jgf, 1_408)
    cluster, spent = seconds(path)
    assert spent < 40
    assert cluster.to_dict("jgf") == json.loads(path.read_text())
