"""``simsched check``: sound sites have no finding, and each broken site has those of its fault alone."""

from __future__ import annotations

import json

import jsonschema
import pytest

import simsched as ss
from simsched.check.rules import RULES, check_files
from simsched.cli import main
from simsched.errors import ConfigError, FormatError
from simsched.site.site_folder import save_site
from tests.check.siteworld import (
    BY_HOST,
    HOSTS,
    PROPERTIES,
    QUEUES,
    Graph,
    chassis_graph,
    findings,
    r_document,
    storage_map,
    texts,
    vertex,
    written,
)

R = r_document(properties=PROPERTIES)
GRAPH = chassis_graph(properties=BY_HOST)


def both(r=R, graph=GRAPH):
    """R with its graph in one document."""
    return {**r, "scheduling": {"graph": graph["graph"]}}


# --- sound sites ----------------------------------------------------------------------------------


def test_a_sound_site_of_four_files(tmp_path):
    codes, result = findings(tmp_path, R_json=R, jgf_json=GRAPH, queues_toml=QUEUES, map_json=storage_map())
    assert codes == []
    assert result
    assert result.findings == ()
    assert result.summary == "4 nodes, 16 cores; 2 queues; 2 storage servers; 4 files"


def test_r_and_graph_in_one_document(tmp_path):
    assert findings(tmp_path, R_json=both(), queues_toml=QUEUES, map_json=storage_map())[0] == []


def test_a_recipe_has_no_ranks_of_its_own(tmp_path):
    recipe = "groups:\n- {name: n, hosts: 'n[3,2,1,0]', cores: 4, properties: []}\n"
    assert findings(tmp_path, R_json=r_document(), cluster_yaml=recipe)[0] == []


def test_a_graph_may_lack_the_nodes_that_flux_excludes(tmp_path):
    """flux-dws2jgf leaves excluded nodes out, and queues need not have them."""
    r = r_document((*HOSTS, "login"), properties=PROPERTIES)
    config = '[resource]\nexclude = "login"\n' + QUEUES
    assert findings(tmp_path, R_json=r, jgf_json=GRAPH, flux_toml=config)[0] == []
    assert findings(tmp_path, R_json=r, jgf_json=GRAPH, flux_toml=config.replace('"login"', '"4"'))[0] == []


def test_servers_that_are_ranks_of_r(tmp_path):
    """A rabbit is a rank of R, and a vertex of another type in the graph."""
    r = r_document((*HOSTS, "r0", "r1"), properties={**PROPERTIES, "batch": "0-2,4-5"})
    graph = chassis_graph(properties=BY_HOST, servers_in={"r0": 4, "r1": 5})
    for node in graph["graph"]["nodes"]:
        if node["metadata"]["type"] == "storage_node":
            node["metadata"]["properties"] = {"batch": ""}
    for server, rank in (("chassis0/r0", 4), ("chassis1/r1", 5)):
        for core in range(4):
            key = f"cluster0/{server}/core{core}"
            graph["graph"]["nodes"].append(vertex(key, "core", f"core{core}", rank=rank))
            graph["graph"]["edges"].append({"source": f"cluster0/{server}", "target": key})
    assert findings(tmp_path, R_json=r, jgf_json=graph, map_json=storage_map())[0] == []


def test_overlapping_queues_are_a_note(tmp_path):
    r = r_document(properties={"batch": "0-3", "debug": "3"})
    codes, result = findings(tmp_path, R_json=r, queues_toml=QUEUES)
    assert codes == []
    assert result
    assert texts(result, "queues-overlap") == ["batch, debug have nodes in common and are scheduled together"]


def test_storage_of_nodes_beside_that_of_their_chassis(tmp_path):
    """Nodes with a disk of their own, of another size than the server's: two storages."""
    graph = chassis_graph(properties=BY_HOST, on_nodes=7)
    assert findings(tmp_path, R_json=R, jgf_json=graph, map_json=storage_map())[0] == []


