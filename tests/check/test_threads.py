"""Threads of users, each as a small site: the answer gives the reason that was missing there.

The number of a test is that of the thread: flux-sched unless another repository is named.
"""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.check.rules import check_files
from simsched.errors import FormatError
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.cluster import Cluster
from tests.check.siteworld import (
    BY_HOST,
    HOSTS,
    PROPERTIES,
    QUEUES,
    chassis_graph,
    findings,
    r_document,
    storage_map,
    texts,
    written,
)


def cluster(document):
    return Cluster(graph_from_document(document))


def ask(machine, shape, *, constraint=None, **more):
    return ss.feasible(machine, ss.Jobspec.from_shape(shape, constraint=constraint), **more)


def codes(answer):
    return [reason.code for reason in answer.reasons.coded]


MACHINE = cluster(r_document(gpu=4, properties=PROPERTIES))
TWO_QUEUES = {"queues": {"batch": {"requires": ["batch"]}, "debug": {"requires": ["debug"]}}}
CHASSIS = cluster(chassis_graph(properties=BY_HOST))


# --- why is it unsatisfiable, by parameter --------------------------------------------------------


def test_1415_too_many_gpus_or_too_many_nodes():
    """The answer names the parameter: gpus of a node in one case, nodes in the other."""
    gpus, nodes = ask(MACHINE, "slot=1/[core;gpu=8]"), ask(MACHINE, "slot=9/node")
    assert codes(gpus) == codes(nodes) == ["graph-count"]
    assert (gpus.reasons.funnels[0].binding, nodes.reasons.funnels[0].binding) == ("gpu", "node")
    assert "gpu=4 instead of 8" in str(gpus.reasons)
    assert "slot=4 instead of 9" in str(nodes.reasons)


def test_409_a_rack_where_there_are_no_racks():
    answer = ask(MACHINE, "rack=1/slot=1/node")
    assert codes(answer)[0] == "graph-type"
    assert "this cluster has no rack" in str(answer.reasons)


def test_1002_constraints_that_are_wrong_unknown_or_outside_of_the_queue():
    """The three cases that had one "internal match error" are an error, and two different reasons."""
    with pytest.raises(FormatError, match="rank"):
        ss.Jobspec.from_shape("slot=1/core", constraint="rank:z")
    assert codes(ask(MACHINE, "slot=1/core", constraint="host:n9")) == ["graph-constraint"]
    answer = ask(MACHINE, "slot=1/core", constraint="host:n0", config=TWO_QUEUES, queue="debug")
    assert codes(answer)[0] == "queue-constraint"
    assert answer.placement.takers == ("batch",)


def test_1219_why_a_job_is_not_scheduled():
    """Resources that are in use, that are down, and a property that the nodes have in the graph alone."""
    matcher = ss.Matcher(MACHINE)
    matcher.match(ss.Jobspec.from_shape("slot=4/node", duration=60), starttime=0)
    busy = matcher.feasible_now(ss.Jobspec.from_shape("slot=1/node"))
    assert codes(busy) == ["graph-busy"]
    assert busy.reasons.funnels[0].held_by[0].until == 60
    matcher.release(1)
    matcher.set_status("down", ranks="3")
    down = matcher.feasible_now(ss.Jobspec.from_shape("slot=1/node", constraint="debug"))
    assert codes(down)[0] in ("graph-down", "graph-constraint")
    everywhere = cluster(chassis_graph(properties={host: [*BY_HOST[host], "badrabbit"] for host in HOSTS}))
    answer = ask(everywhere, "slot=1/node", constraint="-badrabbit and batch")
    assert codes(answer) == ["graph-constraint"]
    assert "badrabbit" in str(answer.reasons)


def test_1219_the_property_that_is_in_the_graph_alone_is_found(tmp_path):
    graph = chassis_graph(properties={host: [*BY_HOST[host], "badrabbit"] for host in HOSTS})
    found, result = findings(tmp_path, R_json=r_document(properties=PROPERTIES), jgf_json=graph)
    assert found == ["properties-extra"]
    assert texts(result, "properties-extra")[0].startswith("has the property badrabbit on n[0-3]")


# --- the answer differs by queue, limits, policy --------------------------------------------------


