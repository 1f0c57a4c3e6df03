"""Recipe documents: the schema, and the faults of the unwary in our words."""

import pytest
from jsonschema import Draft202012Validator

from simsched.errors import ClusterError, FormatError
from simsched.formats.cluster.recipe import (
    Amount,
    Dragonfly,
    FatTree,
    Level,
    RecipeTable,
    Switch,
    SwitchTree,
    format_recipe,
    parse_recipe,
    recipe_document,
)
from simsched.formats.text.yaml_text import load_yaml


def group(**words):
    return {"groups": [{"name": "n", "count": 4, **words}]}


def test_the_schema_is_one():
    Draft202012Validator.check_schema(RecipeTable.schema())


def test_short_words_and_long_ones_mean_the_same():
    short = parse_recipe({**group(sockets=2, numa=2), "racks": 3})
    long = parse_recipe(
        {
            **group(locality=[{"type": "socket", "count": 2}, {"type": "numa", "count": 2}]),
            "levels": [{"type": "rack", "count": 3}],
        }
    )
    assert short == long
    assert short.levels == (Level("rack", 3),)


def test_hosts_by_name_and_number_or_as_written():
    assert parse_recipe(group()).groups[0].hosts == ("n0", "n1", "n2", "n3")
    found = parse_recipe({"groups": [{"name": "x", "hosts": ["a[08-09]", "b"]}]}).groups[0]
    assert found.hosts == ("a08", "a09", "b")


@pytest.mark.parametrize(
    ("text", "amount"), [(5, Amount(5)), ("512 GB", Amount(512, "GB")), ("2TiB", Amount(2, "TiB"))]
)
def test_amounts(text, amount):
    assert parse_recipe(group(memory=text)).groups[0].pools[0].amount == amount


def test_networks():
    fat = parse_recipe({**group(), "network": {"type": "fat-tree", "nodes_per_leaf": 2, "spines": 4}})
    fly = parse_recipe({**group(), "network": {"type": "dragonfly", "groups": 2, "routers_per_group": 3}})
    assert fat.network == FatTree(nodes_per_leaf=2, spines=4)
    assert fly.network == Dragonfly(groups=2, routers_per_group=3)


def test_a_tree_lists_its_switches():
    rows = [
        {"name": "leaf0", "hosts": "n[0-1]"},
        {"name": "top", "type": "core-switch", "switches": ["leaf0"]},
    ]
    found = parse_recipe({**group(), "network": {"type": "tree", "switches": rows}}).network
    leaf = Switch(name="leaf0", hosts=("n0", "n1"))
    assert found == SwitchTree(switches=(leaf, Switch(name="top", type="core-switch", switches=("leaf0",))))


def test_recipes_are_written_as_yaml_that_reads_back():
    document = {**group(memory="64 GB", properties=["a", "on"]), "racks": 2}
    assert load_yaml(format_recipe(document)) == document


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ([], r"f.yaml: \[\] is not a table .expected version, name"),
        ({}, "f.yaml: the key 'groups' is missing"),
        ({"groups": []}, r"groups: the number of items is 0 \(expected at least 1 item\)"),
        (group(memory="10 kW"), r"groups\[0\].memory: kW is not a unit of memory .expected B, GB"),
        (
            group(pools=[{"type": "node"}]),
            r"groups\[0\].pools\[0\].type: a level or pool cannot have the type",
        ),
        (
            {**group(), "levels": [{"type": "node", "count": 2}]},
            r"f.yaml: levels\[0\].type: a level or pool cannot have the type node",
        ),
        (group(locality=[{"type": "cluster", "count": 2}]), "a level or pool cannot have the type cluster"),
        (
            group(cuont=3),
            r"f.yaml: groups\[0\].cuont: unknown key 'cuont'; did you mean count\? .expected name, count",
        ),
        ({**group(), "rack": 3}, "f.yaml: rack: unknown key 'rack'; did you mean racks"),
        ({"groups": [{"name": "n"}]}, r"groups\[0\]: neither count nor hosts is given"),
        ({"groups": [{"count": 2}]}, r"groups\[0\]: the key 'name' is missing"),
        (group(count=0), r"groups\[0\].count"),
        (group(cores=-1), r"groups\[0\].cores"),
        (
            group(cores="4"),
            r"groups\[0\].cores: '4' is not a whole number .expected a whole number from 0 to 1,000,000",
        ),
        (
            group(memory="lots"),
            "memory: 'lots' is not an amount .expected a whole number or a whole number and a unit, like",
        ),
        (group(memory="5 GBs"), r"groups\[0\].memory: unknown unit 'GBs'"),
        (
            group(memory=[]),
            r"groups\[0\].memory: \[\] is not an amount .expected a whole number or a whole number and a",
        ),
        (group(status="asleep"), "unknown value 'asleep' .expected up, down, drained"),
        (group(properties=["a|b"]), r"groups\[0\].properties: property 'a\|b' has the forbidden character"),
        (group(hosts="n[0-"), r"groups\[0\].hosts"),
        (group(sockets=2, locality=[]), "locality and sockets or numa are both given"),
        ({**group(), "racks": 2, "levels": []}, "racks and levels are both given"),
        (
            {**group(), "network": {"type": "mesh"}},
            "network.type: unknown value 'mesh' .expected fat-tree, dragonfly, tree",
        ),
        (
            {**group(), "network": {"type ": "tree", "spines": 2}},
            "unknown key 'type '; did you mean type",
        ),
        ({**group(), "network": {"spines": 2}}, "network: the key 'type' is missing .expected fat-tree or"),
        ({**group(), "network": {"type": "dragonfly"}}, "network: the key 'groups' is missing"),
        ({**group(), "power": {"per": {}}}, "power.per: the number of keys is 0 .expected at least 1 key"),
        ({**group(), "version": 2}, "version: 2 is not the version of recipes .expected 1"),
    ],
)
def test_faults_name_their_path_and_what_was_expected(document, fault):
    with pytest.raises(FormatError, match=fault):
        parse_recipe(document, where="f.yaml")


