"""A slurm.conf with priorities, backfill parameters and QoS limits, imported and run."""

from __future__ import annotations

import json

import pytest

import simsched as ss
from simsched.cli import main
from simsched.site.import_site import import_site

CONF = """\
ClusterName=tux
AccountingStorageEnforce=safe
SchedulerParameters=bf_interval=60,bf_window=1440,bf_max_job_test=200
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightQOS=5000
NodeName=n[1-4] CPUs=4
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0
"""
DUMP = """\
Cluster - 'tux':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'physics':Description='p':Fairshare=40
Parent - 'physics'
User - 'adam':DefaultAccount='physics':Fairshare=1:MaxJobs=1
User - 'eve':DefaultAccount='physics':Fairshare=1
"""
QOS = """\
Name|Priority|GrpTRES|MaxJobsPU|Flags
normal|0|||
long|0|cpu=8||
"""
JOBS = """\
- {id: 0, shape: slot=4/core, runtime: 1h, duration: 1h, user: adam, bank: physics, qos: normal}
- {id: 1, shape: slot=4/core, runtime: 1h, duration: 1h, user: adam, bank: physics, qos: normal}
- {id: 2, shape: slot=8/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: long}
- {id: 3, shape: slot=4/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: long}
"""


@pytest.fixture
def folder(tmp_path):
    etc = tmp_path / "etc"
    etc.mkdir()
    for name, text in {"slurm.conf": CONF, "dump.cfg": DUMP, "qos.txt": QOS}.items():
        (etc / name).write_text(text)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    return etc


def test_one_dump_has_the_accounts_and_the_limits(folder):
    config = import_site(folder).config
    assert config["queue-policy"] == "slurm"
    assert config["order"] == "multifactor"
    assert [row["user"] for row in config["priority"]["accounts"] if "user" in row] == ["adam", "eve"]
    adam = next(rule for rule in config["limits"] if rule.get("user") == "adam")
    assert adam["running-jobs"] == 1
    assert next(rule for rule in config["limits"] if rule.get("qos") == "long")["cores"] == 8


def test_the_readme_and_show_say_what_was_understood(folder, tmp_path, capsys):
    site = str(tmp_path / "site")
    assert main(["site", "import", str(folder), "-o", site]) == 0
    text = (tmp_path / "site" / "README.md").read_text()
    for part in ("## Limits", "running-jobs 1", "cores 8", "## Priority", "2 users in", "interval=60"):
        assert part in text
    capsys.readouterr()
    assert main(["site", "show", site]) == 0
    assert "running-jobs 1" in capsys.readouterr().out
    assert main(["site", "show", site, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["limits"]
    assert {"jobs": "qos long", "counted": "together", "limits": "cores 8", "over": "hold"} in rows


def test_a_run_keeps_the_limits_of_users_and_qos(folder, tmp_path):
    site, run = str(tmp_path / "site"), str(tmp_path / "run")
    assert main(["site", "import", str(folder), "-o", site]) == 0
    assert main(["run", "--site", site, str(tmp_path / "jobs.yaml"), "--quiet", "-o", run]) == 0
    starts = ss.load_run(run).jobs["start"]
    assert starts[0] == starts[2] == 0
    assert min(starts[1], starts[3]) >= 3600  # adam runs one job at a time, and the QoS has 8 cores
