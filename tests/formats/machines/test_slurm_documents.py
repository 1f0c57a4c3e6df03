"""Slurm's JSON: the documents of several data parsers mean the same machine."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simsched as ss
from simsched.errors import FormatError, LimitError, SimschedError
from simsched.formats.machines import recognition
from simsched.formats.machines.read import read_as, understood
from simsched.graph.build.recipe import from_recipe
from simsched.simulation.options.run_config import from_document, make_config
from tests.formats.machines.described import described

read_slurm_document = partial(described, recognition.SLURM_JSON)


def number(value):
    return {"set": value is not None, "infinite": False, "number": value or 0}


INFINITE = {"set": False, "infinite": True, "number": 0}


def node(name, **more):
    return {
        "name": name,
        "architecture": "x86_64",
        "boards": 1,
        "sockets": 2,
        "cores": 16,
        "threads": 2,
        "cpus": 64,
        "real_memory": 256000,
        "temporary_disk": 0,
        "weight": 1,
        "owner": "",
        "reason": "",
        **more,
    }


# slurmrestd of 21.08 and 22.05
V37 = {
    "meta": {"plugin": {"type": "openapi/v0.0.37"}},
    "errors": [],
    "nodes": [
        node(
            "g1",
            features="ib,milan",
            gres="gpu:a100:4",
            state="mixed",
            state_flags=["DRAIN"],
            partitions=["gpu"],
        ),
        node("c1", features="", gres="", state="idle", state_flags=[], partitions=["cpu", "all"]),
    ],
}
# data_parser/v0.0.39: lists of states, effective CPUs
V39 = {
    "meta": {"plugin": {"type": "openapi/dbv0.0.39", "data_parser": "data_parser/v0.0.39"}},
    "nodes": [
        node(
            "g1",
            features="ib,milan",
            gres="gpu:a100:4(S:0-1)",
            state=["MIXED", "DRAIN"],
            effective_cpus=64,
            specialized_memory=0,
            free_mem=number(1000),
            partitions=["gpu"],
        ),
        node("c1", features="", gres="", state=["IDLE"], effective_cpus=64, partitions=["cpu", "all"]),
    ],
}
# data_parser/v0.0.40 and later: features are lists
V43 = {
    "meta": {"plugin": {"data_parser": "data_parser/v0.0.43"}},
    "nodes": [
        node(
            "g1",
            features=["ib", "milan"],
            active_features=["ib"],
            gres="gpu:a100:4(S:0-1)",
            state=["MIXED", "DRAIN"],
            effective_cpus=64,
            specialized_memory=0,
            boot_time=number(1700000000),
            partitions=["gpu"],
        ),
        node("c1", features=[], gres="", state=["IDLE"], effective_cpus=64, partitions=["cpu", "all"]),
    ],
    "last_update": number(1700000000),
    "warnings": [],
    "errors": [],
}

P37 = {
    "partitions": [
        {
            "flags": ["default"],
            "allowed_accounts": "",
            "default_time_limit": 60,
            "max_time_limit": 2880,
            "maximum_nodes_per_job": 8,
            "min nodes per job": 0,
            "name": "cpu",
            "nodes": "c[1-2]",
            "priority_tier": 5,
        },
        {
            "flags": [],
            "default_time_limit": None,
            "max_time_limit": -1,
            "maximum_nodes_per_job": -1,
            "min nodes per job": 1,
            "name": "gpu",
            "nodes": "g1",
            "priority_tier": 9,
        },
    ]
}


def partition(name, hosts, **more):
    row = {
        "name": name,
        "nodes": {"allowed_allocation": "", "configured": hosts, "total": 1},
        "node_sets": "",
        "accounts": {"allowed": "", "deny": ""},
        "groups": {"allowed": ""},
        "qos": {"allowed": "", "deny": "", "assigned": ""},
        "alternate": "",
        "grace_time": 0,
        "tres": {"billing_weights": "", "configured": "cpu=4"},
        "cluster": "",
        "cpus": {"task_binding": 0, "total": 4},
        "defaults": {
            "memory_per_cpu": 0,
            "time": number(None),
            "job": "",
            "partition_memory_per_cpu": number(None),
        },
        "maximums": {
            "cpus_per_node": INFINITE,
            "cpus_per_socket": INFINITE,
            "memory_per_cpu": 0,
            "partition_memory_per_cpu": number(None),
            "partition_memory_per_node": number(None),
            "nodes": INFINITE,
            "shares": 1,
            "time": INFINITE,
            "over_time_limit": number(None),
        },
        "minimums": {"nodes": 0},
        "partition": {"state": ["UP"]},
        "priority": {"job_factor": 1, "tier": 1},
    }
    for key, value in more.items():
        row[key] = row[key] | value if isinstance(row[key], dict) else value
    return row


P40 = {
    "partitions": [
        partition(
            "cpu",
            "c[1-2]",
            defaults={"time": number(60)},
            maximums={"time": number(2880), "nodes": number(8)},
            priority={"tier": 5},
        ),
        partition("gpu", "g1", minimums={"nodes": 1}, priority={"tier": 9}),
    ]
}


def texts(found, kind):
    return [f"{note.where}: {note.text}" for note in found.notes if note.kind == kind]


@pytest.mark.parametrize("document", [V37, V39, V43], ids=["v0.0.37", "v0.0.39", "v0.0.43"])
def test_nodes_of_three_data_parsers(document):
    found = read_slurm_document(document, "nodes.json")
    first, second = found.recipe.groups
    assert (first.hosts, first.cores, first.gpus, first.status) == (("g1",), 32, 4, "drained")
    assert first.properties == ("gpu", "ib", "milan", "a100@gpu")
    assert (second.hosts, second.status, second.properties) == (("c1",), "up", ("cpu", "all"))
    assert found.cpus_per_core == 2
    cluster = ss.Cluster(from_recipe(found.recipe))
    assert ss.feasible(cluster, ss.Jobspec.from_shape("slot=1/[core=32;gpu=4;memory=250{unit: GiB}]"))
    assert texts(found, "fault") == []


P39 = {"partitions": {"partitions": P40["partitions"], "last_update": number(1700000000)}}


@pytest.mark.parametrize("document", [P37, P39, P40], ids=["v0.0.37", "v0.0.39", "v0.0.40"])
def test_partitions_of_three_data_parsers(document):
    found = read_slurm_document(document, "partitions.json")
    limits = {"duration": "2d", "job-size": {"max": {"nnodes": 8}}}
    assert found.config["queues"] == {
        "cpu": {
            "hosts": "c[1-2]",
            "priority": 5,
            "policy": {"limits": limits, "jobspec": {"defaults": {"system": {"duration": "1h"}}}},
        },
        "gpu": {"hosts": "g1", "priority": 9},
    }
    make_config(**from_document(found.config))


def test_only_old_documents_state_the_default_partition():
    assert read_slurm_document(P37, "p").config["policy"]["jobspec"]["defaults"]["system"]["queue"] == "cpu"
    assert texts(read_slurm_document(P40, "p"), "left out") == [
        "p: the default partition, which this JSON does not state"
    ]


@pytest.mark.parametrize(
    ("shares", "note"),
    [
        (0, "match-policy = firstnodex"),
        (0x8004, "OverSubscribe=FORCE"),
        (4, "OverSubscribe=YES"),
        (1, ""),
        ("²", ""),
    ],
)
def test_shares_of_a_partition(shares, note):
    found = read_slurm_document({"partitions": [partition("p", "n1", maximums={"shares": shares})]}, "p.json")
    everything = " ".join(entry.text for entry in found.notes)
    assert note in everything
    assert ("OverSubscribe" in everything) is (shares in (0x8004, 4))


def sinfo(hosts, state, part, least=64, most=64, **more):
    def span(low, high=None):
        return {"minimum": low, "maximum": low if high is None else high}

    return {
        "port": 6818,
        "node": {"state": [state]},
        "nodes": {"allocated": 0, "total": 1, "nodes": hosts},
        "cpus": {**span(least, most), "total": 64},
        "sockets": span(2),
        "cores": span(16),
        "threads": span(2),
        "disk": span(0),
        "memory": {**span(256000), "free": span(1)},
        "weight": span(1),
        "features": {"total": "ib", "active": "ib"},
        "gres": {"total": "gpu:a100:4", "used": "gpu:0"},
        "partition": part,
        **more,
    }


def test_sinfo_joins_the_lines_of_a_node():
    gpu, everything = partition("gpu", "n[1-3]"), partition("all", "n[1-3]", priority={"tier": 3})
    document = {
        "sinfo": [
            sinfo(["n[1-2]"], "IDLE", gpu),
            sinfo(["n3"], "DRAIN", gpu),
            sinfo(["n1", "n2"], "IDLE", everything),
            sinfo(["n3"], "DRAIN", everything),
            sinfo([], "IDLE", partition("none", "")),
        ]
    }
    found = read_slurm_document(document, "sinfo.json")
    (group,) = found.recipe.groups
    assert (group.hosts, group.properties) == (("n1", "n2", "n3"), ("gpu", "all", "ib", "a100@gpu"))
    assert (group.cores, group.gpus, group.drained) == (32, 4, {"n3"})
    assert found.config["queues"]["all"] == {"requires": ["all"], "priority": 3}
    assert texts(found, "fault") == []
    assert "sinfo.json: partitions" not in texts(found, "assumed")


def test_sinfo_that_joins_unlike_nodes_is_noted():
    found = read_slurm_document({"sinfo": [sinfo(["n[1-2]"], "IDLE", {"name": "p"}, 64, 128)]}, "s.json")
    assert (
        "s.json: sinfo[0]: sinfo joins nodes with different cpus: the smallest is taken for all of them"
        in texts(found, "assumed")
    )


def test_nodes_and_partitions_of_two_documents_are_one_site():
    files = ((V43, "nodes.json"), (P40, "partitions.json"))
    found = understood([read_as(recognition.SLURM_JSON, *file) for file in files])
    assert found.config["queues"]["gpu"] == {"requires": ["gpu"], "priority": 9}
    assert found.config["queues"]["cpu"]["requires"] == ["cpu"]
    assert [note.text for note in found.notes if note.kind == "fault"] == [
        "partition cpu: there is no node c2 (expected a NodeName before it)"
    ]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ([], "x: this is not a document of Slurm"),
        ({"jobs": []}, "x: this is not a document of Slurm"),
        ({"nodes": {"n1": {"state": "free"}}}, "x: this is not a document of Slurm"),
    ],
)
def test_other_documents_are_errors(document, fault):
    with pytest.raises(FormatError) as error:
        read_slurm_document(document, "x")
    assert str(error.value).startswith(fault)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (3, "x: nodes[1]: found 3 (expected an object)"),
        ({"cpus": 4}, "x: nodes[1]: a node without a name"),
        ({"name": "c1", "cpus": 4}, "x: nodes[1]: the node 'c1' occurs twice; that of x: nodes[0] counts"),
        ({"name": "c2", "cpus": "many"}, "x: nodes[1]: cpus: 'many' is not valid"),
        ({"name": "c2", "cpus": -1}, "x: nodes[1]: cpus: '-1' is not valid"),
        ({"name": "c2", "real_memory": 1.5}, "x: nodes[1]: realmemory: '1.5' is not valid"),
    ],
)
def test_faults_of_a_node_are_notes(row, fault):
    document = {"nodes": [node("c1"), row]}
    found = read_slurm_document(document, "x")
    assert texts(found, "fault")[0].startswith(fault)
    assert found.recipe.groups[0].hosts[0] == "c1"
    with pytest.raises(FormatError) as error:
        read_slurm_document(document, "x", strict=True)
    assert str(error.value).startswith(fault)


KEYS = st.sampled_from(
    ["name", "nodes", "partitions", "sinfo", "cpus", "state", "partition", "maximums", "time", "gres"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["n[1-2]", "gpu:2"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(
    VALUES | st.dictionaries(st.sampled_from(["nodes", "partitions", "sinfo"]), st.lists(VALUES, max_size=4))
)
def test_any_document_is_a_description_or_an_error_of_ours(document):
    try:
        found = read_slurm_document(document, "any")
        make_config(**from_document(found.config))
        if found.recipe.groups:
            ss.Cluster(from_recipe(found.recipe))
    except SimschedError:
        pass


def test_a_list_of_millions_is_refused():
    with pytest.raises(LimitError, match=r"^d: nodes: 1,000,001 nodes \(expected at most 1,000,000\)"):
        read_slurm_document({"nodes": [0] * 1_000_001}, "d")
