"""Recipes: groups of like nodes, their inside, levels above them, network and power."""

import pytest

from simsched.errors import ClusterError, LimitError
from simsched.graph.build.cluster_files import graph_from_document
from simsched.graph.resource_graph import children, execution_targets, parents, pool_of, pools, subsystems


def made(**recipe):
    return graph_from_document(recipe)


def node(**words):
    return {"name": "n", "count": 1, **words}


def test_cores_and_gpus_divide_over_localities_with_ids_of_the_node():
    graph = made(groups=[node(sockets=2, numa=2, cores=8, gpus=3)])
    assert children(graph, "n0/socket1") == ["n0/socket1/numa2", "n0/socket1/numa3"]
    cores = [str(pool.ids) for _, pool in pools(graph) if pool.type == "core"]
    gpus = [str(pool.ids) for _, pool in pools(graph) if pool.type == "gpu"]
    assert cores == ["0-1", "2-3", "4-5", "6-7"]
    assert gpus == ["0", "1", "2"]


def test_memory_storage_and_other_pools_are_where_they_are_said_to_be():
    graph = made(
        groups=[
            node(
                sockets=2,
                cores=2,
                memory="64 GB",
                storage=[{"type": "nvme", "size": "2 TB", "count": 2, "path": "/s"}],
                pools=[{"type": "hbm", "size": "16 GiB", "in": "socket", "properties": ["fast"]}],
            )
        ],
        pools=[{"type": "license", "size": 5}],
    )
    assert children(graph, "n0") == ["n0/socket0", "n0/socket1", "n0/memory0", "n0/nvme0", "n0/nvme1"]
    assert pool_of(graph, "n0/nvme1").extra == {"path": "/s"}
    assert [key for key, pool in pools(graph) if pool.type == "hbm"] == ["n0/socket0/hbm0", "n0/socket1/hbm1"]
    assert pool_of(graph, "license0").size == 5
    assert parents(graph, "license0") == ["cluster0"]


def test_pools_may_have_a_name():
    pools_ = [{"type": "License", "size": 4, "name": "ESSL2"}, {"type": "bb", "name": "burst", "count": 2}]
    graph = made(groups=[node()], pools=pools_)
    found = pool_of(graph, "ESSL2")
    assert (found.name, found.basename, found.id, found.size) == ("ESSL2", "ESSL", 2, 4)
    assert children(graph, "cluster0") == ["n0", "ESSL2", "burst0", "burst1"]


def test_nodes_spread_evenly_over_levels_in_blocks():
    graph = made(groups=[node(count=10)], levels=[{"type": "row", "count": 2}, {"type": "rack", "count": 2}])
    assert [len(children(graph, f"rack{n}")) for n in range(4)] == [3, 2, 3, 2]
    assert children(graph, "row1") == ["rack2", "rack3"]
    assert execution_targets(graph) == [f"n{n}" for n in range(10)]


def test_groups_make_one_machine_and_may_have_racks_of_their_own():
    graph = made(
        groups=[
            {"name": "a", "count": 2, "cores": 4, "properties": ["x", "y@gpu"], "gpus": 1},
            {"name": "b", "hosts": ["b[7,9]"], "racks": 2, "down": "b9"},
        ],
        racks=1,
    )
    assert children(graph, "rack0") == ["a0", "a1"]
    assert [children(graph, f"rack{n}") for n in (1, 2)] == [["b7"], ["b9"]]
    assert [pool_of(graph, key).rank for key in ("a0", "a1", "b7", "b9")] == [0, 1, 2, 3]
    assert [pool_of(graph, key).status for key in ("b7", "b9")] == ["up", "down"]
    assert list(pool_of(graph, "a1/gpu").properties) == ["y"]


def test_a_fat_tree_with_pods_and_spines(machine):
    graph = machine.graph
    assert subsystems(graph) == ["containment", "network", "power"]
    assert children(graph, "fabric0", "network") == ["spine0", "spine1"]
    assert children(graph, "spine1", "network") == ["pod0", "pod1"]
    assert parents(graph, "pod0", "network") == ["spine0", "spine1"]
    assert children(graph, "pod1", "network") == ["switch2", "switch3"]
    assert children(graph, "switch3", "network") == ["fat1", "fat2"]


