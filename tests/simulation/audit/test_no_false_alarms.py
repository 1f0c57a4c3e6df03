"""Runs that earlier audits took for wrong, and machines that they could not hold in memory."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.formats.cluster.recipe import parse_recipe
from simsched.formats.rfc.dependency import Dependency
from simsched.graph.build.recipe import from_recipe
from simsched.simulation.audit.auditor import audit_run
from simsched.simulation.audit.inventory import Inventory
from simsched.simulation.record.file_digests import with_digests
from tests.simulation.simworld import job, machine, workload

HWLOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine"><info name="HostName" value="oak"/>
<object type="Package"><object type="NUMANode" local_memory="103079215104"/>
<object type="Core"><object type="PU"/></object><object type="Core"><object type="PU"/></object></object>
</object></topology>
"""


@pytest.fixture
def audited(tmp_path):
    def run(cluster, *jobs, **options):
        given = workload(*jobs)
        made = ss.simulate(cluster, given, **options)
        made.save(tmp_path / "run")
        return audit_run(tmp_path / "run", cluster, given)

    return run


def test_shared_nodes_count_as_nodes_that_the_job_is_on(audited):
    shape = "slot=4/node{exclusive:false}/core=1"
    jobs = [job(name, 0, shape, 100, user="u") for name in "abc"]
    report = audited(machine(4, 4), *jobs, limits=[{"each": "user", "nodes": 2, "over": "hold"}])
    assert report, str(report)


def test_the_memory_of_a_node_that_is_clean_before_the_others_is_free(audited):
    """B starts on the first node that A's cleanup leaves, and gets its memory, too."""
    group = {"name": "n", "count": 3, "cores": 2, "memory": "100000 GB"}
    cluster = ss.Cluster(from_recipe(parse_recipe({"groups": [group]})))
    jobs = [job("A", 0, "slot=3/node", 10), job("B", 1, "slot=1/node", 10)]
    report = audited(cluster, *jobs, epilog="1s..40s", seed=1)
    assert report, str(report)


def test_a_job_that_failed_at_once_is_no_submitted_one(audited):
    """A depends on itself, so it leaves at once, and not when it would be cancelled."""
    itself = (Dependency.parse("afterok:A"),)
    first = job("A", 0, "slot=1/core", 5, user="u", cancel_at=50, dependencies=itself)
    limits = [{"each": "user", "submitted-jobs": 1}]
    report = audited(machine(1, 1), first, job("B", 1, "slot=1/core", 5, user="u"), limits=limits)
    assert report, str(report)


@pytest.mark.parametrize("limits", [
    [{"user": "u, queue q", "running-jobs": 1}, {"user": "u", "queue": "q", "running-jobs": 1}],
    [{"user": ["u", "v"], "running-jobs": 1}, {"user": "u, v", "running-jobs": 1}],
])  # fmt: skip
def test_limits_whose_names_read_alike_count_apart(audited, limits):
    users = ["u", "u, queue q"] if "queue" in limits[1] else ["u", "u, v"]
    jobs = [job(user, 0, "slot=1/core", 5, user=user, queue="q") for user in users]
    report = audited(machine(1, 2), *jobs, limits=limits)
    assert report, str(report)
    assert report.checked["L1", "scopes"] == 2


def test_columns_that_nothing_fills_are_read_whatever_their_length(audited):
    """DuckDB looks at a sample of a column; its older versions failed at one without any text."""
    report = audited(machine(1, 1), *(job(f"j{at}", at, "slot=1/core", 1) for at in range(3000)))
    assert report, str(report)


def test_the_overrun_of_an_attempt_that_failed_later_explains_a_broken_promise(audited):
    jobs = [job("A", 0, "slot=4/node", 200, 100), job("B", 10, "slot=1/node", 50)]
    outages = [{"ranks": "0-2", "start": 150, "end": 200, "kind": "failure"}]
    options = {"queue_policy": "conservative", "overrun": "allow", "outages": outages}
    report = audited(machine(4, 4), *jobs, **options)
    assert report, str(report)
    assert [late.cause for late in report.explained] == ["job A ran beyond its limit at 100"]


