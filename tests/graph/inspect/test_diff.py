"""Differences are told once for all targets that share them."""

from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import load_cluster
from simsched.graph.inspect.diff import diff


def made(**group):
    return graph_from_document({"groups": [{"name": "n", "count": 4, "cores": 4, **group}]})


def told(left, right):
    return [str(one) for one in diff(left, right)]


def test_equal_clusters_have_no_difference():
    assert told(made(), made()) == []


def test_units_properties_and_amounts():
    left = made(memory="64 GB", properties=["a"])
    right = made(cores=8, memory="128 GB", gpus=1, properties=["b"])
    assert told(left, right) == [
        "total of core: 16 -> 32",
        "total of memory: 256 GB -> 512 GB",
        "total of gpu: none -> 4",
        "n[0-3] property a: set -> none",
        "n[0-3] core: [0-3] -> [0-7]",
        "n[0-3] memory: 64 GB -> 128 GB",
        "n[0-3] property b: none -> set",
        "n[0-3] gpu: none -> [0]",
    ]


def test_targets_that_only_one_has_and_other_subsystems():
    left = load_cluster("tiny").graph
    right = load_cluster("grug4").graph
    text = told(left, right)
    assert "total of rack: none -> 2" in text
    assert "edges of power: none -> 6" in text
    assert told(made(), made(count=6))[-1] == "targets: none -> n[4-5] (2)"
    assert told(made(count=6), made())[-1] == "targets: n[4-5] (2) -> none"


def test_amounts_of_one_type_in_two_units():
    def holding(size):
        return made(pools=[{"type": "memory", "size": size}, {"type": "memory", "size": "1 GiB"}])

    assert told(holding("64 GB"), holding("32 GB")) == [
        "total of memory: 256 GB + 4 GiB -> 128 GB + 4 GiB",
        "n[0-3] memory: 64 GB + 1 GiB -> 32 GB + 1 GiB",
    ]
