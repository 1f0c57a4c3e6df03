"""hwloc topologies and SimGrid platforms: XML with a document type that is harmless."""

from functools import partial

import pytest

from simsched.errors import FormatError, LimitError
from simsched.formats.machines import recognition
from simsched.formats.text.xml_tree import parse_xml
from tests.formats.machines.described import described

read_platform = partial(described, recognition.PLATFORM)
read_hwloc = partial(described, recognition.HWLOC)

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'


def obj(kind, inside="", **words):
    attributes = "".join(f' {key}="{value}"' for key, value in words.items())
    return f'<object type="{kind}"{attributes}>{inside}</object>'


def info(name, value):
    return f'<info name="{name}" value="{value}"/>'


def cores(count, threads=2):
    return "".join(obj("L2Cache", obj("Core", obj("PU") * threads)) for _ in range(count))


def numa(size, cpus="0xff"):
    return obj("NUMANode", cpuset=cpus, local_memory=size)


def gpu(*backends):
    return obj(
        "PCIDev", "".join(obj("OSDev", info("Backend", name)) for name in backends), pci_type="0302 [10de]"
    )


def topology(inside, host="mars"):
    return f'{HEAD}<topology version="2.0">{obj("Machine", info("HostName", host) + inside)}</topology>'


def node(text):
    return read_hwloc(text, "t.xml").recipe.groups[0]


def levels(group):
    return [(level.type, level.count) for level in group.locality]


def test_version_2_has_numa_beside_the_cores():
    package = obj("Package", obj("Group", numa(1024) + cores(2)) * 2)
    group = node(topology(package * 2))
    assert (group.hosts, group.cores, levels(group)) == (("mars",), 8, [("socket", 2), ("numa", 2)])
    assert [(pool.amount.size, pool.within) for pool in group.pools] == [(1024, "numa")]


def test_version_1_has_sockets_in_numa_nodes():
    domain = obj("NUMANode", obj("Socket", cores(4)), cpuset="0x1,0xf0", local_memory=2048)
    text = topology(domain * 2).replace(' version="2.0"', "").replace("hwloc2.dtd", "hwloc.dtd")
    group = node(text)
    assert (group.cores, levels(group)) == (8, [("socket", 2)])
    assert [(pool.amount.size, pool.within) for pool in group.pools] == [(2048, "socket")]


def test_unequal_memory_and_memory_without_processors_belong_to_the_node():
    group = node(
        topology(obj("Package", numa(10) + cores(2)) + obj("Package", numa(20) + cores(2)) + numa(7, "0x0"))
    )
    assert levels(group) == [("socket", 2)]
    assert [(pool.amount.size, pool.within) for pool in group.pools] == [(37, "node")]


def test_a_gpu_that_several_interfaces_show_counts_once_and_partitions_count_each():
    group = node(
        topology(numa(1) + cores(4) + gpu("CUDA", "NVML", "OpenCL") * 2 + gpu("RSMI", "RSMI", "RSMI"))
    )
    assert group.gpus == 5
    found = read_hwloc(topology(numa(1) + cores(4) + obj("PCIDev", pci_type="0302 [10de:1]")), "t")
    assert found.recipe.groups[0].gpus == 1
    assert any("by their PCI class" in note.text for note in found.notes)
    assert node(topology(numa(1) + cores(4) + obj("PCIDev", pci_type="0300 [1a03:1]"))).gpus == 0


def test_gpus_are_not_put_on_the_first_numa_nodes():
    package = obj("Package", obj("Group", numa(8) + cores(1)) * 4)
    assert levels(node(topology(package * 2 + gpu("CUDA") * 4))) == [("socket", 2)]
    assert levels(node(topology(package * 2 + gpu("CUDA") * 8))) == [("socket", 2), ("numa", 4)]


def test_uneven_packages_are_no_locality():
    found = read_hwloc(topology(obj("Package", numa(1) + cores(3)) + obj("Package", numa(1) + cores(1))), "t")
    assert found.recipe.groups[0].locality == ()
    assert any("do not divide evenly" in note.text for note in found.notes)


def test_threads_alone_are_cores():
    assert node(topology(numa(1) + obj("PU") * 4)).cores == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("<topology>", "not XML"),
        ("<topology/>", "0 machines"),
        (topology(numa(1)), "no cores"),
        (HEAD + "<platform/>", "not a topology"),
        (HEAD.replace('.dtd"', '.dtd" [<!ENTITY a "b">]') + "<topology/>", "DOCTYPE with declarations"),
        (HEAD.replace("DOCTYPE topology", "DOCTYPE other") + "<topology/>", "DOCTYPE of 'other'"),
        (HEAD + "<topology>&a;</topology>", "entity 'a' is not defined"),
        (topology(obj("Group").join(["<object type='Group'>" * 60, "</object>" * 60])), "nested deeper"),
    ],
)
def test_wrong_topologies_are_refused(text, message):
    with pytest.raises(FormatError, match=message):
        read_hwloc(text, "t.xml")


def test_a_size_that_is_not_a_number_is_a_fault_with_its_line():
    text = topology("\n" + numa("much") + cores(1))
    (fault,) = [note for note in read_hwloc(text, "t").notes if note.kind == "fault"]
    assert fault.where.startswith("t:4:")
    with pytest.raises(FormatError, match="local_memory is 'much'"):
        read_hwloc(text, "t", strict=True)


def test_without_a_permitted_name_every_document_type_is_refused():
    with pytest.raises(FormatError, match="a DOCTYPE is not accepted"):
        parse_xml('<!DOCTYPE topology SYSTEM "x"><topology/>')