def test_cores_with_hardware_threads_and_memory_in_other_units(tmp_path):
    """Cores count where they have parts; memory is compared in bytes, and not with R."""
    graph = Graph()
    for at, host in enumerate(HOSTS):
        node = graph.add("cluster0", "node", host, rank=at)
        graph.add(node, "memory", "memory0", size=2, unit="GiB")
        for number in range(4):
            core = graph.add(node, "core", f"core{number}")
            for thread in range(2):
                graph.add(core, "pu", f"pu{thread}")
    recipe = "groups:\n- {name: n, hosts: 'n[0-3]', cores: 4, memory: 2048 MiB}\n"
    r = r_document(memory=7)
    assert findings(tmp_path, R_json=r, jgf_json=graph.document(), cluster_yaml=recipe)[0] == []
    wrong = recipe.replace("2048", "1024")
    assert findings(tmp_path, jgf_json=graph.document(), cluster_yaml=wrong)[0] == ["nodes-units"]


# --- ten broken sites, and more -------------------------------------------------------------------

QUEUES_2 = QUEUES.replace('["debug"]', '["debgu"]')
MAP = storage_map()
WITH_DISKS = "groups:\n- {name: n, count: 4, cores: 4, storage: [{type: ssd, size: 100 GiB}]}\n"
LIMITS = "[queues.debug.policy.limits]\njob-size."


@pytest.mark.parametrize(
    ("files", "expected", "words"),
    [
        (
            {"R_json": R, "jgf_json": chassis_graph({"r0": HOSTS[:2], "r1": HOSTS[2:3]}, properties=BY_HOST)},
            ["nodes-hosts", "nodes-number"],
            "lacks n3, which",
        ),
        (
            {"R_json": R, "jgf_json": chassis_graph(properties=BY_HOST, ranks={"n0": 1, "n1": 0})},
            ["nodes-ranks"],
            "n0 has rank 1, and 0 in",
        ),
        (
            {"R_json": R, "jgf_json": chassis_graph(cores=3, properties=BY_HOST)},
            ["nodes-units"],
            "core=3 on n[0-3], and 4 in",
        ),
        (
            {"R_json": R, "jgf_json": chassis_graph(properties={**BY_HOST, "n3": ["debug", "bad"]})},
            ["properties-extra"],
            "has the property bad on n3, which",
        ),
        (
            {"R_json": R, "queues_toml": QUEUES_2},
            ["node-unqueued", "queue-empty", "queue-property"],
            "no node has the property debgu; did you mean debug?",
        ),
        (
            {"R_json": R, "queues_toml": QUEUES + 'hosts = "n[3-5]"\n'},
            ["queue-host"],
            "the machine has no n[4-5]",
        ),
        (
            {"R_json": R, "queues_toml": QUEUES.partition("[queues.debug]")[0]},
            ["node-unqueued"],
            "1 of 4 nodes are in no queue: n3",
        ),
        (
            {"R_json": R, "queues_toml": f"{QUEUES}{LIMITS}min.nnodes = 2\n"},
            ["limit-unreachable"],
            "min.nnodes is 2, and the nodes of the queue have 1 nodes",
        ),
        (
            {"R_json": R, "queues_toml": f"{QUEUES}{LIMITS}min.ncores = 3\njob-size.max.ncores = 2\n"},
            ["limit-crossed"],
            "min.ncores is 3, and max.ncores is 2: no job can meet both",
        ),
        (
            {"R_json": R, "queues_toml": f"{QUEUES}[[limits]]\nrunning-jobs = 0\n"},
            ["limit-zero"],
            "running-jobs = 0 allows no job",
        ),
        (
            {"R_json": R, "queues_toml": f'{QUEUES}[[limits]]\nqueue = "debgu"\ncores = 1\n'},
            ["limit-unknown-queue"],
            "there is no queue 'debgu'; did you mean debug?",
        ),
        (
            {"R_json": R, "queues_toml": QUEUES + '[policy.limits]\nduration = "1h"\n'
             '[queues.debug.policy.jobspec.defaults.system]\nduration = "2h"\n'},
            ["default-above-limit"],
            "the default duration is 2h, and the limit 1h",
        ),
        (
            {"R_json": R, "jgf_json": chassis_graph(properties=BY_HOST, on_nodes=100)},
            ["storage-twice"],
            "ssd below /cluster0/chassis0 and as much ssd below its parts: the same storage counts twice",
        ),
        (
            {"R_json": r_document(properties=PROPERTIES, ssd=2), "jgf_json": GRAPH},
            ["storage-twice"],
            "R_lite counts ssd on its ranks",
        ),
        (
            {"R_json": R, "jgf_json": GRAPH, "map_json": storage_map(gib=100)},
            ["storage-twice"],
            "200 GiB below /cluster0/chassis0, twice the capacity of r0",
        ),
        (
            {"R_json": r_document(properties=PROPERTIES, ssd=2), "map_json": storage_map()},
            ["storage-twice"],
            "counts storage on n[0-3], which",
        ),
        (
            {"R_json": R, "map_json": storage_map({"r0": HOSTS[:2], "r1": ("n2", "n9")})},
            ["storage-host"],
            "has no n9",
        ),
        (
            {"R_json": R, "map_json": {**MAP, "computes": {**MAP["computes"], "n0": "r1"}}},
            ["storage-map"],
            "n0 is at r0 and at r1",
        ),
        (
            {"R_json": R, "jgf_json": GRAPH,
             "map_json": storage_map({"r0": ("n0", "n2"), "r1": ("n1", "n3")})},
            ["storage-place"],
            "the hosts of r0",
        ),
        (
            {"R_json": R, "flux_toml": '[resource]\nexclude = "n[3-4]"\n'},
            ["excluded-unknown"],
            "has no n4",
        ),
        (
            {"R_json": R, "flux_toml": '[resource]\nexclude = "n[3"\n'},
            ["excluded-unknown"],
            "never closed",
        ),
        (
            {"R_json": R, "flux_toml": '[resource]\nexclude = "0,7-8"\n'},
            ["excluded-unknown"],
            "has no rank 7-8",
        ),
        (
            {"cluster_yaml": WITH_DISKS, "map_json": storage_map()},
            ["storage-twice"],
            "counts storage on n[0-3], which",
        ),
        (
            {"R_json": R, "outages_yaml": "- {ranks: '3-5', start: 0, end: 1h, kind: drain}\n"},
            ["excluded-unknown"],
            "has no rank 4-5",
        ),
        (
            {"R_json": R, "queues_toml": QUEUES.replace('queue = "batch"', 'queue = "bacth"')},
            ["configuration-invalid"],
            "the default queue 'bacth' does not exist",
        ),
        (
            {"R_json": R, "cluster_yaml": "groups:\n- {name: n, count: 4, cores: 4, down: n9}\n"},
            ["machine-impossible"],
            "'n9' is not in this group",
        ),
    ],
)  # fmt: skip
def test_a_broken_site(tmp_path, files, expected, words):
    codes, result = findings(tmp_path, **files)
    assert codes == expected
    assert not result
    assert any(words in finding.text for finding in result.findings), result.findings
    assert all(finding.where.startswith(str(tmp_path)) for finding in result.findings)


