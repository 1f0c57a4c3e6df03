"""Types of gpus: on nodes with several, in logs, in limits, and slices of gpus."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.cli import main

CONF = """\
ClusterName=c
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageEnforce=limits
NodeName=a CPUs=8 Gres=gpu:old:1,gpu:new:1
NodeName=b CPUs=8 Gres=gpu:new:2
NodeName=m CPUs=16 Gres=gpu:1g.5gb:7,gpu:3g.20gb:2(S:0)
PartitionName=p Nodes=ALL Default=YES MaxTime=1-0
"""
NODE = """\
NodeName=a CoresPerSocket=8
   CPUAlloc=0 CPUTot=8 Sockets=1 ThreadsPerCore=1 State=IDLE
   Gres=gpu:old:1(S:0),gpu:new:1(S:0)
"""
NODE_JSON = json.dumps(
    {"nodes": [{"name": "a", "cpus": 8, "cores": 8, "sockets": 1, "threads": 1, "state": ["IDLE"],
                "gres": "gpu:old:1(S:0),gpu:new:1(S:0)"}]}
)  # fmt: skip
HEAD = "JobID|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|ReqTRES\n"
LINE = "{}|{}|bio|p|normal|COMPLETED|{}|{}|2026-01-10T11:00:00|3600|120|1|cpu=1,{}\n"


@pytest.mark.parametrize(
    ("shape", "kind", "fits"),
    [
        ("slot=1/[core;gpu]", "old@gpu", True),
        ("slot=1/[core;gpu=2]", "old@gpu", False),
        ("slot=2/gpu", "old@gpu", False),
        ("slot=3/gpu", "new@gpu", True),
        ("slot=4/gpu", "new@gpu", False),
        ("node=2/slot/gpu", "new@gpu", True),
        ("node=2/slot/gpu=2", "new@gpu", False),
        ("slot=4/gpu", "old@gpu|new@gpu", True),
        ("slot=2/gpu=2", None, True),
        ("slot=5/gpu", None, False),
        ("slot=7/mig-1g.5gb", None, True),
        ("slot=2/[mig-1g.5gb=3;mig-3g.20gb]", None, True),
        ("slot=8/mig-1g.5gb", None, False),
    ],
)
def test_a_type_counts_its_own_gpus(tmp_path, capsys, shape, kind, fits):
    (tmp_path / "slurm.conf").write_text(CONF)
    assert main(["site", "import", str(tmp_path / "slurm.conf"), "-o", str(tmp_path / "site")]) == 0
    words = ["feasible", "--site", str(tmp_path / "site"), shape, *(["--constraint", kind] if kind else [])]
    assert main(words) == (0 if fits else 1)
    capsys.readouterr()


@pytest.mark.parametrize("text", [NODE, NODE_JSON])
def test_the_outputs_of_scontrol_keep_the_types_apart(tmp_path, text):
    (tmp_path / "nodes.txt").write_text(text)
    cluster = ss.import_site(tmp_path / "nodes.txt").cluster
    wants = [ss.Jobspec.from_shape(shape, constraint="old@gpu") for shape in ("slot=1/gpu", "slot=2/gpu")]
    assert [bool(ss.feasible(cluster, spec)) for spec in wants] == [True, False]


def run_of(tmp_path, requests, qos=""):
    """Import the site, run one job per (user, TRES), audit the run, and return the starts."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "slurm.conf").write_text(CONF)
    if qos:
        (tmp_path / "etc" / "qos.txt").write_text(qos)
    now = "2026-01-10T10:00:00"
    rows = [LINE.format(at, user, now, now, tres) for at, (user, tres) in enumerate(requests)]
    (tmp_path / "jobs.sacct").write_text(HEAD + "".join(rows))
    site, run = str(tmp_path / "site"), str(tmp_path / "run")
    assert main(["site", "import", str(tmp_path / "etc"), "-o", site]) == 0
    assert main(["run", "--site", site, str(tmp_path / "jobs.sacct"), "-o", run]) == 0
    assert main(["report", "--audit", run]) == 0
    return list(ss.load_run(run).jobs["start"])


def test_a_log_requests_the_types_of_its_gpus(tmp_path, capsys):
    old, new = "gres/gpu=1,gres/gpu:old=1", "gres/gpu:new=1"
    slices = "gres/gpu:1g.5gb=7"
    jobs = [("tom", tres) for tres in (old, old, new, new, new, new, slices, "gres/gpu:1g.5gb=1")]
    assert run_of(tmp_path, jobs) == [0, 3600, 0, 0, 0, 3600, 0, 3600]
    assert "gpus are requested by type (mig-1g.5gb, new, old)" in capsys.readouterr().err


def test_a_type_that_the_site_does_not_have_is_named(tmp_path, capsys):
    assert run_of(tmp_path, [("tom", "gres/gpu:h100=1")]) == [0]
    assert "any gpu serves requests for gpus of these types: h100 (1)" in capsys.readouterr().err


def test_a_limit_on_a_type_counts_requests_for_it(tmp_path, capsys):
    qos = "Name|Flags|MaxTRESPU\nnormal||gres/gpu:new=1,gres/gpu=3\n"
    jobs = [
        ("tom", "gres/gpu:new=1"),
        ("tom", "gres/gpu:new=1"),
        ("eve", "gres/gpu:new=1"),
        ("tom", "gres/gpu:old=1"),
    ]
    assert run_of(tmp_path, jobs, qos) == [0, 3600, 0, 0]
    assert main(["why", str(tmp_path / "run"), "1"]) == 0
    assert "gpu-type new" in capsys.readouterr().out
