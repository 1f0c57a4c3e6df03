"""Odd and broken files of a site: each is an import with notes, or one error that names the reason."""

from __future__ import annotations

import pytest

from simsched.errors import FormatError, SimschedError
from simsched.site.import_site import import_site

NODES = "NodeName=n[1-4] CPUs=8 RealMemory=1000\n"
PARTITION = "PartitionName=p Nodes=ALL Default=YES\n"


def imported(folder, text, **others):
    for name, content in {"slurm.conf": text, **others}.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return import_site(folder)


def faults(site):
    return [note.text for note in site.notes if note.kind == "fault"]


@pytest.mark.parametrize(
    "text",
    [
        (NODES + PARTITION).replace("\n", "\r\n"),
        "\ufeff" + NODES + PARTITION,
        "\n\n# nodes\n" + NODES.replace(" CPUs", " \\\n  CPUs") + PARTITION.rstrip("\n"),
        NODES.upper().replace("N[1-4]", "n[1-4]") + PARTITION,
        (NODES + "Comment=caf\xe9\n" + PARTITION).encode("latin-1"),
    ],
    ids=["crlf", "byte order mark", "continued", "upper case", "latin-1"],
)
def test_spellings_of_one_file(tmp_path, text):
    site = imported(tmp_path, text)
    assert (len(site.cluster.index), list(site.queues), site.cluster.index.totals["core"]) == (4, ["p"], 32)


@pytest.mark.parametrize(
    ("text", "others", "fault"),
    [
        ("include slurm.conf\n" + NODES, {}, "the file includes itself"),
        ("include a.txt\n" + NODES, {"a.txt": "include slurm.conf\n"}, "the file includes itself"),
        (NODES + "NodeName=m[4-1] CPUs=8\n", {}, "the range '4-1' descends"),
        (NODES + "NodeName=n[3-6] CPUs=4\n", {}, "the node 'n3' occurs twice"),
        (NODES + "PartitionName=q Nodes=x[1-3]\n", {}, "partition q: there is no node x[1-3]"),
        (NODES + "PartitionName=q Nodes=n1 MaxTime=-10 MaxNodes=-3\n", {}, "maxnodes: '-3' is not valid"),
        (NODES + "NodeName=m1 CPUs=99999999999999999999\n", {}, "cpus: '99999999999999999999' is not valid"),
        (NODES + "NodeName=m[1-99999999999] CPUs=1\n", {}, "has 99999999999 names"),
        (NODES + "NodeName=m[1-4 CPUs=8\n", {}, "'[' is never closed"),
    ],
)
def test_a_broken_line_is_a_fault_and_the_rest_is_read(tmp_path, text, others, fault):
    site = imported(tmp_path, text + PARTITION, **others)
    assert any(fault in found for found in faults(site)), faults(site)
    assert site.cluster.index.totals["core"] >= 32


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"slurm\.conf: the file is empty"),
        (b"\n \n", r"slurm\.conf: the file is empty"),
        ((NODES + PARTITION).encode("utf-16"), r"slurm\.conf: the text is UTF-16 \(expected UTF-8\)"),
        (NODES.encode() + b"\0\0", r"slurm\.conf: this is a binary file"),
        (
            b"NodeName=n[4-1] CPUs=8\n" + PARTITION.encode(),
            r"slurm\.conf:1: no nodes are described; .*descends",
        ),
        (PARTITION.encode(), "no nodes are described"),
    ],
)
def test_a_file_without_nodes_is_an_error_with_the_reason(tmp_path, content, message):
    (tmp_path / "slurm.conf").write_bytes(content)
    with pytest.raises(SimschedError, match=message):
        import_site(tmp_path)


def test_strict_ends_at_the_first_fault(tmp_path):
    (tmp_path / "slurm.conf").write_text("NodeName=n[4-1] CPUs=8\n" + NODES + PARTITION)
    with pytest.raises(FormatError, match=r"slurm\.conf:1"):
        import_site(tmp_path, strict=True)


@pytest.mark.parametrize(
    "table",
    ["username,bank,max_running_jobs,name\nann,b,4,a\nbob,b,4,{}\n", "account,user,shares\nb,a,1\nb,{},4\n"],
    ids=["limits of flux-accounting", "accounts"],
)
def test_a_cell_that_is_too_large_is_named_by_its_line(tmp_path, table):
    fair_share = "PriorityType=priority/multifactor\nPriorityWeightFairshare=100\n"
    more = {"table.csv": table.format("y" * 200_000)}
    with pytest.raises(FormatError, match=r"table.csv:3: the line cannot be read: field larger than"):
        imported(tmp_path, fair_share + NODES + PARTITION, **more)


def test_lines_of_flux_accounting_count_line_breaks_within_quotes(tmp_path):
    table = 'username,bank,max_running_jobs,name\n"ann","b",4,"a\nb"\nbob,b,many,c\n'
    site = imported(tmp_path, NODES + PARTITION, **{"table.csv": table})
    (note,) = [note for note in site.notes if "many" in note.text]
    assert note.where.endswith("table.csv:4")