def test_all_faults_of_a_recipe_are_told_however_long_its_name():
    document = group(hosts="n[0-", cores="x", cuont=3)
    with pytest.raises(FormatError) as caught:
        parse_recipe(document, where="long/" * 200 + "f.yaml")
    faults = [str(fault) for fault in (caught.value, *caught.value.others)]
    assert [fault.partition("/f.yaml: ")[2].partition(": ")[0] for fault in faults] == [
        "groups[0].cuont",
        "groups[0].hosts",
        "groups[0].cores",
    ]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ({"hosts": "n[0-4]"}, "the count is 4, but there are 5 hosts"),
        ({"sockets": 3, "cores": 4}, "4 cores do not divide over 3 sockets"),
        ({"down": "x"}, r"groups\[0\].down: 'x' is not in this group"),
        ({"pools": [{"type": "hbm", "in": "socket"}]}, "these nodes have no 'socket' .expected node"),
    ],
)
def test_counts_that_do_not_fit(words, fault):
    with pytest.raises(ClusterError, match=fault):
        parse_recipe(group(**words))


def test_power_has_one_level():
    with pytest.raises(FormatError, match=r"power\.per: the number of keys is 2 \(expected at most 1 key\)"):
        parse_recipe({**group(), "power": {"per": {"rack": "1 kW", "pod": "2 kW"}}})


def test_ids_of_cores_and_gpus_are_kept_as_given():
    recipe = parse_recipe({"groups": [{"name": "n", "count": 1, "core_ids": "2-3,8-9", "gpu_ids": "1"}]})
    assert (recipe.groups[0].cores, str(recipe.groups[0].core_ids), recipe.groups[0].gpus) == (
        4,
        "2-3,8-9",
        1,
    )
    with pytest.raises(ClusterError, match=r"core_ids: there are 2 ids, but 4 cores"):
        parse_recipe({"groups": [{"name": "n", "count": 1, "cores": 4, "core_ids": "2-3"}]})
    with pytest.raises(FormatError, match="core_ids"):
        parse_recipe({"groups": [{"name": "n", "count": 1, "core_ids": "3-2"}]})


EVERYTHING = {
    "name": "all",
    "groups": [
        {
            "name": "a",
            "hosts": "a[01-12],login",
            "sockets": 2,
            "numa": 2,
            "cores": 8,
            "gpu_ids": "1-2",
            "memory": "256 GiB",
            "pools": [
                {"type": "hbm", "size": "16 GB", "in": "numa"},
                {
                    "type": "ssd",
                    "name": "fast",
                    "size": "1 TB",
                    "count": 2,
                    "path": "/x",
                    "properties": ["p"],
                },
            ],
            "properties": ["batch", "a100@gpu"],
            "down": "a[02-03]",
            "drained": "login",
        },
        {"name": "b", "hosts": "b0", "status": "drained", "racks": 2},
    ],
    "levels": [{"type": "row", "count": 2}, {"type": "rack", "count": 2}],
    "pools": [{"type": "licence", "size": 4}],
    "network": {"type": "fat-tree", "nodes_per_leaf": 4, "leaves_per_pod": 2, "spines": 2},
    "power": {"budget": "10 kW", "per": {"rack": "5 kW"}, "node": "1 kW"},
}


def test_a_recipe_is_written_as_it_is_read():
    assert recipe_document(parse_recipe(EVERYTHING)) == EVERYTHING
    ring = {**group(), "network": {"type": "dragonfly", "groups": 2, "routers_per_group": 1}}
    assert parse_recipe(recipe_document(parse_recipe(ring))) == parse_recipe(ring)