def test_a_fat_tree_without_either_hangs_on_its_fabric():
    graph = made(groups=[node(count=4)], network={"type": "fat-tree", "nodes_per_leaf": 3})
    assert children(graph, "fabric0", "network") == ["switch0", "switch1"]
    assert children(graph, "switch1", "network") == ["n3"]


def test_a_dragonfly_divides_nodes_over_routers():
    graph = made(groups=[node(count=5)], network={"type": "dragonfly", "groups": 2, "routers_per_group": 2})
    assert children(graph, "group1", "network") == ["router2", "router3"]
    assert [len(children(graph, f"router{n}", "network")) for n in range(4)] == [2, 1, 1, 1]


def tree(*switches, count=5):
    return {"groups": [node(count=count)], "network": {"type": "tree", "switches": list(switches)}}


def test_a_tree_has_the_listed_switches_below_the_fabric():
    graph = made(
        **tree(
            {"name": "top", "type": "switch-level-1", "switches": "leaf[0-1]"},
            {"name": "leaf0", "hosts": "n[0-2]"},
            {"name": "leaf1", "hosts": "n3"},
            {"name": "n4", "hosts": "n4"},
        )
    )
    assert children(graph, "fabric0", "network") == ["top", "switch/n4"]
    assert children(graph, "top", "network") == ["leaf0", "leaf1"]
    assert children(graph, "leaf0", "network") == ["n0", "n1", "n2"]
    assert (pool_of(graph, "top").type, pool_of(graph, "leaf1").id) == ("switch-level-1", 1)


@pytest.mark.parametrize(
    ("switches", "fault"),
    [
        ([{"name": "s", "hosts": "n7"}], "network: s: there is no node 'n7'"),
        ([{"name": "s", "switches": "t"}], "network: s: there is no switch 't'"),
        ([{"name": "s"}, {"name": "s"}], "the switch 's' occurs twice"),
        ([{"name": "s", "switches": "t"}, {"name": "t", "switches": "s"}], "cycle"),
    ],
)
def test_faults_of_a_tree(switches, fault):
    with pytest.raises(ClusterError, match=fault):
        made(**tree(*switches))


def test_budgets_are_pools_of_the_power_subsystem(machine):
    graph = machine.graph
    assert children(graph, "powerpanel0", "power") == ["powerpanel0/power", "pdu0", "pdu1"]
    assert (pool_of(graph, "pdu0/power").size, pool_of(graph, "pdu0/power").unit) == (8000, "W")
    assert children(graph, "pdu1", "power") == ["pdu1/power", "gpu4", "gpu5", "fat1", "fat2"]
    assert children(graph, "gpu4", "power") == ["gpu4/power"]
    assert "pdu1" in children(graph, "rack1")


@pytest.mark.parametrize(
    ("recipe", "fault"),
    [
        ({"groups": [node(), node()]}, "group 'n': the host 'n0' occurs twice"),
        (
            {"groups": [node()], "power": {"per": {"row": "1 kW"}}},
            "no level 'row' .expected a recipe with levels",
        ),
        ({"groups": [node()], "racks": 1, "power": {"per": {"row": "1 kW"}}}, "expected rack"),
        ({"groups": [node()], "power": {"budget": "3 GB"}}, "GB is a unit of memory"),
    ],
)
def test_recipes_that_do_not_fit_together(recipe, fault):
    with pytest.raises(ClusterError, match=fault):
        graph_from_document(recipe)


def test_a_recipe_for_too_much_is_counted_and_not_made():
    with pytest.raises(LimitError, match=r"makes .* vertices"):
        made(groups=[node(count=1_000_000, numa=100, cores=100)])
    with pytest.raises(ClusterError, match="2,000,000 nodes"):
        made(groups=[node(count=1_000_000), {"name": "m", "count": 1_000_000}])


def test_named_ids_divide_over_the_localities():
    graph = made(groups=[node(sockets=2, core_ids="2-5,8-9", gpu_ids="1,7")])
    assert [str(pool_of(graph, f"n0/socket{at}/core").ids) for at in (0, 1)] == ["2-4", "5,8-9"]
    assert [str(pool_of(graph, f"n0/socket{at}/gpu").ids) for at in (0, 1)] == ["1", "7"]
