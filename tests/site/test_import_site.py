"""The import of a site from the files of a centre, and the messages for files that are not."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.errors import ClusterError, ConfigError, FormatError
from tests.site.made_up_sites import SLURM_CONF, flux_site, slurm_site


def test_a_folder_of_slurm_is_a_site(tmp_path):
    slurm_site(tmp_path / "valley", lines=20)
    site = ss.import_site(tmp_path / "valley")
    assert (site.name, site.format, site.cpus_per_core) == ("valley", "slurm.conf", 2)
    assert site.cluster.index.totals["core"] == 108 * 64
    assert site.cluster.index.totals["gpu"] == 48
    assert set(site.queues) == {"batch", "gpu"}
    assert [source.name for source in site.sources] == [str(tmp_path / "valley" / "slurm.conf")]


def test_a_log_is_left_aside_with_a_note(tmp_path):
    slurm_site(tmp_path / "valley", lines=20)
    site = ss.import_site(tmp_path / "valley")
    log = str(tmp_path / "valley" / "jobs.sacct")
    assert site.logs == (log,)
    (note,) = [note for note in site.notes if note.where == log]
    assert (note.kind, "simsched run --site" in note.text) == ("left out", True)


def test_a_binary_file_of_a_folder_is_left_aside(tmp_path):
    (tmp_path / "slurm.conf").write_text(SLURM_CONF)
    (tmp_path / "core.12").write_bytes(bytes(range(256)) * 9)
    site = ss.import_site(tmp_path)
    assert [note.text for note in site.notes if "core.12" in note.text] == ["this is a binary file: core.12"]
    with pytest.raises(FormatError, match="binary"):
        ss.import_site(tmp_path / "core.12")


def test_a_folder_of_flux_is_a_site(tmp_path):
    flux_site(tmp_path / "ridge", jobs=5)
    site = ss.import_site(tmp_path / "ridge")
    assert len(site.cluster.index) == 64
    assert site.config["queues"]["gpu"]["policy"]["limits"]["duration"] == "8h"
    assert [log.rpartition("/")[2] for log in site.logs] == ["jobs.json"]


SCONTROL = """\
NodeName=c001 Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUTot={cpus} CPULoad=0.00
   AvailableFeatures=rome,ib ActiveFeatures=rome,ib Gres=(null)
   RealMemory=256000 AllocMem=0 Sockets={sockets} Boards=1 State=IDLE ThreadsPerCore=2
   Partitions=batch
"""


@pytest.mark.parametrize(("sockets", "faults"), [(2, 0), (1, 1)])
def test_two_descriptions_of_a_node_that_disagree_are_a_note(tmp_path, sockets, faults):
    conf, nodes = tmp_path / "slurm.conf", tmp_path / "nodes.txt"
    conf.write_text(SLURM_CONF)
    nodes.write_text(SCONTROL.format(sockets=sockets, cpus=64 * sockets))
    site = ss.import_site(conf, nodes)
    found = [note.text for note in site.notes if note.kind == "fault"]
    assert len(found) == faults
    assert all("c001: 32 cores, but 64 in slurm.conf" in text for text in found)
    assert site.cluster.index.totals["core"] == 108 * 64
    if faults:
        with pytest.raises(FormatError, match="c001: 32 cores"):
            ss.import_site(conf, nodes, strict=True)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"notes.txt": "buy milk\n"}, "not recognised"),
        ({"a.txt": "buy milk\n", "b.txt": "call mum\n"}, "no nodes are described"),
        ({}, "the folder has no files"),
        ({"jobs.sacct": "JobID|Submit|State\n", "more.sacct": "JobID|Submit\n"}, "only logs of jobs"),
        ({"slurm.conf": "ClusterName=x\nPartitionName=p Nodes=n[1-4]\n"}, "no nodes are described"),
        (
            {
                "r.toml": '[resource]\nexclude = "a[1-2]"\nconfig = [{hosts = "a[1-2]", cores = "0"}]\n',
            },
            r"all nodes are excluded from scheduling: a\[1-2\]",
        ),
    ],
)
def test_files_that_describe_no_machine_are_refused(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises((FormatError, ConfigError), match=message):
        ss.import_site(tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises((ConfigError, ClusterError, FormatError), match="nowhere: no such file"):
        ss.import_site(tmp_path / "nowhere")


@pytest.mark.parametrize("paths", [(), (5,), ("",)])
def test_arguments_that_are_not_paths_are_refused(paths):
    with pytest.raises(ConfigError):
        ss.import_site(*paths)


def test_partitions_in_json_are_not_a_log_although_they_count_jobs(tmp_path):
    """`scontrol show partition --json` has a key ``jobs`` in ``oversubscribe``."""
    meta = {"meta": {"slurm": {"cluster": "elm"}}}
    node = {
        "name": "n1",
        "cpus": 8,
        "cores": 8,
        "sockets": 1,
        "threads": 1,
        "partitions": ["p"],
        "state": ["IDLE"],
    }
    limit = {"set": True, "infinite": False, "number": 90}
    partition = {"name": "p", "maximums": {"time": limit, "oversubscribe": {"jobs": 1, "flags": []}}}
    for indent in (None, 1):
        (tmp_path / "nodes.json").write_text(json.dumps({"nodes": [node], **meta}, indent=indent))
        (tmp_path / "partitions.json").write_text(
            json.dumps({"partitions": [partition], **meta}, indent=indent)
        )
        site = ss.import_site(tmp_path)
        assert (site.name, site.logs) == ("elm", ())
        assert site.config["queues"]["p"]["policy"]["limits"]["duration"] == "90m"