# -- SimGrid -----------------------------------------------------------------------------

PLATFORM = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <zone id="AS0" routing="Full">
  <host id="master_host" speed="1Gf"/>
  <cluster id="c" prefix="a" suffix=".lab" radical="0-2,7" speed="1Gf" core="16" bw="1GBps" lat="1us">
   <prop id="fat" value="true"/>
  </cluster>
  <AS id="old" routing="Full"><host id="b1" power="2Gf"/></AS>
  <host id="pfs" speed="1Gf"><prop id="role" value="storage"/></host>
  <link id="l" bandwidth="1GBps" latency="1us"/>
 </zone>
</platform>
"""


def test_hosts_of_a_platform():
    found = read_platform(PLATFORM, "p.xml")
    rows = [(g.hosts, g.cores, g.properties) for g in found.recipe.groups]
    assert rows == [(("a0.lab", "a1.lab", "a2.lab", "a7.lab"), 16, ("fat",)), (("b1",), 1, ())]
    left = " ".join(note.text for note in found.notes)
    assert "master_host" in left
    assert "2 speeds" in left
    assert "role is storage" in left


def test_an_empty_line_before_the_declaration_is_forgiven():
    found = read_platform("\n" + PLATFORM, "p.xml")
    assert found.notes[0].where == "p.xml:6:3"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('<cluster id="d" prefix="d" radical="3-1" speed="1f"/>', "descends"),
        ('<cluster id="d" prefix="d" speed="1f"/>', "without radical"),
        ('<host id="b1" speed="1f"/><host id="b1" speed="1f"/>', "'b1' occurs twice"),
        ('<host id="x" core="many"/>', "'many' is not a number of cores"),
        ('<host id="x y"/>', "'x y' is not a host name"),
        ('<hots id="x"/>', "unknown key 'hots'; did you mean host?"),
    ],
)
def test_faults_of_a_platform(line, message):
    text = f'<platform version="4.1">\n{line}\n<host id="z"/></platform>'
    (fault,) = [note for note in read_platform(text, "p").notes if note.kind == "fault"]
    assert fault.where.startswith("p:2:")
    assert message in fault.text
    with pytest.raises(Exception, match="p:2"):
        read_platform(text, "p", strict=True)


def test_platforms_without_hosts_and_with_too_many():
    with pytest.raises(FormatError, match="no hosts for jobs"):
        read_platform("<platform/>", "p")
    with pytest.raises(LimitError):
        read_platform('<platform><cluster id="a" prefix="a" radical="0-1000000"/></platform>', "p")


def halves(**of_machine):
    """Two packages of two cores with two threads each, and a NUMA node of 1,024 bytes beside each."""
    packages = []
    for one in range(2):
        inside = [obj("NUMANode", nodeset=hex(1 << one), cpuset=hex(0xF << 4 * one), local_memory=1024)]
        for core in (2 * one, 2 * one + 1):
            units = "".join(
                obj("PU", os_index=unit, cpuset=hex(1 << unit)) for unit in (2 * core, 2 * core + 1)
            )
            inside.append(obj("Core", units, cpuset=hex(3 << 2 * core)))
        packages.append(obj("Package", "".join(inside), cpuset=hex(0xF << 4 * one)))
    return f'{HEAD}<topology version="2.0">{obj("Machine", "".join(packages), **of_machine)}</topology>'


@pytest.mark.parametrize(
    ("sets", "cores", "memory", "sockets", "note"),
    [
        ({}, 4, 2048, 2, None),
        ({"allowed_cpuset": "0xf...f", "allowed_nodeset": "0xf...f,0x00000003"}, 4, 2048, 2, None),
        ({"allowed_cpuset": "0x0000000f", "allowed_nodeset": "0x1"}, 2, 1024, 1,
         "2 of 4 cores, 4 of 8 processing units, 1 of 2 NUMA nodes: not allowed or offline"),
        ({"online_cpuset": "0x00000000,0x00000f3f"}, 3, 2048, 1, "1 of 4 cores, 2 of 8 processing units:"),
        ({"allowed_cpuset": "0x77"}, 4, 2048, 2, "2 of 8 processing units: not allowed or offline"),
        ({"allowed_nodeset": "0x2"}, 4, 1024, 2, "1 of 2 NUMA nodes: not allowed or offline"),
        ({"cpuset": "0xff", "complete_cpuset": "0xffff"}, 4, 2048, 2, "8 processing units that"),
        ({"allowed_cpuset": "some"}, 4, 2048, 2, "allowed_cpuset is 'some' (expected a set"),
    ],
)  # fmt: skip
def test_cores_and_numa_nodes_that_are_not_allowed_are_left_out(sets, cores, memory, sockets, note):
    found = read_hwloc(halves(**sets), "t.xml")
    (group,) = found.recipe.groups
    total = sum(pool.amount.size * (1 if pool.within == "node" else sockets) for pool in group.pools)
    assert (group.cores, total, dict(levels(group)).get("socket", 1)) == (cores, memory, sockets)
    texts = [
        one.text for one in found.notes if "hardware threads" not in one.text and "one node" not in one.text
    ]
    assert (note is None) == (not texts) or sockets == 1
    assert note is None or any(text.startswith(note) for text in texts)


def test_a_topology_of_which_nothing_is_allowed():
    with pytest.raises(FormatError, match="no cores that are allowed and online"):
        read_hwloc(halves(allowed_cpuset="0x0"), "t.xml")
