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


QOS_CONF = """\
ClusterName=tux
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=1440,bf_resolution=60,bf_max_job_test=500,bf_max_job_user=20
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityMaxAge=1-0
PriorityWeightAge=100
PriorityWeightFairshare=1000
PriorityWeightQOS=10000
AccountingStorageEnforce=associations,limits,qos
NodeName=n[1-4] CPUs=4
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0
"""
QOS_ROWS = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|MaxTRESPU|MaxJobsPU|MaxWall
normal|0|00:00:00||cluster||1.000000||||
high|100|00:02:00|normal|requeue||2.000000|cpu=8||1|
long|50|00:00:00||cluster||1.000000||||
"""
QOS_JOBS = """\
- {id: 0, shape: slot=16/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: normal}
- {id: normal, shape: slot=16/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: normal}
- {id: long, shape: slot=16/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: long, submit: 1m}
- {id: high, shape: slot=8/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: high, submit: 2m}
- {id: high2, shape: slot=8/core, runtime: 1h, duration: 1h, user: eve, bank: physics, qos: high, submit: 2m}
"""


def qos_files(folder):
    folder.mkdir()
    (folder / "slurm.conf").write_text(QOS_CONF)
    (folder / "qos.txt").write_text(QOS_ROWS)
    (folder / "sshare.txt").write_text(SSHARE)
    return folder


def test_the_priorities_of_qos_come_from_sacctmgr(tmp_path):
    site = import_site(qos_files(tmp_path / "etc"))
    priority = site.config["priority"]
    assert priority["factors"]["qos"] == {
        "weight": 10000,
        "values": {"normal": 0, "high": 100, "long": 50},
        "default": 0,
        "normalise": True,
    }
    assert priority["fair-share"]["qos-usage"] == {"high": 2}
    assert [row.get("user") for row in priority["accounts"]] == [None, None, "adam", "eve"]
    texts = [str(note) for note in site.notes]
    for text in (
        "QOS factor with the weight 10000, of the priorities normal 0, high 100, long 50",
        "usage counts with the UsageFactor of its QOS: high 2",
        "QOS high preempts normal: no slurm.conf has PreemptType=preempt/qos",
    ):
        assert any(text in known for known in texts), text
    assert not any("priorities of QOS are in the accounting database" in text for text in texts)


def test_a_slurm_conf_with_all_of_it_is_imported_and_run(tmp_path, capsys):
    """Multifactor, fair tree, limits of QOS and bf_ parameters, with the table of what was understood."""
    qos_files(tmp_path / "etc")
    (tmp_path / "jobs.yaml").write_text(QOS_JOBS)
    assert main(["site", "import", str(tmp_path / "etc"), "-o", str(tmp_path / "site")]) == 0
    text = (tmp_path / "site" / "README.md").read_text()
    for part in (
        "| qos | 10000 | values (normal 0, high 100, long 50), default 0, normalise True |",
        "method fair-tree", "half-life 7d", "qos-usage (high 2", "2 users in 2 accounts",
        "interval=60", "window=86400", "cores 8", "running-jobs 1", "QOS high preempts normal",
    ):  # fmt: skip
        assert part in text, part
    run = str(tmp_path / "run")
    args = [
        "run",
        "--site",
        str(tmp_path / "site"),
        str(tmp_path / "jobs.yaml"),
        "--quiet",
        "--audit",
        "-o",
        run,
    ]
    assert main(args) == 0
    import simsched as ss

    jobs = ss.load_run(run).jobs.set_index("id")
    # At 1 h the greatest factor of QOS is first; the second job of high waits for MaxJobsPU and GrpTRES.
    assert jobs["start"]["0"] == 0
    assert jobs["start"]["high"] == 3600
    assert jobs["start"]["high"] < jobs["start"]["high2"] <= jobs["start"]["long"]
    assert jobs["start"]["long"] < jobs["start"]["normal"]


def test_a_weight_of_qos_alone_makes_an_order(tmp_path):
    etc = tmp_path / "etc"
    etc.mkdir()
    conf = "\n".join(
        line for line in QOS_CONF.splitlines() if "WeightAge" not in line and "Fairshare" not in line
    )
    (etc / "slurm.conf").write_text(conf + "\n")
    site = import_site(etc)
    assert "priority" not in site.config
    assert any("import the output of sacctmgr show qos" in note.text for note in site.notes)
    (etc / "qos.txt").write_text("Name|Priority|Flags\nnormal|1|\nhigh|x|\n")
    site = import_site(etc)
    assert site.config["order"] == "multifactor"
    assert site.config["priority"]["factors"]["qos"]["values"] == {"normal": 1, "high": 0}
    assert any("priority 'x' is not a number" in note.text for note in site.notes)


def test_priorities_of_qos_without_a_weight_are_left_out(tmp_path):
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "slurm.conf").write_text(CONF)
    (etc / "qos.txt").write_text(QOS_ROWS)
    site = import_site(etc)
    assert "qos" not in site.config["priority"]["factors"]
    assert any("no slurm.conf gives them a weight" in note.text for note in site.notes)
