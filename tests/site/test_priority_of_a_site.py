"""The priority lines of a slurm.conf, and the accounts beside it, as the configuration of a site."""

from __future__ import annotations

from simsched.cli import main
from simsched.site.import_site import import_site
from simsched.site.site_tables import priority_rows

CONF = """\
ClusterName=tux
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightPartition=500
PriorityFlags=INCR_ONLY
NodeName=n[1-4] CPUs=4
PartitionName=batch Nodes=n[1-4] Default=YES PriorityJobFactor=10
PartitionName=debug Nodes=n1 PriorityJobFactor=100
"""
SSHARE = """\
Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.000000|126||
 physics||40|1.000000|126|1.000000|
  physics|adam|1|0.500000|126|1.000000|0.500000
  physics|eve|1|0.500000|0|0.000000|1.000000
"""
JOBS = """\
- {id: 0, shape: slot=4/node, runtime: 1h, duration: 1h, user: eve, bank: physics}
- {id: 1, shape: slot=4/node, runtime: 1h, duration: 1h, user: adam, bank: physics, submit: 1m}
- {id: 2, shape: slot=4/node, runtime: 1h, duration: 1h, user: eve, bank: physics, submit: 2m}
"""


def files(folder):
    folder.mkdir()
    (folder / "slurm.conf").write_text(CONF)
    (folder / "sshare.txt").write_text(SSHARE)
    return folder


def test_lines_and_accounts_become_the_priority(tmp_path):
    site = import_site(files(tmp_path / "etc"))
    assert site.config["order"] == "multifactor"
    priority = site.config["priority"]
    assert priority["factors"]["queue"]["values"] == {"batch": 10, "debug": 100}
    assert [row.get("user") for row in priority["accounts"]] == [None, None, "adam", "eve"]
    texts = [str(note) for note in site.notes]
    assert any("order = multifactor, with the weights age 1000" in text for text in texts)
    assert any("fair share: 2 users in 2 accounts" in text for text in texts)
    assert any("PriorityFlags=INCR_ONLY: priorities may decrease" in text for text in texts)
    assert ("fair-share", "10000", "-") in priority_rows(site)


def test_a_run_on_the_site_goes_by_its_priority(tmp_path, capsys):
    files(tmp_path / "etc")
    (tmp_path / "jobs.yaml").write_text(JOBS)
    assert main(["site", "import", str(tmp_path / "etc"), "-o", str(tmp_path / "site")]) == 0
    assert "## Priority" in (tmp_path / "site" / "README.md").read_text()
    run = ["run", "--site", str(tmp_path / "site"), str(tmp_path / "jobs.yaml"), "--quiet", "-o"]
    assert main([*run, str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["export", str(tmp_path / "run"), "--to", "evalys"]) == 0
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    # eve has used an hour of the machine by then, adam 126 core-seconds before
    assert {line[0]: line[8] for line in lines[1:]} == {"0": "0.0", "1": "3600.0", "2": "7200.0"}


def test_accounts_without_a_fair_share_are_left_out(tmp_path):
    folder = files(tmp_path / "etc")
    (folder / "slurm.conf").write_text(CONF.replace("PriorityWeightFairshare=10000", ""))
    site = import_site(folder)
    assert "accounts" not in site.config["priority"]
    assert any("accounts: the priority of jobs has no fair share" in str(note) for note in site.notes)