def test_every_rule_is_shown_to_find_something():
    """The rules that the sites above and the threads exercise are all of the table but that of imports."""
    shown = {code for _, codes, _ in _cases() for code in codes}
    threads = {"properties-missing", "storage-capacity", "queues-overlap", "nodes-twice", "import-fault"}
    assert shown | threads == set(RULES)


def _cases():
    (mark,) = test_a_broken_site.pytestmark
    return mark.args[1]


def test_a_host_twice_in_a_graph(tmp_path):
    graph = chassis_graph({"r0": ("n0", "n1"), "r1": ("n1",)}, ranks={})
    codes, result = findings(tmp_path, R_json=graph)
    assert codes == ["nodes-twice"]
    assert texts(result, "nodes-twice") == ["has n1 more than once"]


def test_faults_of_several_kinds_are_all_found(tmp_path):
    graph = chassis_graph(cores=3, properties={**BY_HOST, "n3": []}, on_nodes=100)
    codes, _ = findings(
        tmp_path, R_json=R, jgf_json=graph, queues_toml=QUEUES_2, map_json=storage_map(gib=1000)
    )
    assert codes == [
        "node-unqueued",
        "nodes-units",
        "properties-missing",
        "queue-empty",
        "queue-property",
        "storage-capacity",
        "storage-twice",
    ]


