"""How large a job is: cores, those of whole nodes included, whatever else the workload holds."""

from __future__ import annotations

import pytest

from simsched.simulation.options.run_config import make_config
from simsched.simulation.simulate import engine_of
from tests.simulation.simworld import job, machine, results, run, starts, workload


def sizes(cluster, *shapes, **options):
    jobs = [job(str(number), number, shape, 5) for number, shape in enumerate(shapes)]
    _, prepared, _ = engine_of(cluster, workload(*jobs), make_config(**options))
    return prepared.table.sizes.tolist()


@pytest.mark.parametrize("options", [{}, {"epilog": "1s"}, {"order": "fairshare"}])
def test_a_whole_node_counts_with_its_cores(options):
    assert sizes(machine(4, 4), "slot=3/node", "slot=1/node", **options) == [12, 4]


def test_a_size_does_not_depend_on_what_others_ask_for():
    shapes = ["slot=3/node", "slot=2/core", "slot=2/[core;gpu]", "node=2/slot=2/core", "slot=3/gpu"]
    expected = [12, 2, 2, 4, 3]
    assert sizes(machine(4, 4, gpus=2), *shapes) == expected
    assert [sizes(machine(4, 4, gpus=2), shape)[0] for shape in shapes] == expected


def test_areas_order_whole_nodes_and_cores_alike():
    """B asks for 3 nodes of 4 cores for 3 s (36), C for 14 cores for 2 s (28), epilog or not."""
    jobs = [job("A", 0, "slot=4/node", 5), job("B", 1, "slot=3/node", 3), job("C", 2, "slot=14/core", 2)]
    for epilog in (0, 1):
        found = starts(run(machine(4, 4), *jobs, policy="fcfs", order="smallest-area", epilog=epilog))
        assert found == {"A": 0, "C": 5 + epilog, "B": 7 + 2 * epilog}


def test_limits_count_the_cores_of_whole_nodes():
    queues = {"small": {"policy": {"limits": {"job-size": {"max": {"ncores": 8, "ngpus": 2}}}}}}
    jobs = [
        job(name, 0, shape, 5, queue="small")
        for name, shape in (
            ("A", "slot=2/node"),
            ("B", "slot=3/node"),
            ("C", "slot=9/core"),
            ("D", "slot=8/core"),
        )
    ]
    assert results(run(machine(4, 4, gpus=1), *jobs, queues=queues)) == {
        "A": "COMPLETED",
        "B": "FAILED",
        "C": "FAILED",
        "D": "COMPLETED",
    }