def test_a_node_without_cores_that_is_down(audited, tmp_path):
    execution = {
        "R_lite": [{"rank": "0", "children": {"core": "0-3"}}, {"rank": "1", "children": {}}],
        "nodelist": ["a,b"],
        "starttime": 0,
        "expiration": 0,
    }
    (tmp_path / "R.json").write_text(json.dumps({"version": 1, "execution": execution}))
    cluster = ss.load_cluster(tmp_path / "R.json")
    outages = [{"ranks": "1", "start": 5, "end": 50, "kind": "failure"}]
    report = audited(cluster, job("a", 0, "slot=1/core", 20), job("b", 9, "slot=4/core", 9), outages=outages)
    assert report, str(report)


@pytest.mark.filterwarnings("ignore::simsched.errors.InputWarning")
def test_memory_of_hwloc_is_in_mib(audited, tmp_path):
    (tmp_path / "oak.xml").write_text(HWLOC)
    cluster = ss.load_cluster(tmp_path / "oak.xml")
    assert cluster.index.pool_types["memory"].unit == "MiB"
    assert cluster.index.totals["memory"] == 98304
    assert audited(cluster, job("a", 0, "slot=1/[core;memory=3{unit:GB}]", 20), job("b", 0, "slot=1/node", 5))


@pytest.mark.parametrize("amount", ["100000 MB", "10000000000 MB"])
def test_amounts_of_large_pools_are_counted(audited, tmp_path, amount):
    """R has an amount of them, and no ids; on a smaller node of the same machine as well."""
    groups = [
        {"name": "n", "count": 2, "cores": 4, "memory": amount},
        {"name": "s", "count": 1, "cores": 4, "memory": "1000 MB"},
    ]
    (tmp_path / "c.json").write_text(json.dumps({"name": "c", "groups": groups}))
    cluster = ss.load_cluster(tmp_path / "c.json")
    size = int(amount.split()[0])
    jobs = [
        job("a", 0, f"slot=2/[core;memory={size // 2}]", 20),
        job("b", 0, "slot=2/node", 20),
        job("c", 0, f"slot=1/[core;memory={size - 5}]", 20),
        job("d", 1, "slot=1/[core;memory=5]", 20),
        job("e", 2, "slot=3/[core;memory=300]", 20),
    ]
    limits = [{"memory": f"{size + 1000} MB"}]
    report = audited(cluster, *jobs, limits=limits, epilog="1s..3s")
    assert report, str(report)

    lines = (tmp_path / "run" / "allocations.jsonl").read_text()
    for wrong in (size, size - 4):
        (tmp_path / "run" / "allocations.jsonl").write_text(lines.replace(f":{size - 5}", f":{wrong}"))
        meta = json.loads((tmp_path / "run" / "run.json").read_text())
        (tmp_path / "run" / "run.json").write_text(json.dumps(with_digests(meta, tmp_path / "run")))
        found = audit_run(tmp_path / "run", cluster, workload(*jobs))
        assert {"A5", "A7"} & found.counts.keys() or "A3" in found.counts


def test_an_inventory_of_much_memory_is_small():
    cluster = ss.load_cluster("tiny")
    assert not Inventory.of(cluster).pools


def test_a_socket_beside_other_resources_does_not_hold_the_units_of_each_socket_that_r_touches(audited):
    group = {"name": "n", "count": 1, "sockets": 2, "cores": 12, "gpus": 4}
    cluster = ss.Cluster(from_recipe(parse_recipe({"name": "one", "groups": [group]})))
    jobs = [job("a", 0, "slot=1/[socket;gpu=1]", 100), job("b", 1, "slot=1/socket{-x}/core=2", 50)]
    assert not audited(cluster, *jobs).faults


def test_the_cleanup_after_a_suspended_job_is_no_time_in_which_it_wrote_checkpoints(audited):
    queues = {"batch": {"hosts": "all"}, "urgent": {"hosts": "all", "priority": 1, "preempts": True}}
    jobs = [
        job("a", 0, "slot=1/node", 90, 200, queue="batch"),
        job("b", 10, "slot=1/node", 5, queue="urgent"),
    ]
    report = audited(
        machine(1, 1), *jobs, queues=queues, preemption={"mode": "suspend"}, epilog="20s",
        job_checkpoints={"interval": 40, "cost": 2, "restart": 3},
    )  # fmt: skip
    assert report.checked["V1", "preempted jobs"]
    assert report, str(report)