def test_faults_of_an_import(tmp_path):
    from simsched.formats.machines.description import Note
    from simsched.site.site import Site

    (path,) = written(tmp_path, cluster_yaml="groups:\n- {name: n, count: 2, cores: 4}\n")
    notes = (Note("fault", "the line was not understood", "slurm.conf:3"), Note("assumed", "fine"))
    site = Site(name="s", config={"queues": {"q": {}}}, notes=notes, cluster_file=path)
    result = check_files([], site)
    assert [(f.code, f.where) for f in result.findings] == [("import-fault", "slurm.conf:3")]


def test_the_folder_of_a_site(tmp_path):
    written(tmp_path, cluster_yaml="groups:\n- {name: n, hosts: 'n[0-3]', cores: 4}\n", queues_toml=QUEUES)
    result = check_files([], tmp_path)
    assert {finding.code for finding in result.findings} == {"queue-property", "queue-empty", "node-unqueued"}
    (tmp_path / "queues.toml").write_text('[queues.a]\nparent = "b"\n')
    assert {finding.code for finding in check_files([], tmp_path).findings} == {"configuration-invalid"}
    (other,) = written(tmp_path, R_json=r_document(HOSTS[:3]))
    assert "nodes-hosts" in {finding.code for finding in check_files([other], tmp_path).findings}


# --- wrong inputs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "the file is empty"),
        ("hello: world\n", "this is not a file of a site"),
        ("[]", "this is not a file of a site"),
        ("JobID|Submit|Start\n1|2024-01-01T00:00:00|x\n", "it looks like sacct"),
        ('{"graph": {"nodes": 3}}', "expected"),
        ('{"computes": {}, "rabbits": {"r0": {"capacity": -1}}}', "a number of bytes"),
        ('{"computes": {"n0": 3}, "rabbits": {}}', "the name of a server"),
        ('{"computes": [], "rabbits": {}}', "an object"),
        ("[queues.a\n", "not TOML"),
        ('{"version": 2, "execution": {}}', "R of version 2"),
        ("- {ranks: 0}\n", "an outage needs ranks or hosts, and a start"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, content, fault):
    path = tmp_path / ("x.toml" if content.startswith("[q") else "x.json")
    path.write_text(content)
    with pytest.raises((FormatError, ConfigError), match=fault) as error:
        check_files([path])
    assert str(path) in str(error.value)