def test_1350_a_queue_whose_property_no_node_has(tmp_path):
    config = {"queues": {"gone": {"requires": ["gone"]}, "batch": {"requires": ["batch"]}}}
    answer = ask(MACHINE, "slot=1/core", config=config, queue="gone")
    assert codes(answer) == ["queue-constraint", "graph-property", "graph-constraint"]
    found, _ = findings(tmp_path, R_json=r_document(properties=PROPERTIES), queues_json=config)
    assert {"queue-property", "queue-empty"} <= set(found)


@pytest.mark.parametrize("policy", ["first", "firstnodex", "lonode", "lonodex", "hinodex", "locality"])
def test_1503_a_rabbit_job_is_feasible_under_every_policy(policy):
    spec = ss.Jobspec.from_shape("chassis=1/[slot=2/node{x}/core;ssd=150{unit: GiB, x}]")
    assert ss.feasible(CHASSIS, spec, policy=policy)
    assert ss.Matcher(CHASSIS, policy=policy).match(spec)


@pytest.mark.parametrize("content", ["node/core", "[node/core;ssd=100{unit: GiB}]"])
@pytest.mark.parametrize("limits", [{}, {"policy": {"limits": {"duration": "1h"}}}])
def test_1508_a_slot_above_nodes_with_and_without_queue_and_storage(content, limits):
    """The answer is one, whether or not the queue's constraint is applied, with storage and without."""
    shape = f"slot=2/{content}"
    config = {"queues": {"pbatch": {"requires": ["batch"], **limits}}}
    assert ask(CHASSIS, shape)
    assert ask(CHASSIS, shape, constraint="batch")
    assert ask(CHASSIS, shape, config=config, queue="pbatch")


def test_flux_core_7676_a_request_without_a_duration_in_a_queue_with_a_limit():
    """Without the default duration it asks for an infinite time; the reason says so."""
    limited = {"queues": {"pbatch": {"requires": ["batch"], "policy": {"limits": {"duration": "1h"}}}}}
    answer = ask(CHASSIS, "slot=1/node/core", config={**limited, "no-limit": "reject"}, queue="pbatch")
    assert codes(answer) == ["limit-duration"]
    assert "the job asks for no limit" in str(answer.reasons)
    default = {"policy": {"jobspec": {"defaults": {"system": {"duration": "30m"}}}}, "no-limit": "reject"}
    answer = ask(CHASSIS, "slot=1/node/core", config={**limited, **default}, queue="pbatch")
    assert answer
    assert answer.placement.duration == 1800
    none = ask(CHASSIS, "slot=1/node/core", config={"queues": {"pdebug": {}}}, queue="pbatch")
    assert codes(none) == ["queue-unknown"]


def test_flux_core_6205_a_queue_and_a_constraint_of_another_queue():
    answer = ask(MACHINE, "slot=1/node", constraint="batch", config=TWO_QUEUES, queue="debug")
    assert codes(answer) == ["queue-constraint", "graph-constraint"]
    assert answer.placement.takers == ("batch",)


# --- R, graph and configuration that disagree -----------------------------------------------------


def test_1556_a_property_that_was_added_to_r_alone(tmp_path):
    """A reservation: a new property and a new queue in R and the configuration, and not in the graph."""
    r = r_document(properties={**PROPERTIES, "dat": "0-1"})
    config = QUEUES + '[queues.dat]\nrequires = ["dat"]\n'
    document = {**r, "scheduling": chassis_graph(properties=BY_HOST)}
    found, result = findings(tmp_path, R_json=document, queues_toml=config)
    assert found == ["properties-missing", "queue-empty", "queue-property"]
    (text,) = texts(result, "properties-missing")
    assert text.startswith("lacks the property dat on n[0-1], which")
    by_host = {**BY_HOST, "n0": ["batch", "dat"], "n1": ["batch", "dat"]}
    document = {**r, "scheduling": chassis_graph(properties=by_host)}
    assert findings(tmp_path, R_json=document, queues_toml=config)[0] == []


def test_1351_properties_and_ranks(tmp_path):
    """Ranks of the graph that are not those of R, and the rank -1 of a graph that was made without ranks."""
    r = r_document(properties=PROPERTIES)
    shifted = chassis_graph(properties=BY_HOST, ranks={"n0": 4, "n1": 5, "n2": 6, "n3": 7})
    found, result = findings(tmp_path, R_json={**r, "scheduling": shifted})
    assert found == ["nodes-ranks"]
    assert texts(result, "nodes-ranks")[0].endswith("and 3 more hosts differ")
    unranked = chassis_graph(properties=BY_HOST, ranks=dict.fromkeys(HOSTS, -1))
    found, result = findings(tmp_path, R_json={**r, "scheduling": unranked})
    assert found == ["nodes-ranks"]
    assert texts(result, "nodes-ranks")[0].startswith("n0 has no rank, and 0 in")