def test_a_folder_that_is_no_site(tmp_path):
    with pytest.raises(ConfigError, match="no cluster file"):
        check_files([], tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        check_files([], tmp_path / "gone")


def test_the_nodes_of_a_flux_configuration_are_a_description(tmp_path):
    """In TOML, and as `flux config get` prints it."""
    document = {
        "resource": {
            "config": [
                {"hosts": "n[0-3]", "cores": "0-3"},
                {"hosts": "n[0-2]", "properties": ["batch"]},
                {"hosts": "n3", "properties": ["debug"]},
            ]
        },
        "queues": {"batch": {"requires": ["batch"]}, "debug": {"requires": ["debug"]}},
    }
    toml = """
[[resource.config]]
hosts = "n[0-3]"
cores = "0-3"
[[resource.config]]
hosts = "n[0-2]"
properties = ["batch"]
"""
    assert findings(tmp_path, R_json=R, flux_json=document)[0] == []
    codes, result = findings(tmp_path, R_json=R, flux_toml=toml)
    assert codes == ["properties-missing"]
    assert texts(result, "properties-missing")[0].startswith("lacks the property debug on n3")


def test_nothing_to_check():
    with pytest.raises(ConfigError, match="there is nothing to check"):
        check_files([])


# --- the published form ---------------------------------------------------------------------------


def test_findings_follow_their_schema(tmp_path, capsys):
    assert main(["schema", "check-findings"]) == 0
    schema = json.loads(capsys.readouterr().out)
    for number, (files, _, _) in enumerate(_cases()):
        folder = tmp_path / str(number)
        folder.mkdir()
        document = json.loads(json.dumps(findings(folder, **files)[1].to_dict()))
        jsonschema.validate(document, schema)
        assert document["sound"] is False


def test_a_large_site_is_quick(tmp_path):
    """10,000 nodes in R, a graph and queues: a few seconds."""
    import time

    hosts = [f"n{i}" for i in range(10_000)]
    servers = {f"r{i}": tuple(hosts[16 * i : 16 * i + 16]) for i in range(625)}
    files = {
        "R_json": r_document(hosts, 1),
        "jgf_json": chassis_graph(servers, 1),
        "map_json": storage_map(servers),
        "queues_toml": "[queues.a]\nhosts = 'n[0-9998]'\n[queues.b]\nhosts = 'n[9999]'\n",
    }
    paths = written(tmp_path, **files)
    began = time.perf_counter()
    assert check_files(paths).findings == ()
    assert time.perf_counter() - began < 100


CONFIG = (
    '[resource]\nexclude = "{}"\nnorestrict = true\n[[resource.config]]\nhosts = "n[1-4]"\ncores = "0-3"\n'
)


@pytest.mark.parametrize(
    ("exclude", "codes", "nodes"),
    [
        ("n1", [], 3),
        ("n[1-2],n4", [], 1),
        ("0,3", [], 2),
        ("3", [], 3),
        ("n[1,5]", ["excluded-unknown", "import-fault"], 3),
        ("2-4", ["excluded-unknown", "import-fault"], 2),
    ],
)
def test_a_flux_configuration_knows_the_nodes_that_it_excludes(tmp_path, exclude, codes, nodes):
    """By hosts and by ranks, with the nodes in resource.config and in the R that resource.path names."""
    (tmp_path / "Rset").write_text(json.dumps(r_document(("n1", "n2", "n3", "n4"))))
    listed = CONFIG.format(exclude)
    for config in (listed, listed.partition("[[")[0] + 'path = "Rset"\n'):
        found, result = findings(tmp_path, resource_toml=config)
        assert found == codes
        assert result.summary.startswith(f"{nodes} node")
        with_queue = findings(tmp_path, resource_toml=f"{config}[queues.q]\nrequires = []\n")[0]
        assert with_queue == codes


@pytest.mark.parametrize("text", ["", "# nothing\n", '[queues.q]\nhosts = "all"\n'])
def test_a_site_without_queues_can_be_checked(tmp_path, text):
    (tmp_path / "resource.toml").write_text(CONFIG.format("n1"))
    save_site(ss.import_site(tmp_path / "resource.toml"), tmp_path / "site")
    result = check_files([], tmp_path / "site")
    assert (result.findings, result.summary) == ((), "3 nodes, 12 cores; 2 files")
    (tmp_path / "site" / "queues.toml").write_text(text)
    assert bool(check_files([], tmp_path / "site")) is True


def test_files_of_one_flux_configuration_are_merged_first(tmp_path):
    """A default in one file is above the limit in another, and a third lists the nodes."""
    nodes = '[[resource.config]]\nhosts = "n[1-4]"\ncores = "0-3"\nproperties = ["batch"]\n'
    limit = '[queues.q]\nrequires = ["batch"]\npolicy.limits.duration = "4h"\n'
    default = '[policy.jobspec.defaults.system]\nduration = "6h"\n'
    files = {
        "a_toml": default,
        "b_toml": limit,
        "c_toml": nodes,
        "d_toml": "[access]\nallow-guest-user = true\n",
    }
    for names in (list(files), list(reversed(files))):
        codes, result = findings(tmp_path, **{name: files[name] for name in names})
        assert codes == ["default-above-limit"]
        assert result.findings[0].where.endswith("b.toml:3: queues.q.policy.limits.duration")
        assert result.summary == "4 nodes, 16 cores; 1 queue; 4 files"


def test_files_of_slurm_without_nodes_are_joined_with_those_that_have_them(tmp_path):
    """A partition of an unknown node has its line; limits that slurm.conf does not enforce do not count."""
    shown = "PartitionName=q Nodes=n[1-3] Default=YES MaxTime=1-0 State=UP TotalCPUs=8 TotalNodes=2\n"
    files = {
        "p_txt": shown,
        "slurm_conf": "ClusterName=c\nSelectType=select/cons_tres\nNodeName=n[1-2] CPUs=4\n",
        "qos_txt": "Name|MaxJobsPU|GrpJobs\nnone|0|0\n",
    }
    for names in (list(files), list(reversed(files))):
        codes, result = findings(tmp_path, **{name: files[name] for name in names})
        assert codes == ["import-fault"]
        assert result.findings[0].where.endswith("p.txt:1")
        assert result.summary == "2 nodes, 8 cores; 1 queue; 3 files"