# --- storage counted twice ------------------------------------------------------------------------


def test_coral2_496_allocations_that_are_subtracted_twice(tmp_path):
    """The map takes the free capacity and subtracts what is in use once more."""
    total, used = 200, 25
    wrong = storage_map(gib={"r0": total - 2 * used, "r1": total})
    graph = chassis_graph(pieces=1, piece=total - used, properties=BY_HOST)
    found, result = findings(tmp_path, R_json=graph, map_json=wrong)
    assert found == ["storage-capacity"]
    assert texts(result, "storage-capacity")[0].startswith("150 GiB, and 175 GiB below /cluster0/chassis0")


def test_coral2_497_the_true_total(tmp_path):
    graph = chassis_graph(pieces=1, piece=175, properties=BY_HOST)
    assert findings(tmp_path, R_json=graph, map_json=storage_map(gib=175))[0] == []


def test_coral2_501_a_capacity_below_what_is_free(tmp_path, capsys):
    """External allocations were subtracted although the total had fallen: a server has less than is free.

    The fault names both amounts, and the other files are checked all the same.
    """
    from simsched.cli import main

    graph = chassis_graph(pieces=1, piece=150, properties=BY_HOST)
    paths = written(tmp_path, R_json=graph, map_json=storage_map(gib={"r0": 140, "r1": 150}), queues_json={
        "queues": {"batch": {"requires": ["batch"]}, "debug": {"requires": ["debgu"]}}})  # fmt: skip
    assert main(["check", *map(str, paths), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    (storage,) = [finding for finding in found if finding["code"] == "storage-capacity"]
    assert storage["text"].startswith("140 GiB, and 150 GiB below /cluster0/chassis0")
    assert "queue-property" in {finding["code"] for finding in found}


def test_1544_capacities_that_are_a_year_old(tmp_path):
    """36 pieces of 453 GiB in a chassis of 16 nodes, each of which asks for 1501 GiB."""
    hosts = tuple(f"n{i}" for i in range(16))
    old = chassis_graph({"r0": hosts}, pieces=36, piece=453)
    request = "chassis=1/[slot=16/node{x}/core;ssd=24016{unit: GiB, x}]"
    answer = ask(cluster(old), request)
    chassis, storage = answer.reasons.coded
    assert chassis.code == storage.code == "graph-count"
    assert storage.text.startswith("chassis/ssd: 24016 needed, 16308 available")
    found, result = findings(tmp_path, R_json=old, map_json=storage_map({"r0": hosts}, gib=36 * 616))
    assert found == ["storage-capacity"]
    assert texts(result, "storage-capacity")[0].startswith("22,176 GiB, and 16,308 GiB below")
    new = chassis_graph({"r0": hosts}, pieces=36, piece=616)
    assert findings(tmp_path, R_json=new, map_json=storage_map({"r0": hosts}, gib=36 * 616))[0] == []
    assert not ask(cluster(new), request)


def test_1451_one_pool_per_chassis_or_many_pieces(tmp_path):
    """A request for any amount fits in both; both agree with the same map, rounding included."""
    pieces, pool = chassis_graph(pieces=3, piece=66), chassis_graph(pieces=1, piece=200)
    for document in (pieces, pool):
        for amount in (1, 67, 198):
            assert ask(cluster(document), f"chassis=1/[slot=1/node/core;ssd={amount}{{unit: GiB}}]")
        assert findings(tmp_path, R_json=document, map_json=storage_map(gib=200))[0] == []


def test_a_thread_as_commands(tmp_path, capsys):
    """flux-core#6205 and flux-sched#1350 on the command line."""
    from simsched.cli import main

    r, queues = written(tmp_path, R_json=r_document(properties=PROPERTIES), queues_json=TWO_QUEUES)
    status = main(["feasible", str(r), "slot=1/node", "--constraint", "batch", "--config", str(queues),
                   "--queue", "debug", "--format", "json"])  # fmt: skip
    (answer,) = json.loads(capsys.readouterr().out)
    assert (status, answer["queues"]) == (1, {"batch": [], "debug": ["queue-constraint", "graph-constraint"]})
    assert check_files([r, queues])
